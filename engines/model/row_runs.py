"""Rows of a chain's matrix as runs: neighbours that read the same distances with the same numbers.

Row i + 1 of a run has its columns one further than row i, and the same values. A model of many
states that a few commands describe has few kinds of rows, in long runs: a queueing network of 10⁹
states has some 10⁵ runs of twenty kinds. What is stored is the runs and one row of each kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, MaskArray, distinct, offsets_of, ranges
from engines.errors import UnsupportedError

LEAST_MEAN = 16
"""Runs are kept where they have so many rows in the mean."""

BEFORE_GIVING_UP = 1 << 20
"""So many runs may be found before their mean length is looked at."""

MOST_PIECES = 1 << 28
"""The most entries of runs that a transposition may put in order, of some 40 bytes each."""

ROWS_OF_A_PART = 1 << 22
"""That are written out in one go."""


@dataclass(frozen=True)
class RowRuns:
    """The rows of a square matrix as runs.

    Parameters
    ----------
    firsts
        Shape (runs + 1,), int64: the first row of each run, then the number of rows.
    kinds
        Shape (runs,), int64: what kind of row each run has.
    pair_starts
        Shape (kinds + 1,), int64: where the pairs of a kind start.
    distances
        Shape (pairs,), int64: column less row, ascending in a kind.
    numbers
        Shape (pairs,), float64.
    kept
        What questions have found of the rows, by its type, for those to come.
    """

    firsts: NDArray[np.int64]
    kinds: NDArray[np.int64]
    pair_starts: NDArray[np.int64]
    distances: NDArray[np.int64]
    numbers: FloatArray
    kept: dict[type, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def num_rows(self) -> int:
        """Number of rows, and of columns."""
        return int(self.firsts[-1])

    @property
    def num_runs(self) -> int:
        """Number of runs."""
        return len(self.kinds)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Rows of each run, shape (runs,)."""
        return np.diff(self.firsts)

    @property
    def pairs_of_runs(self) -> NDArray[np.int64]:
        """Entries of each row of a run, shape (runs,)."""
        pairs: NDArray[np.int64] = np.diff(self.pair_starts)[self.kinds]
        return pairs

    @property
    def num_entries(self) -> int:
        """Number of entries of the matrix."""
        return int(self.lengths @ self.pairs_of_runs)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (self.firsts, self.kinds, self.pair_starts, self.distances, self.numbers)
        return sum(array.nbytes for array in arrays)

    def transposed(self) -> RowRuns:
        """Return the transposed matrix.

        Raises
        ------
        UnsupportedError
            If its runs are too many to be put in order.
        """
        pairs = self.pairs_of_runs
        which = ranges(self.pair_starts[self.kinds], pairs)
        away = self.distances[which]
        begins = np.repeat(self.firsts[:-1], pairs) + away
        ends = np.repeat(self.firsts[1:], pairs) + away
        # Between two neighbouring cuts all rows get their entries from the same runs.
        cuts = distinct(np.concatenate((begins, ends, np.array([0, self.num_rows]))))
        low = np.searchsorted(cuts, begins)
        pieces = np.searchsorted(cuts, ends) - low
        if int(pieces.sum()) > MOST_PIECES:
            raise UnsupportedError(
                f"the transposed matrix is cut into {int(pieces.sum())} pieces of runs, more than "
                f"{MOST_PIECES}"
            )
        piece = ranges(low, pieces)
        source = np.repeat(np.arange(len(away)), pieces)
        order = np.lexsort((-away[source], piece))
        source = source[order]
        starts = offsets_of(np.bincount(piece, minlength=len(cuts) - 1))
        return _joined(cuts, starts, -away[source], self.numbers[which][source])

    def entries(
        self, first_run: int, last_run: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
        """Return the rows of some runs, from `first_run` to before `last_run`.

        Returns
        -------
        The lengths of the rows, and the columns and values of their entries.
        """
        lengths, kinds = self.lengths[first_run:last_run], self.kinds[first_run:last_run]
        kind = np.repeat(kinds, lengths)
        pairs = np.diff(self.pair_starts)[kind]
        which = ranges(self.pair_starts[kind], pairs)
        rows = np.arange(self.firsts[first_run], self.firsts[last_run])
        return pairs, np.repeat(rows, pairs) + self.distances[which], self.numbers[which]

    def cut(self, longest: int) -> RowRuns:
        """Return the same rows in runs of at most so many of them."""
        parts = -(-self.lengths // longest)
        kinds = np.repeat(self.kinds, parts)
        firsts = np.repeat(self.firsts[:-1], parts) + longest * ranges(np.zeros_like(parts), parts)
        firsts = np.append(firsts, self.num_rows)
        return RowRuns(firsts, kinds, self.pair_starts, self.distances, self.numbers)


@dataclass(frozen=True)
class RowsInRuns:
    """The rows of all states of a chain.

    Parameters
    ----------
    runs
        The rows.
    deadlocks
        Shape (states,): the states whose only transition is one that no command has made.
    """

    runs: RowRuns
    deadlocks: MaskArray


class RunCollector:
    """Finds runs in a matrix that comes in blocks of rows, one after the other.

    Parameters
    ----------
    arrays
        The module of the blocks' arrays: NumPy, or CuPy for blocks on a device.
    """

    def __init__(self, arrays: Any = np) -> None:
        self._xp = arrays
        self._rows = 0
        self._found = 0
        self._parts: list[tuple[NDArray[np.int64], ...]] = []
        self._numbers: list[FloatArray] = []

    def add(self, row_offsets: Any, columns: Any, values: Any) -> None:
        """Append a block of rows.

        Parameters
        ----------
        row_offsets
            Shape (rows + 1,), of integers, from 0: where each row's entries start.
        columns, values
            Shape (entries,): the columns, counted from the matrix's first, and the values.

        Raises
        ------
        UnsupportedError
            If the runs are too short for it to be worth while.
        """
        xp, rows = self._xp, len(row_offsets) - 1
        if rows == 0:
            return
        begins = xp.flatnonzero(~_repeating(xp, row_offsets, columns, values))
        starts = self._host(row_offsets[begins]).astype(np.int64)
        lengths = self._host(row_offsets[begins + 1]).astype(np.int64) - starts
        entries = xp.asarray(ranges(starts, lengths))
        firsts = self._rows + self._host(begins).astype(np.int64)
        away = self._host(columns[entries]).astype(np.int64) - np.repeat(firsts, lengths)
        self._parts.append((firsts, lengths, away))
        self._numbers.append(self._host(values[entries]))
        self._rows += rows
        self._found += len(firsts)
        if self._found > BEFORE_GIVING_UP and LEAST_MEAN * self._found > self._rows:
            raise UnsupportedError(f"{self._rows} rows make {self._found} runs of equal ones")

    def runs(self) -> RowRuns:
        """Return the runs of all rows."""
        firsts, lengths, away = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        numbers = np.concatenate(self._numbers)
        run = np.repeat(np.arange(len(firsts)), lengths)
        order = np.lexsort((away, run))
        run, away, numbers = run[order], away[order], numbers[order]
        # Several entries in one column are one.
        new = np.ones(len(run), dtype=np.bool_)
        new[1:] = (run[1:] != run[:-1]) | (away[1:] != away[:-1])
        places = np.flatnonzero(new)
        numbers = np.add.reduceat(numbers, places) if len(places) else numbers
        starts = offsets_of(np.bincount(run[places], minlength=len(firsts)))
        return _joined(np.append(firsts, self._rows), starts, away[places], numbers)

    def _host(self, array: Any) -> NDArray[Any]:
        found: NDArray[Any] = array if self._xp is np else array.get()
        return found


def _repeating(xp: Any, row_offsets: Any, columns: Any, values: Any) -> Any:
    """Return which rows of a block go on with what the row before does, shape (rows,)."""
    lengths = xp.diff(row_offsets)
    same = xp.zeros(len(lengths), dtype=xp.bool_)
    same[1:] = lengths[1:] == lengths[:-1]
    if not len(columns):
        return same
    marks = xp.bincount(row_offsets[1:-1], minlength=len(columns))[: len(columns)]
    # The entry at the same place of the row before, where that has as many.
    before = xp.maximum(xp.arange(len(columns)) - lengths[xp.cumsum(marks)], 0)
    differs = (columns - columns[before] != 1) | (values != values[before])
    counted = xp.zeros(len(columns) + 1, dtype=xp.int64)
    xp.cumsum(differs, dtype=xp.int64, out=counted[1:])
    same &= counted[row_offsets[1:]] == counted[row_offsets[:-1]]
    return same


def _joined(
    firsts: NDArray[np.int64],
    starts: NDArray[np.int64],
    distances: NDArray[np.int64],
    numbers: FloatArray,
) -> RowRuns:
    """Return runs from the row of each of their parts; neighbours of one kind become one."""
    kinds, chosen = _kinds(starts, distances, numbers)
    kept = np.ones(len(kinds), dtype=np.bool_)
    kept[1:] = kinds[1:] != kinds[:-1]
    lengths = np.diff(starts)[chosen]
    pairs = ranges(starts[chosen], lengths)
    firsts = np.append(firsts[:-1][kept], firsts[-1])
    return RowRuns(firsts, kinds[kept], offsets_of(lengths), distances[pairs], numbers[pairs])


def _kinds(
    starts: NDArray[np.int64], distances: NDArray[np.int64], numbers: FloatArray
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the kind of each row, and a row of each kind."""
    lengths = np.diff(starts)
    words = np.stack((distances, np.ascontiguousarray(numbers).view(np.int64)), axis=1)
    kinds = np.zeros(len(lengths), dtype=np.int64)
    chosen: list[NDArray[np.int64]] = []
    count = 0
    for length in distinct(lengths):
        rows = np.flatnonzero(lengths == length)
        if length == 0:
            kinds[rows] = count
            chosen.append(rows[:1])
            count += 1
            continue
        places = ranges(starts[rows], lengths[rows])
        keys = words[places].reshape(-1).view(np.dtype((np.void, 16 * int(length))))
        _, some, inverse = np.unique(keys, return_index=True, return_inverse=True)
        kinds[rows] = count + inverse.ravel()
        chosen.append(rows[some])
        count += len(some)
    return kinds, np.concatenate(chosen) if chosen else np.empty(0, dtype=np.int64)
