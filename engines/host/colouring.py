"""Colours by the compiled library: who reads whom, levels, what is fresh, better colours."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_double, c_int32, c_int64, c_void_p
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, IndexArray, index_dtype, offsets_of
from engines.host.compiled.library import INDICES, NUMBERS, Function, HostMatrix, Structure
from engines.host.compiled.shares import CHUNKS_PER_THREAD, even_shares, threads_for
from engines.model.csr import CsrMatrix
from engines.systems.moves import MOVES, UNIT, step_keys
from engines.systems.one_sided import SweepSystem

NOT_COMPUTED = -1
"""Marks entries for states that keep their values."""

WeightArray = NDArray[np.int32]

_PIECES = (HostMatrix, INDICES, c_int64, c_int32)
_WEIGH = Function("pg_weigh", None, *_PIECES, c_double, NUMBERS)
_FIND_LEVELS = Function("pg_find_levels", None, HostMatrix, c_int32, NUMBERS)
_FRESH_ENTRIES = Function("pg_fresh_entries", None, *_PIECES, NUMBERS, INDICES)
_FRESH_WEIGHTS = Function(
    "pg_fresh_weights", None, *_PIECES, NUMBERS, NUMBERS, NUMBERS, c_int64, INDICES
)
_COUNT_NEIGHBOURS = Function(
    "pg_count_neighbours", None, HostMatrix, NUMBERS, NUMBERS, INDICES, INDICES
)
_LIST_NEIGHBOURS = Function(
    "pg_list_neighbours",
    None,
    *(HostMatrix, NUMBERS, NUMBERS, INDICES, INDICES, NUMBERS, NUMBERS),
)


class HostMoves(Structure):
    """`PgMoves` of src/colouring.cpp."""

    _fields_ = (
        ("starts", c_void_p),
        ("middles", c_void_p),
        ("neighbours", c_void_p),
        ("weights", c_void_p),
        ("order", c_void_p),
        ("awake", c_void_p),
        ("wanted", c_void_p),
        ("gains", c_void_p),
        ("colours", c_void_p),
        ("sums", c_void_p),
        ("count", c_int64),
    )

    @classmethod
    def of(cls, arrays: tuple[NDArray[Any], ...], count: int) -> HostMoves:
        """Return arrays as the library reads them; they are shared.

        Parameters
        ----------
        arrays
            In the order of the fields, contiguous and of their types.
        count
            Number of colours.
        """
        made = cls(*(array.ctypes.data for array in arrays), count)
        made._kept = arrays
        return made


_MOVE = Function("pg_move", None, HostMoves, NUMBERS, NUMBERS, INDICES, c_int64, c_int64, c_int32)


@dataclass(frozen=True)
class Dependencies:
    """Which of the states that a sweep computes read which others.

    Parameters
    ----------
    offsets, reads
        Compressed rows: entry by entry, the update whose value update u reads, or `NOT_COMPUTED`.
    weights
        The entries' values over the sum of all that u reads, in units of 1 / `UNIT`, shape
        (entries,).
    """

    offsets: IndexArray
    reads: IndexArray
    weights: WeightArray

    @property
    def updates(self) -> int:
        """Number of states that a sweep computes."""
        return len(self.offsets) - 1

    def levels(self, backwards: bool) -> IndexArray:
        """Return the step at which each state is computed by sequential Gauss-Seidel.

        Parameters
        ----------
        backwards
            Whether the last state comes first.
        """
        return _levels(self._graph, self.updates, backwards)

    def fresh_entries(self, colours: IndexArray) -> float:
        """Return the share of entries between computed states that see fresh values.

        Parameters
        ----------
        colours
            Shape (updates,), int32.
        """
        self._check(colours)
        shares = even_shares(self.updates, len(self.reads))
        sums = np.zeros((shares[1], 2), dtype=np.int64)
        _FRESH_ENTRIES(self._graph, *shares, colours, sums)
        fresh, entries = (int(total) for total in sums.sum(axis=0))
        return fresh / max(entries, 1)

    def fresh_weights(self, levels: IndexArray, counts: Sequence[int]) -> list[float]:
        """Return that share by weight, each row weighing the same, if levels are coloured.

        Parameters
        ----------
        levels
            Shape (updates,), int32.
        counts
            For each of these numbers of colours, a state's colour being its level modulo it.
        """
        self._check(levels)
        depth = int(levels.max(initial=0)) + 1
        colours = np.arange(depth, dtype=np.int32)[:, None] % np.array(counts, dtype=np.int32)
        shares = even_shares(self.updates, len(self.reads))
        sums = np.zeros((shares[1], len(counts) + 1), dtype=np.int64)
        _FRESH_WEIGHTS(self._graph, *shares, self.weights, levels, colours, len(counts), sums)
        *fresh, weight = (int(total) for total in sums.sum(axis=0))
        return [share / weight if weight > 0 else 0.0 for share in fresh]

    def move_to_better_colours(self, colours: IndexArray, count: int, levels: IndexArray) -> None:
        """Move states, in place, to the colour where the most weight of their entries is fresh.

        Parameters
        ----------
        colours
            Shape (updates,), int32, each from 0 to ``count - 1``.
        count
            Number of colours.
        levels
            Shape (updates,), int32: the steps of sequential Gauss-Seidel.

        Notes
        -----
        As `engines.systems.moves` says; no move makes less weight fresh.
        """
        self._check(colours, levels)
        if self.updates and not 0 <= colours.min() <= colours.max() < count:
            raise ValueError(f"colours are from 0 to {count - 1}")
        keys, _ = step_keys(levels, MOVES[0])
        # Renumbered by the steps of the first pass, what a step looks at lies together.
        order = _by_step(keys)
        there = colours[order]
        depth = int(levels.max(initial=0)) + 1
        steps_of = [move.bands_of(depth) * move.classes for move in MOVES]
        threads = [threads_for(2 * len(self.reads) // steps) for steps in steps_of]
        moves = HostMoves.of(
            (
                *self._neighbours(order),
                order,
                np.ones(self.updates, dtype=np.bool_),
                np.zeros(self.updates, dtype=np.int32),
                np.zeros(self.updates, dtype=np.int64),
                there,
                np.zeros((max(threads), count + 1), dtype=np.int64),
            ),
            count,
        )
        for move, of_pass in zip(MOVES, threads, strict=True):
            keys, steps = step_keys(levels, move)
            keys = keys[order]
            bounds = offsets_of(np.bincount(keys, minlength=steps))
            pieces = 1 if of_pass == 1 else of_pass * CHUNKS_PER_THREAD
            _MOVE(moves, keys, _by_step(keys), bounds, steps, pieces, of_pass)
        colours[order] = there

    def _neighbours(
        self, order: IndexArray
    ) -> tuple[IndexArray, IndexArray, IndexArray, WeightArray]:
        """Return the updates that each reads, and those that read it, one after the other.

        That is: where those of each begin, shape (updates + 1,), where the readers among them
        begin, shape (updates,), then the updates and the weights of the entries. Updates have
        their places in `order` for numbers.
        """
        places = np.empty(self.updates, dtype=np.int32)
        middles = np.zeros(self.updates, dtype=np.int64)
        starts = np.zeros(self.updates + 1, dtype=np.int64)
        _COUNT_NEIGHBOURS(self._graph, order, places, middles, starts)
        others = np.empty(int(starts[-1]), dtype=np.int32)
        beside = np.empty(int(starts[-1]), dtype=np.int32)
        cursors = (starts[:-1].copy(), middles.copy())
        _LIST_NEIGHBOURS(self._graph, self.weights, places, *cursors, others, beside)
        return starts, middles, others, beside

    def _check(self, *arrays: IndexArray) -> None:
        for array in arrays:
            if len(array) != self.updates:
                raise ValueError(f"{self.updates} updates, but {len(array)} numbers for them")

    @cached_property
    def _graph(self) -> HostMatrix:
        return _graph(self.offsets, self.reads)


def _graph(offsets: IndexArray, reads: IndexArray) -> HostMatrix:
    # A graph of these functions has no values of its own.
    return HostMatrix.of(CsrMatrix(offsets, reads, np.empty(0), len(offsets) - 1))


def _by_step(keys: IndexArray) -> IndexArray:
    # Of numbers of 16 bits, NumPy's stable order is a radix sort.
    return np.argsort(keys.astype(np.uint16), kind="stable").astype(np.int32)


def find_levels(offsets: IndexArray, reads: IndexArray, backwards: bool) -> IndexArray:
    """Return the steps at which sequential Gauss-Seidel computes states, shape (updates,), int32.

    Parameters
    ----------
    offsets, reads
        As in `Dependencies`.
    backwards
        Whether the last state comes first.
    """
    return _levels(_graph(offsets, reads), len(offsets) - 1, backwards)


def _levels(graph: HostMatrix, updates: int, backwards: bool) -> IndexArray:
    levels = np.zeros(updates, dtype=np.int32)
    _FIND_LEVELS(graph, backwards, levels)
    return levels


def dependencies(system: SweepSystem) -> Dependencies:
    """Return which states read which others.

    Parameters
    ----------
    system
        A system without scaling.
    """
    offsets, reads = system.matrix.row_offsets, system.matrix.columns
    if system.group_offsets is not None:
        offsets = offsets[system.group_offsets]
    if system.states is not None:
        update = np.full(system.num_states, NOT_COMPUTED, dtype=index_dtype(system.num_states))
        update[system.states] = np.arange(len(system.states), dtype=update.dtype)
        reads = update[reads]
    elif system.num_updates < system.num_states:
        reads = np.where(reads < system.num_updates, reads, NOT_COMPUTED)
    return Dependencies(offsets, reads, _weights(offsets, system.matrix.values))


def _weights(offsets: IndexArray, values: FloatArray) -> WeightArray:
    weights = np.empty(len(values), dtype=np.int32)
    rows = len(offsets) - 1
    matrix = HostMatrix.of(CsrMatrix(offsets, np.empty(0, dtype=np.int32), values, rows))
    _WEIGH(matrix, *even_shares(rows, len(values)), UNIT, weights)
    return weights
