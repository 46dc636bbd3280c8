"""Rows of a sparse matrix from transitions as files list them, by the compiled library.

The keys of transitions have the shape (transitions, integers): source and target, or source, choice
and target, none of them negative.
"""

from __future__ import annotations

from ctypes import c_int32, c_int64
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.host.compiled.library import (
    DOUBLES,
    INDICES,
    MASKS,
    NUMBERS,
    Array,
    Function,
    HostMatrix,
    of_type_or_none,
)
from engines.model.csr import CsrMatrix

MERGED = -1
"""The action of a transition that stands for parallel ones of several actions."""
UNSET = -2
"""The action of a row without a transition yet."""
ROWS_A_CALL = 1 << 20
"""Rows that are tidied before a signal can end it."""

KeyArray = NDArray[np.int64]
CodeArray = NDArray[np.int32]

_EITHER = Array(np.int32, np.int64)
_TRANSITIONS = (INDICES, c_int64, DOUBLES, NUMBERS, c_int64)
_APPEND_ROWS = Function(
    "pg_append_rows",
    c_int64,
    *(*_TRANSITIONS, c_int64, c_int64, _EITHER, _EITHER, c_int32),
    *(_EITHER, c_int32, DOUBLES, NUMBERS, INDICES, INDICES),
)
_COUNT_CHOICES = Function(
    "pg_count_rows_of_states",
    c_int64,
    INDICES,
    c_int64,
    c_int64,
    c_int64,
    _EITHER,
    c_int32,
    INDICES,
)
_COUNT_ROWS = Function(
    "pg_count_rows",
    c_int64,
    *(INDICES, c_int64, c_int64, c_int64),
    *(INDICES, _EITHER, c_int32, INDICES),
)
_PLACE_ROWS = Function(
    "pg_place_rows",
    c_int64,
    *(*_TRANSITIONS, c_int64, INDICES, INDICES, c_int64),
    *(_EITHER, c_int32, DOUBLES, NUMBERS, INDICES),
)
_TIDY_ROWS = Function(
    "pg_tidy_rows",
    c_int64,
    *(c_int64, c_int64, _EITHER, c_int32, _EITHER, c_int32),
    *(DOUBLES, NUMBERS, INDICES, INDICES),
)
_ADD_REWARDS = Function(
    "pg_add_rewards",
    c_int64,
    *(HostMatrix, _EITHER, INDICES, c_int64, DOUBLES, c_int64, c_int64),
    *(MASKS, DOUBLES, INDICES),
)
_ADD_EARNED = Function("pg_add_earned", None, HostMatrix, DOUBLES, DOUBLES)
_REWARDS_OF_ROWS = Function("pg_rewards_of_rows", None, HostMatrix, DOUBLES, DOUBLES)


class RowStatus(IntEnum):
    """What is wrong with a transition, or a reward of one."""

    OK = 0
    OUT_OF_ORDER = 1
    BAD_SOURCE = 2
    BAD_TARGET = 3
    TOO_MANY_ROWS = 4
    BAD_CHOICE = 5
    TWO_ACTIONS = 6
    DUPLICATE = 7
    NOT_THERE = 8
    CHANGED = 9
    """It is not one of those that were counted before."""
    NO_MEMORY = 10


@dataclass(frozen=True)
class Entries:
    """The entries of a matrix that is put together.

    Attributes
    ----------
    columns, values
        Shape (entries,).
    codes
        Actions: of an MDP's rows, shape (rows,), or of a chain's entries.
    """

    columns: IndexArray
    values: FloatArray
    codes: CodeArray


@dataclass
class Place:
    """What was appended last, and how much.

    Attributes
    ----------
    state, choice, row
        Those of the last transition; −1 before the first.
    filled
        Transitions so far.
    """

    state: int = -1
    choice: int = -1
    row: int = -1
    filled: int = 0


