"""Sums of powers of a uniformised chain's matrix by the compiled library."""

from __future__ import annotations

from ctypes import c_double, c_int32, c_int64

import numpy as np

from engines.arrays import FloatArray
from engines.host.compiled.library import DOUBLES, INDICES, Function, doubles
from engines.host.structures import HostSystem, shares_of
from engines.systems.one_sided import SweepSystem

_ADD_POWERS = Function(
    "pg_add_powers",
    c_int64,
    *(HostSystem, DOUBLES, c_double, INDICES, c_int64, c_int32),
    *(DOUBLES, DOUBLES, c_int64, DOUBLES, DOUBLES, DOUBLES),
)


class HostPowers:
    """Sweeps x ← P x of a uniformised chain that are added up.

    Parameters
    ----------
    system
        Matrix: the chain's rates off the diagonal, a row for each state that changes. Neither the
        start nor a relaxation is looked at.
    stay
        The diagonal of P, shape (rows,).
    rate
        The uniformisation rate q: row i of P is the rates over q, and `stay`.

    Raises
    ------
    ValueError
        If there is an offset or a choice, or the diagonal has another shape.
    """

    def __init__(self, system: SweepSystem, stay: FloatArray, rate: float) -> None:
        if system.offset is not None or system.group_offsets is not None:
            raise ValueError("sums of powers know neither offsets nor choices")
        self._shapes = (system.num_states, system.matrix.num_rows)
        if stay.shape != self._shapes[1:]:
            raise ValueError(f"{self._shapes[1]} rows, but a diagonal of {stay.shape}")
        self._system, self._chain = HostSystem.of(system), (doubles(stay), rate)
        self._shares = shares_of(system)
        self.threads = self._shares.threads

    def add(
        self, coefficients: FloatArray, x: FloatArray, x_new: FloatArray, total: FloatArray
    ) -> tuple[int, bool]:
        """Make a sweep for each coefficient, or until one changes nothing, and add it to the total.

        The vectors change places after each sweep.

        Parameters
        ----------
        coefficients
            Shape (sweeps,).
        x, x_new
            Shape (states,): the iterate, and room for the next one. What no row computes is the
            same in both.
        total
            Shape (rows,).

        Returns
        -------
        How many sweeps were made, and whether the last of them changed nothing.

        Raises
        ------
        ValueError
            If a vector has another shape.
        """
        states, rows = self._shapes
        if not (len(x) == len(x_new) == states and len(total) == rows):
            lengths = f"{len(x)}, {len(x_new)} and {len(total)}"
            raise ValueError(f"{states} states and {rows} rows, but vectors of {lengths}")
        changed = np.empty(len(coefficients))
        shares = self._shares
        pieces = (shares.bounds, shares.pieces, shares.threads)
        how = (doubles(coefficients), changed, len(changed), x, x_new, total)
        made = int(_ADD_POWERS(self._system, *self._chain, *pieces, *how))
        return made, made > 0 and not changed[made - 1]
