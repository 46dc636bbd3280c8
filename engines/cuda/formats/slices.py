"""Slices of 32 rows whose entries are interleaved: where they start, how far they reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.backend import cupy
from engines.cuda.formats.layout import BESIDE, SLICE, Source, nbytes
from engines.cuda.modules import BLOCK_THREADS, Launcher
from engines.cuda.prepare import _scan
from engines.cuda.transfer import to_device
from engines.errors import UnsupportedError
from engines.formats.csr import INT32_MAX, IndexArray
from engines.formats.interleaved import BINS, best_bound


@dataclass(frozen=True)
class Slices:
    """The places of a matrix's entries.

    Parameters
    ----------
    bound
        Entries of a row that are interleaved; those behind them lie in a tail.
    slots
        Places in all, tails included.
    lengths, starts
        Entries of each row in a byte, and where each slice starts.
    long_rows, tails
        Rows beyond the bound, ascending, and where the tail of each starts.
    """

    bound: int
    slots: int
    lengths: Any
    starts: Any
    long_rows: Any
    tails: Any

    @property
    def placing(self) -> tuple[Any, ...]:
        """What a kernel needs to find an entry's place."""
        cp = cupy()
        long = cp.int32(len(self.long_rows) if self.long_rows is not None else 0)
        return (self.starts, cp.int32(self.bound), self.long_rows, self.tails, long)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The kernels' arguments for the slices."""
        return (self.lengths, *self.placing)

    @property
    def nbytes(self) -> int:
        """Bytes that a sweep reads of them."""
        return nbytes(self.lengths, self.starts, self.long_rows, self.tails)


def measured(source: Source, launcher: Launcher) -> tuple[IndexArray, IndexArray]:
    """Return how many rows, and how many slices by their longest row, have each length.

    Parameters
    ----------
    source
        The matrix.
    launcher
        Launches kernels for its type of row offsets.

    Returns
    -------
    Two arrays of shape (256,); the last number is of that length or more.
    """
    cp = cupy()
    bins = cp.zeros((2, BINS), dtype=cp.uint64)
    arguments = (source.row_offsets, launcher.offset_dtype(source.rows), bins[0], bins[1])
    launcher.launch("measure_slices", source.rows, *arguments, module=BESIDE)
    rows, slices = bins.get().astype(np.int64)
    return rows, slices


def sliced(source: Source, launcher: Launcher, entry_bytes: int) -> Slices:
    """Choose a bound and find every slice's place.

    Parameters
    ----------
    source
        The matrix.
    launcher
        Launches kernels for its type of row offsets.
    entry_bytes
        Bytes of an entry, which padding wastes.

    Raises
    ------
    UnsupportedError
        When the padding brings the places beyond what the row offsets' type can number.
    """
    cp, wide = cupy(), launcher.offset_dtype
    rows, slices = measured(source, launcher)
    bound, interleaved, num_long = best_bound(rows, slices, source.entries, entry_bytes)
    behind = source.entries - int(np.minimum(np.arange(BINS), bound) @ rows)
    if interleaved + behind > INT32_MAX and launcher.offset_type == "int":
        raise UnsupportedError("with padding there are more entries than 32 bits number")
    starts = cp.zeros(-(-source.rows // SLICE) + 1, dtype=wide)
    lengths = cp.empty(source.rows, dtype=cp.uint8)
    long = cp.empty((2, max(num_long, 1)), dtype=cp.int64)
    launcher.launch(
        "size_slices",
        source.rows,
        *(source.row_offsets, wide(source.rows), cp.int32(bound), starts[1:], lengths),
        *(cp.zeros(1, dtype=cp.int32), long[0], long[1]),
        module=BESIDE,
        block=BLOCK_THREADS,
    )
    _scan(starts, launcher)
    if not num_long:
        return Slices(bound, interleaved, lengths, starts, None, None)
    long_rows, long_lengths = long.get()
    order = np.argsort(long_rows)
    tails = np.full(num_long + 1, interleaved, dtype=np.int64)
    tails[1:] += np.cumsum(long_lengths[order] - bound)
    return Slices(
        *(bound, int(tails[-1]), lengths, starts),
        to_device(long_rows[order], wide),
        to_device(tails, wide),
    )
