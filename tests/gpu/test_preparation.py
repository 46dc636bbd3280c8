"""Scaling and transposition on the device give the host's matrices; memory is written or unread."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cuda import prepare
from engines.cuda.engine import CudaEngine
from engines.cuda.modules import Launcher
from engines.cuda.src import OFFSET_TYPES
from engines.host.scaling import balance_matrix, scaled
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.model.result import Status
from engines.questions.reachability import solve_reachability
from engines.questions.steady_state import solve_steady_state
from engines.systems.one_sided import Direction, Scaling, SweepSystem
from tests.engines import models
from tests.gpu import big


@pytest.fixture(params=OFFSET_TYPES)
def launcher(request):
    return Launcher(request.param)


def uniform(size):
    return np.full(size, 1.0 / size)


SIZES = [2, 31, 1022, 1023, 1024, 1025, 2047, 5000]


@pytest.mark.parametrize("size", SIZES)
def test_the_device_transposes_bit_for_bit(launcher, size):
    rates = big.random_rates(size, size, 4).matrix
    system = SweepSystem(rates, uniform(size), scaling=Scaling.BALANCE)
    device = prepare.upload(system, launcher)
    expect_the_host(device, balance_matrix(rates))


def expect_the_host(device, host):
    offsets, columns, values = (
        getattr(device, name).get() for name in ("row_offsets", "columns", "values")
    )
    np.testing.assert_array_equal(offsets, host.row_offsets)
    # Entries of one row and column, should there be several, come in any order.
    row = host.row_of_entry()
    here = np.lexsort((values, columns, row))
    there = np.lexsort((host.values, host.columns, row))
    np.testing.assert_array_equal(columns[here], host.columns[there])
    np.testing.assert_array_equal(values[here], host.values[there])
    assert (np.diff(columns)[np.diff(row) == 0] >= 0).all()


@pytest.mark.slow
def test_the_device_transposes_over_two_levels_of_sums(launcher):
    # More than 1024 × 1024 states: the block totals need a scan of their own blocks.
    rates = big.birth_death(1024 * 1024 + 7).matrix
    device = prepare.upload(
        SweepSystem(rates, uniform(rates.num_rows), scaling=Scaling.BALANCE), launcher
    )
    expect_the_host(device, balance_matrix(rates))


def test_a_long_column_is_transposed_on_the_host(launcher):
    rates = big.dense_column(700).matrix
    system = SweepSystem(rates, uniform(700), scaling=Scaling.BALANCE)
    assert prepare._balanced(system, launcher) is None
    expect_the_host(prepare.upload(system, launcher), balance_matrix(rates))


@pytest.mark.parametrize("length", [511, 512, 513])
def test_the_longest_sorted_row_is_where_the_fallback_begins(launcher, length):
    rows = [{i + 1: 1.0} for i in range(length - 1)] + [{}]
    for i in range(length):
        rows[i] = {**rows[i], length: 1.0}
    rows.append({0: 1.0})
    matrix = models.csr(rows)
    system = SweepSystem(matrix, uniform(length + 1), scaling=Scaling.BALANCE)
    assert (prepare._balanced(system, launcher) is None) == (length > 512)
    expect_the_host(prepare.upload(system, launcher), balance_matrix(matrix))


@pytest.mark.usefixtures("offsets")
def test_a_steady_state_with_a_long_column_is_the_cpus(both):
    model = big.dense_column(5000)
    cpu, gpu = both(
        solve_steady_state, model, np.ones(5000, np.bool_), settings={"method": Method.JOR}
    )
    assert gpu.cost.engine.startswith("GPU")
    assert gpu.iterations == cpu.iterations
    np.testing.assert_allclose(gpu.values, cpu.values, rtol=1e-11)


@pytest.mark.parametrize("subset", [False, True])
def test_the_device_divides_by_the_diagonal_as_the_host_does(launcher, subset):
    size = 3000
    matrix = big.random_dtmc(2, size, 5).matrix
    states = np.arange(2, size, 3, dtype=np.int32) if subset else None
    rows = matrix.select_rows(states) if subset else matrix
    offset = np.linspace(1.0, 2.0, rows.num_rows)
    system = SweepSystem(rows, np.zeros(size), offset, states, Scaling.DIAGONAL)
    device, host = prepare.upload(system, launcher), scaled(system)
    values, columns = device.values.get(), device.columns.get()
    # The device keeps the diagonal's places, and puts zeros there.
    row = rows.row_of_entry()
    diagonal = columns == (states[row] if subset else row)
    assert not values[diagonal].any()
    np.testing.assert_array_equal(columns[~diagonal], host.matrix.columns)
    np.testing.assert_array_equal(values[~diagonal], host.matrix.values)
    np.testing.assert_array_equal(device.offset.get(), host.offset)
    # The host's arrays are the caller's.
    np.testing.assert_array_equal(offset, np.linspace(1.0, 2.0, rows.num_rows))


def environment(**settings):
    return SolverEnvironment(device=DeviceChoice.GPU, **settings)


@pytest.mark.usefixtures("poison", "offsets")
@pytest.mark.parametrize("method", [Method.JACOBI, Method.JOR, Method.POWER])
@pytest.mark.parametrize("size", [2, 1025, 5000])
def test_steady_states_hold_nothing_unwritten(size, method):
    model = big.random_rates(size, size)
    everywhere = np.ones(size, dtype=np.bool_)
    settings = {"method": method, "epsilon": 0.0, "max_iterations": 130}
    gpu = solve_steady_state(model, everywhere, environment(**settings))
    cpu = solve_steady_state(
        model, everywhere, SolverEnvironment(device=DeviceChoice.CPU, **settings)
    )
    np.testing.assert_allclose(gpu.values, cpu.values, rtol=1e-11)
    assert np.isfinite(gpu.residual)


@pytest.mark.usefixtures("poison", "offsets")
@pytest.mark.parametrize("name", [*models.chain_problems(), *models.reward_problems()])
def test_chains_hold_nothing_unwritten(name):
    expect_no_poison({**models.chain_problems(), **models.reward_problems()}[name], Method.JACOBI)


@pytest.mark.usefixtures("poison", "offsets")
@pytest.mark.parametrize("name", models.mdp_problems())
def test_mdps_hold_nothing_unwritten(name):
    expect_no_poison(models.mdp_problems()[name], Method.VALUE_ITERATION)


def expect_no_poison(problem, method):
    results = [
        solve_reachability(
            problem.model,
            problem.unknown,
            problem.start,
            SolverEnvironment(method=method, device=device),
            **problem.keywords,
        )
        for device in (DeviceChoice.CPU, DeviceChoice.GPU)
    ]
    assert results[1].status is Status.CONVERGED
    assert results[1].iterations == results[0].iterations
    np.testing.assert_allclose(results[1].values, results[0].values, rtol=1e-12, atol=1e-14)


@pytest.mark.usefixtures("poison")
def test_every_change_of_a_batch_is_written():
    model = models.proper_mdp(2)
    system = SweepSystem(
        model.matrix,
        np.zeros(50),
        np.ones(model.matrix.num_rows),
        group_offsets=model.row_group_offsets,
        direction=Direction.MINIMISE,
    )
    sweeper = CudaEngine().sweeper(system, -1.0, True)
    for count in (64, 1, 128, 65, 4096):
        changes = sweeper.run(count)
        assert len(changes) == count
        assert np.isfinite(changes).all()
