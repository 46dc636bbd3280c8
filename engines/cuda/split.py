"""The split method: a matrix too large for the device lies in the host's memory.

Rows are cut into blocks. As many as fit stay on the device for good; the others travel in each
sweep, through two segments of device memory in turn: one is filled, on a stream of its own, while
the block in the other one is swept. After section 4.3 of the thesis of 2013 on CUDA Gauss-Seidel in
PRISM, which cuts the vector as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engines.arrays import FloatArray
from engines.cuda.driver import cupy
from engines.cuda.queued import HISTORY
from engines.cuda.rows import DeviceRows, Test
from engines.cuda.sweeper import CudaSweeper, two_vectors
from engines.cuda.transfer import to_device
from engines.errors import DeviceMemoryError
from engines.formats.blocks import row_blocks
from engines.host.scaling import scaled
from engines.model.choice import Format
from engines.model.events import Kind
from engines.model.result import SweepCost
from engines.systems.one_sided import SweepSystem


@dataclass(frozen=True)
class Shape:
    """An array that has been packed.

    Parameters
    ----------
    shape, dtype
        Of the array.
    place
        Where it starts in its block's piece of memory, in bytes.
    """

    shape: tuple[int, ...]
    dtype: Any
    place: int


@dataclass(frozen=True)
class Parcel:
    """A block packed for the journey.

    Parameters
    ----------
    rows
        The block, its arrays views of each place on the device that it may lie in.
    packed
        All arrays of the block in one piece of pinned host memory.
    """

    rows: tuple[DeviceRows, ...]
    packed: Any


class SplitSweeper(CudaSweeper):
    """A solve whose matrix lies in the host's memory, but for what fits.

    Parameters
    ----------
    system
        What to solve.
    stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`.
    device_number
        Which of the devices.
    matrix_format
        How each block is laid out.
    memory
        Bytes of device memory that the solve may take.

    Raises
    ------
    DeviceMemoryError
        When the vectors leave no room for blocks.
    """

    only_in_double = "a matrix in the host's memory is swept in double precision"
    spare = 0.0
    stretches = ()

    def __init__(
        self,
        system: SweepSystem,
        stop_below: float,
        absolute: bool,
        device_number: int,
        matrix_format: Format,
        memory: int,
    ) -> None:
        self._room = memory - bytes_beside(system)
        self._turn = 0
        super().__init__(scaled(system), stop_below, absolute, device_number, matrix_format)

    def _prepare(self, system: SweepSystem, matrix_format: Format) -> tuple[DeviceRows, ...]:
        cp = self._cp
        # A block's CSR arrays are at most an eighth of the memory for blocks: laying one out takes
        # three times as much, and small blocks leave little of it unused.
        pieces = -(-8 * _csr_bytes(system) // max(self._room, 1))
        if self._room <= 0 or pieces > max(system.num_updates, 1):
            raise DeviceMemoryError(
                f"GPU {self._device}: the vectors of {system.num_states} states leave no room for "
                "the matrix, not even block by block"
            )
        self._vectors = two_vectors(system.start)
        states = system.states
        if states is None:
            states = np.arange(system.num_updates, dtype=np.int32)
        # The names of the states stay on the device, where blocks look them up.
        self._states = to_device(states, np.int32)
        blocks = self._packed_blocks(system, matrix_format, pieces)
        self._launcher = blocks[0][0].launcher
        stay = self._stay(blocks)
        resident = tuple(_settled(rows, packed) for rows, packed in blocks[:stay])
        travelling = blocks[stay:]
        size = max((len(packed) for _, packed in travelling), default=0)
        self._segments = [cp.empty(size, dtype=cp.uint8) for _ in range(2)]
        self._parcels = [
            Parcel(tuple(_moved(rows, memory) for memory in self._segments), packed)
            for rows, packed in travelling
        ]
        self._copying = cp.cuda.Stream(non_blocking=True)
        self._loaded = [cp.cuda.Event(disable_timing=True) for _ in range(2)]
        self._free = [cp.cuda.Event(disable_timing=True) for _ in range(2)]
        self._moved = sum(rows.layout.matrix_bytes for rows, _ in blocks) + 8 * (
            system.num_states + system.num_updates
        )
        return resident

    def _packed_blocks(
        self, system: SweepSystem, matrix_format: Format, pieces: int
    ) -> list[tuple[DeviceRows, Any]]:
        """Lay out one block after the other on the device, and pack each in the host's memory."""
        packed, done = [], 0
        for block in row_blocks(system, pieces):
            rows = DeviceRows.of(block, matrix_format, segments_serve=False)
            names = self._states[done : done + block.num_updates]
            done += block.num_updates
            shell, memory = _packed(rows)
            packed.append((replace(shell, device=replace(shell.device, states=names)), memory))
            del rows
            cupy().get_default_memory_pool().free_all_blocks()
        return packed

    def _stay(self, blocks: list[tuple[DeviceRows, Any]]) -> int:
        """Return how many blocks stay on the device, leaving two segments for the others."""
        sizes = [len(packed) for _, packed in blocks]
        left = self._room - 2 * max(sizes, default=0)
        return int(np.searchsorted(np.cumsum(sizes), left, side="right"))

    @property
    def travelling_bytes(self) -> int:
        """Bytes that come from the host's memory in each sweep."""
        return sum(len(parcel.packed) for parcel in self._parcels)

    def _cost(self) -> SweepCost:
        every = [*self._rows, *(parcel.rows[0] for parcel in self._parcels)]
        split = Kind.SPLIT(
            blocks=len(every),
            travelling=len(self._parcels),
            gibibytes=self.travelling_bytes / 2**30,
        )
        first = every[0]
        return SweepCost(
            (self._device,),
            first.kernel_name,
            str(first.layout.matrix_format),
            self._moved,
            events=(split, *first.events),
            estimates=first.estimates,
        )

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.systems.one_sided.Sweeper.run`."""
        # Few are queued between two looks, which end the transfers once a test is met.
        parts: list[FloatArray] = []
        left = min(sweeps, HISTORY)
        while left and not (parts and parts[-1][-1] < self._stop_below):
            parts.append(super().run(min(left, 8)))
            left -= len(parts[-1])
        return np.concatenate(parts)

    def _sweep(self, source: int, omega: float, test: Test) -> None:
        super()._sweep(source, omega, test)
        x, x_new = self._vectors[source], self._vectors[1 - source]
        for parcel in self._parcels:
            segment = self._turn % 2
            self._turn += 1
            self._fetch(parcel.packed, segment)
            parcel.rows[segment].sweep(x, x_new, omega, test)
            self._free[segment].record(self._stream)

    def _fetch(self, packed: Any, segment: int) -> None:
        """Queue a block's journey, behind the sweep of the one before it in the segment."""
        runtime = self._cp.cuda.runtime
        if self._turn > 2:
            self._copying.wait_event(self._free[segment])
        runtime.memcpyAsync(
            self._segments[segment].data.ptr,
            packed.ctypes.data,
            len(packed),
            runtime.memcpyHostToDevice,
            self._copying.ptr,
        )
        self._loaded[segment].record(self._copying)
        self._stream.wait_event(self._loaded[segment])


