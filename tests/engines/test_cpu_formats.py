"""Layouts of the CPU engine: the iterates of CSR to the last bit, however the matrix is kept."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.host import engine as cpu
from engines.host import layouts, run_encoding
from engines.host.engine import CpuEngine, CpuSweeper
from engines.model.choice import Format
from engines.model.csr import CsrMatrix
from engines.model.events import told
from engines.systems.one_sided import Direction, Scaling, SweepSystem

SWEEPS = 7


def by_loops(system: SweepSystem, sweeps: int) -> np.ndarray:
    """Sweep in plain Python, each row adding its entries in order."""
    x = system.start.copy()
    matrix = system.matrix
    states = np.arange(system.num_updates) if system.states is None else system.states
    groups = system.group_offsets
    for _ in range(sweeps):
        x_new = x.copy()
        for update, state in enumerate(states):
            begin, end = (update, update + 1)
            if groups is not None:
                begin, end = int(groups[update]), int(groups[update + 1])
            totals = []
            for row in range(begin, end):
                total = 0.0 if system.offset is None else float(system.offset[row])
                for entry in range(matrix.row_offsets[row], matrix.row_offsets[row + 1]):
                    total += float(matrix.values[entry]) * float(x[matrix.columns[entry]])
                totals.append(total)
            if groups is None:
                before = float(x[state])
                omega = system.omega
                x_new[state] = (
                    totals[0] if omega == 1.0 else (1.0 - omega) * before + omega * totals[0]
                )
            else:
                x_new[state] = (
                    min(totals) if system.direction is Direction.MINIMISE else max(totals)
                )
        x = x_new
    return x


def changes_and_values(system, matrix_format, absolute=False, sweeps=SWEEPS):
    sweeper = CpuEngine(matrix_format).sweeper(system, -1.0, absolute)
    return sweeper.run(sweeps), sweeper.values().copy(), sweeper


def in_runs(system, least_mean):
    """Return a sweeper over runs, however short they are."""
    runs = run_encoding.encode(system, least_mean=least_mean)
    layout = layouts.in_csr(system) if runs is None else layouts.in_runs(system, runs)
    return CpuSweeper(system, -1.0, False, Format.CSR, layout), runs


@st.composite
def repetitive_systems(draw):
    """Systems put together from few shapes of rows, over all states or some of them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.integers(1, 90))
    choices = draw(st.booleans())
    states = np.flatnonzero(rng.random(size) < draw(st.sampled_from([0.5, 0.95, 1.0])))
    shapes = [
        [
            [(int(d), float(rng.random())) for d in rng.integers(-4, 5, rng.integers(0, 8))]
            for _ in range(rng.integers(1, 4) if choices else 1)
        ]
        for _ in range(draw(st.integers(1, 3)))
    ]
    period = draw(st.sampled_from([1, 2, 50]))
    own_values = draw(st.booleans())
    offsets, groups, columns, values = [0], [0], [], []
    for state in states:
        shape = shapes[(state // period) % len(shapes)]
        for row in shape:
            for distance, value in row:
                if 0 <= state + distance < size:
                    columns.append(state + distance)
                    values.append(rng.random() if own_values else value)
            offsets.append(len(columns))
        groups.append(groups[-1] + len(shape))
    matrix = CsrMatrix(
        np.array(offsets, dtype=np.int32),
        np.array(columns, dtype=np.int32),
        np.array(values, dtype=np.float64),
        size,
    )
    kind = draw(st.sampled_from(["none", "shared", "own"]))
    given_vector = {
        "none": None,
        "shared": np.full(matrix.num_rows, 0.25),
        "own": rng.random(matrix.num_rows),
    }[kind]
    return SweepSystem(
        matrix,
        np.where(rng.random(size) < 0.1, 0.0, rng.random(size)),
        offset=given_vector,
        states=None if len(states) == size else states.astype(np.int32),
        omega=1.0 if choices else draw(st.sampled_from([1.0, 0.9])),
        group_offsets=np.array(groups, dtype=np.int32) if choices else None,
        direction=draw(st.sampled_from(Direction)) if choices else None,
    )


@given(repetitive_systems(), st.sampled_from([(1, 1), (10**9, 1), (3, 10**9)]))
def test_runs_sweep_as_plain_loops_do(system, least_mean):
    sweeper, runs = in_runs(system, least_mean)
    if least_mean == (1, 1) and system.matrix.num_entries:
        assert runs is not None
    sweeper.run(SWEEPS)
    np.testing.assert_array_equal(sweeper.values(), by_loops(system, SWEEPS))


@given(repetitive_systems())
def test_codes_for_values_sweep_as_plain_loops_do(system):
    _, values, sweeper = changes_and_values(system, Format.VALUES)
    assert sweeper.cost.format == "values"
    np.testing.assert_array_equal(values, by_loops(system, SWEEPS))


def lattice(height, width, seed=None):
    """Return a walk on a grid; with a seed each entry has a value of its own, unlike its twins."""
    here = np.arange(height * width).reshape(height, width)
    pairs = [
        (here[:, :-1], here[:, 1:], 0.3),
        (here[:, 1:], here[:, :-1], 0.2),
        (here[:-1], here[1:], 0.1),
        (here[1:], here[:-1], 0.4),
    ]
    row = np.concatenate([a.ravel() for a, _, _ in pairs])
    column = np.concatenate([b.ravel() for _, b, _ in pairs])
    value = np.concatenate([np.full(a.size, v) for a, _, v in pairs])
    if seed is not None:
        value = value * np.random.default_rng(seed).uniform(0.5, 1.0, len(value))
    order = np.lexsort((column, row))
    offsets = np.concatenate(([0], np.cumsum(np.bincount(row)))).astype(np.int32)
    size = height * width
    return CsrMatrix(offsets, column[order].astype(np.int32), value[order], size)


def phased(length, phases, seed=None):
    """Return a walk whose states have phases of different rows: no two neighbours are alike."""
    rng = np.random.default_rng(seed)
    offsets, columns, values = [0], [], []
    for place in range(length):
        for phase in range(phases):
            for ahead, change in [(1, 0), (-1, 1), (10, 2), (-7, 3), (0, 0), (3, 1)][: 1 + phase]:
                if 0 <= place + ahead < length:
                    columns.append((place + ahead) * phases + (phase + change) % phases)
                    values.append(0.25 if seed is None else rng.uniform(0.1, 0.3))
            offsets.append(len(columns))
    return CsrMatrix(
        np.array(offsets, dtype=np.int32),
        np.array(columns, dtype=np.int32),
        np.array(values),
        length * phases,
    )


@pytest.mark.parametrize(
    ("matrix", "name", "moved"),
    [
        (lattice(40, 300), "patterns", False),
        (lattice(40, 300, seed=1), "patterns with values apart", False),
        (phased(2000, 6), "patterns", True),
        (phased(2000, 6, seed=2), "patterns with values apart", True),
    ],
)
@pytest.mark.parametrize("absolute", [True, False])
def test_patterns_are_found_and_change_no_bit(matrix, name, moved, absolute):
    start = np.random.default_rng(5).random(matrix.num_rows)
    system = SweepSystem(matrix, start, omega=0.9)
    changes, values, _ = changes_and_values(system, Format.CSR, absolute)
    other, same, sweeper = changes_and_values(system, Format.PATTERNS, absolute)
    assert sweeper.cost.format == name
    assert (sweeper._layout.positions is not None) == moved
    assert sweeper.cost.bytes_per_sweep < system.bytes_per_sweep
    np.testing.assert_array_equal(same, values)
    np.testing.assert_allclose(other, changes, rtol=1e-15)
    csr = CpuEngine().sweeper(dataclasses.replace(system, start=same), -1.0, True)
    assert sweeper.residual() == pytest.approx(csr.residual(), rel=1e-12)


def test_a_right_hand_side_that_varies_does_not_split_the_runs():
    matrix = lattice(10, 500)
    system = SweepSystem(
        matrix, np.zeros(5000), offset=np.random.default_rng(6).random(5000), omega=0.9
    )
    _, values, _ = changes_and_values(system, Format.CSR)
    _, same, sweeper = changes_and_values(system, Format.PATTERNS)
    assert sweeper.cost.format == "patterns"
    np.testing.assert_array_equal(same, values)


def test_sweeps_stop_at_the_same_sweep():
    system = SweepSystem(lattice(30, 200), np.full(6000, 1.0), scaling=Scaling.DIAGONAL)
    counts = set()
    for matrix_format in (Format.CSR, Format.PATTERNS, Format.VALUES):
        sweeper = CpuEngine(matrix_format).sweeper(system, 1e-4, True)
        counts.add(sum(len(sweeper.run(64)) for _ in range(3)))
    assert len(counts) == 1
    assert 0 < counts.pop() < 192


def test_a_long_solve_goes_over_to_patterns():
    system = SweepSystem(lattice(150, 300), np.random.default_rng(7).random(45_000), omega=0.9)
    assert system.matrix.num_entries >= cpu.ENCODE_ENTRIES
    plain = CpuEngine(Format.CSR).sweeper(system, -1.0, False)
    sweeper = CpuEngine().sweeper(system, -1.0, False)
    for made in range(0, 200, 50):
        assert sweeper.cost.format == ("csr" if made <= cpu.ENCODE_SWEEPS else "patterns")
        np.testing.assert_allclose(sweeper.run(50), plain.run(50), rtol=1e-15)
        np.testing.assert_array_equal(sweeper.values(), plain.values())
    assert plain.cost.format == "csr"
    assert sweeper.cost.format == "patterns"


def test_formats_that_do_not_fit_are_named_in_a_remark():
    rng = np.random.default_rng(8)
    columns = rng.integers(0, 500, 2000).astype(np.int32)
    matrix = CsrMatrix(np.arange(0, 2001, 4, dtype=np.int32), columns, rng.random(2000), 500)
    system = SweepSystem(matrix, np.ones(500))
    for matrix_format, reason in [
        (Format.PATTERNS, "too few neighbouring rows"),
        (Format.SEGMENTS, "the CPU knows csr, values and patterns"),
    ]:
        cost = CpuEngine(matrix_format).sweeper(system, -1.0, True).cost
        assert cost.format == "csr"
        assert told(cost.events).startswith(f"-gpuformat {matrix_format}: {reason}")
    assert CpuEngine(Format.CSR).sweeper(system, -1.0, True).cost.events == ()


def test_more_values_than_codes_stay_in_csr():
    size = 70_000
    loops = np.arange(size, dtype=np.int32)
    values = np.random.default_rng(9).random(size)
    matrix = CsrMatrix(np.arange(size + 1, dtype=np.int32), loops, values, size)
    cost = CpuEngine(Format.VALUES).sweeper(SweepSystem(matrix, np.ones(size)), -1.0, True).cost
    assert cost.format == "csr"
    assert "more than 65536 distinct values" in told(cost.events)


def test_runs_are_short_enough_to_be_shared_out():
    size = 10_000
    loops = np.arange(size, dtype=np.int32)
    matrix = CsrMatrix(np.arange(size + 1, dtype=np.int32), loops, np.ones(size), size)
    runs = run_encoding.encode(SweepSystem(matrix, np.ones(size)))
    assert runs.lengths.max() == run_encoding.LONGEST_RUN
    assert runs.lengths.sum() == size
