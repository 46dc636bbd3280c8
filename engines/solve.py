"""From a prepared system to a result: choose the engine, sweep, fall back, report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engines.backend import choose_engine
from engines.cpu.engine import CpuEngine
from engines.environment import SolverEnvironment
from engines.errors import DeviceMemoryError
from engines.formats.csr import FloatArray
from engines.iterate import ROUNDING, GiveUp, Iteration, Progress, iterate, stop_threshold
from engines.linear.doubling import Doubling, rises_from_zero
from engines.linear.induction import proven_error
from engines.linear.mixing import sweeps_of_memory
from engines.result import SolveResult, Status, SweepCost
from engines.system import Engine, Scaling, Sweeper, SweepSystem

SLOW_AFTER = 5_000
"""Sweeps after which an automatic solve may turn to its direct method."""

SMALL_SYSTEM = 10_000
SLOW_AFTER_IF_SMALL = 1_000
"""The same for systems of so few rows, which LU solves in milliseconds."""

SLOW_AFTER_WITH_CHOICES = 1_000
"""The same for MDPs: the last sweeps suggest a policy that is optimal or nearly so, and LU of its
chain takes as long as some hundred sweeps."""

DIRECT_ERROR = 1e-8
"""A direct solution is taken up to this relative error, which the condition of a system may leave
it with however small epsilon is."""

MOST_PROOFS = 4
FINER = 0.1
"""How often an upper bound of an MDP's values is looked for, and what epsilon is multiplied by in
between."""

FEWEST_SWEEPS_OF_A_PROOF = 64

FEWEST_SWEEPS_TO_MIX = 512
SWEEPS_TO_MIX = 4
"""A steady state that a start far from it does not reach within so many times the sweeps that its
own start took is not taken for one."""

CLOSEST_GUESS = 1e-12
GUESS = 10.0
"""How far above the values of an MDP an upper bound is guessed first: so many times the error to be
expected, but not so close that rounding decides."""

MOST_PROVEN_ERROR = 4.0
"""An upper bound is taken up to this many times epsilon above the values."""

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
    direct_name: str = "sparse LU",
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
    progress
        Called after each batch of sweeps.

    Returns
    -------
    The result, whose status the caller must look at.
    """
    started = time.perf_counter()
    engine, note = choose_engine(environment, system)
    threshold = stop_threshold(environment)
    sweeper, refusal = sweeper_or_cpu(engine, system, threshold, environment.absolute)
    note = refusal or note
    setup = time.perf_counter() - started
    slow_after = _slow_after(system)

    def give_up(iterations: int, expected: float) -> bool:
        stuck = expected == float("inf") or expected > slow_after
        return direct is not None and iterations >= slow_after and stuck

    doubling = None
    if environment.automatic and rises_from_zero(system):
        doubling = Doubling(environment.absolute)
    outcome = iterate(sweeper, environment, progress=progress, give_up=give_up, doubling=doubling)
    if environment.automatic and system.group_offsets is not None:
        outcome = _proven(sweeper, engine, system, environment, outcome, progress, give_up)
    elif environment.automatic and system.scaling is Scaling.BALANCE:
        outcome = _mixed(
            sweeper, engine, system, environment, outcome, progress, direct is not None
        )
    solved = None
    if outcome.given_up and direct is not None:
        try:
            solved = direct(sweeper.values())
        except (MemoryError, RuntimeError) as error:
            outcome = _swept_on(sweeper, environment, outcome, progress)
            note = "; ".join(filter(None, (note, f"{direct_name} failed: {error}")))
    swept = time.perf_counter() - started
    result = SolveResult(
        values=sweeper.values(),
        status=outcome.status,
        method=method,
        iterations=outcome.iterations,
        change=outcome.change,
        residual=sweeper.residual(),
        error_estimate=outcome.error_estimate,
        seconds=swept,
        setup_seconds=setup,
        sweeping_seconds=sweeper.seconds,
        cost=sweeper.cost,
        note=note,
    )
    if not environment.automatic:
        result = replace(result, note="; ".join(filter(None, (note, _unsafe(result, environment)))))
    if solved is not None:
        result = _solved_directly(result, outcome, system, solved, direct_name, environment.epsilon)
    return _judged(result)


def _slow_after(system: SweepSystem) -> int:
    if system.group_offsets is not None:
        return SLOW_AFTER_WITH_CHOICES
    if system.num_updates <= SMALL_SYSTEM:
        return min(SLOW_AFTER, SLOW_AFTER_IF_SMALL)
    return SLOW_AFTER


def _swept_on(
    sweeper: Sweeper,
    environment: SolverEnvironment,
    before: Iteration,
    progress: Progress | None,
    give_up: GiveUp | None = None,
) -> Iteration:
    """Return the outcome of sweeping on, to the limit where there is no other method left."""
    if before.status is Status.CHANGE_ONLY:
        return before
    left = max(environment.sweep_limit - before.iterations, 0)
    rest = replace(environment, max_iterations=left, max_iterations_named=True)

    def report(iterations: int, change: float, seconds: float) -> None:
        if progress is not None:
            progress(before.iterations + iterations, change, seconds)

    def give_up_later(iterations: int, expected: float) -> bool:
        return give_up is not None and give_up(before.iterations + iterations, expected)

    after = iterate(sweeper, rest, progress=report, give_up=give_up_later)
    return replace(after, iterations=before.iterations + after.iterations)


