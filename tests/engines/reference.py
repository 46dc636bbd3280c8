"""Plain loops that anyone can check by eye: the oracle of the tests, and nothing else.

Everything here repeats PRISM's iterations sweep for sweep, a state at a time. It is slow on
purpose: no vector operations, no formats, no sharing with the engines.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.model.csr import CsrMatrix
from engines.model.environment import Convention, Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.systems.one_sided import Direction

Row = dict[int, float]
"""The entries of a row, by column; entries of value 0 are no transitions and left out."""

Vector = list[float]
Sweep = Callable[[Vector], Vector]


def rows_of(matrix: CsrMatrix) -> list[Row]:
    """Return the rows of a matrix; entries that share a row and a column are added up."""
    rows: list[Row] = []
    for row in range(matrix.num_rows):
        entries: Row = {}
        for entry in range(int(matrix.row_offsets[row]), int(matrix.row_offsets[row + 1])):
            column, value = int(matrix.columns[entry]), float(matrix.values[entry])
            if value != 0.0:
                entries[column] = entries.get(column, 0.0) + value
        rows.append(entries)
    return rows


def choices_of(model: ExplicitModel) -> list[list[int]]:
    """Return the row numbers of each state's choices; for chains, the one row of the state."""
    groups = model.row_group_offsets
    if groups is None:
        return [[state] for state in range(model.num_states)]
    return [list(range(int(groups[s]), int(groups[s + 1]))) for s in range(model.num_states)]


def change_of_sweep(before: Vector, after: Vector, *, absolute: bool) -> float:
    """Return PRISM's measure of a sweep: the largest change of any state.

    Parameters
    ----------
    before, after
        Values before and after the sweep, of one length.
    absolute
        Whether the change is |new − old|; else |new − old| / |old|, where 0/0 counts as no change
        and x/0 as an infinite one. ∞ − ∞ is no change either.
    """
    largest = 0.0
    for old, new in zip(before, after, strict=True):
        if old == new:
            continue
        change = abs(new - old)
        if not absolute:
            change = change / abs(old) if old != 0.0 else math.inf
        if change > largest:
            largest = change
    return largest


def repeat(sweep: Sweep, start: Vector, environment: SolverEnvironment) -> tuple[Vector, int]:
    """Sweep until the first sweep whose change is below epsilon, or until the limit.

    Returns
    -------
    The last iterate, and the number of sweeps made.
    """
    x, iterations = list(start), 0
    while iterations < environment.max_iterations:
        x_new = sweep(x)
        iterations += 1
        change = change_of_sweep(x, x_new, absolute=environment.absolute)
        x = x_new
        if change < environment.epsilon:
            break
    return x, iterations


def solve_reachability(
    model: ExplicitModel,
    unknown: MaskArray,
    start: FloatArray,
    environment: SolverEnvironment,
    *,
    rewards: FloatArray | None = None,
    direction: Direction | None = None,
) -> tuple[FloatArray, int]:
    """Compute until probabilities or reachability rewards; see the engines' function of this name.

    Parameters
    ----------
    model, unknown, start, environment, rewards, direction
        As in `engines.questions.reachability.solve_reachability`; the method must be a named one.

    Returns
    -------
    Values of all states, shape (states,), and the number of sweeps.
    """
    states = [state for state in range(model.num_states) if unknown[state]]
    if model.kind is ModelKind.MDP:
        x = [float(value) for value in start]
    else:
        x = first_iterate(model, states, start, environment, rewards)
    values, iterations = repeat(
        reachability_sweep(model, states, environment, rewards, direction), x, environment
    )
    return np.array(values), iterations


def first_iterate(
    model: ExplicitModel,
    states: list[int],
    start: FloatArray,
    environment: SolverEnvironment,
    rewards: FloatArray | None,
) -> Vector:
    """Return PRISM's first iterate for chains: in the sparse engine, rewards start from b."""
    x = [float(value) for value in start]
    if rewards is not None and environment.convention is Convention.SPARSE:
        b = step_rewards(model, rewards)
        for state in states:
            x[state] = b[state]
    return x


def step_rewards(model: ExplicitModel, rewards: FloatArray | None) -> Vector:
    """Return b: the reward of one step, for each row; for CTMCs the reward of a mean sojourn."""
    rows = rows_of(model.matrix)
    if rewards is None:
        return [0.0] * len(rows)
    if model.kind is ModelKind.CTMC:
        exits = [sum(row.values()) for row in rows]
        # A state without exits is never among the unknown.
        return [float(r) / e if e else 0.0 for r, e in zip(rewards, exits, strict=True)]
    return [float(reward) for reward in rewards]


