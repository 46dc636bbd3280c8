"""Windows of x in shared memory, for the sweeps of banded matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.backend import cupy
from engines.cuda.formats.layout import BESIDE, SLICE, Layout
from engines.cuda.modules import Launcher
from engines.cuda.prepare import DeviceSystem
from engines.cuda.transfer import to_device
from engines.formats.choice import Format
from engines.formats.csr import INT32_MAX

KERNELS = {4: "sweep_rows_by_window", 2: "sweep_rows_by_wide_window"}
"""The kernels by the rows that a thread takes at a time, the faster first."""

STAGES_AHEAD = 2
"""Stages beside those that the present rows read, as in the kernels."""

MOST_STAGES = 32
"""The most stages that the kernels have barriers for."""

BLOCK = 1024

LEAST_CHUNK = {Format.CSR: 1 << 13, Format.PATTERNS: 1 << 15}
"""From so many rows a block on, a format is swept by windows. On an H200, microseconds over those
without: CSR, tandem 1023, 2047 and 4095 35 over 40, 133 over 143 and 546 over 564; patterns,
tandem 2047 and 4095 52 over 61 and 215 over 270, but tandem 1023 16 over 13. Of values windows are
slower, and entries had no matrix whose band fits."""

WIDTHS_A_CHUNK = 1
"""A block has to have so many times the rows that its window is wide: it fills the window first."""

RESERVED_BYTES = 2048
"""Of a block's shared memory, what the kernels declare."""

LEAST_CAPABILITY = 90
"""Compute capability, ten times, that the kernels need."""


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
    kernel
        One of `KERNELS`.
    below, above
        The window's reach, whole slices.
    stages
        Stages of the ring.
    ring_at
        Where in shared memory it lies, in bytes.
    shared_bytes
        All dynamic shared memory of a block.
    block, chunk, blocks
        Threads of a block, its rows, and how many blocks there are.
    """

    kernel: str
    below: int
    above: int
    stages: int
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
    # A pair is a value and a distance, as in `engines/kernels/formats/pairs.cuh`.
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
    least = LEAST_CHUNK.get(layout.matrix_format)
    if least is None or rows > INT32_MAX // 2 or not windows_serve(launcher):
        return None
    below, above = (-(-distance // SLICE) * SLICE for distance in (reach.below, reach.above))
    ring_at = -(-layout.shared_bytes // 16) * 16
    shapes = (
        _shape(together, below, above, ring_at, rows, launcher, value_bytes) for together in KERNELS
    )
    shape = next((found for found in shapes if found is not None), None)
    if shape is None or shape.chunk < max(least, WIDTHS_A_CHUNK * (below + above)):
        return None
    return shape


def _shape(
    together: int,
    below: int,
    above: int,
    ring_at: int,
    rows: int,
    launcher: Launcher,
    value_bytes: int,
) -> WindowShape | None:
    """Return how one of the kernels is launched; None where its window does not fit."""
    step = BLOCK * together
    stages = -(-(below + above) // step) + 1 + STAGES_AHEAD
    shared = ring_at + (stages * step + SLICE * (together - 1)) * value_bytes
    chunk = -(-rows // launcher.processors)
    chunk = -(-chunk // (SLICE * together)) * SLICE * together
    if shared + RESERVED_BYTES > launcher.shared_bytes or stages > MOST_STAGES or chunk < step:
        return None
    sizes = (below, above, stages, ring_at, shared, BLOCK, chunk, -(-rows // chunk))
    return WindowShape(KERNELS[together], *sizes)


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
    sizes = (rows, shape.chunk, shape.below, shape.above, shape.stages, shape.ring_at)
    launcher.launch(
        shape.kernel,
        shape.blocks * shape.block,
        *(*matrix, *(int32(size) for size in sizes), *rest),
        module="windows",
        block=shape.block,
        shared_bytes=shape.shared_bytes,
    )
