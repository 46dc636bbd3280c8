"""Long-run answers over all bottom strongly connected components (BSCCs): S, R [ S ], -ss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, index_dtype
from engines.errors import UnsupportedError
from engines.graph.components import Components, bsccs
from engines.graph.prob01 import prob1
from engines.host.products import transposed
from engines.methods import direct
from engines.methods.direct import classes_at_once
from engines.model.csr import CsrMatrix
from engines.model.decided import decided_values
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.initial import check_distribution
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.model.step_rewards import step_rewards
from engines.proofs import exact
from engines.questions.distribution_bounds import steady_state_distribution_bounds
from engines.questions.long_run_bounds import long_run_probability_bounds, long_run_reward_bounds
from engines.questions.reachability import solve_reachability
from engines.questions.steady_state import solve_steady_state


def long_run_probabilities(
    model: ExplicitModel,
    states: MaskArray,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the long-run probability of being in the given states, from every state.

    For a CTMC it is a share of time; for a periodic DTMC the mean over a period.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    states
        Shape (states,).
    environment
        Method, termination, limits, device.
    progress
        Called after each batch of sweeps of each solve.

    Returns
    -------
    The result; its values have shape (states,). See `long_run_rewards` on how it is put together.

    Raises
    ------
    UnsupportedError
        For an MDP, and for a method that does not fit.
    """
    _refuse_choices(model, "long-run probabilities")
    if environment.two_sided:
        return long_run_probability_bounds(model, states, environment, progress=progress)
    return _long_run_values(model, states.astype(np.float64), environment, progress)


