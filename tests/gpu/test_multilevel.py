"""Cycles on the GPU: the levels of the CPU, its changes, its steady states."""

from __future__ import annotations

import weakref
from dataclasses import replace

import numpy as np
import pytest

from engines.cuda import levels
from engines.cuda import multilevel as cuda
from engines.cuda.engine import CudaEngine
from engines.diagrams.system import DiagramSystem
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.exploration.run_matrix import RunMatrix
from engines.host.engine import CpuEngine
from engines.host.levels import CpuLevels
from engines.methods.levels import solve_by_levels
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.result import Status
from engines.model.row_runs import RunCollector
from engines.questions.diagram_long_run import LongRun
from engines.questions.without_matrix import balance_of_runs
from engines.solve.stages import LEVELS, Levels
from engines.systems.multilevel import CycleTuning
from engines.systems.one_sided import Scaling
from tests.engines import models
from tests.engines.test_multilevel import balance, blocks, two_queues
from tests.gpu import big

pytestmark = pytest.mark.gpu

CASES = {
    "queues": lambda: two_queues(150),
    "random": lambda: big.random_rates(3, 30_000).matrix,
    "line": lambda: models.birth_death(1300, 1.0, 4.0).matrix,
    "blocks": lambda: blocks(60, 5, 1e-6),
    "small": lambda: models.recurrent(2, 50).matrix,
}


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("case", CASES)
def test_the_levels_and_the_cycles_are_those_of_the_cpu(case):
    system = balance(CASES[case]())
    cpu = CpuLevels(system, -1.0, False)
    gpu = cuda.cuda_levels(system, -1.0, False, 0)
    assert gpu.sizes == cpu.sizes
    # An odd number of cycles, a run by direct launches, and runs by graphs from either vector.
    whole = CycleTuning().cycles_a_run
    for cycles in (5, whole, whole, 1, whole):
        ours, theirs = gpu.run(cycles), cpu.run(cycles)
        assert len(ours) == len(theirs)
        large = theirs > 1e-9
        np.testing.assert_allclose(ours[large], theirs[large], rtol=1e-4)
        looked_at = cpu.values() > 1e-250
        np.testing.assert_allclose(gpu.values()[looked_at], cpu.values()[looked_at], rtol=1e-8)
    assert gpu.seconds > 0.0


def in_runs(matrix):
    collector = RunCollector()
    collector.add(matrix.row_offsets, matrix.columns, matrix.values)
    return collector.runs()


def balance_by_runs(matrix):
    """The system of `balance`, whose rows are kept as runs."""
    matrices = balance_of_runs(in_runs(matrix))
    return DiagramSystem(
        matrices.into,
        balance(matrix).start,
        scaling=Scaling.BALANCE,
        rates=matrices.rates,
        flows=matrices.flows,
    )


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("entries_in_32_bits", [True, False])
@pytest.mark.parametrize("case", sorted(CASES.keys() - {"small"}))
def test_runs_of_rows_make_the_same_cycles(monkeypatch, case, entries_in_32_bits):
    matrix = CASES[case]()
    # Several entries in one place are one.
    cpu = CpuLevels(balance(RunMatrix.of(in_runs(matrix))), -1.0, False)
    if not entries_in_32_bits:
        monkeypatch.setattr(levels, "NARROW_ENTRIES", 100)
    gpu = cuda.cuda_levels(balance_by_runs(matrix), -1.0, False, 0)
    assert gpu.sizes == cpu.sizes
    for cycles in (5, CycleTuning().cycles_a_run):
        gpu.run(cycles)
        cpu.run(cycles)
        looked_at = cpu.values() > 1e-250
        np.testing.assert_allclose(gpu.values()[looked_at], cpu.values()[looked_at], rtol=1e-8)


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("by_runs", [True, False])
def test_two_iterates_take_turns(by_runs):
    matrix = two_queues(60)
    system = balance_by_runs(matrix) if by_runs else balance(matrix)
    rng = np.random.default_rng(4)
    starts = [rng.uniform(0.5, 2.0, matrix.num_rows) for _ in range(3)]
    first = cuda.cuda_levels(replace(system, start=starts[0]), -1.0, False, 0)
    second = first.restarted(starts[1])
    whole = CycleTuning().cycles_a_run
    for cycles in (1, whole, whole):
        for each in (second, first):
            each.run(cycles)
    third = second.restarted(starts[2])
    seen = second.values()
    del second
    third.run(2)
    first.run(1)
    made = 2 * whole + 1
    for sweeper, start, cycles in ((first, starts[0], made + 1), (third, starts[2], 2)):
        alone = cuda.cuda_levels(replace(system, start=start), -1.0, False, 0)
        for _ in range(cycles):
            alone.run(1)
        np.testing.assert_allclose(sweeper.values(), alone.values(), rtol=1e-13)
        assert sweeper.comparison(alone.values(), 0.0)() < 1e-13
    alone = cuda.cuda_levels(replace(system, start=starts[1]), -1.0, False, 0)
    for _ in range(made):
        alone.run(1)
    np.testing.assert_allclose(seen, alone.values(), rtol=1e-13)


