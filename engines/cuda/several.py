"""Several GPUs of one host: each sweeps a block of rows, and sends what the others read of it.

Every device holds the whole iterate, of which it computes its block's states. After a sweep it
sends each other device the range of its states that the rows there read, and all take the largest
change of any, so that all come to the same decision; see `engines.cuda.meeting`. A stretch of
sweeps is one CUDA graph over all devices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from engines.backend import cupy
from engines.cpu.prepare import scaled
from engines.cuda.engine import HISTORY, STRETCH, CudaEngine, CudaSweeper, two_vectors
from engines.cuda.meeting import ByEvents, ByFlags, Meeting, Part, copy_between, flags_serve
from engines.cuda.rows import DeviceRows, Test
from engines.cuda.transfer import to_device
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.formats.blocks import counted_from_first, ranges_read, row_blocks
from engines.formats.choice import Format
from engines.formats.csr import FloatArray
from engines.result import SweepCost
from engines.system import Sweeper, SweepSystem


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
    """

    name = "GPU"

    def __init__(
        self,
        devices: tuple[int, ...],
        matrix_format: Format = Format.CSR,
        most_memory: int | None = None,
    ) -> None:
        self._devices = devices
        self._format = matrix_format
        self._most_memory = most_memory
        self.device_number = devices[0]

    def sweeper(self, system: SweepSystem, stop_below: float, absolute: bool) -> Sweeper:
        """Prepare a solve; see `engines.system.Engine.sweeper`.

        What cannot be shared out is solved on the first device, with a remark.
        """
        cp = cupy()
        try:
            self._require_memory(system)
            return SeveralSweeper(system, stop_below, absolute, self._devices, self._format)
        except (UnsupportedError, DeviceMemoryError, cp.cuda.memory.OutOfMemoryError) as error:
            cp.get_default_memory_pool().free_all_blocks()
            alone = CudaEngine(self._devices[0], self._format, self._most_memory)
            sweeper = alone.sweeper(system, stop_below, absolute)
            reason = f"not shared out among {len(self._devices)} GPUs: {error}"
            remark = "; ".join(filter(None, (reason, sweeper.cost.remark)))
            sweeper.cost = replace(sweeper.cost, remark=remark)
            return sweeper

    def _require_memory(self, system: SweepSystem) -> None:
        """Raise `DeviceMemoryError` unless each device can hold its block, and all vectors."""
        cp = cupy()
        share = system.bytes_per_sweep // len(self._devices)
        need = 2 * share + 24 * system.num_states + 16 * HISTORY
        for device in dict.fromkeys(self._devices):
            with cp.cuda.Device(device):
                free = int(cp.cuda.runtime.memGetInfo()[0])
                free += int(cp.get_default_memory_pool().free_bytes())
            limit = free if self._most_memory is None else min(free, self._most_memory)
            wanted = need * self._devices.count(device)
            if wanted > limit:
                raise DeviceMemoryError(
                    f"GPU {device} may give {limit / 2**30:.2f} GiB, but its block needs "
                    f"{wanted / 2**30:.2f}"
                )


