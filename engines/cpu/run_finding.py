"""Kernels that find rows of the same shape and lay them out as runs, in numba."""

from __future__ import annotations

import numpy as np
from numba import njit

from engines.formats.csr import FloatArray, IndexArray

LONGEST_RUN = 1024
"""Rows of a run at most: its part of the iterate stays in the first cache, and work divides."""


@njit(inline="always")
def _mixed(key: np.uint64, word: np.uint64) -> np.uint64:
    # Multiplication by 2⁶⁴ over the golden ratio (Knuth, vol. 3, 6.4) spreads what differs.
    spread = (key ^ word) * np.uint64(0x9E3779B97F4A7C15)
    return spread ^ (spread >> np.uint64(29))


@njit(cache=True)
def shapes(
    groups: IndexArray, offsets: IndexArray, columns: IndexArray, states: IndexArray
) -> IndexArray:
    """Return a hash of the distances of each group of rows, shape (groups,), uint64.

    Two groups of different distances may have one hash: who takes them for equal must compare.

    Parameters
    ----------
    groups, offsets, columns
        Where the rows of a group and the entries of a row start, and the columns.
    states
        The state of each group.
    """
    hashes = np.empty(len(states), dtype=np.uint64)
    for group in range(len(states)):
        state = np.int64(states[group])
        key = np.uint64(groups[group + 1] - groups[group])
        for row in range(groups[group], groups[group + 1]):
            key = _mixed(key, np.uint64(offsets[row + 1] - offsets[row]))
            for entry in range(offsets[row], offsets[row + 1]):
                key = _mixed(key, np.uint64(np.int64(columns[entry]) - state))
        hashes[group] = key
    return hashes


@njit(cache=True)
def classify(keys: IndexArray, most: int) -> tuple[IndexArray, int]:
    """Number the distinct keys in the order of their first appearance.

    Parameters
    ----------
    keys
        Shape (n,), uint64.
    most
        How many distinct keys there may be.

    Returns
    -------
    The number of each key, shape (n,), int32, and how many distinct ones there are; −1 for more
    than `most`.
    """
    size = 16
    while size < 2 * min(most, len(keys)):
        size *= 2
    mask = np.uint64(size - 1)
    known = np.zeros(size, dtype=np.uint64)
    number = np.full(size, -1, dtype=np.int32)
    out = np.empty(len(keys), dtype=np.int32)
    count = 0
    for k in range(len(keys)):
        slot = (_mixed(keys[k], np.uint64(1)) >> np.uint64(16)) & mask
        while number[slot] >= 0 and known[slot] != keys[k]:
            slot = (slot + np.uint64(1)) & mask
        if number[slot] < 0:
            if count == most:
                return out, -1
            number[slot] = count
            known[slot] = keys[k]
            count += 1
        out[k] = number[slot]
    return out, count


@njit(cache=True)
def sorted_in_tiles(classes: IndexArray, count: int, tile: int) -> IndexArray:
    """Return the indices by class within each tile, stably, classes by first appearance.

    Parameters
    ----------
    classes
        Shape (n,), from 0 to `count` − 1.
    count
        Number of classes.
    tile
        Indices of a tile.
    """
    order = np.empty(len(classes), dtype=np.int64)
    next_place = np.zeros(count, dtype=np.int64)
    seen = np.empty(count, dtype=np.int64)
    for begin in range(0, len(classes), tile):
        end = min(len(classes), begin + tile)
        different = 0
        for k in range(begin, end):
            if next_place[classes[k]] == 0:
                seen[different] = classes[k]
                different += 1
            next_place[classes[k]] += 1
        place = begin
        for k in range(different):
            members = next_place[seen[k]]
            next_place[seen[k]] = place
            place += members
        for k in range(begin, end):
            order[next_place[classes[k]]] = k
            next_place[classes[k]] += 1
        for k in range(different):
            next_place[seen[k]] = 0
    return order


