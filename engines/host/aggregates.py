"""Aggregates of a chain's states, and the flows between them, by the compiled library."""

from __future__ import annotations

from collections.abc import Iterable
from ctypes import c_double, c_int32, c_int64, c_void_p
from dataclasses import dataclass

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.host.compiled.library import INDICES, NUMBERS, SINGLES, Function, Structure
from engines.host.compiled.shares import even_shares

NONE = -1
"""An aggregate without a partner, or a place without a member."""


@dataclass(frozen=True)
class Chain:
    """The flows of one level, by the state that they lead to; loops are left out.

    Parameters
    ----------
    offsets, columns, values
        Compressed rows: row j holds the flows i → j, with column i; indices are of 32 bits.
    out
        What leaves each state, shape (states,).
    """

    offsets: IndexArray
    columns: IndexArray
    values: FloatArray
    out: FloatArray


class HostFlows(Structure):
    """`PgFlows` of src/flows.hpp."""

    _fields_ = (
        ("states", c_int64),
        ("offsets", c_void_p),
        ("columns", c_void_p),
        ("values", c_void_p),
        ("out", c_void_p),
    )

    @classmethod
    def of(cls, chain: Chain) -> HostFlows:
        """Return a chain as the library reads it; its arrays are shared, and some are written.

        Parameters
        ----------
        chain
            The chain.

        Raises
        ------
        TypeError
            If an array has another type or is not contiguous.
        ValueError
            If the sizes do not fit each other.
        """
        states, entries = len(chain.out), len(chain.values)
        if len(chain.offsets) != states + 1 or len(chain.columns) != entries:
            raise ValueError(f"{states} states do not have {len(chain.offsets)} offsets")
        if chain.offsets[0] != 0 or chain.offsets[-1] != entries:
            raise ValueError(f"offsets end at {chain.offsets[-1]}, not at {entries} entries")
        indices, numbers = (chain.offsets, chain.columns), (chain.values, chain.out)
        pointers = [address(array, np.int32) for array in indices]
        pointers += [address(array, np.float64) for array in numbers]
        made = cls(states, *pointers)
        made._kept = (*indices, *numbers)
        return made


def address(array: IndexArray | FloatArray | None, dtype: type[np.generic]) -> int | None:
    """Return where an array lies, for a field of a structure; None for none.

    Parameters
    ----------
    array
        The array.
    dtype
        What it must be of.

    Raises
    ------
    TypeError
        If it is of another type, or not contiguous.
    """
    if array is None:
        return None
    if array.dtype != dtype or not array.flags.c_contiguous:
        raise TypeError(f"a contiguous array of {np.dtype(dtype)} is wanted, not of {array.dtype}")
    return array.ctypes.data


class _HostAggregates(Structure):
    """`PgAggregates` of src/aggregates.cpp."""

    _fields_ = (
        ("count", c_int64),
        ("width", c_int64),
        ("members", c_void_p),
        ("aggregate", c_void_p),
    )

    @classmethod
    def of(cls, members: IndexArray, aggregate: IndexArray) -> _HostAggregates:
        pointers = [address(array, np.int32) for array in (members, aggregate)]
        made = cls(*members.shape, *pointers)
        made._kept = (members, aggregate)
        return made


_FIND_PARTNERS = Function(
    "pg_find_partners",
    None,
    *(HostFlows, _HostAggregates, c_int32, c_double, INDICES, c_int64, c_int32),
    *(NUMBERS, SINGLES, NUMBERS, NUMBERS),
)
_JOIN_PARTNERS = Function("pg_join_partners", None, _HostAggregates, NUMBERS, NUMBERS, NUMBERS)
_JOIN_ENTRIES = Function(
    "pg_join_entries", c_int64, HostFlows, _HostAggregates, NUMBERS, NUMBERS, NUMBERS, NUMBERS
)
_ENTRIES_BY_COLUMN = Function(
    "pg_entries_by_column", None, c_int64, c_int64, NUMBERS, NUMBERS, NUMBERS
)


class Aggregates:
    """How the states of a chain are joined; at first, each is an aggregate of its own.

    Parameters
    ----------
    chain
        The chain.
    """

    def __init__(self, chain: Chain) -> None:
        self._flows, self._entries = HostFlows.of(chain), len(chain.values)
        self.aggregate: IndexArray = np.arange(len(chain.out), dtype=np.int32)
        """The aggregate of each state, shape (states,), int32."""
        self.members: IndexArray = self.aggregate.copy()[:, None]
        """The states of each, `NONE` behind the last, shape (aggregates, 2 ** pairings), int32."""

    def pair(self, rounds: Iterable[int], enough: float) -> None:
        """Join pairs of aggregates along their strongest flows.

        In each round those on one of two sides choose their strongest neighbour on the other, and
        who is chosen accepts the strongest.

        Parameters
        ----------
        rounds
            Their numbers, which decide who is on which side.
        enough
            A partner must be tied at least this many times as strongly as the strongest neighbour.
        """
        count, width = self.members.shape
        shares = even_shares(count, self._entries)
        partner = np.full(count, NONE, dtype=np.int32)
        room = (
            np.empty(count, dtype=np.int32),
            np.empty(count, dtype=np.float32),
            np.empty(count, dtype=np.int32),
        )
        before = _HostAggregates.of(self.members, self.aggregate)
        for number in rounds:
            _FIND_PARTNERS(self._flows, before, number, enough, *shares, *room, partner)
        left = int(np.count_nonzero((partner == NONE) | (partner > np.arange(count))))
        members = np.empty((left, 2 * width), dtype=np.int32)
        aggregate = np.empty_like(self.aggregate)
        _JOIN_PARTNERS(before, partner, members, aggregate)
        self.members, self.aggregate = members, aggregate

    def entries(self) -> tuple[IndexArray, IndexArray, IndexArray]:
        """Return the entries of the chain of aggregates.

        Returns
        -------
        Row offsets, shape (aggregates + 1,), and columns, of no aggregate's own row; the entry that
        each of the chain's adds to, `NONE` within an aggregate, shape (entries,). All are int32.
        """
        count = len(self.members)
        seen_at, offsets = np.empty(count, dtype=np.int32), np.empty(count + 1, dtype=np.int32)
        columns, adds_to = (np.empty(self._entries, dtype=np.int32) for _ in range(2))
        joined = _HostAggregates.of(self.members, self.aggregate)
        total = int(_JOIN_ENTRIES(self._flows, joined, seen_at, offsets, columns, adds_to))
        return offsets, columns[:total].copy(), adds_to


def entries_by_column(columns: IndexArray, count: int) -> tuple[IndexArray, IndexArray]:
    """Return the entries of each column, in their order.

    Parameters
    ----------
    columns
        Shape (entries,), int32, each from 0 to ``count - 1``.
    count
        How many columns there are.

    Returns
    -------
    Where those of each column start, and the end, shape (columns + 1,); the entries. Both int32.
    """
    starts, found = np.empty(count + 1, dtype=np.int32), np.empty_like(columns)
    _ENTRIES_BY_COLUMN(len(columns), count, columns, starts, found)
    return starts, found
