"""Chains and MDPs whose rates lie far apart, with exact answers: plain loops over fractions."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from tests.engines import models

Row = dict[int, Fraction]


@dataclass
class StiffModel:
    """A model whose last states are absorbing: the first of those is the target.

    Rows are choices; those of a chain are one a state. Numbers are powers of ten times digits, or
    shares of such.
    """

    kind: ModelKind
    choices: list[list[Row]]
    target: int
    seed: int

    def explicit(self) -> ExplicitModel:
        rows = [row for choices in self.choices for row in choices]
        size = len(self.choices)
        numbers = [{j: float(p) for j, p in row.items()} for row in rows]
        matrix = models.csr(numbers, size)
        ones = RewardStructure("time", np.array([1.0] * self.target + [0.0] * (size - self.target)))
        groups = None
        if self.kind is ModelKind.MDP:
            groups = np.cumsum([0] + [len(choices) for choices in self.choices])
        return ExplicitModel(self.kind, matrix, groups, rewards=(ones,))

    @property
    def goal(self) -> np.ndarray:
        return np.arange(len(self.choices)) == self.target

    @property
    def absorbing(self) -> np.ndarray:
        return np.arange(len(self.choices)) >= self.target


def stiff_model(kind: ModelKind, seed: int, largest: int = 60) -> StiffModel:
    """Return a random model: a walk to and fro with shortcuts, its numbers 10⁻⁹ to 10⁹."""
    rng = random.Random(seed)
    size, sinks = rng.randint(4, largest), rng.randint(2, 3)
    spread = rng.choice([3, 6, 9])

    def number() -> Fraction:
        return rng.randint(1, 9) * Fraction(10) ** rng.randint(-spread, spread)

    def row(state: int) -> Row:
        near = {max(state - 1, 0), min(state + 1, size - 1)}
        far = {rng.randrange(size + sinks) for _ in range(rng.choice([0, 0, 1, 2]))}
        if state == size - 1 or rng.random() < 0.1:
            far |= {size, size + 1}
        weights = {other: number() for other in near | far if other != state or rng.random() < 0.3}
        weights = weights or {size: number()}
        if kind is ModelKind.CTMC:
            return {other: weight for other, weight in weights.items() if other != state} or {
                size: number()
            }
        total = sum(weights.values())
        return {other: weight / total for other, weight in weights.items()}

    counts = [rng.choice([1, 2, 3]) if kind is ModelKind.MDP else 1 for _ in range(size)]
    choices = [[row(state) for _ in range(count)] for state, count in enumerate(counts)]
    choices += [[{size + sink: Fraction(1)}] for sink in range(sinks)]
    return StiffModel(kind, choices, size, seed)


def solved(rows: list[Row], earned: list[Fraction], known: dict[int, Fraction]) -> list[Fraction]:
    """Return x with Σ w (x' − x) + earned = 0 in the states that are not known, by elimination."""
    unknown = [state for state in range(len(rows)) if state not in known]
    inner = {i: {j: w for j, w in rows[i].items() if j not in known and j != i} for i in unknown}
    leaves = {i: sum(w for j, w in rows[i].items() if j in known) for i in unknown}
    worth = {
        i: earned[i] + sum(w * known[j] for j, w in rows[i].items() if j in known) for i in unknown
    }
    pivots = {}
    for k in reversed(unknown):
        row = inner[k]
        pivots[k] = sum(row.values()) + leaves[k]
        for i in unknown:
            if i >= k:
                break
            share = inner[i].pop(k, 0)
            if not share:
                continue
            share /= pivots[k]
            for j, w in row.items():
                if j != i:
                    inner[i][j] = inner[i].get(j, Fraction(0)) + share * w
            leaves[i] += share * leaves[k]
            worth[i] += share * worth[k]
    values = dict(known)
    for i in unknown:
        values[i] = (worth[i] + sum(w * values[j] for j, w in inner[i].items())) / pivots[i]
    return [values[i] for i in range(len(rows))]


def exact_values(model: StiffModel, *, rewards: bool, maximise: bool) -> list[Fraction]:
    """Return the probability of the target, or the time until absorption, by policy iteration."""
    size = len(model.choices)
    known = {state: Fraction(0) for state in range(model.target, size)}
    if not rewards:
        known[model.target] = Fraction(1)
    earned = [Fraction(int(rewards))] * size
    policy = _proper(model)
    while True:
        rows = [choices[pick] for choices, pick in zip(model.choices, policy, strict=True)]
        values = solved(rows, earned, known)
        better = list(policy)
        for state in range(model.target):
            gains = [
                sum(p * (values[j] - values[state]) for j, p in row.items())
                for row in model.choices[state]
            ]
            best = max(gains) if maximise else min(gains)
            if gains[policy[state]] != best:
                better[state] = gains.index(best)
        if better == policy:
            return values
        policy = better


def _proper(model: StiffModel) -> list[int]:
    """Return choices that lead to the absorbing states."""
    policy = [0] * len(model.choices)
    arrived = set(range(model.target, len(model.choices)))
    while len(arrived) < len(model.choices):
        before = len(arrived)
        for state, choices in enumerate(model.choices):
            if state in arrived:
                continue
            for pick, row in enumerate(choices):
                if row.keys() & arrived:
                    policy[state] = pick
                    arrived.add(state)
                    break
        if len(arrived) == before:
            raise ValueError(f"some state is never left (seed {model.seed})")
    return policy
