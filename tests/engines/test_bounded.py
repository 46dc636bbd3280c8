"""Step-bounded questions against plain loops over states, choices and steps, and references."""

from __future__ import annotations

import functools
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bridge.files.umb import read_umb
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.environment import Method, SolverEnvironment
from engines.model.explicit import ModelKind, RewardStructure
from engines.model.progress import Measure
from engines.model.result import Status
from engines.questions.bounded import (
    after,
    bounded_until,
    cumulative_rewards,
    distribution_after,
    instantaneous_rewards,
    next_probabilities,
)
from engines.systems.one_sided import Direction
from tests.engines import models

FOLDER = Path(__file__).parents[2].parent / "shared" / "reference"
STEPS = [0, 1, 2, 7, 130]
SIZE = 30


def on(device, **settings):
    return SolverEnvironment(device=device, **settings)


def dense(model):
    """The rows of the matrix, dense."""
    matrix = model.matrix
    rows = np.zeros((matrix.num_rows, model.num_states))
    np.add.at(rows, (matrix.row_of_entry(), matrix.columns), matrix.values)
    return rows


def step(model, x, direction, earned=None):
    """The best expectation of x after one step, and what the step earns, by loops."""
    values = dense(model) @ x + (0.0 if earned is None else earned)
    if model.row_group_offsets is None:
        return values
    best = min if direction is Direction.MINIMISE else max
    groups = model.row_group_offsets
    return np.array([best(values[a:b]) for a, b in pairwise(groups)])


def until(model, remain, target, lower, upper, direction):
    """P(remain U[lower,upper] target) by what is left of the bounds in each step."""
    x = np.where(target, 1.0, 0.0)
    for left in range(1, upper + 1):
        # With `left` steps to go, upper − left have been made.
        hit = upper - left >= lower
        x = step(model, x, direction)
        x = np.where(remain, x, 0.0)
        if hit:
            x = np.where(target, 1.0, x)
    return x


def sides(seed, size=SIZE):
    """Where to stay and where to get to: they overlap, and some states are in neither."""
    rng = np.random.default_rng(100 + seed)
    return rng.random(size) < 0.7, rng.random(size) < 0.2


def cases():
    for seed in range(3):
        yield pytest.param(models.random_dtmc(seed, SIZE), None, id=f"DTMC {seed}")
        for direction in Direction:
            yield pytest.param(
                models.random_mdp(seed, SIZE), direction, id=f"MDP {seed} {direction}"
            )


every_model = pytest.mark.parametrize(("model", "direction"), list(cases()))


def expect(result, expected):
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.values, expected, rtol=1e-12, atol=1e-300)


@every_model
def test_next(device, model, direction):
    _, target = sides(1)
    expected = step(model, target.astype(float), direction)
    expect(next_probabilities(model, target, on(device), direction=direction), expected)


def test_the_next_state_of_a_ctmc_is_that_of_its_embedded_chain(device):
    model = models.ctmc([{1: 3.0, 2: 1.0}, {}, {2: 1.0, 0: 1.0}, {}])
    result = next_probabilities(model, models.mask(4, [1, 2]), on(device))
    # An absorbing state is its own successor.
    np.testing.assert_array_equal(result.values, [1.0, 1.0, 0.5, 0.0])
    idle = models.ctmc([{}, {}])
    result = next_probabilities(idle, models.mask(2, [1]), on(device))
    np.testing.assert_array_equal(result.values, [0.0, 1.0])


@pytest.mark.parametrize("steps", STEPS)
@every_model
def test_until_a_number_of_steps(device, model, direction, steps):
    remain, target = sides(2)
    expected = until(model, remain, target, 0, steps, direction)
    result = bounded_until(model, remain, target, steps, on(device), direction=direction)
    expect(result, expected)
    assert result.iterations <= steps
    assert (result.values[target] == 1.0).all()


@pytest.mark.parametrize(("lower", "upper"), [(1, 1), (1, 5), (4, 4), (3, 90)])
@every_model
def test_until_within_an_interval(device, model, direction, lower, upper):
    remain, target = sides(3)
    expected = until(model, remain, target, lower, upper, direction)
    result = bounded_until(
        model, remain, target, upper, on(device), direction=direction, lower=lower
    )
    expect(result, expected)


