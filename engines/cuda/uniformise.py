"""Sums of powers on one GPU."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from engines.backend import cupy
from engines.cuda.engine import STRETCH, device_bytes
from engines.cuda.formats.lay_out import lay_out
from engines.cuda.formats.layout import Geometry, Layout, geometry
from engines.cuda.modules import Launcher, stream
from engines.cuda.prepare import DeviceSystem, upload
from engines.cuda.rows import bytes_moved, needs_wide_offsets, sharers
from engines.cuda.transfer import to_device, to_host
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.formats.choice import Format
from engines.formats.csr import INT32_MAX, FloatArray
from engines.progress import Progress
from engines.result import SweepCost
from engines.uniformisation import PowerSum, Summed

LOOK_EVERY = 64 * STRETCH
"""Sweeps between two looks of the host, which an interrupt has to wait for."""


def sum_powers(
    problem: PowerSum,
    progress: Progress | None,
    device_number: int,
    matrix_format: Format = Format.CSR,
) -> Summed:
    """Compute Σ_k c_k P^k x; see `engines.uniformisation`.

    Parameters
    ----------
    problem
        The sum.
    progress
        Called at each look of the host with the sweeps made, the share of the sum still to come
        and the seconds so far.
    device_number
        Which of the devices.
    matrix_format
        How the matrix is laid out.

    Raises
    ------
    DeviceMemoryError
        When the device cannot hold the system; nothing is left allocated.
    UnsupportedError
        For more states than 32 bits number.
    """
    cp = cupy()
    began = time.perf_counter()
    if problem.system.num_states > INT32_MAX:
        raise UnsupportedError(
            f"{problem.system.num_states} states: the GPU engine numbers states in 32 bits"
        )
    with cp.cuda.Device(device_number):
        need = bytes_needed(problem)
        free, total = cp.cuda.runtime.memGetInfo()
        free += cp.get_default_memory_pool().free_bytes()
        if need > free:
            raise DeviceMemoryError(
                f"GPU {device_number} has {free / 2**30:.2f} of {total / 2**30:.2f} GiB free, "
                f"but the solve needs {need / 2**30:.2f}"
            )
        try:
            device = _DeviceSum(problem, device_number, matrix_format)
        except cp.cuda.memory.OutOfMemoryError as error:
            cp.get_default_memory_pool().free_all_blocks()
            raise DeviceMemoryError(f"GPU {device_number} ran out of memory: {error}") from error
        return device.summed(progress, began)


def bytes_needed(problem: PowerSum) -> int:
    """Return the bytes that a sum takes on the device.

    Parameters
    ----------
    problem
        The sum.
    """
    beside = 2 * problem.stay.nbytes + problem.weights.nbytes + 4096
    return device_bytes(problem.system) + beside


class _DeviceSum:
    """A sum on the device: two vectors, swapped after each sweep, and a graph of sweeps."""

    def __init__(self, problem: PowerSum, device_number: int, matrix_format: Format) -> None:
        cp = self._cp = cupy()
        self._problem = problem
        self._where = slice(None) if problem.system.states is None else problem.system.states
        self._stream = stream(device_number)
        with self._stream:
            system = problem.system
            launcher = Launcher("long long" if needs_wide_offsets(system) else "int")
            laid_out = lay_out(upload(system, launcher), system, matrix_format, launcher)
            self._system: DeviceSystem = laid_out.device
            self._layout: Layout = laid_out.layout
            self._launcher = Launcher(launcher.offset_type, self._layout.variant)
            who = f"rows_by_{sharers(system, self._layout.matrix_format)}"
            self._kernel = f"uniformise_{who}"
            self._geometry: Geometry = geometry(
                *(self._layout, self._kernel, "uniformise", len(problem.stay)),
                1 if who.endswith("thread") else 32,
                self._launcher,
            )
            self._stay = to_device(problem.stay, np.float64)
            self._weights = to_device(problem.weights, np.float64)
            first = problem.coefficients(0, 1)[0] * system.start[self._where]
            self._total = to_device(first, np.float64)
            self._vectors = [to_device(system.start, np.float64) for _ in range(2)]
            # Slot 0 says whether the sweep before a stretch changed anything.
            self._slots = to_device(np.append(1, np.zeros(STRETCH)), np.int32)
            self._made = to_device(np.zeros(2), np.int64)
            self._events = (cp.cuda.Event(), cp.cuda.Event())
            # Vectors that never move: the arguments of all launches but for the last few.
            self._matrix = (
                *(*self._layout.arguments, self._system.states, self._stay),
                *(cp.int32(len(problem.stay)), cp.int32(self._geometry.chunk)),
                cp.float64(problem.rate),
            )
            self._coefficients = (
                *(self._weights, cp.int64(problem.left), cp.int64(len(problem.weights))),
                *(cp.float64(problem.before), self._made),
            )
        self._cost = SweepCost(
            *(f"GPU {device_number}", who, str(self._layout.matrix_format)),
            bytes_moved(system, self._system, self._layout) + problem.stay.nbytes,
            remark=laid_out.remark,
            estimates=laid_out.estimates,
        )
        self._stream.synchronize()

    def summed(self, progress: Progress | None, began: float) -> Summed:
        """Make all sweeps; `began` is when the preparation began."""
        problem, last = self._problem, self._problem.last
        setup = time.perf_counter() - began
        seconds, done, fixed = 0.0, 0, 0
        with self._stream:
            graph: Any = self._graph() if last >= STRETCH else None
            while done < last and not fixed:
                count = min(LOOK_EVERY, last - done)
                seconds += self._sweep(count, graph)
                done += count
                fixed = int(self._made.get()[1])
                if progress is not None:
                    progress(problem.report(done - count, done, seconds))
            total: FloatArray = to_host(self._total)
            if fixed:
                done = fixed
                # Both vectors hold the iterate that no longer changes.
                total += problem.after(done) * self._vectors[0].get()[self._where]
        return Summed(total, done, setup, seconds, self._cost)

    def _sweep(self, sweeps: int, graph: Any) -> float:
        """Make sweeps, from an even number of them on; return the seconds that they took."""
        began, ended = self._events
        began.record(self._stream)
        replays, rest = divmod(sweeps, STRETCH)
        for _ in range(replays):
            graph.launch(self._stream)
        if rest:
            self._stretch(rest)
        ended.record(self._stream)
        ended.synchronize()
        return float(self._cp.cuda.get_elapsed_time(began, ended)) / 1e3

    def _graph(self) -> Any:
        self._stream.begin_capture()
        self._stretch(STRETCH)
        return self._stream.end_capture()

    def _stretch(self, sweeps: int) -> None:
        cp, shape = self._cp, self._geometry
        for t in range(1, sweeps + 1):
            vectors = (self._vectors[(t - 1) % 2], self._vectors[t % 2], self._total)
            slots = (self._slots[t - 1 : t], self._slots[t : t + 1])
            arguments = (*self._matrix, *vectors, *self._coefficients, cp.int32(t), *slots)
            self._launcher.launch(
                self._kernel,
                shape.threads,
                *arguments,
                module="uniformise",
                block=shape.block,
                shared_bytes=self._layout.shared_bytes,
            )
        self._launcher.launch(
            "end_uniformise_stretch",
            STRETCH + 1,
            *(self._slots, self._made, cp.int32(sweeps)),
            module="uniformise",
            block=2 * STRETCH,
        )
