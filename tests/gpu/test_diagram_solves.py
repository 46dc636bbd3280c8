"""Solves without a matrix end as those of the expanded model, sweep for sweep."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

from engines.cuda.diagram_rows import system_bytes
from engines.cuda.queued import HISTORY
from engines.diagrams.system import DiagramSystem
from engines.errors import ConvergenceError, DeviceMemoryError, UnsupportedError
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, Method, Precision, SolverEnvironment
from engines.model.events import Kind, told
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.result import Status
from engines.questions.reachability import solve_reachability
from engines.questions.steady_state import solve_steady_state
from engines.questions.without_matrix import (
    solve_reachability_without_matrix,
    solve_steady_state_without_matrix,
)
from engines.solve import system as solve
from engines.systems.one_sided import Scaling
from tests.engines import models
from tests.engines.diagrams.expansion import expand_matrix, hybrid_matrix
from tests.engines.diagrams.queue_diagrams import QueueDiagrams
from tests.engines.diagrams.random_diagrams import as_diagram

GPU = SolverEnvironment(device=DeviceChoice.GPU, matrix_format=Format.CSR)
PATTERNS = replace(GPU, matrix_format=Format.PATTERNS)
HYBRID = replace(GPU, matrix_format=Format.HYBRID)
FORMATS = pytest.mark.parametrize("matrix_format", [Format.PATTERNS, Format.HYBRID])


def but_for_errors(result):
    """What is told of a solve but for its error, which only with the matrix is measured."""
    return told(tuple(one for one in result.events if one.kind is not Kind.CHANGE_MISLEADS))


def expect_the_same(found, expected, matrix_format):
    """Values to the last bit where the rows are those of CSR, else to rounding."""
    assert "solved by" not in expected.note, "the sweeps of the oracle gave up"
    assert found.cost.format == matrix_format
    assert (found.status, found.method) == (expected.status, expected.method)
    assert found.iterations == expected.iterations
    if matrix_format is Format.PATTERNS:
        np.testing.assert_array_equal(found.values, expected.values)
        assert found.residual == expected.residual
        assert but_for_errors(found) == but_for_errors(expected)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12, atol=1e-290)
    # Another solution tells the error of a named method, and takes the matrix.
    if found.error_known:
        assert found.error_estimate == pytest.approx(expected.error_estimate, rel=1e-3, abs=1e-13)
    scale = np.abs(expected.values[np.isfinite(expected.values)]).max(initial=1.0)
    assert found.residual == pytest.approx(expected.residual, rel=1e-3, abs=1e-14 * scale)


@functools.cache
def chain(name):
    """A problem of reachability, the diagram of its chain, and the rewards of a step."""
    problem = {**models.chain_problems(), **models.reward_problems()}[name]
    matrix, rewards = problem.model.matrix, problem.rewards
    if problem.model.kind is ModelKind.CTMC:
        exits = matrix.row_sums()
        matrix = matrix.divide_rows(exits)
        # Rewards of absorbing states are not asked for.
        rewards = None if rewards is None else rewards / np.where(exits == 0.0, 1.0, exits)
    return problem, as_diagram(matrix), rewards


@FORMATS
@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("name", [*models.chain_problems(), *models.reward_problems()])
def test_reachability(name, absolute, matrix_format):
    problem, parts, rewards = chain(name)
    for method in (Method.AUTO, Method.POWER, Method.JACOBI, Method.JOR):
        environment = replace(GPU, method=method, absolute=absolute, max_iterations=2000)
        expected = solve_reachability(
            *(problem.model, problem.unknown, problem.start, environment), **problem.keywords
        )
        found = solve_reachability_without_matrix(
            *(*parts, problem.unknown, problem.start),
            replace(environment, matrix_format=matrix_format),
            rewards=rewards,
        )
        expect_the_same(found, expected, matrix_format)


RING = 7


@functools.cache
def self_stabilisation():
    """Herman's ring: a process that is as its neighbour takes a random value, else its own."""
    size = 2**RING
    bits = (np.arange(size)[:, None] >> np.arange(RING)[::-1]) & 1
    token = bits == np.roll(bits, 1, axis=1)
    dense = np.ones((size, size))
    for process in range(RING):
        kept = np.roll(bits, 1, axis=1)[:, process, None] == bits[None, :, process]
        dense *= np.where(token[:, process, None], 0.5, kept)
    rows = [{j: float(p) for j, p in enumerate(row) if p} for row in dense]
    return models.dtmc(rows), token.sum(axis=1) == 1


