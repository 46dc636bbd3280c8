"""The split method in colours: Gauss-Seidel whose system is too large for the device.

The rows of a colour come part by part through two buffers: one is filled, on a stream of its own,
while the part in the other one is swept. Their sums are collected in a vector as long as the
largest colour, and stored as the colour's new values when all its parts have come. Where not even x
fits, it stays in the host's memory as well: its segments come through two windows, and new values
are written to it directly. After section 4.3 of the thesis of 2013 on Gauss-Seidel in CUDA in
PRISM.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.cuda import rows as of_rows
from engines.cuda.colour_parts import (
    BUFFERS,
    Part,
    PartPlan,
    fewest_colours,
    parts_of_colour,
    plan_parts,
    rows_of_colour,
)
from engines.cuda.driver import cupy
from engines.cuda.modules import WARP, Launcher, stream
from engines.cuda.queued import HISTORY
from engines.cuda.transfer import to_device, to_host
from engines.errors import DeviceMemoryError
from engines.host.colours import (
    GPU_SPEED,
    ColouredSystem,
    Colouring,
    Order,
    arrange,
    choose_colours,
)
from engines.model.events import Events, Kind
from engines.model.result import SweepCost
from engines.systems.one_sided import Direction, SweepSystem


@dataclass(frozen=True)
class Parcel:
    """A part of a colour, packed for the journey.

    Parameters
    ----------
    segment, first_row, rows
        As in `engines.cuda.colour_parts.Part`.
    entries
        How many it has.
    packed
        Its values, columns and offsets in one piece of pinned host memory.
    """

    segment: int
    first_row: int
    rows: int
    entries: int
    packed: Any

    @classmethod
    def of(cls, part: Part) -> Parcel:
        """Copy a part to pinned memory.

        Parameters
        ----------
        part
            The part.
        """
        packed = _pinned(part.packed_bytes, np.uint8)
        place = 0
        for array in (part.values, part.columns, part.offsets):
            packed[place : place + array.nbytes] = np.ascontiguousarray(array).view(np.uint8)
            place += array.nbytes
        return cls(part.segment, part.first_row, part.rows, len(part.values), packed)

    def arrays(self, pointer: int) -> tuple[Any, Any, Any]:
        """Return where offsets, columns and values lie, of what has come to a place.

        Parameters
        ----------
        pointer
            The place.
        """
        columns = pointer + 8 * self.entries
        address = cupy().uint64
        return address(columns + 4 * self.entries), address(columns), address(pointer)

    @property
    def lanes(self) -> int:
        """Threads a row."""
        return WARP if self.entries >= of_rows.WARP_ROW_ENTRIES * self.rows else 1


@dataclass(frozen=True)
class SplitColoured:
    """A system in colours in the host's memory, in parts; an `engines.host.watched.Arranged`.

    Parameters
    ----------
    parcels
        The parts of each colour.
    plan
        What lies on the device.
    bounds, order, colouring
        As in `engines.host.colours.ColouredSystem`.
    row_bounds
        The first row of each colour, and the end of the last, shape (colours + 1,).
    offset
        The right-hand side in pinned memory, shape (rows,), or None.
    group_offsets
        Of rows by state in pinned memory, int32, or None.
    start
        The first iterate by the states' own numbers, shape (states,).
    omega, direction
        As in `engines.systems.one_sided.SweepSystem`.
    events
        Why it is split.
    """

    parcels: tuple[tuple[Parcel, ...], ...]
    plan: PartPlan
    bounds: IndexArray
    row_bounds: IndexArray
    order: IndexArray
    offset: Any | None
    group_offsets: Any | None
    start: FloatArray
    omega: float
    direction: Direction | None
    colouring: Colouring
    events: Events = ()

    def restarted(self, values: FloatArray, omega: float) -> SplitColoured:
        """Return the same sweeps from another iterate, given by the states' own numbers."""
        return replace(self, start=values, omega=omega)

    @property
    def matrix_bytes(self) -> int:
        """Bytes of all parts."""
        return sum(len(parcel.packed) for colour in self.parcels for parcel in colour)


