"""How accurate a value is, and what PRISM's report says of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridge.language.text import double_text
from engines.errors import ConvergenceError
from engines.formats.csr import FloatArray, MaskArray
from engines.result import SolveResult
from prism_hooks.claims import claim_of

TESTING_ERROR = 1e-5
"""The relative error that PRISM assumes of values whose accuracy is unknown or an estimate."""


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
    """

    error: float
    absolute: bool = True
    guaranteed: bool = False

    def remark(self, value: float) -> str:
        """Return what the report puts behind a result.

        Parameters
        ----------
        value
            The result.
        """
        if self.error == 0.0:
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

    def errors(self, values: FloatArray) -> FloatArray:
        """Return the absolute error of each value.

        Parameters
        ----------
        values
            Shape (states,).
        """
        if self.absolute:
            return np.full(values.shape, self.error)
        finite = np.isfinite(values)
        return np.where(finite, self.error * np.abs(np.where(finite, values, 0.0)), 0.0)


TESTING = Accuracy(TESTING_ERROR, absolute=False)


def accuracy_of(result: SolveResult, absolute: bool, automatic: bool) -> Accuracy:
    """Return what is known of a solve's accuracy.

    Parameters
    ----------
    result
        The solve.
    absolute
        Whether its changes are absolute.
    automatic
        Whether the method was ours to choose. One that the user named gets PRISM's estimate: ten
        times the last change.
    """
    return Accuracy(*claim_of(result, absolute=absolute, automatic=automatic))


def compare(
    values: FloatArray, relation: str, bound: float, accuracy: Accuracy | None
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

    Raises
    ------
    ConvergenceError
        When a value is too near to the bound for its accuracy.
    """
    functions = {
        "<": np.less,
        "<=": np.less_equal,
        ">": np.greater,
        ">=": np.greater_equal,
    }
    holds = functions[relation]
    if accuracy is not None and accuracy.error > 0.0:
        errors = accuracy.errors(values)
        undecided = holds(values - errors, bound) != holds(values + errors, bound)
        if np.any(undecided):
            value = float(values[int(np.argmax(undecided))])
            raise ConvergenceError(
                f"Accuracy of value {double_text(value)} is not enough to compare to bound "
                f"{double_text(bound)}"
            )
    satisfied: MaskArray = holds(values, bound)
    return satisfied
