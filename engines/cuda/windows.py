"""Windows of x in shared memory, for the sweeps of banded matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX
from engines.cuda.driver import cupy
from engines.cuda.formats.layout import BESIDE, SLICE, Layout
from engines.cuda.modules import Launcher
from engines.cuda.prepare import DeviceSystem
from engines.cuda.transfer import to_device
from engines.model.choice import Format

KERNEL = "sweep_rows_by_window"
"""What sweeps by windows."""

TOGETHER = 4
"""Rows that a thread takes at a time, as in the kernel."""

LEAST_AHEAD = 2
"""Pieces of x that a window has to hold beside what lies between the farthest entries of a row: one
for the rows at work, and one that is on its way for those that follow."""

LEAST_CHUNK = 1 << 13
"""From so many rows a block on, a matrix is swept by windows. On an H200, microseconds over those
without: CSR, tandem 767, 1023, 2047 and 4095 20 over 20, 32 over 36, 127 over 143 and 532 over 564;
patterns 8.3 over 9.1, 12 over 14, 42 over 61 and 159 over 270."""

WIDTHS_A_CHUNK = 2
"""A block has to have so many times the rows that its window is wide: it fills the window first.
Cluster 320 in CSR, with 1.2 times: 101 over 92 microseconds."""


@dataclass(frozen=True)
class Manner:
    """How a format is swept by windows.

    Parameters
    ----------
    blocks
        Threads of a block, the faster first: fewer take smaller pieces, which leave room for a
        wider window.
    most_ahead
        The most pieces that a window holds beside what it needs; the kernel has barriers for 16.
    """

    blocks: tuple[int, ...]
    most_ahead: int


MANNERS = {
    # What the window leaves of shared memory is the cache of the entries: with 16 pieces tandem
    # 1023 and 2047 take 35 and 137 microseconds in place of 32 and 127.
    Format.CSR: Manner((1024, 512), 3),
    Format.PATTERNS: Manner((832, 512), 16),
}
"""The formats that are swept by windows. Values are slower by these, and entries had no matrix
whose band fits."""

RESERVED_BYTES = 2048
"""Of a block's shared memory, what the kernel declares."""

LEAST_CAPABILITY = 90
"""Compute capability, ten times, that the kernel needs."""


@dataclass(frozen=True)
class Reach:
    """How far from the diagonal a matrix has entries.

    Parameters
    ----------
    below, above
        Columns before the row's own, and behind it.
    """

    below: int
    above: int


@dataclass(frozen=True)
class WindowShape:
    """How a sweep by windows is launched.

    Parameters
    ----------
    below, above
        The window's reach, whole slices.
    size
        Entries of the ring.
    ring_at
        Where in shared memory it lies, in bytes.
    shared_bytes
        All dynamic shared memory of a block.
    block, chunk, blocks
        Threads of a block, its rows, and how many blocks there are.
    """

    below: int
    above: int
    size: int
    ring_at: int
    shared_bytes: int
    block: int
    chunk: int
    blocks: int

    def in_single(self, layout: Layout, rows: int, launcher: Launcher) -> WindowShape | None:
        """Return how the same is launched for a vector in single precision.

        Parameters
        ----------
        layout, rows, launcher
            As in `window_of`.
        """
        return window_of(layout, Reach(self.below, self.above), rows, launcher, 4)


def windows_serve(launcher: Launcher) -> bool:
    """Return whether a device can sweep by windows.

    Parameters
    ----------
    launcher
        Launches its kernels.
    """
    return launcher.capability >= LEAST_CAPABILITY


def reach_of(device: DeviceSystem, rows: int, launcher: Launcher) -> Reach:
    """Return how far from the diagonal a matrix has entries.

    Parameters
    ----------
    device
        A system in CSR on the current device, whose rows are numbered as its states are.
    rows
        How many.
    launcher
        Launches kernels for the type of its offsets.
    """
    cp = cupy()
    found = to_device(np.zeros(2), np.int32)
    arguments = (device.row_offsets, device.columns, launcher.offset_dtype(rows), found)
    launcher.launch("measure_reach", rows, *arguments, module=BESIDE)
    below, above = (int(distance) for distance in cp.asnumpy(found))
    return Reach(below, above)


def reach_of_patterns(layout: Layout) -> Reach:
    """Return how far from the diagonal rows have entries.

    Parameters
    ----------
    layout
        Rows as patterns, whose columns are relative to the row.
    """
    pairs = layout.arguments[2].get()
    # A pair is a value and a distance, as in `engines/cuda/src/formats/pairs.cuh`.
    distances = pairs[:, 1].view(np.int64)
    return Reach(*(int(side.max(initial=0)) for side in (-distances, distances)))


def window_of(
    layout: Layout, reach: Reach, rows: int, launcher: Launcher, value_bytes: int = 8
) -> WindowShape | None:
    """Return how a layout is swept by windows; None where that does not pay or does not fit.

    Parameters
    ----------
    layout
        The matrix.
    reach
        How far from the diagonal it has entries.
    rows
        How many it has.
    launcher
        Launches the kernels of this layout.
    value_bytes
        Bytes of an entry of x.
    """
    manner = MANNERS.get(layout.matrix_format)
    if manner is None or rows > INT32_MAX // 2 or not windows_serve(launcher):
        return None
    below, above = (-(-distance // SLICE) * SLICE for distance in (reach.below, reach.above))
    ring_at = -(-layout.shared_bytes // 16) * 16
    head_bytes = layout.arguments[0].itemsize if layout.matrix_format is Format.PATTERNS else 0
    again = SLICE * (TOGETHER - 1)
    room = launcher.shared_bytes - RESERVED_BYTES - ring_at - (below + above + again) * value_bytes
    chunk = -(-rows // launcher.processors)
    chunk = -(-chunk // (SLICE * TOGETHER)) * SLICE * TOGETHER
    if chunk < max(LEAST_CHUNK, WIDTHS_A_CHUNK * (below + above)):
        return None
    for block in manner.blocks:
        step = block * TOGETHER
        ahead = min(room // (step * (value_bytes + head_bytes)), manner.most_ahead)
        if ahead >= LEAST_AHEAD and chunk >= step:
            size = below + above + ahead * step
            shared = ring_at + (size + again) * value_bytes + ahead * step * head_bytes
            return WindowShape(below, above, size, ring_at, shared, block, chunk, -(-rows // chunk))
    return None


def sweep_by_window(
    shape: WindowShape, launcher: Launcher, rows: int, matrix: tuple[Any, ...], *rest: Any
) -> None:
    """Queue a sweep on the current stream.

    Parameters
    ----------
    shape
        How it is launched.
    launcher
        Launches the kernels of the layout.
    rows
        Rows of the matrix.
    matrix
        The layout's arguments, and the right-hand side.
    rest
        What follows: relaxation, iterates, test.
    """
    int32 = cupy().int32
    sizes = (rows, shape.chunk, shape.below, shape.above, shape.size, shape.ring_at)
    launcher.launch(
        KERNEL,
        shape.blocks * shape.block,
        *(*matrix, *(int32(size) for size in sizes), *rest),
        module="windows",
        block=shape.block,
        shared_bytes=shape.shared_bytes,
    )
