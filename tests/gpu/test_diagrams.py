"""Matrices of decision diagrams on the device: expanded, as row patterns, and swept as they are."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cuda import diagram_patterns, diagrams
from engines.cuda.diagram_upload import hybrid_bytes, most_rows
from engines.cuda.diagrams import ExpansionTuning, expand_in_pieces
from engines.cuda.formats import patterns
from engines.cuda.formats.layout import source_of
from engines.cuda.modules import Launcher
from engines.cuda.prepare import upload
from engines.cuda.sweeper import CudaSweeper
from engines.diagrams.system import DiagramSystem
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.model.choice import Format
from engines.model.csr import CsrMatrix
from engines.model.events import told
from engines.systems.one_sided import Direction, Scaling, SweepSystem
from tests.gpu.hybrids import diagram_sweeper, expanded, of_csr, random_hybrid

SHAPES = {
    "one state": {"strips": 1, "most_rows": 1},
    "short strips": {"strips": 300, "most_rows": 2, "block_columns": 2},
    "few strips": {"strips": 3, "most_rows": 200, "most_jobs": 1},
    "plain": {},
    "long rows": {"strips": 60, "most_jobs": 20, "block_columns": 12},
    "more jobs than lanes": {"strips": 90, "most_jobs": 80, "block_columns": 4},
}
CHOICES = pytest.mark.parametrize("choices", [0, 1, 4])
every_shape = pytest.mark.parametrize("shape", SHAPES)


@pytest.fixture(params=["narrow", "wide"])
def width(request, monkeypatch):
    """Row offsets as the matrix wants them, and forced to 64 bits."""
    if request.param == "wide":
        monkeypatch.setattr(diagrams, "_is_wide", lambda _hybrid: True)
    return request.param


def expect(hybrid, matrix, groups, choices):
    oracle, oracle_groups, oracle_choices = expanded(hybrid)
    for name in ("row_offsets", "columns", "values"):
        np.testing.assert_array_equal(getattr(matrix, name), getattr(oracle, name))
    assert (groups is None) is (oracle_groups is None)
    if groups is not None:
        np.testing.assert_array_equal(groups, oracle_groups)
        np.testing.assert_array_equal(choices, oracle_choices)


@CHOICES
@every_shape
@pytest.mark.parametrize("kernel", ["fill_rows_staged", "fill_rows_by_thread", "fill_rows_by_warp"])
@pytest.mark.usefixtures("width")
def test_the_device_expands_what_plain_loops_do(shape, choices, kernel):
    tuning = ExpansionTuning(kernel, warp_row_entries=0 if kernel.endswith("warp") else 10**6)
    for seed in range(3):
        hybrid = random_hybrid(seed, choices=choices, **SHAPES[shape])
        found = expand_in_pieces(hybrid, tuning=tuning)
        expect(hybrid, found.matrix, found.row_group_offsets, found.choice_numbers)


@CHOICES
@pytest.mark.parametrize("piece_bytes", [1, 1000, 10**6])
def test_pieces_make_up_the_whole(choices, piece_bytes):
    hybrid = random_hybrid(5, choices=choices)
    found = expand_in_pieces(hybrid, tuning=ExpansionTuning(piece_bytes=piece_bytes))
    expect(hybrid, found.matrix, found.row_group_offsets, found.choice_numbers)


def test_a_state_with_more_entries_than_a_block_puts_together():
    size = 5000
    columns = np.arange(size, dtype=np.int32)
    lengths = np.ones(size, dtype=np.int64)
    lengths[[0, 130, 4999]] = size
    offsets = np.append(0, np.cumsum(lengths))
    row = np.repeat(np.arange(size), lengths)
    place = np.arange(int(offsets[-1])) - offsets[row]
    matrix = CsrMatrix(offsets, columns[place], 1.0 + place, size)
    found = expand_in_pieces(of_csr(matrix)).matrix
    for name in ("row_offsets", "columns", "values"):
        np.testing.assert_array_equal(getattr(found, name), getattr(matrix, name))


def fixed_bytes(hybrid):
    return hybrid_bytes(hybrid) + diagrams._index_bytes(hybrid)


@CHOICES
def test_what_does_not_fit_is_refused_before_it_is_allocated(choices):
    hybrid = random_hybrid(2, choices=choices)
    least = fixed_bytes(hybrid) + 12 * 200
    found = expand_in_pieces(hybrid, memory=least)
    expect(hybrid, found.matrix, found.row_group_offsets, found.choice_numbers)
    with pytest.raises(DeviceMemoryError, match="bytes are free"):
        expand_in_pieces(hybrid, memory=hybrid_bytes(hybrid))


@CHOICES
def test_the_estimate_covers_what_expansion_takes(gpu, choices):
    hybrid = random_hybrid(3, strips=3000, most_rows=30, choices=choices)
    rows = expanded(hybrid)[0].num_rows
    assert most_rows(hybrid) >= rows
    if not choices:
        assert most_rows(hybrid) == rows
    pool = gpu.cuda.MemoryPool()
    with gpu.cuda.using_allocator(pool.malloc):
        piece = 12 * hybrid.num_entries
        expand_in_pieces(hybrid, tuning=ExpansionTuning(piece_bytes=piece))
        assert pool.total_bytes() <= fixed_bytes(hybrid) + piece + 2**20


def test_more_states_than_32_bits_number_are_refused():
    hybrid = random_hybrid(1)
    far = hybrid.strip_states.copy()
    far[-1] = 2**31
    beyond = type(hybrid)(**{**vars(hybrid), "strip_states": far})
    with pytest.raises(UnsupportedError, match="2147483648 states"):
        expand_in_pieces(beyond)


SWEEPS = 70


def turned(matrix):
    """The transpose, columns ascending."""
    order = np.lexsort((matrix.row_of_entry(), matrix.columns))
    counts = np.bincount(matrix.columns, minlength=matrix.num_columns)
    return CsrMatrix(
        np.append(0, np.cumsum(counts)).astype(np.int32),
        matrix.row_of_entry()[order].astype(np.int32),
        matrix.values[order],
        matrix.num_rows,
    )


def systems(hybrid):
    """What is made of a square matrix without choices: a name, the system, its twin in CSR."""
    matrix = expanded(hybrid)[0]
    size = matrix.num_rows
    rng = np.random.default_rng(size)
    start = rng.uniform(0.1, 1.0, size)
    few, many = rng.integers(0, 3, size) / 4.0, rng.uniform(0.0, 1.0, size)
    some = np.arange(0, size, 3, dtype=np.int32)
    for name, parts in {
        "power": {},
        "offset": {"offset": few},
        "many numbers": {"offset": many, "omega": 0.9},
        "jacobi": {"offset": few, "scaling": Scaling.DIAGONAL},
    }.items():
        yield name, DiagramSystem(hybrid, start, **parts), SweepSystem(matrix, start, **parts)
    parts = {"offset": few[some], "states": some, "scaling": Scaling.DIAGONAL}
    of_some = SweepSystem(matrix.select_rows(some), start, **parts)
    yield "subset", DiagramSystem(hybrid, start, **parts), of_some
    parts = {"scaling": Scaling.BALANCE, "omega": 0.75}
    yield (
        "balance",
        DiagramSystem(of_csr(turned(matrix)), start, rates=hybrid, **parts),
        SweepSystem(matrix, start, **parts),
    )


def expect_the_same(found, expected, exact):
    for sweeper in (found, expected):
        sweeper.run(SWEEPS)
    ours, theirs = found.values(), expected.values()
    if exact:
        np.testing.assert_array_equal(ours, theirs)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-290)
    scale = np.abs(theirs[np.isfinite(theirs)]).max(initial=1.0)
    assert found.residual() == pytest.approx(expected.residual(), rel=1e-6, abs=1e-12 * scale)


@every_shape
@pytest.mark.parametrize("matrix_format", [Format.PATTERNS, Format.HYBRID])
def test_sweeps_without_a_matrix_are_those_of_csr(shape, matrix_format):
    hybrid = random_hybrid(11, **SHAPES[shape])
    for name, system, twin in systems(hybrid):
        found = diagram_sweeper(system, matrix_format)
        expected = CudaSweeper(twin, -1.0, True, 0, Format.CSR)
        assert found.cost.format == matrix_format
        divided = system.scaling is not Scaling.NONE
        by_thread = expected.cost.kernel == "rows_by_thread"
        exact = by_thread and not (divided and matrix_format is Format.HYBRID)
        expect_the_same(found, expected, exact)
        if matrix_format is Format.PATTERNS and name == "power":
            again = coded_from_csr(twin)
            for ours, theirs in zip(found._laid_out.layout.arguments, again, strict=True):
                if theirs is not None and hasattr(theirs, "get"):
                    np.testing.assert_array_equal(
                        ours.get().view(np.uint8), theirs.get().view(np.uint8)
                    )


def coded_from_csr(system):
    """The arrays of the row dictionary that is built of a matrix."""
    launcher = Launcher("int")
    device = upload(system, launcher, divided=False)
    source = source_of(device, launcher, system.matrix.num_rows, int(device.values.size))
    return patterns.build(source, launcher).arguments


@pytest.mark.parametrize("subset", [False, True])
@pytest.mark.parametrize("direction", Direction)
def test_choices_without_a_matrix(direction, subset):
    hybrid = random_hybrid(4, strips=200, choices=3)
    matrix, groups, _ = expanded(hybrid)
    rng = np.random.default_rng(1)
    offset = rng.integers(0, 3, matrix.num_rows) / 4.0
    start = rng.uniform(0.0, 1.0, hybrid.num_states)
    # A state without choices has no value.
    states = np.flatnonzero(np.diff(groups)).astype(np.int32)
    if subset:
        states = states[::3]
    rows = np.concatenate([np.arange(*groups[[s, s + 1]]) for s in states])
    some = np.append(0, np.cumsum(np.diff(groups)[states])).astype(np.int32)
    twin = SweepSystem(
        *(matrix.select_rows(rows), start, offset[rows], states),
        group_offsets=some,
        direction=direction,
    )
    system = DiagramSystem(hybrid, start, offset[rows], states, direction=direction)
    found = diagram_sweeper(system, Format.PATTERNS)
    expect_the_same(found, CudaSweeper(twin, -1.0, True, 0, Format.CSR), exact=True)
    with pytest.raises(UnsupportedError, match="swept for chains"):
        diagram_sweeper(system, Format.HYBRID)


def test_hashes_that_collide_are_noticed_and_another_function_is_taken(monkeypatch):
    hybrid = random_hybrid(11)
    system = DiagramSystem(hybrid, np.ones(hybrid.num_states))
    monkeypatch.setattr(diagram_patterns, "HASH_BITS", 3)
    with pytest.raises(UnsupportedError, match="each of 3 functions"):
        diagram_sweeper(system, Format.PATTERNS)
    # Only the first function collides.
    monkeypatch.setattr(diagram_patterns, "HASH_BITS", 2**63 - 1)
    expected = diagram_sweeper(system, Format.PATTERNS)
    plain, tried = diagram_patterns._gathered, []

    def narrow_at_first(rows, launcher, most, seed):
        tried.append(seed)
        monkeypatch.setattr(diagram_patterns, "HASH_BITS", 7 if len(tried) == 1 else 2**63 - 1)
        return plain(rows, launcher, most, seed)

    monkeypatch.setattr(diagram_patterns, "_gathered", narrow_at_first)
    found = diagram_sweeper(system, Format.PATTERNS)
    assert len(tried) == 2
    expect_the_same(found, expected, exact=True)


def test_too_many_distinct_rows_are_refused():
    hybrid = random_hybrid(11)
    system = DiagramSystem(hybrid, np.ones(hybrid.num_states))
    with pytest.raises(UnsupportedError, match="more than 3 distinct rows"):
        diagram_sweeper(system, Format.PATTERNS, most_patterns=3)


def test_a_start_that_is_on_the_device_is_taken_over(gpu):
    hybrid = random_hybrid(11)
    start = np.linspace(0.5, 1.0, hybrid.num_states)
    from_host, from_device = (
        diagram_sweeper(DiagramSystem(hybrid, vector), Format.PATTERNS)
        for vector in (start, gpu.asarray(start))
    )
    expect_the_same(from_device, from_host, exact=True)


def test_a_matrix_of_entries_is_not_swept_as_a_diagram():
    matrix = expanded(random_hybrid(2))[0]
    sweeper = CudaSweeper(
        SweepSystem(matrix, np.ones(matrix.num_rows)), -1.0, True, 0, Format.HYBRID
    )
    assert sweeper.cost.format == "csr"
    assert "not a diagram's" in told(sweeper.cost.events)


def test_parts_that_do_not_belong_together_are_refused():
    chain, mdp = random_hybrid(1), random_hybrid(1, choices=2)
    ones = np.ones(chain.num_states)
    wrong = [
        (DiagramSystem(chain, ones[1:]), ValueError),
        (DiagramSystem(chain, ones, direction=Direction.MINIMISE), ValueError),
        (DiagramSystem(mdp, np.ones(mdp.num_states)), ValueError),
        (DiagramSystem(chain, ones, scaling=Scaling.BALANCE), ValueError),
        (
            DiagramSystem(chain, ones, offset=ones, scaling=Scaling.BALANCE, rates=chain),
            UnsupportedError,
        ),
        (
            DiagramSystem(
                *(mdp, np.ones(mdp.num_states)),
                direction=Direction.MINIMISE,
                scaling=Scaling.DIAGONAL,
            ),
            UnsupportedError,
        ),
    ]
    for system, error in wrong:
        with pytest.raises(error):
            diagram_sweeper(system, Format.PATTERNS)
