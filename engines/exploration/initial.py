"""The initial states of a program."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from engines.errors import InvalidModelError, UnsupportedError
from engines.host.exploring.explorer import evaluate_in
from engines.program.expressions import (
    Binary,
    BinaryOperator,
    Expression,
    Literal,
    Unary,
    UnaryOperator,
    Variable,
)
from engines.program.faults import expression_fault
from engines.program.packing import Packing, Words
from engines.program.program import Program

MOST_CANDIDATES = 2**36
"""States in which a condition is evaluated: minutes on a few threads."""

_STATES_OF_A_PART = 2**18


def initial_states(program: Program, packing: Packing) -> Words:
    """Return the packed initial states in order, shape (states, words).

    Parameters
    ----------
    program
        The model.
    packing
        Of its states.

    Raises
    ------
    InvalidModelError
        If there is none, or the condition has no value in some state.
    UnsupportedError
        If there are too many states in which a condition would have to be evaluated.
    """
    condition = program.initial_condition
    if condition is None:
        return packing.packed(program.initial_states or (program.default_state,))
    found = []
    for candidates in _candidates(program, packing, condition):
        holds = evaluate_in(condition, packing, candidates)
        if holds.failing is not None:
            state = packing.state(candidates[holds.failing])
            fault = expression_fault(program, condition, state, "init ... endinit")
            raise fault or AssertionError(f"the initial states have no fault in {state}")
        found.append(candidates[holds.values.astype(bool)])
    states = np.concatenate(found)
    if not len(states):
        raise InvalidModelError("There are no initial states")
    return states


def _candidates(program: Program, packing: Packing, condition: Expression) -> Iterator[Words]:
    """Yield the states that the condition does not rule out at a glance, part by part, in order."""
    fixed = dict(_equalities(condition))
    ranges = []
    for index, variable in enumerate(program.variables):
        low, high = variable.low, variable.high
        if index in fixed:
            low = high = fixed[index]
            if not variable.low <= low <= variable.high:
                raise InvalidModelError("There are no initial states")
        ranges.append((low, high - low + 1))
    total = math.prod(size for _, size in ranges)
    if total > MOST_CANDIDATES:
        raise UnsupportedError(
            f"init ... endinit with {total} states to look at; at most {MOST_CANDIDATES} are: fix "
            "variables by equalities"
        )
    for first in itertools.takewhile(lambda x: x < total, itertools.count(0, _STATES_OF_A_PART)):
        numbers = np.arange(first, min(total, first + _STATES_OF_A_PART), dtype=np.int64)
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
        case Binary(operator=BinaryOperator.EQUAL, left=Variable(index=i), right=Literal(value=x)):
            if not isinstance(x, float):
                yield i, int(x)
        case Binary(operator=BinaryOperator.EQUAL, left=Literal(value=x), right=Variable(index=i)):
            if not isinstance(x, float):
                yield i, int(x)
        case Variable(index=i):
            yield i, 1
        case Unary(operator=UnaryOperator.NOT, operand=Variable(index=i)):
            yield i, 0
