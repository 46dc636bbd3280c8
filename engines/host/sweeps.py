"""One-sided sweeps by the compiled library."""

from __future__ import annotations

from ctypes import c_double, c_int32, c_int64, c_void_p

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.host.compiled.library import DOUBLES, INDICES, Function, Structure
from engines.host.compiled.shares import require_vectors
from engines.host.structures import HostSystem, shares_of
from engines.systems.one_sided import SweepSystem


class HostCodes(Structure):
    """`PgCodes` of src/codes.hpp."""

    _fields_ = (("codes", c_void_p), ("numbers", c_void_p), ("wide", c_int32))

    @classmethod
    def of(cls, codes: IndexArray, numbers: FloatArray) -> HostCodes:
        """Return codes of values as the library reads them; arrays are shared.

        Parameters
        ----------
        codes
            Shape (entries,), uint8 or uint16, contiguous, each below the number of `numbers`.
        numbers
            The value that each code stands for, contiguous.
        """
        if codes.dtype not in (np.uint8, np.uint16):
            raise TypeError(f"codes are of 8 or 16 bits, not {codes.dtype}")
        made = cls(codes.ctypes.data, numbers.ctypes.data, codes.dtype.itemsize > 1)
        made._kept = (codes, numbers)
        return made


_SWEEPS = Function(
    "pg_sweeps",
    c_int64,
    *(HostSystem, HostCodes, INDICES, c_int64, c_int32, c_double),
    *(DOUBLES, c_int64, c_double, DOUBLES, DOUBLES, c_int32),
)


class HostSweeps:
    """Sweeps of a system between two vectors.

    Parameters
    ----------
    system
        The system, without a scaling.
    codes
        The values of the matrix where they are coded.
    """

    def __init__(self, system: SweepSystem, codes: HostCodes | None = None) -> None:
        self._system, self._codes = HostSystem.of(system), codes
        self._states = system.num_states
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

        Raises
        ------
        ValueError
            If a vector has another shape.
        """
        require_vectors(self._states, x, x_new)
        shares = self._shares
        pieces = (shares.bounds, shares.pieces, shares.threads, omega)
        how = (changes, len(changes), stop_below, x, x_new, absolute)
        return int(_SWEEPS(self._system, self._codes, *pieces, *how))
