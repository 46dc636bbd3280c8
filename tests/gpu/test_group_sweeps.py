"""Sweeps of groups of rows on the GPU: the best row of each, whatever the groups' sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.cpu.engine import CpuEngine
from engines.cpu.two_sided import CpuTwoSidedSweeper
from engines.cuda.engine import CudaEngine
from engines.cuda.formats import layout
from engines.cuda.two_sided import CudaTwoSidedSweeper
from engines.formats.choice import Format
from engines.formats.csr import CsrMatrix
from engines.system import Direction, SweepSystem
from engines.two_sided import TwoSidedSystem

NO_CHOICES = (Format.AUTO, Format.SEGMENTS, Format.PANELS, Format.HYBRID)
FORMATS = [f for f in Format if f not in NO_CHOICES]
EXACT_SWEEPS = 6
"""So many sweeps of values that are multiples of 1/8 round nothing, in whatever order."""

every_format = pytest.mark.parametrize("matrix_format", FORMATS)
each_direction = pytest.mark.parametrize("direction", Direction)


def some_choices(size):
    return np.random.default_rng(size).integers(1, 4, size)


def with_one_of(choices, where, size=200):
    """One to three choices, and one state that has many."""
    found = some_choices(size)
    found[where] = choices
    return found


CHOICES = {
    "one state of one choice": lambda: np.array([1]),
    "one state of 5,000 choices": lambda: np.array([5000]),
    "31 states": lambda: some_choices(31),
    "32 states": lambda: some_choices(32),
    "33 states": lambda: some_choices(33),
    "a last block of one state": lambda: some_choices(1025),
    "one choice each": lambda: np.ones(700, dtype=np.int64),
    "four choices each: whole tiles": lambda: np.full(300, 4),
    "64 choices each": lambda: np.full(70, 64),
    "one more than a tile has room for": lambda: with_one_of(129, 5),
    "as many as lanes, and one more": lambda: np.resize([1, 32, 33, 2], 90),
    "5,000 choices first": lambda: with_one_of(5000, 0),
    "5,000 choices in between": lambda: with_one_of(5000, 77),
    "5,000 choices last": lambda: with_one_of(5000, -1),
}


def exact_system(choices, direction, *, named=False, lengths=(0, 1, 2, 2, 13)):
    """Rows of few entries, near and far, whose values and right-hand sides are eighths."""
    size, rows = len(choices), int(choices.sum())
    rng = np.random.default_rng(rows)
    owner = np.repeat(np.arange(size), choices)
    entries = rng.choice(lengths, rows)
    row = np.repeat(np.arange(rows), entries)
    far = rng.integers(0, size, len(row))
    near = (owner[row] + rng.integers(-2, 3, len(row))) % size
    columns = np.where(rng.random(len(row)) < 0.5, near, far).astype(np.int32)
    offsets = np.append(0, np.cumsum(entries)).astype(np.int32)
    values = rng.integers(0, 3, len(row)) / 8.0
    groups = np.append(0, np.cumsum(choices)).astype(np.int32)
    states, num_states = None, size
    if named:
        # Every other state, and the columns follow.
        states, num_states = 2 * np.arange(size, dtype=np.int32) + 1, 2 * size + 1
        columns = 2 * columns + (columns % 3 > 0)
    return SweepSystem(
        CsrMatrix(offsets, columns, values, num_states),
        *(rng.integers(1, 9, num_states) / 8.0, rng.integers(0, 9, rows) / 8.0, states),
        group_offsets=groups,
        direction=direction,
    )


def plain_sweep(system, x, of_nothing=None):
    """One sweep by loops; `of_nothing` is the best of no rows."""
    matrix, best = system.matrix, min if system.direction is Direction.MINIMISE else max
    products = matrix.values * x[matrix.columns]
    after = x.copy()
    for group in range(system.num_updates):
        totals = []
        for row in range(*system.group_offsets[group : group + 2]):
            begin, end = matrix.row_offsets[row : row + 2]
            totals.append(system.offset[row] + sum(products[begin:end]))
        state = group if system.states is None else system.states[group]
        after[state] = best(totals) if totals else of_nothing
    return after


def change(before, after, absolute):
    scale = np.ones(len(before)) if absolute else before
    moved = before != after
    return (np.abs(after - before)[moved] / scale[moved]).max(initial=0.0)


def expect_plain(system, matrix_format, *, absolute=True, early=False):
    """Every sweep writes what the loops write, to the last bit."""
    sweeper = CudaEngine(0, matrix_format).sweeper(system, -1.0, absolute)
    sweeper._early = early
    assert sweeper.cost.kernel == "groups_by_thread"
    assert sweeper.cost.format == (matrix_format if system.matrix.num_entries else Format.CSR)
    x = system.start
    for _ in range(EXACT_SWEEPS):
        after = plain_sweep(system, x)
        (found,) = sweeper.run(1)
        np.testing.assert_array_equal(sweeper.values(), after)
        assert found == change(x, after, absolute)
        x = after


@every_format
@each_direction
@pytest.mark.parametrize("name", CHOICES)
def test_the_best_row_of_each_group_is_found(name, direction, matrix_format):
    expect_plain(exact_system(CHOICES[name](), direction), matrix_format)


@every_format
@each_direction
@pytest.mark.usefixtures("offsets")
def test_states_may_have_names(direction, matrix_format):
    for choices in (some_choices(100), with_one_of(300, 40)):
        system = exact_system(choices, direction, named=True)
        expect_plain(system, matrix_format, absolute=False, early=True)


@every_format
@pytest.mark.parametrize("lengths", [(0,), (0, 1), (1,), (7, 8, 9), (0, 300)])
def test_rows_of_no_entries_and_of_many(lengths, matrix_format):
    system = exact_system(some_choices(50), Direction.MAXIMISE, lengths=lengths)
    expect_plain(system, matrix_format)


@every_format
@each_direction
@pytest.mark.parametrize("processors", [1, 2, 1000])
@pytest.mark.parametrize("threads", [32, 64, 512])
def test_chunks_cover_all_groups_whatever_the_device(
    threads, processors, direction, matrix_format, monkeypatch
):
    monkeypatch.setattr("engines.cuda.modules._limits", lambda _d: (processors, threads, 65_536))
    monkeypatch.setattr(layout, "GROUP_THREADS", (threads,))
    for choices in (some_choices(1025), with_one_of(5000, 600, 1500)):
        expect_plain(exact_system(choices, direction), matrix_format)


@every_format
@each_direction
@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("early", [False, True])
def test_a_test_that_is_met_stops_where_the_cpu_does(early, absolute, direction, matrix_format):
    system = exact_system(with_one_of(500, 20), direction, lengths=(1, 2))
    cpu = CpuEngine(Format.CSR).sweeper(system, 1e-7, absolute)
    gpu = CudaEngine(0, matrix_format).sweeper(system, 1e-7, absolute)
    gpu._early = early
    expected, found = cpu.run(1000), gpu.run(1000)
    assert len(found) == len(expected) < 1000
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-13)
    np.testing.assert_allclose(gpu.values(), cpu.values(), rtol=1e-13)
    assert gpu.residual() == pytest.approx(cpu.residual(), rel=1e-6, abs=1e-13)


@every_format
@each_direction
@pytest.mark.parametrize("nearest", [False, True], ids=["down", "nearest"])
def test_vectors_in_single_precision(nearest, direction, matrix_format):
    system = exact_system(with_one_of(500, 20), direction)
    sweeper = CudaEngine(0, matrix_format).sweeper(system, -1.0, True)
    single = sweeper.in_single(-1.0, nearest)
    x = system.start
    for _ in range(3):
        x = plain_sweep(system, x)
        single.run(1)
        np.testing.assert_array_equal(single.values(), x)


@each_direction
@pytest.mark.parametrize("matrix_format", [Format.CSR, Format.PATTERNS])
@pytest.mark.parametrize("threads", [32, 512])
def test_states_without_choices_get_what_the_best_of_nothing_is(
    threads, direction, matrix_format, monkeypatch
):
    monkeypatch.setattr("engines.cuda.modules._limits", lambda _d: (1, threads, 65_536))
    monkeypatch.setattr(layout, "GROUP_THREADS", (threads,))
    choices = some_choices(190)
    choices[[0, 31, 32, 33, 50, 89]] = 0
    choices[65:91] = 0
    system = exact_system(choices, direction)
    sweeper = CudaEngine(0, matrix_format).sweeper(system, -1.0, True)
    sweeper.run(1)
    nothing = np.inf if direction is Direction.MINIMISE else -np.inf
    np.testing.assert_array_equal(sweeper.values(), plain_sweep(system, system.start, nothing))


@every_format
@each_direction
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("absolute", [False, True])
def test_two_sided(absolute, named, direction, matrix_format):
    for choices in (some_choices(300), np.full(70, 64), with_one_of(5000, 77)):
        system = exact_system(choices, direction, named=named, lengths=(0, 1, 2))
        # The bounds are the same where no row writes.
        lower, upper = np.ones(system.num_states), np.ones(system.num_states)
        written = slice(None) if system.states is None else system.states
        lower[written], upper[written] = 0.0, 8.0
        pair = TwoSidedSystem(replace(system, start=lower), upper)
        expected = CpuTwoSidedSweeper(pair, -1.0, absolute)
        found = CudaTwoSidedSweeper(pair, -1.0, absolute, 0, matrix_format)
        theirs, ours = expected.run(40), found.run(40)
        for field in ("widths", "rises", "falls", "crossings"):
            a, b = getattr(theirs, field), getattr(ours, field)
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-11)
        for a, b in zip(expected.bounds(), found.bounds(), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-300)
