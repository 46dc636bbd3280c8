"""Sweeping two bounds towards each other until they are close enough."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from engines.arrays import FloatArray
from engines.errors import ConvergenceError
from engines.methods.iterate import BATCH_SHARE, FIRST_BATCH
from engines.model.environment import SolverEnvironment
from engines.model.events import Events, Kind
from engines.model.progress import Measure, Progress, SweepReport
from engines.model.result import Status, SweepCost
from engines.solve.system import SLOW_AFTER
from engines.systems.one_sided import LONGEST_BATCH
from engines.systems.two_sided import UNIT_ROUNDOFF, SweepRecord, TwoSidedSweeper

NOT_MONOTONIC = 1e-12
"""Relative steps in the wrong direction beyond this are no rounding."""


@dataclass(frozen=True)
class Narrowing:
    """How a run of two-sided sweeps ended.

    Parameters
    ----------
    lower, upper
        The bounds, each of shape (states,); they hold whatever the status.
    status
        Converged: narrower than epsilon. Change only: at rest, and wider.
    iterations
        Sweeps made.
    events
        What happened, for the log.
    given_up
        Whether bounds around a direct solution should be tried.
    finished_by
        The direct method that took over from slow sweeps; empty for none.
    """

    lower: FloatArray
    upper: FloatArray
    status: Status
    iterations: int
    events: Events = ()
    given_up: bool = False
    finished_by: str = ""


@dataclass(frozen=True)
class TimedNarrowing:
    """The bounds, and what they took.

    Parameters
    ----------
    narrowing
        How it ended.
    cost
        What an iteration moved.
    setup_seconds, sweeping_seconds
        As in `engines.model.result.SolveResult`.
    """

    narrowing: Narrowing
    cost: SweepCost
    setup_seconds: float
    sweeping_seconds: float


@dataclass
class Batches:
    """Batches of sweeps, each in proportion to the sweeps made, within the limit.

    Parameters
    ----------
    sweeper
        What makes the sweeps.
    environment
        Limits and checks.
    progress
        Called after each batch with the width.
    """

    sweeper: TwoSidedSweeper
    environment: SolverEnvironment
    progress: Progress | None = None
    iterations: int = 0
    _length: int = FIRST_BATCH
    _started: float = field(default_factory=time.perf_counter)

    @property
    def exhausted(self) -> bool:
        """Whether the limit of sweeps is reached."""
        return self.iterations >= self.environment.sweep_limit

    def run(self) -> SweepRecord:
        """Make the sweeps of one batch.

        Raises
        ------
        ConvergenceError
            For sweeps that are not monotonic, where the environment wants that checked.
        """
        left = self.environment.sweep_limit - self.iterations
        record = self.sweeper.run(min(self._length, left))
        self.iterations += len(record.widths)
        if self.environment.interval.check_monotonic:
            worst = max(record.rises.max(), record.falls.max())
            if worst > NOT_MONOTONIC:
                raise ConvergenceError(
                    f"two-sided sweeps are not monotonic: a bound moved away by {worst:.1e} of "
                    "its value; look at the bounds given by lower= and upper="
                )
        now = time.perf_counter()
        if self.progress is not None:
            self.progress(
                SweepReport(
                    self.iterations,
                    record.widths,
                    now - self._started,
                    Measure.WIDTH,
                    self.environment.absolute,
                    sweeps_to_width(record.widths, self.environment.epsilon),
                )
            )
        longer = max(self._length, self.iterations // BATCH_SHARE)
        self._length = min(longer, LONGEST_BATCH)
        return record


def narrow(
    sweeper: TwoSidedSweeper,
    environment: SolverEnvironment,
    may_give_up: bool,
    progress: Progress | None = None,
    batches: Batches | None = None,
) -> Narrowing:
    """Sweep until the width is below epsilon.

    Parameters
    ----------
    sweeper
        The prepared solve; both its iterates are bounds.
    environment
        Epsilon and limits.
    may_give_up
        Whether slow sweeps may be given up.
    progress
        Called after each batch of sweeps, with the width.
    batches
        The batches made so far with this sweeper, to go on from.

    Raises
    ------
    ConvergenceError
        For bounds that cross, as only bounds given by hand can.
    """
    batches = batches or Batches(sweeper, environment, progress)
    width, status, given_up = float("inf"), Status.NOT_CONVERGED, False
    events: Events = ()
    while not batches.exhausted:
        record = batches.run()
        if record.crossings.max() > 0.0:
            raise ConvergenceError(
                f"the lower bound exceeds the upper one by {record.crossings.max():.3e} in some "
                "state: a bound given by lower= or upper= is wrong"
            )
        width = float(record.widths[-1])
        if width < environment.epsilon or width == 0.0:
            status = Status.CONVERGED
            break
        if record.moved[-1] == 0.0:
            status = Status.CHANGE_ONLY
            events = (Kind.BOUNDS_AT_REST(width=width, epsilon=environment.epsilon),)
            break
        if may_give_up and too_slow(record.widths, batches.iterations, environment.epsilon):
            given_up = True
            break
    lower, upper = sweeper.bounds()
    return Narrowing(lower, upper, status, batches.iterations, events, given_up)


def too_slow(widths: FloatArray, iterations: int, epsilon: float) -> bool:
    """Return whether it will take many more sweeps, after many already.

    Parameters
    ----------
    widths
        The widths of the last batch of sweeps.
    iterations
        Sweeps made.
    epsilon
        The width wanted.
    """
    if iterations < SLOW_AFTER:
        return False
    return sweeps_to_width(widths, epsilon) > SLOW_AFTER


def sweeps_to_width(widths: FloatArray, epsilon: float) -> float:
    """Return how many more sweeps will bring the width down to epsilon; infinite if none seem to.

    Parameters
    ----------
    widths
        The widths of the last batch of sweeps.
    epsilon
        The width wanted.
    """
    first, last = float(widths[0]), float(widths[-1])
    if last == 0.0:
        return 0.0
    if not np.isfinite(first) or last >= first or epsilon <= 0.0:
        return float("inf")
    return float(np.log(epsilon / last) / np.log(last / first) * (len(widths) - 1))


def measured_width(lower: FloatArray, upper: FloatArray, absolute: bool) -> float:
    """Return the largest distance between two bounds, as PRISM measures it.

    Parameters
    ----------
    lower, upper
        Of one shape.
    absolute
        Whether it is absolute, else relative to the lower bound.
    """
    width = np.maximum(upper - lower, 0.0)
    if not absolute:
        with np.errstate(divide="ignore", invalid="ignore"):
            width = np.where(width > 0.0, width / lower, 0.0)
    return float(np.max(width, initial=0.0))


def largest_error(
    values: FloatArray, lower: FloatArray, upper: FloatArray, absolute: bool
) -> float:
    """Return how far values may be from what lies between bounds, rounded up.

    A midpoint that was rounded is farther from one bound than half the width.

    Parameters
    ----------
    values, lower, upper
        Of one shape.
    absolute
        Whether the distance is absolute, else relative to the lower bound.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.maximum(upper - values, values - lower)
        off = np.where(lower == upper, 0.0, off if absolute else off / lower)
    # A subtraction and a division round by half a unit each.
    return float(np.max(off, initial=0.0)) * (1.0 + 4.0 * UNIT_ROUNDOFF)
