"""Compiled steps from scanned rows to compressed sparse rows."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from engines.formats.csr import FloatArray, IndexArray

OK = 0
OUT_OF_ORDER = 1
BAD_SOURCE = 2
BAD_TARGET = 3
TOO_MANY_ROWS = 4
BAD_CHOICE = 5
TWO_ACTIONS = 6
DUPLICATE = 7
NOT_THERE = 8

MERGED = -1
UNSET = -2

SHORT_ROW = 32
LAST_STATE, LAST_CHOICE, LAST_ROW, FILLED = range(4)


@njit(cache=True)
def append_rows(
    keys: NDArray[np.int64],
    values: FloatArray,
    actions: NDArray[np.int32],
    group_sizes: IndexArray,
    row_lengths: IndexArray,
    columns: IndexArray,
    entries: FloatArray,
    codes: NDArray[np.int32],
    place: NDArray[np.int64],
) -> tuple[int, int]:
    """Append transitions whose states (and choices) ascend, as PRISM writes them.

    Parameters
    ----------
    keys
        Source, (choice,) target of each transition.
    group_sizes
        Choices of each state, counted here; empty for Markov chains.
    row_lengths
        Transitions of each row, counted here.
    columns, entries, codes
        Filled; `codes` holds an action for each row of an MDP, each transition of a chain.
    place
        Last state, last choice, last row, transitions so far.

    Returns
    -------
    Status, and the transition that it is about.
    """
    nondeterministic = len(keys) == 3
    num_states = len(group_sizes) if nondeterministic else len(row_lengths)
    last_state, last_choice, last_row, filled = place
    for entry in range(len(values)):
        state = keys[0, entry]
        target = keys[len(keys) - 1, entry]
        if state >= num_states:
            return BAD_SOURCE, entry
        if target >= num_states:
            return BAD_TARGET, entry
        if state < last_state:
            return OUT_OF_ORDER, entry
        row = state
        if nondeterministic:
            choice = keys[1, entry]
            row = last_row
            if state != last_state or choice != last_choice:
                if choice != (0 if state != last_state else last_choice + 1):
                    return OUT_OF_ORDER, entry
                row += 1
                if row >= len(row_lengths):
                    return TOO_MANY_ROWS, entry
                group_sizes[state] += 1
                last_choice = choice
                last_row = row
        last_state = state
        row_lengths[row] += 1
        columns[filled] = target
        entries[filled] = values[entry]
        if nondeterministic:
            if codes[row] != actions[entry]:
                if codes[row] != UNSET:
                    return TWO_ACTIONS, entry
                codes[row] = actions[entry]
        elif actions[entry] != 0:
            codes[filled] = actions[entry]
        filled += 1
    place[LAST_STATE] = last_state
    place[LAST_CHOICE] = last_choice
    place[LAST_ROW] = last_row
    place[FILLED] = filled
    return OK, 0


@njit(cache=True)
def count_choices(
    keys: NDArray[np.int64], group_sizes: IndexArray, num_choices: int
) -> tuple[int, int]:
    """Raise each state's number of choices to the largest choice met plus one."""
    for entry in range(keys.shape[1]):
        if keys[0, entry] >= len(group_sizes):
            return BAD_SOURCE, entry
        if keys[1, entry] >= num_choices:
            return BAD_CHOICE, entry
        if keys[1, entry] >= group_sizes[keys[0, entry]]:
            group_sizes[keys[0, entry]] = keys[1, entry] + 1
    return OK, 0


@njit(cache=True)
def count_rows(
    keys: NDArray[np.int64], group_offsets: IndexArray, row_lengths: IndexArray, num_states: int
) -> tuple[int, int]:
    """Count the transitions of each row, of transitions in any order."""
    for entry in range(keys.shape[1]):
        if keys[0, entry] >= num_states:
            return BAD_SOURCE, entry
        if keys[len(keys) - 1, entry] >= num_states:
            return BAD_TARGET, entry
        row = keys[0, entry]
        if len(keys) == 3:
            row = group_offsets[row] + keys[1, entry]
        row_lengths[row] += 1
    return OK, 0


@njit(cache=True)
def place_rows(
    keys: NDArray[np.int64],
    values: FloatArray,
    actions: NDArray[np.int32],
    group_offsets: IndexArray,
    next_entry: IndexArray,
    columns: IndexArray,
    entries: FloatArray,
    codes: NDArray[np.int32],
) -> tuple[int, int]:
    """Put transitions in any order where their rows have room; see `append_rows`."""
    for entry in range(len(values)):
        row = keys[0, entry]
        if len(keys) == 3:
            row = group_offsets[row] + keys[1, entry]
        slot = next_entry[row]
        next_entry[row] = slot + 1
        columns[slot] = keys[len(keys) - 1, entry]
        entries[slot] = values[entry]
        if len(keys) == 3:
            if codes[row] != actions[entry]:
                if codes[row] != UNSET:
                    return TWO_ACTIONS, entry
                codes[row] = actions[entry]
        elif actions[entry] != 0:
            codes[slot] = actions[entry]
    return OK, 0


