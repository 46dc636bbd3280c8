"""The direct solution of systems that are small enough, by elimination without subtraction."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, sums_by_row
from engines.host.engine import CpuEngine
from engines.host.gains import earned_by_known
from engines.methods.elimination import (
    AT_ONCE_STATES,
    MOST_OPERATIONS,
    NAME,
    EliminatedChain,
    chain_of,
    lacking,
    steady_states,
)
from engines.methods.single import largest_value
from engines.model.choice import Format
from engines.model.csr import CsrMatrix
from engines.model.environment import DeviceChoice, Precision, SolverEnvironment
from engines.model.events import Kind
from engines.model.result import SolveResult, Status, SweepCost
from engines.systems.one_sided import SweepSystem

LARGEST_SYSTEM = 500_000
"""States beyond which fill-in exhausts memory or patience."""

COST = SweepCost((), "elimination", "csr", 0)


def fits(matrix: CsrMatrix) -> bool:
    """Return whether elimination of a system over this matrix may be cheap enough to try.

    How far the factors fill up is found out when they are needed.

    Parameters
    ----------
    matrix
        Shape (rows, states).
    """
    mean_row, dense_entries = 12.0, 200_000
    sparse = matrix.num_entries <= max(mean_row * matrix.num_rows, dense_entries)
    return 0 < matrix.num_rows <= LARGEST_SYSTEM and sparse


def at_once(environment: SolverEnvironment, system: SweepSystem) -> bool:
    """Return whether a system is to be solved directly before any iteration.

    It is where the method is ours to choose, nobody asked for a device or its formats, and the
    system is small: then elimination takes less time than to find out how fast iterations converge.

    Parameters
    ----------
    environment
        What the user asked for.
    system
        What is to be solved.
    """
    small = system.num_updates <= AT_ONCE_STATES and system.matrix.num_entries <= 200_000
    return small and environment.automatic and _is_open(environment)


def _is_open(environment: SolverEnvironment) -> bool:
    """Return whether nobody asked for a device, nor for what only iterations have."""
    plain = environment.precision is Precision.DOUBLE and environment.matrix_format is Format.AUTO
    return environment.device is not DeviceChoice.GPU and plain and environment.num_devices == 1


def solve_chain(
    system: SweepSystem, most_operations: float = MOST_OPERATIONS
) -> tuple[FloatArray, float]:
    """Solve x = A x + b for the states that have a row; the others keep their start values.

    Parameters
    ----------
    system
        A system without choices, before any scaling.
    most_operations
        Multiplications that the elimination may take.

    Returns
    -------
    Values of all states, shape (states,), and a bound of each value's relative error.

    Raises
    ------
    RuntimeError
        If the factors would fill up, some state never leaves, or a value overflows.
    """
    solution = solved_chain(system, most_operations=most_operations)
    return solution.values, solution.error


@dataclass(frozen=True)
class ChainSolution:
    """The solution of a chain, with all its digits.

    Parameters
    ----------
    values, rest
        The nearest doubles and, in quadruple precision, what is to be added to them; each of shape
        (states,).
    error
        A bound of the relative error of `values`, roundings of the system's numbers included.
    rounding
        The same of values and rest together, the system's numbers taken as they are.
    """

    values: FloatArray
    rest: FloatArray
    error: float
    rounding: float


def solved_chain(
    system: SweepSystem, *, wide: bool = False, most_operations: float = MOST_OPERATIONS
) -> ChainSolution:
    """Solve a chain as `solve_chain` does, in quadruple precision if asked.

    Parameters
    ----------
    system, most_operations
        As in `solve_chain`.
    wide
        Whether to compute in quadruple precision.
    """
    states = np.arange(system.matrix.num_rows) if system.states is None else system.states
    matrix = system.matrix
    missing, doubt = lacking(matrix)
    outside = np.array(system.start, dtype=np.float64)
    outside[states] = 0.0
    earned = earned_by_known(matrix, system.offset, outside)
    chain = EliminatedChain(
        chain_of(matrix, states), missing, most_operations=most_operations, wide=wide
    )
    values, rest = np.array(system.start, dtype=np.float64), np.zeros(system.num_states)
    if wide:
        values[states], rest[states], error = chain.split_values(*earned)
    else:
        values[states], error = chain.values(*earned)
    return ChainSolution(values, rest, error + doubt, chain.rounding + doubt)


def solve_balance(rates: CsrMatrix) -> tuple[FloatArray, float]:
    """Solve π Q = 0, Σ π = 1 for one recurrent class.

    Parameters
    ----------
    rates
        Rates or probabilities of the class, square; self-loops do not matter.

    Returns
    -------
    π, shape (states,), and a bound of each probability's relative error.

    Raises
    ------
    RuntimeError
        If the factors would fill up.
    """
    everyone = np.zeros(rates.num_rows, dtype=np.int64)
    limits = (rates.num_rows, MOST_OPERATIONS)
    values, solved, error = steady_states(rates, everyone, np.ones(1, dtype=np.bool_), *limits)
    if not solved[0]:
        raise RuntimeError("the factors would fill up")
    return values, error


def visits(
    matrix: CsrMatrix,
    states: IndexArray,
    given: FloatArray,
    most_operations: float = MOST_OPERATIONS,
) -> tuple[FloatArray, float]:
    """Return y = c + y P: the expected visits, or for rates the time spent, of transient states.

    Parameters
    ----------
    matrix
        Probabilities that add up to 1, or rates, shape (rows, states of the model).
    states
        The state of each row, shape (rows,).
    given
        c, where the chain starts, shape (rows,).
    most_operations
        Multiplications that the elimination may take.

    Returns
    -------
    Shape (states of the model,), 0 where a state has no row; and a bound of the relative error.

    Raises
    ------
    RuntimeError
        If the factors would fill up, some state never leaves, or a value overflows.
    """
    found = np.zeros(matrix.num_columns)
    leaving = np.zeros(len(states))
    chain = EliminatedChain(chain_of(matrix, states), leaving, most_operations=most_operations)
    found[states], error = chain.visits(given)
    return found, error


def classes_at_once(
    environment: SolverEnvironment, rates: CsrMatrix, labels: IndexArray, wanted: MaskArray
) -> tuple[MaskArray, SolveResult | None]:
    """Solve those wanted recurrent classes that are small enough, before any iteration.

    Parameters
    ----------
    environment
        What the user asked for; the method is ours to choose.
    rates
        Rates or probabilities, square.
    labels
        The recurrent class of each state, -1 for none, shape (states,).
    wanted
        Which classes to solve, shape (classes,).

    Returns
    -------
    Which classes were solved, shape (classes,), and the result, None if those are none: its values
    add up to 1 in each class, and its error is relative.
    """
    started = time.perf_counter()
    whatever_the_device = 16
    largest = AT_ONCE_STATES if _is_open(environment) else whatever_the_device
    values, solved, error = steady_states(rates, labels, wanted, largest)
    if not solved.any():
        return solved, None
    seconds = time.perf_counter() - started
    count = int(np.count_nonzero(values))
    return solved, SolveResult(
        values=values,
        status=Status.CONVERGED,
        method=environment.method,
        iterations=0,
        change=error,
        residual=_imbalance(rates, values),
        error_estimate=error,
        seconds=seconds,
        setup_seconds=seconds,
        sweeping_seconds=0.0,
        cost=COST,
        events=(Kind.CLASSES_SOLVED(states=count, classes=int(solved.sum()), by=NAME),),
        finished_by=NAME,
    )


def _imbalance(rates: CsrMatrix, values: FloatArray) -> float:
    """Return by how much what enters a state differs from what leaves it, over its exit rate."""
    row = rates.row_of_entry()
    counts = (rates.columns != row) & (values[row] > 0.0)
    row, column, weights = row[counts], rates.columns[counts], rates.values[counts]
    largest = weights.max(initial=0.0) or 1.0
    exits = sums_by_row(row, weights / largest, rates.num_rows)
    enters = sums_by_row(column, values[row] * (weights / largest), rates.num_rows)
    held = exits > 0.0
    return float(np.max(np.abs(enters[held] / exits[held] - values[held]), initial=0.0))


def direct_result(
    system: SweepSystem,
    environment: SolverEnvironment,
    solved: tuple[FloatArray, float],
    method: str,
    started: float,
    *,
    how: str = NAME,
) -> SolveResult:
    """Return the result of a solve that needed no iteration.

    Parameters
    ----------
    system
        What was solved, before any scaling.
    environment
        Whether errors are absolute.
    solved
        Values of all states, shape (states,), and a bound of their relative error.
    method
        What the log calls the method that iterates otherwise.
    started
        When it began, by `time.perf_counter`.
    how
        What the log calls the direct method.
    """
    values, error = solved
    error *= largest_value(values, environment.absolute)
    seconds = time.perf_counter() - started
    check = CpuEngine().sweeper(replace(system, start=values), -1.0, True)
    return SolveResult(
        values=values,
        status=Status.CONVERGED,
        method=method,
        iterations=0,
        change=error,
        residual=check.residual(),
        error_estimate=error,
        seconds=seconds,
        setup_seconds=seconds,
        sweeping_seconds=0.0,
        cost=COST,
        events=(Kind.STATES_SOLVED(states=system.num_updates, by=how),),
        finished_by=how,
    )