def step_probabilities(model: ExplicitModel) -> list[Row]:
    """Return the rows of A: the probabilities of one step; for CTMCs of the embedded chain."""
    rows = rows_of(model.matrix)
    if model.kind is not ModelKind.CTMC:
        return rows
    return [{column: rate / sum(row.values()) for column, rate in row.items()} for row in rows]


def reachability_sweep(
    model: ExplicitModel,
    states: list[int],
    environment: SolverEnvironment,
    rewards: FloatArray | None = None,
    direction: Direction | None = None,
) -> Sweep:
    """Return the function that makes one sweep over the given states.

    For chains: the power method, x_i ← b_i + Σ_j a_ij x_j; Jacobi,
    x_i ← (b_i + Σ_{j≠i} a_ij x_j) / (1 − a_ii), whose divisor is Σ_{j≠i} a_ij where the row
    adds up to 1; or JOR, (1 − ω) x + ω Jacobi(x). For MDPs: the best b_c + Σ_j a_cj x_j over the
    choices c of the state.
    """
    rows, b = step_probabilities(model), step_rewards(model, rewards)
    choices = choices_of(model)
    method, omega = environment.method, environment.omega

    def choice_value(row: int, x: Vector) -> float:
        total = b[row]
        for column, probability in rows[row].items():
            total += probability * x[column]
        return total

    def jacobi_value(state: int, x: Vector) -> float:
        total = b[state]
        for column, probability in rows[state].items():
            if column != state:
                total += probability * x[column]
        own = rows[state].get(state, 0.0)
        others = sum(value for column, value in rows[state].items() if column != state)
        whole = own != 0.0 and abs(others + own - 1.0) <= 1e-11
        pivot = others if whole else 1.0 - own
        return total / pivot if pivot > 0.0 else total

    def new_value(state: int, x: Vector) -> float:
        if model.kind is ModelKind.MDP:
            best = min if direction is Direction.MINIMISE else max
            return best(choice_value(row, x) for row in choices[state])
        if method is Method.POWER:
            return choice_value(state, x)
        if method is Method.JACOBI:
            return jacobi_value(state, x)
        if method is Method.JOR:
            return (1.0 - omega) * x[state] + omega * jacobi_value(state, x)
        raise ValueError(f"the reference has no method {method} for a {model.kind}")

    def sweep(x: Vector) -> Vector:
        x_new = list(x)
        for state in states:
            x_new[state] = new_value(state, x)
        return x_new

    return sweep


def solve_steady_state(
    model: ExplicitModel, bscc: MaskArray, environment: SolverEnvironment
) -> tuple[FloatArray, int]:
    """Compute the steady-state probabilities of a BSCC; see the engines' function of this name.

    Parameters
    ----------
    model, bscc, environment
        As in `engines.questions.steady_state.solve_steady_state`; the method must be a named one,
        and the component must have more than one state.

    Returns
    -------
    Probabilities, shape (states,), zero outside the component; and the number of sweeps.
    """
    states = [state for state in range(model.num_states) if bscc[state]]
    rates = rows_of(model.matrix)
    explicit = environment.convention is Convention.EXPLICIT
    if explicit and model.kind is ModelKind.CTMC:
        rates = step_probabilities(model)
    method = Method.POWER if explicit else environment.method
    uniform = [1.0 / len(states) if bscc[state] else 0.0 for state in range(model.num_states)]
    sweep = steady_state_sweep(rates, states, method, environment.omega)
    x, iterations = repeat(sweep, uniform, environment)
    if explicit and model.kind is ModelKind.CTMC:
        exits = [sum(row.values()) for row in rows_of(model.matrix)]
        x = [value / exits[state] if bscc[state] else 0.0 for state, value in enumerate(x)]
    total = sum(x)
    return np.array([value / total for value in x]), iterations


def steady_state_sweep(rates: list[Row], states: list[int], method: Method, omega: float) -> Sweep:
    """Return the function that makes one sweep for π Q = 0 over the states of a BSCC.

    Jacobi: x_j ← Σ_{i≠j} x_i r_ij / exit_j, exit_j the row sum of j without its self-loop; JOR:
    (1 − ω) x + ω Jacobi(x); power: x ← x (I + Δt Q), Δt = 0.99 over the largest row sum, loops
    included.
    """
    exits = {i: sum(rate for j, rate in rates[i].items() if j != i) for i in states}
    step = 0.99 / max(sum(rates[i].values()) for i in states)

    def sweep(x: Vector) -> Vector:
        flow = [0.0] * len(x)
        for i in states:
            for j, rate in rates[i].items():
                if j != i:
                    flow[j] += x[i] * rate
        x_new = list(x)
        for j in states:
            if method is Method.POWER:
                x_new[j] = x[j] + step * (flow[j] - exits[j] * x[j])
            elif method is Method.JACOBI:
                x_new[j] = flow[j] / exits[j]
            elif method is Method.JOR:
                x_new[j] = (1.0 - omega) * x[j] + omega * (flow[j] / exits[j])
            else:
                raise ValueError(f"the reference has no steady-state method {method}")
        return x_new

    return sweep


