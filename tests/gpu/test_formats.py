"""Every format sweeps as CSR does: the same iterates, whatever is asked of which matrix."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from engines.cuda.engine import CudaEngine
from engines.cuda.formats import layout, patterns, tables, values
from engines.cuda.formats.lay_out import lay_out
from engines.cuda.formats.layout import source_of
from engines.cuda.formats.tuning import RowTuning
from engines.cuda.modules import Launcher
from engines.cuda.prepare import upload
from engines.cuda.two_sided import CudaTwoSidedSweeper
from engines.cuda.uniformise import sum_powers
from engines.host.scaling import scaled
from engines.model.choice import Format
from engines.model.csr import CsrMatrix
from engines.model.events import told
from engines.model.explicit import ModelKind
from engines.systems.one_sided import Direction, Scaling, SweepSystem
from engines.systems.power_sums import PowerSum
from engines.systems.two_sided import TwoSidedSystem
from tests.engines import models
from tests.engines.formats import encoders
from tests.engines.random_models import seeded_model
from tests.gpu import big

OTHERS = [f for f in Format if f not in (Format.AUTO, Format.CSR, Format.HYBRID)]
OF_SUMS = (Format.SEGMENTS, Format.PANELS)
SWEEPS = 70
every_format = pytest.mark.parametrize("matrix_format", OTHERS)


def rates(distances, numbers, size, seed=1):
    """Rows of few kinds: each state has the entries at some of the distances."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 5, size)
    rows = []
    for state in range(size):
        found = {}
        for place, distance in enumerate(distances):
            column = state + distance
            if 0 <= column < size and (kind[state] + place) % 3:
                found[column] = numbers[(place + kind[state]) % len(numbers)]
        rows.append(found)
    return models.csr(rows, size)


def with_rows(size, length, seed=2, numbers=None):
    """Rows of a given length, columns anywhere."""
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.integers(0, size, (size, length)), axis=1)
    given = rng.uniform(0.1, 1.0, columns.shape)
    if numbers is not None:
        given = np.array(numbers)[rng.integers(0, len(numbers), columns.shape)]
    offsets = np.arange(size + 1, dtype=np.int32) * length
    return CsrMatrix(offsets, columns.ravel().astype(np.int32), given.ravel() / length, size)


def uneven(size, long_every, long):
    """Rows of none to four entries, and now and then one of many."""
    rng = np.random.default_rng(5)
    rows = []
    for state in range(size):
        length = long if state % long_every == 7 else int(rng.integers(0, 5))
        columns = np.unique(rng.integers(0, size, length))
        rows.append({int(c): float(rng.integers(1, 5)) / (4 * long) for c in columns})
    return models.csr(rows, size)


MATRICES = {
    "one state": lambda: models.csr([{0: 0.5}]),
    "two states": lambda: models.csr([{0: 0.25, 1: 0.5}, {0: 0.125}]),
    "31 states": lambda: rates([-3, -1, 0, 2], [0.1, 0.2, 0.3], 31),
    "33 states": lambda: rates([-3, -1, 0, 2], [0.1, 0.2, 0.3], 33),
    "tandem-like": lambda: rates([-48, -1, 0, 1, 47], [0.2, 0.1, 0.05], 3000),
    "no entries in many rows": lambda: rates([5], [0.5], 700),
    "uneven": lambda: uneven(500, 50, 40),
    "rows beyond a byte": lambda: uneven(900, 120, 500),
    "dense rows": lambda: with_rows(40, 3000, numbers=[0.1, 0.7, 0.3]),
    "rows of warps": lambda: with_rows(300, 40, numbers=[0.5, 0.25]),
    "random": lambda: with_rows(2000, 5),
    "70,000 distinct values": lambda: with_rows(14_000, 5),
}


def systems(matrix):
    """The systems that are made of a square matrix."""
    size = matrix.num_rows
    rng = np.random.default_rng(size)
    start = rng.uniform(0.1, 1.0, size)
    offset = rng.integers(0, 3, size) / 4.0
    some = np.arange(0, size, 3, dtype=np.int32)
    yield "power", SweepSystem(matrix, start)
    yield "offset", SweepSystem(matrix, start, offset)
    yield "jacobi", SweepSystem(matrix, start, offset, scaling=Scaling.DIAGONAL)
    yield "balance", SweepSystem(matrix, start, scaling=Scaling.BALANCE, omega=0.9)
    of_some = {"states": some, "offset": offset[some], "scaling": Scaling.DIAGONAL}
    yield "subset", SweepSystem(matrix.select_rows(some), start, **of_some)


