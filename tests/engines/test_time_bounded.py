"""Time-bounded questions of CTMCs against matrix exponentials, closed forms and references."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import gammainc
from scipy.stats import poisson

from bridge.files.umb import read_umb
from engines.errors import InvalidModelError, UnsupportedError
from engines.host import power_sums
from engines.host.compiled import shares
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ModelKind, RewardStructure
from engines.model.progress import Measure
from engines.model.result import Status
from engines.questions import uniformisation
from engines.questions.time_bounded import (
    cumulative_rewards_until,
    distribution_at,
    instantaneous_rewards_at,
    time_bounded_after,
    time_bounded_until,
)
from tests.engines import models

FOLDER = Path(__file__).parents[2].parent / "shared" / "reference"
TIMES = [0.0, 1e-3, 0.1, 1.0, 20.0]
SIZE = 20


def tight(device, epsilon=1e-10):
    return SolverEnvironment(epsilon=epsilon, device=device)


def generator(model, moving=None):
    """The matrix Q, dense; states that do not move are absorbing."""
    matrix = model.matrix
    rates = np.zeros((model.num_states, model.num_states))
    np.add.at(rates, (matrix.row_of_entry(), matrix.columns), matrix.values)
    if moving is not None:
        rates[~moving] = 0.0
    return rates - np.diag(rates.sum(axis=1))


def integral(q, rewards, time):
    """∫ e^(Qu) r du from 0 to t, from the exponential of a matrix with one more column."""
    size = len(q)
    block = np.zeros((size + 1, size + 1))
    block[:size, :size], block[:size, size] = q, rewards
    return expm(block * time)[:size, size]


def sides(seed, size=SIZE):
    """Where to stay and where to get to: they overlap, and some states are in neither."""
    rng = np.random.default_rng(100 + seed)
    return rng.random(size) < 0.7, rng.random(size) < 0.2


def rewards_of(seed, size=SIZE):
    values = np.random.default_rng(200 + seed).uniform(0.0, 5.0, size)
    values[::3] = 0.0
    return RewardStructure("r", values)


def expect(result, expected, atol=1e-12, rtol=1e-10):
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.values, expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("seed", range(4))
def test_until_a_time(device, seed, time):
    model, (remain, target) = models.random_ctmc(seed, SIZE), sides(seed)
    q = generator(model, remain & ~target)
    expected = expm(q * time) @ target
    result = time_bounded_until(model, remain, target, 0.0, time, tight(device))
    expect(result, expected)
    assert (result.values[target] == 1.0).all()
    assert not result.values[~target & ~remain].any()


@pytest.mark.parametrize(("lower", "upper"), [(0.5, 0.5), (0.01, 1.5), (3.0, 9.0)])
@pytest.mark.parametrize("seed", range(3))
def test_until_within_an_interval(device, seed, lower, upper):
    model, (remain, target) = models.random_ctmc(seed, SIZE), sides(seed)
    later = expm(generator(model, remain & ~target) * (upper - lower)) @ target
    expected = expm(generator(model, remain) * lower) @ np.where(remain, later, 0.0)
    result = time_bounded_until(model, remain, target, lower, upper, tight(device))
    expect(result, expected)
    assert not result.values[~remain].any()
    if lower < upper:
        assert "Uniformisation" in result.method
        assert result.iterations > 0


@pytest.mark.parametrize("time", TIMES)
def test_after_a_time_within_the_states_to_remain_in(device, time):
    model, (remain, _) = models.random_ctmc(7, SIZE), sides(7)
    values = np.random.default_rng(7).random(SIZE)
    expected = expm(generator(model, remain) * time) @ np.where(remain, values, 0.0)
    expect(time_bounded_after(model, remain, values, time, tight(device)), expected)
    unbounded = time_bounded_until(
        model, remain, remain, time, math.inf, tight(device), values=values
    )
    expect(unbounded, expected)


def test_a_zero_of_an_interval_has_no_error_where_the_left_side_fails(device):
    model = models.chain(ModelKind.CTMC, [{1: 1.0}, {2: 2.0}, {1: 1.0}])
    remain, target = np.array([True, False, False]), np.array([False, True, False])
    # In state 2 neither holds; without it, each state has a chance in the last phase.
    for size in (3, 2):
        part = models.chain(ModelKind.CTMC, [{1: 1.0}, {0: 2.0}]) if size == 2 else model
        sets = remain[:size], target[:size]
        result = time_bounded_until(part, *sets, 0.5, 1.0, tight(device))
        assert result.values[0] > 0.2
        assert result.values[1:].tolist() == [0.0] * (size - 1)
        assert result.decided == (0.0,)


@pytest.mark.parametrize("time", [0.1, 0.75, 3.3, 17.0])
def test_what_is_certain_has_probability_1_and_nothing_else_has(device, time):
    # 1 -> 2 -> 1 for ever; from 0 there, or to 3, which is worth nothing.
    rows = [{1: 1e9, 3: 1e-9}, {2: 23.5}, {1: 7.1}, {}]
    model, worth = models.chain(ModelKind.CTMC, rows), np.array([1.0, 1.0, 1.0, 0.0])
    everywhere = np.ones(4, dtype=bool)
    result = time_bounded_after(model, everywhere, worth, time, tight(device))
    assert result.values[[1, 2, 3]].tolist() == [1.0, 1.0, 0.0]
    assert 1.0 - 1e-10 < result.values[0] < 1.0
    assert 1.0 in result.decided
    assert (result.bounds[0] <= result.values).all()
    assert (result.values <= result.bounds[1]).all()


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("seed", range(3))
def test_rewards_and_distributions(device, seed, time):
    model, rewards = models.random_ctmc(seed, SIZE, absorbing=0.15), rewards_of(seed)
    q = generator(model)
    earned = integral(q, rewards.state_rewards, time)
    expect(cumulative_rewards_until(model, rewards, time, tight(device)), earned)
    expected = expm(q * time) @ rewards.state_rewards
    expect(instantaneous_rewards_at(model, rewards, time, tight(device)), expected)
    initial = np.random.default_rng(seed).dirichlet(np.ones(SIZE))
    result = distribution_at(model, initial, time, tight(device))
    expect(result, initial @ expm(q * time))
    assert result.values.sum() == pytest.approx(1.0, abs=1e-13 * (1 + result.iterations))


@pytest.mark.parametrize("time", [1e-3, 1.0, 100.0, 1000.0])
def test_stiff_chains(device, time):
    # Rates over ten orders of magnitude, and probabilities of either scale.
    a, b, c = 1e-6, 1e3, 0.5
    model = models.ctmc([{1: b, 2: a}, {0: b}, {0: c}])
    q = generator(model)
    initial = np.array([1.0, 0.0, 0.0])
    rewards = RewardStructure("", np.array([0.0, 2.0, 1e6]))
    result = distribution_at(model, initial, time, tight(device))
    expect(result, (initial @ expm(q * time)), rtol=1e-8)
    earned = integral(q, rewards.state_rewards, time)
    expect(cumulative_rewards_until(model, rewards, time, tight(device)), earned, rtol=1e-8)


@pytest.mark.parametrize("time", [1e-9, 1e-3, 0.7, 1e3, 1e6])
def test_two_states_in_closed_form(device, time):
    up, down = 3.0, 2.0
    model = models.ctmc([{1: up}, {0: down}])
    result = distribution_at(model, np.array([1.0, 0.0]), time, tight(device))
    there = up / (up + down) * -math.expm1(-(up + down) * time)
    np.testing.assert_allclose(result.values, [1.0 - there, there], rtol=1e-9)
    # Rewards of 1 in state 1: up t / (up + down) less what is missing at the beginning.
    earned = cumulative_rewards_until(
        model, RewardStructure("", np.array([0.0, 1.0])), time, tight(device)
    )
    if time > 0.5:
        total = up + down
        expected = up / total * time + up / total**2 * math.expm1(-total * time)
        assert earned.values[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("time", [0.01, 0.3, 2.0, 30.0])
@pytest.mark.parametrize("stages", [1, 5, 30])
def test_erlang_keeps_its_digits_however_small(device, stages, time):
    rate = 1.7
    rows = [{i + 1: rate} for i in range(stages)]
    model = models.ctmc([*rows, {}])
    everywhere = np.ones(stages + 1, dtype=np.bool_)
    target = models.mask(stages + 1, [stages])
    result = time_bounded_until(model, everywhere, target, 0.0, time, tight(device))
    expected = gammainc(stages, rate * time)
    if expected > 1e-16:
        assert result.values[0] == pytest.approx(expected, rel=1e-9, abs=0)
    else:
        assert result.values[0] <= 1e-16
    left = distribution_at(model, np.eye(stages + 1)[0], time, tight(device))
    expected = poisson.pmf(np.arange(stages), rate * time)
    visible = expected > 1e-16
    np.testing.assert_allclose(left.values[:-1][visible], expected[visible], rtol=1e-9)


@pytest.mark.parametrize("time", [0.1, 2.0, 50.0])
def test_a_queue_with_few_places(device, time):
    model = models.birth_death(12, 1.0, 1.3)
    q = generator(model)
    result = distribution_at(model, np.eye(12)[0], time, tight(device))
    expect(result, expm(q * time)[0], atol=1e-17, rtol=1e-9)
    queue = RewardStructure("", np.arange(12.0))
    expect(instantaneous_rewards_at(model, queue, time, tight(device)), expm(q * time) @ range(12))


def test_where_nothing_moves_values_stay_and_earn(device):
    model = models.ctmc([{}, {1: 5.0}, {}])
    rewards = RewardStructure("", np.array([1.0, 2.0, 3.0]))
    earned = cumulative_rewards_until(model, rewards, 7.0, tight(device))
    np.testing.assert_array_equal(earned.values, [7.0, 14.0, 21.0])
    assert earned.iterations == 0
    there = instantaneous_rewards_at(model, rewards, 7.0, tight(device))
    np.testing.assert_array_equal(there.values, [1.0, 2.0, 3.0])


def test_loops_in_continuous_time_do_nothing(device):
    plain = models.ctmc([{1: 2.0}, {0: 1.0}])
    loops = models.ctmc([{0: 40.0, 1: 2.0}, {0: 1.0, 1: 3.0}])
    one, other = (
        distribution_at(model, np.array([0.2, 0.8]), 1.3, tight(device)) for model in (plain, loops)
    )
    np.testing.assert_array_equal(one.values, other.values)
    assert one.iterations == other.iterations


def test_a_sum_whose_iterate_rests_ends_early_with_the_rest_added(device):
    # All of the mass is absorbed in a few sweeps, to the last bit.
    model = models.ctmc([{1: 1.0}, {2: 1.0}, {}, {0: 1.0}])
    initial = np.array([0.25, 0.25, 0.0, 0.5])
    result = distribution_at(model, initial, 1e6, tight(device))
    assert result.iterations < 1000
    np.testing.assert_allclose(result.values, [0.0, 0.0, 1.0, 0.0], rtol=1e-14)
    rewards = RewardStructure("", np.array([1.0, 1.0, 0.5, 0.0]))
    earned = cumulative_rewards_until(model, rewards, 1e6, tight(device))
    assert earned.iterations < 1000
    np.testing.assert_allclose(
        earned.values, [2 + (1e6 - 2) / 2, 1 + (1e6 - 1) / 2, 5e5, 2 + (1e6 - 3) / 2], rtol=1e-13
    )


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_rates_and_times_of_any_scale(device, scale):
    model = models.random_ctmc(3, SIZE)
    matrix = replace(model.matrix, values=scale * model.matrix.values)
    scaled = replace(model, matrix=matrix)
    initial = np.full(SIZE, 1.0 / SIZE)
    one = distribution_at(model, initial, 2.0, tight(device))
    other = distribution_at(scaled, initial, 2.0 / scale, tight(device))
    np.testing.assert_allclose(other.values, one.values, rtol=1e-11, atol=1e-25)


@pytest.mark.parametrize("epsilon", [0.0, 1e-16, 1e-10, 1e-6, 1e-2])
def test_the_error_reported_covers_the_error_made(device, epsilon):
    model, (remain, target) = models.random_ctmc(5, SIZE), sides(5)
    expected = expm(generator(model, remain & ~target) * 3.0) @ target
    result = time_bounded_until(model, remain, target, 0.0, 3.0, tight(device, epsilon))
    assert np.abs(result.values - expected).max() <= result.error_estimate + 1e-14
    assert result.error_estimate < 1e-11
    assert "truncation below" in result.note


def test_progress_counts_sweeps_and_what_is_left(device, monkeypatch):
    tuning = functools.partial(power_sums.PowerSumTuning, batch_work=1, progress_seconds=0.0)
    monkeypatch.setattr(power_sums, "PowerSumTuning", tuning)
    seen = []
    model = models.birth_death(10)
    result = distribution_at(
        model,
        np.eye(10)[0],
        30.0,
        tight(device),
        progress=seen.append,
    )
    sweeps = [report.iterations for report in seen]
    left = np.concatenate([report.numbers for report in seen])
    seconds = [report.seconds for report in seen]
    assert sweeps[-1] == len(left) == result.iterations
    assert {report.measure for report in seen} == {Measure.REMAINDER}
    assert (np.diff(sweeps) > 0).all()
    assert (np.diff(seconds) >= 0).all()
    assert (np.diff(left) <= 0).all()
    assert left[0] <= 1.0
    assert left[-1] == 0.0


def test_all_threads_give_the_sum_of_one(monkeypatch):
    model = models.recurrent(3, 300)
    initial = np.full(300, 1 / 300)
    one = distribution_at(model, initial, 2.0, SolverEnvironment())
    monkeypatch.setattr(shares, "threads_for", lambda _entries: 2)
    both = distribution_at(model, initial, 2.0, SolverEnvironment())
    assert [found.cost.kernel for found in (one, both)] == [
        "compiled, threads 1",
        "compiled, threads 2",
    ]
    np.testing.assert_array_equal(one.values, both.values)


def test_the_coefficients_of_a_sum_add_up():
    model = models.birth_death(5)
    found = []

    def keep(problem, _environment, _progress):
        found.append(problem)
        raise UnsupportedError("seen")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uniformisation, "sum_powers", keep)
        for cumulative in (False, True):
            with pytest.raises(UnsupportedError):
                uniformisation.backward(
                    model.matrix,
                    np.ones(5, dtype=np.bool_),
                    np.ones(5),
                    400.0,
                    SolverEnvironment(),
                    cumulative=cumulative,
                )
    for problem, whole in zip(found, (1.0, 400.0), strict=True):
        last = problem.last
        everything = problem.coefficients(0, last + 1)
        assert problem.left > 100
        assert len(everything) == last + 1
        assert everything.sum() == pytest.approx(whole, rel=1e-12)
        for cut in (0, 10, problem.left - 1, problem.left, problem.left + 7, last):
            pieces = np.append(problem.coefficients(0, cut), problem.coefficients(cut, last + 1))
            np.testing.assert_array_equal(pieces, everything)
            assert problem.after(cut) == pytest.approx(everything[cut + 1 :].sum(), rel=1e-12)


def test_what_cannot_be_asked_is_refused(device):
    chain, steps = models.birth_death(3), models.line(3)
    everywhere, target = np.ones(3, dtype=np.bool_), models.mask(3, [2])
    rewards = RewardStructure("", np.ones(3))
    settings = tight(device)
    for lower, upper in ((2.0, 1.0), (-1.0, 1.0), (0.0, math.nan), (math.inf, math.inf)):
        with pytest.raises(ValueError, match="no interval"):
            time_bounded_until(chain, everywhere, target, lower, upper, settings)
    with pytest.raises(ValueError, match="unbounded probabilities"):
        time_bounded_until(chain, everywhere, target, 1.0, math.inf, settings)
    with pytest.raises(ValueError, match="finite"):
        time_bounded_after(chain, everywhere, np.array([1.0, np.inf, 0.0]), 1.0, settings)
    with pytest.raises(ValueError, match="a time must be"):
        cumulative_rewards_until(chain, rewards, -1.0, settings)
    with pytest.raises(UnsupportedError, match="for CTMCs; the model is a DTMC"):
        distribution_at(steps, np.ones(3), 1.0, settings)
    with pytest.raises(InvalidModelError, match="time bound too big"):
        distribution_at(chain, np.ones(3), 1e18, settings)
    with pytest.raises(InvalidModelError):
        instantaneous_rewards_at(chain, RewardStructure("", -np.ones(3)), 1.0, settings)


@functools.cache
def entries():
    file = FOLDER / "values.json"
    if not file.is_file():
        return {}
    return {
        (entry["model"].rsplit("/", 1)[1], entry["constants"], entry["property"]): entry["value"]
        for entry in json.loads(file.read_text(encoding="utf-8"))
    }


def reference(sample, source, constants, text):
    """The file of a sample, and the value of a property."""
    if not entries():
        pytest.skip("needs the shared reference results")
    return read_umb(FOLDER / "models" / f"{sample}.umb"), entries()[source, constants, text]


CLUSTER = ("cluster_N2", "cluster.sm", "N=2")


def until_of(file, remain, target, lower, upper):
    return time_bounded_until(
        file.model, remain, target, lower, upper, SolverEnvironment(epsilon=1e-10)
    ).values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            'P=? [ true U<=10 !"minimum" ]',
            lambda f, least, _: until_of(f, least | ~least, ~least, 0, 10)[
                f.model.initial_states
            ].item(),
        ),
        (
            'filter(max, P=? [ true U[10,10] !"minimum" ], !"minimum")',
            lambda f, least, _: until_of(f, least | ~least, ~least, 10, 10)[~least].max(),
        ),
        (
            'filter(min, P=? [ true U<=10 "premium" ], "minimum")',
            lambda f, least, best: until_of(f, least | ~least, best, 0, 10)[least].min(),
        ),
        (
            'filter(min, P=? [ "minimum" U<=10 "premium" ], "minimum")',
            lambda f, least, best: until_of(f, least, best, 0, 10)[least].min(),
        ),
        (
            'P=? [ F[1,5] !"premium" ]',
            lambda f, _, best: until_of(f, best | ~best, ~best, 1, 5)[
                f.model.initial_states
            ].item(),
        ),
    ],
)
def test_published_probabilities_of_cluster(text, value):
    file, expected = reference(*CLUSTER, text)
    labels = file.model.labels
    assert value(file, labels["minimum"], labels["premium"]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("sample", "source", "constants", "text", "name", "time"),
    [
        (*CLUSTER, 'R{"time_not_min"}=? [ C<=10 ]', "time_not_min", 10.0),
        (*CLUSTER, 'R{"num_repairs"}=? [ C<=10 ]', "num_repairs", 10.0),
        ("tandem_c3", "tandem.sm", "c=3", "R=?[I=1]", "customers", 1.0),
        ("tandem_c3", "tandem.sm", "c=3", "R=?[C<=2]", "customers", 2.0),
        ("poll3", "poll3.sm", "", 'R{"waiting"}=? [C<=10]', "waiting", 10.0),
        ("poll3", "poll3.sm", "", 'R{"served"}=? [C<=10]', "served", 10.0),
        ("kanban_t1", "kanban.sm", "t=1", 'R{"tokens_cell2"}=? [ I=2 ]', "tokens_cell2", 2.0),
        ("kanban_t1", "kanban.sm", "t=1", 'R{"throughput"}=? [ C<=5 ]', "throughput", 5.0),
        ("fms_n1", "fms.sm", "n=1", 'R{"productivity"}=? [ C<=5 ]', "productivity", 5.0),
    ],
)
def test_published_rewards(sample, source, constants, text, name, time):
    file, expected = reference(sample, source, constants, text)
    rewards = next(r for r in file.model.rewards if r.name == name)
    solve = instantaneous_rewards_at if "I=" in text else cumulative_rewards_until
    result = solve(file.model, rewards, time, SolverEnvironment(epsilon=1e-10))
    assert result.values[file.model.initial_states].item() == pytest.approx(expected, rel=1e-9)
