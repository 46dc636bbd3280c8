"""Rows, and choices of MDPs, copied out of a matrix of shared blocks by the compiled library."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int32, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, IndexArray, index_dtype
from engines.diagrams.hybrid import HybridMatrix
from engines.host.compiled.library import (
    DOUBLES,
    INDICES,
    NUMBERS,
    Array,
    Function,
    Structure,
    doubles,
    indices,
)
from engines.host.compiled.shares import CHUNKS_PER_THREAD, ROW_COST, threads_for
from engines.model.csr import CsrMatrix

_EITHER = Array(np.int32, np.int64)

ChoiceRows = tuple[CsrMatrix, IndexArray, NDArray[np.int32]]
"""A matrix; where the rows of each state start, shape (states + 1,); and the choice that each row
is, shape (rows,)."""


class HostBlocks(Structure):
    """`PgBlocks` of src/expand.cpp."""

    _fields_ = (
        ("strips", c_int64),
        *((name, c_void_p) for name in ("strip_states", "strip_jobs", "job_blocks")),
        *((name, c_void_p) for name in ("job_columns", "job_choices", "block_rows")),
        *((name, c_void_p) for name in ("local_offsets", "local_columns", "local_values")),
    )

    @classmethod
    def of(cls, hybrid: HybridMatrix) -> HostBlocks:
        """Return a hybrid matrix as the library reads it; its arrays are shared.

        Parameters
        ----------
        hybrid
            The matrix.

        Raises
        ------
        ValueError
            A job or a block leads to what is not there.
        """
        choices = hybrid.job_choices
        check_range(hybrid.job_blocks, 0, hybrid.num_blocks)
        check_range(hybrid.block_rows, 0, len(hybrid.local_offsets))
        check_range(hybrid.local_offsets, 0, len(hybrid.local_values) + 1)
        check_range(hybrid.strip_jobs, 0, hybrid.num_jobs + 1)
        arrays: tuple[NDArray[Any] | None, ...] = (
            *(indices(hybrid.strip_states), indices(hybrid.strip_jobs)),
            *(numbers_of(hybrid.job_blocks), indices(hybrid.job_columns)),
            None if choices is None else numbers_of(choices),
            *(indices(hybrid.block_rows), indices(hybrid.local_offsets)),
            *(numbers_of(hybrid.local_columns), doubles(hybrid.local_values)),
        )
        made = cls(hybrid.num_strips, *addresses(arrays))
        made._kept = arrays
        return made


_COUNT_CHOICES = Function(
    "pg_count_choices", None, HostBlocks, INDICES, c_int64, c_int32, NUMBERS, INDICES
)
_COPY_BLOCKS = Function(
    "pg_copy_blocks",
    None,
    *(HostBlocks, INDICES, c_int64, c_int32, INDICES, INDICES),
    *(c_int32, c_int32, _EITHER, NUMBERS, NUMBERS, DOUBLES),
)


def copy_rows(hybrid: HybridMatrix, rows: range | None = None) -> CsrMatrix:
    """Return rows of a hybrid matrix without choices.

    Parameters
    ----------
    hybrid
        The matrix; its columns must fit into 32 bits.
    rows
        Consecutive rows; None for all.
    """
    first, last = (0, hybrid.num_states) if rows is None else (rows.start, rows.stop)
    shares = _BlockShares(hybrid, first, last)
    before = shares.entries_before()
    made = MatrixArrays.empty(last - first, int(before[-1] - before[0]))
    _COPY_BLOCKS(
        *(HostBlocks.of(hybrid), *shares.words, before - before[0], shares.bounds - first),
        *(False, made.wide, made.offsets, None, made.columns, made.values),
    )
    return made.matrix(hybrid.num_columns)


def copy_choices(hybrid: HybridMatrix) -> ChoiceRows:
    """Return the choices of all states, one a row.

    Parameters
    ----------
    hybrid
        A matrix with choices; its columns must fit into 32 bits.
    """
    assert hybrid.job_choices is not None, "a hybrid matrix without choices"
    blocks, states = HostBlocks.of(hybrid), hybrid.num_states
    shares = _BlockShares(hybrid, 0, states)
    counts = np.empty(states, dtype=np.int32)
    entries = np.empty(len(shares.bounds) - 1, dtype=np.int64)
    _COUNT_CHOICES(blocks, *shares.words, counts, entries)
    groups = added_up(counts)
    made = MatrixArrays.empty(int(groups[-1]), hybrid.num_entries)
    numbers = np.empty(int(groups[-1]), dtype=np.int32)
    starts = np.append(0, np.cumsum(entries))
    _COPY_BLOCKS(
        *(blocks, *shares.words, starts, groups[shares.bounds].astype(np.int64)),
        *(True, made.wide, made.offsets, numbers, made.columns, made.values),
    )
    return made.matrix(hybrid.num_columns), groups, numbers


@dataclass(frozen=True)
class MatrixArrays:
    """A matrix that is being written.

    Parameters
    ----------
    offsets
        Shape (rows + 1,): where each row starts.
    columns, values
        Shape (entries,).
    """

    offsets: IndexArray
    columns: NDArray[np.int32]
    values: FloatArray

    @classmethod
    def empty(cls, rows: int, entries: int) -> MatrixArrays:
        """Return room for a matrix of which nothing is known but its size.

        Parameters
        ----------
        rows, entries
            How many there are.
        """
        offsets = np.empty(rows + 1, dtype=index_dtype(entries))
        offsets[-1] = entries
        return cls.of(offsets)

    @classmethod
    def of(cls, offsets: IndexArray) -> MatrixArrays:
        """Return room for the entries of rows.

        Parameters
        ----------
        offsets
            Where each row starts, and the end; it is shared.
        """
        entries = int(offsets[-1])
        return cls(offsets, np.empty(entries, dtype=np.int32), np.empty(entries))

    @property
    def wide(self) -> bool:
        """Whether offsets have 64 bits."""
        return self.offsets.dtype.itemsize == 8

    def matrix(self, num_columns: int) -> CsrMatrix:
        """Return the matrix, which shares the arrays.

        Parameters
        ----------
        num_columns
            How many columns it has.
        """
        return CsrMatrix(self.offsets, self.columns, self.values, num_columns)


class _BlockShares:
    """Rows of a hybrid matrix in pieces of about equal work."""

    def __init__(self, hybrid: HybridMatrix, first: int, last: int) -> None:
        self._hybrid = hybrid
        self._places = np.zeros(hybrid.num_jobs + 1, dtype=np.int64)
        np.cumsum(hybrid.block_entries()[hybrid.job_blocks], out=self._places[1:])
        # Entries before each strip; a row costs a few more.
        self._places = self._places[hybrid.strip_jobs]
        work = self._places + ROW_COST * hybrid.strip_states
        begin, end = np.interp((first, last), hybrid.strip_states, work).tolist()
        threads = threads_for(int(end - begin))
        pieces = 1 if threads == 1 else threads * CHUNKS_PER_THREAD
        wanted = np.interp(np.linspace(begin, end, pieces + 1), work, hybrid.strip_states)
        self.bounds: NDArray[np.int64] = np.clip(wanted.astype(np.int64), first, last)
        self.bounds[0], self.bounds[-1] = first, last
        self.words = (self.bounds, pieces, threads)

    def entries_before(self) -> NDArray[np.int64]:
        """Return the number of entries before each piece, shape (pieces + 1,)."""
        return np.array([self._before(int(row)) for row in self.bounds], dtype=np.int64)

    def _before(self, row: int) -> int:
        hybrid = self._hybrid
        if row >= hybrid.num_states:
            return int(self._places[-1])
        strip = int(np.searchsorted(hybrid.strip_states, row, side="right")) - 1
        jobs = hybrid.job_blocks[hybrid.strip_jobs[strip] : hybrid.strip_jobs[strip + 1]]
        starts = hybrid.block_rows[jobs]
        ends = starts + (row - int(hybrid.strip_states[strip]))
        inside = (hybrid.local_offsets[ends] - hybrid.local_offsets[starts]).sum()
        return int(self._places[strip]) + int(inside)


def added_up(counts: NDArray[np.int32]) -> IndexArray:
    """Return where each of some runs starts, and the end, shape (runs + 1,).

    Parameters
    ----------
    counts
        Their lengths, shape (runs,).
    """
    total = int(counts.sum(dtype=np.int64))
    offsets: IndexArray = np.zeros(len(counts) + 1, dtype=index_dtype(total))
    np.cumsum(counts, out=offsets[1:])
    return offsets


def numbers_of(array: IndexArray) -> NDArray[np.int32]:
    """Return the array as the library reads indices of 32 bits.

    Parameters
    ----------
    array
        What fits into them.
    """
    return np.ascontiguousarray(array, dtype=np.int32)


def addresses(arrays: Sequence[NDArray[Any] | None]) -> list[int | None]:
    """Return where arrays lie, which are to be kept by whoever points there.

    Parameters
    ----------
    arrays
        Contiguous arrays, or None for a null pointer.
    """
    return [None if array is None else array.ctypes.data for array in arrays]


def check_range(array: IndexArray, first: int, end: int) -> None:
    """Raise ValueError unless all numbers of an array lie in a range.

    Parameters
    ----------
    array
        Any integers.
    first, end
        The least that is allowed, and the first that is not.
    """
    if len(array) and not (first <= array.min() and array.max() < end):
        raise ValueError(f"{array.min()} to {array.max()} are not all of {first} to {end - 1}")
