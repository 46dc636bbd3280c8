"""The CUDA engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from engines.backend import cupy
from engines.cuda.modules import BLOCK_THREADS, Launcher, stream
from engines.cuda.prepare import DeviceSystem, to_device, upload
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.formats.csr import INT32_MAX, FloatArray
from engines.result import SweepCost
from engines.system import Direction, SweepSystem

WARP_ROW_ENTRIES = 24
"""From this mean row length on, a warp takes a row."""

BLOCK_ROW_ENTRIES = 2048
"""From this longest row on, a block takes a row: a warp would still be at it when all is done."""

THREADS_A_ROW = {
    "sweep_rows_by_thread": 1,
    "sweep_rows_by_warp": 32,
    "sweep_rows_by_block": BLOCK_THREADS,
}

STRETCH = 64
"""Sweeps captured in one CUDA graph; even, so that a replay ends in the vector it began with."""

HISTORY = 4096
"""The most sweeps between two looks of the host."""

LONG_SWEEP_BYTES = 50_000_000
"""From here on a sweep is longer than the look at its predecessor's change, and looks first."""


class CudaEngine:
    """Sweeps on one GPU.

    Parameters
    ----------
    device_number
        Which of the devices.
    """

    name = "GPU"

    def __init__(self, device_number: int = 0) -> None:
        self.device_number = device_number

    def sweeper(self, system: SweepSystem, stop_below: float, absolute: bool) -> CudaSweeper:
        """Prepare a solve; see `engines.system.Engine.sweeper`.

        Raises
        ------
        DeviceMemoryError
            When the device cannot hold the system; nothing is left allocated.
        """
        cp = cupy()
        if system.num_states > INT32_MAX:
            raise UnsupportedError(
                f"{system.num_states} states: the GPU engine numbers states in 32 bits"
            )
        with cp.cuda.Device(self.device_number):
            need = device_bytes(system)
            free, total = cp.cuda.runtime.memGetInfo()
            free += cp.get_default_memory_pool().free_bytes()
            if need > free:
                raise DeviceMemoryError(
                    f"GPU {self.device_number} has {free / 2**30:.2f} of {total / 2**30:.2f} GiB "
                    f"free, but the solve needs {need / 2**30:.2f}"
                )
            try:
                return CudaSweeper(system, stop_below, absolute, self.device_number)
            except cp.cuda.memory.OutOfMemoryError as error:
                cp.get_default_memory_pool().free_all_blocks()
                raise DeviceMemoryError(
                    f"GPU {self.device_number} ran out of memory: {error}"
                ) from error


def device_bytes(system: SweepSystem) -> int:
    """Return the bytes that a solve takes on the device, the peak of its preparation included."""
    turned = 2 if system.scaling.name == "BALANCE" else 1
    return turned * system.bytes_per_sweep + 24 * system.num_states + 16 * HISTORY


