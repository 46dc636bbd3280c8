"""From a prepared system to a result: choose the engine, sweep, fall back, report."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np

from engines import late_gpu
from engines.backend import choose_engine
from engines.cpu.engine import CpuEngine, CpuSweeper
from engines.cpu.symmetric import NAME as SYMMETRIC
from engines.cpu.symmetric import SymmetricEngine, SymmetricSweeper
from engines.environment import Method, Precision, SolverEnvironment
from engines.errors import DeviceMemoryError
from engines.formats.csr import FloatArray
from engines.gauss_seidel import GaussSeidelEngine, WatchedSweeper, sweeps_in_colours
from engines.iterate import Iteration, iterate, stop_threshold
from engines.linear import coloured_rest
from engines.linear.confirmation import AutomaticSweeps, never
from engines.linear.doubling import Doubling, LateDoubling, rises_from_zero
from engines.linear.multilevel import LevelEngine, solve_by_levels
from engines.linear.stretches import NAME as GMRES
from engines.linear.stretches import Stretches, require_solvable
from engines.linear.substitution import Substitution
from engines.progress import Progress
from engines.result import SolveResult, Status, SweepCost
from engines.single import NO_HELP, largest_value, sweep_first_in_single
from engines.system import Engine, HasTwin, Sweeper, SweepSystem

SLOW_AFTER = 5_000
"""Sweeps after which an automatic solve may turn to its direct method."""

SMALL_SYSTEM = 10_000
SLOW_AFTER_IF_SMALL = 1_000
"""The same for systems of so few rows, which elimination solves in milliseconds."""

TINY_SYSTEM = 512
LOOKED_AT_IF_TINY = 128
"""Of MDPs of so few states, which elimination solves as fast as some sweeps are made, sweeps are
asked this early whether they will be many. Chains of that size are swept in no time, and what
proves their error knows less of them so early."""

SLOW_AFTER_WITH_CHOICES = 1_000
"""The same for MDPs: the last sweeps suggest a policy that is optimal or nearly so, and elimination
of its chain takes as long as some hundred sweeps."""

PATIENCE_OF_GPUS = 16
"""On a GPU large systems are swept so many times as long, because factors stay the CPU's work."""

DIRECT_ERROR = 1e-8
"""A direct solution is taken up to this relative error, which the condition of a system may leave
it with however small epsilon is."""

NO_DIGITS = 0.1
"""A direct solution with a larger relative error is none: it may even have the wrong sign."""

LEVELS = "multilevel cycles"
LEVELS_AFTER = 4_096
"""Sweeps after which an automatic solve of a steady state may turn to multilevel cycles."""

LEVELS_REPAY = 20_000
"""Sweeps still to be expected from which on cycles, their preparation and their confirmation are
faster on a GPU, whose formats make sweeps cheap and cycles not."""

UNSAFE = 10.0
"""PRISM takes the error of a named method to be ten times epsilon; more is worth a warning."""

Direct = Callable[[FloatArray], tuple[FloatArray, float]]
"""Solves directly, from the present iterate to the solution and its estimated relative error."""


def solve_system(
    system: SweepSystem,
    environment: SolverEnvironment,
    method: str,
    *,
    direct: Direct | None = None,
    direct_name: str = "elimination",
    by_levels: bool = False,
    progress: Progress | None = None,
) -> SolveResult:
    """Solve a system by sweeps.

    Parameters
    ----------
    system
        What to solve.
    environment
        Method, termination, limits, device.
    method
        What the log calls the method.
    direct
        For automatic solves: what to do when the sweeps contract too slowly.
    direct_name
        What the log calls that.
    by_levels
        For automatic solves of a steady state on a GPU: whether multilevel cycles are tried first.
    progress
        Called after each batch of sweeps.

    Returns
    -------
    The result, whose status the caller must look at.
    """
    how, begun = (method, direct_name, by_levels, progress), None
    on_cpu = late_gpu.environment_before(environment, system)
    if on_cpu is not None:
        soon = direct if late_gpu.may_factorise(system) else None
        begun = _solve(system, on_cpu, soon, *how, going_over=True)
        if late_gpu.is_over(begun, environment):
            return begun
    return _solve(system, environment, direct, *how, begun=begun)


