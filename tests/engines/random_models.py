"""One generator of random models with rational numbers, for Hypothesis and for seeds.

Every number is drawn from a range of integers whose lowest is the plainest, so that Hypothesis
shrinks a failing model to few states, sure steps and no rewards.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np
from hypothesis import strategies as st
from hypothesis.vendor.pretty import RepresentationPrinter

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from tests.engines import models

Pick = Callable[[int, int], int]
"""Returns an integer of a range, both ends included."""

Row = dict[int, Fraction]

WEIGHTS = (1, 2, 1, 3, 7, 1, 2, 1_000, 1_000_000_000)
SCALES = tuple(Fraction(10) ** power for power in (0, 0, 1, -1, 3, -3, 6, -6))
PAYMENTS = tuple(Fraction(eighths, 8) for eighths in (0, 0, 8, 1, 20, 8_000))
TIMES = (0.0, 1.0, 2.0**-10, 30.0, 1000.0)
"""In mean sojourns of the state that is left soonest."""

MOST_STRATEGIES = 48


@dataclass(frozen=True, repr=False)
class RandomModel:
    """A model with rational numbers, and what is asked of it.

    Parameters
    ----------
    kind
        DTMC, CTMC or MDP.
    choices
        For each state its choices, of a chain one: the probabilities of its successors, of a CTMC
        their rates.
    state_rewards, choice_rewards
        Multiples of 1/8, those of choices for MDPs only.
    remain, target
        The two sides of an until.
    lower, steps
        Bounds on steps, lower ≤ steps.
    initial
        A distribution over at most two states.
    times
        Two ends of an interval of time.
    """

    kind: ModelKind
    choices: tuple[tuple[Row, ...], ...]
    state_rewards: tuple[Fraction, ...]
    choice_rewards: tuple[Fraction, ...]
    remain: frozenset[int]
    target: frozenset[int]
    lower: int
    steps: int
    initial: tuple[Fraction, ...]
    times: tuple[float, float]

    def __repr__(self) -> str:
        rows = "; ".join(
            f"{state} → " + " | ".join(_text(row) for row in rows)
            for state, rows in enumerate(self.choices)
        )
        return (
            f"{self.kind}({rows}; state rewards {_text(dict(enumerate(self.state_rewards)))}; "
            f"choice rewards {_text(dict(enumerate(self.choice_rewards)))}; "
            f"remain {sorted(self.remain)}, target {sorted(self.target)}; "
            f"steps {self.lower} to {self.steps}; times {self.times[0]} to {self.times[1]}; "
            f"initial {_text(dict(enumerate(self.initial)))})"
        )

    def _repr_pretty_(self, printer: RepresentationPrinter, _: bool) -> None:
        printer.text(repr(self))

    @property
    def size(self) -> int:
        """The number of states."""
        return len(self.choices)

    @cached_property
    def model(self) -> ExplicitModel:
        """The model in floating-point numbers, each rounded once."""
        rounded = [[{s: float(p) for s, p in row.items()} for row in rows] for rows in self.choices]
        if self.kind is ModelKind.MDP:
            return models.mdp(rounded)
        return models.chain(self.kind, [rows[0] for rows in rounded])

    @cached_property
    def rewards(self) -> RewardStructure:
        """The rewards, exact."""
        of_choices = None
        if self.kind is ModelKind.MDP:
            of_choices = np.array([float(payment) for payment in self.choice_rewards])
        return RewardStructure("r", np.array([float(p) for p in self.state_rewards]), of_choices)

    @cached_property
    def of_states(self) -> RewardStructure:
        """The rewards of the states alone."""
        return RewardStructure("r", self.rewards.state_rewards)

    @property
    def remain_mask(self) -> MaskArray:
        """Where a path may pass, shape (states,)."""
        return models.mask(self.size, sorted(self.remain))

    @property
    def target_mask(self) -> MaskArray:
        """What a path must reach, shape (states,)."""
        return models.mask(self.size, sorted(self.target))

    @property
    def initial_vector(self) -> FloatArray:
        """The initial distribution, exact, shape (states,)."""
        return np.array([float(share) for share in self.initial])

    @cached_property
    def steps_of(self) -> tuple[tuple[Row, ...], ...]:
        """The probabilities of a step; an absorbing state of a CTMC stays where it is."""
        if self.kind is not ModelKind.CTMC:
            return self.choices
        return tuple(
            ({s: rate / sum(row.values()) for s, rate in row.items()} or {state: Fraction(1)},)
            for state, (row,) in enumerate(self.choices)
        )

    @cached_property
    def payments(self) -> tuple[tuple[Fraction, ...], ...]:
        """What each choice earns in a step, of a CTMC in a mean sojourn."""
        if self.kind is ModelKind.CTMC:
            exits = [sum(row.values()) for (row,) in self.choices]
            return tuple(
                (p / e if e else p,) for p, e in zip(self.state_rewards, exits, strict=True)
            )
        if self.kind is ModelKind.DTMC:
            return tuple((payment,) for payment in self.state_rewards)
        firsts = accumulate((len(rows) for rows in self.choices), initial=0)
        return tuple(
            tuple(payment + self.choice_rewards[first + k] for k in range(len(rows)))
            for payment, rows, first in zip(self.state_rewards, self.choices, firsts, strict=False)
        )


def _text(row: Row) -> str:
    return "{" + ", ".join(f"{state}: {value}" for state, value in row.items() if value) + "}"


def draw_model(kind: ModelKind, pick: Pick, most: int = 6, *, rare: bool = True) -> RandomModel:
    """Draw a model.

    Parameters
    ----------
    kind
        DTMC, CTMC or MDP; an MDP of up to 6 states has at most 48 strategies.
    pick
        Where the integers come from.
    most
        The most states.
    rare
        Whether to draw probabilities down to 1e-9, and rates and rewards over many orders of
        magnitude.
    """
    size = pick(1, most) if most <= 10 else most
    left, choices = MOST_STRATEGIES if most <= 10 else 3**size, []
    for state in range(size):
        count = pick(1, min(3, left)) if kind is ModelKind.MDP else 1
        left //= count
        rows: list[Row] = []
        for _ in range(count):
            # A choice once more is worth the same.
            again = bool(rows) and pick(0, 4) == 4
            rows.append(dict(rows[-1]) if again else _draw_row(kind, state, size, pick, rare))
        choices.append(tuple(rows))
    scale = max((sum(row.values()) for rows in choices for row in rows), default=Fraction(1))
    times = sorted(TIMES[pick(0, len(TIMES) - 1)] / float(scale or 1) for _ in range(2))
    lower = pick(0, 5)
    paying = [PAYMENTS[pick(0, len(PAYMENTS) - 1 - (not rare))] for _ in range(size)]
    num_choices = sum(len(rows) for rows in choices) if kind is ModelKind.MDP else 0
    first, second = pick(0, size - 1), pick(0, size - 1)
    initial = [Fraction(int(s == first) + int(s == second), 2) for s in range(size)]
    return RandomModel(
        kind,
        tuple(choices),
        tuple(paying) if pick(0, 2) else (Fraction(0),) * size,
        tuple(PAYMENTS[pick(0, len(PAYMENTS) - 1 - (not rare))] for _ in range(num_choices)),
        frozenset(s for s in range(size) if pick(0, 5) < 5),
        frozenset(s for s in range(size) if pick(0, 3) == 3),
        lower,
        lower + pick(0, 8),
        tuple(initial),
        (times[0], times[1]),
    )


def _draw_row(kind: ModelKind, state: int, size: int, pick: Pick, rare: bool) -> Row:
    shape = pick(0, 5)
    if shape == 0:
        # Of a CTMC, nothing at all, or a loop that means nothing.
        return {state: Fraction(1)} if kind is not ModelKind.CTMC or pick(0, 2) == 2 else {}
    if shape <= 2:
        # Sure steps make lines, cycles and end components.
        weights = {(state + 1) % size if shape == 1 else pick(0, size - 1): 1}
    else:
        last = len(WEIGHTS) - 1 if rare else len(WEIGHTS) - 3
        near = shape == 3
        successors = {
            (state + pick(0, 2)) % size if near else pick(0, size - 1) for _ in range(shape)
        }
        weights = {s: WEIGHTS[pick(0, last)] for s in sorted(successors)}
    if kind is not ModelKind.CTMC:
        whole = sum(weights.values())
        return {s: Fraction(weight, whole) for s, weight in weights.items()}
    scale = SCALES[pick(0, len(SCALES) - 1 if rare else 3)]
    return {s: scale * weight for s, weight in weights.items()}


def random_models(
    *kinds: ModelKind, most: int = 6, rare: bool = True
) -> st.SearchStrategy[RandomModel]:
    """Return Hypothesis's strategy for models of some kinds."""

    @st.composite
    def build(draw: Callable[[st.SearchStrategy[int]], int]) -> RandomModel:
        kind = kinds[draw(st.integers(0, len(kinds) - 1))]
        return draw_model(kind, lambda a, b: draw(st.integers(a, b)), most, rare=rare)

    return build()