def swept(system, matrix_format, *, sweeps=SWEEPS, absolute=True, tuning=RowTuning()):
    sweeper = CudaEngine(0, matrix_format, tuning=tuning).sweeper(system, -1.0, absolute)
    changes = sweeper.run(sweeps)
    return sweeper, changes, sweeper.values(), sweeper.residual()


def expect_the_same(system, matrix_format, tuning=RowTuning()):
    _, csr_changes, csr_values, csr_residual = swept(system, Format.CSR)
    sweeper, changes, found, residual = swept(system, matrix_format, tuning=tuning)
    # Two sums of n terms none of which is negative, and a division, differ by 2 (n + 2) units of
    # roundoff at most; a sweep passes on what it is handed.
    longest = int(np.diff(system.matrix.row_offsets).max(initial=0)) + system.num_states
    unit = SWEEPS * 2 * (longest + 2) * 2.0**-53
    np.testing.assert_allclose(found, csr_values, rtol=max(unit, 1e-13), atol=1e-290)
    scale = np.abs(csr_values[np.isfinite(csr_values)]).max(initial=1.0)
    np.testing.assert_allclose(changes, csr_changes, rtol=1e-6, atol=1e-12 * scale)
    assert residual == pytest.approx(csr_residual, rel=1e-6, abs=1e-12 * scale)
    return sweeper, np.array_equal(found, csr_values)


@every_format
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.usefixtures("offsets")
def test_chains(name, matrix_format):
    for what, system in systems(MATRICES[name]()):
        sweeper, exact = expect_the_same(system, matrix_format)
        used = sweeper.cost.format
        empty = scaled(system).matrix.num_entries == 0
        assert used == matrix_format or sweeper.cost.events or empty
        # By one thread, entries are added in CSR's order; only a scale kept apart is divided later.
        by_thread = system.matrix.num_entries < 24 * system.matrix.num_rows
        whole = used == Format.PATTERNS or what in ("power", "offset")
        assert exact or not (by_thread and whole and used not in OF_SUMS)


@every_format
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", [ModelKind.DTMC, ModelKind.CTMC])
def test_small_random_chains(kind, seed, matrix_format):
    model = seeded_model(kind, seed, 9).model
    for _, system in systems(model.matrix):
        expect_the_same(system, matrix_format)


@every_format
@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("size", [1, 40, 3000])
@pytest.mark.usefixtures("offsets")
def test_choices(size, direction, matrix_format):
    if size == 1:
        model = models.mdp([[{0: 1.0}, {0: 1.0}]])
    else:
        model = big.random_mdp(size, size)
        tenths = np.round(model.matrix.values, 1)
        model = replace(model, matrix=replace(model.matrix, values=tenths))
    rows = model.matrix.num_rows
    offset = np.random.default_rng(1).integers(0, 3, rows) / 2.0
    start = np.zeros(size)
    plain = SweepSystem(
        *(model.matrix, start, offset),
        group_offsets=model.row_group_offsets,
        direction=direction,
    )
    some = np.arange(0, size, 2, dtype=np.int32)
    chosen = np.concatenate([np.arange(*model.row_group_offsets[[s, s + 1]]) for s in some])
    groups = np.zeros(len(some) + 1, dtype=np.int32)
    np.cumsum(np.diff(model.row_group_offsets)[some], out=groups[1:])
    subset = SweepSystem(
        *(model.matrix.select_rows(chosen), start, offset[chosen], some),
        group_offsets=groups,
        direction=direction,
    )
    for system in (plain, subset):
        sweeper, exact = expect_the_same(system, matrix_format)
        assert exact
        if matrix_format in OF_SUMS:
            assert sweeper.cost.format == "csr"
            assert "one-sided sweeps of chains" in told(sweeper.cost.events)


@every_format
@pytest.mark.parametrize("name", ["one state", "tandem-like", "uneven", "dense rows", "random"])
def test_sums_of_powers(name, matrix_format):
    matrix = MATRICES[name]()
    size = matrix.num_rows
    keep = matrix.columns != matrix.row_of_entry()
    exits = np.bincount(matrix.row_of_entry()[keep], weights=matrix.values[keep], minlength=size)
    rate = max(float(exits.max()), 0.5)
    lengths = np.bincount(matrix.row_of_entry()[keep], minlength=size)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
    off = CsrMatrix(offsets, matrix.columns[keep], matrix.values[keep], size)
    start = np.random.default_rng(3).uniform(0.0, 1.0, size)
    weights = np.arange(1.0, 100.0)
    problem = PowerSum(SweepSystem(off, start), 1.0 - exits / rate, rate, 5, weights, 0.25)
    expected = sum_powers(problem, None, 0)
    found = sum_powers(problem, None, 0, matrix_format)
    # Where the order of a sum differs, the iterate may come to rest at another sweep.
    if found.cost.kernel == expected.cost.kernel:
        assert found.sweeps == expected.sweeps
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-11)
    if matrix_format in OF_SUMS and off.num_entries:
        assert "csr used" in told(found.cost.events)


