"""How the rows of a matrix are shared out among threads."""

from __future__ import annotations

import os

import numpy as np

from engines.formats.csr import IndexArray

CHUNKS_PER_THREAD = 8
ENTRIES_PER_THREAD = 50_000
"""Waking a thread takes about as long as sweeping this many entries."""

ROW_COST = 2
"""What a row costs besides its entries, in entries."""


def cut_rows(row_offsets: IndexArray, pieces: int) -> IndexArray:
    """Cut the rows into pieces of about equal numbers of entries.

    Parameters
    ----------
    row_offsets
        Shape (rows + 1,).
    pieces
        How many.

    Returns
    -------
    Shape (pieces + 1,): piece k is rows ``bounds[k]`` to ``bounds[k + 1] - 1``.
    """
    rows = len(row_offsets) - 1
    total = int(row_offsets[-1]) + ROW_COST * rows
    wanted = np.linspace(0, total, pieces + 1)[:-1]
    # By halving: sums for all rows would be as large as the vectors of a solve.
    first, last = np.zeros(pieces, dtype=np.int64), np.full(pieces, rows, dtype=np.int64)
    while np.any(first < last):
        middle = (first + last) // 2
        before = row_offsets[middle] + ROW_COST * middle < wanted
        first, last = np.where(before, middle + 1, first), np.where(before, last, middle)
    return np.append(first, rows)


def num_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
