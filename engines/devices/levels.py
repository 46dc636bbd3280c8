"""The device that makes cycles over aggregates of states."""

from __future__ import annotations

from engines.diagrams.system import System
from engines.errors import UnsupportedError
from engines.host.levels import CpuLevels
from engines.systems.multilevel import Levels
from engines.systems.one_sided import Place


def levels_on(
    place: Place,
    system: System,
    stop_below: float,
    absolute: bool,
    most_memory: int | None = None,
) -> Levels:
    """Return cycles on some device.

    Parameters
    ----------
    place
        The CPU or a GPU.
    system
        A system for π Q = 0 of one recurrent class, before scaling; on a GPU runs of its rows do
        in place of a matrix.
    stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`.
    most_memory
        The most bytes of the GPU that the user allows, or None.

    Raises
    ------
    UnsupportedError
        If the chain cannot be coarsened.
    DeviceMemoryError
        When the device cannot hold the levels.
    """
    try:
        return _levels_on(place, system, stop_below, absolute, most_memory)
    except UnsupportedError as error:
        raise UnsupportedError(f"multilevel cycles are not possible: {error}") from error


def _levels_on(
    place: Place, system: System, stop_below: float, absolute: bool, most_memory: int | None
) -> Levels:
    if place.gpus:
        from engines.cuda.multilevel import cuda_levels

        return cuda_levels(system, stop_below, absolute, place.gpus[0], most_memory)
    expanded = system.expanded
    if expanded is None:
        raise UnsupportedError("the CPU makes cycles with an expanded matrix only")
    return CpuLevels(expanded, stop_below, absolute)
