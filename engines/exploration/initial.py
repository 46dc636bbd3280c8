"""The initial states of a program."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engines.errors import UnsupportedError
from engines.host.exploring.explorer import evaluate_in
from engines.program.arithmetic import EvaluationError
from engines.program.evaluate import evaluate
from engines.program.expressions import (
    Binary,
    BinaryOperator,
    Expression,
    Type,
    Unary,
    UnaryOperator,
    Variable,
    variables_of,
)
from engines.program.faults import expression_fault
from engines.program.packing import Packing, Words
from engines.program.program import Program


@dataclass(frozen=True)
class EnumerationTuning:
    """How the states are enumerated in which a condition is evaluated.

    Parameters
    ----------
    most_states
        With more, which would take many minutes, a condition is refused.
    states_of_a_part
        Enumerated at a time.
    """

    most_states: int = 2**32
    states_of_a_part: int = 2**18


def initial_states(
    program: Program, packing: Packing, tuning: EnumerationTuning | None = None
) -> Words:
    """Return the packed initial states in order, shape (states, words); there may be none.

    Parameters
    ----------
    program
        The model.
    packing
        Of its states.
    tuning
        How the states are enumerated; None for the default.

    Raises
    ------
    InvalidModelError
        If the condition has no value in some state.
    UnsupportedError
        If there are too many states in which a condition would have to be evaluated.
    """
    condition = program.initial_condition
    if condition is None:
        return packing.packed(program.initial_states or (program.default_state,))
    found = [packing.packed(())]
    chosen = tuning or EnumerationTuning()
    for candidates in _candidates(program, packing, condition, chosen):
        holds = evaluate_in(condition, packing, candidates)
        if holds.failing is not None:
            state = packing.state(candidates[holds.failing])
            fault = expression_fault(program, condition, state, "init ... endinit")
            raise fault or AssertionError(f"the initial states have no fault in {state}")
        found.append(candidates[holds.values.astype(bool)])
    return np.concatenate(found)


def _candidates(
    program: Program, packing: Packing, condition: Expression, tuning: EnumerationTuning
) -> Iterator[Words]:
    """Yield the states that the condition does not rule out at a glance, part by part, in order."""
    fixed = dict(_equalities(condition))
    ranges = []
    for index, variable in enumerate(program.variables):
        low, high = variable.low, variable.high
        if index in fixed:
            low = high = fixed[index]
            if not variable.low <= low <= variable.high:
                return
        ranges.append((low, high - low + 1))
    total = math.prod(size for _, size in ranges)
    if total > tuning.most_states:
        raise UnsupportedError(
            f"init ... endinit with {total} states to look at; at most {tuning.most_states} are: "
            "fix variables by equalities"
        )
    size_of_part = tuning.states_of_a_part
    for first in itertools.takewhile(lambda x: x < total, itertools.count(0, size_of_part)):
        numbers = np.arange(first, min(total, first + size_of_part), dtype=np.int64)
        words = np.zeros((len(numbers), packing.words), dtype=np.uint64)
        left = total
        for (low, size), field in zip(ranges, packing.fields, strict=True):
            left //= size
            digits = (numbers // left) % size + (low - field.low)
            words[:, field.word] |= digits.astype(np.uint64) << np.uint64(field.shift)
        yield words


def _equalities(condition: Expression) -> Iterator[tuple[int, int]]:
    """Yield variables that a conjunct fixes, with their values."""
    match condition:
        case Binary(operator=BinaryOperator.AND, left=left, right=right):
            yield from _equalities(left)
            yield from _equalities(right)
        case Binary(operator=BinaryOperator.EQUAL, left=left, right=right):
            for variable, value in ((left, right), (right, left)):
                known = _integer(value)
                if isinstance(variable, Variable) and known is not None:
                    yield variable.index, known
        case Variable(index=i):
            yield i, 1
        case Unary(operator=UnaryOperator.NOT, operand=Variable(index=i)):
            yield i, 0


def _integer(expression: Expression) -> int | None:
    """Return the value of an integer or a Boolean that depends on no variable, or None."""
    if expression.type is Type.DOUBLE or variables_of(expression):
        return None
    try:
        return int(evaluate(expression, ()))
    except EvaluationError:
        return None
