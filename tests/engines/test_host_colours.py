"""Compiled Gauss-Seidel, symmetric and in colours: plain loops are the oracle, to the last bit."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from engines.host import colouring
from engines.host.coloured import HostColouredSweeps, arranged_rows
from engines.host.colouring import Dependencies, dependencies, find_levels
from engines.host.compiled import shares
from engines.host.compiled.shares import ColourShares
from engines.host.symmetric import HostSymmetricSweeps
from engines.model.csr import CsrMatrix
from engines.systems.moves import UNIT
from engines.systems.one_sided import Direction, SweepSystem

TYPES = {
    "narrow": (np.int32, np.int32),
    "wide offsets": (np.int64, np.int32),
    "wide": (np.int64, np.int64),
}
WIDE = pytest.mark.parametrize("wide", TYPES)
THREADS = pytest.mark.parametrize("threads", [1, 3])


def matrix_of(rows, columns, wide="narrow", seed=3):
    """A random matrix whose rows have from no to seven entries."""
    random = np.random.default_rng(seed)
    offset_type, column_type = TYPES[wide]
    offsets = np.append(0, np.cumsum(random.integers(0, 8, rows))).astype(offset_type)
    found = random.integers(0, columns, offsets[-1]).astype(column_type)
    return CsrMatrix(offsets, found, random.random(offsets[-1]) / 8, columns)


def entries_of(matrix, row):
    """The columns and values of a row."""
    places = range(int(matrix.row_offsets[row]), int(matrix.row_offsets[row + 1]))
    return [(int(matrix.columns[place]), float(matrix.values[place])) for place in places]


def change_of(before, after, absolute):
    """What counts as a change of one number."""
    change = abs(after - before)
    if absolute:
        return 0.0 if math.isnan(change) else change
    if change == 0.0 or math.isnan(change):
        return 0.0
    return math.inf if before == 0.0 else change / abs(before)


@pytest.fixture
def with_threads(monkeypatch):
    """Let loops of any size have so many threads."""

    def let(threads):
        for module in (shares, colouring):
            monkeypatch.setattr(module, "threads_for", lambda _entries: threads)

    return let


def plain_symmetric(matrix, x, bounds, omega, backwards, absolute):
    """One sweep of symmetric Gauss-Seidel: the iterate, and the largest change."""
    after, largest = x.tolist(), 0.0
    for first, behind in pairwise(bounds):
        rows = range(first, behind)
        for row in reversed(rows) if backwards else rows:
            total = 0.0
            for column, value in entries_of(matrix, row):
                total += value * (after[column] if first <= column < behind else float(x[column]))
            if omega != 1.0:
                total = (1.0 - omega) * after[row] + omega * total
            largest = max(largest, change_of(after[row], total, absolute))
            after[row] = total
    return np.array(after), largest


@WIDE
@THREADS
@pytest.mark.parametrize("bounds", [[0, 50], [0, 13, 13, 50]], ids=["one piece", "three pieces"])
@pytest.mark.parametrize(("omega", "begun", "absolute"), [(1.0, 0, True), (0.95, 1, False)])
def test_symmetric_sweeps_are_those_of_plain_loops(wide, threads, bounds, omega, begun, absolute):
    matrix = matrix_of(50, 50, wide)
    x = np.random.default_rng(1).random(50)
    vectors, changes = (x.copy(), np.full(50, np.nan)), np.empty(5)
    sweeps = HostSymmetricSweeps(matrix, np.array(bounds), threads)
    assert sweeps.repeat(changes, -1.0, omega, begun, *vectors, absolute) == 5
    seen = []
    for made in range(5):
        backwards = (begun + made) % 2 == 1
        x, change = plain_symmetric(matrix, x, bounds, omega, backwards, absolute)
        seen.append(change)
    np.testing.assert_array_equal(vectors[1], x)
    np.testing.assert_array_equal(changes, seen)


@THREADS
def test_symmetric_sweeps_end_with_the_first_small_change(threads):
    matrix, x, changes = matrix_of(50, 50), np.ones(50), np.empty(500)
    sweeps = HostSymmetricSweeps(matrix, np.array([0, 20, 50]), threads)
    made = sweeps.repeat(changes, 1e-6, 1.0, 0, x, x.copy(), True)
    assert 2 < made < 500
    assert changes[made - 1] < 1e-6 <= changes[: made - 1].min()
    assert sweeps.repeat(changes[:0], 1e-6, 1.0, 0, x, x.copy(), True) == 0


@THREADS
def test_symmetric_sweeps_of_nothing_change_nothing(threads):
    nothing = CsrMatrix(np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0), 0)
    changes = np.full(3, np.nan)
    sweeps = HostSymmetricSweeps(nothing, np.array([0, 0, 0]), threads)
    assert sweeps.repeat(changes, -1.0, 1.0, 0, np.zeros(0), np.zeros(0), False) == 3
    assert not changes.any()


def test_what_is_no_number_is_no_change_of_symmetric_sweeps():
    itself = CsrMatrix(np.arange(3, dtype=np.int32), np.arange(2, dtype=np.int32), np.ones(2), 2)
    sweeps, changes = HostSymmetricSweeps(itself, np.array([0, 2]), 1), np.empty(2)
    x = np.array([math.inf, math.nan])
    sweeps.repeat(changes, -1.0, 1.0, 0, x, x.copy(), False)
    assert not changes.any()


def coloured_case(choices, wide, known=False, offset=True, direction=Direction.MAXIMISE):
    """A system with random colours: it, where its fresh entries end, and where colours begin."""
    random = np.random.default_rng(7)
    each = random.integers(1, 4, 40) if choices else np.ones(40, dtype=int)
    rows, states = int(each.sum()), 60 if known else 40
    matrix = matrix_of(rows, states, wide)
    bounds = np.array([0, 11, 11, 30, 40])
    groups = np.append(0, np.cumsum(each)).astype(matrix.row_offsets.dtype)
    first_stale = np.repeat(np.repeat(bounds[:-1], np.diff(bounds)), each)
    offsets, numbers = matrix.row_offsets, np.arange(states, dtype=matrix.columns.dtype)
    fresh_ends, columns, values = arranged_rows(
        matrix, np.arange(rows), first_stale, offsets, numbers
    )
    system = SweepSystem(
        CsrMatrix(offsets, columns, values, states),
        random.random(states),
        random.random(rows) if offset else None,
        omega=1.0 if choices else 0.9,
        group_offsets=groups if choices else None,
        direction=direction if choices else None,
    )
    return system, fresh_ends, bounds


def plain_coloured(system, bounds, x, absolute):
    """One sweep in colours, whose order of additions is that of the arranged rows."""
    after, largest, groups = x.tolist(), 0.0, system.group_offsets
    for first, behind in pairwise(bounds):
        for state in range(first, behind):
            totals = []
            rows = [state] if groups is None else range(groups[state], groups[state + 1])
            for row in rows:
                total = 0.0 if system.offset is None else float(system.offset[row])
                for column, value in entries_of(system.matrix, row):
                    total += value * (after[column] if column < first else float(x[column]))
                totals.append(total)
            best = min(totals) if system.direction is Direction.MINIMISE else max(totals)
            if system.omega != 1.0:
                best = (1.0 - system.omega) * float(x[state]) + system.omega * best
            largest = max(largest, change_of(float(x[state]), best, absolute))
            after[state] = best
    return np.array(after), largest


@WIDE
@THREADS
@pytest.mark.parametrize(
    "case",
    [
        {"choices": False},
        {"choices": False, "known": True, "offset": False},
        {"choices": True, "direction": Direction.MINIMISE},
        {"choices": True, "known": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("absolute", [True, False])
def test_coloured_sweeps_are_those_of_plain_loops(with_threads, wide, threads, case, absolute):
    with_threads(threads)
    system, fresh_ends, bounds = coloured_case(wide=wide, **case)
    sweeps = HostColouredSweeps(system, fresh_ends, bounds)
    assert sweeps.threads == threads
    vectors, changes = (system.start.copy(), system.start.copy()), np.empty(5)
    assert sweeps.repeat(changes, -1.0, *vectors, absolute) == 5
    x, seen = system.start, []
    for _ in range(5):
        x, change = plain_coloured(system, bounds, x, absolute)
        seen.append(change)
    np.testing.assert_array_equal(vectors[1], x)
    np.testing.assert_array_equal(changes, seen)


@THREADS
def test_coloured_sweeps_end_with_the_first_small_change(with_threads, threads):
    with_threads(threads)
    system, fresh_ends, bounds = coloured_case(False, "narrow")
    x, changes = system.start.copy(), np.empty(900)
    made = HostColouredSweeps(system, fresh_ends, bounds).repeat(changes, 1e-6, x, x.copy(), True)
    assert 2 < made < 900
    assert changes[made - 1] < 1e-6 <= changes[: made - 1].min()


@THREADS
def test_coloured_sweeps_of_nothing_change_nothing(with_threads, threads):
    with_threads(threads)
    nothing = CsrMatrix(np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0), 2)
    system, changes = SweepSystem(nothing, np.ones(2)), np.full(3, np.nan)
    for bounds in ([0], [0, 0, 0]):
        sweeps = HostColouredSweeps(system, np.zeros(0, np.int32), np.array(bounds))
        assert sweeps.repeat(changes, -1.0, np.ones(2), np.ones(2), False) == 3
        assert not changes.any()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_no_change_of_coloured_sweeps(value):
    itself = CsrMatrix(np.arange(2, dtype=np.int32), np.zeros(1, np.int32), np.ones(1), 1)
    system, changes = SweepSystem(itself, np.array([value])), np.empty(2)
    sweeps = HostColouredSweeps(system, np.zeros(1, np.int32), np.array([0, 1]))
    sweeps.repeat(changes, -1.0, np.array([value]), np.array([value]), False)
    assert not changes.any()


def test_sizes_that_do_not_fit_are_refused():
    square, x, changes = matrix_of(6, 6), np.zeros(6), np.zeros(1)
    system = SweepSystem(square, x)
    with pytest.raises(ValueError, match="6 rows, but 9 columns"):
        HostSymmetricSweeps(matrix_of(6, 9), np.array([0, 6]), 1)
    sweeps = HostSymmetricSweeps(square, np.array([0, 6]), 1)
    with pytest.raises(ValueError, match="vectors of 5 and 6"):
        sweeps.repeat(changes, -1.0, 1.0, 0, x[:5], x, True)
    for bounds in ([], [0, 4], [0, 7], [1, 6], [0, 4, 2, 6]):
        with pytest.raises(ValueError, match="bounds"):
            HostSymmetricSweeps(square, np.array(bounds, dtype=int), 1)
        with pytest.raises(ValueError, match="bounds"):
            HostColouredSweeps(system, square.row_offsets[:-1], np.array(bounds, dtype=int))
    with pytest.raises(ValueError, match="6 rows, but 5 fresh ends"):
        HostColouredSweeps(system, square.row_offsets[:5], np.array([0, 6]))
    renamed = SweepSystem(square, x, states=np.arange(6)[::-1])
    with pytest.raises(ValueError, match="row i"):
        HostColouredSweeps(renamed, square.row_offsets[:6], np.array([0, 6]))
    order = np.arange(6)
    with pytest.raises(ValueError, match="6 rows, but an order of 5"):
        arranged_rows(square, order[:5], order, square.row_offsets, order)
    with pytest.raises(ValueError, match="6 columns, but 5 numbers"):
        arranged_rows(square, order, order, square.row_offsets, order[:5])
    reads = dependencies(system)
    with pytest.raises(ValueError, match="6 updates, but 5 numbers"):
        reads.fresh_entries(np.zeros(5, dtype=np.int32))
    with pytest.raises(ValueError, match="from 0 to 1"):
        reads.move_to_better_colours(order.astype(np.int32), 2, reads.levels(False))


@WIDE
@THREADS
@pytest.mark.parametrize("position_type", [np.int32, np.int64])
def test_rows_are_arranged_with_fresh_entries_first(with_threads, wide, threads, position_type):
    with_threads(threads)
    random, matrix = np.random.default_rng(5), matrix_of(50, 70, wide)
    rows, position = random.permutation(50), random.permutation(70).astype(position_type)
    first_stale = random.integers(0, 70, 50)
    offsets = np.append(0, np.cumsum(matrix.row_lengths()[rows])).astype(matrix.row_offsets.dtype)
    fresh_ends, columns, values = arranged_rows(matrix, rows, first_stale, offsets, position)
    assert fresh_ends.dtype == offsets.dtype
    assert columns.dtype == position_type
    for row in range(50):
        moved = [(int(position[column]), value) for column, value in entries_of(matrix, rows[row])]
        fresh = [entry for entry in moved if entry[0] < first_stale[row]]
        stale = [entry for entry in moved if entry[0] >= first_stale[row]]
        place = slice(int(offsets[row]), int(offsets[row + 1]))
        assert list(zip(columns[place], values[place], strict=True)) == fresh + stale
        assert fresh_ends[row] == offsets[row] + len(fresh)


@WIDE
@THREADS
def test_weights_are_shares_of_a_row_rounded_to_even(with_threads, wide, threads):
    with_threads(threads)
    matrix = matrix_of(60, 60, wide)
    reads = dependencies(SweepSystem(matrix, np.ones(60)))
    for row in range(60):
        entries, place = entries_of(matrix, row), int(matrix.row_offsets[row])
        total = 0.0
        for _, value in entries:
            total += value
        for column, value in entries:
            assert reads.reads[place] == column
            assert reads.weights[place] == round(value * (UNIT / total))
            place += 1


def test_rows_without_a_sum_have_weights_that_fit():
    offsets = np.array([0, 2, 3, 4, 6], dtype=np.int32)
    values = np.array([0.0, 0.0, math.nan, math.inf, 5e-324, 0.0])
    matrix = CsrMatrix(offsets, np.zeros(6, dtype=np.int32), values, 4)
    weights = dependencies(SweepSystem(matrix, np.ones(4))).weights
    assert not weights[:3].any()
    assert weights.dtype == np.int32


def plain_levels(offsets, reads, backwards):
    """The level of a state is above those before it that it reads, and not below that read it."""
    size = len(offsets) - 1
    levels = [0] * size
    for row in range(size)[:: -1 if backwards else 1]:
        others = {int(reads[entry]) for entry in range(offsets[row], offsets[row + 1])} - {-1}
        earlier = [other for other in others if (other > row if backwards else other < row)]
        readers = [
            other
            for other in range(size)
            if (other > row if backwards else other < row)
            and row in reads[offsets[other] : offsets[other + 1]]
        ]
        above = [levels[other] + 1 for other in earlier]
        levels[row] = max([*above, *(levels[other] for other in readers)], default=0)
    return levels


@WIDE
@pytest.mark.parametrize("backwards", [False, True])
def test_levels_are_those_of_plain_loops(wide, backwards):
    matrix = matrix_of(60, 61, wide)
    reads = np.where(matrix.columns < 60, matrix.columns, -1).astype(matrix.columns.dtype)
    found = find_levels(matrix.row_offsets, reads, backwards)
    assert found.dtype == np.int32
    assert found.tolist() == plain_levels(matrix.row_offsets, reads, backwards)


@WIDE
@THREADS
@pytest.mark.parametrize("counts", [[1], [2, 3], [2, 3, 5], [2, 3, 5, 7, 11]], ids=str)
def test_fresh_weights_are_those_of_plain_loops(with_threads, wide, threads, counts):
    with_threads(threads)
    matrix = matrix_of(60, 60, wide)
    reads = dependencies(SweepSystem(matrix, np.ones(60)))
    levels = reads.levels(False)
    fresh, weight, fresh_entries, entries = [0] * len(counts), 0, 0, 0
    for row in range(60):
        for place in range(matrix.row_offsets[row], matrix.row_offsets[row + 1]):
            other = matrix.columns[place]
            if other == row:
                continue
            weight += int(reads.weights[place])
            entries += 1
            fresh_entries += int(levels[other] < levels[row])
            for which, count in enumerate(counts):
                if levels[other] % count < levels[row] % count:
                    fresh[which] += int(reads.weights[place])
    assert reads.fresh_weights(levels, counts) == [share / weight for share in fresh]
    assert reads.fresh_entries(levels) == fresh_entries / entries


@THREADS
def test_nothing_has_no_colours_to_move_to(with_threads, threads):
    with_threads(threads)
    nothing = np.zeros(0, dtype=np.int32)
    reads = Dependencies(np.zeros(1, dtype=np.int32), nothing, nothing)
    assert reads.levels(True).tolist() == []
    assert reads.fresh_entries(nothing) == 0.0
    assert reads.fresh_weights(nothing, [2, 3]) == [0.0, 0.0]
    reads.move_to_better_colours(nothing.copy(), 1, nothing)


@pytest.mark.parametrize("seed", range(3))
def test_moves_do_not_depend_on_threads(with_threads, seed):
    matrix = matrix_of(700, 700, seed=seed)
    reads, found = dependencies(SweepSystem(matrix, np.ones(700))), []
    levels = reads.levels(False)
    for threads in (1, 2, 5):
        with_threads(threads)
        colours = (levels % 5).astype(np.int32)
        reads.move_to_better_colours(colours, 5, levels)
        found.append(colours.tolist())
    assert found[0] != (levels % 5).tolist()
    assert found[0] == found[1] == found[2]


@THREADS
def test_pieces_cover_each_colour(with_threads, threads):
    with_threads(threads)
    offsets = matrix_of(50, 50).row_offsets
    cut = ColourShares(np.array([0, 3, 3, 41, 50]), offsets)
    assert cut.starts[cut.firsts].tolist() == [0, 3, 3, 41, 50]
    assert (np.diff(cut.starts) >= 0).all()
