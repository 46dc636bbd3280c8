"""Matrices of decision diagrams, expanded on the device.

The hybrid representation is copied there; each state's thread follows the state's jobs twice, to
count its entries and to write them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX, IndexArray
from engines.cuda.diagram_upload import (
    MODULE,
    MOST_STATES,
    DeviceHybrid,
    check_sizes,
    hybrid_bytes,
    most_rows,
    upload_hybrid,
)
from engines.cuda.driver import cupy
from engines.cuda.memory import available_bytes
from engines.cuda.modules import BLOCK_THREADS, Launcher, stream
from engines.cuda.prepare import SCAN_BLOCK, _scan
from engines.cuda.transfer import collect, to_host
from engines.diagrams.hybrid import HybridMatrix
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.model.csr import CsrMatrix

ENTRY_BYTES = 12
"""A column and a value."""


@dataclass(frozen=True)
class ExpansionTuning:
    """How a matrix is expanded.

    Parameters
    ----------
    kernel
        Writes entries where there are few a state.
    warp_row_entries
        From this mean number of entries a state on, a warp writes them.
    piece_bytes
        The most bytes of entries that are on the device at a time where a matrix goes to the host.
    """

    kernel: str = "fill_rows_staged"
    warp_row_entries: int = 24
    piece_bytes: int = 1 << 28


@dataclass(frozen=True)
class HostMatrix:
    """An expanded matrix on the host.

    Parameters
    ----------
    matrix
        Shape (rows, columns). Without choices row i is that of state i.
    row_group_offsets
        MDPs: shape (states + 1,), where the rows of each state start; else None.
    choice_numbers
        MDPs: shape (rows,), int32, which choice each row is; else None.
    """

    matrix: CsrMatrix
    row_group_offsets: IndexArray | None
    choice_numbers: IndexArray | None


def _index_bytes(hybrid: HybridMatrix) -> int:
    """Return the most bytes of row offsets, groups and choices, and of the sums they come from."""
    rows = most_rows(hybrid)
    each = 8 if _is_wide(hybrid) else 4
    scanned = each * (rows + 1)
    sums = scanned // SCAN_BLOCK * 2 + 4096
    if hybrid.job_choices is None:
        return scanned + sums
    return scanned + sums + each * (hybrid.num_states + 1) + 4 * rows


def _is_wide(hybrid: HybridMatrix) -> bool:
    return max(hybrid.num_entries, most_rows(hybrid)) > INT32_MAX


def launcher_of(hybrid: HybridMatrix) -> Launcher:
    """Return what launches kernels for the row offsets of an expanded matrix.

    Parameters
    ----------
    hybrid
        The matrix.
    """
    return Launcher("long long" if _is_wide(hybrid) else "int")


@dataclass(frozen=True)
class DeviceIndex:
    """Where the rows and the choices of an expanded matrix start, on the device.

    Parameters
    ----------
    row_offsets
        Shape (rows + 1,).
    groups
        MDPs: shape (states + 1,), where the rows of each state start; else None.
    choices
        MDPs: shape (rows,), int32, which choice each row is; else None.
    """

    row_offsets: Any
    groups: Any | None
    choices: Any | None


def count_rows(hybrid: DeviceHybrid, launcher: Launcher) -> DeviceIndex:
    """Count the entries of each row; of an MDP, the choices of each state first.

    Parameters
    ----------
    hybrid
        The matrix.
    launcher
        Launches kernels for its type of row offsets.

    Raises
    ------
    UnsupportedError
        When 32 bits do not number the rows.
    """
    cp, states = cupy(), hybrid.num_states
    counts = cp.zeros(states + 1, dtype=launcher.offset_dtype)
    what = "count_entries" if hybrid.job_choices is None else "count_choices"
    arguments = (*hybrid.arguments, cp.int32(states))
    launcher.launch(what, states, *arguments, counts[1:], module=MODULE)
    _scan(counts, launcher)
    if hybrid.job_choices is None:
        return DeviceIndex(counts, None, None)
    rows = int(counts[-1:].get()[0])
    if rows > MOST_STATES:
        raise UnsupportedError(f"{rows} choices: the GPU engine numbers them in 32 bits")
    offsets = cp.zeros(rows + 1, dtype=launcher.offset_dtype)
    choices = cp.empty(rows, dtype=cp.int32)
    launcher.launch(
        "measure_choices", states, *arguments, counts, offsets[1:], choices, module=MODULE
    )
    _scan(offsets, launcher)
    return DeviceIndex(offsets, counts, choices)


def fill_rows(
    hybrid: DeviceHybrid,
    index: DeviceIndex,
    launcher: Launcher,
    states: range,
    base: int,
    entries: tuple[Any, Any],
    tuning: ExpansionTuning,
) -> None:
    """Write columns and values of some states' rows.

    Parameters
    ----------
    hybrid
        The matrix.
    index
        Where its rows start.
    launcher
        Launches kernels for its type of row offsets.
    states
        Which states, one after another.
    base
        The entry of the matrix that is to be the first that is written.
    entries
        Columns and values, for as many entries as these states have.
    tuning
        Which kernel writes them.
    """
    cp = cupy()
    # A block puts the entries of 128 states together before it writes them, as in the kernels.
    kernel, threads, block = tuning.kernel, len(states), 128
    if hybrid.num_entries >= tuning.warp_row_entries * hybrid.num_states:
        kernel, threads, block = "fill_rows_by_warp", 32 * len(states), BLOCK_THREADS
    launcher.launch(
        kernel,
        threads,
        *(*hybrid.arguments, cp.int32(states.start), cp.int32(states.stop)),
        *(index.row_offsets, index.groups, launcher.offset_dtype(base), *entries),
        module=MODULE,
        block=block,
    )


def expand_in_pieces(
    hybrid: HybridMatrix,
    device_number: int = 0,
    memory: int | None = None,
    tuning: ExpansionTuning = ExpansionTuning(),
) -> HostMatrix:
    """Expand a matrix on the device and collect it on the host, piece by piece.

    Parameters
    ----------
    hybrid
        The matrix.
    device_number
        Which of the devices.
    memory
        Bytes of device memory that it may take; None for what is free. The device has to hold the
        representation, the row offsets and a piece of the entries.
    tuning
        How it is done.

    Raises
    ------
    DeviceMemoryError
        When it cannot; nothing is left allocated.
    UnsupportedError
        As in `check_sizes`.
    """
    cp = cupy()
    check_sizes(hybrid)
    with cp.cuda.Device(device_number), stream(device_number):
        available = available_bytes(memory)
        fixed = hybrid_bytes(hybrid) + _index_bytes(hybrid)
        try:
            if fixed > available:
                raise _too_large(device_number, hybrid, fixed, available)
            launcher = launcher_of(hybrid)
            source = upload_hybrid(hybrid, launcher)
            index = count_rows(source, launcher)
            offsets: IndexArray = to_host(index.row_offsets)
            groups: IndexArray | None = None if index.groups is None else to_host(index.groups)
            starts = offsets if groups is None else offsets[groups]
            piece = min(tuning.piece_bytes, available - fixed) // ENTRY_BYTES
            piece = max(piece, int(np.diff(starts).max(initial=0)))
            need = fixed + ENTRY_BYTES * piece
            if need > available:
                raise _too_large(device_number, hybrid, need, available)
            buffers = (cp.empty(piece, dtype=cp.int32), cp.empty(piece))
            columns = np.empty(hybrid.num_entries, dtype=np.int32)
            values = np.empty(hybrid.num_entries)
            begin = 0
            while begin < hybrid.num_states:
                first = int(starts[begin])
                end = int(np.searchsorted(starts, first + piece, side="right")) - 1
                last = int(starts[end])
                fill_rows(source, index, launcher, range(begin, end), first, buffers, tuning)
                collect(buffers[0][: last - first], columns[first:last])
                collect(buffers[1][: last - first], values[first:last])
                begin = end
        except cp.cuda.memory.OutOfMemoryError as error:
            cp.get_default_memory_pool().free_all_blocks()
            raise _too_large(device_number, hybrid, fixed, available_bytes(memory)) from error
        choices = None if index.choices is None else to_host(index.choices)
    return HostMatrix(CsrMatrix(offsets, columns, values, hybrid.num_columns), groups, choices)


def _too_large(
    device_number: int, hybrid: HybridMatrix, need: int, available: int
) -> DeviceMemoryError:
    return DeviceMemoryError(
        f"GPU {device_number}: to expand a matrix of {hybrid.num_states} states and "
        f"{hybrid.num_entries} entries takes {need} bytes, and {available} bytes are free"
    )
