"""Sums of powers on one GPU."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX, FloatArray
from engines.cuda.driver import cupy
from engines.cuda.formats.lay_out import lay_out
from engines.cuda.formats.layout import Geometry, Layout, geometry
from engines.cuda.memory import require_bytes
from engines.cuda.modules import Launcher, stream
from engines.cuda.prepare import DeviceSystem, upload
from engines.cuda.queued import STRETCH
from engines.cuda.rows import bytes_moved, needs_wide_offsets, sharers
from engines.cuda.sweeper import device_bytes, two_vectors
from engines.cuda.transfer import to_device, to_host
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.model.choice import Format
from engines.model.events import Events
from engines.model.progress import Progress
from engines.model.result import SweepCost
from engines.systems.one_sided import SweepSystem
from engines.systems.power_sums import PowerSum, Summed

LOOK_EVERY = 64 * STRETCH
"""Sweeps between two looks of the host, which an interrupt has to wait for."""


def sum_powers(
    problem: PowerSum,
    progress: Progress | None,
    device_number: int,
    matrix_format: Format = Format.CSR,
    most_memory: int | None = None,
) -> Summed:
    """Compute Σ_k c_k P^k x; see `engines.questions.uniformisation`.

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
    most_memory
        Bytes of device memory that the sum may take; None for what is free.

    Raises
    ------
    DeviceMemoryError
        When the device cannot hold the system; nothing is left allocated.
    UnsupportedError
        For more states than 32 bits number.
    """
    cp = cupy()
    began = time.perf_counter()
    require_numbers(problem)
    with cp.cuda.Device(device_number):
        require_bytes(device_number, bytes_needed(problem), "rows and sums", most_memory)
        try:
            device = DeviceSum(problem, device_number, matrix_format)
        except cp.cuda.memory.OutOfMemoryError as error:
            cp.get_default_memory_pool().free_all_blocks()
            raise DeviceMemoryError(f"GPU {device_number} ran out of memory: {error}") from error
        return device.summed(progress, began)


def require_numbers(problem: PowerSum) -> None:
    """Raise `UnsupportedError` for more states than 32 bits number."""
    if problem.system.num_states > INT32_MAX:
        raise UnsupportedError(
            f"{problem.system.num_states} states: the GPU engine numbers states in 32 bits"
        )


def bytes_needed(problem: PowerSum) -> int:
    """Return the bytes that a sum takes on the device.

    Parameters
    ----------
    problem
        The sum.
    """
    beside = 2 * problem.stay.nbytes + problem.weights.nbytes + 4096
    return device_bytes(problem.system) + beside


def first_term(problem: PowerSum) -> FloatArray:
    """Return c_0 x of the states that have rows, shape (rows,)."""
    first: FloatArray = problem.coefficients(0, 1)[0] * problem.system.start[_where(problem)]
    return first


def _where(problem: PowerSum) -> Any:
    states = problem.system.states
    return slice(None) if states is None else states


@dataclass(frozen=True)
class SumRows:
    """All rows of a sum, or a block of them, on the current device.

    Parameters
    ----------
    device, layout
        The arrays.
    launcher, kernel, geometry
        What sweeps them, and how it is launched.
    total
        The sum so far, shape (rows,).
    made
        How many sweeps earlier stretches have made, and the first that changed nothing and the
        first that was steady, 0 for none.
    matrix, coefficients
        The kernel's arguments before and behind the vectors.
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
    total: Any
    made: Any
    matrix: tuple[Any, ...]
    coefficients: tuple[Any, ...]
    bytes_moved: int
    events: Events
    estimates: str

    @classmethod
    def of(
        cls, problem: PowerSum, first: FloatArray, whole: SweepSystem, matrix_format: Format
    ) -> SumRows:
        """Copy the rows of a sum to the current device and lay them out.

        Parameters
        ----------
        problem
            The sum, of these rows alone.
        first
            Its first term, shape (rows,).
        whole
            What these rows are a block of; it says how many threads share a row, and so in which
            order its products are added up.
        matrix_format
            How the matrix is laid out.
        """
        cp, system = cupy(), problem.system
        launcher = Launcher("long long" if needs_wide_offsets(system) else "int")
        laid_out = lay_out(upload(system, launcher), system, matrix_format, launcher)
        device, layout = laid_out.device, laid_out.layout
        launcher = Launcher(launcher.offset_type, layout.variant)
        kernel, rows = f"uniformise_rows_by_{sharers(whole, layout.matrix_format)}", len(first)
        threads_each = 1 if kernel.endswith("thread") else 32
        shape = geometry(layout, kernel, "uniformise", rows, threads_each, launcher)
        made = to_device(np.zeros(3), np.int64)
        return cls(
            *(device, layout, launcher, kernel, shape, to_device(first, np.float64), made),
            matrix=(
                *(*layout.arguments, device.states, to_device(problem.stay, np.float64)),
                *(cp.int32(rows), cp.int32(shape.chunk), cp.float64(problem.rate)),
            ),
            coefficients=(
                *(to_device(problem.weights, np.float64), cp.int64(problem.left)),
                *(cp.int64(len(problem.weights)), cp.float64(problem.before), made),
                *(cp.float64(problem.steady_share), cp.float64(problem.steady_change)),
            ),
            bytes_moved=bytes_moved(system, device, layout) + problem.stay.nbytes,
            events=laid_out.events,
            estimates=laid_out.estimates,
        )

    @property
    def kernel_name(self) -> str:
        """The kernel that sweeps these rows, for the log."""
        return self.kernel.removeprefix("uniformise_")

    def sweep(self, sweep: int, x: Any, x_new: Any, before_slot: Any, slot: Any) -> None:
        """Queue a sweep of these rows, and the sum of its term, on the current stream.

        Parameters
        ----------
        sweep
            Number of the sweep in its stretch, from 1 on.
        x, x_new
            The iterate before and after.
        before_slot, slot
            What the sweep before changed, and where this one says so: 2 if it is not steady, else 1
            if it changed anything, else 0.
        """
        vectors, slots = (x, x_new, self.total), (before_slot, slot)
        self.launcher.launch(
            self.kernel,
            self.geometry.threads,
            *(*self.matrix, *vectors, *self.coefficients, cupy().int32(sweep), *slots),
            module="uniformise",
            block=self.geometry.block,
            shared_bytes=self.layout.shared_bytes,
        )

    def end_stretch(self, slots: Any, sweeps: int) -> None:
        """Count the sweeps of a stretch, on the current stream; the next one begins with the last.

        Parameters
        ----------
        slots
            What each of them changed, and the one before them, shape (longest stretch + 1,).
        sweeps
            How many there were.
        """
        self.launcher.launch(
            "end_uniformise_stretch",
            STRETCH + 1,
            *(slots, self.made, cupy().int32(sweeps)),
            module="uniformise",
            block=2 * STRETCH,
        )


