"""Rows as segments of one list of products, and their sums by a backward segmented scan."""

from __future__ import annotations

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.model.csr import CsrMatrix


def flags(matrix: CsrMatrix) -> MaskArray:
    """Return where a row's first entry lies, shape (entries,); a row without entries has none.

    Parameters
    ----------
    matrix
        Any matrix.
    """
    starts = np.zeros(matrix.num_entries, dtype=np.bool_)
    starts[matrix.row_offsets[:-1][matrix.row_lengths() > 0]] = True
    return starts


def scanned(products: FloatArray, starts: MaskArray, tile: int) -> FloatArray:
    """Return for each entry the sum from it to the end of its segment or of its tile.

    Parameters
    ----------
    products
        Shape (entries,).
    starts
        Where a segment starts, shape (entries,).
    tile
        Entries of a tile.
    """
    sums = np.array(products, dtype=np.float64)
    for entry in range(len(sums) - 2, -1, -1):
        if not starts[entry + 1] and (entry + 1) % tile:
            sums[entry] += sums[entry + 1]
    return sums


def product(matrix: CsrMatrix, x: FloatArray, tile: int) -> FloatArray:
    """Return the matrix times a vector, shape (rows,), put together from the tiles of a scan.

    Parameters
    ----------
    matrix
        Any matrix.
    x
        Shape (columns,).
    tile
        Entries of a tile.

    Notes
    -----
    D. Bosnacki, S. Edelkamp, D. Sulewski, A. Wijs, *Parallel probabilistic model checking on
    general purpose graphics processors*, 2011, Algorithms 4 to 6.
    """
    sums = scanned(matrix.values * x[matrix.columns], flags(matrix), tile)
    result = np.zeros(matrix.num_rows)
    for row in range(matrix.num_rows):
        begin, end = int(matrix.row_offsets[row]), int(matrix.row_offsets[row + 1])
        if begin < end:
            heads = range((begin // tile + 1) * tile, end, tile)
            result[row] = sums[begin] + sum(sums[head] for head in heads)
    return result
