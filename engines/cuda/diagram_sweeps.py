"""Sweeps of systems over a diagram's matrix that is never expanded."""

from __future__ import annotations

from engines.cuda import diagram_patterns
from engines.cuda.diagram_rows import DiagramRows, upload_rows
from engines.cuda.driver import cupy
from engines.cuda.formats import hybrid
from engines.cuda.formats.layout import Layout, geometry, nbytes
from engines.cuda.formats.tuning import WindowTuning
from engines.cuda.modules import Launcher
from engines.cuda.prepare import DeviceSystem
from engines.cuda.rows import DeviceRows
from engines.cuda.sweeper import CudaSweeper, two_vectors
from engines.cuda.windows import in_order, reach_of_patterns, window_of
from engines.diagrams.system import DiagramSystem
from engines.model.choice import Format


class DiagramSweeper(CudaSweeper):
    """A solve on the device whose rows are laid out already.

    Parameters
    ----------
    rows
        The rows.
    system
        What they are of.
    stop_below, absolute, device_number
        As in `engines.cuda.sweeper.CudaSweeper`.
    """

    def __init__(
        self,
        rows: DeviceRows,
        system: DiagramSystem,
        stop_below: float,
        absolute: bool,
        device_number: int,
    ) -> None:
        self._laid_out = rows
        super().__init__(system, stop_below, absolute, device_number)

    def _prepare(self, system: DiagramSystem, _matrix_format: Format) -> tuple[DeviceRows, ...]:
        start = system.start
        if isinstance(start, cupy().ndarray):
            # Whatever stream wrote it.
            cupy().cuda.runtime.deviceSynchronize()
            self._vectors = (start, start.copy())
        else:
            self._vectors = two_vectors(start)
        self._launcher = self._laid_out.launcher
        return (self._laid_out,)


def laid_out(
    system: DiagramSystem,
    matrix_format: Format,
    most_patterns: int | None = None,
    tuning: WindowTuning = WindowTuning(),
) -> DeviceRows:
    """Lay the rows of a system out on the current device and stream.

    Parameters
    ----------
    system
        The system.
    matrix_format
        `Format.PATTERNS` or `Format.HYBRID`.
    most_patterns
        The most distinct rows that `Format.PATTERNS` may have; None for any number.
    tuning
        Which patterns are swept by windows.

    Raises
    ------
    UnsupportedError
        When the system cannot be swept in this format, and why.
    """
    if matrix_format not in (Format.PATTERNS, Format.HYBRID):
        raise ValueError(f"rows are laid out as {matrix_format} from a matrix that is expanded")
    launcher = Launcher("int")
    rows = upload_rows(system, launcher)
    if matrix_format is Format.PATTERNS:
        layout = diagram_patterns.build(rows, launcher, most_patterns)
    else:
        layout = hybrid.build(rows, launcher)
    return _rows_of(system, rows, layout, tuning)


def _rows_of(
    system: DiagramSystem, rows: DiagramRows, layout: Layout, tuning: WindowTuning
) -> DeviceRows:
    """Return the rows as the sweeper takes them, without what only their layout holds."""
    offset = None if layout.holds_offset else rows.offset
    device = DeviceSystem(
        *(None, None, None, offset, rows.states, rows.group_offsets),
        *(system.direction, system.omega),
    )
    launcher = Launcher("int", layout.variant)
    who = "rows" if rows.group_offsets is None else "groups"
    kernel, count = f"sweep_{who}_by_thread", system.num_updates
    beside = nbytes(offset, rows.states, rows.group_offsets)
    moved = layout.matrix_bytes + beside + 8 * (system.num_states + count)
    shape = geometry(layout, kernel, "sweep", count, 1, launcher)
    window = None
    of_all = rows.states is None and rows.group_offsets is None and count == system.num_states
    long = of_all and count >= tuning.least_banded_rows
    if long and layout.matrix_format is Format.PATTERNS:
        reach = reach_of_patterns(layout)
        window = window_of(layout, reach, count, launcher, tuning)
        if window is None:
            shape = in_order(shape, reach, count, launcher, tuning)
    return DeviceRows(device, layout, launcher, kernel, shape, count, moved, (), "", window)
