"""Compressed sparse rows, the layout that every matrix enters the engines in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engines.errors import InvalidModelError

FloatArray: TypeAlias = NDArray[np.float64]
SingleArray: TypeAlias = NDArray[np.float32]
IndexArray: TypeAlias = NDArray[np.integer]
MaskArray: TypeAlias = NDArray[np.bool_]

INT32_MAX = 2**31 - 1

RUN_ENTRIES = 64
"""From so many entries a run of neighbouring rows on, slices are copied in less time than entries
are gathered."""

PART_ENTRIES = 1 << 20
"""Entries that a thread copies at a time."""

COPYING_THREADS = 8


def index_dtype(largest: int) -> type[np.signedinteger]:
    """Return the narrowest index type that holds `largest`: int32, or int64 beyond 2³¹ − 1.

    Parameters
    ----------
    largest
        The largest index, offset or count that will be stored.
    """
    return np.int32 if largest <= INT32_MAX else np.int64


def row_sums(row: IndexArray, values: FloatArray, num_rows: int) -> FloatArray:
    """Return the sum of the values of each row, shape (num_rows,), for entries given apart."""
    return np.bincount(row, weights=values, minlength=num_rows).astype(np.float64, copy=False)


def ranges(starts: IndexArray, lengths: IndexArray) -> NDArray[np.int64]:
    """Return the numbers of ranges, one range after the other.

    Parameters
    ----------
    starts, lengths
        Shape (ranges,): the first number of each, and how many there are.
    """
    behind = np.cumsum(lengths, dtype=np.int64)
    total = int(behind[-1]) if len(behind) else 0
    shift = starts.astype(np.int64, copy=False) - (behind - lengths)
    numbers: NDArray[np.int64] = np.arange(total) + np.repeat(shift, lengths)
    return numbers


def distinct(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in ascending order, each once.

    NumPy's `unique` does so too, but its first call loads masked arrays: 0.02 s, as long as many a
    first solve.

    Parameters
    ----------
    numbers
        One-dimensional.
    """
    ordered = np.sort(numbers)
    kept = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=kept[1:])
    return ordered[kept]


def joined(array: NDArray[Any], runs: Sequence[slice]) -> NDArray[Any]:
    """Return parts of an array one after the other, copied by several threads if they are long.

    Parameters
    ----------
    array
        One-dimensional.
    runs
        The parts, each with a start and a stop.
    """
    total = sum(run.stop - run.start for run in runs)
    if total < 4 * PART_ENTRIES:
        return np.concatenate([array[run] for run in runs])
    from concurrent.futures import ThreadPoolExecutor

    # What takes longest is that the system makes room for what is written first.
    result = np.empty(total, dtype=array.dtype)
    parts, at = [], 0
    for run in runs:
        for first in range(run.start, run.stop, PART_ENTRIES):
            last = min(first + PART_ENTRIES, run.stop)
            parts.append((at, first, last))
            at += last - first

    def copy(part: tuple[int, int, int]) -> None:
        at, first, last = part
        result[at : at + last - first] = array[first:last]

    with ThreadPoolExecutor(max(1, min(COPYING_THREADS, os.cpu_count() or 1))) as pool:
        for _ in pool.map(copy, parts):
            pass
    return result


