"""Solving acyclic equations by back-substitution, in one walk."""

from __future__ import annotations

from ctypes import c_double, c_int64

import numpy as np

from engines.arrays import FloatArray
from engines.host.compiled.library import DOUBLES, Function
from engines.host.structures import HostSystem
from engines.systems.one_sided import ROUNDING_OF_A_SUM, SweepSystem

KERNEL = "compiled"
"""What made the walk, for the log."""

_SUBSTITUTE = Function(
    "pg_substitute", c_double, HostSystem, c_int64, c_int64, c_double, DOUBLES, DOUBLES
)


def substitute(system: SweepSystem, x: FloatArray) -> tuple[FloatArray, float] | None:
    """Solve x = b + A x, or its minimum or maximum over choices, each state after those it needs.

    Parameters
    ----------
    system
        Without a scaling, and without negative numbers.
    x
        Values of states without a row, shape (states,).

    Returns
    -------
    As `engines.systems.one_sided.HasSubstitution` says.

    Raises
    ------
    MemoryError
        If there is no room for the order of the states.
    """
    values = np.array(x, dtype=np.float64)
    sizes = (len(values), system.num_updates)
    host = HostSystem.of(system)
    error = _SUBSTITUTE(host, *sizes, ROUNDING_OF_A_SUM, values, np.zeros(len(values)))
    if error == -2.0:  # NO_MEMORY of substitution.cpp
        raise MemoryError("back-substitution: out of memory")
    return None if error < 0.0 else (values, float(error))
