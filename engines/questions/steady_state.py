"""Steady-state probabilities of one recurrent class: π Q = 0, Σ π = 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, index_dtype
from engines.errors import UnsupportedError
from engines.graph.components import closed_part
from engines.host.products import sums_beside_diagonal, transposed
from engines.host.watched import relaxation
from engines.methods import direct, elimination
from engines.methods.afterwards import checked, solution_of
from engines.model.csr import CsrMatrix
from engines.model.environment import Convention, Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.progress import Progress
from engines.model.result import SolveResult, Status
from engines.solve.system import SMALL_SYSTEM, solve_system
from engines.systems.one_sided import RELAXED_OMEGA, Scaling, SweepSystem

POWER_STEP = 0.99
"""PRISM's Δt times the largest exit rate (Stewart 1994, p. 124)."""


def solve_steady_state(
    model: ExplicitModel,
    bscc: MaskArray,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the steady-state probabilities of a bottom strongly connected component.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    bscc
        The component, shape (states,).
    environment, progress
        As in `engines.questions.until.until_probabilities`; there are no bounds.

    Returns
    -------
    The result; its values, of shape (states,), sum to 1 over the component and are 0 elsewhere.

    Raises
    ------
    UnsupportedError
        For MDPs, and for methods that do not fit.
    ValueError
        For a set that is left.
    """
    if model.kind is ModelKind.MDP:
        raise UnsupportedError("steady-state probabilities of an MDP depend on its strategy")
    method = environment.method
    if method is Method.VALUE_ITERATION:
        raise UnsupportedError("value iteration computes no steady state")
    ours = method is Method.MULTILEVEL or environment.automatic
    repeats_explicit = environment.convention is Convention.EXPLICIT and not ours
    if np.count_nonzero(bscc) == 1:
        alone = SolveResult.exact(np.where(bscc, 1.0, 0.0), method)
        # PRISM's explicit engine counts the step by which nothing changes.
        return replace(alone, method=Method.POWER, iterations=1) if repeats_explicit else alone
    states = None if bool(np.all(bscc)) else np.flatnonzero(bscc)
    rates = model.matrix if states is None else closed_part(model, states).matrix
    if method is Method.AUTO:
        method = Method.JOR
        environment = replace(environment, omega=RELAXED_OMEGA)
    exits = None
    if repeats_explicit:
        # PRISM's explicit engine knows one method here: power, on the embedded chain.
        method = Method.POWER
        environment = replace(environment, method=method)
        if model.kind is ModelKind.CTMC:
            exits = rates.row_sums()
            rates = rates.divide_rows(exits)

    def solve_directly(_: FloatArray) -> tuple[FloatArray, float]:
        return direct.solve_balance(rates)

    result = solve_system(
        _balance(rates, method, environment),
        environment,
        method,
        direct=solve_directly if direct.fits(rates) else None,
        direct_name=elimination.NAME,
        by_levels=rates.num_rows > SMALL_SYSTEM,
        progress=progress,
    )
    with np.errstate(invalid="ignore"):  # Infinities of both signs, of a method that diverges.
        total = float(result.values.sum())
    if result.status is Status.DIVERGED or not np.isfinite(total) or total == 0.0:
        return result if states is None else result.with_values(np.full(model.num_states, np.nan))
    result = _normalised(result, total, exits, environment.absolute)
    if states is not None:
        everywhere = np.zeros(model.num_states)
        everywhere[states] = result.values
        result = result.with_values(everywhere)

    def again(ours: SolverEnvironment) -> tuple[FloatArray, float]:
        return _other_solution(model, bscc, ours)

    return checked(result, environment, rates, again)


def _other_solution(
    model: ExplicitModel, bscc: MaskArray, ours: SolverEnvironment
) -> tuple[FloatArray, float]:
    """Return the steady state by elimination or our own method, as `afterwards.Reference` does."""
    component = np.where(bscc, 0, -1)
    values, solved, error = elimination.steady_states(
        model.matrix, component, np.ones(1, dtype=np.bool_)
    )
    if solved[0]:
        return values, error * (float(np.max(values)) if ours.absolute else 1.0)
    return solution_of(solve_steady_state(model, bscc, ours))


def steady_state_of(
    model: ExplicitModel,
    states: IndexArray,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the steady-state probabilities of a component given by its states.

    Parameters
    ----------
    model, environment, progress
        As in `solve_steady_state`.
    states
        The component, ascending.

    Returns
    -------
    The result; its values have shape (len(states),).
    """
    chain = model if len(states) == model.num_states else closed_part(model, states)
    everywhere = np.ones(len(states), dtype=np.bool_)
    return solve_steady_state(chain, everywhere, environment, progress=progress)


def _balance(rates: CsrMatrix, method: Method, environment: SolverEnvironment) -> SweepSystem:
    """Return the equations π Q = 0 as a method sweeps them, from the uniform distribution."""
    start = np.full(rates.num_rows, 1.0 / rates.num_rows)
    if method is Method.POWER:
        return SweepSystem(_power_matrix(rates), start)
    omega = relaxation(method, environment.omega)
    return SweepSystem(rates, start, scaling=Scaling.BALANCE, omega=omega)


def _normalised(
    result: SolveResult, total: float, exits: FloatArray | None, absolute: bool
) -> SolveResult:
    """Return a result whose values sum to `total` scaled to 1, divided by exit rates if given."""
    # In place: nobody else has what the solve has left.
    values = np.divide(result.values, total, out=result.values)
    if exits is not None:
        values = values / exits
        values /= values.sum()
    # The residual is linear in π, like all else here.
    result = replace(
        result,
        residual=result.residual / abs(total),
        error_estimate=result.error_estimate / (abs(total) if absolute else 1.0),
        trusted_above=result.trusted_above / abs(total),
    )
    return result.with_values(values)


def _power_matrix(rates: CsrMatrix) -> CsrMatrix:
    """Return (I + Δt Q) transposed, with Δt = 0.99 over the largest exit rate, loops included."""
    size = rates.num_rows
    row = rates.row_of_entry()
    step = POWER_STEP / rates.row_sums().max()
    stay = 1.0 - step * sums_beside_diagonal(rates)
    keep = rates.columns != row
    everyone = np.arange(size, dtype=rates.columns.dtype)
    rows = np.concatenate([row[keep], everyone])
    columns = np.concatenate([rates.columns[keep], everyone])
    values = np.concatenate([step * rates.values[keep], stay])
    order = np.argsort(rows, kind="stable")
    offsets = np.zeros(size + 1, dtype=index_dtype(len(values)))
    np.cumsum(np.bincount(rows, minlength=size), out=offsets[1:])
    forward = CsrMatrix(offsets, columns[order], values[order], size)
    return transposed(forward, forward.values)
