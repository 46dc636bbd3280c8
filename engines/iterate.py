"""Sweeping until a solve may stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engines.environment import SolverEnvironment
from engines.formats.csr import FloatArray
from engines.result import Status
from engines.system import Sweeper

FIRST_BATCH = 64
LONGEST_BATCH = 1024
BATCH_SECONDS = 0.25
BATCH_SHARE = 8
"""A batch is at most this part of the sweeps made: a device may run on to the end of a batch."""
ROUNDING = 1e-13
"""Relative changes below this are mostly rounding and say nothing about contraction."""

Progress = Callable[[int, float, float], None]
"""Called after a batch with the sweeps made, the last change and the seconds so far."""

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
    """

    rate: float = float("nan")

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
        if early <= ROUNDING:
            return
        self.rate = (max(late, ROUNDING) / early) ** (1.0 / (len(changes) - half))

    def error(self, change: float) -> float:
        """Return the error to expect after a sweep that changed the iterate by `change`."""
        if change == 0.0:
            return 0.0
        if np.isnan(self.rate) and change <= ROUNDING:
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


def iterate(
    sweeper: Sweeper,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
    give_up: GiveUp | None = None,
) -> Iteration:
    """Sweep until the environment's test is met or its limit is reached.

    With a named method the test is PRISM's: the change of a sweep below epsilon. With a method of
    our choice the *expected error* must be below epsilon too, twice in a row.

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
    """
    started = time.perf_counter()
    contraction = Contraction()
    iterations, batch, met_before = 0, FIRST_BATCH, False
    change = float("inf")
    limit = environment.sweep_limit
    while iterations < limit:
        batch_started = time.perf_counter()
        changes = sweeper.run(min(batch, limit - iterations))
        iterations += len(changes)
        change = float(changes[-1])
        contraction.observe(changes)
        now = time.perf_counter()
        if progress is not None:
            progress(iterations, change, now - started)
        if environment.automatic:
            worst = float(np.max(changes[len(changes) // 2 :]))
            met = worst == 0.0 or (
                worst < environment.epsilon and contraction.error(worst) < environment.epsilon
            )
            if worst == 0.0 or (met and met_before):
                return Iteration(Status.CONVERGED, iterations, change, contraction.error(worst))
            if worst < min(ROUNDING, environment.epsilon) and not met:
                # Further sweeps only stir the last digits.
                if give_up is not None and give_up(iterations, float("inf")):
                    return Iteration(
                        Status.CHANGE_ONLY, iterations, change, contraction.error(worst), True
                    )
                break
            met_before = met
            expected = contraction.sweeps_to(environment.epsilon, worst)
            if not met and give_up is not None and give_up(iterations, expected):
                return Iteration(
                    Status.NOT_CONVERGED, iterations, change, contraction.error(worst), True
                )
        elif change < environment.epsilon:
            return Iteration(Status.CONVERGED, iterations, change, contraction.error(change))
        if now - batch_started < BATCH_SECONDS:
            batch = min(max(batch, iterations // BATCH_SHARE), LONGEST_BATCH)
    status = Status.CHANGE_ONLY if change < environment.epsilon else Status.NOT_CONVERGED
    return Iteration(status, iterations, change, contraction.error(change))


def stop_threshold(environment: SolverEnvironment) -> float:
    """Return the change below which a sweeper must stop by itself; negative for never."""
    return -1.0 if environment.automatic else environment.epsilon
