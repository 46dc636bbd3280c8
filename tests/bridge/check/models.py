"""Small models for the tests of checking, with values known by hand."""

from __future__ import annotations

import numpy as np

from bridge.model import CheckableModel, NamedRewards
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure


def matrix(rows: list[dict[int, float]], num_states: int) -> CsrMatrix:
    """Return a matrix given by its rows."""
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    columns = np.array([column for row in rows for column in sorted(row)], dtype=np.int32)
    values = np.array([row[column] for row in rows for column in sorted(row)])
    return CsrMatrix(offsets, columns, values, num_states)


def mask(size: int, *states: int) -> np.ndarray:
    found = np.zeros(size, dtype=bool)
    found[list(states)] = True
    return found


def dice() -> CheckableModel:
    """Return Knuth and Yao's die: state 7 + k shows k + 1, each with probability 1/6."""
    half = [(1, 2), (3, 4), (5, 6), (1, 7), (8, 9), (10, 11), (2, 12)]
    rows = [{a: 0.5, b: 0.5} for a, b in half] + [{state: 1.0} for state in range(7, 13)]
    model = ExplicitModel(
        ModelKind.DTMC,
        matrix(rows, 13),
        initial_states=mask(13, 0),
        labels={
            "init": mask(13, 0),
            "deadlock": mask(13),
            "done": mask(13, *range(7, 13)),
            "six": mask(13, 12),
        },
    )
    flips = np.array([1.0] * 7 + [0.0] * 6)
    rewards = NamedRewards("coin_flips", RewardStructure("coin_flips", flips), flips)
    return CheckableModel(
        model.check(),
        rewards=(rewards,),
        variables={
            "s": np.array([0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 7]),
            "d": np.array([0] * 7 + [1, 2, 3, 4, 5, 6]),
        },
        source="dice",
    )


def two_sources() -> CheckableModel:
    """Return a chain with two initial states, which reach the goal with 0.25 and 0.5."""
    rows = [{2: 0.25, 3: 0.75}, {2: 0.5, 3: 0.5}, {2: 1.0}, {3: 1.0}]
    labels = {"init": mask(4, 0, 1), "deadlock": mask(4), "goal": mask(4, 2)}
    model = ExplicitModel(
        ModelKind.DTMC, matrix(rows, 4), initial_states=labels["init"], labels=labels
    )
    return CheckableModel(model.check(), source="two sources")


def gamble() -> CheckableModel:
    """Return an MDP: state 0 may stop at once (0.3 to win) or wait; state 1 wins with 0.6."""
    rows = [{2: 0.3, 3: 0.7}, {1: 1.0}, {2: 0.6, 3: 0.4}, {2: 1.0}, {3: 1.0}]
    labels = {"init": mask(4, 0), "deadlock": mask(4), "won": mask(4, 2), "lost": mask(4, 3)}
    model = ExplicitModel(
        ModelKind.MDP,
        matrix(rows, 4),
        np.array([0, 2, 3, 4, 5], dtype=np.int32),
        mask(4, 0),
        labels,
    )
    steps = np.array([1.0, 1.0, 0.0, 0.0])
    structure = RewardStructure("steps", steps, np.zeros(5))
    return CheckableModel(
        model.check(), rewards=(NamedRewards("steps", structure, steps),), source="gamble"
    )


def queue(arrival: float = 1.0, service: float = 2.0, capacity: int = 3) -> CheckableModel:
    """Return the CTMC of a queue M/M/1/K; state n holds n customers."""
    size = capacity + 1
    rows: list[dict[int, float]] = []
    for n in range(size):
        row = {}
        if n < capacity:
            row[n + 1] = arrival
        if n > 0:
            row[n - 1] = service
        rows.append(row)
    labels = {"init": mask(size, 0), "deadlock": mask(size), "full": mask(size, capacity)}
    model = ExplicitModel(
        ModelKind.CTMC, matrix(rows, size), initial_states=mask(size, 0), labels=labels
    )
    customers = np.arange(size, dtype=float)
    rewards = NamedRewards("customers", RewardStructure("customers", customers), customers)
    return CheckableModel(
        model.check(),
        rewards=(rewards,),
        variables={"n": np.arange(size)},
        source="queue",
    )
