"""A value for every state, and how accurate it is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bridge.check.accuracy import Accuracy
from bridge.language.ast import Value
from bridge.model import StateVector
from engines.arrays import FloatArray
from engines.model.decided import ROUNDING_OF_COMPLEMENTS
from engines.model.result import ExactValues, of_complements


@dataclass(frozen=True)
class Outcome:
    """The values of an expression.

    Parameters
    ----------
    values
        Shape (states,): bool, int64 or float64.
    accuracy
        How accurate they are; None where that is not known, or not a question.
    exactly
        Computes exact values of states; None for no way.
    """

    values: StateVector
    accuracy: Accuracy | None = None
    exactly: ExactValues | None = None

    @property
    def numbers(self) -> FloatArray:
        """The values as float64, shape (states,)."""
        return np.asarray(self.values, dtype=np.float64)

    def one_minus(self) -> Outcome:
        """Return the complementary probabilities.

        An error relative to the probabilities says nothing of the complement's relative error; it
        is an absolute one of at most the same size, because no probability exceeds 1. The
        subtraction rounds.
        """
        accuracy = self.accuracy
        if accuracy is not None:
            accuracy = replace(
                accuracy,
                error=accuracy.error + (ROUNDING_OF_COMPLEMENTS if accuracy.error > 0.0 else 0.0),
                absolute=True,
                decided=accuracy.complements,
                complements=accuracy.decided,
            )
        return Outcome(1.0 - self.numbers, accuracy, of_complements(self.exactly))

    def no_better_than(self, other: Outcome) -> Outcome:
        """Return the same values, at most as accurate as those that they were computed from."""
        if other.accuracy is None or self.accuracy is None:
            return replace(self, accuracy=None, exactly=None)
        error = self.accuracy.error + other.accuracy.error
        if error == 0.0:
            return self
        # A relative error of probabilities is an absolute one too, and not the other way round.
        absolute = self.accuracy.absolute or other.accuracy.absolute
        rounded = [part for part in (self.accuracy, other.accuracy) if part.error > 0.0]
        accuracy = Accuracy(
            error,
            absolute,
            guaranteed=all(part.guaranteed for part in rounded),
            decided=_of_all([part.decided for part in rounded]),
            complements=_of_all([part.complements for part in rounded]),
        )
        return replace(self, accuracy=accuracy, exactly=None)


def _of_all(decided: list[tuple[float, ...]]) -> tuple[float, ...]:
    """Return which of 0 and 1 have no error in any of several solves."""
    return tuple(value for value in (0.0, 1.0) if all(value in part for part in decided))


def everywhere(value: Value, num_states: int) -> StateVector:
    """Return a vector that has the same value in every state.

    Parameters
    ----------
    value
        A truth value or a number.
    num_states
        How many states there are.
    """
    if isinstance(value, bool):
        return np.full(num_states, value, dtype=bool)
    if isinstance(value, int):
        return np.full(num_states, value, dtype=np.int64)
    return np.full(num_states, value, dtype=np.float64)
