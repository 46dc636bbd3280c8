"""Long-run values between bounds, against elimination over the rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from engines.errors import InvalidModelError, UnsupportedError
from engines.graph.components import Components, bsccs
from engines.model.environment import DeviceChoice, IntervalOptions, Method
from engines.model.environment import SolverEnvironment as Environment
from engines.model.explicit import ModelKind, RewardStructure
from engines.model.result import Status
from engines.questions.component_averages import component_averages
from engines.questions.long_run import long_run_probabilities, long_run_rewards
from engines.questions.long_run_distribution import steady_state_distribution
from tests.engines import exact, models

CPU = Environment(method=Method.INTERVAL, device=DeviceChoice.CPU)


def recurrent(seed, size=8, first=0):
    """Rows with a cycle through all states, which have the numbers from `first` on."""
    rng = np.random.default_rng(seed)
    rows = []
    for state in range(size):
        targets = {int(t) for t in rng.integers(0, size, 3)} | {(state + 1) % size}
        weights = {first + t: int(rng.integers(1, 40)) for t in sorted(targets)}
        rows.append({t: Fraction(w, sum(weights.values())) for t, w in weights.items()})
    return rows


def cycle(size, first):
    """A periodic component; of one state, an absorbing one."""
    return [{first + (state + 1) % size: Fraction(1)} for state in range(size)]


def several(seed):
    """Components of several kinds behind transient states, some of which are never entered."""
    rng = np.random.default_rng(seed)
    rows = recurrent(seed, 5, 0)
    rows += cycle(3, 5) + cycle(1, 8) + recurrent(seed + 50, 4, 9) + cycle(2, 13)
    closed, open_states = len(rows), 6
    for state in range(open_states):
        targets = {int(t) for t in rng.integers(0, closed + open_states, 4)}
        targets |= {closed + (state + 1) % open_states, int(rng.integers(closed))}
        weights = {t: int(rng.integers(1, 60)) for t in sorted(targets)}
        rows.append({t: Fraction(w, sum(weights.values())) for t, w in weights.items()})
    # The last state is left at once and for ever.
    rows.append({0: Fraction(1, 3), closed: Fraction(2, 3)})
    return rows


def components_of(rows):
    """The bottom components, by reaching back and forth."""
    found, everywhere = [], set(range(len(rows)))
    reach = [exact.reaching(rows, {s}, everywhere) for s in everywhere]
    for state in sorted(everywhere):
        onwards = {t for t in everywhere if state in reach[t]}
        if all(t in reach[state] for t in onwards) and not any(state in c for c in found):
            found.append(sorted(onwards | {state}))
    return found


def stationary(rows, members, sojourns):
    """The stationary distribution of a component, by the visits between those of one state."""
    turned = [{} for _ in rows]
    for state in members:
        for after, part in rows[state].items():
            turned[after][state] = part
    first, others = members[0], members[1:]
    visits = exact.solve(turned, others, {s: rows[first].get(s, Fraction(0)) for s in others})
    visits[first] = Fraction(1)
    total = sum(visits[s] * sojourns[s] for s in members)
    return {s: visits[s] * sojourns[s] / total for s in members}


def long_run(rows, weights, sojourns=None):
    """The long-run value of each state; rows are those of the jumps."""
    sojourns = sojourns or [Fraction(1)] * len(rows)
    values, everywhere = [Fraction(0)] * len(rows), set(range(len(rows)))
    for members in components_of(rows):
        average = sum(p * weights[s] for s, p in stationary(rows, members, sojourns).items())
        for state, part in enumerate(exact.until(rows, everywhere, set(members))):
            values[state] += part * average
    return values


def distribution(rows, initial, sojourns=None):
    """The long-run distribution from an initial one."""
    sojourns = sojourns or [Fraction(1)] * len(rows)
    values, everywhere = [Fraction(0)] * len(rows), set(range(len(rows)))
    for members in components_of(rows):
        ending = exact.until(rows, everywhere, set(members))
        entered = sum(i * e for i, e in zip(initial, ending, strict=True))
        for state, part in stationary(rows, members, sojourns).items():
            values[state] = entered * part
    return values


def timed(rows):
    """Rates of the jumps, and the mean times in the states."""
    rates = [Fraction(3 * state + 1, 7) for state in range(len(rows))]
    scaled = [
        {t: float(p * rate) for t, p in row.items()} for row, rate in zip(rows, rates, strict=True)
    ]
    return models.ctmc(scaled), [1 / rate for rate in rates]


METHODS = [Method.AUTO, Method.INTERVAL, Method.OPTIMISTIC]


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(5))
def test_probabilities_of_a_dtmc_of_several_components(device, seed, method, absolute):
    rows = several(seed)
    inside = [state % 3 == 1 for state in range(len(rows))]
    environment = Environment(method=method, device=device, absolute=absolute)
    result = long_run_probabilities(exact.dtmc(rows), np.array(inside), environment)
    assert result.status is Status.CONVERGED
    exact.assert_answers(result, long_run(rows, [Fraction(i) for i in inside]), 1e-6, absolute)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("bounds", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_rewards_of_a_ctmc_of_several_components(device, seed, bounds, absolute):
    rows = several(seed)
    model, sojourns = timed(rows)
    weights = [Fraction(state % 4 * 37, 8) for state in range(len(rows))]
    environment = Environment(device=device, bounds=bounds, absolute=absolute, epsilon=1e-8)
    rewards = RewardStructure("r", exact.array(weights))
    result = long_run_rewards(model, rewards, environment)
    exact.assert_answers(result, long_run(rows, weights, sojourns), 1e-8, absolute)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(5))
def test_distributions(device, seed, method, absolute):
    rows = several(seed)
    initial = [Fraction(0)] * len(rows)
    initial[-1], initial[2], initial[6] = Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)
    environment = Environment(method=method, device=device, absolute=absolute)
    result = steady_state_distribution(exact.dtmc(rows), exact.array(initial), environment)
    exact.assert_answers(result, distribution(rows, initial), 1e-6, absolute)
    model, sojourns = timed(rows)
    result = steady_state_distribution(model, exact.array(initial), environment)
    exact.assert_answers(result, distribution(rows, initial, sojourns), 1e-6, absolute)


def test_a_distribution_has_nothing_in_what_is_not_entered():
    result = steady_state_distribution(models.several_bsccs(), np.eye(8)[3], CPU)
    assert (result.bounds[1] > 0.0).tolist() == [s in (3, 4, 5) for s in range(8)]


@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_periodic_chain(device, size):
    rows = cycle(size, 0)
    environment = Environment(method=Method.INTERVAL, device=device)
    inside = [state == 0 for state in range(size)]
    result = long_run_probabilities(exact.dtmc(rows), np.array(inside), environment)
    exact.assert_encloses(result, [Fraction(1, size)] * size, 1e-6)
    initial = [Fraction(int(state == 0)) for state in range(size)]
    result = steady_state_distribution(exact.dtmc(rows), exact.array(initial), environment)
    exact.assert_encloses(result, [Fraction(1, size)] * size, 1e-6)


def test_absorbing_states_need_no_average(device):
    rows = [{0: Fraction(1)}, {0: Fraction(1, 3), 1: Fraction(1, 3), 2: Fraction(1, 3)}]
    rows.append({2: Fraction(1)})
    environment = Environment(method=Method.INTERVAL, device=device)
    weights = [Fraction(6), Fraction(100), Fraction(3)]
    rewards = RewardStructure("", exact.array(weights))
    result = long_run_rewards(exact.dtmc(rows), rewards, environment)
    exact.assert_encloses(result, long_run(rows, weights), 1e-6)
    assert result.bounds[0][0] == result.bounds[1][0] == 6.0


def test_where_the_end_is_sure_the_value_is_that_of_the_component():
    rows = [{1: Fraction(1, 2), 2: Fraction(1, 2)}, {1: Fraction(1)}, {2: Fraction(1)}]
    rows.append({1: Fraction(1)})
    inside = models.mask(4, [1])
    result = long_run_probabilities(exact.dtmc(rows), inside, CPU)
    assert result.bounds[0].tolist() == [result.bounds[0][0], 1.0, 0.0, 1.0]
    assert result.bounds[1].tolist() == [result.bounds[1][0], 1.0, 0.0, 1.0]
    everything = long_run_probabilities(exact.dtmc(rows), np.ones(4, dtype=bool), CPU)
    assert (everything.bounds[0] == 1.0).all()
    assert everything.error_estimate == 0.0


def test_nearly_uncoupled_blocks():
    model = models.uncoupled_blocks()
    size = model.num_states
    matrix = model.matrix
    rates = [{} for _ in range(size)]
    for k, row in enumerate(matrix.row_of_entry()):
        rates[row][int(matrix.columns[k])] = Fraction(float(matrix.values[k]))
    exits = [sum(row.values()) for row in rates]
    rows = [{t: r / e for t, r in row.items()} for row, e in zip(rates, exits, strict=True)]
    sojourns = [1 / e for e in exits]
    weights = [Fraction(int(state < 4)) for state in range(size)]
    result = long_run_probabilities(model, np.arange(size) < 4, CPU)
    exact.assert_encloses(result, long_run(rows, weights, sojourns), 1e-6)
    initial = [Fraction(int(state == 0)) for state in range(size)]
    result = steady_state_distribution(model, exact.array(initial), CPU)
    exact.assert_encloses(result, distribution(rows, initial, sojourns), 1e-6)


@pytest.mark.parametrize("method", [Method.AUTO, Method.JACOBI, Method.POWER])
def test_named_sweeps(method):
    rows = recurrent(3)
    components = Components(np.zeros(8, dtype=np.int32), 1)
    weights = [Fraction(state % 2) for state in range(8)]
    bounds = component_averages(
        exact.dtmc(rows),
        components,
        exact.array(weights),
        Environment(method=method, device=DeviceChoice.CPU, bounds=True),
    )
    value = long_run(rows, weights)[0]
    assert Fraction(float(bounds.lower[0])) <= value <= Fraction(float(bounds.upper[0]))
    assert bounds.upper[0] - bounds.lower[0] <= 1e-6 * bounds.lower[0]


def test_one_component_after_the_other():
    rows = several(4)
    inside = [state % 3 == 1 for state in range(len(rows))]
    environment = Environment(
        method=Method.INTERVAL, device=DeviceChoice.CPU, topological=True, epsilon=1e-9
    )
    result = long_run_probabilities(exact.dtmc(rows), np.array(inside), environment)
    exact.assert_encloses(result, long_run(rows, [Fraction(i) for i in inside]), 1e-9)


def test_rare_states_have_narrow_relative_bounds():
    size = 30
    model = models.birth_death(size, birth=1.0, death=40.0)
    result = long_run_probabilities(model, models.mask(size, [size - 1]), CPU)
    ratio = Fraction(1, 40)
    value = ratio ** (size - 1) * (1 - ratio) / (1 - ratio**size)
    exact.assert_encloses(result, [value] * size, 1e-6)
    assert float(value) < 1e-45


def test_bounds_of_rewards_given_by_hand_do_not_concern_averages():
    rows = several(1)
    options = IntervalOptions(lower=0.9, upper=1.0)
    environment = Environment(method=Method.INTERVAL, device=DeviceChoice.CPU, interval=options)
    inside = [state % 3 == 1 for state in range(len(rows))]
    result = long_run_probabilities(exact.dtmc(rows), np.array(inside), environment)
    exact.assert_encloses(result, long_run(rows, [Fraction(i) for i in inside]), 1e-6)


def test_the_lower_end_may_be_the_value():
    rows = several(1)
    options = IntervalOptions(select_midpoint=False)
    environment = Environment(method=Method.INTERVAL, device=DeviceChoice.CPU, interval=options)
    inside = [state % 3 == 1 for state in range(len(rows))]
    result = long_run_probabilities(exact.dtmc(rows), np.array(inside), environment)
    assert (result.values == result.bounds[0]).all()
    exact.assert_encloses(result, long_run(rows, [Fraction(i) for i in inside]), 1e-6)


def test_a_width_below_rounding_is_not_claimed():
    rows = several(2)
    environment = Environment(method=Method.INTERVAL, device=DeviceChoice.CPU, epsilon=1e-17)
    inside = [state % 3 == 1 for state in range(len(rows))]
    result = long_run_probabilities(exact.dtmc(rows), np.array(inside), environment)
    assert result.status is Status.CHANGE_ONLY
    exact.assert_encloses(result, long_run(rows, [Fraction(i) for i in inside]), 1e-12)


def test_many_small_components_take_three_solves():
    pairs = 3000
    rows = [{2: 1.0 / pairs}]
    rows[0] = {1 + 2 * k: 1.0 / pairs for k in range(pairs)}
    for k in range(pairs):
        rows.append({1 + 2 * k: 0.25, 2 + 2 * k: 0.75})
        rows.append({1 + 2 * k: 1.0})
    model = models.dtmc(rows)
    inside = np.arange(model.num_states) % 2 == 1
    result = long_run_probabilities(model, inside, CPU)
    assert result.iterations < 200
    assert abs(result.values[0] - 4.0 / 7.0) < 1e-6
    assert result.bounds[0][0] <= 4.0 / 7.0 <= result.bounds[1][0]


def test_what_does_not_fit_is_refused():
    model = models.several_bsccs()
    mdp = models.end_components()
    inside = np.ones(mdp.num_states, dtype=bool)
    for question in (
        lambda: long_run_probabilities(mdp, inside, CPU),
        lambda: steady_state_distribution(mdp, np.eye(mdp.num_states)[0], CPU),
    ):
        with pytest.raises(UnsupportedError, match="MDP"):
            question()
    open_set = Components(np.where(np.arange(8) < 2, 0, -1), 1)
    with pytest.raises(ValueError, match="left"):
        component_averages(model, open_set, np.arange(8.0), CPU)
    with pytest.raises(ValueError, match="MDP"):
        component_averages(mdp, bsccs(mdp), np.arange(float(mdp.num_states)), CPU)
    with pytest.raises(InvalidModelError, match="negative"):
        long_run_rewards(model, RewardStructure("", -np.ones(8)), CPU)
    with pytest.raises(ValueError, match="sum to 1"):
        steady_state_distribution(model, np.full(8, 0.5), CPU)
    assert model.kind is ModelKind.DTMC
