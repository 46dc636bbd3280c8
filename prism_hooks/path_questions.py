"""PRISM's properties, as its simulator takes them, as questions about paths of programs.

`prismgpu.QuestionText` writes them as JSON; its documentation says how.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from engines.errors import InvalidModelError, UnsupportedError
from engines.montecarlo import bounded_ltl as ltl
from engines.montecarlo.bounded_ltl import Formula
from engines.montecarlo.monitor import Monitor as Automaton
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
    Binary,
    BinaryOperator,
    Expression,
    Literal,
    Type,
    Variable,
    negation,
)
from engines.program.program import ModelKind, Module, Program
from prism_hooks.program import ExpressionReader

_CONNECTIVES: dict[str, Callable[[Formula, Formula], Formula]] = {
    "&": ltl.conjunction,
    "|": ltl.disjunction,
    "=>": ltl.implies,
    "<=>": ltl.iff,
}
_TEMPORAL_ONE = {"F": ltl.eventually, "G": ltl.always}
_TEMPORAL_TWO = {"U": ltl.until, "W": ltl.weak_until, "R": ltl.release}


def read_questions(text: str, program: Program, states: int | None = None) -> tuple[Question, ...]:
    """Return what a list of `prismgpu.QuestionText` asks of each path.

    Parameters
    ----------
    text
        The list.
    program
        The model.
    states
        How many states of each path formulas are asked of, the first ones; None for whole paths.

    Raises
    ------
    UnsupportedError
        If something has no form here, and PRISM's own code must sample the paths.
    """
    reader = property_reader(program)
    try:
        asked = json.loads(text)
        if states is None:
            questions = tuple(_question(found, reader) for found in asked)
        else:
            if program.kind is not ModelKind.DTMC:
                raise UnsupportedError("the first states of paths are asked of discrete time alone")
            questions = tuple(prefix_question(found, reader).of_length(states) for found in asked)
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


@dataclass(frozen=True)
class PrefixQuestion:
    """Whether so many states of a path satisfy a formula, for any number of them.

    Parameters
    ----------
    formula
        Of atoms "a0", "a1", …, on finite words.
    automaton
        Its monitor, which reads the states.
    atoms
        What its atoms stand for.
    """

    formula: Formula
    automaton: Automaton
    atoms: tuple[Expression, ...]

    def of_length(self, length: int) -> Monitor:
        """Return the question about the first `length` states."""
        automaton = self.automaton
        return Monitor.of_arrays(
            *(self.atoms, automaton.transitions, automaton.verdicts, automaton.accepting, length)
        )


def prefix_question(found: dict[str, Any], reader: ExpressionReader) -> PrefixQuestion:
    """Return what a question of `prismgpu.QuestionText` asks of the first states of a path.

    Parameters
    ----------
    found
        The question.
    reader
        Reads its expressions.

    Raises
    ------
    UnsupportedError
        If it is not about a path formula, or the monitor is too large.
    """
    match found["kind"]:
        case "ltl":
            formula = read_formula(found["formula"])
            atoms = tuple(reader.read(atom) for atom in found["atoms"])
        case "until":
            window = int(found["lower"]), None if found["upper"] is None else int(found["upper"])
            formula = ltl.until(ltl.atom("a0"), ltl.atom("a1"), window)
            atoms = (reader.read(found["left"]), reader.read(found["right"]))
        case "next":
            formula, atoms = ltl.next_(ltl.atom("a0")), (reader.read(found["target"]),)
        case _:
            raise UnsupportedError("the first states of paths are asked for P, not for rewards")
    if found.get("negated"):
        formula = ltl.negation(formula)
    return PrefixQuestion(formula, monitor_of(formula, [f"a{i}" for i in range(len(atoms))]), atoms)


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
            "a formula that no number of steps decides: give each of its operators an upper bound, "
            "or ask it of the first states of paths (-gpusimstates)"
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
