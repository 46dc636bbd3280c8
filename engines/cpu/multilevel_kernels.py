"""Multilevel aggregation in numba; imported only when a model is large enough to want it."""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

# Sets how threads wait, before OpenMP is loaded.
from engines.cpu import kernels as _kernels  # noqa: F401
from engines.formats.csr import FloatArray, IndexArray

NONE = -1
"""A state without a partner, or a place without a member."""


@njit(inline="always")
def _colour(state: int, turn: int) -> int:
    # A hash, because neighbours must fall on different sides in some round. Products of 32 bits are
    # 64 wide in numba, and are cut.
    product = np.uint32(state) * np.uint32(2654435761) + np.uint32(turn) * np.uint32(2246822519)
    bits = np.uint32(product)
    bits = np.uint32(bits ^ (bits >> np.uint32(15)))
    bits = np.uint32(bits * np.uint32(2246822519))
    bits = np.uint32(bits ^ (bits >> np.uint32(13)))
    bits = np.uint32(bits * np.uint32(3266489917))
    return int((bits >> np.uint32(16)) & np.uint32(1))


@njit(cache=True, parallel=True, error_model="numpy")
def propose(
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    out: FloatArray,
    members: IndexArray,
    aggregate: IndexArray,
    partner: IndexArray,
    turn: int,
    enough: float,
    wanted: IndexArray,
    strengths: NDArray[np.float32],
) -> None:
    """Let each aggregate of one colour choose its strongest neighbour of the other.

    One that is tied less than `enough` times as strongly as any, members included, will not do.
    `members` has shape (aggregates, width); `wanted` and `strengths`, shape (aggregates,), take
    the chosen neighbour, or `NONE`, and how strong the strongest transition from it is.
    """
    for target in prange(len(partner)):
        wanted[target] = NONE
        if partner[target] != NONE or _colour(target, turn) == 1:
            continue
        best, strongest, chosen = np.float32(0.0), np.float32(0.0), NONE
        for place in range(members.shape[1]):
            row = members[target, place]
            if row == NONE:
                break
            for entry in range(offsets[row], offsets[row + 1]):
                source = aggregate[columns[entry]]
                # How large a share it is of what leaves the one, and of what passes the other.
                strength = np.float32(
                    values[entry] / out[columns[entry]] + values[entry] / out[row]
                )
                strongest = max(strongest, strength)
                free = partner[source] == NONE and _colour(source, turn) == 1
                if free and source != target and strength > best:
                    best, chosen = strength, source
        # What is hardly tied must not be joined: no correction could move mass between the two.
        wanted[target] = chosen if best >= enough * strongest else NONE
        strengths[target] = best


@njit(cache=True)
def accept(wanted: IndexArray, strengths: NDArray[np.float32], partner: IndexArray) -> None:
    """Let each aggregate accept the strongest proposal, of equal ones the last."""
    size = len(partner)
    chosen = np.full(size, NONE, np.int32)
    for target in range(size):
        source = wanted[target]
        if source == NONE:
            continue
        before = chosen[source]
        if before == NONE or strengths[target] >= strengths[before]:
            chosen[source] = target
    for source in range(size):
        if chosen[source] != NONE:
            partner[source] = chosen[source]
            partner[chosen[source]] = source


@njit(cache=True)
def joined(members: IndexArray, partner: IndexArray, states: int) -> tuple[IndexArray, IndexArray]:
    """Join partners; return the members of each new aggregate, and the aggregate of each state."""
    size, width = members.shape
    count = 0
    for one in range(size):
        if partner[one] == NONE or partner[one] > one:
            count += 1
    together = np.full((count, 2 * width), NONE, np.int32)
    aggregate = np.empty(states, np.int32)
    number = 0
    for one in range(size):
        if partner[one] != NONE and partner[one] < one:
            continue
        filled = 0
        for half in range(2):
            source = one if half == 0 else partner[one]
            if source == NONE:
                break
            for place in range(width):
                state = members[source, place]
                if state == NONE:
                    break
                together[number, filled] = state
                aggregate[state] = number
                filled += 1
        number += 1
    return together, aggregate


