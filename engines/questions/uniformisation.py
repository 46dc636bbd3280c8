"""Uniformisation: a continuous-time chain as a weighted sum of the powers of a matrix.

With q at least the largest exit rate, P = I + Q / q is a matrix of probabilities and

    e^(Q t) = Σ_k p_k P^k,  p_k = e^(−qt) (qt)^k / k!,
    ∫_0^t e^(Q u) du = Σ_k (1/q) P(N > k) P^k,  N Poisson with mean qt

(A. Jensen 1953; C. Baier, B. Haverkort, H. Hermanns, J.-P. Katoen, *Model-checking algorithms for
continuous-time Markov chains*, 2003). All terms are non-negative, so that nothing cancels.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.devices.graph import operations_of
from engines.devices.powers import sum_powers
from engines.errors import InvalidModelError
from engines.host.products import transposed
from engines.methods.squaring import squared_sum
from engines.model.csr import CsrMatrix
from engines.model.decided import decided_values
from engines.model.environment import Convention, SolverEnvironment
from engines.model.events import Event, Events, Kind, steady_at
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.progress import Progress
from engines.model.result import SolveResult, Status, SweepCost
from engines.proofs.poisson import (
    PRISMS_FINEST,
    PoissonWeights,
    poisson_weights,
    prisms_weights,
)
from engines.proofs.uniformisation_error import SumError, sum_error
from engines.systems.graph import GraphOperations
from engines.systems.one_sided import SweepSystem, rows_of_states
from engines.systems.power_sums import PowerSum, Summed
from engines.systems.two_sided import UNIT_ROUNDOFF

METHOD = "Uniformisation"

COARSEST_ACCURACY, FINEST_ACCURACY = 1e-8, 1e-16
SMALLEST_SHARE = 1e-16
"""The smallest share of the largest value that is still computed to the accuracy asked for."""

PRISMS_FACTOR = 1.02
"""How many times the largest exit rate PRISM's rate is."""

PRISMS_FINER = 8.0
"""How many times finer than epsilon PRISM's weights and steady states are."""

ROUNDING_A_SWEEP = 2.0 * UNIT_ROUNDOFF
"""What a sweep adds to the relative error: one unit in the last place, which its few roundings
stay below unless they all go one way."""


