"""Each task of a `prismgpu.Problem`, against plain loops and matrix exponentials."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg

from engines.model.environment import Method, SolverEnvironment
from engines.model.progress import Progress, SweepReport
from engines.questions.reachability_rewards import reachability_rewards
from prism_hooks import questions
from prism_hooks.backend import EngineBackend
from prism_hooks.extract import start_of
from prism_hooks.options import HookOptions
from prism_hooks.report import Ending, progress_lines
from tests.engines import models

STATES = 6
STEPS = 5
TIME = 1.7
SEEDS = (1, 2, 3)
ONES = np.ones(STATES)


class Model:
    """A random dense model; in an MDP each state has two choices, the rows 2 s and 2 s + 1."""

    def __init__(self, kind: str, seed: int) -> None:
        self.kind = kind
        self.random = np.random.default_rng(seed)
        rows = 2 * STATES if kind == "MDP" else STATES
        self.matrix = self.random.random((rows, STATES)) * (
            self.random.random((rows, STATES)) < 0.6
        )
        self.matrix[np.arange(rows), self.random.integers(STATES, size=rows)] += 0.5
        if kind == "CTMC":
            self.matrix[STATES - 1] = 0.0
        else:
            self.matrix /= self.matrix.sum(axis=1, keepdims=True)
        self.target = np.arange(STATES) % 3 == 2
        self.remain = self.random.random(STATES) < 0.7
        self.rewards = self.random.random(rows)
        self.of_states = self.random.random(STATES)
        self.values = self.random.random(STATES)

    def extract(self) -> SimpleNamespace:
        nonzero = self.matrix != 0.0
        return SimpleNamespace(
            kind=self.kind,
            numStates=STATES,
            groupOffsets=2 * np.arange(STATES + 1) if self.kind == "MDP" else None,
            rowOffsets=np.append(0, np.cumsum(nonzero.sum(axis=1))),
            columns=np.nonzero(nonzero)[1],
            values=self.matrix[nonzero],
        )

    def step(self, x: np.ndarray, direction: str | None, earned: np.ndarray | None = None):
        y = self.matrix @ x + (0.0 if earned is None else earned)
        if direction is None:
            return y
        pairs = y.reshape(STATES, 2)
        return pairs.min(axis=1) if direction == "min" else pairs.max(axis=1)

    @property
    def generator(self) -> np.ndarray:
        return self.matrix - np.diag(self.matrix.sum(axis=1))


def words(states: np.ndarray) -> np.ndarray:
    """Return a set of states as `BitSet.toLongArray` gives it."""
    bits = np.zeros(64, bool)
    bits[: len(states)] = states
    return np.packbits(bits, bitorder="little").view(np.int64)


def problem(model: Model, task: str, direction: str | None = None, **question) -> SimpleNamespace:
    fields = {
        "task": task, "modelId": 1, "numStates": STATES, "embedded": False, "model": model.extract,
        "states": None, "remain": None, "start": None, "startSets": None,
        "rewards": None, "held": None, "direction": direction,
        "lower": 0.0,
        "upper": 0.0, "method": "Jacobi" if direction is None else "Value iteration",
        "omega": 0.9, "epsilon": 1e-12, "absolute": False, "maxIterations": 10_000,
        "intervals": None, "topological": False,
        "detectsSteadyState": False, "wantsStrategy": False, "strategy": None,
        "errorOnNonConvergence": True, "say": lambda _: None, "warn": lambda _: None,
        "error": None, "refusal": None, "solution": None, "iterations": 0, "errorBound": -1.0,
        "errorAbsolute": None, "guaranteed": None, "parts": None, "told": False,
        "bound": float("nan"), "relation": None,
    }  # fmt: skip
    return SimpleNamespace(**(fields | question))


def solve(asked: SimpleNamespace) -> SimpleNamespace:
    EngineBackend(HookOptions()).solve(asked)
    return asked


def solved(*arguments, **question) -> SimpleNamespace:
    asked = solve(problem(*arguments, **question))
    assert asked.error is None, asked.error
    assert asked.refusal is None
    return asked


DISCRETE = [("DTMC", None), ("MDP", "min"), ("MDP", "max")]
discrete = pytest.mark.parametrize(("kind", "direction"), DISCRETE)
seeded = pytest.mark.parametrize("seed", SEEDS)


def assert_steps(asked: SimpleNamespace, expected: np.ndarray) -> None:
    np.testing.assert_allclose(asked.solution, expected, rtol=1e-13, atol=1e-15)
    assert asked.errorBound == 0.0


@seeded
@discrete
def test_next_is_one_step(kind, direction, seed):
    model = Model(kind, seed)
    found = solved(model, "next", direction, states=words(model.target))
    assert_steps(found, model.step(model.target.astype(float), direction))


@pytest.mark.parametrize("embedded", [False, True])
@seeded
def test_next_of_a_ctmc_is_the_next_jump_and_an_absorbing_state_stays(seed, embedded):
    model = Model("CTMC", seed)
    model.target[STATES - 1] = True
    found = solved(model, "next", states=words(model.target), embedded=embedded)
    exits = model.matrix.sum(axis=1, keepdims=True)
    jumps = np.where(exits > 0, model.matrix / np.where(exits > 0, exits, 1.0), np.eye(STATES))
    assert_steps(found, jumps @ model.target)


def bounded_until(model: Model, direction, lower: int, upper: int) -> np.ndarray:
    """P(remain U[lower,upper] target) by the recursion of its definition."""
    x = np.zeros(STATES)
    for steps in range(upper + 1):
        now = upper - steps >= lower
        x = np.where(model.remain, model.step(x, direction), 0.0) if steps else x
        x = np.where(model.target & now, 1.0, x)
    return x


@seeded
@discrete
@pytest.mark.parametrize("lower", [0, 2, STEPS])
def test_a_step_bounded_until_keeps_to_both_bounds(kind, direction, seed, lower):
    model = Model(kind, seed)
    found = solved(
        model, "step-bounded until", direction, states=words(model.target),
        remain=words(model.remain), lower=lower, upper=STEPS,
    )  # fmt: skip
    assert_steps(found, bounded_until(model, direction, lower, STEPS))


@seeded
@discrete
def test_steps_before_given_values_stay_where_they_must(kind, direction, seed):
    model = Model(kind, seed)
    found = solved(
        model, "step-bounded until", direction, states=words(model.target),
        remain=words(model.remain), start=model.values, lower=STEPS, upper=STEPS,
    )  # fmt: skip
    x = model.values
    for _ in range(STEPS):
        x = np.where(model.remain, model.step(x, direction), 0.0)
    assert_steps(found, x)


@seeded
@discrete
def test_cumulative_rewards_are_earned_a_step(kind, direction, seed):
    model = Model(kind, seed)
    found = solved(model, "cumulative reward", direction, rewards=model.rewards, upper=STEPS)
    x = np.zeros(STATES)
    for _ in range(STEPS):
        x = model.step(x, direction, model.rewards)
    assert_steps(found, x)


@seeded
@discrete
def test_instantaneous_rewards_are_those_of_states(kind, direction, seed):
    model = Model(kind, seed)
    found = solved(model, "instantaneous reward", direction, rewards=model.of_states, upper=STEPS)
    x = model.of_states
    for _ in range(STEPS):
        x = model.step(x, direction)
    assert_steps(found, x)


@seeded
def test_a_transient_distribution_goes_forwards(seed):
    model = Model("DTMC", seed)
    initial = model.values / model.values.sum()
    found = solved(model, "transient distribution", start=initial, upper=STEPS)
    assert_steps(found, initial @ np.linalg.matrix_power(model.matrix, STEPS))


def assert_within_claim(asked: SimpleNamespace, expected: np.ndarray) -> None:
    assert asked.errorAbsolute
    assert 0.0 < asked.errorBound < 1e-11
    assert np.abs(asked.solution - expected).max() <= asked.errorBound + 1e-13


@seeded
@pytest.mark.parametrize("valued", [False, True])
def test_a_phase_of_a_time_bounded_until_absorbs_where_it_does_not_remain(seed, valued):
    model = Model("CTMC", seed)
    found = solved(
        model, "time-bounded until", states=words(model.target), remain=words(model.remain),
        start=model.values if valued else None, upper=TIME,
    )  # fmt: skip
    generator = np.where(model.remain[:, None], model.generator, 0.0)
    values = np.where(model.target, model.values if valued else 1.0, 0.0)
    assert_within_claim(found, scipy.linalg.expm(generator * TIME) @ values)


@seeded
def test_rewards_and_distributions_of_a_ctmc_are_those_of_its_generator(seed):
    model = Model("CTMC", seed)
    initial = model.values / model.values.sum()
    flow = scipy.linalg.expm(model.generator * TIME)
    at_time = solved(model, "instantaneous reward", rewards=model.of_states, upper=TIME)
    assert_within_claim(at_time, flow @ model.of_states)
    distribution = solved(model, "transient distribution", start=initial, upper=TIME)
    assert_within_claim(distribution, initial @ flow)
    # d/dt (1, ∫ r) is linear too: one more row and column.
    wider = np.zeros((STATES + 1, STATES + 1))
    wider[:STATES, :STATES], wider[:STATES, STATES] = model.generator, model.rewards
    until_time = solved(model, "cumulative reward", rewards=model.rewards, upper=TIME)
    assert_within_claim(until_time, scipy.linalg.expm(wider * TIME)[:STATES, STATES])


@seeded
@pytest.mark.parametrize("kind", ["DTMC", "CTMC"])
def test_total_rewards_solve_their_equations(kind, seed):
    model = Model(kind, seed)
    # One end, which earns nothing; everything leads there.
    model.matrix[STATES - 1] = np.eye(STATES)[STATES - 1] * (kind == "DTMC")
    model.matrix[: STATES - 1, STATES - 1] += 0.5
    if kind == "DTMC":
        model.matrix /= model.matrix.sum(axis=1, keepdims=True)
    model.rewards[STATES - 1] = 0.0
    found = solved(model, "total reward", rewards=model.rewards)
    inner = (model.matrix - np.eye(STATES)) if kind == "DTMC" else model.generator
    expected = np.linalg.solve(-inner[:-1, :-1], model.rewards[:-1])
    np.testing.assert_allclose(found.solution, np.append(expected, 0.0), rtol=1e-10)
    assert not found.errorAbsolute


def test_the_long_run_from_a_distribution_is_shared_among_the_components():
    model = Model("DTMC", 1)
    model.matrix = np.zeros((STATES, STATES))
    model.matrix[0, [1, 2]] = 0.25, 0.75
    model.matrix[1, 1] = model.matrix[2, 3] = model.matrix[3, 2] = 1.0
    model.matrix[4, 0] = model.matrix[5, 5] = 1.0
    initial = np.array([0.0, 0.1, 0.0, 0.0, 0.8, 0.1])
    found = solved(model, "long-run distribution", start=initial)
    np.testing.assert_allclose(found.solution, [0, 0.1 + 0.2, 0.3, 0.3, 0, 0.1], atol=1e-14)


@pytest.mark.parametrize(
    ("kind", "question", "why"),
    [
        ("CTMC", {"task": "step-bounded until", "upper": 2.0}, "CTMC"),
        ("DTMC", {"task": "time-bounded until", "upper": 2.0}, "DTMC"),
        ("MDP", {"task": "transient distribution", "direction": "min"}, "MDP"),
        ("CTMC", {"task": "transient distribution", "embedded": True}, "embedded"),
        ("CTMC", {"task": "cumulative reward", "upper": -1.0}, "between"),
        ("DTMC", {"task": "long-run distribution", "start": ONES}, "sum to 6"),
        ("DTMC", {"task": "transient distribution"}, "no initial probabilities"),
    ],
)
def test_what_the_engines_do_not_answer_is_handed_back_with_a_reason(kind, question, why):
    asked = solve(problem(Model(kind, 1), **question))
    assert asked.error is None
    assert asked.solution is None
    assert asked.refusal.startswith(question["task"])
    assert why in asked.refusal


def test_a_time_too_long_for_prism_too_is_an_error():
    # On more than 2^31 terms PRISM's own code ends with an exception.
    rewards = np.ones(STATES)
    asked = solve(problem(Model("CTMC", 1), "instantaneous reward", rewards=rewards, upper=1e18))
    assert asked.refusal is None
    assert "time bound too big" in asked.error


def test_a_negative_reward_is_an_error_that_names_the_state():
    rewards = np.zeros(STATES)
    rewards[3] = -1.0
    asked = solve(problem(Model("DTMC", 1), "cumulative reward", rewards=rewards, upper=2))
    assert "state 3" in asked.error


@pytest.mark.parametrize(
    ("ending", "number", "expected"),
    [
        (Ending.CONVERGENCE, 0.125, "Iteration 8: max relative diff=0.125000, 6.00 sec so far"),
        (Ending.STEPS, 0.125, "Iteration 8 (of at most 40), 6.00 sec so far"),
        (Ending.TIME, 0.125, "Iteration 8: 87.5 % of the sum, 6.00 sec so far"),
    ],
)
def test_progress_says_what_its_number_means(ending, number, expected):
    lines: list[str] = []
    asked = SimpleNamespace(absolute=False, upper=40.0, progress=lines.append)
    report: Progress = progress_lines(asked, ending)
    for sweeps, change, seconds in ((4, 0.5, 1.0), (8, number, 6.0), (9, number, 7.0)):
        report(SweepReport(sweeps, np.array([change]), seconds))
    assert lines == [expected]


INTERVALS = SimpleNamespace(
    boundMethod="default", lower=math.nan, upper=math.nan, selectMidpoint=True,
    monotonicBelow=True, monotonicAbove=True, checkMonotonic=False,
)  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", ["DTMC", "CTMC"])
def test_bounds_of_an_until_say_how_far_the_value_may_be(kind, seed):
    model = Model(kind, seed)
    inner = ~model.target & (np.arange(STATES) > 0)
    asked = solved(
        model, "reachability", states=words(inner), start=model.target.astype(float),
        intervals=INTERVALS, embedded=kind == "CTMC", epsilon=1e-7,
    )  # fmt: skip
    chain = model.matrix[inner] / model.matrix[inner].sum(axis=1, keepdims=True)
    left = np.eye(inner.sum()) - chain[:, inner]
    exact = model.target.astype(float)
    exact[inner] = np.linalg.solve(left, chain[:, model.target].sum(axis=1))
    assert asked.guaranteed
    assert 0.0 < asked.errorBound <= 1e-7
    away = np.abs(asked.solution - exact)
    assert (away <= asked.errorBound * asked.solution + 1e-14).all()


@seeded
def test_the_least_reward_is_not_that_of_a_loop_without_reward(seed):
    model = Model("MDP", seed)
    goal = model.target
    # Waiting in the first state is free; the last one never gets anywhere.
    model.matrix[0], model.rewards[0] = np.eye(STATES)[0], 0.0
    stuck = np.arange(STATES) == STATES - 2
    model.matrix[2 * (STATES - 2) :][:2] = np.eye(STATES)[STATES - 2]
    into = model.matrix[:, stuck].any(axis=1)
    infinite = stuck.copy()
    while True:
        # What can avoid an infinite state for ever, and reach the goal, is finite.
        allowed = ~(model.matrix[:, infinite] > 0.0).any(axis=1)
        reaching = goal.copy()
        for _ in range(STATES):
            onward = allowed & (model.matrix[:, reaching] > 0.0).any(axis=1)
            reaching |= onward.reshape(STATES, 2).any(axis=1) & ~infinite
        if (infinite == ~reaching).all():
            break
        infinite = ~reaching
    assert into.any()
    unknown = ~goal & ~infinite
    asked = solved(
        model, "least reward", "min", states=words(unknown),
        start=np.where(infinite, np.inf, 0.0), rewards=model.rewards,
    )  # fmt: skip
    # From above, waiting is as dear as it was; that leads down to the value of not waiting.
    x = np.where(goal, 0.0, np.where(infinite, np.inf, 1e3))
    finite = np.where(infinite, 1e300, x)
    for _ in range(20_000):
        finite = np.where(unknown, model.step(finite, "min", model.rewards), finite)
    np.testing.assert_allclose(asked.solution[unknown], finite[unknown], rtol=1e-8)
    assert np.isinf(asked.solution[infinite]).all()
    assert (asked.solution[goal] == 0.0).all()


def test_bounds_from_given_values_are_handed_back():
    model = Model("DTMC", 1)
    start = np.where(model.target, 0.5, 0.0)
    asked = solve(
        problem(
            model, "reachability", states=words(~model.target), start=start, intervals=INTERVALS
        )
    )
    assert "given values" in asked.refusal


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("direction", ["min", "max"])
def test_a_strategy_has_one_of_each_states_own_choices_and_the_value(direction, seed):
    model = Model("MDP", seed)
    asked = solved(
        model, "reachability", direction, states=words(~model.target),
        start=model.target.astype(float), wantsStrategy=True,
    )  # fmt: skip
    inner = ~model.target
    assert set(asked.strategy[inner]) <= {0, 1}
    chosen = model.matrix[2 * np.arange(STATES) + np.maximum(asked.strategy, 0)]
    left = np.eye(inner.sum()) - chosen[np.ix_(inner, inner)]
    exact = np.linalg.solve(left, chosen[np.ix_(inner, ~inner)].sum(axis=1))
    assert asked.solution[inner] == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("task", ["prob0", "prob1"])
def test_a_set_comes_back_as_a_bit_sets_words(task, seed):
    model = Model("DTMC", seed)
    remain, target = model.remain, model.target
    asked = solved(model, task, states=words(target), remain=words(remain))
    reach = target.astype(float)
    for _ in range(200):
        reach = np.where(target, 1.0, np.where(remain, model.matrix @ reach, 0.0))
    expected = reach == 0.0 if task == "prob0" else reach > 1.0 - 1e-9
    found = np.unpackbits(asked.found.view(np.uint8), bitorder="little")[:STATES]
    np.testing.assert_array_equal(found.astype(bool), expected)


def test_values_to_begin_from_are_no_targets():
    chain = models.dtmc([{1: 0.5, 2: 0.5}, {1: 1.0}, {2: 1.0}])
    open_, start = np.array([True, False, False]), np.array([1.0, 1.0, 0.0])
    asked = questions.Question(open_, open_, start)
    result = questions.TASKS["until"].answer(chain, asked, SolverEnvironment(), None)
    assert result.values.tolist() == [0.5, 1.0, 0.0]


def test_bounds_of_rewards_have_room_for_the_rounding_of_the_rewards():
    # PRISM has divided these by the exit rates; what is multiplied back is another number.
    chain = models.ctmc([{0: 1.0, 1: 3.0, 2: 0.7}, {0: 0.3, 2: 0.9}, {2: 1.0}])
    open_, rewards = np.array([True, True, False]), np.array([0.1, 0.7, 0.0])
    asked = questions.Question(open_, open_, np.zeros(3), rewards)
    environment = SolverEnvironment(method=Method.INTERVAL)
    found = questions.TASKS["reachability"].answer(chain, asked, environment, None)
    plain = reachability_rewards(
        chain,
        replace(asked, rewards=rewards * chain.exit_rates).reward_structure(chain),
        ~open_,
        environment,
    )
    assert (found.bounds[0] < plain.bounds[0])[open_].all()
    assert (found.bounds[1] > plain.bounds[1])[open_].all()
    assert found.error_estimate > plain.error_estimate


def test_values_to_start_from_are_told_of_sets():
    problem = SimpleNamespace(
        start=None, startSets=[[0b0110], [0b0100]], startValues=[0.0, 1.0], startOfOthers=0.5
    )
    assert start_of(problem, 5).tolist() == [0.5, 0.0, 1.0, 0.5, 0.5]
    problem.start = [0.25] * 5
    assert start_of(problem, 5).tolist() == [0.25] * 5
    problem.start = problem.startSets = None
    assert start_of(problem, 5) is None
