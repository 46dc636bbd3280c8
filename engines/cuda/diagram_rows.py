"""Systems of equations over a diagram's matrix: their rows on the device, none of them expanded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.arrays import IndexArray
from engines.cuda.diagram_upload import (
    MODULE,
    MOST_STATES,
    DeviceHybrid,
    hybrid_bytes,
    most_rows,
    upload_hybrid,
)
from engines.cuda.driver import cupy
from engines.cuda.formats.layout import BESIDE
from engines.cuda.modules import Launcher
from engines.cuda.prepare import _scan
from engines.cuda.transfer import to_device
from engines.diagrams.hybrid import HybridMatrix
from engines.diagrams.system import DiagramSystem
from engines.errors import UnsupportedError
from engines.systems.one_sided import Scaling


@dataclass(frozen=True)
class DiagramRows:
    """The rows of a system on the device, in the hybrid representation.

    Parameters
    ----------
    hybrid
        The matrix.
    divisors
        What each row is to be divided by, shape (rows,), or None.
    offset
        The right-hand side, shape (rows,), divided already; or None.
    states, group_offsets
        As in `engines.cuda.prepare.DeviceSystem`.
    row_states, row_choices
        Shape (rows,), int32: the state of each row, None where row i is state i's; and its choice,
        None without choices.
    rows
        Number of rows.
    without_diagonal
        Whether entries on the diagonal are left out.
    """

    hybrid: DeviceHybrid
    divisors: Any | None
    offset: Any | None
    states: Any | None
    group_offsets: Any | None
    row_states: Any | None
    row_choices: Any | None
    rows: int
    without_diagonal: bool

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The kernels' arguments for the rows."""
        return (
            *(*self.hybrid.arguments, self.divisors, self.offset, self.row_states),
            *(self.row_choices, cupy().int32(self.without_diagonal)),
        )


def check_system(system: DiagramSystem) -> None:
    """Raise unless the GPU engine can sweep a system.

    Parameters
    ----------
    system
        The system.

    Raises
    ------
    UnsupportedError
        As in `DiagramSystem.check`, and for more rows than 32 bits number.
    ValueError
        As in `DiagramSystem.check`.
    """
    system.check()
    if most_rows(system.matrix) > MOST_STATES:
        raise UnsupportedError("the GPU engine numbers rows without a matrix in 32 bits")


def system_bytes(system: DiagramSystem) -> int:
    """Return about the most bytes that a system takes on the device, vectors included.

    Codes are counted with two bytes a row; the right-hand side of an MDP with the most rows that
    there may be.

    Parameters
    ----------
    system
        The system.
    """
    rows = most_rows(system.matrix) if system.has_choices else system.num_updates
    parts = (system.matrix, *(() if system.rates is None else (system.rates,)))
    each = 2 + (8 if system.offset is not None else 0)
    divided = system.scaling is not Scaling.NONE or system.divisors is not None
    each += 8 if divided else 0
    each += 16 if system.has_choices else 0
    each += 0 if system.states is None else 4
    return sum(hybrid_bytes(part) for part in parts) + each * rows + 16 * system.num_states


def upload_rows(system: DiagramSystem, launcher: Launcher) -> DiagramRows:
    """Copy a system to the current device and find its divisors there.

    Parameters
    ----------
    system
        The system.
    launcher
        Launches kernels for row offsets of 32 bits.

    Raises
    ------
    UnsupportedError
        As in `check_system` and `engines.cuda.diagram_upload.check_sizes`.
    """
    check_system(system)
    divisors = None
    if system.scaling is Scaling.BALANCE and system.rates is not None:
        divisors = exit_rates_on_device(system.rates, launcher)
    elif system.divisors is not None:
        divisors = to_device(system.divisors, np.float64)
    hybrid = upload_hybrid(system.matrix, launcher)
    states = None if system.states is None else to_device(system.states, np.int32)
    offset = None if system.offset is None else to_device(system.offset, np.float64)
    if system.has_choices:
        return _with_choices(system, hybrid, states, offset, launcher)
    cp, rows = cupy(), system.num_updates
    if system.scaling is Scaling.DIAGONAL:
        divisors = cp.empty(rows)
        arguments = (*hybrid.arguments, states, cp.int32(rows), offset, divisors)
        launcher.launch("find_pivots", rows, *arguments, module=MODULE)
    without = system.scaling is not Scaling.NONE
    return DiagramRows(hybrid, divisors, offset, states, None, states, None, rows, without)


def exit_rates_on_device(rates: HybridMatrix, launcher: Launcher) -> Any:
    """Return each state's exit rate without self-loops, 1 for none, on the device.

    Parameters
    ----------
    rates
        The rates out of each state.
    launcher
        Launches kernels for row offsets of 32 bits.
    """
    cp, size = cupy(), rates.num_states
    hybrid = upload_hybrid(rates, launcher)
    exits = cp.empty(size)
    arguments = (*hybrid.arguments, cp.int32(size), exits)
    launcher.launch("find_exit_rates", size, *arguments, module=MODULE)
    return exits


def _with_choices(
    system: DiagramSystem,
    hybrid: DeviceHybrid,
    states: Any | None,
    offset: Any | None,
    launcher: Launcher,
) -> DiagramRows:
    cp, size = cupy(), system.num_states
    groups = cp.zeros(size + 1, dtype=launcher.offset_dtype)
    arguments = (*hybrid.arguments, cp.int32(size))
    launcher.launch("count_choices", size, *arguments, groups[1:], module=MODULE)
    _scan(groups, launcher)
    rows = int(groups[-1:].get()[0])
    choices = cp.empty(rows, dtype=cp.int32)
    launcher.launch("measure_choices", size, *arguments, groups, None, choices, module=MODULE)
    if system.states is not None:
        groups, choices = _selected(groups.get(), choices.get(), system.states)
        rows = len(choices)
    count = len(groups) - 1
    row_states = cp.empty(rows, dtype=cp.int32)
    launcher.launch(
        "name_row_states", count, groups, states, cp.int32(count), row_states, module=BESIDE
    )
    if system.offset is not None and len(system.offset) != rows:
        raise ValueError(f"a right-hand side of length {len(system.offset)} for {rows} rows")
    return DiagramRows(hybrid, None, offset, states, groups, row_states, choices, rows, False)


def _selected(groups: IndexArray, choices: IndexArray, states: IndexArray) -> tuple[Any, Any]:
    """Return groups and choices of some of the states, on the device."""
    counts = np.diff(groups)[states]
    selected = np.append(0, np.cumsum(counts))
    shift = np.repeat(groups[states] - selected[:-1], counts)
    rows = np.arange(int(selected[-1])) + shift
    return to_device(selected, np.int32), to_device(choices[rows], np.int32)
