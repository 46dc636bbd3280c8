"""Compiled two-sided sweeps: plain loops over doubles and exact fractions are the oracles."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from engines.host.two_sided import HostTwoSidedSweeps
from engines.host.two_sided_sweeper import CpuTwoSidedSweeper
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import Direction, SweepSystem
from engines.systems.two_sided import SMALLEST, UNIT_ROUNDOFF, TwoSidedSystem

TYPES = {
    "narrow": (np.int32, np.int32),
    "wide offsets": (np.int64, np.int32),
    "wide": (np.int64, np.int64),
}
KINDS = pytest.mark.parametrize("direction", [None, Direction.MINIMISE, Direction.MAXIMISE])
BOTH_WAYS = [False, True]


def random_system(direction, wide="narrow", monotonic=True, slack=8):
    """Rows of up to seven entries, some for states that no row computes; bounds that may rise."""
    random = np.random.default_rng(5)
    states, updates = 60, 40
    each = np.ones(updates, dtype=int) if direction is None else random.integers(1, 4, updates)
    lengths = random.integers(0, 8, each.sum())
    offset_type, column_type = TYPES[wide]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(offset_type)
    columns = random.integers(0, states, offsets[-1]).astype(column_type)
    matrix = CsrMatrix(offsets, columns, random.random(offsets[-1]) / 6, states)
    computed = random.permutation(states)[:updates]
    start = random.random(states)
    upper = start + 0.2 * random.random(states)
    known = np.setdiff1d(np.arange(states), computed)
    upper[known] = start[known]
    system = SweepSystem(
        matrix,
        start,
        offset=random.random(len(lengths)),
        states=computed,
        group_offsets=None if direction is None else np.concatenate([[0], np.cumsum(each)]),
        direction=direction,
    )
    return TwoSidedSystem(system, upper, monotonic, monotonic, slack)


def rows_of(system, update):
    groups = system.group_offsets
    return [update] if groups is None else range(groups[update], groups[update + 1])


def plain_sweep(two_sided, lower, upper, absolute):
    """One sweep, number by number, and its record."""
    system, matrix = two_sided.system, two_sided.system.matrix
    best = min if system.direction is Direction.MINIMISE else max
    after, record = (lower.copy(), upper.copy()), [0.0] * 5
    for update in range(system.num_updates):
        sums = []
        for row in rows_of(system, update):
            entries = range(matrix.row_offsets[row], matrix.row_offsets[row + 1])
            low = up = float(system.offset[row])
            for entry in entries:
                low += float(matrix.values[entry]) * float(lower[matrix.columns[entry]])
                up += float(matrix.values[entry]) * float(upper[matrix.columns[entry]])
            rounding = (len(entries) + two_sided.slack) * UNIT_ROUNDOFF
            smallest = (len(entries) + 1) * SMALLEST
            sums.append((low * (1.0 - rounding) - smallest, up * (1.0 + rounding) + smallest))
        low, up = max(best(low for low, _ in sums), 0.0), best(up for _, up in sums)
        state = system.states[update]
        record[1] = max(record[1], (up - upper[state]) / upper[state])
        record[2] = max(record[2], (lower[state] - low) / lower[state])
        if two_sided.monotonic_below:
            low = max(low, lower[state])
        if two_sided.monotonic_above:
            up = min(up, upper[state])
        after[0][state], after[1][state] = low, up
        record[0] = max(record[0], (up - low) / (1.0 if absolute else low))
        record[3] = max(record[3], low - up)
        record[4] = max(record[4], float(low != lower[state] or up != upper[state]))
    return *after, record


@KINDS
@pytest.mark.parametrize("wide", TYPES)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("monotonic", BOTH_WAYS)
@pytest.mark.parametrize("absolute", BOTH_WAYS)
def test_sweeps_are_those_of_plain_loops(direction, wide, threads, monotonic, absolute):
    two_sided = random_system(direction, wide, monotonic, slack=11)
    sweeps = HostTwoSidedSweeps(two_sided)
    sweeps._shares.threads = threads
    sweeps._shares.bounds = np.linspace(0, two_sided.system.num_updates, 7).astype(np.int64)
    x = np.column_stack((two_sided.system.start, two_sided.upper))
    x_new = x.copy()
    made = sweeps.repeat(5, -1.0, absolute, x, x_new)
    lower, upper, seen = two_sided.system.start, two_sided.upper, []
    for _ in range(5):
        lower, upper, record = plain_sweep(two_sided, lower, upper, absolute)
        seen.append(record)
    np.testing.assert_array_equal(np.transpose(made), seen)
    np.testing.assert_array_equal(x_new, np.column_stack((lower, upper)))
    assert (np.array(seen)[:, 1:3] > 0.0).any(axis=0).all()


@KINDS
def test_one_sweep_encloses_the_exact_sums(direction):
    """Rounded outwards, whatever the order of the sums."""
    two_sided = random_system(direction, monotonic=False)
    system, matrix = two_sided.system, two_sided.system.matrix
    sweeper = CpuTwoSidedSweeper(two_sided, -1.0, False)
    sweeper.run(1)
    best = min if direction is Direction.MINIMISE else max
    for x, made, sign in zip(
        (system.start, two_sided.upper), sweeper.bounds(), (-1, 1), strict=True
    ):
        for update, state in enumerate(system.states):
            sums = []
            for row in rows_of(system, update):
                total = Fraction(float(system.offset[row]))
                for entry in range(matrix.row_offsets[row], matrix.row_offsets[row + 1]):
                    value, read = matrix.values[entry], x[matrix.columns[entry]]
                    total += Fraction(float(value)) * Fraction(float(read))
                sums.append(total)
            beyond = sign * (Fraction(float(made[state])) / best(sums) - 1)
            assert 0 < beyond < 40 * UNIT_ROUNDOFF


def test_sweeps_end_with_the_first_narrow_width_and_go_on_from_there():
    two_sided = random_system(None)
    start = two_sided.system.start.copy()
    upper = start.copy()
    start[two_sided.system.states], upper[two_sided.system.states] = 0.0, 100.0
    two_sided = replace(two_sided, system=replace(two_sided.system, start=start), upper=upper)
    whole = CpuTwoSidedSweeper(two_sided, 1e-6, True)
    record = whole.run(500)
    made = len(record.widths)
    assert 3 < made < 500
    assert record.widths[-1] < 1e-6 <= record.widths[:-1].min()
    parts = CpuTwoSidedSweeper(two_sided, -1.0, True)
    widths = np.concatenate([parts.run(1).widths, parts.run(2).widths, parts.run(made - 3).widths])
    np.testing.assert_array_equal(widths, record.widths)
    np.testing.assert_array_equal(parts.bounds(), whole.bounds())


@pytest.mark.parametrize("threads", [1, 2])
def test_what_moves_nothing_is_told(threads):
    """x = x: the bounds stay where they are, one state apart by an infinite relative width."""
    matrix = CsrMatrix(np.arange(3), np.arange(2), np.ones(2), 2)
    system = SweepSystem(matrix, np.array([0.0, 1.0]))
    sweeps = HostTwoSidedSweeps(TwoSidedSystem(system, np.array([0.5, 1.0])))
    sweeps._shares.threads, sweeps._shares.bounds = threads, np.arange(3)
    x = np.array([[0.0, 0.5], [1.0, 1.0]])
    record = sweeps.repeat(2, -1.0, False, x, x.copy())
    assert record.moved.tolist() == [0.0, 0.0]
    assert record.widths.tolist() == [math.inf, math.inf]
    assert record.crossings.tolist() == [0.0, 0.0]
    assert (record.rises > 0.0).all()
    assert (record.falls > 0.0).all()


def test_bounds_that_cross_are_told():
    two_sided = random_system(None)
    crossed = replace(two_sided, upper=np.full(60, 0.01))
    record = CpuTwoSidedSweeper(crossed, -1.0, True).run(1)
    assert record.crossings[0] > 0.5


def test_a_row_that_is_no_number_narrows_nothing():
    """0 · ∞ leaves bounds that cross, not bounds that are equal."""
    matrix = CsrMatrix(np.arange(2), np.zeros(1, dtype=int), np.zeros(1), 1)
    two_sided = TwoSidedSystem(SweepSystem(matrix, np.zeros(1)), np.full(1, math.inf))
    assert CpuTwoSidedSweeper(two_sided, -1.0, True).run(1).crossings[0] == math.inf


@pytest.mark.parametrize(("exponent", "lower"), [(-540, 0.0), (-500, 2.0**-1000)])
def test_what_is_lost_below_the_normal_numbers_is_allowed_for(exponent, lower):
    """A square, which may be too small for a number: two smallest ones are the room for it."""
    square = 2.0**exponent
    matrix = CsrMatrix(np.arange(2), np.zeros(1, dtype=int), np.full(1, square), 1)
    plain = SweepSystem(matrix, np.full(1, square))
    sweeper = CpuTwoSidedSweeper(TwoSidedSystem(plain, np.full(1, square), False, False), -1, True)
    sweeper.run(1)
    (low,), (up,) = sweeper.bounds()
    assert low == max(lower * (1.0 - 9 * UNIT_ROUNDOFF) - 2 * SMALLEST, 0.0)
    assert up == lower * (1.0 + 9 * UNIT_ROUNDOFF) + 2 * SMALLEST


def test_iterates_of_another_shape_are_refused():
    sweeps = HostTwoSidedSweeps(random_system(None))
    for x in (np.zeros((60, 1)), np.zeros((59, 2)), np.zeros(120)):
        with pytest.raises(ValueError, match="iterates of"):
            sweeps.repeat(1, -1.0, True, x, x.copy())
