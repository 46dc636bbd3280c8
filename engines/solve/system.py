"""From a prepared system to a result: choose the engine, sweep, let stages take over, report."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from engines.devices.choice import choose_diagram_engine, choose_engine
from engines.devices.colours import GaussSeidelScheme
from engines.diagrams.system import DiagramSystem, System
from engines.errors import DeviceMemoryError
from engines.host.diagram_colours import ColouredDiagramScheme
from engines.host.engine import CpuEngine
from engines.host.symmetric_sweeper import NAME as SYMMETRIC
from engines.host.symmetric_sweeper import SymmetricScheme
from engines.host.watched import sweeps_in_colours
from engines.methods import coloured_rest
from engines.methods.afterwards import misleading_change
from engines.methods.confirmation import AutomaticSweeps
from engines.methods.iterate import Iteration, iterate, stop_threshold
from engines.methods.levels import LevelScheme
from engines.methods.single import SingleSweeps, sweep_first_in_single
from engines.methods.stretches import Stretches, require_solvable
from engines.methods.substitution import Substitution
from engines.model.environment import Method, Precision, SolverEnvironment
from engines.model.events import Events, Kind
from engines.model.progress import Progress
from engines.model.result import SolveResult, Status
from engines.process.timeline import SOLVING, TIMELINE
from engines.proofs.doubling import Doubling, LateDoubling, rises_from_zero
from engines.solve import late_gpu
from engines.solve.ladder import Answer, Ladder, Solve
from engines.solve.report import (
    DIRECT_ERROR,
    answered,
    is_better,
    judged,
    swept,
)
from engines.solve.stages import (
    ByComponents,
    Coloured,
    Direct,
    DirectMethod,
    Gmres,
    Levels,
    SolveParts,
    Walk,
)
from engines.systems.one_sided import Scheme, Sweeper, SweepSystem

SLOW_AFTER = 5_000
"""Sweeps after which an automatic solve may turn to its direct method."""

SMALL_SYSTEM = 10_000
SLOW_AFTER_IF_SMALL = 1_000
"""Sweeps after which the direct method may take over a system of at most so many rows: elimination
takes milliseconds."""

TINY_SYSTEM = 512
LOOKED_AT_IF_TINY = 128
"""Of MDPs of so few states, which elimination solves as fast as some sweeps are made, sweeps are
asked this early whether they will be many. Chains of that size are swept in no time, and what
proves their error knows less of them so early."""

SLOW_AFTER_WITH_CHOICES = 1_000
"""Sweeps after which the direct method may take over an MDP: the last ones suggest a policy that is
optimal or nearly so, and elimination of its chain takes as long as some hundred sweeps."""


def solve_system(
    system: System,
    environment: SolverEnvironment,
    method: str,
    *,
    direct: Direct | None = None,
    direct_name: str = "elimination",
    by_levels: bool = False,
    by_components: SolveParts | None = None,
    progress: Progress | None = None,
) -> SolveResult:
    """Solve a system by sweeps.

    Parameters
    ----------
    system
        What to solve. One without an expanded matrix is swept in one place, in double precision;
        only cycles take over, where a GPU makes them of runs of rows.
    environment
        Method, termination, limits, device.
    method
        What the log calls the method.
    direct
        For automatic solves: what to do when the sweeps contract too slowly.
    direct_name
        What the log calls that.
    by_levels
        For automatic solves of a steady state: whether multilevel cycles are tried first.
    by_components
        For automatic solves on the CPU: solves the system component by component, as
        `engines.solve.stages.ByComponents` takes it.
    progress
        Called after each batch of sweeps.

    Returns
    -------
    The result, whose status the caller must look at.
    """
    how, begun = (method, direct_name, by_levels, by_components, progress), None
    with TIMELINE.part(SOLVING):
        on_cpu = late_gpu.environment_before(environment, system)
        if on_cpu is not None:
            soon = direct if late_gpu.may_factorise(system) else None
            begun = _solve(system, on_cpu, soon, *how, going_over=True)
            if late_gpu.is_over(begun, environment):
                return begun
        return _solve(system, environment, direct, *how, begun=begun)


def _solve(
    system: System,
    environment: SolverEnvironment,
    direct: Direct | None,
    method: str,
    direct_name: str,
    by_levels: bool,
    by_components: SolveParts | None,
    progress: Progress | None,
    *,
    going_over: bool = False,
    begun: SolveResult | None = None,
) -> SolveResult:
    """Solve in one place, or there to the limit of sweeps, or on from where others have come."""
    started = time.perf_counter()
    solve = _prepared(system, environment, method, begun)
    environment = solve.environment
    setup = time.perf_counter() - started
    stretches = Stretches(system, environment, progress, DIRECT_ERROR)
    walk = Substitution(system, environment, solve.sweeper, DIRECT_ERROR)
    ladder = _ladder(solve, stretches, walk, direct, direct_name, by_levels, going_over)
    head, of_single = sweep_first_in_single(
        solve.sweeper, system, environment, progress, ladder.takes_over
    )
    solve.events += of_single
    before = late_gpu.so_far(begun) if begun is not None else None
    rising = environment.automatic and rises_from_zero(system)
    if head is not None:
        before = head.so_far
    elif rising:
        stretches.allow(solve.sweeper, np.inf if direct is None else _slow_after_of(solve))
        if solve.sweeper.cost.on_cpu and not going_over and coloured_rest.may_serve(system):
            ladder.put_behind(Gmres, Coloured(system, stretches, walk))
    if solve.sweeper.cost.on_cpu and not going_over:
        ladder.put_behind(Walk, ByComponents(system, by_components))
    answer = None
    if environment.automatic:
        answer = _automatic(solve, ladder, stretches, before, head, rising)
    elif environment.method is Method.GMRES:
        answer = Gmres(stretches).run(solve)
    else:
        head = _by_named_method(solve, head, before, progress)
    # Others go on from the iterate: values found otherwise are none.
    best = None if going_over else stretches.best
    if best is not None and not is_better(answer, solve.outcome, best[1]):
        answer = Answer(*best, stretches.description)
    quiet = going_over or solve.outcome.status is Status.CONVERGED
    solve.events += stretches.events if quiet else stretches.events + stretches.failure
    result = swept(solve, stretches.made, setup, time.perf_counter() - started)
    if begun is not None:
        result = late_gpu.joined(begun, result)
    if head is not None:
        result = head.completed(result, environment)
    if not environment.automatic:
        misled = misleading_change(result, environment)
        result = replace(result, events=result.events + misled)
    return judged(result if answer is None else answered(solve, result, answer), system)


def _prepared(
    system: System, environment: SolverEnvironment, method: str, begun: SolveResult | None
) -> Solve:
    """Return a solve whose sweeps are prepared: on which engine, by which of its sweeps."""
    if isinstance(system, DiagramSystem):
        return _prepared_without_matrix(system, environment, method)
    limit = None if begun is None else environment.sweep_limit
    engine, chosen = choose_engine(environment, system, limit)
    if environment.method is Method.GMRES:
        require_solvable(system)
    symmetric = SymmetricScheme.where_best(engine, system, environment)
    scheme: Scheme[SweepSystem] = symmetric or engine
    host = CpuEngine(environment.matrix_format)
    on_cpu: Scheme[SweepSystem] = host
    if sweeps_in_colours(environment.method):
        scheme = GaussSeidelScheme.of(engine, environment)
        on_cpu = GaussSeidelScheme.of(host, environment)
    elif environment.method is Method.MULTILEVEL:
        scheme = LevelScheme(engine, environment.device_memory)
    given = system if begun is None else replace(system, start=begun.values)
    how = (given, stop_threshold(environment), environment.absolute)
    sweeper, prepared = sweeper_or_cpu(scheme, *how, on_cpu)
    return Solve(
        *(system, engine, scheme, environment, SYMMETRIC if symmetric else method, sweeper),
        events=list(prepared or chosen),
        others_confirm=symmetric is not None,
    )


def _prepared_without_matrix(
    system: DiagramSystem, environment: SolverEnvironment, method: str
) -> Solve:
    """Return a solve in double precision, in the place that is chosen or not at all."""
    engine, chosen = choose_diagram_engine(environment, system)
    scheme: Scheme[DiagramSystem] = engine
    if sweeps_in_colours(environment.method):
        scheme = ColouredDiagramScheme(engine, system, environment)
    sweeper = scheme.sweeper(system, stop_threshold(environment), environment.absolute)
    in_double = environment.double_instead(
        "rows without a matrix are not swept in single precision"
    )
    environment = replace(environment, precision=Precision.DOUBLE)
    events = [*chosen, *sweeper.cost.events, *in_double]
    return Solve(system, engine, scheme, environment, method, sweeper, events=events)


def _slow_after_of(solve: Solve) -> int:
    on_cpu, limit = solve.sweeper.cost.on_cpu, solve.environment.sweep_limit
    return _slow_after(solve.system, on_cpu, limit)


def _ladder(
    solve: Solve,
    stretches: Stretches,
    walk: Substitution,
    direct: Direct | None,
    direct_name: str,
    by_levels: bool,
    going_over: bool,
) -> Ladder:
    """Return what takes over where the sweeps of an automatic solve contract slowly, in order."""
    system, slow_after = solve.system, _slow_after_of(solve)
    tiny = system.has_choices and system.num_updates <= TINY_SYSTEM
    looked_at = min(slow_after, LOOKED_AT_IF_TINY) if tiny else slow_after
    ladder = Ladder(Walk(walk))
    on_cpu = solve.sweeper.cost.on_cpu
    # On a CPU elimination is as fast where it fits, and a GPU that takes over makes the cycles.
    here = not on_cpu or (direct is None and not going_over)
    if by_levels and here and solve.environment.automatic:
        ladder.stages.append(Levels(system, on_cpu, stretches.then))
    ladder.stages.append(Gmres(stretches))
    if direct is not None:
        ladder.stages.append(DirectMethod(direct, direct_name, looked_at, slow_after, stretches))
    return ladder


def _automatic(
    solve: Solve,
    ladder: Ladder,
    stretches: Stretches,
    before: Iteration | None,
    head: SingleSweeps | None,
    rising: bool,
) -> Answer | None:
    made = 0 if before is None else before.iterations
    solve.sweeps = AutomaticSweeps(
        *(solve.sweeper, solve.scheme, solve.system, solve.environment),
        *(_doubling(solve.environment, made) if rising else None, stretches.then),
        others_confirm=solve.others_confirm,
    )
    if head is None or head.goes_on(solve.environment):
        solve.outcome = solve.sweeps.run(ladder.takes_over, before)
    else:
        solve.outcome = head.ended(solve.sweeper, solve.environment, solve.sweeps.judged)
    return ladder.climb(solve)


def _by_named_method(
    solve: Solve, head: SingleSweeps | None, before: Iteration | None, progress: Progress | None
) -> SingleSweeps | None:
    """Sweep as the user asked; return the sweeps in single precision that count, if any."""
    environment, made = solve.environment, 0 if before is None else before.iterations
    if head is None:
        solve.outcome = iterate(solve.sweeper, environment, progress=progress, made=made)
        return None
    if not head.goes_on(environment):
        solve.outcome = head.ended(solve.sweeper, environment, lambda outcome, _: outcome)
        return head
    solve.outcome = head.followed(solve.sweeper, environment, progress)
    wasted = solve.outcome.iterations
    if solve.outcome.status is Status.CONVERGED or wasted >= environment.sweep_limit:
        return head
    # Their memory comes first.
    del solve.sweeper
    system = solve.system.expanded
    assert system is not None, "without a matrix there are no sweeps in single precision"
    how = (stop_threshold(environment), environment.absolute, CpuEngine(environment.matrix_format))
    solve.sweeper, prepared = sweeper_or_cpu(solve.scheme, system, *how)
    solve.events[:] = [*prepared, *solve.events, Kind.SINGLE_STALLED()]
    outcome = iterate(solve.sweeper, environment, progress=progress)
    solve.outcome = replace(outcome, iterations=wasted + outcome.iterations)
    return None


def _doubling(environment: SolverEnvironment, begun: int) -> Doubling:
    """Return what proves the error of sweeps, after so many elsewhere or in single precision."""
    absolute = environment.absolute
    return LateDoubling(absolute, begun) if begun else Doubling(absolute)


def _slow_after(system: System, on_cpu: bool, limit: int) -> int:
    small = system.num_updates <= SMALL_SYSTEM
    least = SLOW_AFTER_WITH_CHOICES if system.has_choices else SLOW_AFTER
    if small:
        return min(least, SLOW_AFTER_IF_SMALL)
    if on_cpu:
        return least
    # Sweeps of a GPU are given more patience, because factors stay the CPU's work. A limit that the
    # user set must leave room for the direct method.
    return min(least * 16, max(least, limit // 2))


def sweeper_or_cpu(
    scheme: Scheme[SweepSystem],
    system: SweepSystem,
    stop_below: float,
    absolute: bool,
    on_cpu: Scheme[SweepSystem],
) -> tuple[Sweeper, Events]:
    """Prepare sweeps, on the CPU where a GPU's memory does not suffice.

    Parameters
    ----------
    scheme
        Which sweeps are to be made, and where.
    system, stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`.
    on_cpu
        Which are made instead.

    Returns
    -------
    The sweeper, and what the log tells of its layout, or of its being the CPU's instead.
    """
    try:
        sweeper = scheme.sweeper(system, stop_below, absolute)
        return sweeper, sweeper.cost.events
    except DeviceMemoryError as error:
        moved = Kind.MOVED_TO_CPU(reason=str(error))
        return on_cpu.sweeper(system, stop_below, absolute), (moved,)
