"""Copying the blocks of a hybrid matrix into rows, and reading a diagram at points, in numba.

All indices are unsigned: numba then leaves out the test for negative ones.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

# Sets how threads wait, before OpenMP is loaded.
from engines.cpu import kernels as _kernels  # noqa: F401
from engines.formats.csr import FloatArray, IndexArray

ONE = np.uint64(1)


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
def copy_rows(
    bounds: IndexArray,
    starts: IndexArray,
    strip_states: IndexArray,
    strip_jobs: IndexArray,
    job_blocks: IndexArray,
    job_columns: IndexArray,
    block_rows: IndexArray,
    local_offsets: IndexArray,
    local_columns: IndexArray,
    local_values: FloatArray,
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
) -> None:
    """Write rows ``bounds[k]`` to ``bounds[k + 1] - 1`` from entry ``starts[k]`` on, for all k.

    `offsets` takes where each row starts, that of row ``bounds[0]`` first.
    """
    for chunk in prange(len(bounds) - 1):
        row, last = bounds[chunk], bounds[chunk + 1]
        entry = starts[chunk]
        if row < last:
            strip = _strip_of(strip_states, row)
            while row < last:
                begin = strip_states[strip]
                end = min(last, strip_states[strip + ONE])
                first_job, last_job = strip_jobs[strip], strip_jobs[strip + ONE]
                while row < end:
                    offsets[row - bounds[0]] = entry
                    for job in range(first_job, last_job):
                        place = block_rows[job_blocks[job]] + (row - begin)
                        first = job_columns[job]
                        for local in range(local_offsets[place], local_offsets[place + ONE]):
                            columns[entry] = first + local_columns[local]
                            values[entry] = local_values[local]
                            entry += ONE
                    row += ONE
                strip += ONE


@njit(parallel=True, cache=True)
def count_choices(
    bounds: IndexArray,
    strip_states: IndexArray,
    strip_jobs: IndexArray,
    job_blocks: IndexArray,
    job_choices: IndexArray,
    block_rows: IndexArray,
    local_offsets: IndexArray,
    counts: IndexArray,
    entries: IndexArray,
) -> None:
    """Write how many choices each state has, and how many entries each piece of states has."""
    for chunk in prange(len(bounds) - 1):
        row, last = bounds[chunk], bounds[chunk + 1]
        total = np.uint64(0)
        if row < last:
            strip = _strip_of(strip_states, row)
            while row < last:
                begin = strip_states[strip]
                end = min(last, strip_states[strip + ONE])
                first_job, last_job = strip_jobs[strip], strip_jobs[strip + ONE]
                while row < end:
                    found = np.uint32(0)
                    latest = np.uint32(0xFFFFFFFF)
                    for job in range(first_job, last_job):
                        place = block_rows[job_blocks[job]] + (row - begin)
                        length = local_offsets[place + ONE] - local_offsets[place]
                        if length > np.uint64(0) and job_choices[job] != latest:
                            latest = job_choices[job]
                            found += np.uint32(1)
                        total += length
                    counts[row] = found
                    row += ONE
                strip += ONE
        entries[chunk] = total


@njit(parallel=True, cache=True)
def copy_choices(
    bounds: IndexArray,
    starts: IndexArray,
    groups: IndexArray,
    strip_states: IndexArray,
    strip_jobs: IndexArray,
    job_blocks: IndexArray,
    job_columns: IndexArray,
    job_choices: IndexArray,
    block_rows: IndexArray,
    local_offsets: IndexArray,
    local_columns: IndexArray,
    local_values: FloatArray,
    offsets: IndexArray,
    numbers: IndexArray,
    columns: IndexArray,
    values: FloatArray,
) -> None:
    """Write the choices of states ``bounds[k]`` to ``bounds[k + 1] - 1``, for all k.

    Their rows start at ``groups``, their entries at ``starts[k]``; `offsets` takes where each row
    starts, `numbers` which choice it is.
    """
    for chunk in prange(len(bounds) - 1):
        state, last = bounds[chunk], bounds[chunk + 1]
        entry = starts[chunk]
        if state < last:
            row = np.uint64(groups[state])
            strip = _strip_of(strip_states, state)
            while state < last:
                begin = strip_states[strip]
                end = min(last, strip_states[strip + ONE])
                first_job, last_job = strip_jobs[strip], strip_jobs[strip + ONE]
                while state < end:
                    latest = np.uint32(0xFFFFFFFF)
                    for job in range(first_job, last_job):
                        place = block_rows[job_blocks[job]] + (state - begin)
                        first = job_columns[job]
                        start, stop = local_offsets[place], local_offsets[place + ONE]
                        if start < stop and job_choices[job] != latest:
                            latest = job_choices[job]
                            offsets[row] = entry
                            numbers[row] = latest
                            row += ONE
                        for local in range(start, stop):
                            columns[entry] = first + local_columns[local]
                            values[entry] = local_values[local]
                            entry += ONE
                    state += ONE
                strip += ONE


@njit(parallel=True, cache=True)
def read_points(
    bounds: IndexArray,
    states: IndexArray,
    begins: IndexArray,
    variables: IndexArray,
    low: IndexArray,
    high: IndexArray,
    values: FloatArray,
    levels: IndexArray,
    numbering_low: IndexArray,
    numbering_high: IndexArray,
    low_counts: IndexArray,
    numbering_root: int,
    results: FloatArray,
    wrong: IndexArray,
) -> None:
    """Follow the diagram from ``begins[k]`` along the assignment of ``states[k]``, for all k.

    `wrong` takes, of each piece, one node that tests a variable which is not in `levels`, else 0.
    """
    for chunk in prange(len(bounds) - 1):
        strange = np.uint32(0)
        for point in range(bounds[chunk], bounds[chunk + 1]):
            node = begins[point]
            place = np.uint32(numbering_root)
            left = states[point]
            for level in range(len(levels)):
                if values[node] != 0.0 or node == np.uint32(0):
                    break
                upper = left >= low_counts[place]
                if upper:
                    left -= low_counts[place]
                if variables[node] == levels[level]:
                    node = high[node] if upper else low[node]
                place = numbering_high[place] if upper else numbering_low[place]
            if variables[node] != np.uint32(0x7FFFFFFF):
                strange = node
            results[point] = values[node]
        wrong[chunk] = strange