def seeded_model(kind: ModelKind, seed: int, most: int = 6, *, rare: bool = True) -> RandomModel:
    """Return the model of a seed."""
    return draw_model(kind, random.Random(seed).randint, most, rare=rare)


def long_line(kind: ModelKind, size: int, stray: float) -> ExplicitModel:
    """Return a line of steps to the last state but one; each strays to the last, a trap.

    Parameters
    ----------
    kind
        Of a CTMC all exit rates are 1; in an MDP, all states of the line may wait, too.
    size
        The number of states.
    stray
        The probability of straying.
    """
    on = np.arange(size - 2)
    row, column = np.repeat(on, 2), np.stack((on + 1, np.full(size - 2, size - 1)), axis=1).ravel()
    value = np.tile([1.0 - stray, stray], size - 2)
    if stray == 0.0:
        row, column, value = on, on + 1, np.ones(size - 2)
    return _with_ends(kind, size, row, column, value, waiting=kind is ModelKind.MDP)


def star(kind: ModelKind, size: int) -> ExplicitModel:
    """Return a state with a step to each of many others; these go back, half to the last two.

    The last state but one gets a share of what ends that grows along the row.
    """
    ray = np.arange(1, size - 2)
    share = 0.5 * ray / size
    row = np.concatenate((np.zeros(size - 3, dtype=ray.dtype), ray, ray, ray))
    ends = np.full(size - 3, size - 2), np.full(size - 3, size - 1)
    column = np.concatenate((ray, np.zeros_like(ray), *ends))
    value = np.concatenate(
        (np.full(size - 3, 1.0 / (size - 3)), 0.0 * ray + 0.5, share, 0.5 - share)
    )
    return _with_ends(kind, size, row, column, value, waiting=False)