def choose_split_colours(
    system: SweepSystem, order: Order, slice_size: int | None, colours: int | None, memory: int
) -> Colouring:
    """Return the colours of a system that is swept part by part.

    Those that it would have on the device, where the sums of each fit; else, and where slices were
    asked for without a number, the fewest that fit.

    Parameters
    ----------
    system
        A system without scaling.
    order, slice_size, colours
        As in `engines.host.colours.choose_colours`.
    memory
        Bytes that may be taken of the device.

    Raises
    ------
    DeviceMemoryError
        Where the device is too small for any number.
    """
    if slice_size is None or colours is not None:
        found = choose_colours(system, order, slice_size, colours, GPU_SPEED)
        if colours is not None or _fits(system, found, memory):
            return found
        slice_size = 64
    rows_a_state = -(-system.matrix.num_rows // max(system.num_updates, 1))
    # A quarter of the memory: what x and the parts come through needs the rest.
    room = memory // 4 // rows_a_state
    count = fewest_colours(system.num_updates, slice_size, room)
    return choose_colours(system, order, slice_size, count, GPU_SPEED)


def _fits(system: SweepSystem, colouring: Colouring, memory: int) -> bool:
    groups = system.group_offsets
    rows = None if groups is None else np.diff(groups)
    sizes = np.bincount(colouring.of_update, weights=rows, minlength=colouring.count)
    try:
        plan_parts(system.num_states, int(sizes.max(initial=0)), memory)
    except DeviceMemoryError:
        return False
    return True


def split_by_colours(
    system: SweepSystem, colouring: Colouring, memory: int, events: Events = ()
) -> SplitColoured:
    """Arrange a system in colours and pack its parts in pinned host memory.

    Parameters
    ----------
    system
        A system without scaling.
    colouring
        Its colours.
    memory
        Bytes that may be taken of the device.
    events
        Why it is split.

    Raises
    ------
    DeviceMemoryError
        When the device is too small.
    """
    coloured: ColouredSystem = arrange(system, colouring)
    colours = range(len(coloured.bounds) - 1)
    row_bounds = np.array([0, *(rows_of_colour(coloured, colour)[1] for colour in colours)])
    sums = int(np.diff(row_bounds).max(initial=0))
    plan = plan_parts(system.num_states, sums, memory)
    parcels = tuple(
        tuple(Parcel.of(part) for part in parts_of_colour(coloured, colour, plan))
        for colour in colours
    )
    arranged = coloured.system
    return SplitColoured(
        *(parcels, plan, coloured.bounds, row_bounds, coloured.order),
        None if arranged.offset is None else _in_pinned(arranged.offset, np.float64),
        None if arranged.group_offsets is None else _in_pinned(arranged.group_offsets, np.int32),
        *(np.asarray(system.start, dtype=np.float64), system.omega, system.direction, colouring),
        events,
    )


def _pinned(size: int, dtype: Any) -> Any:
    from cupyx import empty_pinned

    return empty_pinned(size, dtype=dtype)


def _in_pinned(array: Any, dtype: Any) -> Any:
    memory = _pinned(len(array), dtype)
    memory[:] = array
    return memory


class SplitColourSweeper:
    """Sweeps of a system that comes part by part; a `Sweeper`.

    Parameters
    ----------
    coloured
        What to solve.
    stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`.
    device_number
        Which of the devices.
    """

    def __init__(
        self, coloured: SplitColoured, stop_below: float, absolute: bool, device_number: int
    ) -> None:
        cp = self._cp = cupy()
        self._coloured, self._device = coloured, device_number
        self._stop_below, self._absolute = stop_below, absolute
        self._stream = stream(device_number)
        plan = coloured.plan
        with cp.cuda.Device(device_number), self._stream:
            self._launcher = Launcher("int")
            self._sums = cp.empty(plan.sums)
            self._slot = cp.empty(1)
            self._copying = cp.cuda.Stream(non_blocking=True)
            self._parts = _Carousel(self._copying, self._stream, plan.buffer_bytes)
            self._windows = None
            ordered = coloured.start[coloured.order]
            if plan.x_stays:
                self._x = to_device(ordered, np.float64)
                self._x_at = int(self._x.data.ptr)
            else:
                self._x = _in_pinned(ordered, np.float64)
                self._x_at = int(self._x.ctypes.data)
                self._windows = _Carousel(self._copying, self._stream, 8 * plan.window)
            self._written = cp.cuda.Event(disable_timing=True)
            self._resident = self._settle()
            self._clock = (cp.cuda.Event(), cp.cuda.Event())
        self.seconds = 0.0
        self._last_change = np.inf
        self.cost = self._cost()
        self._stream.synchronize()

    def _settle(self) -> dict[int, Any]:
        """Copy as many parts as there is room for to the device, where they stay."""
        left, resident = self._coloured.plan.resident_bytes, {}
        for colour in self._coloured.parcels:
            for parcel in colour:
                size = -(-len(parcel.packed) // 512) * 512  # as memory is handed out
                if size <= left:
                    left -= size
                    resident[id(parcel)] = to_device(parcel.packed, np.uint8)
        return resident

    @property
    def travelling_bytes(self) -> int:
        """Bytes that come from the host's memory in each sweep, without x."""
        every = (parcel for colour in self._coloured.parcels for parcel in colour)
        return sum(len(parcel.packed) for parcel in every if id(parcel) not in self._resident)

    def _cost(self) -> SweepCost:
        coloured = self._coloured
        parts = sum(len(colour) for colour in coloured.parcels)
        split = Kind.SPLIT_COLOURS(
            parts=parts,
            travelling=parts - len(self._resident),
            gibibytes=self.travelling_bytes / 2**30,
            segments=coloured.plan.segments,
            mebibytes=coloured.plan.sums / 2**17,
        )
        moved = coloured.matrix_bytes + 8 * (coloured.plan.states + int(coloured.bounds[-1]))
        moved += 0 if coloured.offset is None else coloured.offset.nbytes
        where = ((self._device,), "parts_of_colours", "csr by colours, in parts", moved)
        return SweepCost(*where, (split, *coloured.events))

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.systems.one_sided.Sweeper.run`."""
        if self._last_change < self._stop_below:
            return np.array([self._last_change])
        changes: list[float] = []
        began, ended = self._clock
        with self._cp.cuda.Device(self._device), self._stream:
            began.record(self._stream)
            for _ in range(min(sweeps, HISTORY)):
                changes.append(self._sweep(self._coloured.omega, self._absolute, keep=True))
                if changes[-1] < self._stop_below:
                    break
            ended.record(self._stream)
            ended.synchronize()
            self.seconds += self._cp.cuda.get_elapsed_time(began, ended) / 1e3
        self._last_change = changes[-1]
        return np.array(changes)

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x."""
        with self._cp.cuda.Device(self._device), self._stream:
            return self._sweep(1.0, True, keep=False)

    def values(self) -> FloatArray:
        """Return the present iterate, by the states' own numbers, shape (states,), on the host."""
        with self._cp.cuda.Device(self._device), self._stream:
            self._stream.synchronize()
            ordered = to_host(self._x) if self._coloured.plan.x_stays else np.array(self._x)
        values = np.empty_like(ordered)
        values[self._coloured.order] = ordered
        return values

    def _sweep(self, omega: float, absolute: bool, *, keep: bool) -> float:
        """Make one sweep, or with `keep` false only take the changes that one of Jacobi makes."""
        self._slot.data.memset_async(0, self._slot.nbytes, self._stream)
        for colour, parcels in enumerate(self._coloured.parcels):
            self._begin_colour(colour)
            for parcel in parcels:
                self._add(parcel)
            self._end_colour(colour, omega, absolute, keep)
        return float(self._slot.get()[0])

    def _begin_colour(self, colour: int) -> None:
        first, end = (int(bound) for bound in self._coloured.row_bounds[colour : colour + 2])
        offset = self._coloured.offset
        if offset is None:
            self._sums.data.memset_async(0, 8 * (end - first), self._stream)
            return
        runtime = self._cp.cuda.runtime
        runtime.memcpyAsync(
            *(self._sums.data.ptr, offset.ctypes.data + 8 * first, 8 * (end - first)),
            *(runtime.memcpyDefault, self._stream.ptr),
        )

    def _add(self, parcel: Parcel) -> None:
        cp, window = self._cp, self._window_of(parcel.segment)
        settled = self._resident.get(id(parcel))
        place = None
        if settled is not None:
            pointer = int(settled.data.ptr)
        else:
            place = self._parts.fetch(parcel.packed.ctypes.data, len(parcel.packed))
            pointer = self._parts.pointer(place)
        self._launcher.launch(
            "add_part",
            parcel.rows * parcel.lanes,
            *parcel.arrays(pointer),
            *(cp.int32(parcel.rows), cp.int32(parcel.lanes), cp.uint64(window)),
            cp.uint64(self._sums.data.ptr + 8 * parcel.first_row),
            module="split_colours",
        )
        if place is not None:
            self._parts.release(place)
        if self._windows is not None:
            self._windows.release(self._windows.last)

    def _window_of(self, segment: int) -> int:
        """Return where a segment of x lies on the device, after its journey where it has one."""
        plan, windows = self._coloured.plan, self._windows
        if windows is None:
            return self._x_at
        if windows.holds != segment:
            first = segment * plan.window
            size = 8 * (min(first + plan.window, plan.states) - first)
            # Colours before this one have written to it.
            self._copying.wait_event(self._written)
            windows.fetch(self._x_at + 8 * first, size)
            windows.holds = segment
        return windows.pointer(windows.last)

    def _end_colour(self, colour: int, omega: float, absolute: bool, keep: bool) -> None:
        cp, coloured = self._cp, self._coloured
        first, end = (int(bound) for bound in coloured.bounds[colour : colour + 2])
        groups = coloured.group_offsets
        at = None if groups is None else cp.uint64(groups.ctypes.data + 4 * first)
        self._launcher.launch(
            "end_colour",
            end - first,
            *(cp.uint64(self._sums.data.ptr), at, cp.int32(end - first)),
            *(cp.int32(coloured.direction is Direction.MINIMISE), cp.float64(omega)),
            *(cp.uint64(self._x_at + 8 * first), self._slot, cp.int32(absolute), cp.int32(keep)),
            module="split_colours",
        )
        if self._windows is not None:
            self._written.record(self._stream)
            self._windows.holds = None


class _Carousel:
    """Two places on the device that what travels comes to in turn.

    Parameters
    ----------
    copying, sweeping
        The streams that fill the places, and that read them.
    size
        Bytes of each place.
    """

    holds: int | None = None
    """What lies in the last place that was filled, where the user of the places says so."""

    def __init__(self, copying: Any, sweeping: Any, size: int) -> None:
        cp = self._cp = cupy()
        self._copying, self._sweeping = copying, sweeping
        self._places = [cp.empty(size, dtype=cp.uint8) for _ in range(BUFFERS)]
        self._loaded = [cp.cuda.Event(disable_timing=True) for _ in range(BUFFERS)]
        self._free = [cp.cuda.Event(disable_timing=True) for _ in range(BUFFERS)]
        self._used = [False] * BUFFERS
        self.last = BUFFERS - 1

    def fetch(self, source: int, size: int) -> int:
        """Queue a journey from the host's memory; return the place, for `pointer`.

        Parameters
        ----------
        source
            Where it begins in pinned memory.
        size
            Its bytes.
        """
        place = self.last = (self.last + 1) % BUFFERS
        if self._used[place]:
            self._copying.wait_event(self._free[place])
        runtime = self._cp.cuda.runtime
        how = (runtime.memcpyDefault, self._copying.ptr)
        runtime.memcpyAsync(self.pointer(place), source, size, *how)
        self._loaded[place].record(self._copying)
        self._sweeping.wait_event(self._loaded[place])
        return place

    def pointer(self, place: int) -> int:
        """Return where a place begins on the device."""
        return int(self._places[place].data.ptr)

    def release(self, place: int) -> None:
        """Note that what is queued until now is the last to read what lies in a place."""
        self._free[place].record(self._sweeping)
        self._used[place] = True
