"""A model read as rationals: the numbers that its doubles stand for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from engines.arrays import FloatArray
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.rationals import ROUNDINGS, probabilities, rational, stand_for

ROUNDED = 3 * ROUNDINGS * Fraction(1, 2**52)
"""How far a probability of a step may be off, relative to it, where rates stand for no simple
numbers: the rate, and the sum of rates that it is divided by."""


class TooLargeError(RuntimeError):
    """What is asked for takes too long in rational arithmetic."""


Row = dict[int, Fraction]
"""The probabilities of a step, by the state that it leads to."""


@dataclass(frozen=True)
class Choice:
    """What may happen in a step from a state, and what it earns."""

    row: Row
    earned: Fraction = Fraction(0)


@dataclass
class Budget:
    """The work that may still be done.

    Parameters
    ----------
    left
        Additions of rationals, those of long ones counting for more: a few seconds.
    """

    left: float = 300_000.0

    def spend(self, result: Fraction) -> Fraction:
        """Return the result of an addition, having paid for it."""
        # An addition of 256 bits more takes about as long again.
        self.left -= 1.0 + result.denominator.bit_length() / 256
        if self.left < 0.0:
            raise TooLargeError
        return result


@dataclass
class RationalModel:
    """A model whose rows are read as rationals when they are first wanted.

    Parameters
    ----------
    model
        A model of any kind; a CTMC's steps are those of its embedded chain.
    rewards
        Of a step of each row, of a CTMC of a unit of time; None for none. Shape (rows,).
    """

    model: ExplicitModel
    rewards: FloatArray | None = None
    _choices: dict[int, list[Choice]] = field(default_factory=dict)
    _is_rounded: bool = False

    def meant(self, number: float) -> Fraction:
        """Return the simple number that one of the model stands for, or itself, rounded."""
        meant = rational(number)
        self._is_rounded |= not stand_for([number], [meant])
        return meant

    def off(self, values: Iterable[Fraction], changes: int) -> Fraction:
        """Return how far off values may be, because the model's numbers are rounded.

        Parameters
        ----------
        values
            Those whose largest counts.
        changes
            By how many roundings of a step's probabilities they change, at most.
        """
        if not self._is_rounded:
            return Fraction(0)
        return changes * ROUNDED * max(map(abs, values), default=Fraction(0))

    @property
    def changes(self) -> int:
        """By how many roundings of a step's probabilities what is reached and earned changes.

        If each probability of a step from one of n states to another changes by a factor between
        1 - d and 1 + d, so does each entry of (I - P)^-1 by one between about 1 - 2nd and 1 + 2nd
        (O'Cinneide 1993, Entrywise perturbation theory and error analysis for Markov chains).
        """
        return 2 * len(self._choices) + 4

    def choices(self, state: int) -> list[Choice]:
        """Return the choices of a state, those of a chain being one."""
        if state not in self._choices:
            groups = self.model.row_group_offsets
            first, last = (state, state + 1) if groups is None else groups[state : state + 2]
            self._choices[state] = [self._choice(row, state) for row in range(first, last)]
        return self._choices[state]

    def mean_time(self, state: int) -> Fraction:
        """Return how long a state lasts: 1 step, or the mean time in a CTMC's; 0 for for ever."""
        if self.model.kind is not ModelKind.CTMC:
            return Fraction(1)
        exit_rate = sum(map(self.meant, self._entries(state)[1]), Fraction(0))
        return 1 / exit_rate if exit_rate else Fraction(0)

    def _entries(self, row: int) -> tuple[list[int], list[float]]:
        matrix = self.model.matrix
        part = slice(int(matrix.row_offsets[row]), int(matrix.row_offsets[row + 1]))
        positive = matrix.values[part] > 0.0
        columns: list[int] = matrix.columns[part][positive].tolist()
        values: list[float] = matrix.values[part][positive].tolist()
        return columns, values

    def _choice(self, row: int, state: int) -> Choice:
        columns, values = self._entries(row)
        earned = Fraction(0) if self.rewards is None else self.meant(float(self.rewards[row]))
        if self.model.kind is ModelKind.CTMC:
            rates = [self.meant(value) for value in values]
            total = sum(rates, Fraction(0))
            if not total:
                return Choice({state: Fraction(1)}, earned)
            shares, earned = [rate / total for rate in rates], earned / total
        else:
            loop = columns.index(state) if state in columns else None
            shares = probabilities(values, loop)
            self._is_rounded |= not stand_for(values, shares)
        merged: Row = {}
        for column, share in zip(columns, shares, strict=True):
            merged[column] = merged.get(column, Fraction(0)) + share
        return Choice(merged, earned)
