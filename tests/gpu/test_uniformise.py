"""Sums of powers and step-bounded questions on the GPU: the CPU's answers, by one device loop."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from engines.cuda import sweeper as cuda_sweeper
from engines.cuda import uniformise as on_gpu
from engines.cuda.queued import STRETCH
from engines.errors import DeviceMemoryError
from engines.host import power_sums as on_cpu
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.explicit import RewardStructure
from engines.model.result import Status
from engines.questions import uniformisation
from engines.questions.bounded import bounded_until, cumulative_rewards, distribution_after
from engines.questions.time_bounded import (
    cumulative_rewards_until,
    distribution_at,
    instantaneous_rewards_at,
    time_bounded_until,
)
from engines.systems.one_sided import Direction, SweepSystem
from engines.systems.power_sums import PowerSum
from tests.engines import models
from tests.gpu import big

TIGHT = {"epsilon": 1e-10}


@pytest.fixture(autouse=True)
def wide_offsets(request, monkeypatch):
    """`offsets` of the folder forces 64 bits in the sweeps; here in the sums as well."""
    if "offsets" in request.fixturenames and request.getfixturevalue("offsets") == "wide":
        monkeypatch.setattr("engines.cuda.uniformise.needs_wide_offsets", lambda _system: True)


def expect_equal(cpu, gpu, rtol=1e-10):
    assert gpu.cost.engine.startswith("GPU")
    assert cpu.cost.engine == "CPU"
    assert cpu.status is gpu.status is Status.CONVERGED
    np.testing.assert_allclose(gpu.values, cpu.values, rtol=rtol, atol=1e-280)


def counting(length, sweeps, left=0):
    """x_i ← x_{i−1}, with weights that tell each sweep from the others."""
    matrix = models.csr([{}] + [{i - 1: 1.0} for i in range(1, length)])
    start = np.eye(length)[0]
    weights = np.arange(1.0, sweeps - left + 2.0)
    return PowerSum(SweepSystem(matrix, start), np.eye(length)[0], 1.0, left, weights, 0.5)


@pytest.mark.parametrize("left", [0, 1, 5, 63, 64, 65, 100])
@pytest.mark.parametrize("sweeps", [100, 127, 128, 129, 192, 500, 4096, 4160, 5000])
@pytest.mark.usefixtures("offsets")
def test_each_sweep_is_added_once_with_its_own_weight(sweeps, left):
    problem = counting(6000, sweeps, left)
    # Sweep k is the first to bring 1 to state k, and all later ones find it there.
    expected = np.cumsum(problem.coefficients(0, sweeps + 1)[::-1])[::-1]
    summed = on_gpu.sum_powers(problem, None, 0)
    assert summed.sweeps == sweeps == problem.last
    np.testing.assert_allclose(summed.values[: sweeps + 1], expected, rtol=1e-13)
    assert not summed.values[sweeps + 1 :].any()


@pytest.mark.parametrize("sweeps", [1, 2, 62, 63, 64, 65])
@pytest.mark.usefixtures("offsets")
def test_sums_shorter_than_a_graph(sweeps):
    problem = counting(100, sweeps)
    summed, expected = on_gpu.sum_powers(problem, None, 0), on_cpu.sum_powers(problem, None)
    assert summed.sweeps == sweeps
    np.testing.assert_allclose(summed.values, expected.values, rtol=1e-13)


@pytest.mark.parametrize("rest", [1, 2, 62, 63, 64, 65, 127, 128, 130, 1000])
def test_a_sweep_that_changes_nothing_is_the_last_and_the_rest_is_added(rest):
    # State i holds 1 after i sweeps; sweep `rest` is the first that finds nothing to do.
    problem = counting(rest, 9000, 100)
    summed = on_gpu.sum_powers(problem, None, 0)
    assert summed.sweeps == rest
    expected = np.cumsum(problem.coefficients(0, 9001)[::-1])[::-1][:rest]
    np.testing.assert_allclose(summed.values, expected, rtol=1e-12)


@pytest.mark.parametrize("per_row", [3, 40])
@pytest.mark.parametrize(
    ("share", "change"), [(0.5, 0.0), (1e-3, 0.0), (1e-9, 0.0), (0.0, 1e-3), (0.0, 1e-9)]
)
@pytest.mark.usefixtures("offsets")
def test_the_first_steady_sweep_is_noted(share, change, per_row):
    matrix = big.random_rates(per_row, 3000, per_row).matrix
    rate = 3.0 * float(matrix.row_sums().max())
    start = np.random.default_rng(2).uniform(1.0, 3.0, 3000)
    problem = PowerSum(
        SweepSystem(matrix, start),
        1.0 - matrix.row_sums() / rate,
        *(rate, 0, np.ones(3000), 0.0),
        steady_share=share,
        steady_change=change,
    )
    summed, expected = on_gpu.sum_powers(problem, None, 0), on_cpu.sum_powers(problem, None)
    assert summed.steady == expected.steady > 0


@pytest.mark.parametrize("time", [0.0, 1e-3, 0.5, 20.0, 300.0])
@pytest.mark.parametrize("size", [2, 255, 257, 30_000])
@pytest.mark.usefixtures("offsets", "poison")
def test_time_bounded_questions(both, size, time):
    model = big.random_rates(size, size)
    rng = np.random.default_rng(size)
    remain, target = rng.random(size) < 0.9, rng.random(size) < 0.05
    initial = rng.dirichlet(np.ones(size))
    rewards = RewardStructure("", rng.uniform(0.0, 3.0, size))
    questions = [
        (time_bounded_until, (model, remain, target, 0.0, time)),
        (time_bounded_until, (model, remain, target, time / 3, time)),
        (cumulative_rewards_until, (model, rewards, time)),
        (instantaneous_rewards_at, (model, rewards, time)),
        (distribution_at, (model, initial, time)),
    ]
    for function, arguments in questions:
        cpu, gpu = both(function, *arguments, settings=TIGHT)
        if gpu.iterations:
            expect_equal(cpu, gpu)
        else:
            np.testing.assert_array_equal(gpu.values, cpu.values)


@pytest.mark.parametrize(
    ("per_row", "kernel"), [(6, "rows_by_thread"), (23, "rows_by_thread"), (40, "rows_by_warp")]
)
@pytest.mark.usefixtures("offsets", "poison")
def test_long_rows_are_taken_by_warps(both, per_row, kernel):
    model = big.random_rates(per_row, 5000, per_row)
    everywhere, target = np.ones(5000, np.bool_), np.arange(5000) == 7
    cpu, gpu = both(time_bounded_until, model, everywhere, target, 0.0, 3.0, settings=TIGHT)
    expect_equal(cpu, gpu)
    assert gpu.cost.kernel == kernel


@pytest.mark.usefixtures("offsets", "poison")
def test_a_dense_column_makes_a_dense_row_of_the_transpose(both, monkeypatch):
    # Short rows on the average, so that only a lower threshold brings in the kernel for long ones.
    monkeypatch.setattr("engines.cuda.rows.WARP_ROW_ENTRIES", 2)
    model = big.dense_column(20_000)
    initial = np.full(20_000, 1.0 / 20_000)
    cpu, gpu = both(distribution_at, model, initial, 4.0, settings=TIGHT)
    expect_equal(cpu, gpu)
    assert gpu.cost.kernel == "rows_by_block"


def test_two_million_states(both):
    model = big.birth_death(2_000_000)
    queue = RewardStructure("", np.linspace(0.0, 1.0, model.num_states))
    cpu, gpu = both(cumulative_rewards_until, model, queue, 20.0, settings=TIGHT)
    expect_equal(cpu, gpu)
    assert gpu.iterations == cpu.iterations


def test_two_sums_in_a_row_give_the_same_bits():
    model = big.random_rates(6, 20_000)
    initial = np.full(20_000, 1.0 / 20_000)
    environment = SolverEnvironment(device=DeviceChoice.GPU, **TIGHT)
    first, second = (distribution_at(model, initial, 5.0, environment) for _ in range(2))
    np.testing.assert_array_equal(first.values, second.values)


def test_progress_comes_at_each_look_of_the_host():
    seen = []
    problem = counting(12_000, 9000, 10)
    on_gpu.sum_powers(problem, seen.append, 0)
    assert [report.iterations for report in seen] == [4096, 8192, 9000]
    assert seen[-1].number == 0.0
    assert on_gpu.LOOK_EVERY % STRETCH == 0


def test_a_sum_that_does_not_fit_is_made_on_the_cpu_with_a_note(monkeypatch):
    model = models.birth_death(50)
    environment = SolverEnvironment(device=DeviceChoice.GPU)
    fits = distribution_at(model, np.eye(50)[0], 2.0, environment)
    monkeypatch.setattr(on_gpu, "bytes_needed", lambda _problem: 2**60)
    result = distribution_at(model, np.eye(50)[0], 2.0, environment)
    assert fits.cost.engine == "GPU 0"
    assert result.cost.engine == "CPU"
    assert "needed for rows and sums, " in result.note
    np.testing.assert_allclose(result.values, fits.values, rtol=1e-12)
    with pytest.raises(DeviceMemoryError, match="needed for rows and sums"):
        on_gpu.sum_powers(counting(10, 5), None, 0)


def test_an_allocation_that_fails_leads_to_the_cpu(gpu):
    def refuse(size):
        raise gpu.cuda.memory.OutOfMemoryError(size, 0, 0)

    environment = SolverEnvironment(device=DeviceChoice.GPU)
    model = models.birth_death(50)
    with gpu.cuda.using_allocator(refuse):
        result = distribution_at(model, np.eye(50)[0], 2.0, environment)
        steps = cumulative_rewards(
            models.line(50), RewardStructure("", np.ones(50)), 5, environment
        )
    assert result.cost.engine == steps.cost.engine == "CPU"
    assert "ran out of memory" in result.note
    assert "ran out of memory" in steps.note
    assert (steps.values == 5.0).all()


@pytest.mark.parametrize("size", [1000, 300_000])
def test_the_estimate_covers_what_a_sum_takes(gpu, size, monkeypatch):
    taken = []
    model = big.random_rates(1, size)
    pool = gpu.cuda.MemoryPool()
    plain = on_gpu.sum_powers

    def measured(problem, *rest):
        summed = plain(problem, *rest)
        taken.append((pool.total_bytes(), on_gpu.bytes_needed(problem)))
        return summed

    monkeypatch.setattr("engines.cuda.uniformise.sum_powers", measured)
    with gpu.cuda.using_allocator(pool.malloc):
        environment = SolverEnvironment(device=DeviceChoice.GPU)
        distribution_at(model, np.full(size, 1.0 / size), 30.0, environment)
        gc.collect()
        assert pool.used_bytes() == 0
    ((total, estimate),) = taken
    assert total <= 1.1 * estimate + 2**20


@pytest.mark.parametrize("steps", [1, 63, 64, 65, 129, 5000])
@pytest.mark.usefixtures("offsets")
def test_exactly_so_many_steps(both, steps):
    model = models.line(5100)
    everywhere, target = np.ones(5100, np.bool_), np.arange(5100) == 5099
    cpu, gpu = both(bounded_until, model, everywhere, target, steps, settings={})
    expect_equal(cpu, gpu)
    assert gpu.iterations == cpu.iterations == steps
    assert gpu.values.sum() == steps + 1


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.usefixtures("offsets")
def test_steps_of_mdps(both, direction):
    model = big.random_mdp(3, 20_000)
    rng = np.random.default_rng(3)
    remain, target = rng.random(20_000) < 0.9, rng.random(20_000) < 0.01
    keywords = {"settings": {}, "direction": direction}
    expect_equal(*both(bounded_until, model, remain, target, 40, **keywords))
    expect_equal(*both(bounded_until, model, remain, target, 40, lower=11, **keywords))
    rewards = RewardStructure("", rng.uniform(0.0, 2.0, 20_000))
    expect_equal(*both(cumulative_rewards, model, rewards, 70, **keywords))


def test_steps_of_a_distribution(both):
    model = big.random_dtmc(5, 30_000)
    initial = np.full(30_000, 1.0 / 30_000)
    expect_equal(*both(distribution_after, model, initial, 100, settings={}))


def test_the_engine_is_chosen_by_the_entries_of_the_rate_matrix():
    automatic = SolverEnvironment(device=DeviceChoice.AUTO)
    large = big.random_rates(2, 20_000)
    initial = np.full(20_000, 1.0 / 20_000)
    assert distribution_at(large, initial, 1.0, automatic).cost.engine == "GPU 0"
    small = models.birth_death(10)
    assert distribution_at(small, np.eye(10)[0], 1.0, automatic).cost.engine == "CPU"
    assert uniformisation.METHOD == "Uniformisation"
    assert cuda_sweeper.STRETCH % 2 == 0