def test_the_sweeps_give_their_memory_to_the_cycles(monkeypatch):
    matrix = two_queues(150)
    swept_by, attempts, made = [], [], cuda.cuda_levels
    run = Levels.run

    def noted(stage, solve):
        swept_by.append(weakref.ref(solve.sweeper))
        return run(stage, solve)

    def cramped(*how):
        attempts.append(sum(each() is not None for each in swept_by))
        if attempts[-1]:
            raise DeviceMemoryError("beside others")
        return made(*how)

    monkeypatch.setattr(Levels, "run", noted)
    monkeypatch.setattr(cuda, "cuda_levels", cramped)
    monkeypatch.setattr(Levels, "takes_over", lambda _levels, made, _expected: made > 0)
    earned = np.arange(matrix.num_rows) % 150.0
    environment = SolverEnvironment(device=DeviceChoice.GPU)
    result = LongRun.of_runs(in_runs(matrix)).average(earned, environment)
    assert attempts == [1, 0]
    assert result.status is Status.CONVERGED
    assert result.residual < 1e-9


def test_too_few_states_in_runs_are_left_to_sweeps():
    with pytest.raises(UnsupportedError, match="50 states are too few to be joined"):
        cuda.cuda_levels(balance_by_runs(CASES["small"]()), -1.0, False, 0)


def test_too_many_kinds_of_states_are_left_to_sweeps(monkeypatch):
    monkeypatch.setattr(levels, "MOST_KINDS", 3)
    with pytest.raises(UnsupportedError, match="kinds of states are more than 3"):
        cuda.cuda_levels(balance_by_runs(two_queues(50)), -1.0, False, 0)


def test_too_many_flows_between_aggregates_are_left_to_sweeps(monkeypatch):
    monkeypatch.setattr(levels, "NARROW_ENTRIES", 100)
    monkeypatch.setattr(levels, "INT32_MAX", 200)
    with pytest.raises(UnsupportedError, match="aggregates have more flows than 32 bits number"):
        cuda.cuda_levels(balance_by_runs(two_queues(50)), -1.0, False, 0)


def test_cycles_take_over_from_sweeps_of_runs(monkeypatch):
    matrix = two_queues(150)
    earned = np.arange(matrix.num_rows) % 150.0
    expected, _ = solve_by_levels(
        balance(matrix), CpuEngine(), SolverEnvironment(), balance(matrix).start
    )
    monkeypatch.setattr(Levels, "takes_over", lambda _levels, made, _expected: made > 0)
    environment = SolverEnvironment(device=DeviceChoice.GPU)
    result = LongRun.of_runs(in_runs(matrix)).average(earned, environment)
    assert result.status is Status.CONVERGED
    assert result.values == pytest.approx(np.full(len(earned), expected @ earned), rel=1e-6)
    assert any(LEVELS in str(event) for event in result.events)
    assert result.residual < 1e-9


@pytest.mark.parametrize("case", CASES)
def test_steady_states(case):
    system = balance(CASES[case]())
    ours, error = solve_by_levels(system, CudaEngine(), SolverEnvironment(), system.start)
    theirs, _ = solve_by_levels(system, CpuEngine(), SolverEnvironment(), system.start)
    large = theirs > 1e-200
    np.testing.assert_allclose(ours[large], theirs[large], rtol=1e-5)
    assert error < 1e-6


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("cycles", [False, True])
def test_an_iterate_is_compared_where_it_lies(case, cycles):
    system = balance(CASES[case]())
    if cycles:
        gpu = cuda.cuda_levels(system, -1.0, False, 0)
    else:
        gpu = CudaEngine().sweeper(system, -1.0, False)
    reference = np.random.default_rng(7).random(system.num_states)
    least = 0.25
    farthest = gpu.comparison(reference, least)
    for sweeps in (1, 2, 5):
        gpu.run(sweeps)
        quotients = gpu.values()[reference > least] / reference[reference > least]
        assert farthest() == np.abs(quotients - 1.0).max()
    reference[:] = least
    assert gpu.comparison(reference, least)() == 0.0


def test_what_is_no_number_is_far_from_everything():
    system = balance(CASES["small"]())
    gpu = CudaEngine().sweeper(system, -1.0, False)
    reference = np.ones(system.num_states)
    reference[3] = np.inf
    gpu.restart(np.full(system.num_states, np.inf))
    assert np.isnan(gpu.comparison(reference, 0.0)())


def test_two_solves_give_the_same_digits():
    system = balance(two_queues(150))
    first, second = (
        solve_by_levels(system, CudaEngine(), SolverEnvironment(), system.start)[0]
        for _ in range(2)
    )
    assert np.array_equal(first, second)


def test_a_star_is_refused():
    size = 500
    rows = [dict.fromkeys(range(1, size), 1.0), *({0: 2.0} for _ in range(1, size))]
    with pytest.raises(UnsupportedError, match=r"aggregates only|too many others"):
        cuda.cuda_levels(balance(models.ctmc(rows).matrix), -1.0, False, 0)


def test_a_device_too_small_is_named(monkeypatch):
    monkeypatch.setattr("engines.cuda.memory.available_bytes", lambda _most: 0)
    with pytest.raises(DeviceMemoryError, match="needed for the levels, 0 bytes available"):
        cuda.cuda_levels(balance(two_queues(50)), -1.0, False, 0)


def test_no_more_memory_is_taken_than_is_allowed():
    with pytest.raises(DeviceMemoryError, match="needed for the levels"):
        cuda.cuda_levels(balance(two_queues(150)), -1.0, False, 0, most_memory=10_000)