@dataclass(frozen=True)
class CsrMatrix:
    """A sparse matrix by rows.

    Parameters
    ----------
    row_offsets
        Shape (rows + 1,), int32 or int64: where each row's entries start.
    columns
        Shape (entries,), int32 or int64.
    values
        Shape (entries,), float64.
    num_columns
        Number of columns.
    """

    row_offsets: IndexArray
    columns: IndexArray
    values: FloatArray
    num_columns: int

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.row_offsets) - 1

    @property
    def num_entries(self) -> int:
        """Number of stored entries."""
        return len(self.values)

    def row_lengths(self) -> IndexArray:
        """Return the number of entries of each row, shape (rows,)."""
        lengths: IndexArray = np.diff(self.row_offsets)
        return lengths

    def row_of_entry(self) -> IndexArray:
        """Return the row of each entry, shape (entries,)."""
        rows = np.arange(self.num_rows, dtype=index_dtype(self.num_rows))
        return np.repeat(rows, self.row_lengths())

    def row_sums(self) -> FloatArray:
        """Return the sum of each row, shape (rows,), its entries added one after the other."""
        from engines.host.products import row_sums

        return row_sums(self)

    def divide_rows(self, divisors: FloatArray) -> CsrMatrix:
        """Return the matrix with each row divided by a number.

        Parameters
        ----------
        divisors
            Shape (rows,); that of a row without entries does not matter.
        """
        return replace(self, values=self.values / divisors[self.row_of_entry()])

    def select_rows(self, rows: IndexArray) -> CsrMatrix:
        """Return the matrix of the given rows, in the given order; columns keep their numbers.

        Parameters
        ----------
        rows
            Row numbers, shape (selected,).
        """
        lengths = self.row_lengths()[rows]
        total = int(lengths.sum(dtype=np.int64))
        offsets = np.zeros(len(rows) + 1, dtype=index_dtype(total))
        np.cumsum(lengths, out=offsets[1:])
        breaks = np.flatnonzero(np.diff(rows) != 1) + 1
        if total >= RUN_ENTRIES * (len(breaks) + 1):
            firsts, lasts = rows[np.append(0, breaks)], rows[np.append(breaks, len(rows)) - 1]
            begins, ends = self.row_offsets[firsts], self.row_offsets[lasts + 1]
            runs = [slice(*run) for run in zip(begins.tolist(), ends.tolist(), strict=True)]
            columns, values = joined(self.columns, runs), joined(self.values, runs)
        else:
            from engines.host.products import gathered

            starts = self.row_offsets[rows]
            columns = gathered(starts, lengths, self.columns, total)
            values = gathered(starts, lengths, self.values, total)
        return CsrMatrix(offsets, columns, values, self.num_columns)

    def check(self, *, what: str = "matrix", row_name: str = "state") -> None:
        """Raise unless the arrays fit together and hold finite, non-negative entries.

        Parameters
        ----------
        what
            How messages name the matrix.
        row_name
            How messages name a row: "state", or "choice" for MDPs.

        Raises
        ------
        InvalidModelError
            Naming the first row and entry that are wrong.
        """
        if self.row_offsets.ndim != 1 or len(self.row_offsets) < 1 or self.row_offsets[0] != 0:
            raise InvalidModelError(f"{what}: row offsets must be one list that starts at 0")
        if np.any(np.diff(self.row_offsets) < 0):
            row = int(np.argmax(np.diff(self.row_offsets) < 0))
            raise InvalidModelError(f"{what}: the row offsets fall at {row_name} {row}")
        if not len(self.columns) == len(self.values) == int(self.row_offsets[-1]):
            raise InvalidModelError(
                f"{what}: {len(self.columns)} columns, {len(self.values)} values, but the row "
                f"offsets end at {int(self.row_offsets[-1])}"
            )
        self._check_entries(
            (self.columns < 0) | (self.columns >= self.num_columns),
            f"{what}: {row_name} {{row}} has a transition to {{column}}, but the states are "
            f"0 to {self.num_columns - 1}",
        )
        self._check_entries(
            ~np.isfinite(self.values) | (self.values < 0),
            f"{what}: {row_name} {{row}} has a transition to state {{column}} with value {{value}};"
            " values must be finite and not negative",
        )

    def _check_entries(self, wrong: MaskArray, message: str) -> None:
        if not np.any(wrong):
            return
        entry = int(np.argmax(wrong))
        row = int(np.searchsorted(self.row_offsets, entry, side="right")) - 1
        raise InvalidModelError(
            message.format(row=row, column=int(self.columns[entry]), value=self.values[entry])
        )
