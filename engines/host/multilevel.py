"""Cycles over aggregates of states by the compiled library."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_double, c_int32, c_int64, c_void_p
from dataclasses import dataclass

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.host.aggregates import Chain, HostFlows, address
from engines.host.compiled.library import DOUBLES, INDICES, Function, Structure
from engines.host.compiled.shares import CHUNKS_PER_THREAD, Shares, cut_rows


@dataclass(frozen=True)
class Coarsening:
    """How a level's states are joined, and the chain of the aggregates.

    Parameters
    ----------
    members
        States of each aggregate, −1 for none, shape (aggregates, width).
    aggregate
        Of each state, shape (states,).
    adds_to
        The coarse entry that each entry adds to, −1 within an aggregate, shape (entries,).
    chain
        The coarse chain; values and sums are those of the last cycle.
    from_offsets, from_entries
        Its entries by the aggregate that they lead from, in compressed rows.
    """

    members: IndexArray
    aggregate: IndexArray
    adds_to: IndexArray
    chain: Chain
    from_offsets: IndexArray
    from_entries: IndexArray


class HostCycle(Structure):
    """`PgCycle` of src/multilevel.cpp: what is the same in each cycle."""

    _fields_ = (
        ("omega", c_double),
        ("floor", c_double),
        ("largest", c_double),
        ("before", c_int32),
        ("after", c_int32),
    )

    @classmethod
    def of(cls, omega: float, floor: float, largest: float, before: int, after: int) -> HostCycle:
        """Return how cycles go.

        Parameters
        ----------
        omega
            Relaxation of the sweeps.
        floor
            No value is let fall below.
        largest
            What one cycle multiplies or divides the values of aggregates by at most.
        before, after
            Sweeps on each level on the way down and on the way up.

        Raises
        ------
        ValueError
            If a number of sweeps is odd or negative.
        """
        if before < 0 or after < 0 or before % 2 or after % 2:
            raise ValueError(f"{before} and {after} sweeps are not even numbers of them")
        return cls(omega, floor, largest, before, after)


class _HostLevel(Structure):
    """`PgLevel` of src/multilevel.cpp."""

    _fields_ = (
        ("flows", HostFlows),
        ("x", c_void_p),
        ("spare", c_void_p),
        ("bounds", c_void_p),
        ("pieces", c_int64),
        ("aggregate", c_void_p),
        ("adds_to", c_void_p),
        ("rows", c_void_p),
        ("row_bounds", c_void_p),
        ("entry_bounds", c_void_p),
        ("sum_pieces", c_int64),
        ("from_offsets", c_void_p),
        ("from_entries", c_void_p),
        ("threads", c_int32),
    )


_JOIN_FLOWS = Function("pg_join_flows", None, POINTER(_HostLevel), DOUBLES)
_CYCLE = Function(
    "pg_cycle", None, HostCycle, POINTER(_HostLevel), c_int64, DOUBLES, DOUBLES, DOUBLES
)
_RESCALE = Function(
    "pg_rescale",
    None,
    *(INDICES, c_int64, c_int32, DOUBLES, c_double, c_double, c_int32, DOUBLES, DOUBLES),
)


class Level:
    """A chain as cycles work on it.

    Parameters
    ----------
    chain
        The chain.
    below
        How the next level comes from it; None at the last.
    is_first
        Whether the values of its states come with each cycle; else there is room for them.

    Raises
    ------
    ValueError
        If the sizes do not fit each other.
    """

    def __init__(self, chain: Chain, below: Coarsening | None, is_first: bool) -> None:
        self.chain, self.below = chain, below
        self.shares = Shares(chain.offsets, len(chain.out))
        self.host = _HostLevel(flows=HostFlows.of(chain), threads=self.shares.threads)
        self._kept: list[IndexArray | FloatArray | None] = []
        self._set(np.int64, bounds=self.shares.bounds)
        self.host.pieces = self.shares.pieces
        if not is_first:
            room = [np.empty(len(chain.out)) for _ in range(2)]
            self._set(np.float64, x=room[0], spare=room[1])
        if below is not None:
            self._set_below(below)

    def _set_below(self, below: Coarsening) -> None:
        states, entries = len(self.chain.out), len(self.chain.values)
        if len(below.aggregate) != states or len(below.adds_to) != entries:
            raise ValueError(f"a chain of {states} states is not the one that was joined")
        row_bounds, rows, entry_bounds = _pieces(below, self.shares.threads)
        self._set(np.int64, row_bounds=row_bounds, entry_bounds=entry_bounds)
        self._set(np.int32, rows=rows, aggregate=below.aggregate, adds_to=below.adds_to)
        self._set(np.int32, from_offsets=below.from_offsets, from_entries=below.from_entries)
        self.host.sum_pieces = len(row_bounds) - 1

    def _set(self, dtype: type[np.generic], **arrays: IndexArray | FloatArray | None) -> None:
        for name, array in arrays.items():
            setattr(self.host, name, address(array, dtype))
        self._kept.extend(arrays.values())


def _pieces(below: Coarsening, threads: int) -> tuple[IndexArray, IndexArray | None, IndexArray]:
    """Return row bounds, rows and entry bounds: pieces of the sums that threads may work on.

    The rows of a piece ascend, because rows in the order of their aggregates take four times as
    long to read.
    """
    offsets, states = below.chain.offsets, len(below.aggregate)
    if threads == 1:
        return np.array([0, states]), None, np.array([0, offsets[-1]], dtype=np.int64)
    bounds = cut_rows(offsets, threads * CHUNKS_PER_THREAD)
    # NumPy sorts 16 bits by digits.
    piece = (np.searchsorted(bounds, below.aggregate, side="right") - 1).astype(np.uint16)
    rows = np.argsort(piece, kind="stable")
    row_bounds = np.searchsorted(piece[rows], np.arange(len(bounds)))
    return row_bounds, rows.astype(np.int32), offsets[bounds].astype(np.int64)


def set_coarse_flows(level: Level, x: FloatArray) -> None:
    """Set the flows of the chain of aggregates to those that the values of the states make.

    Parameters
    ----------
    level
        A level that is not the last.
    x
        Shape (states,).

    Raises
    ------
    ValueError
        If there is no next level, or another number of states.
    """
    if level.below is None or len(x) != len(level.chain.out):
        raise ValueError(f"{len(level.chain.out)} states, joined or not, but {len(x)} values")
    pair = (level, Level(level.below.chain, None, False))
    _JOIN_FLOWS(_in_a_row(pair), x)


def _in_a_row(levels: Sequence[Level]) -> ctypes.Array[_HostLevel]:
    return (_HostLevel * len(levels))(*(level.host for level in levels))


class HostCycles:
    """Cycles over levels.

    Parameters
    ----------
    how
        How they go.
    levels
        The levels, the finest first.

    Raises
    ------
    ValueError
        If one does not come from the one before.
    """

    def __init__(self, how: HostCycle, levels: Sequence[Level]) -> None:
        for level, after in zip(levels, (*levels[1:], None), strict=True):
            if (level.below and level.below.chain) is not (after and after.chain):
                raise ValueError("a level does not come from the one before")
        self._how, self._levels, self._in_a_row = how, levels, _in_a_row(levels)
        self._states = len(levels[0].chain.out)
        self._dense = np.empty(len(levels[-1].chain.out) ** 2)

    @property
    def threads(self) -> int:
        """How many threads share out the first level."""
        return self._levels[0].shares.threads

    def cycle(self, x: FloatArray) -> FloatArray:
        """Return values after a cycle, shape (states,).

        Parameters
        ----------
        x
            Those before, shape (states,).
        """
        if len(x) != self._states:
            raise ValueError(f"{self._states} states, but {len(x)} values")
        after = np.array(x)
        room = (np.empty_like(after), self._dense)
        _CYCLE(self._how, self._in_a_row, len(self._levels), after, *room)
        return after

    def rescale(
        self, before: FloatArray, factor: float, least: float, absolute: bool, after: FloatArray
    ) -> float:
        """Multiply what a cycle has made by a factor; return the largest change that it makes.

        Parameters
        ----------
        before, after
            Values before and after the cycle, shape (states,); the latter are overwritten.
        factor
            The factor.
        least
            The changes of values up to this are not looked at.
        absolute
            Whether changes are absolute.

        Returns
        -------
        The largest change; NaN if one is.
        """
        if not len(before) == len(after) == self._states:
            raise ValueError(f"{self._states} states, but {len(before)} and {len(after)} values")
        shares = self._levels[0].shares
        changes = np.empty(shares.pieces)
        pieces = (shares.bounds, shares.pieces, shares.threads)
        _RESCALE(*pieces, before, factor, least, absolute, after, changes)
        return float(changes.max())
