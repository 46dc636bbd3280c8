"""Systems on a GPU with their states in the order of their colours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engines.arrays import FloatArray
from engines.cuda import rows as of_rows
from engines.cuda.colouring import DeviceColouring
from engines.cuda.driver import cupy
from engines.cuda.formats.layout import nbytes
from engines.cuda.modules import WARP, Launcher
from engines.cuda.prepare import DeviceSystem, _scan
from engines.cuda.transfer import to_device
from engines.host.colours import ColouredSystem, Colouring
from engines.model.events import Events
from engines.systems.one_sided import Direction, SweepSystem


@dataclass(frozen=True)
class DeviceColoured:
    """A system on a device, its states renumbered so that each colour is a range.

    Parameters
    ----------
    row_offsets, columns, values, offset, group_offsets, fresh_ends, order
        Those of `engines.host.colours.ColouredSystem`, on the device.
    ends
        Its bounds, on the host.
    longest_row
        Entries of the longest row.
    start
        The first iterate by the states' own numbers, shape (states,), on the host.
    omega, direction
        As in `engines.systems.one_sided.SweepSystem`.
    colouring
        The colours.
    launcher
        Launches kernels for the type of the offsets.
    events
        Why the host has found the colours.
    """

    row_offsets: Any
    columns: Any
    values: Any
    offset: Any | None
    group_offsets: Any | None
    fresh_ends: Any
    order: Any
    ends: list[int]
    longest_row: int
    start: FloatArray
    omega: float
    direction: Direction | None
    colouring: Colouring | DeviceColouring
    launcher: Launcher
    events: Events = ()

    @property
    def bytes_per_sweep(self) -> int:
        """Fewest bytes of a sweep: each array read once, the iterate read and written."""
        matrix = nbytes(self.row_offsets, self.columns, self.values)
        beside = nbytes(self.offset, self.group_offsets)
        return matrix + beside + 8 * (len(self.order) + self.ends[-1])

    @property
    def kernel(self) -> str:
        """The kernel that sweeps a colour."""
        if self.group_offsets is not None:
            return "sweep_groups_of_colour_by_thread"
        rows = len(self.row_offsets) - 1
        if len(self.columns) < of_rows.WARP_ROW_ENTRIES * rows:
            return "sweep_rows_of_colour_by_thread"
        if self.longest_row < of_rows.BLOCK_ROW_ENTRIES:
            return "sweep_rows_of_colour_by_warp"
        return "sweep_rows_of_colour_by_block"

    def restarted(self, values: FloatArray, omega: float) -> DeviceColoured:
        """Return the same sweeps from another iterate, given by the states' own numbers."""
        return replace(self, start=values, omega=omega)

    def by_colours(self, values: Any) -> Any:
        """Return values, shape (states,) on the device, in the order of the colours."""
        return self._moved("gather_values", values)

    def in_model_order(self, values: Any) -> Any:
        """Return values of the renumbered states, on the device, by the states' own numbers."""
        return self._moved("scatter_values", values)

    def _moved(self, kernel: str, values: Any) -> Any:
        cp = cupy()
        states = len(self.order)
        moved = cp.empty(states)
        given = (values, self.order, cp.int32(states), moved)
        self.launcher.launch(kernel, states, *given, module="arranging")
        return moved


def uploaded(coloured: ColouredSystem, events: Events = ()) -> DeviceColoured:
    """Copy a system that the host has arranged to the current device.

    Parameters
    ----------
    coloured
        The system.
    events
        Why the host has done it.
    """
    system = coloured.system
    matrix = system.matrix
    launcher = Launcher("long long" if of_rows.needs_wide_offsets(system) else "int")
    wide = launcher.offset_dtype
    groups = system.group_offsets
    return DeviceColoured(
        row_offsets=to_device(matrix.row_offsets, wide),
        columns=to_device(matrix.columns, np.int32),
        values=to_device(matrix.values, np.float64),
        offset=None if system.offset is None else to_device(system.offset, np.float64),
        group_offsets=None if groups is None else to_device(groups, wide),
        fresh_ends=to_device(coloured.fresh_ends, wide),
        order=to_device(coloured.order, np.int32),
        ends=[int(end) for end in coloured.bounds],
        longest_row=int(matrix.row_lengths().max(initial=0)),
        start=coloured.in_model_order(system.start),
        omega=system.omega,
        direction=system.direction,
        colouring=coloured.colouring,
        launcher=launcher,
        events=events,
    )