def _proven(
    sweeper: Sweeper,
    engine: Engine,
    system: SweepSystem,
    environment: SolverEnvironment,
    outcome: Iteration,
    progress: Progress | None,
    give_up: GiveUp,
) -> Iteration:
    """Return the outcome of sweeping until an MDP's values are known to be right.

    With choices, the contraction that was observed is that of the present policy, and another one
    may still overtake it, however little a sweep changes. So an upper bound is looked for. If there
    is none, the sweeps go on as if epsilon were smaller.
    """

    def prepare(guessed: SweepSystem) -> Sweeper:
        return engine.sweeper(guessed, -1.0, environment.absolute)

    finer = environment
    for _ in range(MOST_PROOFS):
        if outcome.status is not Status.CONVERGED or outcome.given_up:
            return outcome
        allowed = max(FEWEST_SWEEPS_OF_A_PROOF, outcome.iterations // 2)
        values, error = np.array(sweeper.values()), np.inf
        try:
            for distance in _guesses(outcome, values, environment):
                if not np.isfinite(error):
                    error = proven_error(
                        system, prepare, values, distance, environment.absolute, allowed
                    )
        except DeviceMemoryError:
            return outcome
        if error < MOST_PROVEN_ERROR * environment.epsilon:
            return replace(outcome, error_estimate=error)
        if outcome.change == 0.0:
            return outcome
        if give_up(outcome.iterations, float("inf")):
            return replace(outcome, status=Status.CHANGE_ONLY, given_up=True)
        finer = replace(finer, epsilon=finer.epsilon * FINER)
        outcome = _swept_on(sweeper, finer, outcome, progress, give_up)
    status = Status.CONVERGED if outcome.change < ROUNDING else Status.CHANGE_ONLY
    return replace(outcome, status=status, given_up=give_up(SLOW_AFTER, float("inf")))


def _guesses(
    outcome: Iteration, values: FloatArray, environment: SolverEnvironment
) -> tuple[float, float]:
    """Return how far above the values to guess an upper bound, first and then."""
    scale = 1.0
    if environment.absolute:
        scale = float(np.max(values[np.isfinite(values)], initial=0.0))
    near = max(GUESS * outcome.error_estimate, CLOSEST_GUESS * scale)
    return min(near, environment.epsilon), environment.epsilon


def _mixed(
    sweeper: Sweeper,
    engine: Engine,
    system: SweepSystem,
    environment: SolverEnvironment,
    outcome: Iteration,
    progress: Progress | None,
    has_direct: bool,
) -> Iteration:
    """Return the outcome of sweeping until a steady state has forgotten where it came from.

    The contraction that was observed is that of what changes most. A slower part may lie beneath;
    then nothing is known of the weights of the parts.
    """
    if outcome.status is not Status.CONVERGED or outcome.given_up:
        return outcome

    def prepare(started: SweepSystem) -> Sweeper:
        return engine.sweeper(started, -1.0, environment.absolute)

    allowed = max(FEWEST_SWEEPS_TO_MIX, SWEEPS_TO_MIX * outcome.iterations)
    try:
        memory = sweeps_of_memory(system, prepare, sweeper.values(), allowed)
    except DeviceMemoryError:
        return outcome
    if not np.isfinite(memory):
        unknown = replace(outcome, status=Status.CHANGE_ONLY, error_estimate=1.0)
        return replace(unknown, given_up=has_direct)
    finer = environment
    for _ in range(MOST_PROOFS):
        error = max(outcome.error_estimate, outcome.change * memory)
        outcome = replace(outcome, error_estimate=error)
        if error < environment.epsilon or outcome.status is not Status.CONVERGED:
            return outcome
        finer = replace(finer, epsilon=finer.epsilon * FINER)
        outcome = _swept_on(sweeper, finer, outcome, progress)
    return outcome


def _unsafe(result: SolveResult, environment: SolverEnvironment) -> str:
    """Return a warning where the test that a named method stops by is misleading, or nothing."""
    error = result.error_estimate
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
        return engine.sweeper(system, stop_below, absolute), ""
    except DeviceMemoryError as error:
        sweeper = CpuEngine().sweeper(system, stop_below, absolute)
        return sweeper, f"{error}; solving on the CPU"


def _solved_directly(
    result: SolveResult,
    outcome: Iteration,
    system: SweepSystem,
    solved: tuple[FloatArray, float],
    direct_name: str,
    epsilon: float,
) -> SolveResult:
    values, error_estimate = solved
    check = CpuEngine().sweeper(replace(system, start=values), -1.0, True)
    accepted = max(epsilon, DIRECT_ERROR)
    return replace(
        result,
        values=values,
        status=Status.CONVERGED if error_estimate <= accepted else Status.CHANGE_ONLY,
        residual=check.residual(),
        change=error_estimate,
        error_estimate=error_estimate,
        cost=SweepCost(
            "CPU", *(("SuperLU", "csc") if "LU" in direct_name else ("NumPy", "dense")), 0
        ),
        note=f"{result.method} contracts too slowly here ({outcome.iterations} sweeps, expected "
        f"error still {outcome.error_estimate:.1e}): solved by {direct_name}",
    )


def _judged(result: SolveResult) -> SolveResult:
    """Return the result with `Status.DIVERGED` where the iterate left the numbers.

    Infinities may be meant (an infinite reward); a residual that is not a number never is.
    """
    if not np.isnan(result.values).any() and np.isfinite(result.residual):
        return result
    return replace(result, status=Status.DIVERGED)
