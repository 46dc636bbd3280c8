"""PRISM's models and properties, as its simulator takes them, as programs and questions.

`prismgpu.ProgramText` and `prismgpu.QuestionText` write them as JSON; their documentation says how.
Expressions come in postfix order and are read with a stack, however deep they are. Of the words of
a model only names for messages are kept, as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from engines.errors import InvalidModelError, UnsupportedError
from engines.montecarlo import bounded_ltl as ltl
from engines.montecarlo.bounded_ltl import Formula
from engines.montecarlo.monitor import monitor_of
from engines.montecarlo.questions import (
    NO_BOUND,
    Bounds,
    CumulativeReward,
    InstantaneousReward,
    Monitor,
    Next,
    Question,
    ReachabilityReward,
    Until,
    check_question,
)
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
    negation,
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
_CONNECTIVES: dict[str, Callable[[Formula, Formula], Formula]] = {
    "&": ltl.conjunction,
    "|": ltl.disjunction,
    "=>": ltl.implies,
    "<=>": ltl.iff,
}
_TEMPORAL_ONE = {"F": ltl.eventually, "G": ltl.always}
_TEMPORAL_TWO = {"U": ltl.until, "W": ltl.weak_until, "R": ltl.release}
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


def read_questions(text: str, program: Program) -> tuple[Question, ...]:
    """Return what a list of `prismgpu.QuestionText` asks of each path.

    Parameters
    ----------
    text
        The list.
    program
        The model.

    Raises
    ------
    UnsupportedError
        If something has no form here, and PRISM's own code must sample the paths.
    """
    reader = property_reader(program)
    try:
        questions = tuple(_question(found, reader) for found in json.loads(text))
        for question in questions:
            check_question(program, question)
    except InvalidModelError as error:
        raise UnsupportedError(f"the property has no form here: {error}") from error
    return questions


def _question(found: dict[str, Any], reader: ExpressionReader) -> Question:
    match found["kind"]:
        case "until":
            upper = NO_BOUND if found["upper"] is None else found["upper"]
            bounds = Bounds(found["lower"], upper) if found["bounded"] else None
            left, right = reader.read(found["left"]), reader.read(found["right"])
            return Until(left, right, bounds, found["negated"])
        case "ltl":
            atoms = tuple(reader.read(atom) for atom in found["atoms"])
            return decided_monitor(read_formula(found["formula"]), atoms)
        case "next":
            return Next(reader.read(found["target"]), found["negated"])
        case "cumulative":
            return CumulativeReward(found["rewards"], found["bound"])
        case "instantaneous":
            return InstantaneousReward(found["rewards"], found["bound"])
        case "reach":
            return ReachabilityReward(found["rewards"], reader.read(found["target"]))
        case kind:
            raise UnsupportedError(f"a question of the kind {kind!r} is not known")


def read_formula(words: list[str]) -> Formula:
    """Return the formula that words in postfix order stand for.

    Parameters
    ----------
    words
        As `prismgpu.QuestionText` writes them; the first atom is called "a0".

    Raises
    ------
    UnsupportedError
        For a word that is unknown here.
    """
    stack: list[Formula] = []
    for word in words:
        name, *bounds = word.split(":")
        if name in _CONNECTIVES:
            right, left = stack.pop(), stack.pop()
            stack.append(_CONNECTIVES[name](left, right))
        elif name in _TEMPORAL_ONE:
            stack.append(_TEMPORAL_ONE[name](stack.pop(), _window(bounds)))
        elif name in _TEMPORAL_TWO:
            right, left = stack.pop(), stack.pop()
            stack.append(_TEMPORAL_TWO[name](left, right, _window(bounds)))
        elif name == "X":
            stack.append(ltl.next_(stack.pop()))
        elif name == "!":
            stack.append(ltl.negation(stack.pop()))
        elif name.startswith("a") and name[1:].isdecimal():
            stack.append(ltl.atom(name))
        else:
            raise UnsupportedError(f"the word {word!r} of a formula is not known")
    (formula,) = stack
    return formula


def _window(bounds: list[str]) -> ltl.Window:
    lower, upper = bounds
    return int(lower or 0), int(upper) if upper else None


def decided_monitor(formula: Formula, atoms: tuple[Expression, ...]) -> Monitor:
    """Return the question whether paths satisfy a formula that so many states decide.

    Parameters
    ----------
    formula
        Of atoms "a0", "a1", …
    atoms
        What they stand for.

    Raises
    ------
    UnsupportedError
        If no number of states decides the formula on every path, or its monitor is too large.
    """
    monitor = monitor_of(formula, [f"a{i}" for i in range(len(atoms))])
    length = monitor.decided_after
    if length is None:
        raise UnsupportedError(
            "a formula that no number of steps decides: give each of its operators an upper bound"
        )
    return Monitor(
        atoms=atoms,
        transitions=tuple(map(tuple, monitor.transitions.tolist())),
        verdicts=tuple(monitor.verdicts.tolist()),
        final=tuple(monitor.accepting.tolist()),
        initial=0,
        length=max(length, 1),
    )


def property_reader(program: Program) -> ExpressionReader:
    """Return a reader of a property's expressions: it knows the labels "init" and "deadlock".

    Parameters
    ----------
    program
        The model.
    """
    return ExpressionReader(
        [variable.type for variable in program.variables],
        {"init": lambda: initial(program), "deadlock": lambda: deadlock(program)},
    )


def initial(program: Program) -> Expression:
    """Return the expression that holds in the initial state alone."""
    return _combined(BinaryOperator.AND, _initial_values(program))


def _initial_values(program: Program) -> Iterator[Expression]:
    for index, variable in enumerate(program.variables):
        value = Variable(index, variable.type)
        if variable.type is Type.BOOL:
            yield value if variable.initial else negation(value)
        else:
            yield Binary(BinaryOperator.EQUAL, value, Literal(variable.initial))


def deadlock(program: Program) -> Expression:
    """Return the expression that holds where no command is possible, alone or with others."""
    alone = [command.guard for _, _, command in program.commands() if command.action is None]
    together = [
        _combined(BinaryOperator.AND, (_offered(program.modules[m], action) for m in modules))
        for action, modules in enumerate(program.synchronising)
        if modules
    ]
    return negation(_combined(BinaryOperator.OR, [*alone, *together]))


def _offered(module: Module, action: int) -> Expression:
    """Return the expression that holds where a module has a command of an action."""
    guards = (command.guard for command in module.commands if command.action == action)
    return _combined(BinaryOperator.OR, guards)


def _combined(operator: BinaryOperator, expressions: Iterable[Expression]) -> Expression:
    """Return what AND or OR makes of expressions, as a tree that is as flat as can be."""
    is_and = operator is BinaryOperator.AND
    neutral, decisive = Literal(is_and), Literal(not is_and)
    parts = [expression for expression in expressions if expression != neutral]
    if not parts:
        return neutral
    if decisive in parts:
        return decisive
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        rest = parts[-1:] if len(parts) % 2 else []
        parts = [Binary(operator, left, right) for left, right in pairs] + rest
    return parts[0]
