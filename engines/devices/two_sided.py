"""The device that sweeps both bounds of a solution."""

from __future__ import annotations

from engines.devices.choice import choose_engine, not_shared_out
from engines.errors import DeviceMemoryError
from engines.host.two_sided_sweeper import CpuTwoSidedSweeper
from engines.model.environment import SolverEnvironment
from engines.systems.two_sided import TwoSidedSweeper, TwoSidedSystem


def two_sided_sweeper(
    system: TwoSidedSystem, environment: SolverEnvironment, stop_below: float
) -> tuple[TwoSidedSweeper, str]:
    """Prepare a solve where the environment wants it; return it with a remark for the log.

    Parameters
    ----------
    system
        What to solve.
    environment
        The device, and whether widths are absolute.
    stop_below
        Stop after the first sweep whose width is below this; negative for never.
    """
    engine, note = choose_engine(environment, system.system)
    in_double = environment.double_instead("bounds need every digit")
    note = "; ".join(filter(None, (note, in_double)))
    if engine.name == "GPU":
        from engines.cuda.two_sided import CudaTwoSidedSweeper

        try:
            where = (environment.device_number, environment.matrix_format)
            gpu = CudaTwoSidedSweeper(system, stop_below, environment.absolute, *where)
            alone = not_shared_out(engine, "one sweeps bounds")
            return gpu, "; ".join(filter(None, (note, alone, gpu.cost.remark)))
        except DeviceMemoryError as error:
            note = "; ".join(filter(None, (f"{error}; solving on the CPU", in_double)))
    return CpuTwoSidedSweeper(system, stop_below, environment.absolute), note
