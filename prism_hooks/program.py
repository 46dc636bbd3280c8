"""PRISM's models, as its simulator takes them, as programs.

`prismgpu.ProgramText` writes them as JSON; its documentation says how.
Expressions come in postfix order and are read with a stack, however deep they are. Of the words of
a model only names for messages are kept, as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from engines.errors import InvalidModelError, UnsupportedError
from engines.program.expressions import (
    GREATEST_INT,
    LEAST_INT,
    Binary,
    BinaryOperator,
    Call,
    Conditional,
    Expression,
    Function,
    Literal,
    Type,
    Unary,
    UnaryOperator,
    Variable,
)
from engines.program.program import (
    Assignment,
    Command,
    Label,
    ModelKind,
    Module,
    Program,
    RewardStructure,
    StateReward,
    TransitionReward,
    Update,
    VariableDeclaration,
)

Words = list[bool | int | float | str]
_BINARY = {operator.value: operator for operator in BinaryOperator}
_FUNCTIONS = {function.value: function for function in Function}
_UNARY = {"!": UnaryOperator.NOT, "neg": UnaryOperator.MINUS}


class ExpressionReader:
    """Reads expressions over the variables of a model.

    Parameters
    ----------
    types
        The variables' types.
    labels
        What the words of labels stand for; each is made when it is first met.
    """

    def __init__(
        self, types: list[Type], labels: dict[str, Callable[[], Expression]] | None = None
    ) -> None:
        self._types = types
        self._labels = labels or {}

    def read(self, words: Words) -> Expression:
        """Return the expression that words in postfix order stand for.

        Raises
        ------
        UnsupportedError
            For a word that is unknown here.
        InvalidModelError
            For operands of the wrong type.
        """
        stack: list[Expression] = []
        for word in words:
            if isinstance(word, str):
                self._apply(word, stack)
            else:
                stack.append(Literal(word))
        (expression,) = stack
        return expression

    def _apply(self, word: str, stack: list[Expression]) -> None:
        name, _, arity = word.partition(":")
        if arity and name in _FUNCTIONS:
            stack.append(Call(_FUNCTIONS[name], tuple(_taken(stack, int(arity)))))
        elif word in _BINARY:
            left, right = _taken(stack, 2)
            stack.append(Binary(_BINARY[word], left, right))
        elif word in _UNARY:
            stack.append(Unary(_UNARY[word], *_taken(stack, 1)))
        elif word == "?":
            condition, then, otherwise = _taken(stack, 3)
            stack.append(Conditional(condition, then, otherwise))
        elif word == "double":
            (operand,) = _taken(stack, 1)
            stack.append(_as_double(operand))
        elif word in self._labels:
            stack.append(self._labels[word]())
        elif word.startswith("v") and word[1:].isdecimal() and int(word[1:]) < len(self._types):
            index = int(word[1:])
            stack.append(Variable(index, self._types[index]))
        else:
            raise UnsupportedError(f"the word {word!r} of an expression is not known")


def _taken(stack: list[Expression], count: int) -> list[Expression]:
    taken = stack[-count:]
    del stack[-count:]
    return taken


def _as_double(operand: Expression) -> Expression:
    if operand.type is not Type.INT:
        return operand
    return Binary(BinaryOperator.PLUS, operand, Literal(0.0))


def read_program(text: str) -> Program:
    """Return the program that a `prismgpu.ProgramText` describes.

    Parameters
    ----------
    text
        The text.

    Raises
    ------
    UnsupportedError
        If it holds what programs have no form for, and PRISM's own code must explore the model.
    """
    found = json.loads(text)
    try:
        return make_program(found)
    except InvalidModelError as error:
        # PRISM has accepted the model.
        raise UnsupportedError(f"the model has no form here: {error}") from error


def make_program(found: dict[str, Any]) -> Program:
    """Return the program that a description stands for.

    Parameters
    ----------
    found
        What a `prismgpu.ProgramText` holds.

    Raises
    ------
    UnsupportedError, InvalidModelError
        If it holds what programs have no form for.
    """
    variables = tuple(map(_variable, found["variables"]))
    reader = ExpressionReader([variable.type for variable in variables])
    return Program(
        kind=ModelKind(found["kind"]),
        variables=variables,
        modules=tuple(_module(module, reader) for module in found["modules"]),
        actions=tuple(found["actions"]),
        reward_structures=tuple(_rewards(structure, reader) for structure in found["rewards"]),
        labels=tuple(Label(name, reader.read(words)) for name, words in found.get("labels", ())),
        initial_condition=reader.read(found["init"]) if "init" in found else None,
        probabilities_checked=found["checked"],
    )


def _variable(found: dict[str, Any]) -> VariableDeclaration:
    low, high = found["low"], found["high"]
    return VariableDeclaration(
        name=found["name"],
        type=Type(found["type"]),
        low=LEAST_INT if low is None else low,
        high=GREATEST_INT if high is None else high,
        initial=int(found["initial"]),
    )


def _action(number: int) -> int | None:
    return None if number == 0 else number - 1


def _module(found: dict[str, Any], reader: ExpressionReader) -> Module:
    commands = tuple(_command(command, reader) for command in found["commands"])
    used = {command.action for command in commands}
    blocked = {number - 1 for number in found["alphabet"]} - used
    return Module(found["name"], commands, frozenset(blocked))


def _command(found: dict[str, Any], reader: ExpressionReader) -> Command:
    updates = tuple(_update(*update, reader=reader) for update in found["updates"])
    return Command(reader.read(found["guard"]), updates, _action(found["action"]))


def _update(weight: Words, *assigned: tuple[int, Words], reader: ExpressionReader) -> Update:
    assignments = tuple(Assignment(variable, reader.read(value)) for variable, value in assigned)
    return Update(assignments, reader.read(weight))


def _rewards(found: dict[str, Any], reader: ExpressionReader) -> RewardStructure:
    return RewardStructure(
        name=found["name"],
        states=tuple(
            StateReward(reader.read(guard), reader.read(value)) for guard, value in found["states"]
        ),
        transitions=tuple(
            TransitionReward(_action(action), reader.read(guard), reader.read(value))
            for action, guard, value in found["transitions"]
        ),
    )
