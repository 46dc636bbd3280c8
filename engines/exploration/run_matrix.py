"""A matrix that is kept as runs of its rows until somebody reads its entries one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from engines.arrays import FloatArray, IndexArray, index_dtype
from engines.host.expansion.room import require_host_bytes
from engines.model.csr import CsrMatrix
from engines.model.row_runs import ROWS_OF_A_PART, RowRuns

_WRITTEN_OUT = ("row_offsets", "columns", "values")


class RunMatrix(CsrMatrix):
    """A square sparse matrix by rows, which are written out when they are first read.

    Attributes
    ----------
    runs
        Its rows; None for a matrix that was made of another's parts.

    Notes
    -----
    Columns are ascending, and several entries in one place are one. Reading the rows raises
    `engines.errors.DeviceMemoryError` where the host has no room for them.
    """

    runs: RowRuns | None = None

    @classmethod
    def of(cls, runs: RowRuns) -> RunMatrix:
        """Return the matrix of some runs."""
        made = object.__new__(cls)
        object.__setattr__(made, "runs", runs)
        object.__setattr__(made, "num_columns", runs.num_rows)
        return made

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return super().num_rows if self.runs is None else self.runs.num_rows

    @property
    def num_entries(self) -> int:
        """Number of stored entries."""
        return super().num_entries if self.runs is None else self.runs.num_entries

    def __repr__(self) -> str:
        """Name the sizes; the rows are not written out for it."""
        return f"RunMatrix({self.num_rows} rows, {self.num_entries} entries)"

    def __getattr__(self, name: str) -> Any:
        """Write the rows out."""
        if name not in _WRITTEN_OUT or self.runs is None:
            raise AttributeError(name)
        for array, written in zip(_WRITTEN_OUT, _written(self.runs), strict=True):
            object.__setattr__(self, array, written)
        return getattr(self, name)


def runs_of_matrix(matrix: CsrMatrix) -> RowRuns | None:
    """Return the runs that a matrix is kept as, or None."""
    return matrix.runs if isinstance(matrix, RunMatrix) else None


def _written(runs: RowRuns) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Return row offsets, columns and values."""
    rows, entries = runs.num_rows, runs.num_entries
    index, offset = index_dtype(rows), index_dtype(entries)
    needed = (np.dtype(index).itemsize + 8) * entries + np.dtype(offset).itemsize * rows
    what = f"the matrix of {rows} states and {entries} transitions, which this takes one by one,"
    require_host_bytes(needed, what)
    offsets = np.zeros(rows + 1, dtype=offset)
    columns, values = np.empty(entries, dtype=index), np.empty(entries)
    parts = runs.cut(ROWS_OF_A_PART)
    first_run, done = 0, 0
    while first_run < parts.num_runs:
        first = int(parts.firsts[first_run])
        end = int(np.searchsorted(parts.firsts, first + ROWS_OF_A_PART, side="right")) - 1
        lengths, part_columns, part_values = parts.entries(first_run, end)
        np.cumsum(lengths, out=offsets[first + 1 : int(parts.firsts[end]) + 1])
        offsets[first + 1 : int(parts.firsts[end]) + 1] += done
        columns[done : done + len(part_columns)] = part_columns
        values[done : done + len(part_values)] = part_values
        first_run, done = end, done + len(part_columns)
    return offsets, columns, values