class CudaSweeper:
    """A solve on the device: two vectors, swapped after each sweep, and a CUDA graph of sweeps."""

    def __init__(
        self, system: SweepSystem, stop_below: float, absolute: bool, device_number: int
    ) -> None:
        cp = self._cp = cupy()
        self._device = device_number
        self._stop_below, self._absolute = stop_below, absolute
        self._stream = stream(device_number)
        with self._stream:
            self._launcher = Launcher("long long" if needs_wide_offsets(system) else "int")
            self._system: DeviceSystem = upload(system, self._launcher)
            self._vectors = [to_device(system.start, np.float64) for _ in range(2)]
            # Slot 0 holds the change before a stretch of sweeps; before the first, infinity.
            self._slots = to_device(np.append(np.inf, np.zeros(STRETCH)), np.float64)
            self._history = cp.empty(HISTORY)
            self._length = cp.empty(1, dtype=cp.int32)
            self._events = (cp.cuda.Event(), cp.cuda.Event())
        self.seconds = 0.0
        self._current = 0
        self._last_change = np.inf
        self._graphs: list[Any] = [None, None]
        self._kernel = self._choose_kernel(system)
        self._early = cp.int32(system.bytes_per_sweep >= LONG_SWEEP_BYTES)
        kernel = self._kernel.removeprefix("sweep_")
        self.cost = SweepCost(f"GPU {device_number}", kernel, "csr", system.bytes_per_sweep)
        self._stream.synchronize()

    def _choose_kernel(self, system: SweepSystem) -> str:
        if system.group_offsets is not None:
            return "sweep_groups_by_thread"
        if system.matrix.num_entries < WARP_ROW_ENTRIES * system.matrix.num_rows:
            return "sweep_rows_by_thread"
        if system.matrix.row_lengths().max() < BLOCK_ROW_ENTRIES:
            return "sweep_rows_by_warp"
        return "sweep_rows_by_block"

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.system.Sweeper.run`."""
        sweeps = min(sweeps, HISTORY)
        if self._last_change < self._stop_below:
            return np.array([self._last_change])
        with self._cp.cuda.Device(self._device), self._stream:
            began, ended = self._events
            self._length.data.memset_async(0, self._length.nbytes, self._stream)
            graph: Any = self._graph() if sweeps >= STRETCH else None
            began.record(self._stream)
            replays, rest = divmod(sweeps, STRETCH)
            for _ in range(replays):
                graph.launch(self._stream)
            if rest:
                self._stretch(rest)
            ended.record(self._stream)
            changes: FloatArray = self._history[:sweeps].get()
            self.seconds += self._cp.cuda.get_elapsed_time(began, ended) / 1e3
        met = changes < self._stop_below
        done = int(met.argmax()) + 1 if met.any() else sweeps
        self._current = (self._current + done) % 2
        self._last_change = float(changes[done - 1])
        return changes[:done]

    def _graph(self) -> Any:
        graph = self._graphs[self._current]
        if graph is None:
            self._stream.begin_capture()
            self._stretch(STRETCH)
            graph = self._graphs[self._current] = self._stream.end_capture()
        return graph

    def _stretch(self, sweeps: int) -> None:
        for t in range(1, sweeps + 1):
            self._launch(
                (self._current + t - 1) % 2,
                self._system.omega,
                (self._slots[t - 1 : t], self._slots[t : t + 1]),
                self._stop_below,
                self._absolute,
            )
        history = (self._slots, self._history, self._length, self._cp.int32(sweeps))
        self._launcher.launch("end_stretch", STRETCH + 1, *history, block=2 * STRETCH)

    def _launch(
        self, source: int, omega: float, slots: Any, stop_below: float, absolute: bool
    ) -> None:
        cp, system = self._cp, self._system
        vectors = (self._vectors[source], self._vectors[1 - source])
        test = (*slots, cp.float64(stop_below), cp.int32(absolute), self._early)
        matrix = (system.row_offsets, system.columns, system.values, system.offset, system.states)
        if system.group_offsets is not None:
            minimise = cp.int32(system.direction is Direction.MINIMISE)
            groups = cp.int32(len(system.group_offsets) - 1)
            arguments: tuple[Any, ...] = (system.group_offsets, *matrix, groups, minimise)
            threads = int(groups)
        else:
            rows = cp.int32(len(system.row_offsets) - 1)
            arguments = (*matrix, rows, cp.float64(omega))
            threads = int(rows) * THREADS_A_ROW[self._kernel]
        self._launcher.launch(self._kernel, threads, *arguments, *vectors, *test)

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x."""
        cp = self._cp
        with cp.cuda.Device(self._device), self._stream:
            slots = cp.zeros(2)
            self._launch(self._current, 1.0, (slots[:1], slots[1:]), -1.0, True)
            return float(slots.get()[1])

    def values(self) -> FloatArray:
        """Return the present iterate, shape (states,), on the host."""
        with self._cp.cuda.Device(self._device), self._stream:
            values: FloatArray = self._vectors[self._current].get()
        return values


def needs_wide_offsets(system: SweepSystem) -> bool:
    """Return whether a system's entries or rows are more than 32 bits can number."""
    return max(system.matrix.num_entries, system.matrix.num_rows) > INT32_MAX
