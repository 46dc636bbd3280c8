"""Oracles of unbounded questions: dense linear algebra, and every memoryless strategy of an MDP.

What is infinite, certain or impossible comes from a transitive closure, and the numbers from
`numpy.linalg`; nothing here is shared with the engines.
"""

from __future__ import annotations

import itertools

import numpy as np

from engines.model.explicit import ModelKind
from tests.engines import models


def dense(model):
    """The matrix of one step, shape (rows, states); an absorbing state of a CTMC stays."""
    matrix = model.matrix
    array = np.zeros((matrix.num_rows, matrix.num_columns))
    np.add.at(array, (matrix.row_of_entry(), matrix.columns), matrix.values)
    if model.kind is ModelKind.CTMC:
        exits = array.sum(axis=1)
        array[exits == 0.0, exits == 0.0] = 1.0
        array /= array.sum(axis=1, keepdims=True)
    return array


def sojourns(model):
    """Mean time in each state of a CTMC, 1 where it is absorbing; one step elsewhere."""
    if model.kind is not ModelKind.CTMC:
        return np.ones(model.num_states)
    exits = model.exit_rates
    return 1.0 / np.where(exits > 0.0, exits, 1.0)


def closure(edges):
    """Which state reaches which in any number of steps, none included."""
    reach = edges | np.eye(len(edges), dtype=bool)
    while True:
        further = (reach.astype(float) @ reach) > 0.0
        if (further == reach).all():
            return reach
        reach = further


def until(step, remain, target):
    """P(remain U target) of a chain."""
    passing = remain & ~target
    through = (step > 0.0) & passing[:, None]
    able = closure(through)[:, target].any(axis=1)
    values = target.astype(float)
    unknown = able & ~target
    inner = np.eye(unknown.sum()) - step[np.ix_(unknown, unknown)]
    values[unknown] = np.linalg.solve(inner, step[np.ix_(unknown, target)].sum(axis=1))
    return values


def reachability_reward(step, earned, target):
    """R [ F target ] of a chain, for the reward of a step in each state."""
    before = (step > 0.0) & ~target[:, None]
    missing = ~closure(before)[:, target].any(axis=1)
    infinite = closure(before)[:, missing].any(axis=1)
    values = np.where(infinite, np.inf, 0.0)
    unknown = ~infinite & ~target
    inner = np.eye(unknown.sum()) - step[np.ix_(unknown, unknown)]
    values[unknown] = np.linalg.solve(inner, earned[unknown])
    return values


def recurrent_classes(step):
    """Masks of the bottom strongly connected components."""
    reach = closure(step > 0.0)
    found = []
    for state in range(len(step)):
        bottom = reach[reach[state], state].all()
        if bottom and np.flatnonzero(reach[state])[0] == state:
            found.append(reach[state])
    return found


def total_reward(step, earned):
    """R [ C ] of a chain: infinite where a class that earns something may be reached."""
    paying = np.zeros(len(step), dtype=bool)
    recurrent = np.zeros(len(step), dtype=bool)
    for members in recurrent_classes(step):
        recurrent |= members
        if (earned[members] > 0.0).any():
            paying |= members
    infinite = closure(step > 0.0)[:, paying].any(axis=1)
    values = np.where(infinite, np.inf, 0.0)
    unknown = ~infinite & ~recurrent
    inner = np.eye(unknown.sum()) - step[np.ix_(unknown, unknown)]
    values[unknown] = np.linalg.solve(inner, earned[unknown])
    return values


def limiting_matrix(model):
    """Long-run shares of time, shape (from, in)."""
    step, weights = dense(model), sojourns(model)
    size = len(step)
    limit = np.zeros((size, size))
    for members in recurrent_classes(step):
        count = members.sum()
        inner = step[np.ix_(members, members)]
        equations = np.vstack([inner.T - np.eye(count), np.ones(count)])
        right = np.append(np.zeros(count), 1.0)
        stationary = np.linalg.lstsq(equations, right, rcond=None)[0] * weights[members]
        reached = until(step, np.ones(size, dtype=bool), members)
        limit[:, members] = np.outer(reached, stationary / stationary.sum())
    return limit


def strategies(model):
    """Every memoryless strategy: the chain that it leaves, and its choices' row numbers."""
    matrix, groups = dense(model), model.row_group_offsets
    choices = [range(groups[s], groups[s + 1]) for s in range(model.num_states)]
    for rows in itertools.product(*choices):
        yield matrix[list(rows)], list(rows)


def best(direction, values):
    """The best of each state over the values that the strategies give."""
    return (np.min if direction is models.MIN else np.max)(list(values), axis=0)


def small_mdp(seed, size=6):
    """A few hundred strategies at most, with traps, sure cycles and end components among them."""
    rng = np.random.default_rng(seed)
    states = []
    for state in range(size):
        if rng.random() < 0.1:
            states.append([{state: 1.0}])
            continue
        choices = []
        for _ in range(rng.integers(1, 4)):
            if rng.random() < 0.5:
                choices.append({int(rng.integers(size)): 1.0})
            else:
                choices.append(models.distribution(rng, size, 3))
        states.append(choices)
    return models.mdp(states)


def sparse_rewards(seed, length):
    """Rewards of which more than half are zero."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(length) < 0.4, rng.uniform(0.5, 3.0, length), 0.0)


def zero_loops():
    """Cycles without a reward, some to be left at a price, one with a price for staying.

    States 0 and 1 may go round for nothing or leave for 3 at a price of 4; state 2 may stay for 1
    a step, or leave for nothing into 0; state 3 is the target.
    """
    model = models.mdp(
        [
            [{1: 1.0}, {0: 0.5, 3: 0.5}],
            [{0: 1.0}, {2: 1.0}],
            [{2: 1.0}, {0: 1.0}],
            [{3: 1.0}],
        ]
    )
    return model, np.array([0.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0])


def regions(kind, seed, size=60):
    """A chain of three regions without a way between them; the first has traps."""
    rng = np.random.default_rng(seed)
    part = size // 3
    rows = []
    for state in range(size):
        first = state - state % part
        near = [j for j in range(state - 3, state + 4) if first <= j < first + part]
        weights = rng.uniform(0.05, 1.0, len(near))
        scale = 10.0 ** rng.uniform(-1, 1) if kind is ModelKind.CTMC else 1.0 / weights.sum()
        rows.append(dict(zip(near, scale * weights, strict=True)))
    for trap in (part // 3, part - 1):
        rows[trap] = {} if kind is ModelKind.CTMC else {trap: 1.0}
    return models.chain(kind, rows)