def bytes_beside(system: SweepSystem) -> int:
    """Return the bytes of device memory that a split solve takes beside its blocks.

    Parameters
    ----------
    system
        What to solve.
    """
    return 16 * system.num_states + 4 * system.num_updates + 16 * HISTORY


def _csr_bytes(system: SweepSystem) -> int:
    return system.bytes_per_sweep - 8 * (system.num_states + system.num_updates)


def _arrays(rows: DeviceRows, kind: type) -> list[Any]:
    """Return what a block brings along, of a kind: arrays, or their shapes."""
    every = (*rows.layout.arguments, rows.device.offset, rows.device.group_offsets)
    return [array for array in every if isinstance(array, kind)]


def _with(rows: DeviceRows, new: dict[int, Any]) -> DeviceRows:
    """Return a block with other arrays, by the identity of the old ones."""
    arguments = tuple(new.get(id(argument), argument) for argument in rows.layout.arguments)
    device = replace(
        rows.device,
        row_offsets=None,
        columns=None,
        values=None,
        offset=new.get(id(rows.device.offset)),
        group_offsets=new.get(id(rows.device.group_offsets)),
    )
    return replace(rows, layout=replace(rows.layout, arguments=arguments), device=device)


def _packed(rows: DeviceRows) -> tuple[DeviceRows, Any]:
    """Return a block with shapes for arrays, and the arrays in one piece of pinned host memory."""
    from cupyx import empty_pinned

    arrays = _arrays(rows, cupy().ndarray)
    shapes, place = {}, 0
    for array in arrays:
        shapes[id(array)] = Shape(array.shape, array.dtype, place)
        place += -(-array.nbytes // 256) * 256  # aligned
    packed = empty_pinned(place, dtype=np.uint8)
    for array in arrays:
        begin = shapes[id(array)].place
        here = packed[begin : begin + array.nbytes].view(array.dtype)
        array.get(out=here.reshape(array.shape))
    return _with(rows, shapes), packed


def _moved(rows: DeviceRows, memory: Any) -> DeviceRows:
    """Return a block whose arrays are views of a piece of device memory."""
    views = {
        id(shape): cupy().ndarray(shape.shape, shape.dtype, memory.data + shape.place)
        for shape in _arrays(rows, Shape)
    }
    return _with(rows, views)


def _settled(rows: DeviceRows, packed: Any) -> DeviceRows:
    """Return a block that has moved to device memory of its own."""
    memory = cupy().empty(len(packed), dtype=np.uint8)
    memory.set(packed)
    return _moved(rows, memory)