def append_rows(
    keys: KeyArray,
    values: FloatArray,
    actions: CodeArray,
    groups: IndexArray | None,
    lengths: IndexArray,
    entries: Entries,
    place: Place,
) -> tuple[RowStatus, int]:
    """Append transitions whose states (and choices) ascend, as PRISM writes them.

    Parameters
    ----------
    keys, values, actions
        The transitions; 0 is no action.
    groups
        Choices of each state, which are counted here; None for Markov chains.
    lengths
        Transitions of each row, which are counted here; of the type that `groups` has.
    entries
        Filled from `place` on.
    place
        Where the last call ended; it moves on.

    Returns
    -------
    Status, and the transition that it is about.
    """
    integers = _integers(keys, groups)
    if place.filled + len(values) > len(entries.columns) or place.row >= len(lengths):
        raise ValueError(f"no room for {len(values)} transitions behind {place.filled}")
    _require_entries(entries, len(lengths), groups)
    if groups is not None and groups.dtype != lengths.dtype:
        raise ValueError("choices and transitions are counted in different types")
    states = len(lengths) if groups is None else len(groups)
    position = np.array([place.state, place.choice, place.row, place.filled], dtype=np.int64)
    about = np.zeros(1, dtype=np.int64)
    status = _APPEND_ROWS(
        *_transitions(keys, integers, values, actions),
        *(states, len(lengths), groups, lengths, _wide(lengths)),
        *(entries.columns, _wide(entries.columns), entries.values, entries.codes),
        *(position, about),
    )
    place.state, place.choice, place.row, place.filled = position.tolist()
    return RowStatus(status), int(about[0])


def count_choices(keys: KeyArray, groups: IndexArray, num_choices: int) -> tuple[RowStatus, int]:
    """Raise each state's number of choices to the largest choice met plus one.

    Parameters
    ----------
    keys
        The transitions.
    groups
        The choices of each state.
    num_choices
        Those of the model.

    Returns
    -------
    Status, and the transition that it is about.
    """
    _integers(keys, groups)
    about = np.zeros(1, dtype=np.int64)
    states = (len(groups), num_choices, groups, _wide(groups))
    return RowStatus(_COUNT_CHOICES(keys, len(keys), *states, about)), int(about[0])


def count_rows(
    keys: KeyArray, group_offsets: NDArray[np.int64] | None, lengths: IndexArray, num_states: int
) -> tuple[RowStatus, int]:
    """Count the transitions of each row, of transitions in any order.

    Parameters
    ----------
    keys
        The transitions.
    group_offsets
        Where the rows of each state start, shape (states + 1,); None for Markov chains.
    lengths
        Transitions of each row, which are counted here.
    num_states
        States of the model.

    Returns
    -------
    Status, and the transition that it is about.
    """
    integers = _integers(keys, group_offsets)
    _require_rows(group_offsets, len(lengths), num_states)
    about = np.zeros(1, dtype=np.int64)
    given = (keys, integers, len(keys), num_states)
    status = _COUNT_ROWS(*given, group_offsets, lengths, _wide(lengths), about)
    return RowStatus(status), int(about[0])


def place_rows(
    keys: KeyArray,
    values: FloatArray,
    actions: CodeArray,
    group_offsets: NDArray[np.int64] | None,
    next_entry: NDArray[np.int64],
    entries: Entries,
    num_states: int,
) -> tuple[RowStatus, int]:
    """Put transitions in any order where their rows have room.

    Parameters
    ----------
    keys, values, actions
        As in `append_rows`.
    group_offsets
        As in `count_rows`.
    next_entry
        Shape (rows,): where the next entry of each row goes; it moves on.
    entries
        Filled.
    num_states
        States of the model.

    Returns
    -------
    Status, and the transition that it is about.
    """
    integers = _integers(keys, group_offsets)
    _require_rows(group_offsets, len(next_entry), num_states)
    _require_entries(entries, len(next_entry), group_offsets)
    about = np.zeros(1, dtype=np.int64)
    status = _PLACE_ROWS(
        *_transitions(keys, integers, values, actions),
        *(num_states, group_offsets, next_entry, len(entries.columns)),
        *(entries.columns, _wide(entries.columns), entries.values, entries.codes),
        about,
    )
    return RowStatus(status), int(about[0])


def tidy_rows(
    offsets: IndexArray, columns: IndexArray, values: FloatArray, codes: CodeArray | None
) -> tuple[RowStatus, int, int]:
    """Sort each row by target; drop zeros; merge parallel transitions of different actions.

    Parameters
    ----------
    offsets, columns, values
        The matrix; the arrays are rewritten from the front.
    codes
        The action of each entry, or None; a merged one has the action `MERGED`.

    Returns
    -------
    Status; the row that it is about; its target, or the number of entries left.

    Raises
    ------
    MemoryError
        If there is no room to sort a row.
    """
    entries = int(offsets[-1])
    if len(columns) != entries or len(values) != entries:
        raise ValueError(f"{entries} entries, but {len(columns)} columns, {len(values)} values")
    if codes is not None and len(codes) != entries:
        raise ValueError(f"{entries} entries, but {len(codes)} actions")
    position = np.array([offsets[0], 0], dtype=np.int64)
    about = np.zeros(2, dtype=np.int64)
    rows = len(offsets) - 1
    arrays = (offsets, _wide(offsets), columns, _wide(columns), values, codes, position, about)
    for first in range(0, rows, ROWS_A_CALL):
        status = _TIDY_ROWS(first, min(first + ROWS_A_CALL, rows), *arrays)
        if status == RowStatus.NO_MEMORY:
            raise MemoryError("sorting the transitions of a state: out of memory")
        if status != RowStatus.OK:
            return RowStatus(status), int(about[0]), int(about[1])
    return RowStatus.OK, 0, int(position[1])


