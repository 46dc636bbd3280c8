"""Exploring a program on a GPU, for the host."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from engines.arrays import index_dtype
from engines.cuda import driver
from engines.errors import UnsupportedError
from engines.host.exploring.explorer import Rows
from engines.model.environment import DeviceChoice
from engines.model.row_runs import RowsInRuns, RunCollector
from engines.program.faults import command_fault
from engines.program.packing import Packing, Words
from engines.program.program import Program

if TYPE_CHECKING:
    from engines.cuda.exploring import CudaExplorer, DeviceRows

STATES_OF_A_PART = 1 << 23
"""Whose rows are on the device at a time where they are kept as runs."""


def gpu_for_building(device: DeviceChoice, device_number: int) -> int | None:
    """Return the GPU that may take a large model over; it is opened when there is such a model.

    Parameters
    ----------
    device, device_number
        What the user named.
    """
    wanted = device is not DeviceChoice.CPU and driver.driver_present()
    return device_number if wanted else None


def explored_on_gpu(
    program: Program,
    packing: Packing,
    initial: Words,
    device_number: int,
    most_memory: int | None = None,
    progress: Callable[[int], None] | None = None,
    most_entries: int | None = None,
) -> tuple[Words, Rows | RowsInRuns]:
    """Return the states of a program in PRISM's order, packed, and the rows of its matrix.

    Parameters
    ----------
    program
        The model.
    packing
        Of its states.
    initial
        Packed states where the search begins.
    device_number
        Which GPU.
    most_memory
        Bytes that may be taken of it; None for all.
    progress
        Called with the number of states found so far.
    most_entries
        Of a chain: with more transitions, the rows are kept as runs, where they repeat often;
        None for never.

    Raises
    ------
    InvalidModelError
        For commands with a fault in a reachable state, in PRISM's words.
    DeviceMemoryError
        If states or matrix do not fit.
    UnsupportedError
        If there is no such GPU, and as `engines.cuda.exploring.CudaExplorer` and its rows.
    """
    refusal = driver.gpu_refusal(device_number)
    if refusal is not None:
        raise UnsupportedError(refusal)
    how = (most_memory, progress, most_entries)
    with driver.cupy().cuda.Device(device_number):
        try:
            return _explored(program, packing, initial, *how)
        finally:
            if most_memory is not None:
                # What solves may take does not come on top of it.
                driver.cupy().get_default_memory_pool().free_all_blocks()


def _explored(
    program: Program,
    packing: Packing,
    initial: Words,
    most_memory: int | None,
    progress: Callable[[int], None] | None,
    most_entries: int | None,
) -> tuple[Words, Rows | RowsInRuns]:
    """Explore on the current device."""
    from engines.cuda.exploring import CudaExplorer
    from engines.cuda.transfer import to_host

    explorer = CudaExplorer(program, packing, initial, most_memory=most_memory)
    while True:
        search = explorer.search()
        if search["faulty"]:
            faults = explorer.faults()
            # The order of the words is that of the states.
            first = np.lexsort(faults.reshape(len(faults), -1).T[::-1])[0]
            state = packing.state(faults[first])
            raise command_fault(program, state) or AssertionError(f"no fault found in {state}")
        if progress is not None:
            progress(int(search["begin"] - search["holes"]))
        if search["begin"] == search["found"]:
            break
    states = explorer.states()
    if most_entries is not None and int(search["transitions"]) > most_entries:
        with contextlib.suppress(UnsupportedError):
            return to_host(states), _in_runs(explorer, len(states))
    return to_host(states), _on_host(explorer.rows())


def _on_host(rows: DeviceRows) -> Rows:
    """Return rows with their arrays copied to the host."""
    from engines.cuda.transfer import to_host

    groups, actions = rows.group_offsets, rows.actions
    count, entries = len(rows.row_offsets) - 1, len(rows.columns)
    return Rows(
        to_host(rows.row_offsets.astype(index_dtype(entries))),
        None if groups is None else to_host(groups.astype(index_dtype(count))),
        *(to_host(rows.columns), to_host(rows.values)),
        None if actions is None else to_host(actions),
        to_host(rows.deadlocks).view(np.bool_),
        rows=count,
        entries=entries,
    )


def _in_runs(explorer: CudaExplorer, count: int) -> RowsInRuns:
    """Return the rows of all states as runs, found on the device, a part of the states at a time.

    Raises
    ------
    UnsupportedError
        If rows repeat too seldom.
    """
    cp = driver.cupy()
    collector = RunCollector(cp)
    deadlocks = np.empty(count, dtype=np.bool_)
    for first in range(0, count, STATES_OF_A_PART):
        last = min(first + STATES_OF_A_PART, count)
        rows = explorer.rows(first, last)
        collector.add(rows.row_offsets, rows.columns, rows.values)
        deadlocks[first:last] = rows.deadlocks.get().view(np.bool_)
    return RowsInRuns(collector.runs(), deadlocks)
