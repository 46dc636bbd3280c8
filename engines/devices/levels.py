"""The device that makes cycles over aggregates of states."""

from __future__ import annotations

from engines.host.levels import CpuLevels
from engines.systems.multilevel import Levels
from engines.systems.one_sided import Engine, SweepSystem


def levels_on(engine: Engine, system: SweepSystem, stop_below: float, absolute: bool) -> Levels:
    """Return cycles on an engine's device.

    Parameters
    ----------
    engine
        The CPU's or a GPU's.
    system
        A system for π Q = 0 of one recurrent class, before scaling.
    stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`.

    Raises
    ------
    RuntimeError
        If the chain cannot be coarsened.
    DeviceMemoryError
        When the device cannot hold the levels.
    """
    if engine.gpus:
        from engines.cuda.multilevel import cuda_levels

        return cuda_levels(system, stop_below, absolute, engine.gpus[0])
    return CpuLevels(system, stop_below, absolute)
