"""The GPU's answers, sweeps and changes are the CPU's, on models of many shapes and sizes."""

from __future__ import annotations

import numpy as np
import pytest

from engines.model.environment import Method
from engines.model.result import Status
from engines.questions.reachability import solve_reachability
from engines.questions.steady_state import solve_steady_state
from engines.systems.one_sided import Direction
from tests.gpu import big


def expect_equal(cpu, gpu, rtol=1e-11):
    assert gpu.cost.engine.startswith("GPU")
    assert cpu.cost.engine == "CPU"
    assert gpu.iterations == cpu.iterations
    assert gpu.status is cpu.status
    np.testing.assert_allclose(gpu.values, cpu.values, rtol=rtol, atol=1e-300)
    # Changes near the threshold are differences of close numbers.
    assert gpu.change == pytest.approx(cpu.change, rel=1e-4, abs=1e-13)
    scale = 1.0 + np.abs(cpu.values[np.isfinite(cpu.values)]).max()
    assert gpu.residual == pytest.approx(cpu.residual, rel=1e-6, abs=1e-12 * scale)


def ends(model):
    """Unknown states and start of the probability to end in state 1."""
    size = model.num_states
    unknown = np.ones(size, dtype=np.bool_)
    unknown[:2] = False
    start = np.zeros(size)
    start[1] = 1.0
    return model, unknown, start


def everywhere(model):
    return np.ones(model.num_states, dtype=np.bool_)


def sweeps(method, count):
    """Settings that make exactly `count` sweeps."""
    return {"method": method, "epsilon": 0.0, "max_iterations": count}


NAMED = [Method.JACOBI, Method.JOR, Method.POWER]


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("size", [3, 255, 257, 1025, 40_000])
@pytest.mark.usefixtures("offsets")
def test_until_probabilities(both, size, method, absolute):
    settings = {"method": method, "absolute": absolute, "epsilon": 1e-9}
    cpu, gpu = both(solve_reachability, *ends(big.random_dtmc(size, size)), settings=settings)
    expect_equal(cpu, gpu)
    assert gpu.status is Status.CONVERGED
    assert (gpu.values >= 0).all()
    assert (gpu.values <= 1 + 1e-12).all()


@pytest.mark.parametrize("per_row", [23, 25, 40, 100])
@pytest.mark.usefixtures("offsets")
def test_long_rows_are_taken_by_warps(both, per_row):
    model = big.random_dtmc(per_row, 5000, per_row)
    cpu, gpu = both(solve_reachability, *ends(model), settings={"method": Method.JACOBI})
    expect_equal(cpu, gpu)
    assert gpu.cost.kernel == ("rows_by_warp" if per_row >= 24 else "rows_by_thread")


@pytest.mark.parametrize("method", NAMED)
def test_a_dense_row_of_a_hundred_thousand_entries(both, method):
    model = big.dense_row(100_000)
    cpu, gpu = both(solve_reachability, *ends(model), settings={"method": method})
    expect_equal(cpu, gpu, rtol=1e-9)


@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("size", [2, 1023, 1024, 1025, 30_000])
@pytest.mark.usefixtures("offsets")
def test_steady_states(both, size, method):
    model = big.random_rates(size, size)
    cpu, gpu = both(solve_steady_state, model, everywhere(model), settings=sweeps(method, 150))
    expect_equal(cpu, gpu)


def test_the_steady_state_of_a_class_among_others(both):
    model = big.random_rates(3, 5000)
    # Two copies side by side; the second is the class asked for.
    matrix = model.matrix
    row = matrix.row_of_entry()
    twice = big.from_triples(
        model.kind,
        10_000,
        np.concatenate([row, row + 5000]),
        np.concatenate([matrix.columns, matrix.columns + 5000]),
        np.concatenate([matrix.values, matrix.values]),
    )
    bscc = np.arange(10_000) >= 5000
    cpu, gpu = both(solve_steady_state, twice, bscc, settings={"method": Method.JOR})
    expect_equal(cpu, gpu)
    assert not gpu.values[:5000].any()


@pytest.mark.parametrize("method", NAMED)
def test_two_million_states_in_a_row(both, method):
    model = big.birth_death(2_000_000)
    cpu, gpu = both(solve_steady_state, model, everywhere(model), settings=sweeps(method, 100))
    expect_equal(cpu, gpu)


def test_two_million_states_of_a_walk_with_rewards(both):
    model = big.birth_death(2_000_000)
    unknown = everywhere(model)
    unknown[0] = False
    rewards = np.linspace(1.0, 2.0, model.num_states)
    cpu, gpu = both(
        solve_reachability,
        model,
        unknown,
        np.zeros(model.num_states),
        settings=sweeps(Method.JACOBI, 129),
        rewards=rewards,
    )
    expect_equal(cpu, gpu)


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("size", [3, 257, 20_000, 400_000])
@pytest.mark.usefixtures("offsets")
def test_mdps(both, size, direction, absolute):
    model, unknown, start = ends(big.random_mdp(size, size))
    settings = {"method": Method.VALUE_ITERATION, "absolute": absolute}
    cpu, gpu = both(
        solve_reachability, model, unknown, start, settings=settings, direction=direction
    )
    expect_equal(cpu, gpu)
    rewards = np.random.default_rng(0).uniform(0.0, 5.0, model.matrix.num_rows)
    cpu, gpu = both(
        solve_reachability,
        model,
        unknown,
        np.zeros(size),
        settings=settings,
        rewards=rewards,
        direction=direction,
    )
    expect_equal(cpu, gpu)


def test_min_is_at_most_max(both):
    model, unknown, start = ends(big.random_mdp(77, 20_000))
    settings = {"method": Method.VALUE_ITERATION, "epsilon": 1e-10}
    least, most = (
        both(solve_reachability, model, unknown, start, settings=settings, direction=d)[1].values
        for d in (Direction.MINIMISE, Direction.MAXIMISE)
    )
    assert (least <= most + 1e-9).all()


def test_infinite_rewards_stay_infinite(both):
    model, unknown, _ = ends(big.random_mdp(5, 1000))
    start = np.zeros(1000)
    start[1] = np.inf
    rewards = np.ones(model.matrix.num_rows)
    for direction in Direction:
        cpu, gpu = both(
            solve_reachability,
            model,
            unknown,
            start,
            settings={"method": Method.VALUE_ITERATION},
            rewards=rewards,
            direction=direction,
        )
        np.testing.assert_array_equal(np.isinf(gpu.values), np.isinf(cpu.values))
        expect_equal(cpu, gpu)


def test_the_automatic_method_gives_the_same_answer(both):
    # How many sweeps it makes depends on the clock.
    cpu, gpu = both(
        solve_reachability, *ends(big.random_dtmc(4, 30_000)), settings={"epsilon": 1e-9}
    )
    assert gpu.status is cpu.status is Status.CONVERGED
    np.testing.assert_allclose(gpu.values, cpu.values, rtol=1e-8)


def test_two_solves_in_a_row_give_the_same_bits(both):
    model = big.random_rates(6, 20_000)
    settings = {"method": Method.JOR}
    first = both(solve_steady_state, model, everywhere(model), settings=settings)[1]
    second = both(solve_steady_state, model, everywhere(model), settings=settings)[1]
    np.testing.assert_array_equal(first.values, second.values)
    assert first.change == second.change
