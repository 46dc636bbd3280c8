"""Until and reachability rewards against exact rationals: between bounds, and without."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.devices.two_sided import two_sided_sweeper
from engines.errors import ConvergenceError, UnsupportedError
from engines.model.environment import (
    BoundMethod,
    DeviceChoice,
    IntervalOptions,
    Method,
    SolverEnvironment,
)
from engines.model.explicit import ExplicitModel, RewardStructure
from engines.model.result import Status
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.total_rewards import total_rewards
from engines.questions.until import until_probabilities
from engines.systems.one_sided import Direction, SweepSystem
from engines.systems.two_sided import TwoSidedSystem
from tests.engines import exact, models, oracles, published

Environment = partial(SolverEnvironment, bounds=True)

CPU = Environment(device=DeviceChoice.CPU)
DIRECTIONS = (models.MIN, models.MAX)
ASKED = ((True, Method.AUTO), (True, Method.POWER), (True, Method.JACOBI), (False, Method.AUTO))
"""Whether bounds are asked for, and which method is named."""


def everywhere(size):
    return np.ones(size, dtype=bool)


def of_choices(model, payments):
    return RewardStructure("", np.zeros(model.num_states), exact.array(payments))


@pytest.mark.parametrize(("bounds", "method"), ASKED)
@pytest.mark.parametrize("seed", range(8))
def test_until_probabilities_of_chains(device, seed, bounds, method):
    rows = exact.random_chain(seed)
    size = len(rows)
    remain = set(range(size)) - {seed % size}
    goal = {(seed + 1) % size, (seed + 5) % size}
    environment = Environment(method=method, bounds=bounds, device=device, max_iterations=10**6)
    mask = models.mask(size, sorted(remain))
    result = until_probabilities(
        exact.dtmc(rows), mask, models.mask(size, sorted(goal)), environment
    )
    assert result.status is Status.CONVERGED
    exact.assert_answers(result, exact.until(rows, remain, goal), 1e-6)


@pytest.mark.parametrize(("bounds", "method"), ASKED)
@pytest.mark.parametrize("seed", range(8))
def test_rewards_of_chains(device, seed, bounds, method):
    rows = exact.random_chain(seed)
    size = len(rows)
    payments = exact.random_payments(seed, size)
    values = exact.reward(rows, payments, {0, 3})
    environment = Environment(method=method, bounds=bounds, device=device, max_iterations=10**6)
    rewards = RewardStructure("", exact.array(payments))
    target = models.mask(size, [0, 3])
    result = reachability_rewards(exact.dtmc(rows), rewards, target, environment)
    exact.assert_answers(result, values, 1e-6)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("bounds", [False, True])
def test_until_probabilities_of_mdps(device, bounds, seed, direction):
    choices = exact.random_choices(seed)
    size = len(choices)
    remain = set(range(size)) - {1}
    environment = Environment(bounds=bounds, device=device)
    result = until_probabilities(
        exact.mdp(choices),
        models.mask(size, sorted(remain)),
        models.mask(size, [0]),
        environment,
        direction=direction,
    )
    exact.assert_answers(result, exact.best_until(choices, remain, {0}, direction), 1e-6)


@pytest.mark.parametrize("bound_method", BoundMethod)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed", range(8))
def test_rewards_of_mdps(device, seed, direction, bound_method):
    choices = exact.random_choices(seed)
    model = exact.mdp(choices)
    payments = exact.random_payments(seed, model.matrix.num_rows)
    options = IntervalOptions(bound_method=bound_method)
    environment = Environment(device=device, interval=options)
    rewards, target = of_choices(model, payments), models.mask(model.num_states, [0])
    values = exact.best_reward(choices, payments, {0}, direction)

    def solve():
        return reachability_rewards(model, rewards, target, environment, direction=direction)

    swept = solve_by_default(model, rewards, target, direction).iterations > 0
    if bound_method is BoundMethod.DSMPI and direction is models.MAX and swept:
        with pytest.raises(UnsupportedError, match="bounds no maximum"):
            solve()
        return
    try:
        result = solve()
    except UnsupportedError:
        # Only DS-MPI bounds a minimum where a strategy may stay, and pay for it, for ever.
        assert direction is models.MIN
        assert bound_method not in (BoundMethod.DEFAULT, BoundMethod.DSMPI)
        return
    exact.assert_encloses(result, values, 1e-6)


def solve_by_default(model, rewards, target, direction):
    return reachability_rewards(model, rewards, target, CPU, direction=direction)


@given(
    st.integers(0, 10**9),
    st.sampled_from(DIRECTIONS),
    st.sampled_from([1e-2, 1e-6, 1e-10]),
    st.booleans(),
)
def test_mdps_of_any_seed(seed, direction, epsilon, bounds):
    choices = exact.random_choices(seed, 4)
    model = exact.mdp(choices)
    payments = exact.random_payments(seed, model.matrix.num_rows)
    target = models.mask(4, [0])
    environment = replace(CPU, epsilon=epsilon, bounds=bounds)
    result = until_probabilities(model, everywhere(4), target, environment, direction=direction)
    values = exact.best_until(choices, set(range(4)), {0}, direction)
    exact.assert_answers(result, values, epsilon)
    rewards = of_choices(model, payments)
    result = reachability_rewards(model, rewards, target, environment, direction=direction)
    exact.assert_answers(result, exact.best_reward(choices, payments, {0}, direction), epsilon)


@pytest.mark.parametrize("absorbing", [False, True])
@pytest.mark.parametrize("bounds", [False, True])
def test_ctmcs_are_solved_by_their_jumps(device, bounds, absorbing):
    rates = [{1: 3, 2: 7}, {0: 1, 3: 9}, {0: 2, 3: 1, 4: 4 if absorbing else 0}, {3: 1}, {}]
    rates = [{t: r for t, r in row.items() if r} for row in rates]
    exits = [sum(row.values()) for row in rates]
    rows = [
        {t: Fraction(r, e) for t, r in row.items()} if e else {s: Fraction(1)}
        for s, (row, e) in enumerate(zip(rates, exits, strict=True))
    ]
    model = models.ctmc([{t: float(r) for t, r in row.items()} for row in rates])
    environment, target = Environment(bounds=bounds, device=device), models.mask(5, [3])
    result = until_probabilities(model, everywhere(5), target, environment)
    exact.assert_answers(result, exact.until(rows, set(range(5)), {3}), 1e-6)
    payments = [Fraction(2), Fraction(0), Fraction(5), Fraction(1), Fraction(1)]
    of_steps = [p / e if e else p for p, e in zip(payments, exits, strict=True)]
    rewards = RewardStructure("", exact.array(payments))
    result = reachability_rewards(model, rewards, target, environment)
    exact.assert_answers(result, exact.reward(rows, of_steps, {3}), 1e-6)


def slow_chain(leak):
    """A cycle of three states that each leak a little, one part in four into the goal."""
    stay = 1 - leak
    return [
        {1: stay, 3: leak / 4, 4: 3 * leak / 4},
        {2: stay, 3: leak / 2, 4: leak / 2},
        {0: stay, 4: leak},
        {3: Fraction(1)},
        {4: Fraction(1)},
    ]


@pytest.mark.parametrize("leak", [Fraction(1, 1000), Fraction(1, 10**6), Fraction(1, 10**8)])
def test_slow_chains_are_bounded_without_sweeping_to_the_end(leak):
    rows = slow_chain(leak)
    result = until_probabilities(exact.dtmc(rows), everywhere(5), models.mask(5, [3]), CPU)
    assert result.status is Status.CONVERGED
    assert result.iterations < 20_000
    exact.assert_encloses(result, exact.until(rows, set(range(5)), {3}), 1e-6)
    payments = [Fraction(1), Fraction(0), Fraction(3), Fraction(0), Fraction(0)]
    rewards = RewardStructure("", exact.array(payments))
    result = reachability_rewards(exact.dtmc(rows), rewards, models.mask(5, [3, 4]), CPU)
    exact.assert_encloses(result, exact.reward(rows, payments, {3, 4}), 1e-6)


@pytest.mark.parametrize("direction", [models.MIN, models.MAX])
@pytest.mark.parametrize("leak", [Fraction(1, 1000), Fraction(1, 10**6), Fraction(1, 10**8)])
def test_slow_decisions_are_bounded_without_sweeping_to_the_end(leak, direction):
    rows = slow_chain(leak)
    # Of three choices two are equally good, and the third is worse.
    worse = {3: Fraction(1)} if direction is models.MIN else {4: Fraction(1)}
    choices = [[row, worse, dict(row)] if s < 3 else [row] for s, row in enumerate(rows)]
    model, target = exact.mdp(choices), models.mask(5, [3])
    result = until_probabilities(model, everywhere(5), target, CPU, direction=direction)
    assert result.status is Status.CONVERGED
    assert result.iterations < 20_000
    exact.assert_encloses(result, exact.until(rows, set(range(5)), {3}), 1e-6)
    payments = [Fraction(1), Fraction(0), Fraction(3), Fraction(0), Fraction(0)]
    # To leave at once earns nothing: the most is to stay, as the chain does.
    if direction is models.MAX:
        of_choices = [p for s, p in enumerate(payments) for _ in choices[s]]
        rewards = RewardStructure("", np.zeros(5), exact.array(of_choices))
        ends = models.mask(5, [3, 4])
        result = reachability_rewards(model, rewards, ends, CPU, direction=direction)
        assert result.iterations < 20_000
        exact.assert_encloses(result, exact.reward(rows, payments, {3, 4}), 1e-6)


def test_a_named_method_sweeps_slow_chains_and_says_that_it_did_not_end():
    rows = slow_chain(Fraction(1, 10**6))
    environment = replace(CPU, method=Method.POWER)
    result = until_probabilities(exact.dtmc(rows), everywhere(5), models.mask(5, [3]), environment)
    assert result.status is Status.NOT_CONVERGED
    assert result.iterations == environment.max_iterations
    exact.assert_encloses(result, exact.until(rows, set(range(5)), {3}), 1.0, absolute=True)


def test_where_rounding_keeps_the_bounds_apart_they_hold_and_it_is_said(device):
    rows = slow_chain(Fraction(1, 100))
    environment = Environment(epsilon=1e-16, device=device)
    result = until_probabilities(exact.dtmc(rows), everywhere(5), models.mask(5, [3]), environment)
    assert result.status is Status.CHANGE_ONLY
    assert "rounding" in result.note
    exact.assert_encloses(result, exact.until(rows, set(range(5)), {3}), 1e-11)


@pytest.mark.parametrize("kind", ["rows", "groups", "long row"])
def test_a_sweep_rounds_outwards(device, kind):
    rng = np.random.default_rng(3)
    size = 400 if kind == "long row" else 40
    model = models.random_dtmc(5, size)
    if kind == "long row":
        weights = rng.uniform(0.1, 1.0, size)
        row = dict(enumerate((weights / weights.sum()).tolist()))
        model = models.dtmc([row] * 3 + [{0: 1.0}] * (size - 3))
    start, offset = rng.uniform(0.0, 1.0, size), rng.uniform(0.0, 1.0, size)
    groups = np.arange(0, size + 1, 2, dtype=np.int32) if kind == "groups" else None
    states = None if groups is None else np.arange(size // 2, dtype=np.int32)
    direction = None if groups is None else Direction.MAXIMISE
    plain = SweepSystem(
        model.matrix, start, offset, states, group_offsets=groups, direction=direction
    )
    system = TwoSidedSystem(plain, start.copy(), False, False)
    sweeper, _ = two_sided_sweeper(system, Environment(device=device, absolute=True), -1.0)
    sweeper.run(1)
    lower, upper = sweeper.bounds()
    matrix = model.matrix
    sums = []
    for row in range(matrix.num_rows):
        entries = range(matrix.row_offsets[row], matrix.row_offsets[row + 1])
        terms = (
            Fraction(float(matrix.values[k])) * Fraction(float(start[matrix.columns[k]]))
            for k in entries
        )
        sums.append(Fraction(float(offset[row])) + sum(terms))
    if groups is not None:
        sums = [max(sums[i], sums[i + 1]) for i in range(0, size, 2)]
    longest = int(matrix.row_lengths().max())
    for low, value, up in zip(lower, sums, upper, strict=False):
        assert Fraction(float(low)) < value < Fraction(float(up))
        assert up - low <= 2.5 * (longest + 9) * 2.0**-53 * up


def test_end_components_are_left_for_the_maximum(device):
    environment = Environment(device=device)
    model = models.end_components()
    target = models.mask(5, [3])
    result = until_probabilities(model, everywhere(5), target, environment, direction=models.MAX)
    chains = [step for step, _ in oracles.strategies(model)]
    answer = oracles.best(models.MAX, [oracles.until(s, everywhere(5), target) for s in chains])
    assert result.status is Status.CONVERGED
    assert (result.bounds[0] <= answer + 1e-14).all()
    assert (answer <= result.bounds[1] + 1e-14).all()


def test_minimal_rewards_where_a_strategy_may_stay_and_pay(device):
    model, payments = oracles.zero_loops()
    rewards = RewardStructure("", np.zeros(4), payments)
    environment, target = Environment(device=device), models.mask(4, [3])
    result = reachability_rewards(model, rewards, target, environment, direction=models.MIN)
    assert result.status is Status.CONVERGED
    assert (result.bounds[0][:3] > 3.999).all()
    assert (result.bounds[1][:3] < 4.001).all()
    assert (result.bounds[0] <= [4, 4, 4, 0]).all()
    assert (result.bounds[1] >= [4, 4, 4, 0]).all()


def ruin():
    return (
        models.gamblers_ruin(12, 0.25),
        RewardStructure("", np.ones(13)),
        models.mask(13, [0, 12]),
    )


def test_the_lower_end_is_the_result_where_no_midpoint_is_wanted():
    model, rewards, target = ruin()
    environment = replace(CPU, interval=IntervalOptions(select_midpoint=False))
    result = reachability_rewards(model, rewards, target, environment)
    assert (result.values == result.bounds[0]).all()
    assert result.error_estimate == pytest.approx(result.change, rel=1e-14)
    assert result.error_estimate >= result.change > 0.0


def test_bounds_by_hand_are_taken_and_wrong_ones_noticed():
    model, rewards, target = ruin()
    computed = reachability_rewards(model, rewards, target, CPU)

    def solve(**bounds):
        environment = replace(CPU, interval=IntervalOptions(**bounds))
        return reachability_rewards(model, rewards, target, environment)

    given = solve(upper=1e4)
    assert given.status is Status.CONVERGED
    assert given.iterations > computed.iterations
    with pytest.raises(ConvergenceError, match="lower= or upper="):
        solve(upper=3.0)
    with pytest.raises(ConvergenceError, match="not monotonic"):
        solve(upper=3.0, check_monotonic=True)
    with pytest.raises(ValueError, match="upper must be"):
        solve(upper=float("inf"))


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("above", [False, True])
def test_bounds_hold_without_enforced_monotonicity(below, above):
    rows = exact.random_chain(3)
    options = IntervalOptions(monotonic_below=below, monotonic_above=above, check_monotonic=True)
    environment = replace(CPU, epsilon=1e-12, interval=options)
    target = models.mask(len(rows), [0, 3])
    result = until_probabilities(exact.dtmc(rows), everywhere(len(rows)), target, environment)
    exact.assert_encloses(result, exact.until(rows, set(range(len(rows))), {0, 3}), 1e-12)


def test_absolute_widths():
    rows = exact.random_chain(4)
    environment = replace(CPU, epsilon=1e-5, absolute=True)
    target = models.mask(len(rows), [0])
    result = until_probabilities(exact.dtmc(rows), everywhere(len(rows)), target, environment)
    values = exact.until(rows, set(range(len(rows))), {0})
    exact.assert_encloses(result, values, 1e-5, absolute=True)


def test_methods_that_do_not_fit_are_refused():
    model, rewards, target = ruin()
    with pytest.raises(UnsupportedError, match="power method or Jacobi"):
        reachability_rewards(model, rewards, target, replace(CPU, method=Method.JOR))
    mdp: ExplicitModel = models.end_components()
    with pytest.raises(ValueError, match="direction"):
        until_probabilities(mdp, everywhere(5), models.mask(5, [3]), CPU)


def test_bounds_have_no_strategy():
    model, payments = oracles.zero_loops()
    rewards, target = RewardStructure("", np.zeros(4), payments), models.mask(4, [3])
    wanted = {"direction": models.MAX, "want_strategy": True}
    for ask, what in (
        (until_probabilities, (everywhere(4), target)),
        (reachability_rewards, (rewards, target)),
        (total_rewards, (rewards,)),
    ):
        with pytest.raises(UnsupportedError, match="bounds with a strategy"):
            ask(model, *what, CPU, **wanted)


def test_what_the_graph_decides_is_exact_and_bounded():
    model = models.line(5)
    result = until_probabilities(model, everywhere(5), models.mask(5, [4]), CPU)
    assert result.iterations == 0
    assert (result.bounds[0] == 1.0).all()
    assert (result.bounds[1] == 1.0).all()
    nothing = RewardStructure("", np.zeros(5))
    result = reachability_rewards(model, nothing, models.mask(5, [4]), CPU)
    assert (result.bounds[1] == 0.0).all()


def unbounded():
    """The published values that two-sided methods compute."""
    for item in published.published("reachability reward") + published.published("unbounded"):
        form, match, _, _ = published.parse(item.text)
        if form is published.PROBABILITY or (form is published.REWARD and match[3] is not None):
            yield item


def published_bounds(item, environment):
    """The result for a published property, and what its filter makes of either bound."""
    form, match, how, among = published.parse(item.text)
    model = published.sample(item.sample).model
    if form is published.PROBABILITY:
        remain = everywhere(model.num_states)
        if match[2] is not None:
            remain = published.states_of(match[2], item)
        direction = None if match[1] is None else Direction(match[1])
        target = published.states_of(match[3], item)
        result = until_probabilities(model, remain, target, environment, direction=direction)
    else:
        name, best, formula, _ = match.groups()
        rewards = next(r for r in model.rewards if name is None or r.name == name)
        direction = None if best is None else Direction(best)
        target = published.states_of(formula, item)
        result = reachability_rewards(model, rewards, target, environment, direction=direction)
    chosen = model.initial_states if among is None else published.states_of(among, item)
    pick = {"first": lambda v: v[0], "min": np.min, "max": np.max, "avg": np.mean, "sum": np.sum}
    return result, [float(pick[how](bound[chosen])) for bound in result.bounds]


@pytest.mark.parametrize("method", [Method.INTERVAL, Method.OPTIMISTIC])
@pytest.mark.parametrize("item", list(unbounded()), ids=str)
def test_published_values_lie_between_the_bounds(item, method):
    result, (lower, upper) = published_bounds(item, replace(CPU, method=method))
    assert result.status is Status.CONVERGED
    rounding = 1e-9 * abs(item.value)
    assert lower - rounding <= item.value <= upper + rounding
    assert upper - lower <= 1e-6 * lower + rounding


PRISM_RUNS = [
    ("mdps/consensus/coin2.nm", "coin2_K2", {"K": 2}, 'R{"steps"}max=? [ F "finished" ]', 0),
    ("mdps/consensus/coin2.nm", "coin2_K2", {"K": 2}, 'R{"steps"}min=? [ F "finished" ]', 0),
    ("mdps/consensus/coin2.nm", "coin2_K2", {"K": 2}, 'Pmax=? [ F "finished"&!"agree" ]', 0),
    ("ctmcs/polling/poll3.sm", "poll3", {}, 'R{"served"}=? [ F s1=1 & s2=1 & s3=1 ]', 0),
    ("ctmcs/polling/poll3.sm", "poll3", {}, "P=? [ !(s=2 & a=1) U (s=1 & a=1) ]", 0),
    ("ctmcs/tandem/tandem.sm", "tandem_c3", {"c": 3}, "R=? [ F sc=c ]", 0),
    ("dtmcs/herman/herman7.pm", "herman7", {}, 'filter(max, R=? [ F "stable" ], "init")', 0),
    ("simple/dice/dice.pm", "dice", {}, "P=? [ F s=7 & d=6 ]", 0),
    # Here some states earn nothing, and start from 0 instead of from the upper bound.
    ("mdps/csma/csma2_2.nm", "csma2_2", {}, 'R{"time"}max=? [ F "all_delivered" ]', 1),
]


@pytest.mark.sampled(4)
@pytest.mark.prism
@pytest.mark.parametrize(
    ("path", "sample", "constants", "text", "fewer"),
    PRISM_RUNS,
    ids=[run[3] for run in PRISM_RUNS],
)
def test_iterations_and_values_are_those_of_prism(
    prism, prism_examples, path, sample, constants, text, fewer
):
    item = published.Published(sample, tuple(constants.items()), text, "", 0.0)
    switch = "-power" if published.sample(sample).model.row_group_offsets is None else "-valiter"
    method = Method.POWER if switch == "-power" else Method.VALUE_ITERATION
    given = [f"{name}={value}" for name, value in constants.items()]
    words = ["-const", ",".join(given)] if given else []
    ran = prism(
        prism_examples / path, "-explicit", "-ii", switch, "-maxiters", 10**6, "-pf", text, *words
    )
    sweeps = [int(n) for n in re.findall(r"Interval iteration .* took (\d+) iter", ran.output)]
    value = float(re.search(r"^Result: (?:\[?)([-+.\dE]+)", ran.output, re.M)[1])
    environment = replace(CPU, method=method, max_iterations=10**6)
    result, bounds = published_bounds(item, environment)
    assert result.iterations == sweeps[-1] - fewer
    assert value == pytest.approx(sum(bounds) / 2.0, rel=1e-9)
