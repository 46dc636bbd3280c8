"""Sweeps in colours without a matrix: the device's are those of the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.cuda.diagram_reach import reached_on_device
from engines.devices.diagram_device import DeviceDiagramEngine
from engines.devices.diagram_host import HostDiagramEngine
from engines.diagrams.system import DiagramSystem
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.host.colours import Order
from engines.host.diagram_colours import ColouredDiagram
from engines.host.expansion.slices import SliceColours
from engines.host.hybrid import HostHybrid
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.questions.diagram_long_run import LongRun
from engines.questions.steady_state import solve_steady_state
from engines.questions.without_matrix import (
    solve_reachability_without_matrix,
    solve_steady_state_without_matrix,
)
from engines.systems.one_sided import Scaling
from tests.engines import models
from tests.engines.diagrams.expansion import expand_matrix, hybrid_matrix
from tests.engines.diagrams.queue_diagrams import QueueDiagrams
from tests.engines.diagrams.random_diagrams import as_diagram
from tests.gpu.hybrids import of_csr, random_hybrid

GPU = SolverEnvironment(
    device=DeviceChoice.GPU, matrix_format=Format.HYBRID, method=Method.GAUSS_SEIDEL
)
CPU = replace(GPU, device=DeviceChoice.CPU)
SHAPES = {"small": {}, "large": {"strips": 3000, "most_rows": 40}}


def systems(shape, some_known, scaling):
    hybrid = random_hybrid(4, **SHAPES[shape])
    rng = np.random.default_rng(4)
    size = hybrid.num_states
    states = np.flatnonzero(rng.random(size) < 0.7).astype(np.int32) if some_known else None
    rows = size if states is None else len(states)
    offset, start = rng.uniform(0.0, 1.0, rows), rng.uniform(0.5, 1.5, size)
    return DiagramSystem(hybrid, start, offset, states, scaling=scaling)


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize(("slice_size", "count"), [(1, 3), (3, 4), (64, 2), (1000, 8), (10**6, 1)])
@pytest.mark.parametrize("scaling", [Scaling.NONE, Scaling.DIAGONAL])
@pytest.mark.parametrize("some_known", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_sweeps_are_those_of_the_cpu(shape, some_known, scaling, slice_size, count, order):
    system = systems(shape, some_known, scaling)
    slices = -(-system.num_updates // slice_size)
    colours = SliceColours(system.num_updates, slice_size, min(count, slices), order)
    found = []
    for engine in (HostDiagramEngine(system, CPU), DeviceDiagramEngine(system, GPU)):
        coloured = ColouredDiagram(system.start, 0.95, colours)
        sweeper = engine.coloured_sweeper(coloured, -1.0, False)
        # As many as are captured in a graph, and some beside.
        changes = sweeper.run(67)
        found.append((changes, sweeper.values(), sweeper.residual()))
    (changes, values, residual), (on_device, there, residual_there) = found
    # A relative change is the difference of two numbers that were both rounded.
    rounding = 8.0 * np.finfo(float).eps
    np.testing.assert_allclose(on_device[:20], changes[:20], rtol=1e-8, atol=rounding)
    np.testing.assert_allclose(there, values, rtol=1e-11)
    assert residual_there == pytest.approx(residual, rel=1e-3, abs=1e-13)


@pytest.mark.parametrize("method", [Method.GAUSS_SEIDEL, Method.BACKWARDS_SOR])
def test_sweeps_stop_with_the_iterate_of_the_first_that_met_the_test(method):
    problem = models.until(models.gamblers_ruin(60), models.mask(61, [60]))
    parts = (*as_diagram(problem.model.matrix), problem.unknown, problem.start)
    results = [
        solve_reachability_without_matrix(
            *parts, replace(environment, method=method, epsilon=1e-9, max_iterations=20_000)
        )
        for environment in (CPU, GPU)
    ]
    assert results[0].iterations == results[1].iterations
    assert results[1].cost.format == "hybrid by colours"
    np.testing.assert_allclose(results[1].values, results[0].values, rtol=1e-12)


@pytest.mark.parametrize("slice_size", [1, 40, None])
def test_the_steady_state_of_queues_is_that_of_the_matrix(slice_size):
    queues = QueueDiagrams(3, 30, lambda length: 0.75 + 0.125 * length)
    diagram, numbering = queues.diagram(), queues.numbering()
    model = ExplicitModel(ModelKind.CTMC, expand_matrix(diagram, numbering))
    environment = replace(GPU, method=Method.SOR, omega=0.95, slice_size=slice_size)
    environment = replace(environment, epsilon=1e-9, max_iterations=100_000)
    found = solve_steady_state_without_matrix(diagram, numbering, environment)
    cpu = replace(environment, device=DeviceChoice.CPU)
    on_cpu = solve_steady_state_without_matrix(diagram, numbering, cpu)
    assert found.note.split(";")[0].startswith("forwards in ")
    np.testing.assert_allclose(found.values, on_cpu.values, rtol=1e-6)
    if slice_size is not None:
        everywhere = np.ones(model.num_states, np.bool_)
        expected = solve_steady_state(model, everywhere, replace(cpu, matrix_format=Format.CSR))
        assert found.iterations == on_cpu.iterations == expected.iterations
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)


@pytest.mark.parametrize("method", [Method.AUTO, Method.JOR, Method.GAUSS_SEIDEL])
@pytest.mark.parametrize("matrix_format", [Format.AUTO, Format.HYBRID])
def test_the_long_run_behind_transient_states(method, matrix_format):
    rows = [{k + 1: 1.0, 9: 0.5} for k in range(9)]
    inner = models.recurrent(2, 40)
    for row in range(40):
        entries = range(*inner.matrix.row_offsets[row : row + 2])
        rows.append({int(inner.matrix.columns[e]) + 9: inner.matrix.values[e] for e in entries})
    model = models.ctmc(rows)
    initial = np.eye(model.num_states)[0]
    environment = replace(GPU, method=method, matrix_format=matrix_format, epsilon=1e-10)
    results = [
        LongRun.of_diagram(*as_diagram(model.matrix)).distribution(
            initial, replace(environment, device=device)
        )
        for device in (DeviceChoice.CPU, DeviceChoice.GPU)
    ]
    np.testing.assert_array_equal(results[1].values[:9], 0.0)
    np.testing.assert_allclose(results[1].values, results[0].values, rtol=1e-8)
    assert results[1].cost.engine == "GPU 0"


def test_patterns_are_not_swept_in_colours_and_memory_is_asked_for():
    system = systems("small", False, Scaling.DIAGONAL)
    with pytest.raises(UnsupportedError, match="one by one: hybrid, not patterns"):
        DeviceDiagramEngine(system, replace(GPU, matrix_format=Format.PATTERNS))
    with pytest.raises(DeviceMemoryError, match="and 100 bytes are free"):
        DeviceDiagramEngine(system, replace(GPU, device_memory=100))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("size", [1, 33, 5_000, 200_000])
def test_walks_reach_what_those_of_the_cpu_reach(size, transposed):
    # A line with some ways back: some thousand rounds, and one state a round.
    rng = np.random.default_rng(size)
    back = {int(s): int(rng.integers(0, s + 1)) for s in rng.integers(0, size, size // 10)}
    first, last = 0, size - 1
    rows = [{min(s + 1 + s % 3, last): 1.0, back.get(s, s): 0.5} for s in range(size)]
    matrix = models.ctmc(rows).matrix
    diagram, numbering = as_diagram(matrix) if size < 100 else (None, None)
    hybrid = of_csr(matrix)
    if diagram is not None:
        turned = numbering.transposed() if transposed else numbering
        hybrid = hybrid_matrix(diagram, turned)
    for state in {first, size // 2, last}:
        expected, _ = HostHybrid.of(hybrid).reached_from(state)
        found, farthest = reached_on_device(hybrid, state)
        np.testing.assert_array_equal(found, expected)
        assert found[farthest]


def test_a_walk_without_room_is_the_cpu_s_and_says_so(monkeypatch):
    model = models.recurrent(2, 40)
    monkeypatch.setattr("engines.cuda.diagram_reach.available_bytes", lambda _: 10)
    result = LongRun.of_diagram(*as_diagram(model.matrix)).distribution(np.eye(40)[0], GPU)
    assert "recurrent class found on the CPU: GPU 0: blocks and sets of 40" in result.note
