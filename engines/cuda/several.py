"""Several GPUs of one host: each sweeps a block of rows, and sends what the others read of it.

Every device holds the whole iterate, of which it computes its block's states. After a sweep it
sends each other device the range of its states that the rows there read, and all take the largest
change of any, so that all come to the same decision; see `engines.cuda.meeting`. A stretch of
sweeps is one CUDA graph over all devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import numpy as np

from engines.arrays import FloatArray
from engines.cuda.driver import cupy
from engines.cuda.engine import CudaEngine
from engines.cuda.meeting import (
    Meetings,
    MeetingTuning,
    Part,
    Rows,
    begin_stretch,
    copy_between,
    end_stretch,
    gather,
)
from engines.cuda.memory import require_bytes
from engines.cuda.modules import stream as stream_of
from engines.cuda.queued import HISTORY, STRETCH
from engines.cuda.rows import DeviceRows, Test
from engines.cuda.sweeper import CudaSweeper, two_vectors
from engines.cuda.transfer import send, to_device
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.formats.blocks import counted_from_first, ranges_read, row_blocks
from engines.host.scaling import scaled
from engines.host.space import HostSpace
from engines.model.choice import Format
from engines.model.events import Event, Kind
from engines.model.result import SweepCost
from engines.systems.one_sided import Sweeper, SweepSystem
from engines.systems.space import Space

Shared = TypeVar("Shared")


class SeveralEngine:
    """Sweeps on several GPUs.

    Parameters
    ----------
    devices
        Which of them, the first of which decides; a device may be named twice.
    matrix_format
        How each lays its block out.
    most_memory
        Bytes that a solve may take of each device; None for what is free.
    meeting
        How the devices meet.
    """

    def __init__(
        self,
        devices: tuple[int, ...],
        matrix_format: Format = Format.CSR,
        most_memory: int | None = None,
        meeting: MeetingTuning = MeetingTuning(),
    ) -> None:
        self.gpus, self._meeting = devices, meeting
        self._format = matrix_format
        self._most_memory = most_memory

    def sweeper(self, system: SweepSystem, stop_below: float, absolute: bool) -> Sweeper:
        """Prepare a solve; see `engines.systems.one_sided.Scheme.sweeper`.

        What cannot be shared out is solved on the first device, and the cost tells why.
        """

        def prepare() -> SeveralSweeper:
            beside = 24 * system.num_states + 16 * HISTORY
            require_room(self.gpus, system.bytes_per_sweep, beside, self._most_memory)
            how = (self._format, self._meeting)
            return SeveralSweeper(system, stop_below, absolute, self.gpus, *how)

        shared = shared_or_reason(self.gpus, prepare)
        if not isinstance(shared, Event):
            return shared
        alone = CudaEngine(self.gpus[0], self._format, self._most_memory)
        sweeper = alone.sweeper(system, stop_below, absolute)
        sweeper.cost = told_of(sweeper.cost, shared)
        return sweeper


def shared_or_reason(devices: tuple[int, ...], prepare: Callable[[], Shared]) -> Shared | Event:
    """Return what is shared out among devices; else why it is not, and nothing is left allocated.

    Parameters
    ----------
    devices
        Which devices.
    prepare
        Shares it out, or raises `UnsupportedError`, `DeviceMemoryError` or CuPy's own.
    """
    cp = cupy()
    try:
        return prepare()
    except (UnsupportedError, DeviceMemoryError, cp.cuda.memory.OutOfMemoryError) as error:
        refused = Kind.NOT_SHARED_OUT(gpus=len(devices), reason=str(error))
    # Only without the error, whose frames hold it, is what was allocated free.
    for device in dict.fromkeys(devices):
        with cp.cuda.Device(device):
            cp.get_default_memory_pool().free_all_blocks()
    return refused


def require_room(
    devices: tuple[int, ...], shared: int, beside: int, most_memory: int | None
) -> None:
    """Raise `DeviceMemoryError` unless each device can hold its block, and what all hold.

    Parameters
    ----------
    devices
        Which devices.
    shared
        Bytes of what is cut into blocks.
    beside
        Bytes that each device takes beside its block.
    most_memory
        Bytes that a solve may take of each device; None for what is free.
    """
    cp = cupy()
    need = 2 * (shared // len(devices)) + beside
    for device in dict.fromkeys(devices):
        with cp.cuda.Device(device):
            require_bytes(device, need * devices.count(device), "its block", most_memory)


def told_of(cost: SweepCost, event: Event) -> SweepCost:
    """Return a cost with an event before its own."""
    return replace(cost, events=(event, *cost.events))


class SeveralSweeper(CudaSweeper):
    """A solve on several devices.

    Parameters
    ----------
    system
        What to solve.
    stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`.
    devices
        Which devices.
    matrix_format
        How each lays its block out.
    meeting
        How they meet.

    Raises
    ------
    UnsupportedError
        When the devices cannot reach each other's memory, or the rows are not in the order of
        their states.
    """

    only_in_double = "several GPUs sweep in double precision"
    stretches = (STRETCH,)

    def __init__(
        self,
        system: SweepSystem,
        stop_below: float,
        absolute: bool,
        devices: tuple[int, ...],
        matrix_format: Format,
        meeting: MeetingTuning,
    ) -> None:
        require_shareable(system, devices)
        self._devices, self._meeting = devices, meeting
        super().__init__(scaled(system), stop_below, absolute, devices[0], matrix_format)

    def _prepare(self, system: SweepSystem, matrix_format: Format) -> tuple[DeviceRows, ...]:
        blocks = row_blocks(system, len(self._devices))

        def laid_out(_place: int, counted: SweepSystem) -> DeviceRows:
            return DeviceRows.of(counted, matrix_format, segments_serve=False)

        self._parts = parts_of(blocks, self._devices, laid_out, np.inf)
        self._meetings = Meetings(self._parts, self._meeting)
        self._vectors = self._parts[0].vectors
        self._fork = event()
        self._launcher = self._parts[0].rows.launcher
        return tuple(part.rows for part in self._parts)

    def _cost(self) -> SweepCost:
        first = self._rows[0]
        cost = SweepCost(
            (self._device,),
            first.kernel_name,
            str(first.layout.matrix_format),
            sum(rows.bytes_moved for rows in self._rows),
            events=first.events,
            estimates=first.estimates,
        )
        return shared_out(cost, self._parts, self._meetings.way)

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.systems.one_sided.Sweeper.run`.

        Raises
        ------
        UnsupportedError
            When a device has waited for another in vain.
        """
        changes = super().run(sweeps)
        self._meetings.require_all()
        return changes

    def _graph(self, sweeps: int) -> Any:
        with self._meetings.queued_as_a_whole():
            return super()._graph(sweeps)

    def _stretch(self, sweeps: int) -> None:
        begin_stretch(self._parts, self._fork)
        for t in range(1, sweeps + 1):
            source = (self._current + t - 1) % 2
            for part in self._parts:
                slots = (part.merged[t - 1 : t], part.changes[t : t + 1])
                test = Test(*slots, self._stop_below, self._absolute, self._early)
                self._sweep_part(part, source, self._omega, test)
            self._meetings.queue(t, 1 - source)
        self._end_stretch(sweeps)

    def _end_stretch(self, sweeps: int) -> None:
        """Keep the changes; the last one is what the next stretch begins with."""
        first = self._parts[0]
        with self._cp.cuda.Device(first.device), first.stream:
            history = (first.merged, self._history, self._length, self._cp.int32(sweeps))
            self._launcher.launch("end_stretch", STRETCH + 1, *history, block=2 * STRETCH)
        for part in self._parts[1:]:
            with self._cp.cuda.Device(part.device), part.stream:
                start = part.merged.data.ptr
                copy_between(start, start + 8 * sweeps, 8, part.stream)
        end_stretch(self._parts)

    def _sweep_part(self, part: Part[DeviceRows], source: int, omega: float, test: Test) -> None:
        with self._cp.cuda.Device(part.device), part.stream:
            part.rows.sweep(part.windows[source], part.windows[1 - source], omega, test)

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x."""
        cp, worst = self._cp, 0.0
        self._meetings.require_all()
        for part in self._parts:
            with cp.cuda.Device(part.device), part.stream:
                slots = cp.zeros(2)
                test = Test(slots[:1], slots[1:], -1.0, True, self._early)
                self._sweep_part(part, self._current, 1.0, test)
                worst = max(worst, float(slots.get()[1]))
        return worst

    def restart(self, start: FloatArray) -> None:
        """Go on from another iterate; see `engines.systems.space.HasSpace`."""
        for part in self._parts:
            with self._cp.cuda.Device(part.device), part.stream:
                send(start, part.vectors[self._current])
                part.stream.synchronize()
        self._last = None

    def space(self, system: SweepSystem) -> Space:
        """Return a space for GMRES, on the host, since no device has all of the iterate."""
        return HostSpace(system, self)

    def values(self) -> FloatArray:
        """Return the present iterate, shape (states,), on the host."""
        self._meetings.require_all()
        return gather(self._parts, self._current, super().values())


