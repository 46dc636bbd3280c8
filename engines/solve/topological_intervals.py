"""Interval iteration one strongly connected component after the other."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.devices.two_sided import two_sided_sweeper
from engines.errors import ConvergenceError
from engines.host.components import Components, components_of, equations_of
from engines.host.topological import How, Reason
from engines.host.topological_intervals import HostIntervalWalk, IntervalRule
from engines.methods import direct
from engines.model.environment import Precision, SolverEnvironment
from engines.model.events import Kind
from engines.model.progress import Measure, Progress, SweepReport
from engines.model.result import Status
from engines.solve.certified import certify
from engines.solve.narrow import (
    NOT_MONOTONIC,
    Batches,
    Narrowing,
    TimedNarrowing,
    measured_width,
    narrow,
)
from engines.solve.system import SLOW_AFTER
from engines.solve.topological import Parts, described, placement
from engines.systems.one_sided import SweepSystem
from engines.systems.two_sided import TwoSidedSystem, without_self_loops

RAISED_BY = 2.0
"""The first upper values of a component are raised by so many epsilons, as in PRISM: those below it
may be an epsilon off, and its own may come to be as much above the bound that they start from."""

SHARE = 1.0 - 1e-3
"""Components come as close as this part of what is allowed, so that rounding finds room."""


def narrow_topologically(
    two_sided: TwoSidedSystem,
    environment: SolverEnvironment,
    *,
    ours_to_choose: bool,
    progress: Progress | None = None,
) -> TimedNarrowing:
    """Narrow the bounds of a system component by component, each after those that it leads to.

    A component of one state is evaluated once, on both sides; another is swept until its width is
    below epsilon, from the finished bounds below it; the limit of sweeps holds for each.
    Evaluations of single states count as iterations, as in PRISM.

    Parameters
    ----------
    two_sided
        What to solve, states ascending; a chain with or without its self-loops.
    environment
        Epsilon, relative or absolute; limits, checks, device.
    ours_to_choose
        Whether the user left it to us how to sweep. Then the components share epsilon, so that
        none has to come as close as those below it are, and a chain's component that narrows too
        slowly gets bounds around a direct solution.
    progress
        Called from time to time with the iterations so far.

    Raises
    ------
    ConvergenceError
        For bounds that cross, and for sweeps that are not monotonic where that is checked.
    UnsupportedError
        When the GPU was asked for and cannot be used.

    Notes
    -----
    Baier, Klein, Leuschner, Parker and Wunderlich (2017), Ensuring the Reliability of Your Model
    Checker, section 3.3. A row's bound is monotonic in the bounds of its successors, so a component
    between two bounds of those below it has bounds itself, whatever their width.
    """
    started = time.perf_counter()
    components = components_of(two_sided.system)
    system = _singles_without_loops(two_sided.system, components)
    components = replace(components, equations=equations_of(system))
    how, placed = placement(components, environment, system)
    in_double = environment.double_instead("bounds need every digit")
    environment = replace(environment, precision=Precision.DOUBLE)
    solve = _Solve(replace(two_sided, system=system), components, how, environment, ours_to_choose)
    setup = time.perf_counter() - started
    status = solve.run(progress, started)
    states = components.found
    width = measured_width(solve.lower[states], solve.upper[states], environment.absolute)
    events = (described(components), *placed, *in_double, *solve.parts.all_events)
    wider = width >= environment.epsilon and (bool(solve.at_rest) or ours_to_choose)
    if status is Status.CONVERGED and wider:
        status = Status.CHANGE_ONLY
        events = (*events, Kind.BOUNDS_AT_REST(width=width, epsilon=environment.epsilon))
    iterations = solve.iterations
    return TimedNarrowing(
        Narrowing(solve.lower, solve.upper, status, iterations, events),
        solve.parts.cost(solve.work, iterations),
        setup,
        solve.sweeping_seconds,
    )


def _singles_without_loops(system: SweepSystem, components: Components) -> SweepSystem:
    """Return the equations with the rows of single states solved for their own state.

    A row that only loops earns nothing, or for ever.
    """
    matrix = system.matrix
    single = np.zeros(system.num_states, dtype=np.bool_)
    single[components.found[components.bounds[:-1][components.sizes == 1]]] = True
    owner = np.repeat(np.arange(system.num_states), np.diff(components.groups))
    row = matrix.row_of_entry()
    of_single = single[owner]
    loop = matrix.columns == owner[row]
    if not (loop & of_single[row]).any():
        return system
    with np.errstate(divide="ignore", invalid="ignore"):
        solved = without_self_loops(replace(system, states=owner, group_offsets=None))
    values, inner = matrix.values.copy(), np.flatnonzero(~loop)
    changed = of_single[row[inner]]
    values[inner[changed]] = solved.matrix.values[changed]
    kept = ~(loop & of_single[row])
    before = np.concatenate(([0], np.cumsum(kept)))
    offset = system.offset
    if offset is not None and solved.offset is not None:
        offset = np.where(of_single, np.nan_to_num(solved.offset, nan=0.0, posinf=np.inf), offset)
    return replace(
        system,
        matrix=replace(
            matrix,
            row_offsets=before[matrix.row_offsets].astype(matrix.row_offsets.dtype),
            columns=matrix.columns[kept],
            values=values[kept],
        ),
        offset=offset,
    )


class _Solve:
    """A walk over the components, and what it leaves to others."""

    def __init__(
        self,
        two_sided: TwoSidedSystem,
        components: Components,
        how: IndexArray,
        environment: SolverEnvironment,
        ours_to_choose: bool,
    ) -> None:
        system = two_sided.system
        self._two_sided, self._components, self._how = two_sided, components, how
        self._environment = environment
        self._may_certify = ours_to_choose and system.group_offsets is None
        self.parts = Parts("proven bounds of direct solutions")
        self.sweeping_seconds = 0.0
        self.lower = np.array(system.start, dtype=np.float64)
        self.upper = np.array(two_sided.upper, dtype=np.float64)
        self._epsilons = np.full(len(components.sizes), environment.epsilon)
        if ours_to_choose:
            depth = components.depth / max(int(components.depth.max(initial=0)), 1)
            self._epsilons *= depth * SHARE
        rule = IntervalRule(
            slack=two_sided.slack,
            raised_by=RAISED_BY * environment.epsilon,
            limit=environment.sweep_limit,
            slow_after=SLOW_AFTER if self._may_certify else 0,
            absolute=environment.absolute,
            monotonic_below=two_sided.monotonic_below,
            monotonic_above=two_sided.monotonic_above,
        )
        bounds = (self._epsilons, self.lower, self.upper)
        self._walk = HostIntervalWalk(components, rule, how, *bounds)
        self._place = self._walk.place

    @property
    def iterations(self) -> int:
        return int(self._place.iterations)

    @property
    def at_rest(self) -> int:
        """How many components came to rest before their bounds were close."""
        return int(self._place.at_rest)

    @property
    def work(self) -> float:
        return float(self._place.work)

    def run(self, progress: Progress | None, started: float) -> Status:
        while True:
            began = time.perf_counter()
            reason = self._walk.step()
            self.sweeping_seconds += time.perf_counter() - began
            if progress is not None:
                widths, absolute = np.array([self._place.width]), self._environment.absolute
                seconds = time.perf_counter() - started
                progress(SweepReport(self.iterations, widths, seconds, Measure.WIDTH, absolute))
            self._require_order(reason)
            if reason is Reason.DONE:
                return Status.CONVERGED
            if reason is Reason.LIMIT:
                return Status.NOT_CONVERGED
            if reason is Reason.SLOW:
                self._certify_slow()
            elif reason is Reason.OUTSIDE:
                status = self._narrow_elsewhere(progress, started)
                if status is Status.NOT_CONVERGED:
                    return status

    def _require_order(self, reason: Reason) -> None:
        """Raise for bounds that cross, and for steps in the wrong direction if they matter."""
        if reason is Reason.CROSSED:
            raise ConvergenceError(
                f"the lower bound exceeds the upper one by {self._place.crossing:.3e} in some "
                "state: a bound given by lower= or upper= is wrong"
            )
        worst = self._place.worst
        if self._environment.interval.check_monotonic and worst > NOT_MONOTONIC:
            raise ConvergenceError(
                f"two-sided sweeps are not monotonic: a bound moved away by {worst:.1e} of its "
                "value; look at the bounds given by lower= and upper="
            )

    def _part(self) -> tuple[SweepSystem, FloatArray, IndexArray, MaskArray, SolverEnvironment]:
        """Return the present component: its system, first upper values, states and environment.

        The mask tells its own states from those that it leads to.
        """
        own = self._place.component
        part, states = self._components.extract(self._two_sided.system, own, self.lower)
        inside = self._components.component[states] == own
        environment = replace(self._environment, epsilon=float(self._epsilons[own]))
        return part, self.upper[states], states, inside, environment

    def _certify_slow(self) -> None:
        part, upper, states, inside, environment = self._part()
        slow = Narrowing(part.start, upper, Status.NOT_CONVERGED, self._place.sweeps)
        certified = self._certified(part, environment, slow)
        if certified is None:
            self._how[self._place.component] = How.PATIENTLY
        else:
            self._take(states, inside, certified)

    def _certified(
        self, part: SweepSystem, environment: SolverEnvironment, slow: Narrowing
    ) -> Narrowing | None:
        """Return bounds around two direct solutions: from the lower and from the upper values.

        Those that the component leads to are known in neither; each end of them gives one bound.
        """
        if not (self._may_certify and direct.fits(part.matrix)):
            return None
        below = certify(replace(part, start=slow.lower), environment, slow)
        above = certify(replace(part, start=slow.upper), environment, slow)
        if below is None or above is None:
            return None
        self.parts.directly += 1
        updated = slice(None) if part.states is None else part.states
        lower, upper = below.lower[updated], above.upper[updated]
        width = measured_width(lower, upper, environment.absolute)
        close = width < environment.epsilon
        status = Status.CONVERGED if close else Status.CHANGE_ONLY
        return Narrowing(below.lower, above.upper, status, slow.iterations)

    def _narrow_elsewhere(self, progress: Progress | None, started: float) -> Status:
        part, upper, states, inside, environment = self._part()
        upper[inside] += RAISED_BY * self._environment.epsilon
        before = self.iterations

        def report(part: SweepReport) -> None:
            if progress is not None:
                progress(part.within(before, time.perf_counter() - started))

        two_sided = replace(self._two_sided, system=part, upper=upper)
        sweeper, events = two_sided_sweeper(two_sided, environment, environment.epsilon)
        batches = Batches(sweeper, environment, report)
        may_certify = self._may_certify and direct.fits(part.matrix)
        outcome = narrow(sweeper, environment, may_certify, report, batches)
        if outcome.given_up:
            outcome = self._certified(part, environment, outcome) or narrow(
                sweeper, environment, False, report, batches
            )
        self.sweeping_seconds += sweeper.seconds
        self.parts.swept.append((sweeper.cost, outcome.iterations))
        self.parts.events += events
        self._place.iterations += outcome.iterations
        self._take(states, inside, outcome)
        return outcome.status

    def _take(self, states: IndexArray, inside: MaskArray, outcome: Narrowing) -> None:
        """Take the bounds of the present component, and go on to the next."""
        self.lower[states[inside]] = outcome.lower[inside]
        self.upper[states[inside]] = outcome.upper[inside]
        self._place.leave()
        self._place.at_rest += outcome.status is Status.CHANGE_ONLY
