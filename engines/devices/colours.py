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
from engines.systems.one_sided import Engine, Scaling, Sweeper, SweepSystem

if TYPE_CHECKING:
    from engines.cuda.arrange import DeviceColoured
    from engines.cuda.colour_engine import CudaColourEngine


class GaussSeidelEngine:
    """Sweeps in colours, where another engine would make Jacobi's.

    Parameters
    ----------
    engine
        The CPU's or a GPU's.
    order
        The order of Gauss-Seidel to begin with.
    slice_size, colours
        As in `engines.host.colours.choose_colours`.
    """

    def __init__(
        self,
        engine: Engine,
        order: Order,
        slice_size: int | None = None,
        colours: int | None = None,
    ) -> None:
        self.name = engine.name
        self.engine = engine
        self.order = order
        self.slice_size = slice_size
        self.colours = colours

    @classmethod
    def of(cls, engine: Engine, environment: SolverEnvironment) -> GaussSeidelEngine:
        """Return the engine for one of the methods of `METHODS`.

        Parameters
        ----------
        engine
            Where to sweep.
        environment
            Method, slice size, number of colours.
        """
        order = METHODS[environment.method]
        return cls(engine, order, environment.slice_size, environment.colours)

    def moved_to(self, engine: Engine) -> GaussSeidelEngine:
        """Return the same sweeps on another engine, the CPU's where a GPU's memory is too small."""
        return GaussSeidelEngine(engine, self.order, self.slice_size, self.colours)

    def sweeper(
        self, system: SweepSystem, stop_below: float, absolute: bool
    ) -> WatchedSweeper[ColouredSystem] | WatchedSweeper[DeviceColoured]:
        """Prepare a solve; see `engines.systems.one_sided.Engine.sweeper`.

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
        if self.engine.name == "CPU":
            return WatchedSweeper(self, scaled(system), *how)
        # The device scales, colours and arranges what it is given.
        watched = WatchedSweeper(self._device_engine(), system, *how)
        watched.remark(not_shared_out(self.engine, "one sweeps in colours"))
        return watched

    def _device_engine(self) -> CudaColourEngine:
        from engines.cuda.colour_engine import CudaColourEngine

        device_number: int = getattr(self.engine, "device_number", 0)
        most_memory: int | None = getattr(self.engine, "most_memory", None)
        wanted = (self.order, self.slice_size, self.colours)
        return CudaColourEngine(device_number, *wanted, most_memory)

    def coloured(self, system: SweepSystem, order: Order) -> ColouredSystem:
        """Return a system without scaling, arranged by colours on the host."""
        speed = CPU_SPEED if self.engine.name == "CPU" else GPU_SPEED
        colouring = choose_colours(system, order, self.slice_size, self.colours, speed)
        return arrange(system, colouring)

    def prepared(self, coloured: ColouredSystem, stop_below: float, absolute: bool) -> Sweeper:
        """Return plain sweeps of a coloured system, on the engine's device."""
        if self.engine.name == "CPU":
            return CpuColourSweeper(coloured, stop_below, absolute)
        engine = self._device_engine()
        return engine.prepared(engine.uploaded(coloured), stop_below, absolute)

    def opposite_is_fresher(self, system: SweepSystem, order: Order) -> bool:
        """Return whether more entries see fresh values if states are swept in opposite order."""
        before, after = entries_by_direction(system)
        return after > before if order is Order.FORWARDS else before > after
