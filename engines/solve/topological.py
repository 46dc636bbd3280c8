"""Solving a system one strongly connected component after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.cuda.driver import driver_present
from engines.devices.choice import GPU_ENTRIES, choose_engine, least_gpu_entries
from engines.host.compiled.shares import ENTRIES_PER_THREAD
from engines.host.components import Components, components_of
from engines.host.engine import CpuEngine
from engines.host.scaling import scaled
from engines.host.topological import ROUNDING, HostWalk, How, Reason, Rule
from engines.methods.confirmation import ConfirmationTuning
from engines.methods.single import largest_value
from engines.model.environment import DeviceChoice, Precision, SolverEnvironment
from engines.model.events import Event, Events, Kind
from engines.model.progress import Progress, SweepReport
from engines.model.result import SolveResult, Status, SweepCost
from engines.proofs.doubling import ROUNDING_A_SWEEP
from engines.solve.report import DIRECT_ERROR, NO_DIGITS, in_unit
from engines.solve.stages import PartLimits
from engines.solve.system import solve_system
from engines.systems.one_sided import Scaling, SweepSystem

SLOW_AFTER = 1_000
"""Sweeps after which an automatic solve turns to its direct method for a component."""

Direct = Callable[[SweepSystem, FloatArray], tuple[FloatArray, float]]
"""Solves a system without scaling directly, from an approximation to the solution and its estimated
relative error; raises RuntimeError or MemoryError where it cannot."""


def solve_topologically(
    system: SweepSystem,
    environment: SolverEnvironment,
    method: str,
    *,
    direct: Direct | None = None,
    direct_name: str = "elimination",
    limits: PartLimits = PartLimits(),
    progress: Progress | None = None,
) -> SolveResult:
    """Solve a system component by component, each after those that it leads to.

    A component of one state is evaluated once: its rows are solved for their own state. Another is
    swept until the environment's test is met, from the finished values below it; the limit of
    sweeps holds for each. Evaluations of single states count as iterations, as in PRISM.

    Parameters
    ----------
    system
        What to solve: `Scaling.NONE` or `Scaling.DIAGONAL`, states ascending.
    environment
        Method, termination, limits, device.
    method
        What the log calls the method.
    direct
        For automatic solves: what to do with a component whose sweeps contract too slowly.
    direct_name
        What the log calls that.
    limits
        Which components there may be.
    progress
        Called from time to time with the iterations so far.

    Returns
    -------
    The result, whose status the caller must look at. Its residual is that of a sweep over the
    whole system, its change the largest last change of a component. What a component's values are
    off by, those above inherit: its error estimate is the largest on a path through the components,
    along which absolute errors add up and relative ones multiply.

    Raises
    ------
    RuntimeError
        For components beyond the limits.
    UnsupportedError
        When the GPU was asked for and cannot be used.

    Notes
    -----
    Dai, Mausam, Weld and Goldsmith (2011), Topological value iteration algorithms. An automatic
    solve divides epsilon by the length of the longest path through components of several states,
    and looks for an upper bound on each before it leaves it.
    Components of many entries are swept where `solve_system` sweeps them, the GPU among them; the
    others by one loop on the host.
    """
    started = time.perf_counter()
    prepared = scaled(system)
    prepared = replace(prepared, scaling=Scaling.NONE)
    components = components_of(prepared)
    largest = int(components.sizes.max(initial=0))
    if largest > limits.largest_share * system.num_states:
        raise RuntimeError(f"a component of {largest} of {system.num_states} states is too large")
    how, placed = placement(components, environment, system)
    in_double = environment.double_instead("components are solved one after the other")
    environment = replace(environment, precision=Precision.DOUBLE)
    setup = time.perf_counter() - started
    solve = _TopologicalSolve(
        *(prepared, components, how, environment, method, direct, direct_name),
        most_slow=limits.most_slow,
    )
    status = solve.run(progress, started)
    values, error = solve.values, solve.error
    if environment.absolute and environment.automatic:
        # The loops count what rounding leaves out as relative errors.
        sweeps = solve.iterations - int(np.count_nonzero(components.sizes == 1))
        error += sweeps * ROUNDING_A_SWEEP * largest_value(values, True)
    allowed = environment.epsilon * (1.0 if solve.unmet else ConfirmationTuning.most_proven_error)
    if status is Status.CONVERGED and environment.automatic and not error <= allowed:
        status = Status.CHANGE_ONLY
    check = CpuEngine().sweeper(replace(prepared, start=values), -1.0, True)
    residual = check.residual()
    if np.isnan(values).any() or not np.isfinite(residual):
        status = Status.DIVERGED
    seconds = time.perf_counter() - started
    return SolveResult(
        values=values,
        status=status,
        method=method,
        iterations=solve.iterations,
        change=solve.change,
        residual=residual,
        error_estimate=error,
        seconds=seconds,
        setup_seconds=setup,
        sweeping_seconds=solve.sweeping_seconds,
        cost=solve.parts.cost(solve.work, solve.iterations),
        events=(described(components), *placed, *in_double, *solve.parts.all_events),
    )


def described(components: Components) -> Event:
    """Return how many components there are, and the size of the largest."""
    sizes = components.sizes
    several = int(np.count_nonzero(sizes > 1))
    largest = int(sizes.max(initial=0))
    return Kind.COMPONENTS(components=len(sizes), several=several, largest=largest)


def placement(
    components: Components, environment: SolverEnvironment, system: SweepSystem
) -> tuple[IndexArray, Events]:
    """Return how each component is solved, shape (components,), and what the log tells of that.

    Components of several states with many entries are solved elsewhere: as many as repay the start
    of a kernel on the GPU, or of a second thread on the host. Where the GPU was asked for, at least
    the largest goes there.

    Parameters
    ----------
    components
        The components.
    environment
        Which device the user asked for.
    system
        The whole system.

    Raises
    ------
    UnsupportedError
        When the GPU was asked for and cannot be used.
    """
    several = components.sizes > 1
    entries = np.where(several, components.entries(), 0)
    least = 2 * ENTRIES_PER_THREAD
    events: Events = ()
    forced = environment.device is DeviceChoice.GPU
    if forced:
        choose_engine(environment, system)
    if forced or (environment.device is DeviceChoice.AUTO and driver_present()):
        least = min(least, GPU_ENTRIES if forced else least_gpu_entries())
    if forced and several.any():
        least = min(least, int(entries.max()))
    elsewhere = several & (entries >= least)
    if forced:
        swept = int(components.sizes[elsewhere].sum())
        number, states = int(np.count_nonzero(elsewhere)), len(components.found)
        events = (Kind.COMPONENTS_ON_GPU(components=number, swept=swept, states=states),)
    return np.where(elsewhere, How.ELSEWHERE, How.HERE).astype(np.int64), events


@dataclass
class Parts:
    """What was solved elsewhere than in the walk.

    Parameters
    ----------
    direct_name
        What the log calls solving directly.
    swept
        What the sweeps of each component moved, and how many there were.
    events
        What happened in sweeping them, for the log.
    directly
        How many components were solved directly.
    """

    direct_name: str
    swept: list[tuple[SweepCost, int]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    directly: int = 0

    @property
    def all_events(self) -> list[Event]:
        """What happened in sweeping them and in solving them directly."""
        if not self.directly:
            return self.events
        return [
            *self.events,
            Kind.COMPONENTS_SOLVED(components=self.directly, by=self.direct_name),
        ]

    def cost(self, work: float, iterations: int) -> SweepCost:
        """Return the mean cost of an iteration, where the components were swept.

        Parameters
        ----------
        work
            Entries looked at by the walk.
        iterations
            Iterations of the walk and the parts.
        """
        entry_bytes = 12  # Its value and its column.
        moved = entry_bytes * work
        moved += sum(cost.bytes_per_sweep * sweeps for cost, sweeps in self.swept)
        gpus = tuple(dict.fromkeys(gpu for cost, _ in self.swept for gpu in cost.gpus))
        on_cpu = work > 0 or any(cost.on_cpu for cost, _ in self.swept)
        kernels = list(dict.fromkeys(cost.kernel for cost, _ in self.swept))
        kernels.append("component by component")
        mean = int(moved / iterations) if iterations else 0
        return SweepCost(gpus, ", ".join(kernels), "csr", mean, cpu_as_well=on_cpu)


class _TopologicalSolve:
    """A walk over the components, and what it leaves to others."""

    def __init__(
        self,
        system: SweepSystem,
        components: Components,
        how: IndexArray,
        environment: SolverEnvironment,
        method: str,
        direct: Direct | None,
        direct_name: str,
        most_slow: float,
    ) -> None:
        self._slow, self._most_slow = 0, most_slow
        self._system, self._components, self._method = system, components, method
        self._direct = direct if environment.automatic else None
        self._environment = environment
        if environment.automatic:
            depth = max(int(components.depth.max(initial=0)), 1)
            least = min(environment.epsilon, ROUNDING)
            epsilon = max(environment.epsilon / depth, least)
            self._environment = replace(environment, epsilon=epsilon)
        self.parts = Parts(direct_name)
        self.sweeping_seconds = 0.0
        self.values = np.array(system.start, dtype=np.float64)
        self._how = how
        self._rough: dict[int, tuple[IndexArray, FloatArray, float]] = {}
        rule = Rule(
            epsilon=self._environment.epsilon,
            absolute=environment.absolute,
            limit=environment.sweep_limit,
            automatic=environment.automatic,
            rising=not self.values[components.found].any(),
            slow_after=SLOW_AFTER,
        )
        self._walk = HostWalk(components, rule, how, self.values)
        self._place, self._errors = self._walk.place, self._walk.errors

    @property
    def iterations(self) -> int:
        return int(self._place.iterations)

    @property
    def unmet(self) -> int:
        """How many components were left before they met the test."""
        return int(self._place.unmet)

    @property
    def change(self) -> float:
        return float(self._place.change)

    @property
    def work(self) -> float:
        return float(self._place.work)

    @property
    def error(self) -> float:
        return float(self._errors.max(initial=0.0))

    def run(self, progress: Progress | None, started: float) -> Status:
        while True:
            began = time.perf_counter()
            reason = self._walk.step()
            self.sweeping_seconds += time.perf_counter() - began
            if progress is not None:
                changes, absolute = np.array([self.change]), self._environment.absolute
                seconds = time.perf_counter() - started
                progress(SweepReport(self.iterations, changes, seconds, absolute=absolute))
            if reason is Reason.DONE:
                return Status.CONVERGED
            if reason is Reason.LIMIT and self._took_rough():
                continue
            if reason is Reason.LIMIT:
                own = self._place.component
                self._errors[own] = np.inf
                return Status.NOT_CONVERGED
            if reason is Reason.OUTSIDE:
                status = self._solve_elsewhere(progress, started)
                if status in (Status.NOT_CONVERGED, Status.DIVERGED):
                    return status
            elif reason is Reason.SLOW:
                self._solve_directly()

    def _solve_elsewhere(self, progress: Progress | None, started: float) -> Status:
        own = self._place.component
        part, states = self._components.extract(self._system, own, self.values)
        before = self.iterations

        def report(part: SweepReport) -> None:
            if progress is not None:
                progress(part.within(before, time.perf_counter() - started))

        result = solve_system(
            part,
            self._environment,
            self._method,
            direct=None if self._direct is None else partial(self._direct, part),
            direct_name=self.parts.direct_name,
            progress=report,
        )
        self.parts.swept.append((result.cost, result.iterations))
        self.parts.events += result.events
        self.sweeping_seconds += result.sweeping_seconds
        self._place.iterations += result.iterations
        self._place.unmet += result.status is Status.CHANGE_ONLY
        self._take(states, result.values, result.change, result.error_estimate)
        return result.status

    def _solve_directly(self) -> None:
        self._slow += 1
        if self._slow > self._most_slow:
            raise RuntimeError(f"more than {self._most_slow} components converge too slowly")
        own = self._place.component
        self._how[own] = How.PATIENTLY
        if self._direct is None:
            return
        part, states = self._components.extract(self._system, own, self.values)
        try:
            values, error = in_unit(self._direct(part, part.start), self._environment)
        except (MemoryError, RuntimeError):
            return
        scale = largest_value(values, self._environment.absolute)
        if error <= max(self._environment.epsilon, DIRECT_ERROR * scale):
            self.parts.directly += 1
            self._take(states, values, error, error)
        elif error <= NO_DIGITS * scale:
            self._rough[own] = (states, values, error)

    def _took_rough(self) -> bool:
        """Return whether the present component, which sweeps do not end, has a rough solution."""
        own = self._place.component
        if own not in self._rough:
            return False
        states, values, error = self._rough.pop(own)
        self.parts.directly += 1
        self._place.unmet += 1
        self._take(states, values, error, error)
        return True

    def _take(self, states: IndexArray, values: FloatArray, change: float, error: float) -> None:
        """Take the values of the present component, and go on to the next."""
        components = self._components
        own = self._place.component
        component = components.component[states]
        inside = component == own
        self.values[states[inside]] = values[inside]
        below = component[~inside & (component >= 0)]
        inherited = float(self._errors[below].max(initial=0.0))
        both = error + inherited
        if not self._environment.absolute and error > 0.0 and inherited > 0.0:
            both += error * inherited
        self._errors[own] = both
        self._place.change = max(self._place.change, change)
        self._place.leave()