@pytest.mark.parametrize("steps", STEPS)
@every_model
def test_steps_within_the_states_to_remain_in(device, model, direction, steps):
    remain, _ = sides(4)
    values = np.random.default_rng(4).random(SIZE)
    expected = values
    for _ in range(steps):
        expected = np.where(remain, step(model, expected, direction), 0.0)
    result = after(model, remain, values, steps, on(device), direction=direction)
    expect(result, expected)


def test_a_state_outside_counts_where_the_last_step_ends(device):
    # The target lies outside of `remain`: it may be entered by the last step, not before.
    model = models.line(4)
    remain, target = models.mask(4, [0, 1, 2]), models.mask(4, [3])
    for lower, expected in ((1, [0, 0, 1, 0]), (2, [0, 1, 0, 0]), (3, [1, 0, 0, 0])):
        result = bounded_until(model, remain, target, lower, on(device), lower=lower)
        np.testing.assert_array_equal(result.values, expected)


@pytest.mark.parametrize("steps", STEPS)
@every_model
def test_rewards(device, model, direction, steps):
    of_states = models.random_rewards(1, SIZE)
    of_choices = None if direction is None else models.random_rewards(2, model.matrix.num_rows)
    rewards = RewardStructure("r", of_states, of_choices)
    earned = of_states
    if direction is not None:
        earned = np.repeat(of_states, np.diff(model.row_group_offsets)) + of_choices
    total, there = np.zeros(SIZE), of_states
    for _ in range(steps):
        total = step(model, total, direction, earned)
        there = step(model, there, direction)
    keywords = {"direction": direction}
    expect(cumulative_rewards(model, rewards, steps, on(device), **keywords), total)
    expect(instantaneous_rewards(model, rewards, steps, on(device), **keywords), there)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("seed", range(3))
def test_distributions(device, seed, steps):
    model = models.random_dtmc(seed, SIZE)
    initial = np.random.default_rng(seed).dirichlet(np.ones(SIZE))
    expected = initial @ np.linalg.matrix_power(dense(model), steps)
    result = distribution_after(model, initial, steps, on(device))
    np.testing.assert_allclose(result.values, expected, rtol=1e-11, atol=1e-300)
    assert result.values.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("steps", [63, 64, 65, 999, 1000, 5000])
def test_exactly_so_many_steps_are_made(device, steps):
    size = 5002
    model = models.line(size)
    everywhere, target = np.ones(size, dtype=np.bool_), models.mask(size, [size - 1])
    result = bounded_until(model, everywhere, target, steps, on(device))
    assert result.iterations == steps
    assert result.values.sum() == steps + 1
    assert result.values[size - 1 - steps] == 1.0
    assert result.values[size - 2 - steps] == 0.0


def test_a_sweep_that_changes_nothing_is_the_last(device):
    model = models.line(10)
    everywhere, target = np.ones(10, dtype=np.bool_), models.mask(10, [9])
    result = bounded_until(model, everywhere, target, 10**9, on(device))
    np.testing.assert_array_equal(result.values, np.ones(10))
    assert result.iterations == 10
    assert result.change == 0.0


def test_named_limits_and_methods_do_not_touch_the_number_of_steps(device):
    model = models.gamblers_ruin(20)
    everywhere, target = np.ones(21, dtype=np.bool_), models.mask(21, [20])
    plain = bounded_until(model, everywhere, target, 200, on(device))
    settings = {"method": Method.JOR, "epsilon": 0.5, "max_iterations": 3}
    limited = bounded_until(model, everywhere, target, 200, on(device, **settings))
    np.testing.assert_array_equal(plain.values, limited.values)
    assert plain.iterations == limited.iterations == 200


@pytest.mark.parametrize("absolute", [False, True])
def test_the_error_reported_is_that_of_rounding(device, absolute):
    model, rewards = models.random_dtmc(5, SIZE), RewardStructure("", np.full(SIZE, 1000.0))
    result = cumulative_rewards(model, rewards, 100, on(device, absolute=absolute))
    error = np.abs(result.values / 1e5 - 1.0).max() * (1e5 if absolute else 1.0)
    assert error <= result.error_estimate < 1e-7
    assert (result.error_estimate > 1e-11) == absolute


