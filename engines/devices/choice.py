"""The choice of the device that solves a system."""

from __future__ import annotations

import contextlib

from engines.cuda import driver
from engines.devices.diagram_device import DeviceDiagramEngine
from engines.devices.diagram_host import HostDiagramEngine
from engines.devices.opening import MOST_STATES_WITHOUT
from engines.diagrams.system import DiagramSystem
from engines.errors import UnsupportedError
from engines.host.diagram_colours import DiagramEngine
from engines.host.engine import CpuEngine
from engines.model.environment import ALL_DEVICES, DeviceChoice, SolverEnvironment
from engines.model.events import Events, Kind
from engines.systems.one_sided import Engine, Place, Scaling, SweepSystem

GPU_ENTRIES = 20_000
"""Below this many entries a sweep on the CPU is over before a kernel has started."""

GPU_ENTRIES_AT_START = 250_000
"""Below this many entries the CPU sweeps while no GPU is in use: to open one takes half a second,
and most solves end sooner."""

GPU_ENTRIES_AT_ONCE = 3_000_000
"""From this many entries on, a GPU is opened for the first sweep: so much for a CPU to lay out."""

ENTRIES_BEFORE_GPU = 400_000_000
"""Entries that a CPU sweeps in about the half second that a GPU takes to open. A solve that has
more to sweep repays it; one that begins on the CPU has lost no more than that if it goes on."""

ROW_IN_ORDER = 10
"""What a row costs, in entries, where it waits for the one before: steady states are swept so."""


def least_gpu_entries(sweeps: int | None = None) -> int:
    """Return from how many entries on a GPU sweeps what it may or may not sweep.

    What was in use before decides, not what has been loaded meanwhile: the same solves in the same
    order are made by the same devices.

    Parameters
    ----------
    sweeps
        How many sweeps there will be, or None where that is not known.
    """
    if driver.is_used():
        return GPU_ENTRIES
    if sweeps is None:
        return GPU_ENTRIES_AT_START
    more = ENTRIES_BEFORE_GPU // max(sweeps, 1) + 1
    return min(max(GPU_ENTRIES, more), GPU_ENTRIES_AT_ONCE)


def sweeps_before_gpu(environment: SolverEnvironment, system: SweepSystem) -> int | None:
    """Return how many sweeps to make on the CPU before a GPU is opened for the rest.

    None where the solve is to be made in one place: a device was named, the GPU is in use, there is
    none, or the system is too small or too large for both.

    Parameters
    ----------
    environment
        Which device the user asked for, and the most sweeps.
    system
        What is to be solved, in an unknown number of sweeps.
    """
    if (
        environment.device is not DeviceChoice.AUTO
        or driver.is_used()
        or not driver.driver_present()
    ):
        return None
    entries = system.matrix.num_entries
    if not least_gpu_entries(environment.sweep_limit) <= entries < GPU_ENTRIES_AT_ONCE:
        return None
    if system.num_updates > MOST_STATES_WITHOUT:
        # The GPU was opened as soon as the model had proved to be so large.
        return None
    in_order = environment.automatic and system.scaling is Scaling.BALANCE
    return ENTRIES_BEFORE_GPU // (entries + (ROW_IN_ORDER * system.num_updates if in_order else 0))


def choose_engine(
    environment: SolverEnvironment, system: SweepSystem, sweeps: int | None = None
) -> tuple[Engine, Events]:
    """Return the engine for a solve, and what the log tells of the choice.

    Parameters
    ----------
    environment
        Which device the user asked for.
    system
        What is to be solved.
    sweeps
        In how many sweeps at most, or None where that is not known.

    Raises
    ------
    UnsupportedError
        When the GPU was asked for and cannot be used.
    """
    if environment.device is DeviceChoice.CPU:
        return CpuEngine(environment.matrix_format), ()
    worthwhile = system.matrix.num_entries >= least_gpu_entries(sweeps)
    usable, refused = _gpu(environment, worthwhile)
    return _cuda_engine(environment) if usable else CpuEngine(environment.matrix_format), refused


def choose_diagram_engine(
    environment: SolverEnvironment, system: DiagramSystem
) -> tuple[DiagramEngine, Events]:
    """Return the engine for a solve without a matrix, and what the log tells of the choice.

    Parameters
    ----------
    environment
        Which device the user asked for, and the format.
    system
        What is to be solved.

    Raises
    ------
    DeviceMemoryError
        When the GPU cannot hold the rows.
    UnsupportedError
        When the GPU was asked for and cannot be used, and for rows that cannot be swept.
    """
    usable, refused = _gpu(environment, True)
    if usable:
        return DeviceDiagramEngine(system, environment), ()
    return HostDiagramEngine(system, environment), refused


def _gpu(environment: SolverEnvironment, worthwhile: bool) -> tuple[bool, Events]:
    """Return whether the GPU sweeps, and why not where it was to."""
    named = environment.device is DeviceChoice.GPU
    wanted = environment.device is DeviceChoice.AUTO and worthwhile and driver.driver_present()
    if not (named or wanted):
        return False, ()
    refusal = driver.gpu_refusal(environment.device_number)
    if named and refusal is not None:
        raise UnsupportedError(f"no GPU can be used: {refusal}")
    return refusal is None, () if refusal is None else (Kind.GPU_REFUSED(reason=refusal),)


def _cuda_engine(environment: SolverEnvironment) -> Engine:
    driver.note_use()
    first, wanted = environment.device_number, environment.num_devices
    there = driver.find_cupy()[1] - first
    if wanted > there:
        raise UnsupportedError(f"there are {there} GPUs from number {first} on, not {wanted}")
    how = (environment.matrix_format, environment.device_memory)
    number = there if wanted == ALL_DEVICES else wanted
    if number == 1:
        from engines.cuda.engine import CudaEngine

        return CudaEngine(first, *how)
    from engines.cuda.several import SeveralEngine

    return SeveralEngine(tuple(range(first, first + number)), *how)


def not_shared_out(place: Place, what: str) -> Events:
    """Return that several GPUs were asked for and one sweeps; nothing where that is not so.

    Parameters
    ----------
    place
        What was chosen.
    what
        What cannot be shared out.
    """
    number = len(place.gpus)
    return (Kind.NOT_SHARED_OUT(gpus=number, reason=what),) if number > 1 else ()


def preload(device_number: int) -> None:
    """Open the GPU and load the kernels, if there is one that can be used.

    What cannot be loaded now, the solve that wants it tries again, and says why not.

    Parameters
    ----------
    device_number
        Which of the devices.
    """
    if driver.gpu_refusal(device_number) is None:
        from engines.cuda import warm_up

        with contextlib.suppress(Exception):
            warm_up.preload(device_number)
