"""The device that sweeps in colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engines.devices.choice import not_shared_out
from engines.host.coloured_sweeper import CpuColourSweeper
from engines.host.colours import (
    CPU_SPEED,
    GPU_SPEED,
    ColouredSystem,
    Order,
    arrange,
    choose_colours,
    entries_by_direction,
)
from engines.host.scaling import scaled
from engines.host.watched import METHODS, WatchedSweeper, check_omega
from engines.model.environment import SolverEnvironment
from engines.systems.one_sided import Place, Scaling, Sweeper, SweepSystem

if TYPE_CHECKING:
    from engines.cuda.arrange import DeviceColoured
    from engines.cuda.colour_engine import CudaColourEngine
    from engines.cuda.split_colours import SplitColoured


class GaussSeidelScheme:
    """Sweeps in colours.

    Parameters
    ----------
    place
        The CPU or a GPU.
    order
        The order of Gauss-Seidel to begin with.
    slice_size, colours
        As in `engines.host.colours.choose_colours`.
    most_memory
        Bytes of a GPU's memory that a solve may take; None for what is free.
    """

    def __init__(
        self,
        place: Place,
        order: Order,
        slice_size: int | None = None,
        colours: int | None = None,
        most_memory: int | None = None,
    ) -> None:
        self.place = place
        self.order = order
        self.slice_size = slice_size
        self.colours = colours
        self.most_memory = most_memory

    @classmethod
    def of(cls, place: Place, environment: SolverEnvironment) -> GaussSeidelScheme:
        """Return the sweeps of one of the methods of `METHODS`.

        Parameters
        ----------
        place
            Where to sweep.
        environment
            Method, slice size, number of colours, memory.
        """
        wanted = (environment.slice_size, environment.colours, environment.device_memory)
        return cls(place, METHODS[environment.method], *wanted)

    def sweeper(
        self, system: SweepSystem, stop_below: float, absolute: bool
    ) -> (
        WatchedSweeper[ColouredSystem, SweepSystem]
        | WatchedSweeper[DeviceColoured | SplitColoured, SweepSystem]
    ):
        """Prepare a solve; see `engines.systems.one_sided.Scheme.sweeper`.

        Raises
        ------
        DeviceMemoryError
            When the device cannot hold the system.
        UnsupportedError
            For an ω with which the sweeps cannot converge.
        """
        check_omega(system.omega)
        singular = system.scaling is Scaling.BALANCE
        how = (stop_below, absolute, singular)
        if not self.place.gpus:
            return WatchedSweeper(self, scaled(system), *how)
        # The device scales, colours and arranges what it is given.
        alone = not_shared_out(self.place, "one sweeps in colours")
        return WatchedSweeper(self._device_engine(), system, *how, alone)

    def _device_engine(self) -> CudaColourEngine:
        from engines.cuda.colour_engine import CudaColourEngine

        wanted = (self.order, self.slice_size, self.colours, self.most_memory)
        return CudaColourEngine(self.place.gpus[0], *wanted)

    def coloured(self, system: SweepSystem, order: Order) -> ColouredSystem:
        """Return a system without scaling, arranged by colours on the host."""
        speed = GPU_SPEED if self.place.gpus else CPU_SPEED
        colouring = choose_colours(system, order, self.slice_size, self.colours, speed)
        return arrange(system, colouring)

    def prepared(self, coloured: ColouredSystem, stop_below: float, absolute: bool) -> Sweeper:
        """Return plain sweeps of a coloured system, in its place."""
        if not self.place.gpus:
            return CpuColourSweeper(coloured, stop_below, absolute)
        engine = self._device_engine()
        return engine.prepared(engine.uploaded(coloured), stop_below, absolute)

    def opposite_is_fresher(self, system: SweepSystem, order: Order) -> bool:
        """Return whether more entries see fresh values if states are swept in opposite order."""
        before, after = entries_by_direction(system)
        return after > before if order is Order.FORWARDS else before > after
