"""Solving acyclic equations by back-substitution, in one walk."""

from __future__ import annotations

from ctypes import c_double, c_int64
from dataclasses import dataclass

import numpy as np

from engines.arrays import FloatArray
from engines.host.compiled.library import DOUBLES, Function
from engines.host.structures import HostSystem
from engines.systems.one_sided import ROUNDING_OF_A_SUM, SweepSystem

KERNEL = "compiled"
"""What made the walk, for the log."""

NO_MEMORY = -2.0

_SUBSTITUTE = Function(
    "pg_substitute", c_double, HostSystem, c_int64, c_int64, c_double, DOUBLES, DOUBLES
)


@dataclass(frozen=True)
class Substituted:
    """What came of a walk.

    Parameters
    ----------
    values
        The solution, shape (states,); None where states need each other.
    error
        A bound of its relative error, which is rounding's.
    """

    values: FloatArray | None
    error: float


def substitute(system: SweepSystem, x: FloatArray) -> Substituted:
    """Solve x = b + A x, or its minimum or maximum over choices, each state after those it needs.

    Parameters
    ----------
    system
        Without a scaling, and without negative numbers.
    x
        Values of states without a row, shape (states,).

    Raises
    ------
    MemoryError
        If there is no room for the order of the states.
    """
    values = np.array(x, dtype=np.float64)
    sizes = (len(values), system.num_updates)
    host = HostSystem.of(system)
    error = _SUBSTITUTE(host, *sizes, ROUNDING_OF_A_SUM, values, np.zeros(len(values)))
    if error == NO_MEMORY:
        raise MemoryError("back-substitution: out of memory")
    return Substituted(None, np.inf) if error < 0.0 else Substituted(values, float(error))
