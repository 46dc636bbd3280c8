"""Sweeps of matrices in the hybrid representation, and walks through their graphs, in numba.

All indices are unsigned: numba then leaves out the test for negative ones. The arrays of a matrix
come as `engines.cpu.diagram_sweeps.HostHybrid` has them.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from engines.cpu.kernels import _larger_change as _larger
from engines.formats.csr import FloatArray, IndexArray, MaskArray

ZERO, ONE = np.uint64(0), np.uint64(1)


@njit(inline="always")
def _strip_of(strip_states: IndexArray, state: np.unsignedinteger) -> np.unsignedinteger:
    low, high = np.uint64(0), np.uint64(len(strip_states) - 1)
    while high - low > ONE:
        middle = (low + high) >> ONE
        if strip_states[middle] <= state:
            low = middle
        else:
            high = middle
    return low


@njit(parallel=True, cache=True)
def row_parts(
    bounds: IndexArray,
    strip_states: IndexArray,
    strip_jobs: IndexArray,
    job_rows: IndexArray,
    job_columns: IndexArray,
    local_offsets: IndexArray,
    local_columns: IndexArray,
    local_values: FloatArray,
    diagonal: FloatArray,
    others: FloatArray,
) -> None:
    """Write each state's entry on the diagonal, and the sum of its others.

    Thread k of the pool takes states ``bounds[k]`` to ``bounds[k + 1] - 1``.
    """
    for chunk in prange(len(bounds) - 1):
        state, last = bounds[chunk], bounds[chunk + 1]
        strip = ZERO
        if state < last:
            strip = _strip_of(strip_states, state)
        while state < last:
            while strip_states[strip + ONE] <= state:
                strip += ONE
            local = state - strip_states[strip]
            on, off = 0.0, 0.0
            for job in range(strip_jobs[strip], strip_jobs[strip + ONE]):
                place, first = job_rows[job] + local, job_columns[job]
                for entry in range(local_offsets[place], local_offsets[place + ONE]):
                    if first + local_columns[entry] == state:
                        on += local_values[entry]
                    else:
                        off += local_values[entry]
            diagonal[state], others[state] = on, off
            state += ONE


@njit(parallel=True, cache=True, error_model="numpy")
def sweep_slices(
    pieces: IndexArray,
    begins: IndexArray,
    ends: IndexArray,
    rows: np.uint64,
    slice_size: np.uint64,
    colours: np.uint64,
    backwards: bool,
    states: IndexArray,
    colour_of_state: IndexArray,
    strip_states: IndexArray,
    strip_jobs: IndexArray,
    job_rows: IndexArray,
    job_columns: IndexArray,
    local_offsets: IndexArray,
    local_columns: IndexArray,
    local_values: FloatArray,
    without_diagonal: bool,
    divisors: FloatArray,
    offset: FloatArray,
    omega: float,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> float:
    """Make one sweep ``x_new ← (1 − ω) x + ω (b + A x)``, colour by colour.

    Rows are cut into slices of `slice_size`, counted from the last one if `backwards`; slice s has
    colour s mod `colours`. Piece p is steps ``begins[p]`` to ``ends[p] - 1`` of its colour, which
    has pieces ``pieces[colour]`` to ``pieces[colour + 1] - 1``. A row reads states of earlier
    colours from `x_new`, all others from `x`; `colour_of_state` may be empty where there is one
    colour. Empty `states` stand for row i computing state i, empty `divisors` and `offset` for 1
    and 0. Returns the largest change.
    """
    slices = (rows + slice_size - ONE) // slice_size
    worst = np.zeros(len(begins))
    for turn in range(len(pieces) - 1):
        colour = np.uint64(turn)
        for piece in prange(pieces[turn], pieces[turn + 1]):
            largest = 0.0
            for step in range(begins[piece], ends[piece]):
                number = colour + np.uint64(step) * colours
                if backwards:
                    number = slices - ONE - number
                row = number * slice_size
                last = min(row + slice_size, rows)
                state = np.uint64(states[row]) if len(states) else row
                strip = _strip_of(strip_states, state)
                while row < last:
                    state = np.uint64(states[row]) if len(states) else row
                    while strip_states[strip + ONE] <= state:
                        strip += ONE
                    local = state - strip_states[strip]
                    total = 0.0
                    for job in range(strip_jobs[strip], strip_jobs[strip + ONE]):
                        place, first = job_rows[job] + local, job_columns[job]
                        for entry in range(local_offsets[place], local_offsets[place + ONE]):
                            column = first + local_columns[entry]
                            if without_diagonal and column == state:
                                continue
                            fresh = colour > ZERO and colour_of_state[column] < colour
                            value = x_new[column] if fresh else x[column]
                            total += local_values[entry] * value
                    if len(divisors):
                        total /= divisors[row]
                    if len(offset):
                        total += offset[row]
                    before = x[state]
                    after = total if omega == 1.0 else (1.0 - omega) * before + omega * total
                    x_new[state] = after
                    largest = _larger(largest, before, after, absolute)
                    row += ONE
            worst[piece] = largest
    return worst.max() if len(worst) else 0.0


@njit(cache=True)
def reach(
    strip_states: IndexArray,
    strip_jobs: IndexArray,
    job_rows: IndexArray,
    job_columns: IndexArray,
    local_offsets: IndexArray,
    local_columns: IndexArray,
    reached: MaskArray,
    queue: IndexArray,
) -> int:
    """Complete a set by all that its only member, ``queue[0]``, leads to; return its size.

    `queue`, of shape (states,), takes the members in the order in which they were found.
    """
    first, count = 0, 1
    while first < count:
        state = np.uint64(queue[first])
        first += 1
        strip = _strip_of(strip_states, state)
        local = state - strip_states[strip]
        for job in range(strip_jobs[strip], strip_jobs[strip + ONE]):
            place, begin = job_rows[job] + local, job_columns[job]
            for entry in range(local_offsets[place], local_offsets[place + ONE]):
                column = begin + local_columns[entry]
                if not reached[column]:
                    reached[column] = True
                    queue[count] = column
                    count += 1
    return count
