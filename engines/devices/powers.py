"""The device that adds up powers of a matrix."""

from __future__ import annotations

import numpy as np

from engines.devices.choice import choose_engine
from engines.errors import DeviceMemoryError
from engines.host.power_sums import sum_powers as on_cpu
from engines.model.environment import SolverEnvironment
from engines.model.events import Events, Kind
from engines.model.progress import Measure, Progress, SweepReport
from engines.systems.power_sums import PowerSum, Summed

LONG_SUM = 1e9
"""From this many operations on, entries and rows times sweeps, a sum is announced before it starts:
it takes a second or more."""


def sum_powers(
    problem: PowerSum, environment: SolverEnvironment, progress: Progress | None
) -> tuple[Summed, Events]:
    """Compute Σ_k c_k P^k x; return it with what the log tells of the device.

    Parameters
    ----------
    problem
        The sum.
    environment
        The device that the user asked for.
    progress
        Called now and then with the sweeps made, the share of the sum still to come and seconds.
    """
    engine, events = choose_engine(environment, problem.system, problem.last)
    in_double = environment.double_instead("the error of uniformisation is proven")
    events += in_double
    work = problem.last * float(problem.system.matrix.num_entries + len(problem.stay))
    if progress is not None and work >= LONG_SUM:
        whole, to_go = np.ones(1), float(problem.last)
        progress(SweepReport(0, whole, 0.0, Measure.REMAINDER, sweeps_to_go=to_go))
    if not engine.gpus:
        return on_cpu(problem, progress), events
    from engines.cuda.several_sums import sum_powers as on_several
    from engines.cuda.uniformise import sum_powers as on_gpu

    how = (environment.matrix_format, environment.device_memory)
    try:
        if len(engine.gpus) > 1:
            done = on_several(problem, progress, engine.gpus, *how)
        else:
            done = on_gpu(problem, progress, engine.gpus[0], *how)
        return done, events + done.cost.events
    except DeviceMemoryError as error:
        moved = Kind.MOVED_TO_CPU(reason=str(error))
        return on_cpu(problem, progress), (moved, *in_double)
