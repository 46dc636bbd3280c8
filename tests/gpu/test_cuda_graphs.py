"""Exact numbers of sweeps through CUDA graphs, and the vector that the last sweep wrote."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.cuda.engine import CudaEngine
from engines.cuda.queued import HISTORY, STRETCH
from engines.host.engine import CpuEngine
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.model.result import Status
from engines.questions.reachability import solve_reachability
from engines.systems.one_sided import Direction, SweepSystem
from tests.engines import models

COUNTS = [1, 2, 63, 64, 65, 127, 128, 129, 192, 200, 1000, 4096, 4000]


def counter(length):
    """x_i ← x_{i−1}, x_0 ← 1: after k sweeps exactly the first k states hold 1."""
    rows = [{0: 1.0}] + [{i - 1: 1.0} for i in range(1, length)]
    start = np.zeros(length)
    start[0] = 1.0
    return SweepSystem(models.csr(rows), start)


def geometric(rate):
    """x ← rate·x from 1: the change of each sweep is known, and the value counts the sweeps."""
    return SweepSystem(models.csr([{0: rate}]), np.ones(1))


def after(system, sweeps, stop_below=-1.0, *, absolute=True):
    sweeper = CudaEngine().sweeper(system, stop_below, absolute)
    return sweeper, sweeper.run(sweeps)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.usefixtures("offsets")
def test_so_many_sweeps_are_made_and_no_more(count):
    sweeper, changes = after(counter(6000), count)
    assert len(changes) == count
    assert (changes == 1.0).all()
    expected = np.arange(6000) <= count
    np.testing.assert_array_equal(sweeper.values(), expected.astype(float))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.usefixtures("offsets")
def test_the_sweep_that_meets_the_test_is_the_last(count):
    # Sweep k changes the value by rate^(k−1) (1 − rate); the threshold lies between two of these.
    rate = 0.99
    change = rate ** (count - 1) * (1 - rate)
    sweeper, changes = after(geometric(rate), HISTORY, change * 1.001)
    assert len(changes) == count
    np.testing.assert_allclose(changes, rate ** np.arange(count) * (1 - rate), rtol=1e-9)
    assert sweeper.values()[0] == pytest.approx(rate**count, rel=1e-12)


@pytest.mark.parametrize(
    "batches", [[1, 1, 1], [63, 1, 64], [65, 65, 65], [64, 7, 128, 1], [3, 64]]
)
def test_batches_add_up_whatever_their_parity(batches):
    system = counter(1000)
    sweeper = CudaEngine().sweeper(system, -1.0, True)
    for count in batches:
        assert len(sweeper.run(count)) == count
        # A look at the residual or the values must not disturb the iterate.
        assert sweeper.residual() == 1.0
    expected = np.arange(1000) <= sum(batches)
    np.testing.assert_array_equal(sweeper.values(), expected.astype(float))


@pytest.mark.parametrize("met", [1, 2, 63, 64, 65, 66, 127, 128, 150])
def test_states_without_a_row_survive_either_parity(met):
    rate = 0.9
    matrix = models.csr([{1: rate}], 3)
    start = np.array([7.0, 1.0, 9.0])
    system = SweepSystem(matrix, start, states=np.array([1], dtype=np.int32))
    sweeper, changes = after(system, 200, rate ** (met - 1) * (1 - rate) * 1.001)
    assert len(changes) == met
    np.testing.assert_allclose(sweeper.values(), [7.0, rate**met, 9.0], rtol=1e-12)


@pytest.mark.parametrize("size", [1, 31, 32, 33, 255, 256, 257, 70_000])
def test_the_change_is_the_maximum_over_all_blocks(size):
    # Only one state changes; wherever it lies, its change is seen.
    for place in {0, size // 2, size - 1}:
        start = np.ones(size)
        start[place] = 4.0
        system = SweepSystem(models.csr([{i: 0.5} for i in range(size)]), start)
        zeroed = replace(system, offset=np.full(size, 0.5))
        _, changes = after(zeroed, 3)
        np.testing.assert_allclose(changes, [1.5, 0.75, 0.375])
        _, changes = after(zeroed, 1, absolute=False)
        np.testing.assert_allclose(changes, [1.5 / 4.0])


def test_zero_over_zero_is_no_change_and_a_rise_from_zero_an_infinite_one():
    system = SweepSystem(models.csr([{0: 1.0}, {1: 1.0}]), np.zeros(2), np.array([0.0, 0.0]))
    assert after(system, 1, absolute=False)[1][0] == 0.0
    system = replace(system, offset=np.array([0.0, 1e-300]))
    assert after(system, 1, absolute=False)[1][0] == np.inf
    infinite = replace(system, start=np.array([np.inf, 1.0]), offset=np.zeros(2))
    assert after(infinite, 1, absolute=False)[1][0] == 0.0


def test_more_sweeps_than_slots_are_cut_to_the_slots():
    sweeper, changes = after(geometric(1.0), HISTORY + 100)
    assert len(changes) == HISTORY
    assert HISTORY % STRETCH == 0
    np.testing.assert_array_equal(sweeper.values(), [1.0])


def test_a_sweeper_that_stopped_and_is_asked_again_does_not_step_back():
    sweeper, changes = after(geometric(0.5), 500, 1e-6)
    value = sweeper.values()[0]
    assert sweeper.run(10)[-1] <= changes[-1]
    assert sweeper.values()[0] <= value


@pytest.mark.parametrize("limit", [1, 63, 64, 65, 127, 128, 200, 4000])
@pytest.mark.usefixtures("offsets")
def test_limits_of_a_solve_are_exact(limit):
    problem = models.until(models.gamblers_ruin(100), models.mask(101, [100]))
    results = [
        solve_reachability(
            problem.model,
            problem.unknown,
            problem.start,
            SolverEnvironment(
                method=Method.JACOBI, epsilon=0.0, max_iterations=limit, device=device
            ),
        )
        for device in (DeviceChoice.CPU, DeviceChoice.GPU)
    ]
    for result in results:
        assert (result.iterations, result.status) == (limit, Status.NOT_CONVERGED)
    np.testing.assert_allclose(results[1].values, results[0].values, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("count", [1, 64, 65, 130])
@pytest.mark.parametrize("direction", Direction)
@pytest.mark.usefixtures("offsets")
def test_groups_of_choices_take_the_same_sweeps(direction, count):
    model = models.proper_mdp(1)
    system = SweepSystem(
        model.matrix,
        np.zeros(50),
        models.random_rewards(1, model.matrix.num_rows),
        group_offsets=model.row_group_offsets,
        direction=direction,
    )
    sweepers = [engine.sweeper(system, -1.0, True) for engine in (CpuEngine(), CudaEngine())]
    here, there = (sweeper.run(count) for sweeper in sweepers)
    np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sweepers[1].values(), sweepers[0].values(), rtol=1e-12)