def test_progress_counts_the_sweeps(device):
    seen = []
    model = models.gamblers_ruin(20)
    bounded_until(
        model,
        np.ones(21, dtype=np.bool_),
        models.mask(21, [20]),
        300,
        on(device),
        progress=seen.append,
    )
    sweeps = [report.iterations for report in seen]
    assert sweeps[-1] == 300
    assert sweeps == sorted(set(sweeps))
    assert sum(len(report.numbers) for report in seen) == 300
    assert min(report.numbers.min() for report in seen) > 0.0
    assert [report.sweeps_to_go for report in seen] == [300 - done for done in sweeps]
    assert {report.measure for report in seen} == {Measure.STEP}
    seconds = [report.seconds for report in seen]
    assert seconds == sorted(seconds)


def test_what_cannot_be_asked_is_refused(device):
    chain, clock = models.line(3), models.birth_death(3)
    everywhere, target = np.ones(3, dtype=np.bool_), models.mask(3, [2])
    decisions = models.mdp([[{0: 1.0}, {1: 1.0}], [{1: 1.0}], [{2: 1.0}]])
    rewards = RewardStructure("", np.ones(3))
    environment = on(device)
    for steps, lower in ((3, 4), (3, -1), (-1, 0)):
        with pytest.raises(ValueError, match="no interval"):
            bounded_until(chain, everywhere, target, steps, environment, lower=lower)
    with pytest.raises(ValueError, match="at least 0"):
        cumulative_rewards(chain, rewards, -1, environment)
    for question in (
        lambda: bounded_until(decisions, everywhere, target, 3, environment),
        lambda: cumulative_rewards(decisions, rewards, 3, environment),
        lambda: next_probabilities(decisions, target, environment),
    ):
        with pytest.raises(ValueError, match="needs a direction"):
            question()
    for question in (
        lambda: bounded_until(clock, everywhere, target, 3, environment),
        lambda: after(clock, everywhere, np.ones(3), 3, environment),
        lambda: cumulative_rewards(clock, rewards, 3, environment),
        lambda: instantaneous_rewards(clock, rewards, 3, environment),
        lambda: distribution_after(clock, np.ones(3), 3, environment),
        lambda: distribution_after(decisions, np.ones(3), 3, environment),
    ):
        with pytest.raises(UnsupportedError, match=r"CTMC|MDP"):
            question()
    with pytest.raises(InvalidModelError):
        instantaneous_rewards(chain, RewardStructure("", np.ones(2)), 3, environment)


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


COIN = ("coin2_K2", "coin2.nm", "K=2")
LEADER = ("leader3", "leader3.nm", "")


@pytest.mark.parametrize(
    ("sample", "source", "constants", "text", "target", "steps"),
    [
        (*COIN, 'Pmin=? [ F<=50 "finished" ]', "finished", 50),
        (*COIN, 'Pmax=? [ F<=50 "finished" ]', "finished", 50),
        ("csma2_2", "csma2_2.nm", "", 'Pmin=? [ F<=80 "one_delivered" ]', "one_delivered", 80),
        ("csma2_2", "csma2_2.nm", "", 'Pmax=? [ F<=80 "all_delivered" ]', "all_delivered", 80),
        ("egl_N2_L2", "egl.pm", "N=2,L=2", 'P=? [ F<=20 "knowA" ]', "knowA", 20),
        ("firewire_abst_d3", "firewire_abst.nm", "delay=3", 'Pmin=? [ F<=50 "done" ]', "done", 50),
        (*LEADER, 'Pmin=? [ F<=30 "elected" ]', "elected", 30),
        (*LEADER, 'Pmax=? [ F<=30 "elected" ]', "elected", 30),
        ("phil3", "phil3.nm", "", 'Pmin=? [ F<=20 "eat" ]', "eat", 20),
        ("phil3", "phil3.nm", "", 'Pmax=? [ F<=20 "eat" ]', "eat", 20),
    ],
)
def test_published_probabilities(sample, source, constants, text, target, steps):
    file, expected = reference(sample, source, constants, text)
    model = file.model
    direction = Direction(text[1:4]) if model.kind is ModelKind.MDP else None
    result = bounded_until(
        model,
        np.ones(model.num_states, dtype=np.bool_),
        model.labels[target],
        steps,
        SolverEnvironment(),
        direction=direction,
    )
    value = result.values[model.initial_states].item()
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(("tokens", "name"), [(3, "herman3"), (7, "herman7")])
def test_published_values_of_herman(tokens, name):
    text = 'filter(min, P=? [ F<=10 "stable" ], "init")'
    file, expected = reference(name, f"herman{tokens}.pm", "", text)
    model, everywhere = file.model, np.ones(file.model.num_states, dtype=np.bool_)
    result = bounded_until(model, everywhere, model.labels["stable"], 10, SolverEnvironment())
    assert result.values[model.initial_states].min() == pytest.approx(expected, rel=1e-12)
    text = 'filter(max, R=? [ C<=10 ], "init")'
    file, expected = reference(name, f"herman{tokens}.pm", "", text)
    result = cumulative_rewards(model, model.rewards[0], 10, SolverEnvironment())
    assert result.values[model.initial_states].max() == pytest.approx(expected, rel=1e-12)


