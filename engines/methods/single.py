"""Sweeps in single precision: which systems may be swept so, how far, and what is then known.

A sweep in single precision takes its sums in double precision and rounds what it stores, so that
each value is off by a factor between 1 − η and 1 (rounded down) or 1 + η (to nearest). The sweeps
admitted here neither subtract nor turn the order of their arguments round: a factor on the iterate
becomes at most the same factor on the next one. After k sweeps the iterate is therefore within
(k + 1) η of that of k exact sweeps, whatever the matrix. `docs/precision.md` has the argument.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from engines.arrays import FloatArray
from engines.diagrams.system import System
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.host.compiled.change import largest_change
from engines.host.watched import sweeps_in_colours
from engines.methods.iterate import (
    BATCH_SHARE,
    FALLING,
    FIRST_BATCH,
    Contraction,
    GiveUp,
    Iteration,
    iterate,
)
from engines.model.environment import Method, Precision, SolverEnvironment
from engines.model.events import Events, Kind
from engines.model.progress import Progress, SweepReport
from engines.model.result import SolveResult, Status
from engines.proofs.doubling import Doubling, rises_from_zero
from engines.systems.one_sided import (
    LONGEST_BATCH,
    HasSingle,
    Scaling,
    SingleSweeper,
    Sweeper,
)
from engines.systems.precision import DOWN

Confirm = Callable[[Iteration, float], Iteration]
"""Returns an outcome with a confirmed error, given one that need not be improved on."""

STALLED = 4 * DOWN
"""Changes below this that fall no more are rounding: single precision is at its floor."""

OBSERVED = 16 * DOWN
"""Changes below this say nothing about contraction."""

CALM = 2.0**-10
"""Changes below this that fall no more for as long as all sweeps before are at the floor as well:
near an eigenvalue of −1 roundings add up."""

VERY_CALM = 16 * STALLED
"""Below this a quarter of the sweeps before is enough."""

TOTAL = 100
"""The iterate of a steady state is swept at a sum of about 2^100: it cannot overflow, and rare
states keep their digits down to about 2^-200 of it."""

NO_DIGITS = 2.0**-100
"""Smaller values, of the iterate that is swept, may have lost digits at the end of the range."""

SAFETY = 2 * DOWN
"""By how much a sweep in double precision may change more than one in single precision."""


@dataclass(frozen=True)
class SingleSweeps:
    """How the sweeps in single precision ended.

    Parameters
    ----------
    sweeper
        What made them.
    iterations, change
        Sweeps made, and the largest change of the last.
    contraction
        What was observed while changes were more than rounding.
    settled
        Whether the test was met, but for rounding.
    at_floor
        Whether the changes are rounding.
    given_up
        Whether the caller's other method should take over.
    proven
        A bound of what exact sweeps would have left, or None where nothing was to prove it.
    normalised
        Whether the iterate is divided by its sum, which is as far off, when all is done.
    factor
        What the iterate was multiplied by while it was swept.
    """

    sweeper: SingleSweeper
    iterations: int
    change: float
    contraction: Contraction
    normalised: bool
    factor: float
    settled: bool = False
    at_floor: bool = False
    given_up: bool = False
    proven: float | None = None

    @property
    def so_far(self) -> Iteration:
        """These sweeps as those that others continue."""
        error = self.contraction.error(self.change)
        made = (self.iterations, self.change, error)
        return Iteration(Status.NOT_CONVERGED, *made, self.given_up)

    def goes_on(self, environment: SolverEnvironment) -> bool:
        """Return whether sweeps in double precision follow.

        Parameters
        ----------
        environment
            Precision and limits.
        """
        left = self.iterations < environment.sweep_limit
        return environment.precision is Precision.MIXED and left and not self.given_up

    def ended(
        self, sweeper: Sweeper, environment: SolverEnvironment, confirm: Confirm
    ) -> Iteration:
        """Judge the iterate by some sweeps in double precision, which make it better.

        What contracts slowly, and was hidden by roundings, comes out when they have died away.

        Parameters
        ----------
        sweeper
            The sweeps in double precision, which have taken the iterate over.
        environment
            Epsilon, and what it bounds.
        confirm
            Confirms the error of a method of our choice that is not proven.
        """
        if self.given_up or not (self.settled or self.at_floor):
            return self.so_far
        absolute, more = environment.absolute, self._measuring_sweeps
        later = Contraction()
        later.observe(sweeper.run(more)[more // 2 :])
        before = np.array(sweeper.values())
        sweeper.run(1)
        after = sweeper.values()
        digits = np.abs(before) >= (0.0 if absolute else NO_DIGITS / self.factor)
        change = largest_change(before[digits], after[digits], absolute)
        rounding = self.rounding(largest_value(after, absolute))
        left = max(self.contraction.error(change), later.error(change))
        ended = Iteration(Status.CHANGE_ONLY, self.iterations + more + 1, change, left + rounding)
        if self.proven is not None:
            ended = replace(ended, error_estimate=self.proven + rounding)
        elif environment.automatic:
            ended = confirm(ended, rounding)
        met = ended.error_estimate if environment.automatic else change
        return replace(ended, status=Status.CONVERGED) if met < environment.epsilon else ended

    @property
    def _measuring_sweeps(self) -> int:
        return min(max(self.iterations // 16, FIRST_BATCH), LONGEST_BATCH)

    def followed(
        self, sweeper: Sweeper, environment: SolverEnvironment, progress: Progress | None
    ) -> Iteration:
        """Sweep on in double precision by a named method, as long as that gets anywhere.

        Parameters
        ----------
        sweeper
            The sweeps in double precision, which have taken the iterate over.
        environment
            Epsilon and limits.
        progress
            Called after each batch of sweeps.

        Returns
        -------
        How they ended; not converged below the limit where the change a sweep makes falls no more.
        """
        assert isinstance(sweeper, HasSingle)
        # After this many sweeps it is looked whether they get anywhere.
        limit, stretch = environment.sweep_limit, max(self.iterations, 512)
        made, change = self.iterations, float("inf")
        # First what roundings have left fades, so that the test is not met by what it hides.
        rate = self.contraction.rate
        fading = int(2.0 / (1.0 - rate)) + 1 if rate < 1.0 else FIRST_BATCH
        # An error that moves through the states before it falls takes longer to fade than that.
        least_share = 4
        fading = max(min(fading, self.iterations), self.iterations // least_share)
        fading = min(fading, limit - made, LONGEST_BATCH)
        changes = sweeper.run(fading)
        made, change = made + fading, float(changes[-1])
        if change < environment.epsilon:
            return self._told_of(Iteration(Status.CONVERGED, made, change, float("inf")))
        sweeper.stop_at(environment.epsilon)
        change = float("inf")
        while made < limit:
            part = replace(environment, max_iterations=min(made + stretch, limit))
            outcome = iterate(sweeper, part, progress=progress, made=made)
            stuck = outcome.change > FALLING * change
            made, change = outcome.iterations, outcome.change
            if outcome.status is Status.CONVERGED or stuck:
                return self._told_of(outcome)
        return self._told_of(Iteration(Status.NOT_CONVERGED, made, change, float("inf")))

    def _told_of(self, outcome: Iteration) -> Iteration:
        errors = (outcome.error_estimate, self.contraction.error(outcome.change))
        known = [error for error in errors if np.isfinite(error)]
        return replace(outcome, error_estimate=max(known, default=float("inf")))

    def completed(self, result: SolveResult, environment: SolverEnvironment) -> SolveResult:
        """Return the result of the whole solve, given that of its part in double precision.

        Parameters
        ----------
        result
            With the iterations of both.
        environment
            Epsilon, precision, and what is absolute.
        """
        ours, theirs = self.sweeper.cost, result.cost
        after = result.iterations - self.iterations
        moved = self.iterations * ours.bytes_per_sweep + after * theirs.bytes_per_sweep
        rounding = 0.0
        if environment.precision is Precision.SINGLE:
            result = replace(result, trusted_above=self._least(result.values, environment))
            events = self._events(result, environment)
            rounding = self.rounding(largest_value(result.values, environment.absolute))
        else:
            events = (Kind.SINGLE_THEN_DOUBLE(sweeps=self.iterations, double=after),)
        return replace(
            result,
            sweeping_seconds=result.sweeping_seconds + self.sweeper.seconds,
            cost=replace(theirs, bytes_per_sweep=moved // max(result.iterations, 1)),
            events=result.events + events,
            remedy="-gpuprecision mixed goes further" if rounding else result.remedy,
            rounding=rounding,
        )

    def _least(self, values: FloatArray, environment: SolverEnvironment) -> float:
        """Return the value below which some have lost digits; 0 where none has."""
        least = NO_DIGITS / self.factor
        lost = not environment.absolute and bool(np.any((values > 0.0) & (values < least)))
        return least if lost else 0.0

    def _events(self, result: SolveResult, environment: SolverEnvironment) -> Events:
        kind = Kind.SINGLE_BUT if result.trusted_above > 0.0 else Kind.SINGLE
        if not np.isfinite(result.error_estimate):
            kind = Kind.SINGLE_UNKNOWN
        swept = kind(
            sweeps=self.iterations,
            error_kind=environment.error_kind,
            error=result.error_estimate,
            rounding=self.rounding(largest_value(result.values, environment.absolute)),
            least=result.trusted_above,
        )
        if kind is Kind.SINGLE_UNKNOWN or result.status is not Status.CHANGE_ONLY:
            return (swept,)
        return swept, Kind.SINGLE_AT_END(epsilon=environment.epsilon)

    def rounding(self, scale: float) -> float:
        """Return what all roundings may have made of the iterate, at most.

        Parameters
        ----------
        scale
            The largest value for an absolute error, 1 for a relative one.
        """
        factor = (2 if self.normalised else 1) * self.sweeper.rounding
        return scale * float(np.expm1((self.iterations + 1) * factor))


def refusal(system: System, environment: SolverEnvironment) -> str:
    """Return why a system cannot be swept in single precision, or nothing if it can.

    Parameters
    ----------
    system
        What is to be solved, before any scaling.
    environment
        Method and precision.
    """
    method = environment.method
    if sweeps_in_colours(method):
        return f"{method} is swept in colours"
    if method is Method.MULTILEVEL:
        return "multilevel cycles subtract"
    if method is Method.GMRES:
        return "GMRES proves its error in double precision"
    if not 0.0 < system.omega <= 1.0:
        return f"with omega {system.omega:g} sweeps subtract"
    parts = (system.matrix.values, system.start, system.offset)
    if any(part is not None and not bool(np.all(part >= 0.0)) for part in parts):
        return "there are negative numbers"
    proven = system.has_choices or system.scaling is Scaling.BALANCE
    if environment.automatic and not (proven or rises_from_zero(system)):
        return "nothing proves what it leaves to be right"
    return ""


def sweep_first_in_single(
    sweeper: Sweeper,
    system: System,
    environment: SolverEnvironment,
    progress: Progress | None,
    give_up: GiveUp | None,
) -> tuple[SingleSweeps | None, Events]:
    """Make sweeps in single precision where the environment wants them.

    Parameters
    ----------
    sweeper
        The prepared solve in double precision.
    system
        What is solved, before any scaling.
    environment
        Method, precision, epsilon, limits.
    progress
        Called after each batch of sweeps.
    give_up
        Asked after each batch of an automatic solve.

    Returns
    -------
    How they ended, with the iterate handed over to `sweeper`; None where there were none, and why,
    if the environment wanted some.
    """
    if environment.precision is Precision.DOUBLE:
        return None, ()
    reason = refusal(system, environment)
    # Steady states are balanced best by rounding to nearest; what rises to its least solution must
    # not be lifted above it.
    nearest = system.scaling is Scaling.BALANCE
    if not reason and isinstance(sweeper, HasSingle):
        factor = 1.0
        if nearest and not environment.absolute:
            factor = 2.0 ** (TOTAL - np.ceil(np.log2(max(system.start.sum(), 1.0e-30))))
        try:
            single = sweeper.in_single(_threshold(environment), nearest, factor)
        except (UnsupportedError, DeviceMemoryError) as error:
            reason = str(error)
        else:
            proof = None
            alone = environment.precision is Precision.SINGLE and environment.automatic
            if alone and rises_from_zero(system):
                proof = Doubling(environment.absolute, single.rounding)
            ended = _sweep(single, nearest, factor, environment, progress, give_up, proof)
            sweeper.go_on_from(single)
            sweeper.stop_at(-1.0)
            return ended, single.cost.events
    return None, environment.double_instead(reason or "another method sweeps here")


def _is_calm(worst: float, since: int, before: int) -> bool:
    """Return whether changes up to `worst` have long not fallen: for `since` sweeps."""
    if worst < VERY_CALM:
        return since >= max(before // 4, FIRST_BATCH)
    return worst < CALM and since >= max(before, 4 * FIRST_BATCH)


def largest_value(values: FloatArray, absolute: bool) -> float:
    """Return what a relative error is multiplied by to be measured as the user wants it.

    Parameters
    ----------
    values
        Shape (states,).
    absolute
        Whether errors are absolute.
    """
    return float(np.max(values[np.isfinite(values)], initial=0.0)) if absolute else 1.0


def _threshold(environment: SolverEnvironment) -> float:
    """Return the change at which a named method's sweeps in single precision end."""
    epsilon = environment.epsilon
    return -1.0 if environment.automatic else max(epsilon - SAFETY, epsilon / 2)


