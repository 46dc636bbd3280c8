"""Directions of iterates on one GPU, for GMRES over stretches of sweeps."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from engines.cuda.driver import cupy
from engines.cuda.modules import Launcher
from engines.cuda.transfer import to_device
from engines.errors import DeviceMemoryError
from engines.host.space import make
from engines.systems.one_sided import Sweeper, SweepSystem
from engines.systems.space import MOST_DIRECTIONS, PARALLEL, Stretched

SUM_BLOCKS = 256
"""Blocks that share a sum out; as in the module."""


VECTORS = 2 * MOST_DIRECTIONS + 7
"""Vectors of a space, at most."""


def bytes_needed(system: SweepSystem) -> int:
    """Return the bytes that a space takes on the device, at most.

    Parameters
    ----------
    system
        What is swept.
    """
    return 8 * VECTORS * system.num_states


class OnDevice(Sweeper, Protocol):
    """A sweeper whose iterate lies on one GPU."""

    def on_device(self) -> tuple[int, Any, Any]:
        """Return the number of the device, the stream of the sweeps, and their present iterate."""


class DeviceSpace:
    """See `engines.systems.space.Space`; vectors never leave the device.

    Parameters
    ----------
    system
        What is swept.
    sweeper
        Sweeps of it.

    Raises
    ------
    DeviceMemoryError
        When the device has no room for another vector, in any method.
    """

    def __init__(self, system: SweepSystem, sweeper: OnDevice) -> None:
        self._cp = cupy()
        self._sweeper = sweeper
        self._system = system
        self._device, self._stream, _ = sweeper.on_device()
        self._changes: list[Any] = []
        self._steps: list[Any] = []
        self._size = system.num_states
        with self._here():
            self._launcher = Launcher("int")
            self._parts = self._cp.empty(SUM_BLOCKS * MOST_DIRECTIONS)
            self._shares = self._cp.empty(MOST_DIRECTIONS)
            self._worst = self._cp.zeros(3)

    def _here(self) -> Here:
        return Here(self._device, self._stream)

    def begin(self, sweeps: int) -> None:
        """Find the least iterate; see `Space.begin`."""
        start = np.array(self._system.start, dtype=np.float64)
        start[slice(None) if self._system.states is None else self._system.states] = 0.0
        with self._here():
            first = self._present().copy()
            self._least = to_device(start, np.float64)
            self._lift(sweeps)
            # Not below the least iterate, which the combination of none sees to.
            self._x = self._cp.empty(self._size)
            self._last_after, self._last_change = (self._cp.zeros(self._size) for _ in range(2))
            self._change, self._step = (self._cp.empty(self._size) for _ in range(2))
            self._combined_from(first)
        self._is_first = True

    def lengthen(self, sweeps: int) -> None:
        """Find the least iterate of longer stretches; see `Space.lengthen`."""
        self.forget()
        with self._here():
            self._lift(sweeps)

    def forget(self) -> None:
        """Go on without directions; see `Space.forget`."""
        self._changes, self._steps = [], []
        with self._here():
            self._combined_from(self._last_after)
        self._is_first = True

    def stretch(self, sweeps: int) -> Stretched:
        """Make a stretch of sweeps; see `Space.stretch`."""
        with self._here():
            self._put(self._x)
        make(self._sweeper, sweeps)
        with self._here():
            self._worst.data.memset_async(0, self._worst.nbytes, self._stream)
            self._launch(
                "compare_stretch",
                *(self._present(), self._x, self._least, self._last_after, self._last_change),
                *(self._cp.int32(self._is_first), self._change, self._step, self._worst),
            )
            change, reach, largest = (float(value) for value in self._worst.get())
        return Stretched(change, reach, largest)

    def combine(self) -> None:
        """Go on from the best combination; see `Space.combine`."""
        with self._here():
            if not self._is_first and len(self._changes) < MOST_DIRECTIONS:
                self._add()
            self._is_first = False
            self._dot(self._last_change)
            self._combined_from(self._last_after)

    def _add(self) -> None:
        """Make a direction orthogonal to the others, by Gram and Schmidt's method done twice."""
        length = self._length(self._change)
        for _ in range(2):
            self._dot(self._change)
            self._launch("take_away", *self._directions(), self._change, self._step)
        left = self._length(self._change)
        if math.isfinite(left) and left > PARALLEL * length:
            factor = self._cp.float64(1.0 / left)
            self._launch("scale_direction", self._change, self._step, factor)
            self._changes.append(self._change)
            self._steps.append(self._step)
            self._change, self._step = (self._cp.empty(self._size) for _ in range(2))

    def _lift(self, sweeps: int) -> None:
        """Make sweeps of the least iterate."""
        self._put(self._least)
        make(self._sweeper, sweeps)
        self._least = self._present().copy()

    def _put(self, x: Any) -> None:
        self._present().data.copy_from_device_async(x.data, x.nbytes, self._stream)

    def _present(self) -> Any:
        return self._sweeper.on_device()[2]

    def _combined_from(self, after: Any) -> None:
        self._launch("combine", *self._directions(), after, self._least, self._x)

    def _directions(self) -> tuple[Any, ...]:
        table = np.zeros((2, MOST_DIRECTIONS), dtype=np.int64)
        for place, (change, step) in enumerate(zip(self._changes, self._steps, strict=True)):
            table[:, place] = change.data.ptr, step.data.ptr
        return to_device(table, np.int64), self._cp.int32(len(self._changes)), self._shares

    def _dot(self, vector: Any) -> None:
        """Put the products with all directions into the shares."""
        table, count, shares = self._directions()
        if not self._changes:
            return
        self._launch("multiply", table, count, vector, self._parts)
        self._sum(count, shares)

    def _length(self, vector: Any) -> float:
        table = np.zeros((2, MOST_DIRECTIONS), dtype=np.int64)
        table[0, 0] = vector.data.ptr
        one, result = self._cp.int32(1), self._cp.empty(1)
        self._launch("multiply", to_device(table, np.int64), one, vector, self._parts)
        self._sum(one, result)
        return math.sqrt(float(result.get()[0]))

    def _sum(self, count: Any, sums: Any) -> None:
        arguments = (self._parts, count, sums)
        self._launcher.launch("add_parts", SUM_BLOCKS, *arguments, module="space")

    def _launch(self, name: str, *arguments: Any) -> None:
        threads = SUM_BLOCKS * SUM_BLOCKS if name == "multiply" else self._size
        size = self._cp.int64(self._size)
        self._launcher.launch(name, threads, *arguments, size, module="space")


class Here:
    """The device and stream of the sweeps; memory that is lacking is told as everywhere."""

    def __init__(self, device: int, stream: Any) -> None:
        self._number = device
        self._device, self._stream = cupy().cuda.Device(device), stream

    def __enter__(self) -> None:
        self._device.__enter__()
        self._stream.__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._stream.__exit__(kind, error, trace)
        self._device.__exit__(kind, error, trace)
        if isinstance(error, cupy().cuda.memory.OutOfMemoryError):
            cupy().get_default_memory_pool().free_all_blocks()
            raise DeviceMemoryError(f"GPU {self._number} ran out of memory: {error}") from error