@FORMATS
@pytest.mark.parametrize("method", [Method.AUTO, Method.POWER, Method.JACOBI])
def test_the_steps_until_a_ring_is_stable(method, matrix_format):
    model, stable = self_stabilisation()
    rewards, start = np.ones(2**RING), np.zeros(2**RING)
    environment = replace(GPU, method=method, epsilon=1e-9)
    expected = solve_reachability(model, ~stable, start, environment, rewards=rewards)
    found = solve_reachability_without_matrix(
        *(*as_diagram(model.matrix), ~stable, start),
        replace(environment, matrix_format=matrix_format),
        rewards=rewards,
    )
    expect_the_same(found, expected, matrix_format)
    # Three tokens at equal distances need 4 N² / 27 steps and something, and no start more.
    assert found.values.max() <= 4.0 * RING**2 / 27.0 + 1e-6
    unknown = np.flatnonzero(~stable)
    within = np.zeros((2**RING, 2**RING))
    within[model.matrix.row_of_entry(), model.matrix.columns] = model.matrix.values
    within = within[np.ix_(unknown, unknown)]
    exact = np.linalg.solve(np.eye(len(unknown)) - within, np.ones(len(unknown)))
    np.testing.assert_allclose(found.values[unknown], exact, rtol=1e-7)


@functools.cache
def queues(number, capacity):
    """Tandem queues, their rates rising with the length of the first."""
    model = QueueDiagrams(number, capacity, lambda length: 0.75 + 0.125 * length)
    diagram, numbering = model.diagram(), model.numbering()
    return diagram, numbering, ExplicitModel(ModelKind.CTMC, expand_matrix(diagram, numbering))


@FORMATS
@pytest.mark.parametrize("method", [Method.AUTO, Method.JACOBI, Method.JOR])
def test_the_steady_state_of_queues(method, matrix_format):
    diagram, numbering, model = queues(2, 6)
    everywhere = np.ones(model.num_states, np.bool_)
    environment = replace(GPU, method=method, omega=0.8, max_iterations=600, epsilon=1e-8)
    expected = solve_steady_state(model, everywhere, environment)
    wanted = replace(environment, matrix_format=matrix_format)
    found = solve_steady_state_without_matrix(diagram, numbering, wanted)
    expect_the_same(found, expected, matrix_format)
    assert found.values.sum() == pytest.approx(1.0, abs=1e-12)
    if method is Method.JACOBI:
        return
    assert found.status is Status.CONVERGED
    generator = np.zeros((model.num_states,) * 2)
    generator[model.matrix.row_of_entry(), model.matrix.columns] = model.matrix.values
    generator -= np.diag(generator.sum(axis=1))
    generator[:, 0] = 1.0
    exact = np.linalg.solve(generator.T, np.eye(model.num_states)[0])
    np.testing.assert_allclose(found.values, exact, rtol=1e-6)


@FORMATS
@pytest.mark.parametrize("method", [Method.AUTO, Method.JOR])
@pytest.mark.parametrize(
    "name", [n for n, (_, members) in models.steady_state_problems().items() if members.all()]
)
def test_the_steady_state_of_small_classes(name, method, matrix_format):
    model, everywhere = models.steady_state_problems()[name]
    environment = replace(GPU, method=method)
    expected = solve_steady_state(model, everywhere, environment)
    wanted = replace(environment, matrix_format=matrix_format)
    found = solve_steady_state_without_matrix(*as_diagram(model.matrix), wanted)
    expect_the_same(found, expected, matrix_format)


@FORMATS
def test_a_hundred_thousand_states(matrix_format):
    diagram, numbering, model = queues(3, 45)
    everywhere = np.ones(model.num_states, np.bool_)
    # Named, and stopped long before it converges: the oracle would turn to a direct method.
    environment = replace(GPU, method=Method.JOR, max_iterations=40)
    expected = solve_steady_state(model, everywhere, environment)
    wanted = replace(environment, matrix_format=matrix_format)
    found = solve_steady_state_without_matrix(diagram, numbering, wanted)
    expect_the_same(found, expected, matrix_format)
    assert found.status is Status.NOT_CONVERGED
    with pytest.raises(ConvergenceError, match="did not converge within 40 iterations"):
        found.raise_unless_converged()


def test_sweeps_that_have_not_mixed_are_not_called_converged():
    model = models.uncoupled_blocks()
    # The blocks are at rest long before they have their weights, and no direct method helps.
    limited = replace(PATTERNS, max_iterations=3000, max_iterations_named=True)
    result = solve_steady_state_without_matrix(*as_diagram(model.matrix), limited)
    assert result.change < limited.epsilon
    assert result.status is Status.CHANGE_ONLY
    exact = solve_steady_state(model, np.ones(12, np.bool_), SolverEnvironment()).values
    assert np.abs(result.values / exact - 1.0).max() > 0.1
    assert result.error_estimate > 0.1


def test_slow_sweeps_of_a_named_method_are_warned_of():
    model = models.gamblers_ruin(40)
    problem = models.until(model, models.mask(41, [40]))
    parts = (*as_diagram(model.matrix), problem.unknown, problem.start)
    environment = replace(PATTERNS, method=Method.JACOBI, epsilon=1e-4)
    result = solve_reachability_without_matrix(*parts, environment)
    assert "converges slowly" in result.note
    exact = solve_reachability_without_matrix(*parts, replace(PATTERNS, max_iterations=10**5))
    assert exact.status is Status.CONVERGED
    np.testing.assert_allclose(exact.values, np.arange(41) / 40, rtol=1e-6)