@njit(inline="always")
def _continues(
    group: int,
    before: int,
    groups: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    bits: IndexArray,
    given_bits: IndexArray,
    place: IndexArray,
) -> bool:
    """Say whether each column of a group is one further than that of the group before."""
    begin, earlier = np.int64(groups[group]), np.int64(groups[before])
    choices = np.int64(groups[group + 1]) - begin
    if choices != np.int64(groups[before + 1]) - earlier:
        return False
    for k in range(choices):
        row, other = begin + k, earlier + k
        first, last = np.int64(offsets[row]), np.int64(offsets[row + 1])
        back = first - np.int64(offsets[other])
        if last - first != np.int64(offsets[other + 1]) - np.int64(offsets[other]):
            return False
        if len(given_bits) and given_bits[row] != given_bits[other]:
            return False
        for entry in range(first, last):
            step = np.int64(place[columns[entry]]) - np.int64(place[columns[entry - back]])
            if step != 1 or (len(bits) and bits[entry] != bits[entry - back]):
                return False
    return True


@njit(cache=True)
def run_starts(
    groups: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    bits: IndexArray,
    given_bits: IndexArray,
    states: IndexArray,
    update_at: IndexArray,
    place: IndexArray,
    most: int,
) -> tuple[IndexArray, int]:
    """Return the positions that runs start at, and how many there are; −1 for too many.

    Parameters
    ----------
    groups, offsets, columns
        Where the rows of a group and the entries of a row start, and the columns.
    bits, given_bits
        Bits of the values and of the right-hand side that rows of a run must share; empty where
        they need not.
    states, update_at, place
        State of a group, group of a position (−1 for none) and position of a state.
    most
        How many runs there may be before the longest are cut.
    """
    goes_on = np.zeros(len(place), dtype=np.bool_)
    count = 0
    # By the old numbers, so that the matrix is read from its start to its end.
    for group in range(len(states)):
        position = int(place[states[group]])
        before = int(update_at[position - 1]) if position else -1
        if before >= 0:
            goes_on[position] = _continues(
                group, before, groups, offsets, columns, bits, given_bits, place
            )
        count += not goes_on[position]
        if count > most:
            return np.empty(0, dtype=np.int64), -1
    starts = np.empty(count + len(states) // LONGEST_RUN, dtype=np.int64)
    found = 0
    for position in range(len(place)):
        if update_at[position] < 0:
            continue
        if not goes_on[position] or position - starts[found - 1] == LONGEST_RUN:
            starts[found] = position
            found += 1
    return starts[:found], found


@njit(cache=True)
def fill(
    groups: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    given: FloatArray,
    update_at: IndexArray,
    place: IndexArray,
    firsts: IndexArray,
    lengths: IndexArray,
    run_choices: IndexArray,
    number_starts: IndexArray,
    given_starts: IndexArray,
    share_numbers: bool,
    share_givens: bool,
    choice_pairs: IndexArray,
    distances: IndexArray,
    numbers: FloatArray,
    givens: FloatArray,
) -> None:
    """Write the last four arrays, which are those of `engines.cpu.run_encoding.Runs`.

    Parameters
    ----------
    groups, offsets, columns, values, given
        The system: where the rows of a group and the entries of a row start, and the entries.
    update_at, place
        Group of a position, and position of a state.
    firsts, lengths, run_choices, number_starts, given_starts
        As in `Runs`, the last three with their ends.
    share_numbers, share_givens
        Whether the rows of a run have one value a pair, and one right-hand side a choice.
    choice_pairs, distances, numbers, givens
        What is written.
    """
    pair = 0
    for run in range(len(firsts)):
        first, size = firsts[run], lengths[run]
        rows = 1 if share_numbers else size
        given_rows = 1 if share_givens else size
        group = update_at[first]
        number, told = number_starts[run], given_starts[run]
        for choice in range(run_choices[run + 1] - run_choices[run]):
            row = np.int64(groups[group]) + choice
            for entry in range(offsets[row], offsets[row + 1]):
                distances[pair] = np.int64(place[columns[entry]]) - first
                pair += 1
            choice_pairs[run_choices[run] + choice + 1] = pair
            length = np.int64(offsets[row + 1]) - np.int64(offsets[row])
            for k in range(rows):
                begin = np.int64(offsets[np.int64(groups[update_at[first + k]]) + choice])
                for j in range(length):
                    numbers[number + j * rows + k] = values[begin + j]
            for k in range(given_rows if len(given) else 0):
                givens[told + k] = given[np.int64(groups[update_at[first + k]]) + choice]
            number += length * rows
            told += given_rows