def _with_ends(
    kind: ModelKind,
    size: int,
    row: IndexArray,
    column: IndexArray,
    value: FloatArray,
    *,
    waiting: bool,
) -> ExplicitModel:
    """Return the model whose last two states absorb; first choices may be to wait."""
    ends, groups = np.array([size - 2, size - 1]), None
    if kind is not ModelKind.CTMC:
        row, column = np.concatenate((row, ends)), np.concatenate((column, ends))
        value = np.concatenate((value, [1.0, 1.0]))
    num_rows = size
    if waiting:
        on = np.arange(size - 2)
        row = np.concatenate((2 * on, np.where(row < size - 2, 2 * row + 1, row + size - 2)))
        column, value = np.concatenate((on, column)), np.concatenate((np.ones(size - 2), value))
        num_rows += size - 2
        groups = np.concatenate((2 * on, [2 * size - 4, 2 * size - 3, 2 * size - 2]))
    elif kind is ModelKind.MDP:
        groups = np.arange(size + 1)
    order = np.lexsort((column, row))
    offsets = np.zeros(num_rows + 1, dtype=np.int32)
    np.cumsum(np.bincount(row, minlength=num_rows), out=offsets[1:])
    matrix = CsrMatrix(offsets, column[order].astype(np.int32), value[order], size)
    return ExplicitModel(kind, matrix, groups).check()
