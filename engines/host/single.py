"""Sweeps in single precision by the compiled library."""

from __future__ import annotations

from ctypes import c_double, c_int32, c_int64

from engines.arrays import FloatArray, SingleArray
from engines.host.compiled.library import DOUBLES, INDICES, SINGLES, Function
from engines.host.compiled.shares import require_vectors
from engines.host.structures import HostSystem, shares_of
from engines.systems.one_sided import SweepSystem

_SWEEPS = Function(
    "pg_single_sweeps",
    c_int64,
    *(HostSystem, SINGLES, SINGLES, INDICES, c_int64, c_int32, c_double),
    *(DOUBLES, c_int64, c_double, SINGLES, SINGLES, c_int32, c_int32),
)


class HostSingleSweeps:
    """Sweeps of a system between two vectors in single precision.

    Sums are taken in double precision, and rounded when they are stored.

    Parameters
    ----------
    system
        The system, without a scaling; neither the matrix values nor the offset are looked at.
    values
        Those of the matrix, shape (entries,).
    offset
        That of the rows, shape (rows,), or None for 0.
    nearest
        Whether what is stored is rounded to nearest; else down.

    Raises
    ------
    ValueError
        If the values or the offset have another shape.
    """

    def __init__(
        self, system: SweepSystem, values: SingleArray, offset: SingleArray | None, nearest: bool
    ) -> None:
        matrix = system.matrix
        if len(values) != matrix.num_entries:
            raise ValueError(f"{matrix.num_entries} entries, but {len(values)} values")
        if offset is not None and len(offset) != matrix.num_rows:
            raise ValueError(f"{matrix.num_rows} rows, but an offset of {len(offset)}")
        self._system, self._omega, self._nearest = HostSystem.of(system), system.omega, nearest
        self._numbers, self._states = (values, offset), system.num_states
        self._shares = shares_of(system)
        self.threads = self._shares.threads

    def repeat(
        self,
        changes: FloatArray,
        stop_below: float,
        x: SingleArray,
        x_new: SingleArray,
        absolute: bool,
    ) -> int:
        """Make a sweep for each of `changes`, or until one changes less than `stop_below`.

        The vectors change places after each sweep. Returns how many were made.

        Parameters
        ----------
        changes
            Takes the largest change of each sweep, shape (sweeps,). Changes of values below 2⁻¹⁰⁰
            are relative to that.
        stop_below
            Negative for never.
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
        pieces = (shares.bounds, shares.pieces, shares.threads, self._omega)
        how = (changes, len(changes), stop_below, x, x_new, absolute, self._nearest)
        return int(_SWEEPS(self._system, *self._numbers, *pieces, *how))
