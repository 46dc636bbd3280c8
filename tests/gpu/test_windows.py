"""Sweeps by windows do as sweeps row by row, digit for digit."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cuda.engine import CudaEngine
from engines.cuda.formats.tuning import Manner, RowTuning, WindowTuning
from engines.cuda.windows import Reach, reach_of
from engines.diagrams.system import DiagramSystem
from engines.model.choice import Format
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import Scaling, SweepSystem
from tests.gpu.hybrids import diagram_sweeper, of_csr

pytestmark = pytest.mark.gpu

FORMATS = [Format.CSR, Format.PATTERNS]


def small(*blocks, most_ahead=16):
    """Small systems are swept by windows too, in such blocks."""
    manner = Manner(blocks, most_ahead)
    return WindowTuning(
        least_banded_rows=1, least_chunk_rows=1, widths_a_chunk=0, csr=manner, patterns=manner
    )


SMALL = small(64, 32)
NEVER = WindowTuning(least_banded_rows=1 << 40)


def banded(distances, size, kinds=3, run=700, seed=4):
    """Rows in runs of few kinds, each with entries at some of the distances."""
    rng = np.random.default_rng(seed)
    kind = (np.arange(size) // run) % kinds
    # Here and there a row is of another kind than its neighbours.
    odd = rng.choice(size, size // 500, replace=False)
    kind[odd] = kinds
    state = np.arange(size)
    triples = []
    for place, distance in enumerate(distances):
        column = state + distance
        there = (column >= 0) & (column < size) & ((kind + place) % (kinds + 1) != 0)
        value = (1.0 + kind[there] + place) / 16.0 / len(distances)
        triples.append((state[there], column[there], value))
    row, column, value = (np.concatenate(part) for part in zip(*triples, strict=True))
    order = np.lexsort((column, row))
    offsets = np.zeros(size + 1, dtype=np.int32)
    np.cumsum(np.bincount(row, minlength=size), out=offsets[1:])
    return CsrMatrix(offsets, column[order].astype(np.int32), value[order], size)


def swept(system, matrix_format, windows=SMALL, *, stop=-1.0, absolute=True, sweeps=150):
    engine = CudaEngine(0, matrix_format, tuning=RowTuning(windows=windows))
    sweeper = engine.sweeper(system, stop, absolute)
    changes = sweeper.run(sweeps)
    return sweeper, np.asarray(changes), sweeper.values(), sweeper.residual()


def expect_the_same(system, matrix_format, windows=SMALL, **how):
    by_window, changes, values, residual = swept(system, matrix_format, windows, **how)
    assert by_window.cost.kernel == "rows_by_window"
    assert by_window.cost.format == matrix_format
    plain, wanted_changes, wanted, wanted_residual = swept(system, matrix_format, NEVER, **how)
    assert plain.cost.kernel == "rows_by_thread"
    np.testing.assert_array_equal(values, wanted)
    np.testing.assert_array_equal(changes, wanted_changes)
    assert residual == wanted_residual


def systems(size, distances):
    rng = np.random.default_rng(size)
    matrix, start = banded(distances, size), rng.uniform(0.1, 1.0, size)
    offset = rng.integers(0, 3, size) / 4.0
    yield SweepSystem(matrix, start)
    yield SweepSystem(matrix, start, offset)
    yield SweepSystem(matrix, start, offset, scaling=Scaling.DIAGONAL, omega=0.9)
    yield SweepSystem(matrix, start, scaling=Scaling.BALANCE, omega=0.95)


@pytest.mark.parametrize("matrix_format", FORMATS)
@pytest.mark.parametrize("size", [40_000, 65_537, 100_001])
@pytest.mark.parametrize(
    "distances",
    [(-1, 0, 1), (-700, -1, 0, 3, 1500), (0, 1), (5, 96), (-333,), (-1, 1, 2, 3, 4, 5, 6, 7, 2000)],
    ids=str,
)
def test_windows_sweep_as_rows_do(size, distances, matrix_format):
    for system in systems(size, distances):
        expect_the_same(system, matrix_format)


@pytest.mark.parametrize("matrix_format", FORMATS)
@pytest.mark.parametrize("block", [32, 128, 1024])
@pytest.mark.parametrize("most_ahead", [2, 3, 16])
def test_blocks_and_rings_of_any_size_do_the_same(matrix_format, block, most_ahead):
    windows = small(block, most_ahead=most_ahead)
    for system in systems(600_001, (-900, -1, 0, 1, 1300)):
        expect_the_same(system, matrix_format, windows, sweeps=20)


@pytest.mark.parametrize("matrix_format", FORMATS)
def test_a_wide_band_is_swept_by_small_blocks(matrix_format):
    windows = small(1024, 512)
    for distances, block in (((-8192, -1, 0, 13_000), 512), ((-2000, -1, 0, 3000), 1024)):
        system = next(systems(1_000_001, distances))
        expect_the_same(system, matrix_format, windows, sweeps=20)
        by_window, *_ = swept(system, matrix_format, windows, sweeps=1)
        assert by_window._rows[0].window.block == block


@pytest.mark.parametrize("matrix_format", FORMATS)
@pytest.mark.parametrize("absolute", [True, False])
def test_windows_stop_where_rows_do(matrix_format, absolute):
    for system in systems(70_000, (-300, -1, 0, 200)):
        for stop in (1e-3, 1e-7):
            expect_the_same(system, matrix_format, stop=stop, absolute=absolute)


@pytest.mark.parametrize("matrix_format", FORMATS)
def test_windows_in_single_precision(matrix_format):
    system = next(systems(70_001, (-300, -1, 0, 201)))
    found = []
    for windows in (SMALL, NEVER):
        engine = CudaEngine(0, matrix_format, tuning=RowTuning(windows=windows))
        sweeper = engine.sweeper(system, -1.0, True)
        single = sweeper.in_single(-1.0, True)
        single.run(70)
        found.append((single.values(), single.residual()))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def test_a_band_that_does_not_fit_is_swept_by_rows():
    system = next(systems(90_000, (-40_000, 0, 1)))
    sweeper, *_ = swept(system, Format.CSR, sweeps=3)
    assert sweeper.cost.kernel == "rows_by_thread"


@pytest.mark.parametrize("distances", [(-40, -1, 0, 3), (0, 1, 90), (-100, 100)])
def test_patterns_of_a_diagram_are_swept_by_windows_too(distances):
    matrix = banded(distances, 50_000)
    start = np.random.default_rng(7).uniform(0.5, 1.0, matrix.num_rows)
    system = DiagramSystem(of_csr(matrix), start, scaling=Scaling.DIAGONAL)
    for windows in (SMALL, NEVER):
        found = diagram_sweeper(system, Format.PATTERNS, tuning=windows)
        changes = found.run(40)
        if found.cost.kernel == "rows_by_window":
            first = (changes, found.values(), found.residual())
    assert found.cost.kernel == "rows_by_thread"
    np.testing.assert_array_equal(changes, first[0])
    np.testing.assert_array_equal(found.values(), first[1])
    assert found.residual() == first[2]


def test_the_reach_is_that_of_the_entries():
    from engines.cuda.modules import Launcher
    from engines.cuda.prepare import upload

    launcher = Launcher("int")
    for distances in [(-700, 0, 3), (5,), (-2,), (0,), (-900, -3, -1, 0, 1, 2, 3, 4, 2000)]:
        system = SweepSystem(banded(distances, 5000), np.ones(5000))
        found = reach_of(upload(system, launcher), 5000, launcher)
        assert found == Reach(max(0, -min(distances)), max(0, *distances))


def test_blocks_at_work_are_neighbours_where_a_band_is_too_wide(monkeypatch):
    from engines.cuda.modules import Launcher

    size = 1_500_000
    matrix = banded((-6000, -1, 0, 1, 6000), size)
    start = np.random.default_rng(7).uniform(0.5, 1.0, size)
    system = DiagramSystem(of_csr(matrix), start, scaling=Scaling.DIAGONAL)
    tuning = WindowTuning(least_chunk_rows=1 << 40, steps_in_order=1)
    found = []
    # The whole of x fits into the one cache, and what neighbours read into the other.
    for cache in (1 << 30, 10_000_000):
        monkeypatch.setattr(Launcher, "cache_bytes", cache)
        sweeper = diagram_sweeper(system, Format.PATTERNS, tuning=tuning)
        (rows,) = sweeper._rows
        found.append((rows.geometry.chunk, sweeper.run(20), sweeper.values()))
    assert found[1][0] == rows.geometry.block < found[0][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])
    np.testing.assert_array_equal(found[0][2], found[1][2])
