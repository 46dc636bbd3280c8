"""From a matrix on the host to the iteration matrix on the device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engines.cuda.driver import cupy
from engines.cuda.modules import Launcher
from engines.cuda.transfer import to_device
from engines.host.scaling import scaled
from engines.systems.one_sided import Direction, Scaling, SweepSystem

SCAN_BLOCK = 1024
"""Numbers that a block adds up; as in the kernels."""


@dataclass(frozen=True)
class DeviceSystem:
    """A scaled system on the device; the fields are those of `SweepSystem`.

    Parameters
    ----------
    divisors
        What the rows of the matrix have still to be divided by, shape (rows,), or None. The offset
        is divided already.
    """

    row_offsets: Any
    columns: Any
    values: Any
    offset: Any | None
    states: Any | None
    group_offsets: Any | None
    direction: Direction | None
    omega: float
    divisors: Any | None = None


def narrowed(values: Any, nearest: bool, launcher: Launcher, factor: float = 1.0) -> Any:
    """Return a copy of a vector on the device in single precision.

    Parameters
    ----------
    values
        Doubles on the current device.
    nearest
        Whether they are rounded to nearest; else down.
    launcher
        Launches kernels for a type that numbers them.
    factor
        A power of two that they are multiplied by.
    """
    cp = cupy()
    copy = cp.empty(values.shape, dtype=cp.float32)
    count = int(values.size)
    how = (cp.float64(factor), cp.int32(nearest))
    arguments = (values, launcher.offset_dtype(count), *how, copy)
    if count:
        launcher.launch("copy_narrowed", count, *arguments, module="prepare")
    return copy


def upload(system: SweepSystem, launcher: Launcher, *, divided: bool = True) -> DeviceSystem:
    """Copy a system to the current device and scale it there.

    Parameters
    ----------
    system
        A system with any scaling.
    launcher
        Launches kernels for the system's type of row offsets.
    divided
        Whether the rows are divided as the scaling says; else that is left to the caller, who finds
        the divisors beside the matrix.
    """
    cp = cupy()
    if system.scaling is Scaling.BALANCE:
        device = _balanced(system, launcher, divided)
        return device if device is not None else upload(scaled(system), launcher)
    wide = launcher.offset_dtype
    device = DeviceSystem(
        row_offsets=to_device(system.matrix.row_offsets, wide),
        columns=to_device(system.matrix.columns, np.int32),
        values=to_device(system.matrix.values, np.float64),
        offset=None if system.offset is None else to_device(system.offset, np.float64),
        states=None if system.states is None else to_device(system.states, np.int32),
        group_offsets=None
        if system.group_offsets is None
        else to_device(system.group_offsets, wide),
        direction=system.direction,
        omega=system.omega,
    )
    if system.scaling is Scaling.DIAGONAL:
        rows = system.matrix.num_rows
        arrays = (device.row_offsets, device.columns, device.values, device.offset, device.states)
        if divided:
            launcher.launch("divide_by_diagonal", rows, *arrays, cp.int32(rows), module="prepare")
        else:
            device = replace(device, divisors=cp.empty(rows))
            launcher.launch(
                "split_diagonal",
                rows,
                *(*arrays, wide(rows), device.divisors),
                module="formats/layout",
            )
    return device


def _balanced(system: SweepSystem, launcher: Launcher, divided: bool = True) -> DeviceSystem | None:
    """Transpose and scale rates on the device; None where a row would be too long to sort."""
    cp = cupy()
    matrix, size = system.matrix, system.matrix.num_rows
    rows = cp.int32(size)
    rates = (
        to_device(matrix.row_offsets, launcher.offset_dtype),
        to_device(matrix.columns, np.int32),
        to_device(matrix.values, np.float64),
    )
    exits = cp.empty(size)
    cursors = cp.zeros(size + 1, dtype=launcher.offset_dtype)
    launcher.launch("measure_balance", size, *rates, rows, exits, cursors, module="prepare")
    # Rows of the transpose are sorted by insertion, one thread each; longer ones on the host.
    longest = cp.zeros(1, dtype=launcher.offset_dtype)
    launcher.launch("keep_longest", size, cursors, rows, longest, module="prepare")
    if int(longest.get()[0]) > 512:
        return None
    _scan(cursors, launcher)
    entries = int(cursors[-1:].get()[0])
    columns = cp.empty(entries, dtype=cp.int32)
    values = cp.empty(entries)
    scale = exits if divided else None
    launcher.launch(
        "scatter_balance", size, *rates, rows, scale, cursors, columns, values, module="prepare"
    )
    launcher.launch("sort_rows", size, cursors, rows, columns, values, module="prepare")
    return DeviceSystem(
        *(cursors, columns, values, None, None, None, None, system.omega),
        divisors=None if divided else exits,
    )


def _scan(counts: Any, launcher: Launcher) -> None:
    """Turn counts into inclusive sums, in place."""
    cp = cupy()
    length = len(counts)
    blocks = (length + SCAN_BLOCK - 1) // SCAN_BLOCK
    totals = cp.empty(blocks, dtype=counts.dtype) if blocks > 1 else None

    def launch(name: str) -> None:
        arguments = (counts, cp.int32(length), totals)
        launcher.launch(name, length, *arguments, module="prepare", block=SCAN_BLOCK)

    launch("scan_blocks")
    if totals is not None:
        _scan(totals, launcher)
        launch("add_block_totals")