class TransitionRewards:
    """Rewards put beside the transitions of a model.

    Parameters
    ----------
    matrix
        The transitions, columns ascending in each row.
    group_offsets
        Where the rows of each state start, shape (states + 1,); None for Markov chains.

    Attributes
    ----------
    rewards
        Of each entry of the matrix, shape (entries,).
    """

    def __init__(self, matrix: CsrMatrix, group_offsets: IndexArray | None) -> None:
        self._states = matrix.num_columns
        self._rows = matrix.num_rows
        _require_rows(group_offsets, matrix.num_rows, matrix.num_columns)
        self._matrix = HostMatrix.of(matrix)
        self._groups = of_type_or_none(group_offsets, bool(self._matrix.wide_offsets))
        self.rewards: FloatArray = np.zeros(matrix.num_entries)
        self._seen: MaskArray = np.zeros(matrix.num_entries, dtype=np.bool_)

    def add(self, keys: KeyArray, values: FloatArray) -> tuple[RowStatus, int]:
        """Add rewards of transitions.

        Parameters
        ----------
        keys, values
            The transitions and their rewards.

        Returns
        -------
        Status, and the reward that it is about.
        """
        integers = _integers(keys, self._groups)
        if values.shape != (len(keys),):
            raise ValueError(f"{len(keys)} transitions, but rewards {values.shape}")
        about = np.zeros(1, dtype=np.int64)
        given = (self._matrix, self._groups, keys, integers, values, len(keys), self._states)
        status = _ADD_REWARDS(*given, self._seen, self.rewards, about)
        return RowStatus(status), int(about[0])

    def add_expected(self, state_rewards: FloatArray) -> None:
        """Add to rewards of states, shape (states,), what the entries of each row earn."""
        if state_rewards.shape != (self._rows,):
            raise ValueError(f"{self._rows} rows, but rewards {state_rewards.shape}")
        _ADD_EARNED(self._matrix, self.rewards, state_rewards)

    def of_rows(self) -> FloatArray:
        """Return what each row earns, shape (rows,).

        Where all transitions of a row have one reward, it is that, whatever the row adds up to.
        """
        earned: FloatArray = np.empty(self._rows)
        _REWARDS_OF_ROWS(self._matrix, self.rewards, earned)
        return earned


def _wide(array: IndexArray) -> bool:
    return array.dtype.itemsize > 4


def _integers(keys: KeyArray, groups: IndexArray | None) -> int:
    integers = 2 if groups is None else 3
    if keys.ndim != 2 or keys.shape[1] != integers:
        raise ValueError(f"keys of {integers} integers are wanted, not of shape {keys.shape}")
    return integers


def _transitions(
    keys: KeyArray, integers: int, values: FloatArray, actions: CodeArray
) -> tuple[KeyArray, int, FloatArray, CodeArray, int]:
    if values.shape != (len(keys),) or actions.shape != (len(keys),):
        raise ValueError(f"{len(keys)} keys, values {values.shape}, actions {actions.shape}")
    return keys, integers, values, actions, len(keys)


def _require_rows(group_offsets: IndexArray | None, num_rows: int, num_states: int) -> None:
    if group_offsets is None:
        fits = num_rows == num_states
    else:
        fits = len(group_offsets) == num_states + 1 and int(group_offsets[-1]) == num_rows
    if not fits:
        raise ValueError(f"{num_states} states do not have {num_rows} rows")


def _require_entries(entries: Entries, num_rows: int, groups: IndexArray | None) -> None:
    count, actions = len(entries.columns), len(entries.codes)
    if len(entries.values) != count or actions != (count if groups is None else num_rows):
        raise ValueError(f"{count} columns, {len(entries.values)} values, {actions} actions")
