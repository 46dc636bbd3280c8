"""Rows of a system on the device, laid out in a format, and the launch of their sweep."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from engines.arrays import INT32_MAX
from engines.cuda import src as kernels
from engines.cuda.driver import cupy
from engines.cuda.formats.lay_out import lay_out, may_leave_csr
from engines.cuda.formats.layout import Geometry, Layout, geometry, nbytes
from engines.cuda.formats.tuning import RowTuning
from engines.cuda.modules import Launcher
from engines.cuda.prepare import DeviceSystem, narrowed, upload
from engines.cuda.windows import (
    KERNEL,
    WindowShape,
    in_order,
    reach_of,
    sweep_by_window,
    window_of,
    windows_serve,
)
from engines.errors import UnsupportedError
from engines.model.choice import Format
from engines.model.events import Events
from engines.systems.one_sided import Direction, SweepSystem

WARP_ROW_ENTRIES = 24
"""From this mean row length on, a warp takes a row."""

BLOCK_ROW_ENTRIES = 2048
"""From this longest row on, a block takes such rows: a warp would still be at it when all is
done."""

OWN_VALUES = (Format.CSR,)
"""Formats in which each entry has a value of its own, the last of their arrays."""

SHARED_ROWS = (Format.CSR, Format.VALUES)
"""Formats whose rows the threads of a warp can share."""


@dataclass(frozen=True)
class Test:
    """What a sweep does about convergence.

    Parameters
    ----------
    before_slot, slot
        The change of the sweep before, and where this one's goes.
    stop_below
        A sweep whose predecessor changed less does nothing.
    absolute
        Whether changes are absolute.
    early
        Whether a sweep looks at its predecessor before its work.
    """

    before_slot: Any
    slot: Any
    stop_below: float
    absolute: bool
    early: bool


@dataclass(frozen=True)
class DeviceRows:
    """All rows of a system, or a block of them, on the current device.

    Parameters
    ----------
    device, layout
        The arrays.
    launcher, kernel, geometry
        What sweeps them, and how it is launched.
    count
        Rows, or groups of rows.
    bytes_moved
        Fewest bytes that their sweep moves.
    events, estimates
        For the log; see `engines.cuda.formats.lay_out.LaidOut`.
    """

    device: DeviceSystem
    layout: Layout
    launcher: Launcher
    kernel: str
    geometry: Geometry
    count: int
    bytes_moved: int
    events: Events
    estimates: str
    window: WindowShape | None = None

    @classmethod
    def of(
        cls,
        system: SweepSystem,
        matrix_format: Format,
        tuning: RowTuning = RowTuning(),
        *,
        segments_serve: bool = True,
    ) -> DeviceRows:
        """Copy a system's rows to the current device and lay them out.

        Parameters
        ----------
        system
            The system.
        matrix_format
            How its matrix is to be laid out; what cannot be stays CSR.
        tuning
            What was measured of the ways to sweep rows.
        segments_serve
            Whether sums of segments may take the place of a matrix.
        """
        launcher = Launcher("long long" if needs_wide_offsets(system) else "int")
        divided = not may_leave_csr(system, matrix_format)
        device = upload(system, launcher, divided=divided)
        by_blocks = system.group_offsets is None and sharers(system, Format.CSR) == "block"
        reach = None
        least = tuning.windows.least_banded_rows
        if segments_serve and windows_serve(launcher) and may_be_banded(system, least):
            reach = reach_of(device, system.matrix.num_rows, launcher)
        laid_out = lay_out(
            *(device, system, matrix_format, launcher),
            segments_serve=segments_serve,
            by_blocks=by_blocks,
            tuning=tuning,
        )
        del device
        layout = laid_out.layout
        launcher = Launcher(launcher.offset_type, layout.variant)
        who = "groups_by_thread"
        if system.group_offsets is None:
            who = f"rows_by_{sharers(system, layout.matrix_format)}"
        kernel, count = f"sweep_{who}", system.num_updates
        threads_each = 1 if who.endswith("thread") else 32
        shape = geometry(layout, kernel, "sweep", count, threads_each, launcher)
        moved = bytes_moved(system, laid_out.device, layout)
        window = None
        if reach is not None:
            window = window_of(layout, reach, count, launcher, tuning.windows)
            if window is None and layout.chunked:
                shape = in_order(shape, reach, count, launcher, tuning.windows)
        return cls(
            *(laid_out.device, layout, launcher, kernel, shape, count, moved),
            *(laid_out.events, laid_out.estimates, window),
        )

    @property
    def kernel_name(self) -> str:
        """The kernel that sweeps these rows, for the log."""
        kernel = self.kernel if self.window is None else KERNEL
        return kernel.removeprefix("sweep_")

    def in_single(self, nearest: bool, states: int) -> DeviceRows:
        """Return the same rows for vectors in single precision; dictionaries are shared.

        Parameters
        ----------
        nearest
            Whether what is stored is rounded to nearest; else down.
        states
            Length of the vectors.

        Raises
        ------
        UnsupportedError
            For sums of segments or panels.
        """
        layout, offset = self.layout, self.device.offset
        if layout.scan is not None:
            raise UnsupportedError(f"sums of {layout.matrix_format} are swept in double precision")
        arguments, saved = layout.arguments, 4 * (states + self.count)
        if layout.matrix_format in OWN_VALUES:
            arguments = (*arguments[:-1], narrowed(arguments[-1], nearest, self.launcher))
            saved += int(arguments[-1].nbytes)
        if offset is not None:
            offset = narrowed(offset, nearest, self.launcher)
            saved += int(offset.nbytes)
        defines = (*layout.defines, *kernels.IN_SINGLE[nearest])
        layout = replace(layout, arguments=arguments, defines=defines)
        launcher = Launcher(self.launcher.offset_type, layout.variant)
        threads_each = 1 if self.kernel.endswith("thread") else 32
        return replace(
            self,
            device=replace(self.device, offset=offset),
            layout=layout,
            launcher=launcher,
            geometry=geometry(layout, self.kernel, "sweep", self.count, threads_each, launcher),
            bytes_moved=self.bytes_moved - saved,
            window=self.window and self.window.in_single(layout, self.count, launcher),
        )

    def sweep(self, x: Any, x_new: Any, omega: float, test: Test) -> None:
        """Queue the sweep of these rows on the current stream.

        Parameters
        ----------
        x, x_new
            The iterate before and after.
        omega
            Relaxation.
        test
            What to do about convergence.
        """
        cp, system, layout = cupy(), self.device, self.layout
        tested = (test.before_slot, test.slot)
        how = (cp.float64(test.stop_below), cp.int32(test.absolute), cp.int32(test.early))
        if self.window is not None:
            matrix = (*layout.arguments, system.offset)
            rest = (cp.float64(omega), x, x_new, *tested, *how)
            return sweep_by_window(self.window, self.launcher, self.count, matrix, *rest)
        if layout.scan is not None:
            layout.scan.launch(self.launcher, x, test.before_slot, test.stop_below)
        arguments: tuple[Any, ...] = (
            *(*layout.arguments, system.offset, system.states),
            *(cp.int32(self.count), cp.int32(self.geometry.chunk)),
        )
        if system.group_offsets is not None:
            minimise = cp.int32(system.direction is Direction.MINIMISE)
            arguments = (system.group_offsets, *arguments, minimise)
        else:
            arguments = (*arguments, cp.float64(omega))
        self.launcher.launch(
            self.kernel,
            self.geometry.threads,
            *(*arguments, x, x_new, *tested, *how),
            block=self.geometry.block,
            shared_bytes=layout.shared_bytes,
        )


def may_be_banded(system: SweepSystem, least_rows: int) -> bool:
    """Return whether a system may be swept by windows, for all that its shape tells.

    Parameters
    ----------
    system
        What is to be solved.
    least_rows
        Fewer are not looked at.
    """
    return (
        system.group_offsets is None
        and system.states is None
        and system.num_updates == system.num_states
        and system.matrix.num_rows >= least_rows
        and sharers(system, Format.CSR) == "thread"
    )


def sharers(system: SweepSystem, matrix_format: Format) -> str:
    """Return what takes a row of a chain: "thread", "warp", or "block" where some are very long.

    Parameters
    ----------
    system
        What is to be solved.
    matrix_format
        How its matrix is laid out.
    """
    matrix = system.matrix
    short = matrix.num_entries < WARP_ROW_ENTRIES * matrix.num_rows
    if short or matrix_format not in SHARED_ROWS:
        return "thread"
    return "warp" if matrix.row_lengths().max() < BLOCK_ROW_ENTRIES else "block"


def bytes_moved(system: SweepSystem, device: DeviceSystem, layout: Layout) -> int:
    """Return the fewest bytes of a sweep: each array read once, the iterate read and written.

    Parameters
    ----------
    system
        What is to be solved.
    device, layout
        The same on the device.
    """
    if layout.matrix_format is Format.CSR:
        return system.bytes_per_sweep
    beside = nbytes(device.offset, device.states, device.group_offsets)
    return layout.matrix_bytes + beside + 8 * (system.num_states + system.num_updates)


def needs_wide_offsets(system: SweepSystem) -> bool:
    """Return whether a system's entries or rows are more than 32 bits can number."""
    return max(system.matrix.num_entries, system.matrix.num_rows) > INT32_MAX
