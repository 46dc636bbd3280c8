"""What a solve tells, while it sweeps, to whoever wants to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from engines.arrays import FloatArray


class Measure(StrEnum):
    """What the number of a sweep is."""

    CHANGE = "change"
    """The largest change that the sweep made, which a test of convergence looks at."""
    WIDTH = "width"
    """The largest distance of the two bounds after the sweep."""
    STEP = "step"
    """The largest change that the sweep made, of as many sweeps as there are steps."""
    REMAINDER = "remainder"
    """The share of a sum over sweeps that is still to come."""


@dataclass(frozen=True, slots=True)
class SweepReport:
    """How far a solve is; made where the host looks at its sweeps anyway.

    Parameters
    ----------
    iterations
        Sweeps made, from 1 on; 0 announces a long solve before it starts.
    numbers
        Shape (sweeps,): what `measure` says of each of the last sweeps, or of the last one alone.
    seconds
        Wall-clock seconds since the first sweep began.
    measure
        What the numbers are.
    absolute
        Whether changes and widths are absolute; else relative to the values.
    sweeps_to_go
        Sweeps that are still to be expected, by the observed contraction or because their number
        is known; infinite where nothing can be said.
    """

    iterations: int
    numbers: FloatArray
    seconds: float
    measure: Measure = Measure.CHANGE
    absolute: bool = False
    sweeps_to_go: float = float("inf")

    @property
    def number(self) -> float:
        """What `measure` says of the last sweep."""
        return float(self.numbers[-1])

    def within(self, before: int, seconds: float) -> SweepReport:
        """Return this report as that of a whole solve, of which it reports a part.

        Parameters
        ----------
        before
            Sweeps that the whole had made before this part began.
        seconds
            Seconds since the first sweep of the whole.
        """
        # When the part will end says nothing about the whole.
        return replace(
            self, iterations=before + self.iterations, seconds=seconds, sweeps_to_go=float("inf")
        )


Progress = Callable[[SweepReport], None]
"""Called after a batch of sweeps; what it does delays the next."""


def announcement(report: SweepReport) -> str:
    """Return the line that a long solve is announced with.

    Parameters
    ----------
    report
        One of no sweep, with the number of those to expect.
    """
    return f"Starting iterations... ({report.sweeps_to_go:,.0f} are expected)"