@njit(cache=True)
def tidy_rows(
    offsets: IndexArray,
    columns: IndexArray,
    entries: FloatArray,
    codes: NDArray[np.int32],
) -> tuple[int, int, int]:
    """Sort each row by target; drop zeros; merge parallel transitions of different actions.

    The arrays are rewritten from the front. A merged transition has the action `MERGED`.

    Returns
    -------
    Status; the row that it is about; its target, or the number of entries left.
    """
    filled = 0
    first = offsets[0]
    for row in range(len(offsets) - 1):
        last = offsets[row + 1]
        _sort_row(columns, entries, codes, first, last)
        start = filled
        for entry in range(first, last):
            if entries[entry] == 0.0:
                continue
            if filled > start and columns[filled - 1] == columns[entry]:
                # Sorted by action within a target, so that equal actions are neighbours.
                if len(codes) == 0 or codes[entry] == codes[entry - 1]:
                    return DUPLICATE, row, columns[entry]
                entries[filled - 1] += entries[entry]
                codes[filled - 1] = MERGED
                continue
            if filled != entry:
                columns[filled] = columns[entry]
                entries[filled] = entries[entry]
                if len(codes) > 0:
                    codes[filled] = codes[entry]
            filled += 1
        first = last
        offsets[row + 1] = filled
    return OK, 0, filled


@njit(cache=True)
def _sort_row(
    columns: IndexArray, entries: FloatArray, codes: NDArray[np.int32], first: int, last: int
) -> None:
    with_codes = len(codes) > 0
    ascending = True
    for entry in range(first + 1, last):
        if columns[entry] <= columns[entry - 1]:
            ascending = False
            break
    if ascending:
        return
    if last - first > SHORT_ROW:
        if with_codes:
            by_code = np.argsort(codes[first:last], kind="mergesort")
            columns[first:last] = columns[first:last][by_code]
            entries[first:last] = entries[first:last][by_code]
            codes[first:last] = codes[first:last][by_code]
        order = np.argsort(columns[first:last], kind="mergesort")
        columns[first:last] = columns[first:last][order]
        entries[first:last] = entries[first:last][order]
        if with_codes:
            codes[first:last] = codes[first:last][order]
        return
    for entry in range(first + 1, last):
        column = columns[entry]
        value = entries[entry]
        code = codes[entry] if with_codes else 0
        slot = entry
        while slot > first and (
            columns[slot - 1] > column
            or (columns[slot - 1] == column and with_codes and codes[slot - 1] > code)
        ):
            columns[slot] = columns[slot - 1]
            entries[slot] = entries[slot - 1]
            if with_codes:
                codes[slot] = codes[slot - 1]
            slot -= 1
        columns[slot] = column
        entries[slot] = value
        if with_codes:
            codes[slot] = code


@njit(cache=True)
def find_entry(offsets: IndexArray, columns: IndexArray, row: int, column: int) -> int:
    """Return the position of an entry in rows sorted by column, or −1."""
    low = offsets[row]
    end = offsets[row + 1]
    high = end
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low if low < end and columns[low] == column else -1


@njit(cache=True)
def add_rewards(
    keys: NDArray[np.int64],
    values: FloatArray,
    group_offsets: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    seen: NDArray[np.bool_],
    entry_rewards: FloatArray,
) -> tuple[int, int]:
    """Put transition rewards beside their transitions.

    Returns
    -------
    Status, and the reward that it is about.
    """
    num_states = len(offsets) - 1 if len(keys) == 2 else len(group_offsets) - 1
    for reward in range(len(values)):
        state = keys[0, reward]
        if state >= num_states:
            return BAD_SOURCE, reward
        row = state
        if len(keys) == 3:
            row = group_offsets[state] + keys[1, reward]
            if row >= group_offsets[state + 1]:
                return BAD_CHOICE, reward
        entry = find_entry(offsets, columns, row, keys[len(keys) - 1, reward])
        if entry < 0:
            return NOT_THERE, reward
        if seen[entry]:
            return DUPLICATE, reward
        seen[entry] = True
        entry_rewards[entry] = values[reward]
    return OK, 0


@njit(cache=True)
def expected_rewards(
    offsets: IndexArray, entries: FloatArray, entry_rewards: FloatArray, sums: FloatArray
) -> None:
    """Add to `sums` the sum over each row of entry times reward."""
    for row in range(len(offsets) - 1):
        for entry in range(offsets[row], offsets[row + 1]):
            if entry_rewards[entry] != 0.0:
                sums[row] += entries[entry] * entry_rewards[entry]


@njit(cache=True)
def choice_rewards(
    offsets: IndexArray, entries: FloatArray, entry_rewards: FloatArray, rewards: FloatArray
) -> None:
    """Set the expected reward of each choice; where all its transitions have one reward, that."""
    for row in range(len(offsets) - 1):
        first = entry_rewards[offsets[row]] if offsets[row] < offsets[row + 1] else 0.0
        same = True
        total = 0.0
        for entry in range(offsets[row], offsets[row + 1]):
            same = same and entry_rewards[entry] == first
            total += entries[entry] * entry_rewards[entry]
        rewards[row] = first if same else total
