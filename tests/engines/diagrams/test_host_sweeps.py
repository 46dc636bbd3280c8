"""Sweeps on the CPU in the hybrid representation: those of the expanded matrix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.cpu.diagram_sweeps import CpuDiagramSweeper, HostRows
from engines.cpu.engine import CpuEngine
from engines.cpu.gauss_seidel import CpuColourSweeper
from engines.cpu.prepare import scaled
from engines.diagrams.slices import SliceColours
from engines.diagrams.solve import (
    solve_reachability_without_matrix,
    solve_steady_state_without_matrix,
)
from engines.diagrams.system import DiagramSystem
from engines.environment import DeviceChoice, Method, SolverEnvironment
from engines.errors import UnsupportedError
from engines.formats.choice import Format
from engines.linear.colours import Colouring, Order, arrange
from engines.reachability import solve_reachability
from engines.steady_state import solve_steady_state
from engines.system import Scaling, SweepSystem
from tests.engines import models
from tests.engines.diagrams.random_diagrams import as_diagram
from tests.gpu.hybrids import expanded, random_hybrid

CPU = SolverEnvironment(device=DeviceChoice.CPU, matrix_format=Format.CSR)


def systems(seed, some_known, with_offset, scaling, omega=1.0):
    """A random system without its matrix, and its twin in CSR."""
    hybrid = random_hybrid(seed)
    matrix, _, _ = expanded(hybrid)
    rng = np.random.default_rng(seed)
    size = hybrid.num_states
    states = np.flatnonzero(rng.random(size) < 0.7).astype(np.int32) if some_known else None
    rows = matrix if states is None else matrix.select_rows(states)
    offset = rng.uniform(0.0, 1.0, rows.num_rows) if with_offset else None
    start = rng.uniform(0.5, 1.5, size)
    parts = {"scaling": scaling, "omega": omega}
    return (
        DiagramSystem(hybrid, start, offset, states, **parts),
        SweepSystem(rows, start, offset, states, **parts),
    )


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("scaling", [Scaling.NONE, Scaling.DIAGONAL])
@pytest.mark.parametrize("some_known", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_sweeps_without_colours(seed, some_known, scaling, absolute):
    ours, twin = systems(seed, some_known, seed % 2 == 0, scaling, 0.9)
    found = CpuDiagramSweeper(HostRows.of(ours), ours.start, 0.9, -1.0, absolute)
    expected = CpuEngine().sweeper(twin, -1.0, absolute)
    np.testing.assert_allclose(found.run(9), expected.run(9), rtol=1e-9)
    np.testing.assert_allclose(found.values(), expected.values(), rtol=1e-12)
    assert found.residual() == pytest.approx(expected.residual(), rel=1e-9)
    np.testing.assert_allclose(found.run(2), expected.run(2), rtol=1e-9)


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize(("slice_size", "count"), [(1, 2), (3, 4), (16, 3), (10**6, 1)])
@pytest.mark.parametrize("some_known", [False, True])
def test_sweeps_in_colours(some_known, slice_size, count, order):
    ours, twin = systems(6, some_known, True, Scaling.DIAGONAL, 1.1)
    rows = ours.num_updates
    colours = SliceColours(rows, slice_size, count, order)
    found = CpuDiagramSweeper(HostRows.of(ours), ours.start, 1.1, -1.0, False, colours)
    of_update = colours.of_rows(np.arange(rows)).astype(np.int32)
    same = Colouring(of_update, count, slice_size, 0.0, order)
    expected = CpuColourSweeper(arrange(scaled(twin), same), -1.0, False)
    np.testing.assert_allclose(found.run(7), expected.run(7), rtol=1e-9)
    np.testing.assert_allclose(found.values(), expected.values(), rtol=1e-12)
    assert found.residual() == pytest.approx(expected.residual(), rel=1e-9)
    np.testing.assert_allclose(found.run(2), expected.run(2), rtol=1e-9)


def test_sweeps_stop_by_themselves_and_do_not_depend_on_the_number_of_threads(monkeypatch):
    ours, _ = systems(8, False, True, Scaling.DIAGONAL)
    colours = SliceColours(ours.num_updates, 4, 3)
    results = []
    for entries in (50_000, 1):
        monkeypatch.setattr("engines.cpu.kernels.ENTRIES_PER_THREAD", entries)
        sweeper = CpuDiagramSweeper(HostRows.of(ours), ours.start, 1.0, 1e-6, True, colours)
        changes = sweeper.run(1000)
        assert changes[-1] < 1e-6 <= changes[-2]
        results.append(sweeper.values().copy())
    np.testing.assert_array_equal(*results)


def test_rows_of_choices_are_refused():
    hybrid = random_hybrid(1, choices=2)
    from engines.system import Direction

    system = DiagramSystem(hybrid, np.ones(hybrid.num_states), direction=Direction.MAXIMISE)
    with pytest.raises(UnsupportedError, match="for chains, not for choices"):
        HostRows.of(system)


def expect_the_same(found, expected):
    assert (found.status, found.method) == (expected.status, expected.method)
    assert found.iterations == expected.iterations
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-11, atol=1e-290)
    # Another solution tells the error of a named method, and takes the matrix.
    assert expected.error_known
    assert not found.error_known


METHODS = (Method.POWER, Method.JACOBI, Method.JOR, Method.GAUSS_SEIDEL, Method.BACKWARDS_SOR)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["random DTMC", "gambler's ruin"])
def test_until_probabilities(name, method):
    problem = {
        "random DTMC": models.chain_problems()["random DTMC"],
        "gambler's ruin": models.until(models.gamblers_ruin(20), models.mask(21, [20])),
    }[name]
    environment = replace(CPU, method=method, slice_size=3, colours=4, max_iterations=5000)
    expected = solve_reachability(
        *(problem.model, problem.unknown, problem.start, environment), **problem.keywords
    )
    found = solve_reachability_without_matrix(
        *(*as_diagram(problem.model.matrix), problem.unknown, problem.start),
        replace(environment, matrix_format=Format.HYBRID),
    )
    expect_the_same(found, expected)
    if method in METHODS[3:]:
        assert found.cost.format == "hybrid by colours"
        assert "in 4 colours, slices of 3 states" in found.note
        assert found.note.split(";")[0] == expected.note.split(";")[0]


@pytest.mark.parametrize("method", [Method.JOR, Method.GAUSS_SEIDEL, Method.SOR])
@pytest.mark.parametrize("seed", range(3))
def test_steady_states(seed, method):
    model = models.recurrent(seed, 90)
    everywhere = np.ones(90, np.bool_)
    environment = replace(CPU, method=method, slice_size=5, omega=0.95, epsilon=1e-9)
    expected = solve_steady_state(model, everywhere, environment)
    found = solve_steady_state_without_matrix(
        *as_diagram(model.matrix), replace(environment, matrix_format=Format.HYBRID)
    )
    expect_the_same(found, expected)
    assert found.values.sum() == pytest.approx(1.0, abs=1e-12)


def test_sweeps_that_swing_go_on_otherwise_as_those_of_the_matrix():
    model = models.cycle(30, 1.0 + 0.5 * (np.arange(30) % 5))
    everywhere = np.ones(30, np.bool_)
    environment = replace(CPU, method=Method.BACKWARDS_GAUSS_SEIDEL, slice_size=1, colours=2)
    expected = solve_steady_state(model, everywhere, environment)
    found = solve_steady_state_without_matrix(
        *as_diagram(model.matrix), replace(environment, matrix_format=Format.HYBRID)
    )
    assert "these sweeps swing" in expected.note
    assert found.note == expected.note
    expect_the_same(found, expected)


def test_an_omega_that_cannot_converge_is_refused():
    environment = replace(CPU, method=Method.SOR, omega=2.0, matrix_format=Format.HYBRID)
    with pytest.raises(UnsupportedError, match=r"omega between 0 and 2, not 2\.0"):
        solve_steady_state_without_matrix(*as_diagram(models.recurrent(1, 20).matrix), environment)
