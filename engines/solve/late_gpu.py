"""Solves that begin on the CPU and go over to a GPU once they have proved to be long.

A GPU that is not in use yet takes half a second to open, and most solves are over sooner. How long
one will be is not known before. So the CPU sweeps first, for about as long, and the GPU goes on
from the iterate. When that is depends on how much has been swept, not on the time it took: it is
after the same sweep in each run. Nor is the GPU opened beside the sweeps: loading CuPy keeps them
from the interpreter, and those that end on the CPU would take twice as long.
"""

from __future__ import annotations

from dataclasses import replace

from engines.devices.choice import GPU_ENTRIES_AT_START, sweeps_before_gpu
from engines.diagrams.system import System
from engines.methods.iterate import Iteration
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, Method, Precision, SolverEnvironment
from engines.model.events import Kind
from engines.model.result import SolveResult, Status

WITHOUT_COLOURS = (Method.AUTO, Method.POWER, Method.JACOBI, Method.JOR, Method.VALUE_ITERATION)
"""Methods of which each sweep is a function of the iterate before, whatever the device: those in
colours may have others on a GPU, and others begin by themselves."""


def environment_before(environment: SolverEnvironment, system: System) -> SolverEnvironment | None:
    """Return what the sweeps on the CPU are to be made with, or None where there are to be none.

    Parameters
    ----------
    environment
        What the user asked for.
    system
        What is to be solved, in an unknown number of sweeps.
    """
    plain = environment.method in WITHOUT_COLOURS and environment.precision is Precision.DOUBLE
    if not plain or environment.matrix_format is not Format.AUTO or environment.num_devices != 1:
        return None
    if system.expanded is None:
        return None
    sweeps = sweeps_before_gpu(environment, system.expanded)
    if sweeps is None:
        return None
    return replace(
        environment,
        device=DeviceChoice.CPU,
        max_iterations=min(sweeps, environment.sweep_limit),
        max_iterations_named=True,
    )


def may_factorise(system: System) -> bool:
    """Return whether the CPU may end a system directly that a GPU would sweep with more patience.

    Parameters
    ----------
    system
        What is to be solved.
    """
    return system.matrix.num_entries < GPU_ENTRIES_AT_START


def is_over(begun: SolveResult, environment: SolverEnvironment) -> bool:
    """Return whether a solve has ended on the CPU.

    Parameters
    ----------
    begun
        What the CPU has come to.
    environment
        What the user asked for.
    """
    ended = begun.status in (Status.CONVERGED, Status.DIVERGED) or bool(begun.finished_by)
    return ended or begun.iterations >= environment.sweep_limit


def so_far(begun: SolveResult) -> Iteration:
    """Return the sweeps on the CPU as those that others go on from.

    Parameters
    ----------
    begun
        What the CPU has come to.
    """
    made = (begun.iterations, begun.change, begun.error_estimate)
    return Iteration(Status.NOT_CONVERGED, *made)


def joined(begun: SolveResult, rest: SolveResult) -> SolveResult:
    """Return the result of all sweeps together.

    Parameters
    ----------
    begun
        What the CPU had come to.
    rest
        What the sweeps that went on from there have come to; their number counts those before.
    """
    cost, began = rest.cost, begun.events
    if not cost.on_cpu:
        later = rest.sweeping_seconds / max(rest.iterations - begun.iterations, 1)
        moved = Kind.BEGAN_ON_CPU(
            sweeps=begun.iterations,
            microseconds=begun.sweep_seconds * 1e6,
            place=cost.engine,
            microseconds_there=later * 1e6,
        )
        began = (*began, moved)
        cost = replace(cost, cpu_as_well=True)
    return replace(
        rest,
        seconds=begun.seconds + rest.seconds,
        setup_seconds=begun.setup_seconds + rest.setup_seconds,
        sweeping_seconds=begun.sweeping_seconds + rest.sweeping_seconds,
        cost=cost,
        events=began + rest.events,
    )