def test_published_rewards():
    file, expected = reference("dice", "dice.pm", "", "R=? [ C<=4 ]")
    model = file.model
    result = cumulative_rewards(model, model.rewards[0], 4, SolverEnvironment())
    assert result.values[model.initial_states].item() == pytest.approx(expected, rel=1e-12)
    file, expected = reference(*COIN, 'R{"steps"}max=? [ C<=20 ]')
    model, best = file.model, Direction.MAXIMISE
    result = cumulative_rewards(model, model.rewards[0], 20, SolverEnvironment(), direction=best)
    assert result.values[model.initial_states].item() == pytest.approx(expected, rel=1e-12)


def stochastic_rows(seed: int, rows: int, width: int):
    """Rows of probabilities that add up to 1 but for rounding."""
    random = np.random.default_rng(seed)
    weights = [random.random(width) for _ in range(rows)]
    places = [random.choice(SIZE, width, replace=False) for _ in range(rows)]
    return [
        dict(zip(place.tolist(), (weight / weight.sum()).tolist(), strict=True))
        for place, weight in zip(places, weights, strict=True)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_next_state_is_sure_where_only_targets_may_follow_and_nowhere_else(device, seed):
    chain = models.dtmc(stochastic_rows(seed, SIZE, 7))
    everywhere = np.ones(SIZE, dtype=bool)
    assert (next_probabilities(chain, everywhere, on(device)).values == 1.0).all()
    # A successor that is as good as impossible is possible.
    rows = stochastic_rows(seed, SIZE, 7)
    rows[3] = {0: 1.0, 1: 1e-30}
    most = ~models.mask(SIZE, [1])
    values = next_probabilities(models.dtmc(rows), most, on(device)).values
    sure = np.array([1 not in row for row in rows])
    np.testing.assert_array_equal(values == 1.0, sure)
    assert values.max() <= 1.0


@pytest.mark.parametrize("direction", [Direction.MINIMISE, Direction.MAXIMISE])
def test_of_choices_one_or_each_must_be_sure(device, direction):
    thirds = dict.fromkeys(range(3), 1 / 3)
    model = models.mdp([[thirds, {3: 1.0}], [thirds, thirds], [{3: 1.0}], [{3: 1.0}]])
    values = next_probabilities(
        model, models.mask(4, [0, 1, 2]), on(device), direction=direction
    ).values
    most = direction is Direction.MAXIMISE
    assert values.tolist() == [1.0 if most else 0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("seed", range(5))
def test_no_probability_is_above_1(device, seed):
    chain = models.dtmc(stochastic_rows(seed, SIZE, 7))
    everywhere = np.ones(SIZE, dtype=bool)
    most = ~models.mask(SIZE, [1])
    for steps in (1, 2, 5):
        assert bounded_until(chain, everywhere, most, steps, on(device)).values.max() <= 1.0
        assert after(chain, everywhere, np.ones(SIZE), steps, on(device)).values.max() <= 1.0
