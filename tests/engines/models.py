"""Seeded models for the tests, and the table of problems that every engine test runs over."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from engines.model.csr import CsrMatrix
from engines.model.environment import Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.systems.one_sided import Direction
from tests.engines import reference

MIN, MAX = Direction.MINIMISE, Direction.MAXIMISE


def csr(rows, num_columns=None):
    """Rows given as dictionaries from column to value."""
    offsets = np.zeros(len(rows) + 1, dtype=np.int32)
    offsets[1:] = np.cumsum([len(row) for row in rows])
    columns = np.array([column for row in rows for column in row], dtype=np.int32)
    values = np.array([value for row in rows for value in row.values()], dtype=np.float64)
    return CsrMatrix(offsets, columns, values, len(rows) if num_columns is None else num_columns)


def chain(kind, rows):
    return ExplicitModel(kind, csr(rows)).check()


def dtmc(rows):
    return chain(ModelKind.DTMC, rows)


def ctmc(rows):
    return chain(ModelKind.CTMC, rows)


def mdp(states):
    """States given as lists of choices, choices as dictionaries from state to probability."""
    groups = np.zeros(len(states) + 1, dtype=np.int32)
    groups[1:] = np.cumsum([len(choices) for choices in states])
    rows = [row for choices in states for row in choices]
    matrix = csr(rows, len(states))
    return ExplicitModel(ModelKind.MDP, matrix, groups).check()


def mask(size, states):
    chosen = np.zeros(size, dtype=np.bool_)
    chosen[list(states)] = True
    return chosen


def distribution(rng, size, most=4):
    """A row of up to `most` successors, anywhere (self-loops included)."""
    successors = rng.choice(size, size=rng.integers(1, min(most, size) + 1), replace=False)
    weights = rng.uniform(0.05, 1.0, len(successors))
    probabilities = weights / weights.sum()
    return {int(s): float(p) for s, p in sorted(zip(successors, probabilities, strict=True))}


def random_dtmc(seed, size=60, absorbing=0.05):
    """Absorbing states, self-loops, parts that the first state cannot reach."""
    rng = np.random.default_rng(seed)
    return dtmc(
        [
            {state: 1.0} if rng.random() < absorbing else distribution(rng, size)
            for state in range(size)
        ]
    )


def random_ctmc(seed, size=60, absorbing=0.05):
    """A random DTMC with rates over four orders of magnitude; absorbing states have no exits."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(size):
        rate = 10.0 ** rng.uniform(-2, 2)
        row = {} if rng.random() < absorbing else distribution(rng, size)
        rows.append({column: rate * p for column, p in row.items()})
    return ctmc(rows)


def recurrent(seed, size, kind=ModelKind.CTMC, loops=True):
    """One recurrent class: a random chain with a cycle through all states."""
    rng = np.random.default_rng(seed)
    rows = []
    for state in range(size):
        row = distribution(rng, size)
        row[(state + 1) % size] = row.get((state + 1) % size, 0.0) + 0.5
        if not loops:
            row.pop(state, None)
        scale = 10.0 ** rng.uniform(-1, 1) if kind is ModelKind.CTMC else 1 / sum(row.values())
        rows.append({column: scale * value for column, value in sorted(row.items())})
    return chain(kind, rows)


def random_mdp(seed, size=50, absorbing=0.05, loops=0.1):
    """One to four choices a state; some choices stay for sure, which makes end components."""
    rng = np.random.default_rng(seed)
    states = []
    for state in range(size):
        choices = [distribution(rng, size, 3) for _ in range(rng.integers(1, 5))]
        if rng.random() < loops:
            choices.append({state: 1.0})
        states.append([{state: 1.0}] if rng.random() < absorbing else choices)
    return mdp(states)