def backward(
    rates: CsrMatrix,
    active: MaskArray,
    start: FloatArray,
    time_bound: float,
    environment: SolverEnvironment,
    *,
    cumulative: bool = False,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute E_i[x(X_t)], or the integral of it from 0 to t, of every state i.

    Parameters
    ----------
    rates
        The rate matrix, square.
    active
        States that jump, shape (states,); the others are made absorbing.
    start
        The function x of states, not negative, shape (states,).
    time_bound
        The time t ≥ 0.
    environment
        Accuracy and device. Epsilon is the largest relative error that truncating the sum may
        leave in a value as small as 1e-16 times the largest; at most 1e-8 is used.
    cumulative
        Whether to integrate.
    progress
        Called now and then with the sweeps made, the share of the sum still to come and seconds.
    """
    matrix, exits, sums = _without_loops(rates)
    moving = active & (exits > 0.0)
    states = rows_of_states(moving)
    if states is not None:
        matrix, exits = matrix.select_rows(states), exits[states]
    system = SweepSystem(matrix, np.asarray(start, dtype=np.float64), states=states)
    greatest = float(system.start.max())
    fastest = float(sums[active].max(initial=0.0))
    exit_rates = ExitRates(exits, _longest_row(matrix), fastest)
    result = _solve(system, exit_rates, greatest, time_bound, environment, cumulative, progress)
    sound = np.zeros(len(active), dtype=np.bool_) if cumulative else ~moving
    if not cumulative and time_bound > 0.0:
        result = result.at_most(greatest)
        result, sound = _with_greatest(result, rates, moving, system.start, environment)
    return _with_decided(result, rates, moving, system.start, sound, time_bound, environment)


def _with_greatest(
    result: SolveResult,
    rates: CsrMatrix,
    moving: MaskArray,
    start: FloatArray,
    environment: SolverEnvironment,
) -> tuple[SolveResult, MaskArray]:
    """Put the greatest value where only states of that value are reached, and less elsewhere.

    The weights may sum to a little more or less than 1. Also returned are the states whose values
    have no error.
    """
    greatest = float(start.max())
    near = moving & (result.values + result.error_estimate >= greatest)
    if not near.any():
        return result, ~moving
    less = _graph_of(rates, environment).may_reach(start < greatest, moving)
    values = np.where(
        less & moving, np.minimum(result.values, np.nextafter(greatest, 0.0)), greatest
    )
    values[~moving] = start[~moving]
    bounds = result.bounds and (
        np.where(less, np.minimum(result.bounds[0], values), values),
        np.where(less, result.bounds[1], values),
    )
    return replace(result, values=values, bounds=bounds), ~(less & moving)


def _graph_of(rates: CsrMatrix, environment: SolverEnvironment) -> GraphOperations:
    return operations_of(ExplicitModel(ModelKind.CTMC, rates), environment)


def _with_decided(
    result: SolveResult,
    rates: CsrMatrix,
    moving: MaskArray,
    start: FloatArray,
    sound: MaskArray,
    time_bound: float,
    environment: SolverEnvironment,
) -> SolveResult:
    """Return the result with the values that have no error, beside those of the `sound` states."""
    worth = start > 0.0
    if not worth.any():
        return replace(result, error_estimate=0.0, unrounded=True)
    possible = result.values > 0.0
    if not possible.all():
        reached = _graph_of(rates, environment).may_reach(worth, moving)
        sound = sound | ~reached
        # The sum may have ended before the first term that is not 0, or that be too small a number.
        possible = possible | (reached if time_bound > 0.0 else worth)
    decided = decided_values(result.values, sound)
    return replace(result, decided=decided, possible=possible)


def forward(
    rates: CsrMatrix,
    initial: FloatArray,
    time_bound: float,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the distribution over states at time t, from one at time 0.

    Parameters
    ----------
    rates
        The rate matrix, square.
    initial
        The distribution at time 0, shape (states,).
    time_bound
        The time t ≥ 0.
    environment, progress
        As for `backward`.
    """
    matrix, exits, sums = _without_loops(rates)
    system = SweepSystem(transposed(matrix, matrix.values), np.asarray(initial, dtype=np.float64))
    # No state gets more than there is; the sum is rounded itself.
    greatest = float(np.sum(system.start, dtype=np.longdouble)) * (1.0 + ROUNDING_A_SWEEP)
    exit_rates = ExitRates(exits, _longest_row(matrix), float(sums.max(initial=0.0)))
    return _solve(
        system, exit_rates, greatest, time_bound, environment, False, progress, transposed=True
    )


class ExitRates(NamedTuple):
    """The rates at which states are left.

    Parameters
    ----------
    of_rows
        Of the states that a system computes, shape (rows,), self-loops left out.
    longest
        Of at most so many rates each is the sum.
    fastest
        The largest of any state that jumps, self-loops included, which PRISM takes its rate from.
    """

    of_rows: FloatArray
    longest: int
    fastest: float


def _longest_row(matrix: CsrMatrix) -> int:
    return int(matrix.row_lengths().max(initial=0))


def _without_loops(rates: CsrMatrix) -> tuple[CsrMatrix, FloatArray, FloatArray]:
    """Return the rates that change the state, and what those and all rates of a state sum to.

    A self-loop in continuous time does nothing.
    """
    sums = rates.row_sums()
    keep = rates.columns != rates.row_of_entry()
    if keep.all():
        return rates, sums, sums
    others = rates.select_entries(keep)
    return others, others.row_sums(), sums


def _solve(
    system: SweepSystem,
    exit_rates: ExitRates,
    greatest: float,
    time_bound: float,
    environment: SolverEnvironment,
    cumulative: bool,
    progress: Progress | None,
    *,
    transposed: bool = False,
) -> SolveResult:
    """Sum the powers.

    `transposed` systems have the rates out of a state in a column of their matrix; `greatest` is
    what no iterate exceeds.
    """
    exits, longest_exit, fastest = exit_rates
    if time_bound < 0.0:
        raise ValueError(f"a time must be at least 0, not {time_bound}")
    _refuse_overflow(system, exits, time_bound, cumulative)
    started = time.perf_counter()
    # States without a row keep their value, or earn it all the time.
    values = system.start * time_bound if cumulative else system.start.copy()
    # The largest rate itself, not a little more: fewest sweeps. The aperiodicity that more would
    # bring serves limits, not sums.
    rate = float(exits.max(initial=0.0))
    prisms = _prisms_accuracy(environment)
    if rate * time_bound == 0.0:
        unmoved = _unmoved(values, cumulative)
        if prisms is None or fastest * time_bound == 0.0:
            return unmoved
        return _counted_at_rest(unmoved, fastest * PRISMS_FACTOR, time_bound, prisms, environment)
    if prisms is not None:
        rate = fastest * PRISMS_FACTOR
    product = rate * time_bound
    # Of the coefficients, a little more than it is.
    whole = time_bound * (1.0 + ROUNDING_A_SWEEP) if cumulative else 1.0
    accuracy = min(max(environment.epsilon, FINEST_ACCURACY), COARSEST_ACCURACY)
    sizes = (longest_exit, greatest)
    found = None
    if prisms is None:
        found = _squared(system, transposed, rate, product, accuracy, *sizes, cumulative)
    if found is None:
        every, window = _weights(product, accuracy, prisms, cumulative)
        problem, lost = _power_sum(system, exits, rate, (every, window), product, cumulative)
        done, events = sum_powers(_noting(problem, environment), environment, progress)
        error = sum_error(problem, every, lost, *sizes, product)
        steady = done.steady if prisms and environment.notes_steady_state else 0
        kind, ends = Kind.POWERS_SUMMED, (window.left, window.right)
        found = _Found(done, error, kind, *ends, steady=steady, events=events + steady_at(steady))
    done, error = found.done, found.error
    values[slice(None) if system.states is None else system.states] = done.values
    rounding = found.rounding(values)
    seconds = time.perf_counter() - started
    return SolveResult(
        values=values,
        status=Status.DIVERGED if np.isnan(values).any() else Status.CONVERGED,
        method=METHOD,
        iterations=found.counted(environment) if prisms else done.sweeps,
        change=0.0,
        residual=0.0,
        error_estimate=error.absolute + rounding,
        seconds=seconds,
        setup_seconds=seconds - done.sweeping_seconds,
        sweeping_seconds=done.sweeping_seconds,
        cost=done.cost,
        events=(*found.events, found.event(rate, time_bound, rounding)),
        two_sided=error.proven,
        bounds=error.bounds(values, greatest * whole) if error.proven else None,
    )


def _noting(problem: PowerSum, environment: SolverEnvironment) -> PowerSum:
    """Return a sum that notes its first sweep that PRISM takes for steady, where that is wanted."""
    change = environment.epsilon / PRISMS_FINER if environment.notes_steady_state else 0.0
    if environment.absolute:
        return replace(problem, steady_change=change)
    return replace(problem, steady_share=change)


def _unmoved(values: FloatArray, cumulative: bool) -> SolveResult:
    """Return the result where no state is left: values are kept, or earned all the time."""
    bounds = (values * (1.0 - ROUNDING_A_SWEEP), values * (1.0 + ROUNDING_A_SWEEP))
    exact = SolveResult.exact(values, METHOD)
    if cumulative:
        rounding = ROUNDING_A_SWEEP * float(values.max(initial=0.0))
        exact = replace(exact, error_estimate=rounding)
    return replace(exact, two_sided=True, bounds=bounds if cumulative else (values, values))


def _counted_at_rest(
    unmoved: SolveResult,
    rate: float,
    time_bound: float,
    prisms: float,
    environment: SolverEnvironment,
) -> SolveResult:
    """Return a result with the terms that PRISM sums where all jumps are self-loops."""
    window = prisms_weights(rate * time_bound, prisms)
    nothing = Summed(unmoved.values, window.right, 1, 0.0, 0.0, unmoved.cost)
    steady = int(environment.notes_steady_state and window.right > 0)
    kind, ends = Kind.POWERS_SUMMED, (window.left, window.right)
    found = _Found(
        nothing, SumError(0.0, 0.0), kind, *ends, steady=steady, events=steady_at(steady)
    )
    events = (*found.events, found.event(rate, time_bound, 0.0))
    return replace(unmoved, iterations=found.counted(environment), events=events)


def _refuse_overflow(
    system: SweepSystem, exits: FloatArray, time_bound: float, cumulative: bool
) -> None:
    """Refuse times that are infinite or no numbers, and products with them that overflow."""
    fastest = int(np.argmax(exits)) if len(exits) else 0
    rate = float(exits[fastest]) if len(exits) else 0.0
    if not rate * time_bound < np.inf:
        state = fastest if system.states is None else int(system.states[fastest])
        raise InvalidModelError(
            "Overflow in Fox-Glynn computation (time bound too big?): "
            f"rate {rate:.6g} of state {state} times time {time_bound:.6g}"
        )
    if cumulative and not float(system.start.max(initial=0.0)) * time_bound < np.inf:
        state = int(np.argmax(system.start))
        raise InvalidModelError(
            f"the reward {system.start[state]:.6g} of state {state} times time {time_bound:.6g} "
            "overflows"
        )


class _Found(NamedTuple):
    """A sum, its error, and what the log tells of its terms and of where it was made."""

    done: Summed
    error: SumError
    kind: Kind
    left: int
    right: int
    squarings: int = 0
    steady: int = 0
    events: Events = ()

    def rounding(self, values: FloatArray) -> float:
        """Return by how much any of the values may be rounded."""
        # Where there is no bound, for want of digits, an estimate has to do.
        proven = self.error.proven
        share = self.error.relative if proven else self.done.sweeps * ROUNDING_A_SWEEP
        return share * float(np.abs(values).max())

    def counted(self, environment: SolverEnvironment) -> int:
        """Return how many terms PRISM counts; its explicit engine counts the one without a jump.

        Its symbolic engines end at a sweep that looks steady, and leave an error of any size.
        """
        return self.steady or self.right + (environment.convention is Convention.EXPLICIT)

    def event(self, rate: float, time_bound: float, rounding: float) -> Event:
        """Return what the log tells."""
        return self.kind(
            rate=rate,
            time=time_bound,
            product=rate * time_bound,
            left=self.left,
            right=self.right,
            squarings=self.squarings,
            truncation=self.error.absolute,
            measure="below" if self.error.proven else "about",
            rounding=rounding,
        )


def _squared(
    system: SweepSystem,
    transposed: bool,
    rate: float,
    rate_time: float,
    accuracy: float,
    longest_exit: int,
    greatest: float,
    cumulative: bool,
) -> _Found | None:
    """Return the sum by squaring; None where sweeps are as soon done, or it leaves no digits."""
    squared = squared_sum(system, transposed, rate, rate_time, accuracy * SMALLEST_SHARE)
    if squared is None:
        return None
    error = squared.error(longest_exit, greatest, cumulative)
    if not error.proven:
        return None
    started = time.perf_counter()
    values = squared.values(cumulative)
    seconds = time.perf_counter() - started
    cost = SweepCost((), "NumPy", "dense", 0)
    done = Summed(values, squared.right + squared.squarings, 0, 0.0, seconds, cost)
    return _Found(done, error, Kind.POWERS_SQUARED, 0, squared.right, squared.squarings)


def _prisms_accuracy(environment: SolverEnvironment) -> float | None:
    """Return the accuracy of PRISM's weights, where those are summed."""
    accuracy = environment.epsilon / PRISMS_FINER
    return accuracy if environment.repeats_prism and accuracy >= PRISMS_FINEST else None


def _weights(
    product: float, accuracy: float, prisms: float | None, cumulative: bool
) -> tuple[PoissonWeights, PoissonWeights]:
    """Return the weights of all events that matter, and of those that are summed."""
    fine = accuracy * SMALLEST_SHARE
    window = poisson_weights(product, fine) if prisms is None else prisms_weights(product, prisms)
    # The tails within PRISM's window are those of all events.
    every = poisson_weights(product, fine) if prisms is not None and cumulative else window
    return every, window


def _power_sum(
    system: SweepSystem,
    exits: FloatArray,
    rate: float,
    weights: tuple[PoissonWeights, PoissonWeights],
    rate_time: float,
    cumulative: bool,
) -> tuple[PowerSum, float]:
    """Return the sum over a window, and what its coefficients miss of all of them."""
    stay = 1.0 - exits / rate
    poisson, window = weights
    if not cumulative:
        return PowerSum(system, stay, rate, window.left, window.weights, 0.0), window.lost
    # In a window of all that matters the last one would be 0.
    last = window.right - (window is poisson)
    tails = poisson.tails(window.left, last, rate_time)
    of_sum = PowerSum(system, stay, rate, window.left, tails.weights / rate, 1.0 / rate)
    return of_sum, tails.lost / rate