def _solve(
    system: SweepSystem,
    environment: SolverEnvironment,
    direct: Direct | None,
    method: str,
    direct_name: str,
    by_levels: bool,
    progress: Progress | None,
    *,
    going_over: bool = False,
    begun: SolveResult | None = None,
) -> SolveResult:
    """Solve in one place, or there to the limit of sweeps, or on from where others have come."""
    started = time.perf_counter()
    limit = None if begun is None else environment.sweep_limit
    engine, note = choose_engine(environment, system, limit)
    named_gmres = environment.method is Method.GMRES
    if named_gmres:
        require_solvable(system)
    if sweeps_in_colours(environment.method):
        engine = GaussSeidelEngine.of(engine, environment)
    elif environment.method is Method.MULTILEVEL:
        engine = LevelEngine(engine)
    symmetric = SymmetricEngine.where_best(engine, system, environment)
    if symmetric is not None:
        engine, method = symmetric, SYMMETRIC
    threshold = stop_threshold(environment)
    given = system if begun is None else replace(system, start=begun.values)
    sweeper, refusal = sweeper_or_cpu(engine, given, threshold, environment.absolute)
    note = refusal or note
    setup = time.perf_counter() - started
    on_cpu = isinstance(sweeper, CpuSweeper | SymmetricSweeper)
    slow_after = _slow_after(system, on_cpu, environment.sweep_limit)
    tiny = system.group_offsets is not None and system.num_updates <= TINY_SYSTEM
    looked_at = min(slow_after, LOOKED_AT_IF_TINY) if tiny else slow_after

    # On a CPU a cycle costs far more sweeps' time than its work.
    levels = by_levels and environment.automatic and not on_cpu
    in_colours, before_colours = False, 0.0
    stretches = Stretches(system, environment, progress, DIRECT_ERROR)
    substitution = Substitution(system, environment, sweeper, DIRECT_ERROR)

    def give_up(iterations: int, expected: float) -> bool:
        if substitution.ends(iterations, expected):
            return True
        if levels:
            return iterations >= LEVELS_AFTER and expected > LEVELS_REPAY
        if stretches.repay(iterations, expected):
            return True
        if in_colours and coloured_rest.repays(system, iterations, expected):
            return True
        stuck = expected == float("inf") or expected > slow_after
        return direct is not None and iterations >= looked_at and stuck

    head, remark = sweep_first_in_single(sweeper, system, environment, progress, give_up)
    note = "; ".join(filter(None, (note, remark)))
    before = late_gpu.so_far(begun) if begun is not None else None
    if head is not None:
        before = head.so_far
    made_before = 0 if before is None else before.iterations
    doubling = None
    if environment.automatic or head is not None:
        doubling = _doubling(system, environment, made_before)
    rises = environment.automatic and doubling is not None
    in_colours = rises and on_cpu and head is None and not going_over
    in_colours = in_colours and coloured_rest.may_serve(system)
    if rises and head is None:
        stretches.allow(sweeper, np.inf if direct is None else slow_after)
    parts = (sweeper, engine, system, environment, doubling, stretches.then)
    sweeps = AutomaticSweeps(*parts, others_confirm=isinstance(sweeper, SymmetricSweeper))
    if head is not None and not head.goes_on(environment):
        outcome = head.ended(sweeper, environment, sweeps.judged)
    elif environment.automatic:
        outcome = sweeps.run(give_up, before)
    elif named_gmres:
        outcome = Iteration(Status.NOT_CONVERGED, 0, np.inf, np.inf, given_up=True)
    elif head is not None:
        outcome = head.followed(sweeper, environment, progress)
        stuck = outcome.status is not Status.CONVERGED
        if stuck and outcome.iterations < environment.sweep_limit:
            # Their memory comes first.
            del sweeps, sweeper
            wasted, head = outcome.iterations, None
            sweeper, refusal = sweeper_or_cpu(engine, system, threshold, environment.absolute)
            note = "; ".join(filter(None, (refusal, note, NO_HELP)))
            outcome = iterate(sweeper, environment, progress=progress)
            outcome = replace(outcome, iterations=wasted + outcome.iterations)
    else:
        outcome = iterate(sweeper, environment, progress=progress, made=made_before)
    solved = substitution.taken()
    while outcome.given_up and solved is None and stretches.are_due(outcome.iterations):
        solved = stretches.attempt(sweeper, outcome.iterations)
        if solved is not None:
            direct_name = stretches.description
        elif environment.automatic and stretches.best is None:
            outcome = sweeps.run(give_up, outcome)
            solved = substitution.taken()
    substitution.forbid()
    # Others go on from the iterate: values found otherwise are none.
    best = None if going_over else stretches.best
    ended_in_place = solved is not None
    if not environment.automatic:
        direct = None
    if outcome.given_up and levels:
        levels = False
        try:
            solved = solve_by_levels(system, engine, environment, sweeper.values())
            direct_name = LEVELS
        except (MemoryError, RuntimeError) as error:
            note = "; ".join(filter(None, (note, f"{LEVELS} failed: {error}")))
            outcome = sweeps.run(give_up, outcome)
    in_colours = in_colours and solved is None and best is None
    stretches.forbid()
    if outcome.given_up and in_colours and coloured_rest.repays(system, outcome.iterations, np.inf):
        in_colours, made, absolute = False, outcome.iterations, environment.absolute
        try:
            coloured, colours = coloured_rest.coloured_sweeps(system, sweeper.values(), absolute)
        except MemoryError as error:
            note = "; ".join(filter(None, (note, f"no room for sweeps in colours: {error}")))
        else:
            so_far = f"{method} contracts slowly here: after {made} sweeps on by Gauss-Seidel"
            note = "; ".join(filter(None, (note, f"{so_far}, {colours}")))
            before_colours, sweeper = sweeper.seconds, coloured
            late = LateDoubling(absolute, made)
            parts = (sweeper, engine, system, environment, late, stretches.then)
            sweeps = AutomaticSweeps(*parts)
        outcome = sweeps.run(give_up, outcome)
    if solved is None and outcome.given_up and direct is not None:
        try:
            solved = in_unit(direct(sweeper.values()), environment)
        except (MemoryError, RuntimeError) as error:
            note = "; ".join(filter(None, (note, f"{direct_name} failed: {error}")))
            if best is None:
                outcome = sweeps.run(never, outcome)
    if best is not None and not _is_better(solved, outcome, best[1]):
        solved, direct_name = best, stretches.description
    quiet = going_over or outcome.status is Status.CONVERGED
    failure = "" if quiet else stretches.failure
    note = "; ".join(filter(None, (note, stretches.remark, failure)))
    swept = time.perf_counter() - started
    result = SolveResult(
        values=sweeper.values(),
        status=outcome.status,
        method=method,
        iterations=outcome.iterations + stretches.made,
        change=outcome.change,
        residual=sweeper.residual(),
        error_estimate=outcome.error_estimate,
        seconds=swept,
        setup_seconds=setup,
        sweeping_seconds=before_colours + sweeper.seconds,
        cost=sweeper.cost,
        note=note,
    )
    if begun is not None:
        result = late_gpu.joined(begun, result)
    if head is not None:
        result = head.completed(result, environment)
    if not environment.automatic:
        described = sweeper.note if isinstance(sweeper, WatchedSweeper) else ""
        remarks = (result.note, described, unsafe_remark(result, environment))
        result = replace(result, note="; ".join(filter(None, remarks)))
    if solved is not None:
        residual = result.residual
        if not ended_in_place:
            residual = _residual_of(solved[0], system, sweeper)
        if solved is substitution.solved:
            return judged(substitution.completed(result))
        how = (solved, residual, direct_name, environment)
        result = _solved_directly(result, outcome, *how)
        if named_gmres:
            note = "; ".join(filter(None, (note, direct_name)))
            result = replace(result, note=note, finished_by="")
    return judged(result)