def require_shareable(system: SweepSystem, devices: tuple[int, ...]) -> None:
    """Raise `UnsupportedError` unless devices can share the rows of a system out.

    Parameters
    ----------
    system
        What is to be solved.
    devices
        Which devices; they can reach each other's memory from now on.
    """
    if system.states is not None and (np.diff(system.states) <= 0).any():
        raise UnsupportedError("the rows are not in the order of their states")
    if system.num_updates == 0:
        raise UnsupportedError("there are no rows")
    _open_paths(devices)


def parts_of(
    blocks: Sequence[SweepSystem],
    devices: Sequence[int],
    laid_out: Callable[[int, SweepSystem], Rows],
    before: float,
) -> list[Part[Rows]]:
    """Share the blocks of a system out among devices.

    Parameters
    ----------
    blocks
        The blocks, a device each.
    devices
        Which devices: as many as there are blocks, or more.
    laid_out
        Makes a block's rows on the current device and stream, of its place and of the block with
        its columns counted as in its windows.
    before
        The change before the first sweep.
    """
    cp, parts = cupy(), []
    for place, (device, block) in enumerate(zip(devices, blocks, strict=False)):
        with cp.cuda.Device(device):
            stream = _stream(device, list(devices[:place]).count(device))
            with stream:
                parts.append(_part(device, stream, place, block, laid_out, before))
            stream.synchronize()
    for (place, reader), sent in ranges_read(blocks).items():
        parts[place].sends[reader] = sent
    return parts


