"""Coloured Gauss-Seidel on a GPU: a launch a colour, sweeps captured in CUDA graphs."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from engines.arrays import FloatArray
from engines.cuda.arrange import DeviceColoured
from engines.cuda.driver import cupy
from engines.cuda.modules import BLOCK_THREADS, Launcher, stream
from engines.cuda.queued import STRETCH, QueuedSweeps
from engines.cuda.transfer import to_device, to_host
from engines.model.result import SweepCost
from engines.systems.one_sided import Direction

THREADS_A_ROW = {
    "sweep_rows_of_colour_by_thread": 1,
    "sweep_rows_of_colour_by_warp": 32,
    "sweep_rows_of_colour_by_block": BLOCK_THREADS,
    "sweep_groups_of_colour_by_thread": 1,
}


class ColourSweeper(QueuedSweeps):
    """A solve on the device in colours: two vectors, swapped after each sweep; a `Sweeper`.

    Parameters
    ----------
    start
        The first iterate, shape (states,).
    colours
        Number of colours.
    omega
        Relaxation.
    stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`.
    device_number
        Which of the devices.
    """

    cost: SweepCost

    def __init__(
        self,
        start: FloatArray,
        colours: int,
        omega: float,
        stop_below: float,
        absolute: bool,
        device_number: int,
    ) -> None:
        cp = self._cp = cupy()
        self._device = device_number
        self._colours, self._omega = colours, omega
        self._stop_below, self._absolute = stop_below, absolute
        self.stretches = (stretch_of(colours),)
        self._stream = stream(device_number)
        with cp.cuda.Device(device_number), self._stream:
            self._launcher = self._prepare()
            self._vectors = self._first_vectors(start)
            self._make_room()
        self._stream.synchronize()

    @abstractmethod
    def _prepare(self) -> Launcher:
        """Copy the system to the device; return what launches its kernels."""

    def _first_vectors(self, start: FloatArray) -> list[Any]:
        """Return both vectors, holding the first iterate."""
        return [to_device(start, np.float64) for _ in range(2)]

    @abstractmethod
    def _sweep_colour(self, source: int, colour: int, slots: Any) -> None:
        """Queue a colour of a sweep from one of the two vectors to the other."""

    @abstractmethod
    def _sweep_at_once(self, source: int, slots: Any) -> None:
        """Queue a sweep in which nothing is fresh, without relaxation or test, changes absolute."""

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.systems.one_sided.Sweeper.run`."""
        return self._batch(sweeps)

    def _stretch(self, sweeps: int) -> None:
        for t in range(1, sweeps + 1):
            source = (self._current + t - 1) % 2
            slots = (self._slots[t - 1 : t], self._slots[t : t + 1])
            for colour in range(self._colours):
                self._sweep_colour(source, colour, slots)
        history = (self._slots, self._history, self._length, self._cp.int32(sweeps))
        threads = STRETCH + 1
        self._launcher.launch(
            "end_stretch_of_colours", threads, *history, module="gauss_seidel", block=threads
        )

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x."""
        cp = self._cp
        with cp.cuda.Device(self._device), self._stream:
            slots = cp.zeros(2)
            self._sweep_at_once(self._current, (slots[:1], slots[1:]))
            return float(slots.get()[1])

    def values(self) -> FloatArray:
        """Return the present iterate, by the states' own numbers, shape (states,), on the host."""
        with self._cp.cuda.Device(self._device), self._stream:
            values: FloatArray = to_host(self._vectors[self._current])
        return values


class CudaColourSweeper(ColourSweeper):
    """Sweeps of a system whose states have been renumbered by colours.

    Parameters
    ----------
    coloured
        What to solve, on the device.
    stop_below, absolute, device_number
        As in `ColourSweeper`.
    """

    def __init__(
        self, coloured: DeviceColoured, stop_below: float, absolute: bool, device_number: int
    ) -> None:
        self._coloured = coloured
        self._kernel = coloured.kernel
        how = (coloured.omega, stop_below, absolute, device_number)
        super().__init__(coloured.start, len(coloured.ends) - 1, *how)
        self.cost = SweepCost(
            (device_number,),
            self._kernel.removeprefix("sweep_"),
            "csr by colours",
            coloured.bytes_per_sweep,
            coloured.events,
        )

    def _prepare(self) -> Launcher:
        return self._coloured.launcher

    def _first_vectors(self, start: FloatArray) -> list[Any]:
        by_states = to_device(start, np.float64)
        return [self._coloured.by_colours(by_states) for _ in range(2)]

    def _sweep_colour(self, source: int, colour: int, slots: Any) -> None:
        first, last = self._coloured.ends[colour : colour + 2]
        self._sweep_range(
            *(source, first, last, self._coloured.fresh_ends, slots),
            *(self._omega, self._stop_below, self._absolute),
        )

    def _sweep_at_once(self, source: int, slots: Any) -> None:
        # One colour, in which nothing is fresh: rows end what is fresh where they begin.
        whole = (source, 0, self._coloured.ends[-1], self._coloured.row_offsets, slots)
        self._sweep_range(*whole, 1.0, -1.0, True)

    def _sweep_range(
        self,
        source: int,
        first: int,
        last: int,
        fresh_ends: Any,
        slots: Any,
        omega: float,
        stop_below: float,
        absolute: bool,
    ) -> None:
        cp, coloured = self._cp, self._coloured
        matrix = (
            *(coloured.row_offsets, fresh_ends, coloured.columns),
            *(coloured.values, coloured.offset),
        )
        part = (cp.int32(first), cp.int32(last))
        if coloured.group_offsets is None:
            arguments: tuple[Any, ...] = (*matrix, *part, cp.float64(omega))
        else:
            minimise = cp.int32(coloured.direction is Direction.MINIMISE)
            arguments = (coloured.group_offsets, *matrix, *part, minimise)
        self._launcher.launch(
            self._kernel,
            (last - first) * THREADS_A_ROW[self._kernel],
            *arguments,
            *(self._vectors[source], self._vectors[1 - source], *slots),
            *(cp.float64(stop_below), cp.int32(absolute)),
            module="gauss_seidel",
        )

    def values(self) -> FloatArray:
        """Return the present iterate, by the states' own numbers, shape (states,), on the host."""
        with self._cp.cuda.Device(self._device), self._stream:
            current = self._vectors[self._current]
            values: FloatArray = to_host(self._coloured.in_model_order(current))
        return values


def stretch_of(colours: int) -> int:
    """Return how many sweeps of so many colours are captured in a graph; always even."""
    # A graph of more than about 512 launches takes longer to make than to replay.
    return max(2, min(STRETCH, 512 // max(colours, 1)) // 2 * 2)