def proper_mdp(seed, size=50):
    """Every choice may step to a lower state, so that all strategies reach state 0."""
    rng = np.random.default_rng(seed)
    states = [[{0: 1.0}]]
    for state in range(1, size):
        choices = [distribution(rng, size, 3) for _ in range(rng.integers(1, 5))]
        for choice in choices:
            for successor in choice:
                choice[successor] *= 0.7
            choice[state // 2] = choice.get(state // 2, 0.0) + 0.3
        states.append(choices)
    return mdp(states)


def end_components():
    """Two end components, {0, 1} and {2}, from which one may leave for the target 3 or trap 4."""
    return mdp(
        [
            [{1: 1.0}, {3: 0.5, 4: 0.5}],
            [{0: 1.0}, {2: 1.0}],
            [{2: 1.0}, {3: 0.25, 0: 0.5, 4: 0.25}],
            [{3: 1.0}],
            [{4: 1.0}],
        ]
    )


def gamblers_ruin(size, up=0.5):
    """States 0 … size; both ends absorb. From i the top is reached with the ruin formula."""
    rows = [{0: 1.0}]
    rows += [{i - 1: 1.0 - up, i + 1: up} for i in range(1, size)]
    return dtmc([*rows, {size: 1.0}])


def gamblers_ruin_answer(size, up=0.5):
    i = np.arange(size + 1)
    if up == 0.5:
        return i / size
    ratio = (1.0 - up) / up
    return (1.0 - ratio**i) / (1.0 - ratio**size)


def birth_death(size, birth=1.0, death=2.0):
    rows = []
    for i in range(size):
        row = {}
        if i > 0:
            row[i - 1] = death
        if i < size - 1:
            row[i + 1] = birth
        rows.append(row)
    return ctmc(rows)


def birth_death_answer(size, birth=1.0, death=2.0):
    weights = (birth / death) ** np.arange(size)
    return weights / weights.sum()


def cycle(size, rates=None):
    """A cycle: periodic with period `size`, where Jacobi for π Q = 0 never settles."""
    rates = [1.0] * size if rates is None else rates
    return ctmc([{(i + 1) % size: rates[i]} for i in range(size)])


def uncoupled_blocks(block=4, coupling=1e-6):
    """A nearly uncoupled CTMC: two busy blocks of different size, joined by rare jumps."""
    rng = np.random.default_rng(5)
    size = 3 * block
    rows = []
    for i in range(size):
        first, last = (0, block) if i < block else (block, size)
        row = {j: float(rng.uniform(0.5, 2.0)) for j in range(first, last) if j != i}
        rows.append(row)
    rows[0][size - 1] = coupling
    rows[size - 1][0] = 3.0 * coupling
    return ctmc(rows)


def several_bsccs():
    """State 0 falls into {1, 2}, {3, 4, 5} or {6}; state 7 is never entered."""
    return dtmc(
        [
            {0: 0.2, 1: 0.3, 3: 0.4, 6: 0.1},
            {2: 1.0},
            {1: 0.5, 2: 0.5},
            {4: 0.7, 5: 0.3},
            {3: 1.0},
            {3: 0.1, 5: 0.9},
            {6: 1.0},
            {0: 0.5, 5: 0.5},
        ]
    )


def dense_row(size=150):
    """One row with an entry for every state among rows of two entries."""
    rng = np.random.default_rng(11)
    rows = [{max(i - 1, 0): 0.5, (i * 7 + 3) % size: 0.5} for i in range(size)]
    rows = [row if len(row) == 2 else {next(iter(row)): 1.0} for row in rows]
    weights = rng.uniform(0.1, 1.0, size)
    rows[size // 2] = {j: float(w) for j, w in enumerate(weights / weights.sum())}
    rows[0] = {0: 1.0}
    rows[size - 1] = {size - 1: 1.0}
    return dtmc(rows)


def line(size):
    """A line of sure steps to the last state: `size` sweeps go by before the first hears of it."""
    return dtmc([{min(i + 1, size - 1): 1.0} for i in range(size)])


@dataclass(frozen=True)
class Problem:
    """What `solve_reachability` takes, after the precomputation."""

    model: ExplicitModel
    unknown: np.ndarray
    start: np.ndarray
    rewards: np.ndarray | None = None
    direction: Direction | None = None

    @property
    def keywords(self):
        return {"rewards": self.rewards, "direction": self.direction}


def until(model, target, direction=None, remain=None):
    """The problem of P(remain U target)."""
    remain = np.ones(model.num_states, dtype=np.bool_) if remain is None else remain
    if direction is None:
        no, yes = (f(model, remain, target) for f in (reference.prob0, reference.prob1))
    elif direction is MIN:
        no, yes = (f(model, remain, target) for f in (reference.prob0e, reference.prob1a))
    else:
        no, yes = (f(model, remain, target) for f in (reference.prob0a, reference.prob1e))
    return Problem(model, ~(yes | no), yes.astype(np.float64), None, direction)


def reach_reward(model, target, rewards, direction=None):
    """The problem of R[F target]: infinite where the target is not reached for sure."""
    everywhere = np.ones(model.num_states, dtype=np.bool_)
    sure = reference.prob1e if direction is MIN else reference.prob1a
    infinite = ~sure(model, everywhere, target)
    start = np.where(infinite, np.inf, 0.0)
    return Problem(model, ~infinite & ~target, start, rewards, direction)


def random_rewards(seed, rows):
    return np.random.default_rng(seed).uniform(0.5, 3.0, rows)


def _chain_problems():
    yield "random DTMC", until(random_dtmc(1), mask(60, [3, 4]))
    yield "random DTMC, few targets", until(random_dtmc(2, 120), mask(120, [5]))
    remain = np.arange(60) % 7 != 0
    yield "random DTMC, constrained", until(random_dtmc(3), mask(60, [1, 2]), remain=remain)
    yield "several BSCCs", until(several_bsccs(), mask(8, [1, 6]))
    yield (
        "one unknown with a self-loop",
        until(dtmc([{0: 0.5, 1: 0.3, 2: 0.2}, {1: 1}, {2: 1}]), mask(3, [1])),
    )
    yield "dense row", until(dense_row(), mask(150, [149]))
    yield "ruin", until(gamblers_ruin(20, 0.4), mask(21, [20]))
    yield "random CTMC", until(random_ctmc(4), mask(60, [7]))
    yield "random CTMC with few exits", until(random_ctmc(6, 90, 0.2), mask(90, [8, 9]))
    # The whole chain is unknown, and the start is not the usual one: a solver must not mind.
    start = np.random.default_rng(0).uniform(0, 1, 40)
    leaky = substochastic(40)
    yield "all states unknown", Problem(leaky, np.ones(40, np.bool_), start, random_rewards(1, 40))


def substochastic(size):
    """A chain that loses a tenth of its mass a step, so that all of its states may be unknown."""
    model = recurrent(9, size, ModelKind.DTMC)
    matrix = model.matrix
    return ExplicitModel(
        ModelKind.DTMC,
        CsrMatrix(matrix.row_offsets, matrix.columns, 0.9 * matrix.values, size),
    )


def _reward_problems():
    model = recurrent(12, 50, ModelKind.DTMC)
    yield "DTMC rewards", reach_reward(model, mask(50, [0]), random_rewards(2, 50))
    model = random_dtmc(2, 80, 0.02)
    yield "DTMC rewards, some infinite", reach_reward(model, mask(80, [7]), random_rewards(3, 80))
    model = recurrent(13, 50, ModelKind.CTMC)
    yield "CTMC rewards", reach_reward(model, mask(50, [0, 1]), random_rewards(4, 50))
    yield "line rewards", reach_reward(line(200), mask(200, [199]), np.ones(200))


def _mdp_problems():
    for seed in (1, 2, 3):
        model = random_mdp(seed, loops=0.0)
        yield f"MDP {seed} min", until(model, mask(50, [1, 2]), MIN)
        model = random_mdp(seed, absorbing=0.2)
        yield f"MDP {seed} max", until(model, mask(50, [1, 2]), MAX)
    yield "end components", until(end_components(), mask(5, [3]), MAX)
    model = proper_mdp(4)
    rewards = random_rewards(5, model.matrix.num_rows)
    for direction in (MIN, MAX):
        yield f"MDP rewards {direction}", reach_reward(model, mask(50, [0]), rewards, direction)
    model = random_mdp(7, absorbing=0.08)
    rewards = random_rewards(6, model.matrix.num_rows)
    yield "MDP rewards, infinite choices", reach_reward(model, mask(50, [0, 9]), rewards, MIN)


@functools.cache
def chain_problems():
    return dict(_chain_problems())


@functools.cache
def reward_problems():
    return dict(_reward_problems())


@functools.cache
def mdp_problems():
    return dict(_mdp_problems())


@functools.cache
def settled(name):
    """Return the values of a problem, swept by plain loops until they hardly change."""
    problem = {**chain_problems(), **reward_problems(), **mdp_problems()}[name]
    environment = SolverEnvironment(method=Method.POWER, epsilon=1e-14, max_iterations=100_000)
    values, _ = reference.solve_reachability(
        problem.model, problem.unknown, problem.start, environment, **problem.keywords
    )
    values.flags.writeable = False
    return values


@functools.cache
def steady_state_problems():
    """Recurrent classes by name: the model and the mask of the class."""
    several = several_bsccs()
    island = random_dtmc(21, 30, 0.0)
    first = reference.bsccs(island.matrix)[0]
    return {
        "CTMC": (recurrent(14, 60), np.ones(60, np.bool_)),
        "CTMC without loops": (recurrent(15, 60, loops=False), np.ones(60, np.bool_)),
        "DTMC": (recurrent(16, 60, ModelKind.DTMC), np.ones(60, np.bool_)),
        "birth and death": (birth_death(12), np.ones(12, np.bool_)),
        "one of several BSCCs": (several, mask(8, [3, 4, 5])),
        "two states of several": (several, mask(8, [1, 2])),
        "what a random DTMC ends in": (island, mask(30, first)),
    }
