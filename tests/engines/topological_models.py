"""Models of many strongly connected components, and how their tests solve them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from engines.model.environment import Convention, DeviceChoice
from engines.model.environment import SolverEnvironment as Environment
from tests.engines import models


def settings_of(**changes):
    changes.setdefault("device", DeviceChoice.CPU)
    return Environment(topological=True, convention=Convention.EXPLICIT, **changes)


def block_row(rng, members, first, after):
    """A step into the own block, and one to where it leads, 0 and 1 at the bottom."""
    row = {after: float(rng.uniform(0.1, 1.0))}
    for state in rng.choice(members, size=min(len(members), 2), replace=False):
        row[int(state)] = float(rng.uniform(0.1, 1.0))
    if rng.random() < 0.5:
        below = int(rng.integers(0, first))
        row[below] = row.get(below, 0.0) + float(rng.uniform(0.1, 1.0))
    total = sum(row.values())
    return {state: weight / total for state, weight in sorted(row.items())}


def block_states(seed, blocks, most_choices, largest=6):
    """Blocks of states one above the other: cycles, single states, single states with loops."""
    rng = np.random.default_rng(seed)
    states = [[{0: 1.0}], [{1: 1.0}]]
    for _ in range(blocks):
        first, size = len(states), int(rng.integers(1, largest + 1))
        members = range(first, first + size)
        for state in members:
            after = first + (state + 1 - first) % size
            choices = [
                block_row(rng, members if rng.random() < 0.7 else [state], first, after)
                for _ in range(rng.integers(1, most_choices + 1))
            ]
            # Some way down, and into the trap, from everywhere: no end components, nothing sure.
            for choice in choices:
                for successor in choice:
                    choice[successor] *= 0.8
                for below, weight in ((int(rng.integers(0, first)), 0.18), (1, 0.02)):
                    choice[below] = choice.get(below, 0.0) + weight
            states.append([dict(sorted(choice.items())) for choice in choices])
    return states


def block_chain(seed, blocks=12):
    return models.dtmc([choices[0] for choices in block_states(seed, blocks, 1)])


def block_mdp(seed, blocks=10):
    return models.mdp(block_states(seed, blocks, 3))


def ladder_of_ruins(count, size):
    """Games one after the other: who wins goes on to the next, whose win is state 0."""
    rows = [{0: 1.0}, {1: 1.0}]
    for game in range(count):
        first, won = len(rows), 0 if game == 0 else 2 + (game - 1) * size + size // 2
        for at in range(size):
            down = 1 if at == 0 else first + at - 1
            up = won if at == size - 1 else first + at + 1
            rows.append({down: 0.5, up: 0.5})
    return models.dtmc(rows)


def exact_blocks(seed, most_choices=1, blocks=4):
    """The blocks with rational probabilities."""
    choices = block_states(seed, blocks, most_choices, 4)
    return [[fractions(row) for row in rows] for rows in choices]


def fractions(row):
    parts = {state: round(weight * 1000) + 1 for state, weight in row.items()}
    return {state: Fraction(part, sum(parts.values())) for state, part in parts.items()}