@njit(cache=True)
def structure(
    offsets: IndexArray, columns: IndexArray, members: IndexArray, aggregate: IndexArray
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return row offsets and columns between aggregates, and the entry that each entry adds to.

    `NONE` marks entries within an aggregate.
    """
    count = len(members)
    adds_to = np.empty(len(columns), np.int32)
    coarse_offsets = np.zeros(count + 1, np.int32)
    found = np.empty(len(columns), np.int32)
    seen_at = np.full(count, NONE, np.int32)
    total = 0
    for target in range(count):
        begin = total
        for place in range(members.shape[1]):
            row = members[target, place]
            if row == NONE:
                break
            for entry in range(offsets[row], offsets[row + 1]):
                source = aggregate[columns[entry]]
                if source == target:
                    adds_to[entry] = NONE
                    continue
                if seen_at[source] < begin:
                    seen_at[source] = total
                    found[total] = source
                    total += 1
                adds_to[entry] = seen_at[source]
        coarse_offsets[target + 1] = total
    return coarse_offsets, found[:total].copy(), adds_to


@njit(cache=True, parallel=True, error_model="numpy")
def coarse_flows(
    row_bounds: IndexArray,
    rows: IndexArray,
    entry_bounds: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    shares: FloatArray,
    adds_to: IndexArray,
    coarse_values: FloatArray,
) -> None:
    """Add up the flows between aggregates that the states' shares make.

    Piece k works on ``rows[row_bounds[k] : row_bounds[k + 1]]``, which alone add to the coarse
    entries from ``entry_bounds[k]`` on. Indices are unsigned; what adds to none is past the end.
    """
    for piece in prange(len(row_bounds) - 1):
        coarse_values[entry_bounds[piece] : entry_bounds[piece + 1]] = 0.0
        for place in range(row_bounds[piece], row_bounds[piece + 1]):
            row = rows[place]
            for entry in range(offsets[row], offsets[row + np.uint32(1)]):
                sum_place = adds_to[entry]
                if sum_place < len(coarse_values):
                    coarse_values[sum_place] += values[entry] * shares[columns[entry]]


@njit(cache=True, parallel=True)
def add_up(
    from_offsets: IndexArray, from_entries: IndexArray, values: FloatArray, out: FloatArray
) -> None:
    """Add up what leaves each state, whose entries `from_entries` lists."""
    for state in prange(len(out)):
        total = 0.0
        for place in range(from_offsets[state], from_offsets[state + 1]):
            total += values[from_entries[place]]
        out[state] = total


@njit(cache=True, parallel=True, error_model="numpy")
def smooth(
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    out: FloatArray,
    omega: float,
    least: float,
    most: float,
    x: FloatArray,
    x_new: FloatArray,
) -> None:
    """Make a sweep of Jacobi's method with relaxation for x F = x D, F the flows, D their sums."""
    for row in prange(len(out)):
        total = 0.0
        for entry in range(offsets[row], offsets[row + 1]):
            total += values[entry] * x[columns[entry]]
        after = x[row]
        # Flows that have vanished leave nothing to balance.
        if out[row] > 0.0:
            after = (1.0 - omega) * after + omega * (total / out[row])
        x_new[row] = min(max(after, least), most)


@njit(cache=True, parallel=True)
def multiply(
    x: FloatArray, aggregate: IndexArray, correction: FloatArray, least: float, most: float
) -> None:
    """Multiply each state's value by the correction of its aggregate."""
    for state in prange(len(x)):
        x[state] = min(max(x[state] * correction[aggregate[state]], least), most)


@njit(cache=True, error_model="numpy")
def eliminate(
    offsets: IndexArray, columns: IndexArray, values: FloatArray, out: FloatArray
) -> FloatArray:
    """Solve x F = x D without subtraction, scaled so that the total flow stays what it was."""
    size = len(out)
    flows = np.zeros((size, size))
    for row in range(size):
        for entry in range(offsets[row], offsets[row + 1]):
            flows[columns[entry], row] = values[entry]
    for last in range(size - 1, 0, -1):
        leaving = flows[last, :last].sum()
        for row in range(last):
            share = flows[row, last] / leaving if leaving > 0.0 else 0.0
            flows[row, last] = share
            if share > 0.0:
                flows[row, :last] += share * flows[last, :last]
    x = np.zeros(size)
    x[0] = 1.0
    for state in range(1, size):
        x[state] = (x[:state] * flows[:state, state]).sum()
    wanted, made = out.sum(), (x * out).sum()
    if made > 0.0:
        x *= wanted / made
    return x


@njit(cache=True, error_model="numpy")
def largest_change(before: FloatArray, after: FloatArray, absolute: bool, least: float) -> float:
    """Return the largest change of a cycle, of values that are not negligible."""
    largest = 0.0
    for state in range(len(after)):
        if after[state] <= least:
            continue
        change = abs(after[state] - before[state])
        if not absolute:
            change /= abs(before[state])
        # A change that is no number is larger than any.
        if change > largest or change != change:
            largest = change
    return largest
