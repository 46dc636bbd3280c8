"""The device that analyses a model's graph."""

from __future__ import annotations

import weakref

from engines.arrays import INT32_MAX
from engines.cuda.driver import driver_present, gpu_refusal, is_used, note_use
from engines.errors import UnsupportedError
from engines.host.graph import CpuGraph
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.explicit import ExplicitModel
from engines.systems.graph import GraphOperations

_Key = tuple[int, int, int | None]

_prepared: dict[_Key, GraphOperations] = {}
"""By the identity of a matrix and its row groups, and by the GPU, if any; as long as the matrix
lives."""


def operations_of(
    model: ExplicitModel, environment: SolverEnvironment | None = None
) -> GraphOperations:
    """Return the operations on a model's graph, prepared at its first use.

    Parameters
    ----------
    model
        A model of any kind; its arrays must stay as they are from now on.
    environment
        Which device the user asked for; None for the CPU. The sets are the same on all.

    Raises
    ------
    UnsupportedError
        When the GPU was asked for and cannot be used.
    """
    device_number = _gpu_for(model, environment)
    # The operations hold the row groups, so that their identity is not given to other ones.
    key = (id(model.matrix), id(model.row_group_offsets), device_number)
    found = _prepared.get(key)
    if found is None:
        found = _prepare(model, device_number)
        _prepared[key] = found
        weakref.finalize(model.matrix, _prepared.pop, key, None)
    return found


def _prepare(model: ExplicitModel, device_number: int | None) -> GraphOperations:
    if device_number is None:
        return CpuGraph(model)
    from engines.cuda.graph import CudaGraph

    note_use()
    return CudaGraph(model, device_number)


def _gpu_for(model: ExplicitModel, environment: SolverEnvironment | None) -> int | None:
    """Return the number of the GPU to use, or None for the CPU.

    Where the user allows less memory than a search may take, it is the CPU.
    """
    if environment is None or environment.device is DeviceChoice.CPU:
        return None
    wanted = environment.device is DeviceChoice.GPU
    size = max(model.matrix.num_entries, model.num_states)
    fits = max(model.matrix.num_rows, model.num_states) < INT32_MAX
    # With fewer a search on the CPU takes a few milliseconds at most, or, while no device is in
    # use, less than the half second that opening one takes.
    least_entries = 100_000 if is_used() else 3_000_000
    small = size < least_entries
    if not wanted and (small or not fits or not driver_present()):
        return None
    refusal = gpu_refusal(environment.device_number)
    if refusal is not None:
        if wanted:
            raise UnsupportedError(f"no GPU can be used: {refusal}")
        return None
    room = environment.device_memory
    return environment.device_number if room is None or _most_bytes(model) <= room else None


def _most_bytes(model: ExplicitModel) -> int:
    """Return the most bytes that the searches in a model's graph may take of a GPU.

    More than strong components take of any of the graphs in docs/reproduce.md.
    """
    return 64 * model.num_states + 16 * model.matrix.num_entries