def arrange_on_device(
    device: DeviceSystem,
    system: SweepSystem,
    update_of: Any | None,
    without_diagonal: bool,
    colouring: DeviceColouring,
    launcher: Launcher,
) -> DeviceColoured:
    """Renumber the states of a system so that each colour is a range.

    Parameters
    ----------
    device, system
        The system, scaled on the current device, and as it is on the host.
    update_of
        As `engines.cuda.colouring.names_of_updates` returns it.
    without_diagonal
        Whether entries of a row's own state are left out: the scaling has made them zeros.
    colouring
        The colours of the states that it computes.
    launcher
        Launches kernels for the type of the offsets.

    Notes
    -----
    The arrays are those of `engines.host.colours.arrange`, bit for bit.
    """
    cp = cupy()
    order, position = _numbering(device, system, update_of, colouring, launcher)
    rows, first_of_row, groups = _rows_in_order(device, system, colouring, launcher)
    count = len(rows)
    offsets = cp.zeros(count + 1, dtype=launcher.offset_dtype)
    longest = cp.zeros(1, dtype=cp.int32)
    old = (device.row_offsets, device.columns)
    how = (position, cp.int32(without_diagonal))
    _launch(
        *(launcher, "measure_rows", count * WARP),
        *(rows, cp.int64(count), *old, *how, offsets, longest),
    )
    _scan(offsets, launcher)
    entries = int(offsets[-1:].get()[0])
    fresh_ends = cp.empty(count, dtype=launcher.offset_dtype)
    columns, values = cp.empty(entries, dtype=cp.int32), cp.empty(entries)
    given = (rows, first_of_row, cp.int64(count), *old, device.values, *how)
    _launch(launcher, "gather_rows", count * WARP, *given, offsets, fresh_ends, columns, values)
    offset = None
    if device.offset is not None:
        offset = cp.empty(count)
        _launch(launcher, "gather_offset", count, device.offset, rows, cp.int64(count), offset)
    return DeviceColoured(
        *(offsets, columns, values, offset, groups, fresh_ends, order),
        *(colouring.ends, int(longest.get()[0]), system.start, system.omega, system.direction),
        *(colouring, launcher),
    )


def _numbering(
    device: DeviceSystem,
    system: SweepSystem,
    update_of: Any | None,
    colouring: DeviceColouring,
    launcher: Launcher,
) -> tuple[Any, Any]:
    """Return the state that was given each number, and the number of each state."""
    cp = cupy()
    states, updates = system.num_states, system.num_updates
    order = colouring.members
    if update_of is not None:
        order = cp.empty(states, dtype=cp.int32)
        given = (colouring.members, device.states, cp.int32(updates), order)
        _launch(launcher, "place_updates", updates, *given)
        places = cp.empty(states, dtype=launcher.offset_dtype)
        _launch(launcher, "flag_unnamed", states, update_of, cp.int32(states), places)
        _scan(places, launcher)
        others = (update_of, cp.int32(states), places, cp.int32(updates), order)
        _launch(launcher, "place_unnamed", states, *others)
    position = cp.empty(states, dtype=cp.int32)
    _launch(launcher, "invert_order", states, order, cp.int32(states), position)
    return order, position


def _rows_in_order(
    device: DeviceSystem, system: SweepSystem, colouring: DeviceColouring, launcher: Launcher
) -> tuple[Any, Any, Any | None]:
    """Return which row comes where, where its update's colour begins, and the groups of rows."""
    cp = cupy()
    updates, count, wide = system.num_updates, system.matrix.num_rows, launcher.offset_dtype
    groups, new_groups = device.group_offsets, None
    if groups is not None:
        new_groups = cp.zeros(updates + 1, dtype=wide)
        given = (groups, colouring.members, cp.int32(updates), new_groups)
        _launch(launcher, "count_group_rows", updates, *given)
        _scan(new_groups, launcher)
    rows, first_of_row = cp.empty(count, dtype=wide), cp.empty(count, dtype=cp.int32)
    sorting = (colouring.members, colouring.of_update, colouring.bounds, cp.int32(updates))
    placed = (groups, new_groups, rows, first_of_row)
    _launch(launcher, "place_rows", updates, *sorting, *placed)
    return rows, first_of_row, new_groups


def _launch(launcher: Launcher, name: str, threads: int, *arguments: Any) -> None:
    launcher.launch(name, threads, *arguments, module="arranging")


def arranged_bytes(system: SweepSystem) -> int:
    """Return the bytes that an arranged system takes on the device, and its making beside it.

    Parameters
    ----------
    system
        The system.
    """
    rows, wide = system.matrix.num_rows, 8 if of_rows.needs_wide_offsets(system) else 4
    beside = (3 * wide + 12) * rows + wide * system.num_updates + (8 + wide) * system.num_states
    return 12 * system.matrix.num_entries + beside
