"""Solving equations in one walk, where no two states need each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.cpu import host_loops
from engines.cpu.host_loops import HostSweeps
from engines.formats.csr import FloatArray
from engines.system import Direction, SweepSystem


@dataclass(frozen=True)
class Substituted:
    """What came of a walk.

    Parameters
    ----------
    kernel
        What made it, for the log.
    values
        The solution, shape (states,); None where states need each other.
    error
        A bound of its relative error, which is rounding's.
    """

    kernel: str
    values: FloatArray | None
    error: float


def substitute_by_host(
    system: SweepSystem, x: FloatArray, sweeps: HostSweeps | None
) -> Substituted | None:
    """Solve a system by the host's own loops.

    Parameters
    ----------
    system
        Without a scaling, and without negative numbers.
    x
        Values of states without a row, shape (states,).
    sweeps
        The loops, if they hold the system by now.

    Returns
    -------
    What came of it, or None where the host has no such loops, or no room for a copy of the matrix.
    """
    host = host_loops.registered()
    if host is None:
        return None
    if sweeps is None and host_loops.stand_in(system.matrix.num_entries) is not None:
        sweeps = host.sweeps(system, host_loops.pieces_for(system, 1))
    if sweeps is None:
        return None
    values = np.array(x)
    error = sweeps.substitute(values)
    return _told(host.name, values, error)


def substitute_compiled(system: SweepSystem, x: FloatArray) -> Substituted:
    """Solve a system by numba's loops, which are loaded or compiled now.

    Parameters
    ----------
    system, x
        As in `substitute_by_host`.
    """
    from engines.cpu.substitution_kernels import substitute

    return substitute_with(substitute, system, x)


def substitute_with(walk: Any, system: SweepSystem, x: FloatArray) -> Substituted:
    """Solve a system by `engines.cpu.substitution_kernels.substitute`, compiled or not.

    Parameters
    ----------
    walk
        That function.
    system, x
        As in `substitute_by_host`.
    """
    matrix, none = system.matrix, np.empty(0, dtype=np.int32)
    groups = none if system.group_offsets is None else system.group_offsets
    states = none if system.states is None else system.states
    offset = np.empty(0) if system.offset is None else system.offset
    values = np.array(x)
    error = walk(
        *(groups, matrix.row_offsets, matrix.columns, matrix.values, offset, states),
        *(system.direction is Direction.MINIMISE, values, np.zeros(len(values))),
    )
    return _told("numba", values, float(error))


def kernels_ready() -> bool:
    """Return whether numba's loops need not be compiled first."""
    from engines.cpu.compiled import are_compiled
    from engines.cpu.substitution_kernels import substitute

    return are_compiled(substitute)


def _told(kernel: str, values: FloatArray, error: float) -> Substituted:
    if error < 0.0:
        return Substituted(kernel, None, np.inf)
    return Substituted(kernel, values, error)
