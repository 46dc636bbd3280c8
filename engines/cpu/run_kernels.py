"""Sweeps over runs of rows in numba: inner loops along the rows, which become SIMD instructions.

Each row adds its products in the order of its entries, so that the iterates are those of
`engines.cpu.kernels` to the last bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from engines.cpu.kernels import _larger_change
from engines.cpu.run_finding import LONGEST_RUN
from engines.formats.csr import FloatArray, IndexArray

SHORT_RUN = 16
"""Below this, preparing a loop along the rows takes longer than the rows one by one."""


@njit(inline="always")
def _add_shared(
    sums: FloatArray,
    begun: int,
    given: float,
    first: int,
    distances: IndexArray,
    numbers: FloatArray,
    pair: int,
    last: int,
    number: int,
    x: FloatArray,
) -> None:
    """Sum the products of each row, which all share their numbers.

    `sums` holds what comes before them if `begun`; else that is `given`.
    """
    # The first pairs in one loop: their sums stay in registers.
    size = len(sums)
    left = 0 if begun else last - pair
    if left >= 4:
        at0, at1 = first + distances[pair], first + distances[pair + 1]
        at2, at3 = first + distances[pair + 2], first + distances[pair + 3]
        x0, x1 = x[at0 : at0 + size], x[at1 : at1 + size]
        x2, x3 = x[at2 : at2 + size], x[at3 : at3 + size]
        w0, w1 = numbers[number], numbers[number + 1]
        w2, w3 = numbers[number + 2], numbers[number + 3]
        for k in range(size):
            sums[k] = given + w0 * x0[k] + w1 * x1[k] + w2 * x2[k] + w3 * x3[k]
        pair, number = pair + 4, number + 4
    elif left == 3:
        at0, at1 = first + distances[pair], first + distances[pair + 1]
        at2 = first + distances[pair + 2]
        x0, x1, x2 = x[at0 : at0 + size], x[at1 : at1 + size], x[at2 : at2 + size]
        w0, w1, w2 = numbers[number], numbers[number + 1], numbers[number + 2]
        for k in range(size):
            sums[k] = given + w0 * x0[k] + w1 * x1[k] + w2 * x2[k]
        pair, number = pair + 3, number + 3
    elif left == 2:
        at0, at1 = first + distances[pair], first + distances[pair + 1]
        x0, x1 = x[at0 : at0 + size], x[at1 : at1 + size]
        w0, w1 = numbers[number], numbers[number + 1]
        for k in range(size):
            sums[k] = given + w0 * x0[k] + w1 * x1[k]
        pair, number = pair + 2, number + 2
    elif not begun:
        for k in range(size):
            sums[k] = given
    while pair < last:
        at0 = first + distances[pair]
        x0 = x[at0 : at0 + size]
        w0 = numbers[number]
        for k in range(size):
            sums[k] += w0 * x0[k]
        pair, number = pair + 1, number + 1


@njit(inline="always")
def _add_apart(
    sums: FloatArray,
    first: int,
    distances: IndexArray,
    numbers: FloatArray,
    pair: int,
    last: int,
    number: int,
    x: FloatArray,
) -> None:
    """Add the products of each row, which has numbers of its own, to `sums`."""
    # Pair by pair, so that the numbers are read from memory in one stream.
    size = len(sums)
    for one in range(pair, last):
        at = first + distances[one]
        shifted, own = x[at : at + size], numbers[number : number + size]
        for k in range(size):
            sums[k] += own[k] * shifted[k]
        number += size


@njit(inline="always")
def _settle(
    before: FloatArray, after: FloatArray, omega: float, absolute: bool, largest: float
) -> float:
    """Relax the rows of a run and return the largest change so far."""
    size = len(after)
    if omega != 1.0:
        for k in range(size):
            after[k] = (1.0 - omega) * before[k] + omega * after[k]
    # Nearly always no row exceeds the largest change so far: one comparison a row tells.
    more = 0
    if absolute:
        for k in range(size):
            more |= abs(after[k] - before[k]) > largest
    else:
        for k in range(size):
            more |= abs(after[k] - before[k]) > largest * abs(before[k])
    if more:
        for k in range(size):
            largest = _larger_change(largest, before[k], after[k], absolute)
    return largest


@njit(inline="always")
def _sweep_rows_apart(
    run: int,
    firsts: IndexArray,
    lengths: IndexArray,
    run_choices: IndexArray,
    choice_pairs: IndexArray,
    distances: IndexArray,
    numbers: FloatArray,
    number_starts: IndexArray,
    givens: FloatArray,
    given_starts: IndexArray,
    steps: tuple[int, int],
    choose: int,
    omega: float,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
    largest: float,
) -> float:
    """Sweep the rows of a short run one by one."""
    first, size = np.uint64(firsts[run]), lengths[run]
    number_step = size if steps[0] else 1
    given_step = size if steps[1] else 1
    for k in range(size):
        number = number_starts[run] + (k if steps[0] else 0)
        told = given_starts[run] + (k if steps[1] else 0)
        state = first + np.uint64(k)
        after = np.inf if choose < 0 else -np.inf
        for choice in range(run_choices[run], run_choices[run + 1]):
            total = givens[told] if len(givens) else 0.0
            for pair in range(choice_pairs[choice], choice_pairs[choice + 1]):
                total += numbers[number] * x[state + np.uint64(distances[pair])]
                number += number_step
            told += given_step
            if choose < 0:
                after = min(after, total)
            elif choose > 0:
                after = max(after, total)
            else:
                after = total
        before = x[state]
        if omega != 1.0:
            after = (1.0 - omega) * before + omega * after
        x_new[state] = after
        largest = _larger_change(largest, before, after, absolute)
    return largest


@njit(cache=True, error_model="numpy")
def _sweep_runs(
    begin: int,
    end: int,
    firsts: IndexArray,
    lengths: IndexArray,
    run_choices: IndexArray,
    choice_pairs: IndexArray,
    distances: IndexArray,
    numbers: FloatArray,
    number_starts: IndexArray,
    givens: FloatArray,
    given_starts: IndexArray,
    steps: tuple[int, int],
    choose: int,
    omega: float,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> float:
    """Sweep the runs from `begin` to before `end`; return the largest change."""
    largest = 0.0
    aside = np.empty(LONGEST_RUN if choose else 0)
    for run in range(begin, end):
        first, size = firsts[run], lengths[run]
        if size < SHORT_RUN:
            largest = _sweep_rows_apart(
                run,
                firsts,
                lengths,
                run_choices,
                choice_pairs,
                distances,
                numbers,
                number_starts,
                givens,
                given_starts,
                steps,
                choose,
                omega,
                x,
                x_new,
                absolute,
                largest,
            )
            continue
        after = x_new[first : first + size]
        if choose:
            after[:] = np.inf if choose < 0 else -np.inf
        number, told = number_starts[run], given_starts[run]
        for choice in range(run_choices[run], run_choices[run + 1]):
            pair, last = choice_pairs[choice], choice_pairs[choice + 1]
            sums = aside[:size] if choose else after
            if steps[1]:
                sums[:] = givens[told : told + size]
            given = 0.0
            if len(givens) and not steps[1]:
                given = givens[told]
            if steps[0]:
                if not steps[1]:
                    sums[:] = given
                _add_apart(sums, first, distances, numbers, pair, last, number, x)
                number += size * (last - pair)
            else:
                _add_shared(sums, steps[1], given, first, distances, numbers, pair, last, number, x)
                number += last - pair
            told += size if steps[1] else 1
            if choose < 0:
                for k in range(size):
                    after[k] = min(after[k], sums[k])
            elif choose > 0:
                for k in range(size):
                    after[k] = max(after[k], sums[k])
        largest = _settle(x[first : first + size], after, omega, absolute, largest)
    return largest


@njit(parallel=True, cache=True, error_model="numpy")
def sweep_runs(
    bounds: IndexArray,
    firsts: IndexArray,
    lengths: IndexArray,
    run_choices: IndexArray,
    choice_pairs: IndexArray,
    distances: IndexArray,
    numbers: FloatArray,
    number_starts: IndexArray,
    givens: FloatArray,
    given_starts: IndexArray,
    steps: tuple[int, int],
    choose: int,
    omega: float,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> float:
    """Make one sweep; return the largest change.

    Parameters
    ----------
    bounds
        Cuts the runs into pieces of work.
    firsts, lengths, run_choices, choice_pairs, distances
        As in `engines.cpu.run_encoding.Runs`.
    numbers, number_starts, givens, given_starts
        As in `engines.cpu.run_encoding.Runs`.
    steps
        Whether numbers, and right-hand sides, are the rows' own: 1 or 0 each.
    choose
        0 for a chain; negative for the least, positive for the largest of the choices.
    omega
        Relaxation.
    x, x_new
        The iterate before and after, by positions.
    absolute
        Whether changes are absolute.
    """
    worst = np.zeros(len(bounds) - 1)
    for chunk in prange(len(bounds) - 1):
        worst[chunk] = _sweep_runs(
            bounds[chunk],
            bounds[chunk + 1],
            firsts,
            lengths,
            run_choices,
            choice_pairs,
            distances,
            numbers,
            number_starts,
            givens,
            given_starts,
            steps,
            choose,
            omega,
            x,
            x_new,
            absolute,
        )
    return worst.max() if len(worst) else 0.0


@njit(cache=True, error_model="numpy")
def repeat_runs(
    changes: FloatArray,
    stop_below: float,
    firsts: IndexArray,
    lengths: IndexArray,
    run_choices: IndexArray,
    choice_pairs: IndexArray,
    distances: IndexArray,
    numbers: FloatArray,
    number_starts: IndexArray,
    givens: FloatArray,
    given_starts: IndexArray,
    steps: tuple[int, int],
    choose: int,
    omega: float,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> int:
    """Make sweeps on one thread as `engines.cpu.kernels.repeat_rows` does; return how many."""
    for k in range(len(changes)):
        changes[k] = _sweep_runs(
            0,
            len(firsts),
            firsts,
            lengths,
            run_choices,
            choice_pairs,
            distances,
            numbers,
            number_starts,
            givens,
            given_starts,
            steps,
            choose,
            omega,
            x,
            x_new,
            absolute,
        )
        x, x_new = x_new, x
        if changes[k] < stop_below:
            return k + 1
    return len(changes)