def _sweep(
    single: SingleSweeper,
    normalised: bool,
    factor: float,
    environment: SolverEnvironment,
    progress: Progress | None,
    give_up: GiveUp | None,
    proof: Doubling | None,
) -> SingleSweeps:
    """Sweep until the test is met, the changes are rounding, or the limit is reached."""
    started = time.perf_counter()
    contraction = Contraction(rounding=OBSERVED)
    epsilon, limit = environment.epsilon, environment.sweep_limit
    iterations, batch, change, before, met_before = 0, FIRST_BATCH, float("inf"), np.inf, False
    best, best_at = np.inf, 0
    while iterations < limit:
        changes = single.run(min(batch, limit - iterations))
        iterations, change = iterations + len(changes), float(changes[-1])
        now = time.perf_counter()
        if progress is not None:
            left = contraction.sweeps_to_change(_threshold(environment), change)
            if environment.automatic:
                left = contraction.sweeps_to(epsilon, change)
            absolute = environment.absolute
            progress(
                SweepReport(
                    iterations, changes, now - started, absolute=absolute, sweeps_to_go=left
                )
            )
        scale = 1.0
        if environment.absolute:
            scale = max(largest_value(single.values(), True), float(np.finfo(np.float64).tiny))
        # Larger changes are rises from nothing, which are infinite in double precision.
        largest = 2.0**24
        rises = (changes > largest) & (not environment.absolute)
        contraction.observe(np.where(rises, np.inf, changes / scale))
        worst = float(np.max(changes[len(changes) // 2 :]))
        ended = SingleSweeps(single, iterations, change, contraction, normalised, factor)
        if environment.automatic:
            met = worst < epsilon and contraction.error(worst) < epsilon
            settled, met_before = met and met_before, met
        else:
            settled = change < _threshold(environment)
        at_floor = worst == 0.0 or FALLING * before < worst < STALLED * scale
        before = worst
        if worst < FALLING * best:
            best, best_at = worst, iterations
        at_floor = at_floor or _is_calm(worst / scale, iterations - best_at, best_at)
        if settled or at_floor:
            ended = replace(ended, settled=settled, at_floor=at_floor)
            if proof is None:
                return ended
            # The mean of the last two iterates is that much behind the last.
            return replace(ended, proven=proof.error(iterations, single.values()) + change)
        if proof is not None and proof.is_due(iterations):
            proof.keep(iterations, single.values())
        expected = contraction.sweeps_to(epsilon, worst)
        if environment.automatic and give_up is not None and give_up(iterations, expected):
            return replace(ended, given_up=True)
        batch = min(max(batch, iterations // BATCH_SHARE), LONGEST_BATCH)
    return SingleSweeps(single, iterations, change, contraction, normalised, factor)
