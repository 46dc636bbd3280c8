"""Sums and copies of rows by the compiled library."""

from __future__ import annotations

from ctypes import c_int32, c_int64
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, IndexArray
from engines.host.compiled.library import (
    DOUBLES,
    INDICES,
    Array,
    Function,
    HostMatrix,
    Rows,
    indices,
)
from engines.host.compiled.shares import threads_for

_T = TypeVar("_T", bound=np.generic)

_ITEMS = Array(*(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)), "f4", "f8", "?")

_ROW_SUMS = Function("pg_row_sums", None, HostMatrix, DOUBLES)
_ADD_IN_ROWS = Function("pg_add_in_rows", None, HostMatrix, c_int64, INDICES, DOUBLES, DOUBLES)
_GATHER = Function(
    "pg_gather", None, c_int64, INDICES, INDICES, _ITEMS, c_int32, _ITEMS, c_int64, c_int32
)


def row_sums(matrix: Rows) -> FloatArray:
    """Return the sum of each row, shape (rows,), its entries added one after the other.

    Parameters
    ----------
    matrix
        The matrix.
    """
    sums: FloatArray = np.empty(matrix.num_rows)
    _ROW_SUMS(HostMatrix.of(matrix), sums)
    return sums


def add_in_rows(matrix: Rows, entries: IndexArray, values: FloatArray, sums: FloatArray) -> None:
    """Add values of some entries to the sums of their rows, one after the other.

    Parameters
    ----------
    matrix
        The matrix.
    entries
        The numbers of the entries, ascending, shape (added,).
    values
        Shape (added,).
    sums
        Shape (rows,), changed in place.
    """
    ordered, added = indices(entries), np.ascontiguousarray(values)
    _ADD_IN_ROWS(HostMatrix.of(matrix), len(ordered), ordered, added, sums)


def gathered(
    starts: IndexArray, lengths: IndexArray, items: NDArray[_T], total: int
) -> NDArray[_T]:
    """Return runs of items, one run after the other; of a single run, a part of the array given.

    Parameters
    ----------
    starts, lengths
        Where each run starts, and how many items it has, shape (runs,).
    items
        One-dimensional, of at most 8 bytes each.
    total
        How many items there are in all runs.
    """
    if len(starts) == 1:
        return items[starts[0] : starts[0] + total]
    found = np.empty(total, dtype=items.dtype)
    from_there = np.ascontiguousarray(items)
    runs = (indices(starts), indices(lengths))
    how = (total, threads_for(total))
    _GATHER(len(starts), *runs, from_there, items.dtype.itemsize, found, *how)
    return found