def test_few_distinct_rows_are_patterns_and_many_are_not(monkeypatch):
    diagram, numbering, model = queues(2, 6)
    automatic = replace(GPU, matrix_format=Format.AUTO)
    few = solve_steady_state_without_matrix(diagram, numbering, automatic)
    assert (few.cost.format, few.cost.events, few.note) == ("patterns", (), "")
    monkeypatch.setattr("engines.cuda.formats.patterns.FEW_PATTERNS", 3)
    many = solve_steady_state_without_matrix(diagram, numbering, automatic)
    assert many.cost.format == "hybrid"
    reason = "format patterns not used: there are more than 3 distinct rows"
    assert told(many.cost.events) == many.note == reason
    np.testing.assert_allclose(many.values, few.values, rtol=1e-12)
    # Who names patterns has them, as long as there is room.
    named = solve_steady_state_without_matrix(diagram, numbering, PATTERNS)
    assert named.cost.format == "patterns"
    assert model.num_states == len(named.values)


@FORMATS
def test_memory_is_asked_for_before_it_is_taken(matrix_format):
    diagram, numbering, model = queues(2, 6)
    rates = hybrid_matrix(diagram, numbering)
    into = hybrid_matrix(diagram, numbering.transposed())
    start = np.ones(model.num_states)
    system = DiagramSystem(into, start, scaling=Scaling.BALANCE, rates=rates)
    need = system_bytes(system) + 16 * HISTORY
    enough = replace(GPU, matrix_format=matrix_format, device_memory=need)
    result = solve_steady_state_without_matrix(diagram, numbering, enough)
    # Another start, which shows whether the sweeps have mixed, has no room.
    assert "estimated from the last iterations alone: GPU 0: vectors of 49 states" in result.note
    more = replace(enough, device_memory=need + 16 * (model.num_states + HISTORY))
    assert solve_steady_state_without_matrix(diagram, numbering, more).note == ""
    little = replace(enough, device_memory=need - 1)
    expected = f"take about {need} bytes without the matrix, and {need - 1} bytes are free"
    with pytest.raises(DeviceMemoryError, match=expected):
        solve_steady_state_without_matrix(diagram, numbering, little)


def test_a_device_that_runs_out_of_memory_is_an_error(gpu, monkeypatch):
    def refuse(*_):
        raise gpu.cuda.memory.OutOfMemoryError(1, 2, 3)

    monkeypatch.setattr("engines.cuda.diagram_sweeps.laid_out", refuse)
    diagram, numbering, _ = queues(2, 6)
    with pytest.raises(DeviceMemoryError, match="GPU 0 ran out of memory without the matrix"):
        solve_steady_state_without_matrix(diagram, numbering, PATTERNS)


def test_the_formats_of_other_matrices_and_other_devices_are_refused():
    diagram, numbering, _ = queues(2, 6)
    with pytest.raises(UnsupportedError, match="the format csr needs an expanded matrix"):
        solve_steady_state_without_matrix(diagram, numbering, GPU)
    with pytest.raises(UnsupportedError, match="no GPU can be used: there is no device 99"):
        solve_steady_state_without_matrix(diagram, numbering, replace(PATTERNS, device_number=99))


def test_one_gpu_of_several_sweeps_and_says_so():
    diagram, numbering, _ = queues(2, 6)
    result = solve_steady_state_without_matrix(diagram, numbering, replace(HYBRID, num_devices=2))
    assert result.note == "without a matrix, only GPU 0 is used"


@pytest.mark.parametrize("precision", [Precision.SINGLE, Precision.MIXED])
def test_other_precisions_are_not_used_and_that_is_said(precision):
    diagram, numbering, _ = queues(2, 6)
    result = solve_steady_state_without_matrix(
        diagram, numbering, replace(PATTERNS, precision=precision)
    )
    expected = solve_steady_state_without_matrix(diagram, numbering, PATTERNS)
    np.testing.assert_array_equal(result.values, expected.values)
    assert f"-gpuprecision {precision}: rows without a matrix" in result.note
    assert result.note.endswith("computed in double precision")


def test_progress_is_told_and_the_start_left_alone():
    problem, parts, _ = chain("random DTMC")
    start, told = problem.start.copy(), []
    result = solve_reachability_without_matrix(
        *(*parts, problem.unknown, start, PATTERNS), progress=told.append
    )
    assert told[-1].iterations == result.iterations
    np.testing.assert_array_equal(start, problem.start)
    assert result.sweeping_seconds > 0.0
    assert result.seconds >= result.setup_seconds > 0.0


def test_no_number_is_made_of_negative_entries_as_if_sweeps_rose(monkeypatch):
    asked = []
    monkeypatch.setattr(
        solve, "rises_from_zero", lambda system: asked.append(system.matrix.values.min())
    )
    problem, (diagram, numbering), _ = chain("random DTMC")
    turned = replace(diagram, values=-0.5 * diagram.values)
    solve_reachability_without_matrix(turned, numbering, problem.unknown, problem.start, PATTERNS)
    assert asked[0] < 0.0