def long_run_rewards(
    model: ExplicitModel,
    rewards: RewardStructure,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the long-run reward of a step (DTMC) or a unit of time (CTMC), from every state.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    rewards
        Its rewards.
    environment
        Method, termination, limits, device.
    progress
        Called after each batch of sweeps of each solve.

    Returns
    -------
    The result; its values have shape (states,).

    Raises
    ------
    InvalidModelError
        For rewards that are negative or not finite, and for rewards that do not fit the model.
    UnsupportedError
        For an MDP, and for a method that does not fit.

    Notes
    -----
    The value of a BSCC is the mean of its states' rewards under its steady state; a BSCC whose
    states all earn the same needs no solve. With a method of our choice small BSCCs are eliminated
    together. A transient state has the mean of the BSCCs' values under the probabilities of ending
    in each: one solve with the BSCCs' values as known ones, not one for each BSCC. States that can
    only end in BSCCs of the largest, or of the smallest, value have that value without rounding.

    The error estimate adds up those of both stages. Relative ones stay what they are in a mean;
    an absolute one of a steady state counts once for each state, times its reward.
    """
    _refuse_choices(model, "long-run rewards")
    if environment.two_sided:
        return long_run_reward_bounds(model, rewards, environment, progress=progress)
    return _long_run_values(model, step_rewards(model, rewards), environment, progress)


def steady_state_distribution(
    model: ExplicitModel,
    initial: FloatArray,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the long-run distribution over the states, from an initial distribution.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    initial
        The initial distribution, shape (states,).
    environment
        Method, termination, limits, device.
    progress
        Called after each batch of sweeps of each solve.

    Returns
    -------
    The result; its values, of shape (states,), sum to 1.

    Raises
    ------
    ValueError
        If `initial` is not a distribution over the model's states.
    UnsupportedError
        For an MDP, and for a method that does not fit.

    Notes
    -----
    The expected visits y to the transient states solve y = initial + y P, one system for all
    BSCCs; what leaves them is the probability of each BSCC, by which its steady state is scaled.
    These probabilities are normalised, which at most doubles their relative error; the error
    estimate adds that to the largest of the steady states.
    """
    _refuse_choices(model, "steady-state probabilities")
    if environment.two_sided:
        return steady_state_distribution_bounds(model, initial, environment, progress=progress)
    initial = check_distribution(initial, model.num_states)
    components = bsccs(model, environment)
    entering, error, parts = _entered(model, components, initial, environment, progress)
    values = np.zeros(model.num_states)
    largest = 0.0
    recurrent = components.labels >= 0
    # Right for components of one state; the others are overwritten.
    values[recurrent] = entering[components.labels[recurrent]]
    sizes = np.bincount(components.labels[recurrent], minlength=components.count)
    wanted = (sizes > 1) & (entering > 0.0)
    if environment.automatic:
        solved, part = classes_at_once(environment, model.matrix, components.labels, wanted)
        if part is not None:
            inside = recurrent & solved[components.labels]
            values[inside] *= part.values[inside]
            largest = part.error_estimate
            parts.append(part)
            wanted &= ~solved
    for label, states in _members(components, wanted):
        part = _steady_state(model, states, environment, progress)
        parts.append(part)
        largest = max(largest, part.error_estimate)
        values[states] = entering[label] * part.values
    return _put_together(values, parts, error + largest, environment)


def _refuse_choices(model: ExplicitModel, what: str) -> None:
    if model.kind is ModelKind.MDP:
        raise UnsupportedError(f"{what} of an MDP depend on its strategy")


@dataclass(frozen=True)
class _ComponentValues:
    """Shape (BSCCs,) each: their values, and which of them have no error."""

    values: FloatArray
    decided: MaskArray
    error: float
    parts: list[SolveResult]


def _long_run_values(
    model: ExplicitModel,
    earned: FloatArray,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> SolveResult:
    components = bsccs(model, environment)
    recurrent = components.labels >= 0
    classes = _component_values(model, components, earned, environment, progress)
    values = np.zeros(model.num_states)
    values[recurrent] = classes.values[components.labels[recurrent]]
    unknown, sound = ~recurrent, recurrent.copy()
    sound[recurrent] = classes.decided[components.labels[recurrent]]
    everywhere = np.ones(model.num_states, dtype=np.bool_)
    for extreme in (classes.values.min(), classes.values.max()):
        if not unknown.any():
            break
        ending = recurrent & (values == extreme)
        only_there = prob1(model, everywhere, ending, environment=environment) & unknown
        values[only_there] = extreme
        sound[only_there] = sound[ending].all()
        unknown &= ~only_there
    parts, error = list(classes.parts), classes.error
    if unknown.any():
        result = solve_reachability(model, unknown, values, environment, progress=progress)
        values = result.values
        # Relative errors multiply: those of the averages may be large where a method was named.
        error += result.error_estimate * (1.0 if environment.absolute else 1.0 + error)
        parts.append(result)
    return replace(
        _put_together(values, parts, error, environment),
        trusted_above=parts[-1].trusted_above if unknown.any() else 0.0,
        decided=decided_values(values, sound),
        exactly=exact.long_run(model, earned, components.labels),
    )


def _put_together(
    values: FloatArray, parts: list[SolveResult], error: float, environment: SolverEnvironment
) -> SolveResult:
    if parts:
        return SolveResult.combined(values, parts, error)
    result = SolveResult.exact(values, environment.method)
    return replace(result, error_estimate=error, unrounded=error == 0.0)


def _component_values(
    model: ExplicitModel,
    components: Components,
    earned: FloatArray,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> _ComponentValues:
    """Return the long-run reward of each BSCC, shape (BSCCs,)."""
    recurrent = np.flatnonzero(components.labels >= 0)
    labels = components.labels[recurrent]
    least = np.full(components.count, np.inf)
    np.minimum.at(least, labels, earned[recurrent])
    most = np.full(components.count, -np.inf)
    np.maximum.at(most, labels, earned[recurrent])
    values = least.copy()
    decided = least == most
    error, parts, wanted = 0.0, [], ~decided
    if environment.automatic:
        solved, part = classes_at_once(environment, model.matrix, components.labels, wanted)
        if part is not None:
            earnings = (part.values * earned)[recurrent]
            means = np.bincount(labels, weights=earnings, minlength=components.count)
            values = np.where(solved, means, values)
            weight = float(earned[recurrent].max()) if environment.absolute else 1.0
            error = part.error_estimate * weight
            parts.append(part)
            wanted &= ~solved
    for label, states in _members(components, wanted):
        part = _steady_state(model, states, environment, progress)
        parts.append(part)
        values[label] = float(part.values @ earned[states])
        own = part.error_of_mean(earned[states], values[label])
        if environment.absolute:
            own = part.error_estimate * float(earned[states].sum())
        error = max(error, own)
    return _ComponentValues(values, decided, error, parts)


def _members(components: Components, wanted: MaskArray) -> Iterator[tuple[int, IndexArray]]:
    """Yield the number and the states, in order, of each wanted component."""
    recurrent = np.flatnonzero(components.labels >= 0)
    if components.count == 1:
        if wanted[0]:
            yield 0, recurrent
        return
    order = np.argsort(components.labels[recurrent], kind="stable")
    sizes = np.bincount(components.labels[recurrent], minlength=components.count)
    ends = np.cumsum(sizes)
    for label in np.flatnonzero(wanted):
        yield int(label), recurrent[order[ends[label] - sizes[label] : ends[label]]]


def _steady_state(
    model: ExplicitModel,
    states: IndexArray,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> SolveResult:
    """Return the steady state of a BSCC, its values of shape (len(states),)."""
    everywhere = np.ones(len(states), dtype=np.bool_)
    if len(states) < model.num_states:
        # A model of its own: many small components must not cost a pass over the whole each.
        rows = model.matrix.select_rows(states)
        # Only an entry of value 0 leads elsewhere, and may as well lead anywhere.
        columns = np.minimum(np.searchsorted(states, rows.columns), len(states) - 1)
        columns = columns.astype(index_dtype(len(states)))
        matrix = CsrMatrix(rows.row_offsets, columns, rows.values, len(states))
        model = ExplicitModel(model.kind, matrix)
    return solve_steady_state(model, everywhere, environment, progress=progress)


def _entered(
    model: ExplicitModel,
    components: Components,
    initial: FloatArray,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> tuple[FloatArray, float, list[SolveResult]]:
    """Return the probability of each BSCC, its estimated error, and the solves it took."""
    recurrent = components.labels >= 0
    if components.count == 1:
        return np.array([initial.sum()]), 0.0, []
    arriving, error, parts = initial.copy(), 0.0, []
    transient = np.flatnonzero(~recurrent)
    if np.any(initial[transient] > 0.0):
        rows = model.matrix.select_rows(transient)
        row = rows.row_of_entry()
        probabilities = rows.values
        if model.kind is ModelKind.CTMC:
            probabilities = probabilities / rows.row_sums()[row]
        onward = replace(rows, values=probabilities)
        visits = _expected_visits(onward, transient, initial[transient], environment, progress)
        parts.append(visits)
        inner = ~recurrent[rows.columns]
        leaving = probabilities[~inner]
        arriving += np.bincount(
            rows.columns[~inner],
            weights=leaving * visits.values[row[~inner]],
            minlength=model.num_states,
        )
        error = 2.0 * visits.error_estimate
        if environment.absolute:
            error *= float(leaving.sum())
    entered = np.bincount(
        components.labels[recurrent], weights=arriving[recurrent], minlength=components.count
    )
    return entered * (initial.sum() / entered.sum()), error, parts


def _expected_visits(
    onward: CsrMatrix,
    transient: IndexArray,
    initial: FloatArray,
    environment: SolverEnvironment,
    progress: Progress | None,
) -> SolveResult:
    """Solve y = initial + y P over the transient states: rewards of the transposed chain."""
    size = len(transient)
    position = np.full(onward.num_columns, -1, dtype=index_dtype(size))
    position[transient] = np.arange(size, dtype=position.dtype)
    inner = position[onward.columns] >= 0
    row, column = onward.row_of_entry()[inner], position[onward.columns[inner]]
    offsets = np.zeros(size + 1, dtype=index_dtype(len(row)))
    np.cumsum(np.bincount(row, minlength=size), out=offsets[1:])
    forward = CsrMatrix(offsets, column, onward.values[inner], size)

    def solve(most_operations: float) -> tuple[FloatArray, float]:
        values, error = direct.visits(onward, transient, initial, most_operations)
        return values[transient], error

    return solve_reachability(
        ExplicitModel(ModelKind.DTMC, transposed(forward, forward.values)),
        np.ones(size, dtype=np.bool_),
        np.zeros(size),
        environment,
        rewards=initial,
        progress=progress,
        directly=solve,
    )