@cache
def _stream(device: int, before: int) -> Any:
    """Return a device's stream, or another one where `before` parts of a solve have streams there.

    They are kept, for the same reason as `engines.cuda.modules.stream`.
    """
    return cupy().cuda.Stream(non_blocking=True) if before else stream_of(device)


def _part(
    device: int,
    stream: Any,
    place: int,
    block: SweepSystem,
    laid_out: Callable[[int, SweepSystem], Rows],
    before: float,
) -> Part[Rows]:
    """Return a block's share of a solve, on the current device and stream."""
    cp, states = cupy(), block.states
    assert states is not None
    counted, first = counted_from_first(block)
    vectors = two_vectors(block.start)
    return Part(
        device,
        stream,
        laid_out(place, counted),
        vectors,
        (vectors[0][first:], vectors[1][first:]),
        (int(states[0]), int(states[-1]) + 1),
        (event(), event()),
        cp.zeros(STRETCH + 1),
        to_device(np.append(before, np.zeros(STRETCH)), np.float64),
    )


def shared_out(cost: SweepCost, parts: Sequence[Part[Any]], way: str) -> SweepCost:
    """Return what a sweep of all parts costs, and who makes it.

    Parameters
    ----------
    cost
        With the bytes of all parts' sweeps, and all else as the first part has it.
    parts
        All shares, in their order.
    way
        How they meet.
    """
    sent = sum(8 * (end - begin) for part in parts for begin, end in part.sends.values())
    gpus = tuple(part.device for part in parts)
    # Each part's bytes count the reading of a whole iterate.
    moved = cost.bytes_per_sweep - 8 * (len(parts) - 1) * len(parts[0].vectors[0])
    shared = Kind.SHARED_OUT(gpus=len(parts), mebibytes=sent / 2**20, way=way)
    return told_of(replace(cost, gpus=gpus, bytes_per_sweep=moved), shared)


def event() -> Any:
    """Return an event of the current device that orders streams, and times nothing."""
    return cupy().cuda.Event(disable_timing=True)


def _open_paths(devices: tuple[int, ...]) -> None:
    """Let the devices reach each other's memory.

    Raises
    ------
    UnsupportedError
        When two of them cannot.
    """
    runtime = cupy().cuda.runtime
    for device in dict.fromkeys(devices):
        for other in dict.fromkeys(devices):
            if other == device:
                continue
            if not runtime.deviceCanAccessPeer(device, other):
                raise UnsupportedError(f"GPU {device} cannot reach the memory of GPU {other}")
            with cupy().cuda.Device(device):
                try:
                    runtime.deviceEnablePeerAccess(other)
                except runtime.CUDARuntimeError as error:
                    if "PeerAccessAlreadyEnabled" not in str(error):
                        raise
