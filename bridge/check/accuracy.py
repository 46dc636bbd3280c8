"""How accurate a value is, and what PRISM's report says of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from bridge.language.ast import Value
from bridge.language.text import Range, double_text
from engines.arrays import FloatArray, MaskArray
from engines.errors import ConvergenceError
from engines.model.comparison import HOLDS
from engines.model.environment import SolverEnvironment
from engines.model.rationals import is_told_from, rational
from engines.model.result import ExactValues, SolveResult
from engines.systems.two_sided import UNIT_ROUNDOFF
from prism_hooks.claims import ROUNDING_OF_STEPS, claim_of
from prism_hooks.report import Ending

TESTING_ERROR = 1e-5
"""The relative error that PRISM assumes of values whose accuracy is unknown or an estimate."""


class Bounded(Enum):
    """What bounds a question whose number of sweeps is fixed."""

    STEPS = "steps"
    """Its values are exact but for rounding, as PRISM has it."""
    TIME = "time"
    """Its error is absolute."""


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of a vector of values.

    Parameters
    ----------
    error
        The largest error, absolute or relative; 0 for values exact but for rounding.
    absolute
        Which of the two.
    guaranteed
        Whether it is a bound; else an estimate.
    decided
        Values that have no error in any state.
    complements
        Of probabilities p: values of 1 - p that have no error in any state.
    """

    error: float
    absolute: bool = True
    guaranteed: bool = False
    decided: tuple[float, ...] = ()
    complements: tuple[float, ...] = ()

    def remark(self, value: float) -> str:
        """Return what the report puts behind a result.

        Parameters
        ----------
        value
            The result.
        """
        if self.error == 0.0 or value in self.decided:
            return "exact floating point"
        relative, absolute = self._relative(value), self._absolute(value)
        estimated = "" if self.guaranteed else " estimated"
        return f"+/- {double_text(absolute)}{estimated}; rel err {double_text(relative)}"

    def _absolute(self, value: float) -> float:
        if self.absolute:
            return self.error
        return self.error * abs(value) if np.isfinite(value) else 0.0

    def _relative(self, value: float) -> float:
        if not self.absolute:
            return self.error
        if np.isinf(value):
            return 0.0
        return self.error / abs(value) if value != 0.0 else float("inf")

    def less_known(self, value: Value | Range) -> float | None:
        """Return the number of a result that has the largest error; None for a result without.

        Parameters
        ----------
        value
            The result: of a range, the end with the larger error is returned.
        """
        if isinstance(value, tuple):
            low, high = value
            at_low, at_high = self.errors(np.array(value))
            lower = abs(low) < abs(high) if at_low == at_high else at_low > at_high
            return low if lower else high
        return value if isinstance(value, float) else None

    def of_sum(self, total: float, states: int, times: int) -> Accuracy:
        """Return the accuracy of a sum or mean of values with this one, none of them negative.

        Parameters
        ----------
        total
            The sum or the mean, which is finite.
        states
            How many values it is of.
        times
            How often the absolute error of a value is in it.
        """
        rounding = states * UNIT_ROUNDOFF
        if self.error == 0.0:
            # Rounding is small beside 1, whose complements values may be.
            return Accuracy(ROUNDING_OF_STEPS * (times + total) + rounding * total)
        error = self.error * times + rounding * total if self.absolute else self.error + rounding
        return Accuracy(error, absolute=self.absolute, guaranteed=self.guaranteed)

    def at_least(self, error: float) -> Accuracy:
        """Return an accuracy that claims no smaller error, but for values that are decided.

        Parameters
        ----------
        error
            Absolute or relative, as this one is.
        """
        return replace(self, error=max(self.error, error))

    def errors(self, values: FloatArray) -> FloatArray:
        """Return the absolute error of each value.

        Parameters
        ----------
        values
            Shape (states,).
        """
        sizes = np.ones(values.shape) if self.absolute else np.abs(values)
        known = ~np.isfinite(values) | np.isin(values, self.decided)
        return np.where(known, 0.0, self.error * sizes)


ENDINGS = {
    None: Ending.CONVERGENCE,
    Bounded.STEPS: Ending.STEPS,
    Bounded.TIME: Ending.TIME,
}

TESTING = Accuracy(TESTING_ERROR, absolute=False)


def accuracy_of(
    result: SolveResult, environment: SolverEnvironment, bounded: Bounded | None = None
) -> Accuracy | None:
    """Return what is known of a solve's accuracy; None for nothing.

    Parameters
    ----------
    result
        The solve.
    environment
        What it was asked for.
    bounded
        What bounds a question whose number of sweeps is fixed.
    """
    claim = claim_of(
        result,
        absolute=environment.absolute,
        automatic=environment.automatic,
        ending=ENDINGS[bounded],
    )
    if np.isnan(claim.error):
        return None
    # Behind PRISM's back nobody takes a proven error for the only one.
    proven = claim.guaranteed or (bounded is Bounded.TIME and result.two_sided)
    return Accuracy(*claim._replace(guaranteed=proven))


def compare(
    values: FloatArray,
    relation: str,
    bound: float,
    accuracy: Accuracy | None,
    exactly: ExactValues | None = None,
) -> MaskArray:
    """Return which values satisfy a bound.

    Parameters
    ----------
    values
        Shape (states,).
    relation
        One of < <= > >=.
    bound
        What the values are compared with.
    accuracy
        How accurate they are.
    exactly
        Computes the exact values of those that are too near to the bound for that; None for no way.

    Raises
    ------
    ConvergenceError
        When a value is too near to the bound for its accuracy, and no exact one is known.
    """
    holds = HOLDS[relation]
    satisfied: MaskArray = holds(values, bound)
    if accuracy is None:
        return satisfied
    errors = accuracy.errors(values)
    undecided = holds(values - errors, bound) != holds(values + errors, bound)
    if exactly is not None:
        known = ~np.isfinite(values) | np.isin(values, accuracy.decided)
        near = np.flatnonzero(
            undecided | (np.isclose(values, bound, 0.0, ROUNDING_OF_STEPS) & ~known)
        )
        found = exactly(near) if len(near) else None
        if found is None and bound not in (0.0, 1.0):
            # Rounding may have put them on the wrong side.
            undecided |= np.isclose(values, bound, ROUNDING_OF_STEPS, 0.0) & ~known
        if found is not None:
            exact = found.values
            satisfied[near] = [bool(holds(value, rational(bound))) for value in exact]
            undecided[near] = [not is_told_from(value, bound, found.off) for value in exact]
    if np.any(undecided):
        value = float(values[int(np.argmax(undecided))])
        raise ConvergenceError(
            f"Accuracy of value {double_text(value)} is not enough to compare to bound "
            f"{double_text(bound)}"
        )
    return satisfied
