"""Models with rational probabilities, and their values by elimination over the rationals.

The engines get the rounded model; what they bound is the value of the rational one.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from engines.model.explicit import ModelKind
from tests.engines import models


def random_row(rng, size, entries=3, loop=0.0):
    """A distribution over a few states, in parts of a random whole."""
    targets = rng.choice(size, size=min(entries, size), replace=False)
    weights = [int(w) for w in rng.integers(1, 50, len(targets))]
    row = {int(t): Fraction(w, sum(weights)) for t, w in zip(targets, weights, strict=True)}
    return row if rng.random() >= loop else {int(rng.integers(size)): Fraction(1)}


def random_chain(seed, size=12):
    """Rows with traps and sure cycles among them."""
    rng = np.random.default_rng(seed)
    rows = [random_row(rng, size, int(rng.integers(1, 5)), 0.2) for _ in range(size)]
    rows[int(rng.integers(size))] = {int(rng.integers(size)): Fraction(1)}
    return rows


def random_choices(seed, size=5):
    """Choices of each state, with sure cycles and end components among them."""
    rng = np.random.default_rng(seed)
    return [
        [random_row(rng, size, int(rng.integers(1, 4)), 0.4) for _ in range(rng.integers(1, 4))]
        for _ in range(size)
    ]


def random_payments(seed, length):
    """Rewards, about half of them 0."""
    rng = np.random.default_rng(seed)
    return [Fraction(int(k), 7) if k > 0 else Fraction(0) for k in rng.integers(-9, 10, length)]


def rounded(rows):
    """The distributions in floating-point numbers, rounded once."""
    return [{state: float(part) for state, part in row.items()} for row in rows]


def dtmc(rows):
    return models.chain(ModelKind.DTMC, rounded(rows))


def mdp(choices):
    return models.mdp([rounded(rows) for rows in choices])


def array(payments):
    return np.array([float(payment) for payment in payments])


def reaching(rows, goal, through):
    """Which states have a path to the goal whose other states are all in `through`."""
    found = set(goal)
    while True:
        more = {
            s for s, row in enumerate(rows) if s not in found and s in through and found & set(row)
        }
        if not more:
            return found
        found |= more


def solve(rows, unknown, right):
    """Gauss-Jordan over the rationals: x = right + A x on the unknown states."""
    place = {state: i for i, state in enumerate(unknown)}
    system = []
    for state in unknown:
        line = [Fraction(0)] * (len(unknown) + 1)
        line[place[state]] += 1
        for after, part in rows[state].items():
            if after in place:
                line[place[after]] -= part
        line[-1] = right[state]
        system.append(line)
    for i in range(len(unknown)):
        pivot = next(k for k in range(i, len(unknown)) if system[k][i] != 0)
        system[i], system[pivot] = system[pivot], system[i]
        system[i] = [value / system[i][i] for value in system[i]]
        for k in range(len(unknown)):
            if k != i and system[k][i] != 0:
                factor = system[k][i]
                system[k] = [a - factor * b for a, b in zip(system[k], system[i], strict=True)]
    return {state: system[place[state]][-1] for state in unknown}


def until(rows, remain, goal):
    """P(remain U goal) of each state."""
    able = reaching(rows, goal, remain)
    unknown = sorted(able - set(goal))
    right = {s: sum((p for t, p in rows[s].items() if t in goal), Fraction(0)) for s in unknown}
    values = solve(rows, unknown, right)
    return [Fraction(1) if s in goal else values.get(s, Fraction(0)) for s in range(len(rows))]


def reward(rows, payments, goal):
    """R [ F goal ] of each state; infinite where the goal is not reached for sure."""
    everywhere = set(range(len(rows)))
    never = everywhere - reaching(rows, goal, everywhere)
    infinite = reaching(rows, never, everywhere - set(goal)) if never else set()
    unknown = sorted(everywhere - infinite - set(goal))
    values = solve(rows, unknown, {s: payments[s] for s in unknown})
    return [float("inf") if s in infinite else values.get(s, Fraction(0)) for s in everywhere]


def best_until(choices, remain, goal, direction):
    """The extreme of P(remain U goal) over the memoryless strategies."""
    return _best(direction, (until(rows, remain, goal) for rows in itertools.product(*choices)))


def best_reward(choices, payments, goal, direction):
    """The extreme of R [ F goal ]; `payments` has a number for each choice."""
    first = list(itertools.accumulate((len(rows) for rows in choices), initial=0))
    strategies = itertools.product(*(range(len(rows)) for rows in choices))
    return _best(
        direction,
        (
            reward(
                [choices[s][k] for s, k in enumerate(strategy)],
                [payments[first[s] + k] for s, k in enumerate(strategy)],
                goal,
            )
            for strategy in strategies
        ),
    )


def _best(direction, of_strategies):
    pick = min if direction is models.MIN else max
    return [pick(values) for values in zip(*of_strategies, strict=True)]


def assert_encloses(result, exact, epsilon, absolute=False):
    """The exact values lie between the bounds, and these are close."""
    lower, upper = result.bounds
    for low, value, up in zip(lower, exact, upper, strict=True):
        if value == float("inf"):
            assert low == up == value
            continue
        assert Fraction(float(low)) <= value <= Fraction(float(up))
        assert up - low <= epsilon * (1.0 if absolute else low)
    finite = np.isfinite(lower)
    assert (lower <= result.values).all()
    assert (result.values <= upper).all()
    assert result.two_sided
    distance = np.abs(result.values[finite] - array([e for e in exact if e != float("inf")]))
    scale = 1.0 if absolute else np.where(lower[finite] > 0.0, lower[finite], 1.0)
    assert (distance <= result.error_estimate * scale * (1.0 + 1e-9) + 1e-15 * scale).all()


def assert_answers(result, exact, epsilon, absolute=False):
    """The exact values lie between the bounds; without bounds, the values are as near as said."""
    if result.bounds is not None:
        assert_encloses(result, exact, epsilon, absolute)
        return
    infinite = np.array([value == float("inf") for value in exact])
    assert (np.isinf(result.values) == infinite).all()
    values, found = array(exact)[~infinite], result.values[~infinite]
    scale = 1.0 if absolute else np.where(values > 0.0, values, 1.0)
    assert not result.two_sided
    assert result.error_estimate <= epsilon
    assert (np.abs(found - values) <= (result.error_estimate + 1e-14) * scale).all()
