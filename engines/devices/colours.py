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


class GaussSeidelScheme:
    """Sweeps in colours, where the engine itself would make Jacobi's.

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
        self.engine = engine
        self.order = order
        self.slice_size = slice_size
        self.colours = colours

    @classmethod
    def of(cls, engine: Engine, environment: SolverEnvironment) -> GaussSeidelScheme:
        """Return the sweeps of one of the methods of `METHODS`.

        Parameters
        ----------
        engine
            Where to sweep.
        environment
            Method, slice size, number of colours.
        """
        order = METHODS[environment.method]
        return cls(engine, order, environment.slice_size, environment.colours)

    def sweeper(
        self, system: SweepSystem, stop_below: float, absolute: bool
    ) -> WatchedSweeper[ColouredSystem] | WatchedSweeper[DeviceColoured]:
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
        if not self.engine.gpus:
            return WatchedSweeper(self, scaled(system), *how)
        # The device scales, colours and arranges what it is given.
        alone = not_shared_out(self.engine, "one sweeps in colours")
        return WatchedSweeper(self._device_engine(), system, *how, alone)

    def _device_engine(self) -> CudaColourEngine:
        from engines.cuda.colour_engine import CudaColourEngine

        most_memory: int | None = getattr(self.engine, "most_memory", None)
        wanted = (self.order, self.slice_size, self.colours)
        return CudaColourEngine(self.engine.gpus[0], *wanted, most_memory)

    def coloured(self, system: SweepSystem, order: Order) -> ColouredSystem:
        """Return a system without scaling, arranged by colours on the host."""
        speed = GPU_SPEED if self.engine.gpus else CPU_SPEED
        colouring = choose_colours(system, order, self.slice_size, self.colours, speed)
        return arrange(system, colouring)

    def prepared(self, coloured: ColouredSystem, stop_below: float, absolute: bool) -> Sweeper:
        """Return plain sweeps of a coloured system, on the engine's device."""
        if not self.engine.gpus:
            return CpuColourSweeper(coloured, stop_below, absolute)
        engine = self._device_engine()
        return engine.prepared(engine.uploaded(coloured), stop_below, absolute)

    def opposite_is_fresher(self, system: SweepSystem, order: Order) -> bool:
        """Return whether more entries see fresh values if states are swept in opposite order."""
        before, after = entries_by_direction(system)
        return after > before if order is Order.FORWARDS else before > after
