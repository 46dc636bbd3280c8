"""Compressed sparse rows, the layout that every matrix enters the engines in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, extremes, index_dtype, runs_of
from engines.errors import InvalidModelError
from engines.host.compiled.rows import gathered, row_sums


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

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """The least and the greatest stored value, as `engines.arrays.extremes` tells them."""
        return extremes(self.values)

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

        Entries of rows that follow each other are shared with this matrix.

        Parameters
        ----------
        rows
            Row numbers, shape (selected,).
        """
        firsts, behind = runs_of(rows)
        starts = self.row_offsets[firsts]
        in_runs = self.row_offsets[behind] - starts
        total = int(in_runs.sum(dtype=np.int64))
        if len(firsts) == 1:
            own = self.row_offsets[firsts[0] : behind[0] + 1] - starts[0]
            offsets = own.astype(index_dtype(total), copy=False)
        else:
            offsets = np.zeros(len(rows) + 1, dtype=index_dtype(total))
            np.cumsum(self.row_offsets[rows + 1] - self.row_offsets[rows], out=offsets[1:])
        columns = gathered(starts, in_runs, self.columns, total)
        values = gathered(starts, in_runs, self.values, total)
        return CsrMatrix(offsets, columns, values, self.num_columns)

    def select_entries(self, keep: MaskArray) -> CsrMatrix:
        """Return the matrix without some of its entries, which count as 0.

        Parameters
        ----------
        keep
            Which entries stay, shape (entries,).
        """
        lengths = np.bincount(self.row_of_entry()[keep], minlength=self.num_rows)
        offsets = np.zeros(self.num_rows + 1, dtype=index_dtype(int(lengths.sum())))
        np.cumsum(lengths, out=offsets[1:])
        return CsrMatrix(offsets, self.columns[keep], self.values[keep], self.num_columns)

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