def in_unit(
    solved: tuple[FloatArray, float], environment: SolverEnvironment
) -> tuple[FloatArray, float]:
    """Return values and their error as it is asked for, which is given as a relative one.

    Parameters
    ----------
    solved
        Values, shape (states,), and their relative error.
    environment
        Says whether errors are absolute: then none is above that of the largest value.
    """
    values, error = solved
    return values, error * largest_value(values, environment.absolute)


def _is_better(solved: tuple[FloatArray, float] | None, outcome: Iteration, error: float) -> bool:
    """Return whether a solve has come to values whose error is smaller than another."""
    if solved is not None:
        return solved[1] < error
    return outcome.status is Status.CONVERGED or outcome.error_estimate < error


def _doubling(system: SweepSystem, environment: SolverEnvironment, begun: int) -> Doubling | None:
    """Return what proves the error of sweeps, after so many elsewhere or in single precision."""
    if not rises_from_zero(system):
        return None
    absolute = environment.absolute
    return LateDoubling(absolute, begun) if begun else Doubling(absolute)


def _slow_after(system: SweepSystem, on_cpu: bool, limit: int) -> int:
    small = system.num_updates <= SMALL_SYSTEM
    least = SLOW_AFTER if system.group_offsets is None else SLOW_AFTER_WITH_CHOICES
    if small:
        return min(least, SLOW_AFTER_IF_SMALL)
    # A limit that the user set must leave room for the direct method.
    return least if on_cpu else min(least * PATIENCE_OF_GPUS, max(least, limit // 2))


def unsafe_remark(result: SolveResult, environment: SolverEnvironment) -> str:
    """Return a warning where the test that a named method stops by is misleading, or nothing.

    Parameters
    ----------
    result
        A solve by a named method.
    environment
        What it was asked for.
    """
    error = result.error_estimate
    if environment.precision is Precision.SINGLE:
        return ""
    if result.status is not Status.CONVERGED or not UNSAFE * environment.epsilon < error < np.inf:
        return ""
    kind = "absolute" if environment.absolute else "relative"
    return (
        f"{result.method} stopped because a sweep changes less than {environment.epsilon:.2g}, but "
        f"its sweeps contract slowly here: the {kind} error to expect is {error:.1e}"
    )


def sweeper_or_cpu(
    engine: Engine, system: SweepSystem, stop_below: float, absolute: bool
) -> tuple[Sweeper, str]:
    """Prepare sweeps, on the CPU where the engine's memory does not suffice.

    Parameters
    ----------
    engine
        Where the sweeps are to be made.
    system, stop_below, absolute
        As in `engines.system.Engine.sweeper`.

    Returns
    -------
    The sweeper, and a remark for the log where it is the CPU's instead; else an empty one.
    """
    try:
        sweeper = engine.sweeper(system, stop_below, absolute)
        return sweeper, sweeper.cost.remark
    except DeviceMemoryError as error:
        cpu: Engine = CpuEngine()
        if isinstance(engine, GaussSeidelEngine):
            cpu = engine.moved_to(cpu)
        return cpu.sweeper(system, stop_below, absolute), f"{error}; solving on the CPU"


def _residual_of(values: FloatArray, system: SweepSystem, sweeper: Sweeper) -> float:
    """Return the residual of values, by whoever has the rows laid out, if there is room."""
    check = None
    if isinstance(sweeper, HasTwin):
        with suppress(DeviceMemoryError):
            check = sweeper.twin(values, -1.0)
    check = check or CpuEngine().sweeper(replace(system, start=values), -1.0, True)
    return check.residual()


def _solved_directly(
    result: SolveResult,
    outcome: Iteration,
    solved: tuple[FloatArray, float],
    residual: float,
    direct_name: str,
    environment: SolverEnvironment,
) -> SolveResult:
    values, error_estimate = solved
    scale, accepted = largest_value(values, environment.absolute), environment.epsilon
    if environment.method is not Method.GMRES:
        accepted = max(accepted, DIRECT_ERROR * scale)
    so_far = (
        f"{result.method} contracts too slowly here ({outcome.iterations} sweeps, expected "
        f"error still {outcome.error_estimate:.1e}): solved by {direct_name}"
    )
    status = Status.CONVERGED
    if error_estimate > accepted:
        rough = error_estimate <= NO_DIGITS * scale
        status = Status.CHANGE_ONLY if rough else Status.NOT_CONVERGED
    return replace(
        result,
        values=values,
        status=status,
        residual=residual,
        change=error_estimate,
        error_estimate=error_estimate,
        cost=_direct_cost(direct_name, result.cost),
        rounding=0.0,
        finished_by=direct_name,
        note="; ".join(filter(None, (result.note, so_far))),
    )


def _direct_cost(direct_name: str, of_sweeps: SweepCost) -> SweepCost:
    if direct_name.startswith(GMRES):
        return of_sweeps
    if direct_name == LEVELS:
        return SweepCost(of_sweeps.engine, LEVELS, "csr", 0)
    return SweepCost("CPU", "elimination", "csr", 0)


def judged(result: SolveResult) -> SolveResult:
    """Return the result with `Status.DIVERGED` where the iterate left the numbers.

    Infinities may be meant (an infinite reward); a residual that is not a number never is.

    Parameters
    ----------
    result
        A solve that has ended.
    """
    if not np.isnan(result.values).any() and np.isfinite(result.residual):
        return result
    return replace(result, status=Status.DIVERGED)
