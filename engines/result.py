"""What a solve returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from engines.errors import ConvergenceError
from engines.formats.csr import FloatArray


class Status(StrEnum):
    """How a solve ended."""

    CONVERGED = "converged"
    """The test that the method uses was met."""
    CHANGE_ONLY = "change only"
    """The change a sweep makes is below epsilon, but the estimated error is not."""
    NOT_CONVERGED = "not converged"
    DIVERGED = "diverged"


@dataclass(frozen=True)
class SweepCost:
    """What a sweep moved and took, for the log.

    Parameters
    ----------
    engine, kernel, format
        Which engine, kernel and matrix layout did the sweeps.
    bytes_per_sweep
        Fewest bytes a sweep must move: matrix, right-hand side and vectors once each.
    """

    engine: str
    kernel: str
    format: str
    bytes_per_sweep: int


@dataclass(frozen=True)
class SolveResult:
    """The outcome of a solve; a caller must look at `status`.

    Parameters
    ----------
    values
        Shape (states,).
    status
        How the solve ended.
    method
        The method that was run, as PRISM's log names it.
    iterations
        Sweeps made.
    change
        Largest change of the last sweep, relative or absolute as the environment asked.
    residual
        Largest absolute value of ``b + A x - x`` over the states solved for.
    error_estimate
        Estimated largest error, in the measure of `change`: the change of the last sweep times
        ρ / (1 − ρ), ρ the observed contraction; infinite where none was observed. One-sided
        methods have an estimate, never a bound.
    seconds, setup_seconds
        Wall-clock seconds of the whole solve, and of what came before the first sweep.
    sweeping_seconds
        Seconds spent in sweeps, by the clock of the engine that made them: a GPU's own events.
    cost
        What the sweeps moved.
    note
        A remark for the log, or empty.
    two_sided
        Whether lower and upper bounds were computed.
    """

    values: FloatArray
    status: Status
    method: str
    iterations: int
    change: float
    residual: float
    error_estimate: float
    seconds: float
    setup_seconds: float
    sweeping_seconds: float
    cost: SweepCost
    note: str = ""
    two_sided: bool = False

    @property
    def sweep_seconds(self) -> float:
        """Mean seconds of a sweep."""
        return self.sweeping_seconds / self.iterations if self.iterations else 0.0

    def raise_unless_converged(self) -> SolveResult:
        """Return the result itself if it may be used.

        Raises
        ------
        ConvergenceError
            With PRISM's own text, when the method did not converge or left the finite numbers.
        """
        if self.status in (Status.NOT_CONVERGED, Status.DIVERGED):
            diverged = self.status is Status.DIVERGED
            happened = "diverged after" if diverged else "did not converge within"
            raise ConvergenceError(
                f"Iterative method {happened} {self.iterations} iterations.\n"
                "Consider using a different numerical method or increasing "
                "the maximum number of iterations"
            )
        return self

    def with_values(self, values: FloatArray) -> SolveResult:
        """Return the same result with other values, after a normalisation or an embedding."""
        return replace(self, values=np.asarray(values, dtype=np.float64))
