"""Rows interleaved by slices of 32, as a warp reads them; long rows go on behind all slices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.formats.csr import CsrMatrix, FloatArray, IndexArray, index_dtype

SLICE = 32
"""Rows of a slice, as many as a warp has threads."""

BINS = 256
"""Lengths that are told apart when lengths are counted, the last one for all that are longer."""

LONG_ROW = 255
"""Stands for the length of a row beyond the bound."""

TAIL_WEIGHT = 4
"""An entry behind the slices costs as much as so many within: its loads are not adjacent."""

TAIL_BYTES = 64
"""What finding its tail costs a long row, in bytes."""


def best_bound(
    row_bins: IndexArray, slice_bins: IndexArray, entries: int, entry_bytes: int
) -> tuple[int, int, int]:
    """Return how many entries of a row to interleave, so that a sweep moves the least.

    Parameters
    ----------
    row_bins, slice_bins
        Shape (256,): how many rows have each length, and how many slices have a longest row of it;
        the last number is of that length or more.
    entries
        Entries of the matrix.
    entry_bytes
        Bytes of an entry.

    Returns
    -------
    The bound, below 255; the places in slices, padding included; and the rows beyond the bound.
    """
    lengths = np.arange(BINS)
    best = (np.inf, 0, 0, 0)
    for bound in range(LONG_ROW):
        reach = np.minimum(lengths, bound)
        places = SLICE * int(slice_bins @ reach)
        behind = entries - int(row_bins @ reach)
        long = int(row_bins[bound + 1 :].sum())
        cost = entry_bytes * (places + TAIL_WEIGHT * behind) + TAIL_BYTES * long
        if cost < best[0]:
            best = (cost, bound, places, long)
    return best[1:]


@dataclass(frozen=True)
class Interleaved:
    """The places of a matrix's entries, and what lies there.

    Parameters
    ----------
    bound
        Entries of a row that are interleaved.
    lengths
        Shape (rows,), uint8: entries of each row, or 255 for more than the bound.
    starts
        Shape (slices + 1,): where each slice starts.
    long_rows, tails
        Rows beyond the bound, ascending, shape (long,), and where the tail of each starts, and the
        last ends, shape (long + 1,).
    place
        Shape (entries,): the place of each entry of the matrix.
    columns, values
        Shape (places,): what lies in each place; zero where nothing does.
    num_columns
        Number of columns.
    """

    bound: int
    lengths: IndexArray
    starts: IndexArray
    long_rows: IndexArray
    tails: IndexArray
    place: IndexArray
    columns: IndexArray
    values: FloatArray
    num_columns: int

    def decode(self) -> CsrMatrix:
        """Return the matrix, entry by entry as it was."""
        lengths = self.lengths.astype(np.int64)
        lengths[self.long_rows] = self.bound + np.diff(self.tails)
        rows = len(lengths)
        offsets = np.zeros(rows + 1, dtype=index_dtype(int(lengths.sum())))
        np.cumsum(lengths, out=offsets[1:])
        places: list[int] = []
        for row in range(rows):
            first = int(self.starts[row // SLICE]) + row % SLICE
            within = min(int(lengths[row]), self.bound)
            places.extend(first + SLICE * k for k in range(within))
            if self.lengths[row] == LONG_ROW:
                at = int(np.searchsorted(self.long_rows, row))
                places.extend(range(int(self.tails[at]), int(self.tails[at + 1])))
        where = np.array(places, dtype=np.int64)
        return CsrMatrix(offsets, self.columns[where], self.values[where], self.num_columns)


def encode(matrix: CsrMatrix, entry_bytes: int = 12) -> Interleaved:
    """Interleave a matrix.

    Parameters
    ----------
    matrix
        Any matrix.
    entry_bytes
        Bytes of an entry, which the choice of the bound weighs padding by.

    Notes
    -----
    The restructuring of A. Wijs, J.-P. Katoen, D. Bosnacki, *GPU-based graph decomposition into
    strongly connected and maximal end components*, 2014; the long rows keep their numbers here.
    """
    lengths = matrix.row_lengths().astype(np.int64)
    slices = -(-matrix.num_rows // SLICE)
    padded = np.zeros(slices * SLICE, dtype=np.int64)
    padded[: matrix.num_rows] = lengths
    longest = padded.reshape(slices, SLICE).max(axis=1, initial=0)
    bins = [np.bincount(np.minimum(x, BINS - 1), minlength=BINS) for x in (lengths, longest)]
    bound, places, _ = best_bound(bins[0], bins[1], matrix.num_entries, entry_bytes)
    starts = np.zeros(slices + 1, dtype=np.int64)
    np.cumsum(SLICE * np.minimum(longest, bound), out=starts[1:])
    long_rows = np.flatnonzero(lengths > bound)
    tails = np.full(len(long_rows) + 1, places, dtype=np.int64)
    tails[1:] += np.cumsum(lengths[long_rows] - bound)
    row = matrix.row_of_entry().astype(np.int64)
    k = np.arange(matrix.num_entries) - matrix.row_offsets[:-1].astype(np.int64)[row]
    place = starts[row // SLICE] + row % SLICE + SLICE * k
    behind = k >= bound
    at = np.searchsorted(long_rows, row[behind])
    place[behind] = tails[at] + k[behind] - bound
    columns = np.zeros(int(tails[-1]), dtype=matrix.columns.dtype)
    values = np.zeros(int(tails[-1]))
    columns[place], values[place] = matrix.columns, matrix.values
    bytes_of_rows = np.where(lengths > bound, LONG_ROW, lengths).astype(np.uint8)
    return Interleaved(
        *(bound, bytes_of_rows, starts, long_rows, tails, place, columns, values),
        matrix.num_columns,
    )
