"""Windows of x in shared memory, for the sweeps of banded matrices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX
from engines.cuda.driver import cupy
from engines.cuda.formats.layout import BESIDE, SLICE, Geometry, Layout
from engines.cuda.formats.tuning import WindowTuning
from engines.cuda.modules import Launcher
from engines.cuda.prepare import DeviceSystem
from engines.cuda.transfer import to_device
from engines.model.choice import Format

KERNEL = "sweep_rows_by_window"
"""What sweeps by windows."""

TOGETHER = 4
"""Rows that a thread takes at a time, as in the kernel."""

RESERVED_BYTES = 2048
"""Of a block's shared memory, what the kernel declares."""


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
    tuning
        What this follows from.
    """

    below: int
    above: int
    size: int
    ring_at: int
    shared_bytes: int
    block: int
    chunk: int
    blocks: int
    tuning: WindowTuning

    def in_single(self, layout: Layout, rows: int, launcher: Launcher) -> WindowShape | None:
        """Return how the same is launched for a vector in single precision.

        Parameters
        ----------
        layout, rows, launcher
            As in `window_of`.
        """
        reach = Reach(self.below, self.above)
        return window_of(layout, reach, rows, launcher, self.tuning, value_bytes=4)


def windows_serve(launcher: Launcher) -> bool:
    """Return whether a device can sweep by windows.

    Parameters
    ----------
    launcher
        Launches its kernels.
    """
    # What copies pieces of x is new in compute capability 9.0.
    return launcher.capability >= 90


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
    layout: Layout,
    reach: Reach,
    rows: int,
    launcher: Launcher,
    tuning: WindowTuning = WindowTuning(),
    *,
    value_bytes: int = 8,
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
    tuning
        What pays.
    value_bytes
        Bytes of an entry of x.
    """
    manner = tuning.manner(layout.matrix_format)
    if manner is None or rows > INT32_MAX // 2 or not windows_serve(launcher):
        return None
    below, above = (-(-distance // SLICE) * SLICE for distance in (reach.below, reach.above))
    ring_at = -(-layout.shared_bytes // 16) * 16
    head_bytes = layout.arguments[0].itemsize if layout.matrix_format is Format.PATTERNS else 0
    again = SLICE * (TOGETHER - 1)
    room = launcher.shared_bytes - RESERVED_BYTES - ring_at - (below + above + again) * value_bytes
    chunk = -(-rows // launcher.processors)
    chunk = -(-chunk // (SLICE * TOGETHER)) * SLICE * TOGETHER
    if chunk < max(tuning.least_chunk_rows, tuning.widths_a_chunk * (below + above)):
        return None
    for block in manner.blocks:
        step = block * TOGETHER
        ahead = min(room // (step * (value_bytes + head_bytes)), manner.most_ahead)
        if ahead >= tuning.least_ahead and chunk >= step:
            size = below + above + ahead * step
            shared = ring_at + (size + again) * value_bytes + ahead * step * head_bytes
            blocks = -(-rows // chunk)
            return WindowShape(below, above, size, ring_at, shared, block, chunk, blocks, tuning)
    return None


def in_order(
    shape: Geometry,
    reach: Reach,
    rows: int,
    launcher: Launcher,
    tuning: WindowTuning = WindowTuning(),
) -> Geometry:
    """Return how rows are swept without windows that the band of a matrix is too wide for.

    Parameters
    ----------
    shape
        How they are launched where nothing is known of a band.
    reach
        How far from the diagonal there are entries.
    rows
        How many there are.
    launcher
        Launches the kernels.
    tuning
        What pays.

    Notes
    -----
    Each block goes through a chunk of its own, and reads x on both sides of it. Where the cache
    does not hold what all blocks read at a time, chunks are so small that blocks at work are
    neighbours and read the same, if it holds that, and what they write.
    """
    blocks, width = shape.threads // shape.block, reach.below + reach.above
    chunk = min(shape.chunk, tuning.steps_in_order * shape.block)
    held = 8 * min(rows, blocks * width)
    if held <= launcher.cache_bytes or 16 * (width + blocks * chunk) > launcher.cache_bytes:
        return shape
    return replace(shape, chunk=chunk, threads=-(-rows // chunk) * shape.block)


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
