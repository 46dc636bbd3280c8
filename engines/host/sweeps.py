"""One-sided sweeps by the compiled library."""

from __future__ import annotations

from ctypes import c_double, c_int32, c_int64

from engines.formats.csr import FloatArray
from engines.host.library import DOUBLES, INDICES, Function, HostSystem
from engines.host.shares import shares_of
from engines.system import SweepSystem

_SWEEPS = Function(
    "pg_sweeps",
    c_int64,
    *(HostSystem, INDICES, c_int64, c_int32, c_double),
    *(DOUBLES, c_int64, c_double, DOUBLES, DOUBLES, c_int32),
)


class HostSweeps:
    """Sweeps of a system between two vectors.

    Parameters
    ----------
    system
        The system, without a scaling.
    """

    def __init__(self, system: SweepSystem) -> None:
        self._system = HostSystem.of(system)
        self._shares = shares_of(system)
        self.threads = self._shares.threads

    def repeat(
        self,
        changes: FloatArray,
        stop_below: float,
        omega: float,
        x: FloatArray,
        x_new: FloatArray,
        absolute: bool,
    ) -> int:
        """Make a sweep for each of `changes`, or until one changes less than `stop_below`.

        The vectors change places after each sweep. Returns how many were made.

        Parameters
        ----------
        changes
            Takes the largest change of each sweep, shape (sweeps,).
        stop_below
            Negative for never.
        omega
            Relaxation ω; systems with choices have none.
        x, x_new
            Shape (states,): the iterate, and room for the next one. What no row computes is the
            same in both.
        absolute
            Whether changes are absolute.
        """
        shares = self._shares
        pieces = (shares.bounds, shares.pieces, shares.threads, omega)
        how = (changes, len(changes), stop_below, x, x_new, absolute)
        return int(_SWEEPS(self._system, *pieces, *how))