@every_format
@pytest.mark.parametrize("name", ["one state", "tandem-like", "uneven", "rows of warps"])
def test_two_sided_sweeps(name, matrix_format):
    matrix = MATRICES[name]()
    size = matrix.num_rows
    offset = np.full(size, 0.25)
    system = TwoSidedSystem(SweepSystem(matrix, np.zeros(size), offset), np.full(size, 50.0))
    expected, found = (
        CudaTwoSidedSweeper(system, -1.0, True, 0, f) for f in (Format.CSR, matrix_format)
    )
    for sweeper in (expected, found):
        sweeper.run(40)
        sweeper.guess_upper(2.0, True)
    # Whether rounding still moves anything may differ where a warp adds up the rows of one alone.
    for theirs, ours in list(zip(expected.run(70), found.run(70), strict=True))[:-1]:
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    for theirs, ours in zip(expected.bounds(), found.bounds(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11)


@pytest.mark.parametrize("direction", Direction)
@every_format
def test_two_sided_choices(direction, matrix_format):
    model = big.random_mdp(4, 2000)
    zeros, ones = np.zeros(2000), np.ones(2000)
    zeros[0] = 1.0
    system = SweepSystem(
        model.matrix, zeros, group_offsets=model.row_group_offsets, direction=direction
    )
    pair = [
        CudaTwoSidedSweeper(TwoSidedSystem(system, ones), -1.0, True, 0, f)
        for f in (Format.CSR, matrix_format)
    ]
    for sweeper in pair:
        sweeper.run(50)
    for theirs, ours in zip(*(sweeper.bounds() for sweeper in pair), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@every_format
def test_a_line_of_many_states(matrix_format):
    size = 100_001
    states = np.arange(size)
    columns = np.maximum(states - 1, 0).astype(np.int32)
    matrix = CsrMatrix(np.arange(size + 1, dtype=np.int32), columns, np.ones(size), size)
    start = np.zeros(size)
    start[0] = 1.0
    sweeper, _, found, _ = swept(SweepSystem(matrix, start), matrix_format, sweeps=65)
    np.testing.assert_array_equal(found, (states <= 65).astype(float))
    assert sweeper.cost.format == matrix_format


@every_format
def test_a_test_that_is_met_stops_at_the_same_sweep(matrix_format):
    system = next(s for what, s in systems(MATRICES["tandem-like"]()) if what == "jacobi")
    results = [
        CudaEngine(0, f).sweeper(system, 1e-6, False).run(2000) for f in (Format.CSR, matrix_format)
    ]
    assert abs(len(results[0]) - len(results[1])) <= 1
    assert results[1][-1] < 1e-6


def coded(system, module, launcher):
    """The layout that a module builds of a system."""
    device = upload(system, launcher, divided=False)
    source = source_of(device, launcher, system.matrix.num_rows, int(device.values.size))
    return module.build(source, launcher)


def test_codes_are_those_of_the_host_in_every_build():
    matrix = MATRICES["tandem-like"]()
    offset = np.arange(matrix.num_rows) % 4 / 4.0
    system = SweepSystem(matrix, np.zeros(matrix.num_rows), offset)
    launcher = Launcher("int")
    expected = encoders.values_coded(matrix)
    of_rows = encoders.rows_coded(matrix, offset=offset)
    for _ in range(10):
        by_value = coded(system, values, launcher).arguments
        np.testing.assert_array_equal(by_value[2].get(), expected.codes)
        np.testing.assert_array_equal(by_value[3].get(), expected.numbers)
        by_row = coded(system, patterns, launcher).arguments
        np.testing.assert_array_equal(by_row[0].get(), of_rows.codes)
        np.testing.assert_array_equal(by_row[1].get(), of_rows.starts)
        np.testing.assert_array_equal(by_row[2].get()[:, 0], of_rows.numbers)
        np.testing.assert_array_equal(by_row[3].get(), of_rows.givens)


@pytest.mark.parametrize("mask", [0, 1, 7])
@pytest.mark.parametrize("matrix_format", [Format.VALUES, Format.PATTERNS])
def test_collisions_of_hashes_are_told_apart(matrix_format, mask, monkeypatch):
    monkeypatch.setattr(tables, "HASH_MASK", mask)
    monkeypatch.setattr(values, "HASH_MASK", mask)
    for _, system in systems(rates([-20, -2, -1, 0, 1, 9], np.arange(1, 12) / 60.0, 400)):
        expect_the_same(system, matrix_format)


@pytest.mark.parametrize(
    ("distinct", "code"), [(256, "unsigned char"), (257, "unsigned short"), (65_536, "short")]
)
def test_the_width_of_codes_goes_by_what_there_is(distinct, code):
    size = 1 + distinct // 3
    matrix = with_rows(size, 4)
    numbers = np.resize(np.arange(1.0, distinct + 1.0), matrix.num_entries) / (4 * distinct)
    system = SweepSystem(replace(matrix, values=numbers), np.ones(size))
    built = coded(system, values, Launcher("int"))
    assert code in built.defines[0]
    assert len(built.arguments[3]) == distinct
    expect_the_same(system, Format.VALUES)


def test_a_dictionary_that_overflows_is_refused_by_name():
    matrix = with_rows(14_000, 5)
    system = SweepSystem(matrix, np.ones(14_000))
    sweeper, exact = expect_the_same(system, Format.VALUES)
    assert exact
    assert sweeper.cost.format == "csr"
    remark = "-gpuformat values: there are more than 65536 distinct values"
    assert remark in told(sweeper.cost.events)
    # Rows that are all different are still rows.
    assert swept(system, Format.PATTERNS)[0].cost.format == "patterns"


def test_patterns_of_256_and_more_and_of_65536_and_more():
    for size, width in ((256, 1), (300, 2), (65_536, 2), (65_600, 4)):
        matrix = models.csr([{i: (i + 1.0) / (2 * size)} for i in range(size)])
        built = coded(SweepSystem(matrix, np.ones(size)), patterns, Launcher("int"))
        assert built.arguments[0].itemsize == width
        assert len(built.arguments[1]) == size + 1


def test_a_right_hand_side_of_few_numbers_is_part_of_the_patterns():
    matrix = MATRICES["tandem-like"]()
    size = matrix.num_rows
    few, many = np.arange(size) % 3 / 4.0, np.linspace(0.0, 1.0, size)
    folded = coded(SweepSystem(matrix, np.ones(size), few), patterns, Launcher("int"))
    assert folded.holds_offset
    big_size = 70_000
    shifts = rates([-1, 1], [0.5], big_size)
    apart = SweepSystem(shifts, np.ones(big_size), np.linspace(0.0, 1.0, big_size))
    assert not coded(apart, patterns, Launcher("int")).holds_offset
    expect_the_same(SweepSystem(matrix, np.ones(size), many), Format.PATTERNS)


def test_a_scale_of_many_numbers_is_kept_apart_where_that_makes_few_words():
    # Twelve rates to four neighbours add up to exits of thousands of sizes: over these, hardly any
    # rate is like another.
    size = 3000
    rng = np.random.default_rng(8)
    numbers = rng.uniform(0.5, 1.0, 12)
    rows = [
        {(i + d) % size: float(rng.choice(numbers)) for d in (-2, -1, 1, 2)} for i in range(size)
    ]
    system = SweepSystem(models.csr(rows, size), np.full(size, 1 / size), scaling=Scaling.BALANCE)
    device = upload(system, Launcher("int"), divided=False)
    built = lay_out(device, system, Format.VALUES, Launcher("int")).layout
    assert built.arguments[-1] is not None
    expect_the_same(system, Format.VALUES)


@pytest.mark.parametrize("fails_after", range(1, 12))
@every_format
def test_memory_that_ends_while_building_leaves_csr(gpu, matrix_format, fails_after, monkeypatch):
    system = next(s for what, s in systems(MATRICES["uneven"]()) if what == "jacobi")
    expected = swept(system, Format.CSR)[2]
    pool = gpu.cuda.MemoryPool()
    left = [None]

    def limited(size):
        if left[0] is not None:
            left[0] -= 1
            if left[0] == 0:
                left[0] = None
                raise gpu.cuda.memory.OutOfMemoryError(size, 0, 0)
        return pool.malloc(size)

    plain = lay_out

    def counting(*arguments, **keywords):
        left[0] = fails_after
        try:
            return plain(*arguments, **keywords)
        finally:
            left[0] = None

    monkeypatch.setattr("engines.cuda.rows.lay_out", counting)
    with gpu.cuda.using_allocator(limited):
        sweeper, _, found, _ = swept(system, matrix_format)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    if sweeper.cost.format == "csr":
        assert "memory" in told(sweeper.cost.events)


def test_auto_leaves_small_sweeps_in_csr_and_finds_patterns_and_values():
    small = SweepSystem(MATRICES["tandem-like"](), np.ones(3000))
    assert swept(small, Format.AUTO, sweeps=3)[0].cost.format == "csr"
    size = 60_000
    repeated = rates([-300, -1, 0, 1, 300], [0.2, 0.1], size)
    large = SweepSystem(repeated, np.ones(size))
    sweeper = expect_the_same(large, Format.AUTO)[0]
    assert sweeper.cost.format == "patterns"
    assert "patterns" in sweeper.cost.estimates
    assert "(chosen)" in sweeper.cost.estimates
    # Rows without a pattern, of few values.
    rng = np.random.default_rng(1)
    near = np.sort(
        (np.arange(size)[:, None] + rng.integers(-20, 21, (size, 6))).clip(0, size - 1), axis=1
    )
    offsets = np.arange(size + 1, dtype=np.int32) * 6
    mixed = rng.integers(1, 4, near.size) / 32.0
    matrix = CsrMatrix(offsets, near.ravel().astype(np.int32), mixed, size)
    sweeper = expect_the_same(SweepSystem(matrix, np.ones(size)), Format.AUTO)[0]
    assert sweeper.cost.format == "values"
    # Nothing repeats.
    noise = with_rows(40_000, 5)
    sweeper = expect_the_same(SweepSystem(noise, np.ones(40_000)), Format.AUTO)[0]
    assert sweeper.cost.format == "csr"


@pytest.mark.parametrize("matrix_format", [Format.CSR, Format.VALUES])
def test_rows_shared_out_by_blocks_are_added_up_whole(matrix_format):
    # Fewer entries than lanes, one piece, a few, as many as a row is cut into, and longer pieces.
    lengths = np.array([0, 1, 31, 511, 512, 513, 2049, 32_767, 32_768, 32_769, 70_001, 0, 3] * 3)
    size = len(lengths)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
    rng = np.random.default_rng(6)
    columns = rng.integers(0, size, int(offsets[-1])).astype(np.int32)
    numbers = rng.integers(1, 9, len(columns)) / 16.0
    start = rng.uniform(0.5, 1.0, size)
    products = numbers * start[columns]
    expected = [math.fsum(products[a:b]) for a, b in itertools.pairwise(offsets)]
    system = SweepSystem(CsrMatrix(offsets, columns, numbers, size), start)
    sweeper, _, found, _ = swept(system, matrix_format, sweeps=1)
    assert sweeper.cost.kernel == "rows_by_block"
    assert sweeper.cost.format == matrix_format
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    again = swept(system, matrix_format, sweeps=1)[2]
    np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize("name", ["tandem-like", "uneven", "rows of warps", "dense rows"])
@pytest.mark.parametrize("matrix_format", [Format.CSR, *OTHERS])
def test_infinities_reach_the_rows_that_read_them_and_no_others(name, matrix_format):
    matrix = MATRICES[name]()
    size = matrix.num_rows
    start = np.ones(size)
    start[size // 2] = np.inf
    expected = np.zeros(size)
    np.add.at(expected, matrix.row_of_entry(), matrix.values * start[matrix.columns])
    found = swept(SweepSystem(matrix, start), matrix_format, sweeps=1)[2]
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("name", ["uneven", "tandem-like"])
def test_the_rows_that_are_divided_later_are_those_of_the_host(name):
    for _, system in systems(MATRICES[name]()):
        launcher = Launcher("int")
        divided = upload(system, launcher)
        apart = upload(system, launcher, divided=False)
        found = lay_out(apart, system, Format.CSR, launcher).layout.arguments[2].get()
        np.testing.assert_array_equal(found, divided.values.get())
        if system.scaling is Scaling.DIAGONAL:
            np.testing.assert_array_equal(apart.offset.get(), scaled(system).offset)


@pytest.mark.parametrize("processors", [1, 2, 1000])
@every_format
def test_chunks_cover_all_rows_whatever_the_device(matrix_format, processors, monkeypatch):
    monkeypatch.setattr("engines.cuda.modules._limits", lambda _d: (processors, 1024, 65_536))
    monkeypatch.setattr(layout, "CHUNK_THREADS", (64,))
    for size in (1, 63, 64, 65, 1000, 5000):
        matrix = rates([-7, 0, 1], [0.5, 0.25], size)
        expect_the_same(SweepSystem(matrix, np.ones(size)), matrix_format)
