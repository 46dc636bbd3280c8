"""Policy iteration and modified policy iteration by sweeps, as PRISM's explicit engine makes them.

Puterman and Shin (1978), Modified policy iteration algorithms for discounted Markov decision
problems.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.devices.choice import choose_engine
from engines.host.engine import CpuEngine
from engines.methods.iterate import Iteration, iterate, stop_threshold
from engines.methods.strategy import (
    ANY_CHOICE,
    best_of_groups,
    first_rows_of,
    groups_of,
    known_states,
    row_values,
    rows_towards,
    states_of_groups,
)
from engines.model.environment import Method, SolverEnvironment
from engines.model.events import Kind
from engines.model.progress import Progress, SweepReport
from engines.model.result import SolveResult, Status
from engines.solve.system import sweeper_or_cpu
from engines.systems.one_sided import Direction, Scaling, Sweeper, SweepSystem


def policy_iteration(
    system: SweepSystem, environment: SolverEnvironment, *, progress: Progress | None = None
) -> tuple[SolveResult, IndexArray]:
    """Solve an MDP by the named method, `Policy iteration` or `Modified policy iteration`.

    The chain of a policy is swept, starting from the values of the policy before, until a sweep
    changes less than epsilon, or for 100 sweeps in the modified method. Then each state whose value
    one step of the best choice would change by epsilon or more takes its first best choice; policy
    iteration keeps a choice that is among the best. When no value would change, the policy is
    optimal up to epsilon. The first policy takes the first choice everywhere; for a minimum of
    rewards the first one that may step nearer to the target; for a maximum of rewards none, so that
    each state stays at its first value until a choice is worth more.

    Parameters
    ----------
    system
        A system with groups and a direction, before any scaling.
    environment
        The method, termination, limits, device.
    progress
        Called after each batch of sweeps.

    Returns
    -------
    The result, whose iterations are the sweeps of all policies, and the last policy: the row of
    each group.

    Notes
    -----
    Policies and sweeps are counted as PRISM counts cycles and iterations. PRISM sweeps the chain
    of expected rewards by the power method, and so do we, with its counts; that of probabilities by
    Gauss-Seidel, where we sweep by Jacobi, so that the counts differ.
    """
    started = time.perf_counter()
    modified = environment.method is Method.MODIFIED_POLICY_ITERATION
    inner = environment
    if modified:
        # PRISM's number.
        inner = replace(environment, max_iterations=100, max_iterations_named=True)
    solve = _PolicySweeps(system, inner, progress)
    rows, x = _first_policy(system), np.array(system.start, dtype=np.float64)
    policies, setup = 0, time.perf_counter() - started
    settled = False
    while not settled and policies < max(environment.max_iterations, 1):
        x = solve.values_of(rows, x)
        policies += 1
        if solve.outcome.status is Status.NOT_CONVERGED and not modified:
            break
        rows, settled = _improved(system, environment, rows, x, keep_best=not modified)
        if not np.isfinite(x[states_of_groups(system)]).all():
            break
    worth = best_of_groups(system, row_values(system, x))
    residual = np.max(np.abs(worth - x[states_of_groups(system)]), initial=0.0)
    sweep = "the power method" if _has_rewards(system) else "Jacobi"
    policies_swept = Kind.POLICIES(policies=policies, method=sweep)
    in_double = environment.double_instead("policies are compared")
    result = SolveResult(
        values=x,
        status=_status(settled, residual),
        method=environment.method,
        iterations=solve.iterations,
        change=solve.outcome.change,
        residual=float(residual),
        error_estimate=solve.outcome.error_estimate,
        seconds=time.perf_counter() - started,
        setup_seconds=setup + solve.setup_seconds,
        sweeping_seconds=solve.sweeping_seconds,
        cost=solve.sweeper.cost,
        events=(*solve.events, *in_double, policies_swept),
    )
    # A state that never chose is worth nothing, whatever it chooses.
    return result, np.where(rows >= 0, rows, groups_of(system)[:-1]).astype(rows.dtype)


def _status(settled: bool, residual: float) -> Status:
    if not np.isfinite(residual):
        return Status.DIVERGED
    # That no choice would change a value by epsilon is the test of the method, even where the last
    # policy used up its sweeps.
    return Status.CONVERGED if settled else Status.NOT_CONVERGED


class _PolicySweeps:
    """The chains of policies, swept one after the other on one engine."""

    def __init__(
        self, system: SweepSystem, environment: SolverEnvironment, progress: Progress | None
    ) -> None:
        self._system = system
        self._environment = environment
        self._progress = progress
        self._started = time.perf_counter()
        self._engine, self.events = choose_engine(environment, system)
        self.iterations = 0
        self.setup_seconds = 0.0
        self.sweeping_seconds = 0.0
        self.outcome: Iteration
        self.sweeper: Sweeper

    def values_of(self, rows: IndexArray, x: FloatArray) -> FloatArray:
        """Return the values of a policy, swept from `x` on; shape (states,).

        States whose row is −1 have not chosen, and keep their values.
        """
        started = time.perf_counter()
        system, chosen = self._system, rows >= 0
        rows = rows[chosen]
        chain = SweepSystem(
            system.matrix.select_rows(rows),
            x,
            None if system.offset is None else system.offset[rows],
            states_of_groups(system)[chosen],
            scaling=Scaling.NONE if _has_rewards(system) else Scaling.DIAGONAL,
        )
        self.sweeper = self._prepared(chain)
        self.setup_seconds += time.perf_counter() - started
        self.outcome = iterate(self.sweeper, self._environment, progress=self._report)
        self.iterations += self.outcome.iterations
        self.sweeping_seconds += self.sweeper.seconds
        return np.array(self.sweeper.values())

    def _report(self, part: SweepReport) -> None:
        if self._progress is not None:
            self._progress(part.within(self.iterations, time.perf_counter() - self._started))

    def _prepared(self, chain: SweepSystem) -> Sweeper:
        threshold, absolute = stop_threshold(self._environment), self._environment.absolute
        if chain.matrix.num_rows == 0:
            return CpuEngine().sweeper(chain, threshold, absolute)
        on_cpu = CpuEngine(self._environment.matrix_format)
        sweeper, events = sweeper_or_cpu(self._engine, chain, threshold, absolute, on_cpu)
        self.events = events or self.events
        if sweeper.cost.on_cpu:
            self._engine = on_cpu
        return sweeper


def _has_rewards(system: SweepSystem) -> bool:
    return system.offset is not None


def _first_policy(system: SweepSystem) -> IndexArray:
    groups = groups_of(system)
    rows: IndexArray = groups[:-1].copy()
    if not _has_rewards(system):
        return rows
    if system.direction is Direction.MAXIMISE:
        rows[:] = ANY_CHOICE
        return rows
    # A policy that never reached the target would earn for ever, and its sweeps not settle.
    states = states_of_groups(system)
    owner = np.repeat(states, np.diff(groups))
    finite = np.isfinite(system.start)
    entering = ~finite[system.matrix.columns] & (system.matrix.values > 0.0)
    allowed = np.ones(len(owner), dtype=np.bool_)
    allowed[system.matrix.row_of_entry()[entering]] = False
    towards = rows_towards(system.matrix, owner, allowed, known_states(system) & finite)[states]
    return np.where(towards >= 0, towards, rows).astype(rows.dtype)


def _improved(
    system: SweepSystem,
    environment: SolverEnvironment,
    rows: IndexArray,
    x: FloatArray,
    *,
    keep_best: bool,
) -> tuple[IndexArray, bool]:
    """Return the policy to solve next, and whether the last one was optimal up to epsilon."""
    worth = row_values(system, x)
    best = best_of_groups(system, worth)
    before = x[states_of_groups(system)]
    changing = ~_close(before, best, environment.epsilon, environment.absolute)
    if not changing.any():
        return rows, True
    counts = np.diff(groups_of(system))
    # Choices whose values differ by less are equally good: PRISM's number.
    tied = _close(np.repeat(best, counts), worth, 1e-12, False)
    if keep_best:
        changing &= ~(tied[rows] & (rows >= 0))
    group_of_row = np.repeat(np.arange(len(counts)), counts)
    first_best = first_rows_of(group_of_row, tied, len(counts))
    return np.where(changing, first_best, rows).astype(rows.dtype), False


def _close(before: FloatArray, after: FloatArray, epsilon: float, absolute: bool) -> MaskArray:
    """Return where two arrays agree within epsilon, relative to the first or absolutely."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        difference = np.abs(before - after)
        if not absolute:
            difference = difference / np.abs(before)
    close: MaskArray = (difference < epsilon) | (before == after)
    return close
