"""Sweeping until a solve may stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from engines.arrays import FloatArray
from engines.model.environment import Method, SolverEnvironment
from engines.model.progress import Progress, SweepReport
from engines.model.result import Status
from engines.proofs.doubling import ROUNDING_A_SWEEP, Doubling
from engines.systems.one_sided import LONGEST_BATCH, HasLongestRun, Sweeper

FIRST_BATCH = 64
BATCH_SECONDS = 0.25
"""Sweeps that take longer are shown in pieces."""
BATCH_SHARE = 8
"""A batch is at most this part of the sweeps made: sweeps run on to the end of a batch. Sweeps are
judged after each batch, and no clock decides its length: a run repeats to the last digit. What a
batch has shown, a first one confirms."""
FALLING = 0.7
"""Changes that a batch does not bring down to this share are no longer falling."""
ROUNDING = 1e-13
"""Relative changes below this are mostly rounding and say nothing about contraction."""

GiveUp = Callable[[int, float], bool]
"""Asked after a batch, with the sweeps made and the sweeps expected: is another method better?"""


@dataclass(frozen=True)
class Iteration:
    """How a run of sweeps ended.

    Parameters
    ----------
    status
        Converged, change only, or not converged.
    iterations
        Sweeps made.
    change
        Largest change of the last sweep.
    error_estimate
        Change times ρ / (1 − ρ) for the observed contraction ρ; infinite where none was
        observed.
    given_up
        Whether the caller's other method should take over.
    """

    status: Status
    iterations: int
    change: float
    error_estimate: float
    given_up: bool = False


@dataclass
class Contraction:
    """The observed contraction ρ of the sweeps, and the error that it lets expect.

    A sweep that changes the iterate by δ and contracts by ρ leaves an error of about
    δ ρ / (1 − ρ): with ρ near 1, far more than δ. That is what stopping on δ < ε overlooks.

    Parameters
    ----------
    rate
        The ρ observed last; NaN for none.
    rounding
        Changes below this say nothing.
    """

    rate: float = float("nan")
    rounding: float = ROUNDING

    def observe(self, changes: FloatArray) -> None:
        """Update ρ from the changes of successive sweeps, shape (sweeps,)."""
        # Rises from 0 are infinite changes, and say nothing about contraction.
        infinite = np.flatnonzero(~np.isfinite(changes))
        if len(infinite):
            changes = changes[infinite[-1] + 1 :]
        half = len(changes) // 2
        if half < 2:
            return
        # Maxima over each half, because the change may swing within a period of the chain.
        early, late = float(np.max(changes[:half])), float(np.max(changes[-half:]))
        if early <= self.rounding:
            return
        self.rate = (max(late, self.rounding) / early) ** (1.0 / (len(changes) - half))

    def error(self, change: float) -> float:
        """Return the error to expect after a sweep that changed the iterate by `change`."""
        if change == 0.0:
            return 0.0
        if np.isnan(self.rate) and change <= self.rounding:
            # Nothing has ever moved by more than rounding: the start was the solution.
            return change
        return change * self.rate / (1.0 - self.rate) if self.rate < 1.0 else float("inf")

    def sweeps_to(self, epsilon: float, change: float) -> float:
        """Return how many more sweeps will bring the expected error down to `epsilon`."""
        error = self.error(change)
        if error <= epsilon:
            return 0.0
        if epsilon <= 0.0 or not np.isfinite(error):
            return float("inf")
        return float(np.log(epsilon / error) / np.log(self.rate)) if self.rate > 0.0 else 1.0

    def sweeps_to_change(self, epsilon: float, change: float) -> float:
        """Return how many more sweeps will bring the change of one down to `epsilon`."""
        if change <= epsilon:
            return 0.0
        if not (epsilon > 0.0 and 0.0 < self.rate < 1.0 and np.isfinite(change)):
            return float("inf")
        return float(np.log(epsilon / change) / np.log(self.rate))


def iterate(
    sweeper: Sweeper,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
    give_up: GiveUp | None = None,
    doubling: Doubling | None = None,
    made: int = 0,
    first_batch: int | None = None,
) -> Iteration:
    """Sweep until the environment's test is met or its limit is reached.

    With a named method the test is PRISM's: the change of a sweep below epsilon. With a method of
    our choice the *error* must be below epsilon: the one that `doubling` proves, or else the one to
    be expected from the observed contraction, twice in a row.

    Parameters
    ----------
    sweeper
        The prepared solve, made with the threshold of `stop_threshold`.
    environment
        Epsilon and limits.
    progress
        Called after each batch of sweeps.
    give_up
        Asked after each batch of an automatic solve.
    doubling
        For automatic solves of a system whose sweeps rise from 0.
    made
        Sweeps made before, which count as well.
    first_batch
        How many sweeps the first batch has; by default what suits sweeps that are cheap.
    """
    started = time.perf_counter()
    judge = _Judge(environment, sweeper, doubling)
    pieces = _Pieces(sweeper, stop_threshold(environment))
    iterations, batch = made, first_batch
    # With doubling an iterate is only proven after twice its sweeps and more: steps may be longer.
    first, share = (FIRST_BATCH, BATCH_SHARE) if doubling is None else (16, 4)
    longest = sweeper.longest_run if isinstance(sweeper, HasLongestRun) else LONGEST_BATCH
    batch = min(first if batch is None else batch, longest)
    change = float("inf")
    limit = environment.sweep_limit

    def show(sweeps: int, changes: FloatArray) -> None:
        if progress is not None:
            seconds, left = time.perf_counter() - started, judge.sweeps_to_go()
            absolute = environment.absolute
            progress(SweepReport(sweeps, changes, seconds, absolute=absolute, sweeps_to_go=left))

    while iterations < limit:
        parts: list[FloatArray] = []
        for part in pieces.batch(min(judge.sweeps_to_look(iterations, batch), limit - iterations)):
            if parts:
                show(iterations, parts[-1])
            parts.append(part)
            iterations += len(part)
        changes = np.concatenate(parts) if len(parts) > 1 else parts[0]
        change = float(changes[-1])
        judge.look(iterations, changes)
        show(iterations, parts[-1])
        if judge.met:
            return Iteration(Status.CONVERGED, iterations, change, judge.error)
        if environment.automatic:
            # Further sweeps only stir the last digits, or take too long.
            expected = float("inf") if judge.only_rounding else judge.sweeps_to_go()
            if give_up is not None and give_up(iterations, expected):
                small = judge.only_rounding
                status = Status.CHANGE_ONLY if small else Status.NOT_CONVERGED
                return Iteration(status, iterations, change, judge.error, True)
            if judge.only_rounding:
                break
        batch = min(max(batch, iterations // share), longest)
        if judge.met_before:
            batch = min(batch, FIRST_BATCH)
    status = Status.CHANGE_ONLY if change < environment.epsilon else Status.NOT_CONVERGED
    return Iteration(status, iterations, change, judge.error)


class _Pieces:
    """Batches of sweeps, in pieces where they are slow, so that progress shows.

    Where a piece ends makes no difference to the sweeps.

    Parameters
    ----------
    sweeper
        The prepared solve.
    stop_below
        The threshold that it was made with.
    """

    def __init__(self, sweeper: Sweeper, stop_below: float) -> None:
        self._sweeper = sweeper
        self._stop_below = stop_below
        self._pace = 0.0

    def batch(self, sweeps: int) -> Iterator[FloatArray]:
        """Make so many sweeps, or stop at the threshold; yield the changes of each piece."""
        made, met = 0, False
        while made < sweeps and not met:
            piece = sweeps - made
            if self._pace * sweeps > BATCH_SECONDS:
                piece = min(max(int(BATCH_SECONDS / self._pace), 1), piece)
            started = time.perf_counter()
            changes = self._sweeper.run(piece)
            self._pace = (time.perf_counter() - started) / len(changes)
            made += len(changes)
            met = len(changes) < piece or changes[-1] < self._stop_below
            yield changes


class _Judge:
    """Says after each batch of sweeps how good the iterate is."""

    def __init__(
        self, environment: SolverEnvironment, sweeper: Sweeper, doubling: Doubling | None
    ) -> None:
        self._environment = environment
        self._sweeper = sweeper
        self._doubling = doubling
        self._contraction = Contraction()
        self._worst = self._change = float("inf")
        self.met_before = self._looks_done = False
        self.met = False
        self.only_rounding = False
        self.error = float("inf")

    def look(self, iterations: int, changes: FloatArray) -> None:
        """Judge by the changes of the last batch, shape (sweeps,), and by the iterate."""
        epsilon = self._environment.epsilon
        self._contraction.observe(changes)
        if not self._environment.automatic:
            self._change = float(changes[-1])
            self.met = self._change < epsilon
            self.error = self._contraction.error(self._change)
            return
        before, self._worst = self._worst, float(np.max(changes[len(changes) // 2 :]))
        # Small changes that still get smaller are more than rounding.
        stirring = FALLING * before < self._worst < min(ROUNDING, epsilon)
        self.error = self._contraction.error(self._worst)
        meets = self._worst < epsilon and self.error < epsilon
        if self._doubling is None:
            self.met = self._worst == 0.0 or (meets and self.met_before)
            self.only_rounding = stirring and not meets
            self.met_before = meets
            return
        # Near epsilon a proof is worth its cost.
        self._looks_done = self.error < 10.0 * epsilon or self._worst < epsilon / 10.0
        due = self._doubling.is_due(iterations)
        if not (due or self._looks_done):
            return
        values = self._sweeper.values()
        if self._looks_done:
            self._prove(iterations, values, stirring)
        if due:
            self._doubling.keep(iterations, values)

    def _prove(self, iterations: int, values: FloatArray, stirring: bool) -> None:
        assert self._doubling is not None
        proven = self._doubling.error(iterations, values)
        # A fixed point is its own limit, whatever half as many sweeps were.
        at_rest = self._worst == 0.0
        self.met = at_rest or proven < self._environment.epsilon
        # Iterates that have risen by less are at the limit but for rounding.
        rounding_rise = 1e-9
        self.only_rounding = stirring and self._doubling.rise < rounding_rise and not self.met
        if at_rest or np.isfinite(proven):
            rounding = iterations * ROUNDING_A_SWEEP * self._doubling.scale
            self.error = (0.0 if at_rest else proven) + rounding

    def sweeps_to_look(self, iterations: int, batch: int) -> int:
        """Return after how many sweeps to look next: so many, or fewer if that may be a proof."""
        if self._doubling is None or not self._looks_done:
            return batch
        # No batch ends sooner for the sake of a proof: fewer sweeps tell little of contraction.
        fewest = 8
        return min(batch, self._doubling.sweeps_to_proof(iterations, fewest) or batch)

    def sweeps_to_go(self) -> float:
        """Return how many more sweeps the iterate needs, as far as can be told."""
        epsilon = self._environment.epsilon
        if not self._environment.automatic:
            return self._contraction.sweeps_to_change(epsilon, self._change)
        if self._doubling is not None and self._looks_done:
            return self._doubling.sweeps_to(epsilon)
        if self._worst < epsilon and self.error < epsilon:
            return 0.0
        return self._contraction.sweeps_to(epsilon, self._worst)


def stop_threshold(environment: SolverEnvironment) -> float:
    """Return the change below which a sweeper must stop by itself; negative for never."""
    judged = environment.automatic or environment.method is Method.GMRES
    return -1.0 if judged else environment.epsilon
