"""How the rows of a matrix are shared out among the library's threads."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from engines.arrays import FloatArray, IndexArray, SingleArray
from engines.process.cores import num_cores

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


def require_vectors(states: int, *vectors: FloatArray | SingleArray) -> None:
    """Raise ValueError unless vectors have an entry a state: compiled code looks at no length.

    Parameters
    ----------
    states
        How many states there are.
    vectors
        One-dimensional.
    """
    if any(len(vector) != states for vector in vectors):
        lengths = " and ".join(str(len(vector)) for vector in vectors)
        raise ValueError(f"{states} states, but vectors of {lengths}")


def threads_for(entries: int) -> int:
    """Return how many threads a loop repays.

    Parameters
    ----------
    entries
        How many it reads between two waits of the threads for each other.
    """
    return max(1, min(num_cores(), entries // ENTRIES_PER_THREAD))


def check_bounds(bounds: IndexArray, end: int) -> None:
    """Raise ValueError unless bounds rise from 0 to the end.

    Parameters
    ----------
    bounds
        Where pieces or colours start, and the end of the last.
    end
        What that is to be.
    """
    if not len(bounds) or bounds[0] != 0 or bounds[-1] != end or (np.diff(bounds) < 0).any():
        raise ValueError(f"bounds do not rise from 0 to {end}: {bounds}")


class Shares:
    """How the rows, or groups of rows, of a system are shared out among threads.

    Parameters
    ----------
    offsets
        Where the entries of each row or group start, shape (rows or groups + 1,).
    rows
        How many rows there are.
    """

    def __init__(self, offsets: IndexArray, rows: int) -> None:
        self.threads = threads_for(int(offsets[-1]) + ROW_COST * rows)
        if self.threads == 1:
            self.bounds: IndexArray = np.array([0, len(offsets) - 1])
        else:
            self.bounds = cut_rows(offsets, self.threads * CHUNKS_PER_THREAD)
        """Where each piece starts, and the end: shape (pieces + 1,), int64."""

    @property
    def pieces(self) -> int:
        """How many pieces there are."""
        return len(self.bounds) - 1


def even_shares(units: int, entries: int) -> tuple[IndexArray, int, int]:
    """Share out rows, or groups of them, by their number, for loops that run only once.

    Parameters
    ----------
    units
        How many rows or groups there are.
    entries
        How many entries they have.

    Returns
    -------
    Where each piece starts, and the end, shape (pieces + 1,), int64; the number of pieces; that of
    threads.
    """
    threads = threads_for(entries)
    if threads == 1:
        return np.array([0, units]), 1, 1
    pieces = threads * CHUNKS_PER_THREAD
    return np.linspace(0, units, pieces + 1).astype(np.int64), pieces, threads


class ColourShares:
    """How the states of each colour are shared out among threads, one colour after the other.

    Parameters
    ----------
    bounds
        Where the states of each colour start, shape (colours + 1,).
    offsets
        Where the entries of each state start, shape (states + 1,).
    """

    def __init__(self, bounds: IndexArray, offsets: IndexArray) -> None:
        colours = len(bounds) - 1
        self.threads = threads_for(int(offsets[-1]) // max(colours, 1))
        pieces = 1 if self.threads == 1 else self.threads * CHUNKS_PER_THREAD
        starts = [np.zeros(1, dtype=np.int64)]
        for first, last in pairwise(bounds.tolist()):
            within = offsets[first : last + 1]
            cut = (
                cut_rows(within - within[0], pieces) if pieces > 1 else np.array([0, last - first])
            )
            starts.append(cut[1:] + first)
        self.firsts = np.arange(0, colours * pieces + 1, pieces, dtype=np.int64)
        """The first piece of each colour, and the end of the last, shape (colours + 1,)."""
        self.starts: IndexArray = np.concatenate(starts)
        """The first state of each piece, and the end of the last, shape (pieces + 1,), int64."""