class SeveralSweeper(CudaSweeper):
    """A solve on several devices.

    Parameters
    ----------
    system
        What to solve.
    stop_below, absolute
        As in `engines.system.Engine.sweeper`.
    devices
        Which devices.
    matrix_format
        How each lays its block out.

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
    ) -> None:
        if system.states is not None and (np.diff(system.states) <= 0).any():
            raise UnsupportedError("the rows are not in the order of their states")
        if system.num_updates == 0:
            raise UnsupportedError("there are no rows")
        _open_paths(devices)
        self._devices = devices
        super().__init__(scaled(system), stop_below, absolute, devices[0], matrix_format)

    def _prepare(self, system: SweepSystem, matrix_format: Format) -> tuple[DeviceRows, ...]:
        cp = self._cp
        blocks = row_blocks(system, len(self._devices))
        self._parts: list[Part] = []
        for place, (device, block) in enumerate(zip(self._devices, blocks, strict=False)):
            with cp.cuda.Device(device):
                stream = self._stream if place == 0 else cp.cuda.Stream(non_blocking=True)
                with stream:
                    part = _part(device, stream, block, matrix_format)
                stream.synchronize()
            self._parts.append(part)
        for (place, reader), sent in ranges_read(blocks).items():
            self._parts[place].sends[reader] = sent
        self._by_events = ByEvents(self._parts)
        self._by_flags = ByFlags(self._parts) if flags_serve(self._parts) else None
        self._meeting: Meeting = self._by_events
        self._vectors = self._parts[0].vectors
        self._fork = _event()
        self._launcher = self._parts[0].rows.launcher
        return tuple(part.rows for part in self._parts)

    def _cost(self) -> SweepCost:
        first = self._rows[0]
        sent = sum(8 * (end - begin) for part in self._parts for begin, end in part.sends.values())
        devices = "+".join(str(part.device) for part in self._parts)
        how = "events" if self._by_flags is None else "flags"
        return SweepCost(
            f"GPU {devices}",
            first.kernel_name,
            str(first.layout.matrix_format),
            sum(rows.bytes_moved for rows in self._rows)
            - 8 * (len(self._rows) - 1) * len(self._parts[0].vectors[0]),
            remark=f"shared out among {len(self._parts)} GPUs, which send each other "
            f"{sent / 2**20:.2f} MiB a sweep and meet by {how}",
            estimates=first.estimates,
        )

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.system.Sweeper.run`.

        Raises
        ------
        UnsupportedError
            When a device has waited for another in vain.
        """
        changes = super().run(sweeps)
        self._require_all()
        return changes

    def _require_all(self) -> None:
        if self._by_flags is not None:
            self._by_flags.require_all()

    def _graph(self, sweeps: int) -> Any:
        # Only what is queued as a whole may wait for flags: the host may be stopped in between.
        self._meeting = self._by_flags or self._by_events
        try:
            return super()._graph(sweeps)
        finally:
            self._meeting = self._by_events

    def _stretch(self, sweeps: int) -> None:
        self._fork.record(self._stream)
        for part in self._parts:
            with self._cp.cuda.Device(part.device), part.stream:
                part.stream.wait_event(self._fork)
                part.changes.data.memset_async(0, part.changes.nbytes, part.stream)
        for t in range(1, sweeps + 1):
            source = (self._current + t - 1) % 2
            for part in self._parts:
                slots = (part.merged[t - 1 : t], part.changes[t : t + 1])
                test = Test(*slots, self._stop_below, self._absolute, self._early)
                self._sweep_part(part, source, self._omega, test)
            self._meeting.queue(t, 1 - source)
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
                part.done[0].record(part.stream)
            first.stream.wait_event(part.done[0])

    def _sweep_part(self, part: Part, source: int, omega: float, test: Test) -> None:
        with self._cp.cuda.Device(part.device), part.stream:
            part.rows.sweep(part.windows[source], part.windows[1 - source], omega, test)

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x."""
        cp, worst = self._cp, 0.0
        self._require_all()
        for part in self._parts:
            with cp.cuda.Device(part.device), part.stream:
                slots = cp.zeros(2)
                test = Test(slots[:1], slots[1:], -1.0, True, self._early)
                self._sweep_part(part, self._current, 1.0, test)
                worst = max(worst, float(slots.get()[1]))
        return worst

    def values(self) -> FloatArray:
        """Return the present iterate, shape (states,), on the host."""
        self._require_all()
        values = super().values()
        for part in self._parts[1:]:
            first, end = part.states
            with self._cp.cuda.Device(part.device), part.stream:
                values[first:end] = part.vectors[self._current][first:end].get()
        return values


def _part(device: int, stream: Any, block: SweepSystem, matrix_format: Format) -> Part:
    """Return a block's share of a solve, on the current device and stream."""
    cp, states = cupy(), block.states
    assert states is not None
    counted, first = counted_from_first(block)
    vectors = two_vectors(block.start)
    return Part(
        device,
        stream,
        DeviceRows.of(counted, matrix_format, segments_serve=False),
        vectors,
        (vectors[0][first:], vectors[1][first:]),
        (int(states[0]), int(states[-1]) + 1),
        (_event(), _event()),
        cp.zeros(STRETCH + 1),
        to_device(np.append(np.inf, np.zeros(STRETCH)), np.float64),
    )


def _event() -> Any:
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
