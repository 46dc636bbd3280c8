"""How the rows of a matrix are shared out among the library's threads."""

from __future__ import annotations

from engines.cpu.chunks import CHUNKS_PER_THREAD, ENTRIES_PER_THREAD, ROW_COST, cut_rows, num_cores
from engines.formats.csr import IndexArray
from engines.system import SweepSystem


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
        repaid = (int(offsets[-1]) + ROW_COST * rows) // ENTRIES_PER_THREAD
        self.threads = max(1, min(num_cores(), repaid))
        pieces = 1 if self.threads == 1 else self.threads * CHUNKS_PER_THREAD
        self.bounds = cut_rows(offsets, pieces)
        """Where each piece starts, and the end: shape (pieces + 1,), int64."""

    @property
    def pieces(self) -> int:
        """How many pieces there are."""
        return len(self.bounds) - 1


def shares_of(system: SweepSystem) -> Shares:
    """Return how a system is shared out.

    Parameters
    ----------
    system
        The system.
    """
    offsets, groups = system.matrix.row_offsets, system.group_offsets
    return Shares(offsets if groups is None else offsets[groups], system.matrix.num_rows)
