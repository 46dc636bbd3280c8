"""Compiled sweeps in single precision: plain loops are the oracle, to the last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engines.host.single import HostSingleSweeps
from engines.host.single_sweeper import narrowed
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import Direction, SweepSystem

TYPES = {
    "narrow": (np.int32, np.int32),
    "wide offsets": (np.int64, np.int32),
    "wide": (np.int64, np.int64),
}
ROUNDINGS = pytest.mark.parametrize("nearest", [False, True], ids=["down", "nearest"])


def random_system(direction, omega, wide):
    """Rows of up to seven entries, some for states that no row computes."""
    random = np.random.default_rng(7)
    states, updates = 60, 40
    each = np.ones(updates, dtype=int) if direction is None else random.integers(1, 4, updates)
    lengths = random.integers(0, 8, each.sum())
    offset_type, column_type = TYPES[wide]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(offset_type)
    columns = random.integers(0, states, offsets[-1]).astype(column_type)
    return SweepSystem(
        CsrMatrix(offsets, columns, random.random(offsets[-1]) / 8, states),
        random.random(states),
        offset=random.random(len(lengths)),
        states=random.permutation(states)[:updates],
        omega=omega,
        group_offsets=None if direction is None else np.concatenate([[0], np.cumsum(each)]),
        direction=direction,
    )


def rounded(value, nearest):
    """One number, to the next of single precision or to the one below."""
    with np.errstate(over="ignore", under="ignore"):
        kept = np.float32(value)
    if not nearest and float(kept) > value:
        kept = np.nextafter(kept, np.float32(-np.inf))
    return kept


def plain_sweep(system, values, offset, x, nearest, absolute):
    """One sweep, number by number, and its change."""
    after, change = x.copy(), 0.0
    groups, offsets = system.group_offsets, system.matrix.row_offsets
    for update in range(system.num_updates):
        sums = []
        for row in [update] if groups is None else range(groups[update], groups[update + 1]):
            total = float(offset[row])
            for entry in range(offsets[row], offsets[row + 1]):
                total += float(values[entry]) * float(x[system.matrix.columns[entry]])
            sums.append(total)
        best = min(sums) if system.direction is Direction.MINIMISE else max(sums)
        state = system.states[update]
        before = float(x[state])
        if system.omega != 1.0:
            best = (1.0 - system.omega) * before + system.omega * best
        after[state] = rounded(best, nearest)
        scale = 1.0 if absolute else max(abs(before), 2.0**-100)
        change = max(change, abs(float(after[state]) - before) / scale)
    return after, change


@pytest.mark.parametrize("wide", TYPES)
@pytest.mark.parametrize(
    ("direction", "omega"),
    [(None, 1.0), (None, 0.9), (Direction.MINIMISE, 1.0), (Direction.MAXIMISE, 1.0)],
)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("absolute", [False, True])
@ROUNDINGS
def test_a_sweep_is_that_of_plain_loops(direction, omega, wide, threads, absolute, nearest):
    system = random_system(direction, omega, wide)
    values, offset = narrowed(system.matrix.values, nearest), narrowed(system.offset, nearest)
    sweeps = HostSingleSweeps(system, values, offset, nearest)
    sweeps._shares.threads = threads
    sweeps._shares.bounds = np.linspace(0, system.num_updates, 7).astype(np.int64)
    x = narrowed(system.start, nearest)
    expected, seen, x_new, changes = x.copy(), [], x.copy(), np.empty(5)
    assert sweeps.repeat(changes, -1.0, x, x_new, absolute) == 5
    for _ in range(5):
        expected, change = plain_sweep(system, values, offset, expected, nearest, absolute)
        seen.append(change)
    np.testing.assert_array_equal(x_new, expected)
    np.testing.assert_array_equal(changes, seen)


FACTORS = [(0.0, 1.0), (1.0, 1.0), (1 / 3, 1 / 3), (-1 / 3, 1 / 3), (math.inf, 1.0)]
FACTORS += [(1 + 2**-12, 1 + 2**-12), (-1 - 2**-12, 1 + 2**-12)]  # halfway between two numbers
FACTORS += [(1e20, 1e20), (-1e20, 1e20)]  # beyond the range
FACTORS += [(1e-30, 1e-30), (-1e-30, 1e-30), (2**-75, 2**-75)]  # below the smallest number
FACTORS += [(1e-20, 3e-20), (-1e-20, 3e-20)]  # among those with fewer digits


@ROUNDINGS
def test_every_kind_of_number_is_rounded_as_it_is_stored(nearest):
    values, factors = np.array(FACTORS, dtype=np.float32).T.copy()
    size = len(values)
    matrix = CsrMatrix(np.arange(size + 1), np.arange(size), np.zeros(size), 2 * size)
    system = SweepSystem(matrix, np.zeros(2 * size), states=np.arange(size, 2 * size))
    x, changes = np.concatenate([factors, factors]), np.empty(1)
    x_new = x.copy()
    HostSingleSweeps(system, values, None, nearest).repeat(changes, -1.0, x, x_new, True)
    exact = [float(value) * float(factor) for value, factor in zip(values, factors, strict=True)]
    np.testing.assert_array_equal(x_new[size:], [rounded(number, nearest) for number in exact])


@pytest.mark.parametrize("threads", [1, 2])
def test_sweeps_end_with_the_first_small_change(threads):
    system = random_system(None, 1.0, "narrow")
    values, offset = narrowed(system.matrix.values, True), narrowed(system.offset, True)
    sweeps = HostSingleSweeps(system, values, offset, True)
    sweeps._shares.threads, sweeps._shares.bounds = threads, np.array([0, 20, 40])
    x, changes = narrowed(system.start, True), np.empty(500)
    made = sweeps.repeat(changes, 1e-3, x, x.copy(), True)
    assert 2 < made < 500
    assert changes[made - 1] < 1e-3 <= changes[: made - 1].min()


@pytest.mark.parametrize(("exponent", "change"), [(-99, 1.0), (-100, 1.0), (-120, 2.0**-20)])
def test_changes_of_tiny_values_are_relative_to_one_less_tiny(exponent, change):
    matrix = CsrMatrix(np.arange(2), np.zeros(1, dtype=int), np.full(1, 2.0), 1)
    system, x = SweepSystem(matrix, np.zeros(1)), np.full(1, 2.0**exponent, dtype=np.float32)
    sweeps = HostSingleSweeps(system, np.full(1, 2.0, dtype=np.float32), None, True)
    changes = np.empty(1)
    sweeps.repeat(changes, -1.0, x, x.copy(), False)
    assert changes[0] == change


def test_what_does_not_fit_the_system_is_refused():
    system = random_system(None, 1.0, "narrow")
    values, offset = narrowed(system.matrix.values, True), narrowed(system.offset, True)
    with pytest.raises(ValueError, match="entries, but"):
        HostSingleSweeps(system, values[1:], offset, True)
    with pytest.raises(ValueError, match="rows, but"):
        HostSingleSweeps(system, values, offset[1:], True)
    sweeps, x = HostSingleSweeps(system, values, offset, True), narrowed(system.start, True)
    with pytest.raises(ValueError, match="states, but"):
        sweeps.repeat(np.empty(1), -1.0, x, x[1:].copy(), True)
