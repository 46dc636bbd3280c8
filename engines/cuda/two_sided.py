"""Two-sided sweeps on one GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from engines.arrays import INT32_MAX, FloatArray
from engines.cuda.driver import cupy
from engines.cuda.formats.lay_out import lay_out
from engines.cuda.formats.layout import Geometry, Layout, geometry
from engines.cuda.memory import require_bytes
from engines.cuda.modules import Launcher, stream
from engines.cuda.prepare import DeviceSystem, upload
from engines.cuda.queued import HISTORY, QueuedSweeps
from engines.cuda.rows import bytes_moved, needs_wide_offsets, sharers
from engines.cuda.transfer import to_device, to_host
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.model.choice import Format
from engines.model.result import SweepCost
from engines.systems.one_sided import Direction
from engines.systems.two_sided import SweepRecord, TwoSidedSystem

SLOT = 8
"""Numbers of a sweep's record, those unused included; as in the kernels."""

STRETCH = 32
"""Sweeps captured in one CUDA graph; even, so that a replay ends in the iterates it began with."""


class CudaTwoSidedSweeper(QueuedSweeps):
    """A two-sided solve on the device; see `engines.systems.two_sided.TwoSidedSweeper`.

    Iterates, widths and the end test stay on the device; the host reads the records of a batch.

    Raises
    ------
    DeviceMemoryError
        When the device cannot hold the system.
    UnsupportedError
        For more states than 32 bits number.
    """

    stretches = (STRETCH,)

    def __init__(
        self,
        two_sided: TwoSidedSystem,
        stop_below: float,
        absolute: bool,
        device_number: int,
        matrix_format: Format = Format.CSR,
    ) -> None:
        cp = self._cp = cupy()
        system = two_sided.system
        if system.num_states > INT32_MAX:
            raise UnsupportedError(
                f"{system.num_states} states: the GPU engine numbers states in 32 bits"
            )
        self._device, self._stop_below, self._absolute = device_number, stop_below, absolute
        self._monotonic = (two_sided.monotonic_below, two_sided.monotonic_above)
        self._slack = two_sided.slack
        self._stream = stream(device_number)
        try:
            with cp.cuda.Device(device_number), self._stream:
                self._require_memory(two_sided)
                launcher = Launcher("long long" if needs_wide_offsets(system) else "int")
                laid_out = lay_out(upload(system, launcher), system, matrix_format, launcher)
                self._system: DeviceSystem = laid_out.device
                self._layout: Layout = laid_out.layout
                self._launcher = Launcher(launcher.offset_type, self._layout.variant)
                start = np.column_stack((system.start, two_sided.upper))
                self._vectors = [to_device(start, np.float64) for _ in range(2)]
                self._make_room(SLOT)
        except cp.cuda.memory.OutOfMemoryError as error:
            cp.get_default_memory_pool().free_all_blocks()
            raise DeviceMemoryError(f"GPU {device_number} ran out of memory: {error}") from error
        self._updates = system.num_updates
        who = "groups_two_sided_by_thread"
        if system.group_offsets is None:
            alone = sharers(system, self._layout.matrix_format) == "thread"
            who = f"rows_two_sided_by_{'thread' if alone else 'warp'}"
        self._kernel = f"sweep_{who}"
        with cp.cuda.Device(device_number):
            self._geometry: Geometry = geometry(
                *(self._layout, self._kernel, "two_sided", self._updates),
                1 if who.endswith("thread") else 32,
                self._launcher,
            )
        moved = bytes_moved(system, self._system, self._layout)
        self.cost = SweepCost(
            *((device_number,), who, str(self._layout.matrix_format), moved),
            events=laid_out.events,
            estimates=laid_out.estimates,
        )
        self._stream.synchronize()

    def _require_memory(self, two_sided: TwoSidedSystem) -> None:
        system = two_sided.system
        need = system.bytes_per_sweep + 32 * system.num_states + 8 * SLOT * HISTORY
        require_bytes(self._device, need, "rows and bounds")

    def run(self, sweeps: int) -> SweepRecord:
        """Make up to `sweeps` sweeps."""
        return _record(self._batch(sweeps))

    def _stretch(self, sweeps: int) -> None:
        for t in range(1, sweeps + 1):
            self._sweep((self._current + t - 1) % 2, self._slots[t - 1], self._slots[t])
        history = (self._slots, self._history, self._length, self._cp.int32(sweeps))
        threads = (STRETCH + 1) * SLOT
        self._launcher.launch(
            "end_two_sided_stretch", threads, *history, module="two_sided", block=threads
        )

    def _sweep(self, source: int, before_slot: Any, slot: Any) -> None:
        cp, system = self._cp, self._system
        arguments: tuple[Any, ...] = (
            *(*self._layout.arguments, system.offset, system.states),
            *(cp.int32(self._updates), cp.int32(self._geometry.chunk)),
        )
        if system.group_offsets is not None:
            minimise = cp.int32(system.direction is Direction.MINIMISE)
            arguments = (system.group_offsets, *arguments, minimise)
        self._launcher.launch(
            self._kernel,
            self._geometry.threads,
            *arguments,
            self._vectors[source],
            self._vectors[1 - source],
            before_slot,
            slot,
            cp.float64(self._stop_below),
            *(cp.int32(switch) for switch in (*self._monotonic, self._absolute, self._slack)),
            module="two_sided",
            block=self._geometry.block,
            shared_bytes=self._layout.shared_bytes,
        )

    def guess_upper(self, distance: float, absolute: bool) -> None:
        """Replace the upper iterate by the lower one plus a distance."""
        cp = self._cp
        self._last = None
        with cp.cuda.Device(self._device), self._stream:
            self._launcher.launch(
                "end_two_sided_guess",
                self._updates,
                self._system.states,
                cp.int32(self._updates),
                self._vectors[self._current],
                cp.float64(distance),
                cp.int32(absolute),
                self._slots,
                module="two_sided",
            )

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper iterate."""
        with self._cp.cuda.Device(self._device), self._stream:
            both: FloatArray = to_host(self._vectors[self._current])
        return both[:, 0].copy(), both[:, 1].copy()


def _record(made: FloatArray) -> SweepRecord:
    return SweepRecord(*made[:, : len(SweepRecord._fields)].T)
