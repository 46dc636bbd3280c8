"""Sweeps in colours on a GPU, where the colours are found and the system is arranged as well."""

from __future__ import annotations

from engines.arrays import INT32_MAX
from engines.cuda import rows
from engines.cuda.arrange import DeviceColoured, arrange_on_device, arranged_bytes, uploaded
from engines.cuda.colouring import (
    ColouringTuning,
    choose_colours_on_device,
    colouring_bytes,
    count_directions,
    dependencies_on_device,
    names_of_updates,
)
from engines.cuda.driver import cupy
from engines.cuda.gauss_seidel import CudaColourSweeper
from engines.cuda.memory import available_bytes, require_bytes
from engines.cuda.modules import Launcher, stream
from engines.cuda.prepare import upload
from engines.cuda.queued import HISTORY
from engines.cuda.split_colours import (
    SplitColoured,
    SplitColourSweeper,
    choose_split_colours,
    split_by_colours,
)
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.host.colours import (
    GPU_SPEED,
    ColouredSystem,
    Order,
    arrange,
    choose_colours,
    entries_by_direction,
)
from engines.host.scaling import scaled
from engines.model.events import Events, Kind
from engines.systems.one_sided import Scaling, SweepSystem


class CudaColourEngine:
    """Arranges and sweeps systems on one GPU; an `engines.host.watched.ColourEngine`.

    Parameters
    ----------
    device_number
        Which of the devices.
    order
        The order of Gauss-Seidel to begin with.
    slice_size, colours
        As in `engines.host.colours.choose_colours`.
    most_memory
        Bytes of device memory that a solve may take; None for what is free.
    tuning
        When the host finds the colours.
    """

    def __init__(
        self,
        device_number: int,
        order: Order,
        slice_size: int | None = None,
        colours: int | None = None,
        most_memory: int | None = None,
        tuning: ColouringTuning = ColouringTuning(),
    ) -> None:
        self.order, self._tuning = order, tuning
        self._device = device_number
        self._slice_size, self._colours = slice_size, colours
        self._most_memory = most_memory
        self._directions: tuple[int, int] | None = None

    def coloured(self, system: SweepSystem, order: Order) -> DeviceColoured | SplitColoured:
        """Return a system with any scaling on the device, arranged in colours of an order.

        Where the device has no room to find the colours, or there are too many, the host does it,
        and finds the same. What the device cannot hold stays in the host's memory, from where it
        comes part by part; see `engines.cuda.split_colours`.

        Raises
        ------
        DeviceMemoryError
            When the device has no room for parts either; nothing is left allocated.
        UnsupportedError
            For more states than 32 bits can number.
        """
        if system.num_states > INT32_MAX:
            raise UnsupportedError(
                f"{system.num_states} states: the GPU engine numbers states in 32 bits"
            )
        coloured, why = None, f"there are more than {self._tuning.most_colours}"
        try:
            coloured = self._on_device(system, order)
        except DeviceMemoryError as error:
            why = str(error)
        if coloured is not None:
            return coloured
        plain, told = scaled(system), (Kind.COLOURED_ON_CPU(reason=why),)
        try:
            with cupy().cuda.Device(self._device):
                self._require(_uploaded_bytes(plain))
            found = choose_colours(plain, order, self._slice_size, self._colours, GPU_SPEED)
            return self.uploaded(arrange(plain, found), told)
        except DeviceMemoryError:
            return self._split(plain, order, told)

    def _split(self, plain: SweepSystem, order: Order, events: Events) -> SplitColoured:
        with cupy().cuda.Device(self._device):
            memory = available_bytes(self._most_memory)
        if self._most_memory is None:
            # Of all that is free, not the last pages: allocations are rounded up.
            memory -= memory // 32
        wanted = (self._slice_size, self._colours)
        found = choose_split_colours(plain, order, *wanted, memory)
        return split_by_colours(plain, found, memory, events)

    def _on_device(self, system: SweepSystem, order: Order) -> DeviceColoured | None:
        cp = cupy()
        turned = 2 if system.scaling is Scaling.BALANCE else 1
        beside = max(colouring_bytes(system, self._tuning), arranged_bytes(system))
        held = system.bytes_per_sweep + 16 * (system.num_states + HISTORY)
        with cp.cuda.Device(self._device), stream(self._device):
            self._require(held + max(beside, (turned - 1) * system.bytes_per_sweep))
            try:
                return self._arranged(system, order)
            except cp.cuda.memory.OutOfMemoryError as error:
                cp.get_default_memory_pool().free_all_blocks()
                raise self._out_of_memory(error) from error

    def _arranged(self, system: SweepSystem, order: Order) -> DeviceColoured | None:
        launcher = Launcher("long long" if rows.needs_wide_offsets(system) else "int")
        device = upload(system, launcher)
        without_diagonal = system.scaling is Scaling.DIAGONAL
        update_of = names_of_updates(device, system, launcher)
        if system.group_offsets is None:
            self._directions = count_directions(device, update_of, launcher)
        reads = dependencies_on_device(device, update_of, launcher, self._tuning)
        wanted = (order, self._slice_size, self._colours)
        colouring = choose_colours_on_device(reads, system, without_diagonal, *wanted)
        del reads
        if colouring is None:
            return None
        how = (update_of, without_diagonal, colouring, launcher)
        return arrange_on_device(device, system, *how)

    def uploaded(self, coloured: ColouredSystem, events: Events = ()) -> DeviceColoured:
        """Return a system that the host has arranged, on the device.

        Parameters
        ----------
        coloured
            The system.
        events
            Why the host has arranged it.

        Raises
        ------
        DeviceMemoryError
            When the device cannot hold it; nothing is left allocated.
        """
        cp = cupy()
        system = coloured.system
        need = _uploaded_bytes(system)
        with cp.cuda.Device(self._device), stream(self._device):
            self._require(need)
            try:
                return uploaded(coloured, events)
            except cp.cuda.memory.OutOfMemoryError as error:
                cp.get_default_memory_pool().free_all_blocks()
                raise self._out_of_memory(error) from error

    def prepared(
        self, coloured: DeviceColoured | SplitColoured, stop_below: float, absolute: bool
    ) -> CudaColourSweeper | SplitColourSweeper:
        """Return plain sweeps of a system in colours.

        Raises
        ------
        DeviceMemoryError
            When the device cannot hold the vectors.
        """
        cp = cupy()
        try:
            if isinstance(coloured, SplitColoured):
                return SplitColourSweeper(coloured, stop_below, absolute, self._device)
            return CudaColourSweeper(coloured, stop_below, absolute, self._device)
        except cp.cuda.memory.OutOfMemoryError as error:
            cp.get_default_memory_pool().free_all_blocks()
            raise self._out_of_memory(error) from error

    def opposite_is_fresher(self, system: SweepSystem, order: Order) -> bool:
        """Return whether more entries see fresh values if states are swept in opposite order."""
        if self._directions is None:
            self._directions = entries_by_direction(scaled(system))
        before, after = self._directions
        return after > before if order is Order.FORWARDS else before > after

    def _require(self, need: int) -> None:
        require_bytes(self._device, need, "rows in colours", self._most_memory)

    def _out_of_memory(self, error: Exception) -> DeviceMemoryError:
        return DeviceMemoryError(f"GPU {self._device} ran out of memory: {error}")


def _uploaded_bytes(system: SweepSystem) -> int:
    """Return the bytes on the device of a system that the host has arranged, without scaling."""
    fresh_ends = system.matrix.num_rows * system.matrix.row_offsets.itemsize
    return system.bytes_per_sweep + fresh_ends + 28 * system.num_states + 16 * HISTORY