def largest_residual(sweep: Sweep, values: FloatArray) -> float:
    """Return the largest absolute change that one more (unrelaxed) sweep would make."""
    x = [float(value) for value in values]
    return change_of_sweep(x, sweep(x), absolute=True)


def fixpoint(grow: Callable[[set[int]], set[int]], first: set[int]) -> set[int]:
    """Apply a monotone function until the set stays: least from nothing, greatest from all."""
    current, following = first, grow(first)
    while following != current:
        current, following = following, grow(following)
    return current


def prob0(model: ExplicitModel, remain: MaskArray, target: MaskArray) -> MaskArray:
    """Return the states of a chain where P(remain U target) = 0, shape (states,)."""
    return prob0a(model, remain, target)


def prob1(model: ExplicitModel, remain: MaskArray, target: MaskArray) -> MaskArray:
    """Return the states of a chain where P(remain U target) = 1, shape (states,)."""
    return prob1a(model, remain, target)


def prob0a(model: ExplicitModel, remain: MaskArray, target: MaskArray) -> MaskArray:
    """Return the states where P(remain U target) = 0 for all strategies: Pmax = 0.

    The others are the least set Y that holds the target and each s of remain where some choice
    may enter Y.
    """
    return ~_reaching(model, remain, target, some_choice=True)


def prob0e(model: ExplicitModel, remain: MaskArray, target: MaskArray) -> MaskArray:
    """Return the states where P(remain U target) = 0 for some strategy: Pmin = 0.

    The others are the least set Y that holds the target and each s of remain where every choice
    may enter Y.
    """
    return ~_reaching(model, remain, target, some_choice=False)


def prob1a(model: ExplicitModel, remain: MaskArray, target: MaskArray) -> MaskArray:
    """Return the states where P(remain U target) = 1 for all strategies: Pmin = 1.

    The others may enter, by some choices and before the target, a state where Pmin = 0.
    """
    never = prob0e(model, remain, target)
    return ~_reaching(model, remain & ~target, never, some_choice=True)


def prob1e(model: ExplicitModel, remain: MaskArray, target: MaskArray) -> MaskArray:
    """Return the states where P(remain U target) = 1 for some strategy: Pmax = 1.

    The greatest X such that X is the least Y that holds the target and each s of remain where some
    choice stays in X for sure and may enter Y (de Alfaro 1997).
    """
    successors, size = _successors(model), model.num_states

    def inner(x: set[int]) -> set[int]:
        def grow(y: set[int]) -> set[int]:
            return {
                s
                for s in range(size)
                if target[s]
                or (remain[s] and any(after <= x and after & y for after in successors[s]))
            }

        return fixpoint(grow, set())

    return _mask(fixpoint(inner, set(range(size))), size)


def bsccs(matrix: CsrMatrix) -> list[list[int]]:
    """Return the bottom strongly connected components, ordered by their first states."""
    rows = rows_of(matrix)
    reach = [_reachable(rows, state) for state in range(len(rows))]
    found: list[list[int]] = []
    for state in range(len(rows)):
        # In a bottom component, whatever can be reached can reach back.
        bottom = all(state in reach[other] for other in reach[state])
        if bottom and min(reach[state]) == state:
            found.append(sorted(reach[state]))
    return found


def _reachable(rows: list[Row], state: int) -> set[int]:
    seen, waiting = {state}, [state]
    while waiting:
        for after in rows[waiting.pop()]:
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return seen


def _reaching(
    model: ExplicitModel, through: MaskArray, goal: MaskArray, *, some_choice: bool
) -> MaskArray:
    successors, size = _successors(model), model.num_states
    quantifier = any if some_choice else all

    def grow(y: set[int]) -> set[int]:
        return {
            s
            for s in range(size)
            if goal[s] or (through[s] and quantifier(bool(after & y) for after in successors[s]))
        }

    return _mask(fixpoint(grow, set()), size)


def _successors(model: ExplicitModel) -> list[list[set[int]]]:
    """Return, for each state and each of its choices, the states that it may enter."""
    rows = rows_of(model.matrix)
    return [[set(rows[row]) for row in choices] for choices in choices_of(model)]


def _mask(states: set[int], size: int) -> MaskArray:
    return np.array([state in states for state in range(size)], dtype=np.bool_)