class DeviceSum:
    """A sum on the current device: two vectors, swapped after each sweep, and a graph of sweeps.

    Parameters
    ----------
    problem
        The sum.
    device_number
        Number of the current device.
    matrix_format
        How the matrix is laid out.
    """

    def __init__(self, problem: PowerSum, device_number: int, matrix_format: Format) -> None:
        cp = self._cp = cupy()
        self._problem, self._device = problem, device_number
        self._stream = stream(device_number)
        with self._stream:
            self._prepare(matrix_format)
            self._events = (cp.cuda.Event(), cp.cuda.Event())
        self.cost = self._cost()
        self._stream.synchronize()

    def _prepare(self, matrix_format: Format) -> None:
        problem = self._problem
        system = problem.system
        self._rows = SumRows.of(problem, first_term(problem), system, matrix_format)
        self._vectors = two_vectors(system.start)
        # Slot 0 says whether the sweep before a stretch changed anything.
        self._slots = to_device(np.append(1.0, np.zeros(STRETCH)), np.float64)

    def _cost(self) -> SweepCost:
        rows = self._rows
        return SweepCost(
            (self._device,),
            rows.kernel_name,
            str(rows.layout.matrix_format),
            rows.bytes_moved,
            events=rows.events,
            estimates=rows.estimates,
        )

    def summed(self, progress: Progress | None, began: float) -> Summed:
        """Make all sweeps; `began` is when the preparation began."""
        problem, last = self._problem, self._problem.last
        setup = time.perf_counter() - began
        seconds, done, fixed, steady = 0.0, 0, 0, 0
        with self._stream:
            graph: Any = self._graph() if last >= STRETCH else None
            while done < last and not fixed:
                count = min(LOOK_EVERY, last - done)
                seconds += self._sweep(count, graph)
                done += count
                fixed, steady = self._ended()
                if progress is not None:
                    progress(problem.report(done - count, done, seconds))
            total = self._total()
            if fixed:
                done = fixed
                # Both vectors hold the iterate that no longer changes.
                total += problem.after(done) * self._iterate()[_where(problem)]
        return Summed(total, done, steady, setup, seconds, self.cost)

    def _ended(self) -> tuple[int, int]:
        """Return the first sweep that changed nothing and the first steady one, 0 for none."""
        _, fixed, steady = map(int, self._rows.made.get())
        return fixed, steady

    def _total(self) -> FloatArray:
        total: FloatArray = to_host(self._rows.total)
        return total

    def _iterate(self) -> FloatArray:
        iterate: FloatArray = to_host(self._vectors[0])
        return iterate

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
        """Return the graph of a whole stretch."""
        self._stream.begin_capture()
        self._stretch(STRETCH)
        return self._stream.end_capture()

    def _stretch(self, sweeps: int) -> None:
        for t in range(1, sweeps + 1):
            slots = (self._slots[t - 1 : t], self._slots[t : t + 1])
            self._rows.sweep(t, self._vectors[(t - 1) % 2], self._vectors[t % 2], *slots)
        self._rows.end_stretch(self._slots, sweeps)
