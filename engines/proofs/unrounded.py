"""Whether values solve their equations to the last digit."""

from __future__ import annotations

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, index_dtype
from engines.devices.graph import operations_of
from engines.model.csr import CsrMatrix
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.groups import choices_of
from engines.systems.one_sided import Direction

BITS_OF_ENTRIES = 20
"""Entries of a matrix that are no multiples of 2 to the minus this power are taken to be rounded,
as that nearest to 0.1 is."""

BITS_OF_SUMS = 61
"""A sum of integers of so many bits does not overflow."""

STATES_AT_ONCE = 1 << 16
"""The equations of so many states are looked at together: most often the first few do not hold."""


def solves_exactly(
    model: ExplicitModel,
    unknown: MaskArray,
    values: FloatArray,
    rewards: FloatArray | None,
    direction: Direction | None,
    environment: SolverEnvironment,
) -> bool:
    """Return whether values are the solution itself, every digit of it.

    They are if nothing is rounded when they are put into the equations, if these hold, and if no
    other values solve them. That is looked at in integers.

    Parameters
    ----------
    model, unknown, rewards, direction
        As for `engines.questions.reachability.solve_reachability`.
    values
        Those of all states, shape (states,); the known ones have no error.
    environment
        Where the graph is searched.
    """
    states = np.flatnonzero(unknown)
    for first in range(0, len(states), STATES_AT_ONCE):
        some = states[first : first + STATES_AT_ONCE]
        if not _solve_exactly(model, some, values, rewards, direction):
            return False
    # Each strategy leaves the unknown states for sure: then no other values solve the equations.
    return bool(operations_of(model, environment).must_approach(~unknown, unknown).all())


def _solve_exactly(
    model: ExplicitModel,
    states: IndexArray,
    values: FloatArray,
    rewards: FloatArray | None,
    direction: Direction | None,
) -> bool:
    """Return whether the equations of some states hold to the last digit."""
    if not _has_few_digits(values[states]):
        return False
    rows, offsets = _rows_of(model, states)
    matrix = model.matrix.select_rows(rows)
    entries = _integers(matrix.values, BITS_OF_ENTRIES)
    if entries is None:
        return False
    used = values[matrix.columns]
    earned = np.zeros(len(rows)) if rewards is None else rewards[rows]
    is_ctmc = model.kind is ModelKind.CTMC
    heaviest = float(matrix.row_sums().max(initial=1.0)) if is_ctmc else 1.0
    largest = max(np.max(np.abs(used), initial=1.0), np.max(np.abs(values[states])))
    if not np.isfinite(largest * heaviest):
        return False
    room = int(np.log2(largest) + np.log2(heaviest)) + 2
    bits = BITS_OF_SUMS - BITS_OF_ENTRIES - room
    of_columns, of_states = _integers(used, bits), _integers(values[states], bits)
    of_rewards = _integers(earned, BITS_OF_ENTRIES + bits)
    if of_columns is None or of_states is None or of_rewards is None:
        return False
    sums = _row_sums(entries * of_columns, matrix) + of_rewards
    scales = _row_sums(entries, matrix) if is_ctmc else np.int64(1 << BITS_OF_ENTRIES)
    if offsets is not None:
        best = np.minimum if direction is Direction.MINIMISE else np.maximum
        sums = best.reduceat(sums, offsets[:-1])
    return bool(np.array_equal(sums, of_states * scales))


def _rows_of(model: ExplicitModel, states: IndexArray) -> tuple[IndexArray, IndexArray | None]:
    groups = model.row_group_offsets
    if groups is None:
        return states, None
    rows, offsets = choices_of(states.astype(index_dtype(model.num_states)), groups)
    return rows, offsets


def _row_sums(numbers: IndexArray, matrix: CsrMatrix) -> IndexArray:
    running = np.append(np.int64(0), np.cumsum(numbers))
    sums: IndexArray = running[matrix.row_offsets[1:]] - running[matrix.row_offsets[:-1]]
    return sums


def _has_few_digits(numbers: FloatArray) -> bool:
    """Return whether finite numbers of any size have few digits behind the point."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.ldexp(numbers, 2 * BITS_OF_ENTRIES)
    return bool(((scaled == np.rint(scaled)) | ~np.isfinite(numbers)).all())


def _integers(numbers: FloatArray, bits: int) -> IndexArray | None:
    """Return numbers times 2 to a power, or None where these are no integers that fit."""
    with np.errstate(over="ignore"):
        scaled = np.ldexp(numbers, bits)
    if not (np.abs(scaled) < 2.0**BITS_OF_SUMS).all() or (scaled != np.rint(scaled)).any():
        return None
    return scaled.astype(np.int64)
