"""The device that sweeps both bounds of a solution."""

from __future__ import annotations

from engines.devices.choice import choose_engine, not_shared_out
from engines.errors import DeviceMemoryError
from engines.host.two_sided_sweeper import CpuTwoSidedSweeper
from engines.model.environment import SolverEnvironment
from engines.model.events import Events, Kind
from engines.systems.two_sided import TwoSidedSweeper, TwoSidedSystem


def two_sided_sweeper(
    system: TwoSidedSystem, environment: SolverEnvironment, stop_below: float
) -> tuple[TwoSidedSweeper, Events]:
    """Prepare a solve where the environment wants it; return it with what the log tells of that.

    Parameters
    ----------
    system
        What to solve.
    environment
        The device, and whether widths are absolute.
    stop_below
        Stop after the first sweep whose width is below this; negative for never.
    """
    engine, events = choose_engine(environment, system.system)
    in_double = environment.double_instead("bounds need every digit")
    events += in_double
    if engine.gpus:
        from engines.cuda.two_sided import CudaTwoSidedSweeper

        try:
            where = (environment.device_number, environment.matrix_format)
            gpu = CudaTwoSidedSweeper(system, stop_below, environment.absolute, *where)
            alone = not_shared_out(engine, "one sweeps bounds")
            return gpu, (*events, *alone, *gpu.cost.events)
        except DeviceMemoryError as error:
            events = (Kind.MOVED_TO_CPU(reason=str(error)), *in_double)
    return CpuTwoSidedSweeper(system, stop_below, environment.absolute), events
