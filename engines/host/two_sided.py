"""Two-sided sweeps by the compiled library."""

from __future__ import annotations

from ctypes import c_double, c_int32, c_int64

import numpy as np

from engines.arrays import FloatArray
from engines.host.compiled.library import DOUBLES, INDICES, Function
from engines.host.structures import HostSystem, shares_of
from engines.systems.two_sided import SweepRecord, TwoSidedSystem

_SWEEPS = Function(
    "pg_two_sided_sweeps",
    c_int64,
    *(HostSystem, INDICES, c_int64, c_int32, c_double, c_int32, c_int32, c_int32),
    *(DOUBLES, c_int64, c_double, DOUBLES, DOUBLES),
)


class HostTwoSidedSweeps:
    """Sweeps of a lower and an upper iterate between two arrays.

    Parameters
    ----------
    system
        The system; neither its start nor its upper iterate is looked at.
    """

    def __init__(self, system: TwoSidedSystem) -> None:
        self._system, self._states = HostSystem.of(system.system), system.system.num_states
        monotonic = (system.monotonic_below, system.monotonic_above)
        self._how = (float(system.slack), *monotonic)
        self._shares = shares_of(system.system)
        self.threads = self._shares.threads

    def repeat(
        self, sweeps: int, stop_below: float, absolute: bool, x: FloatArray, x_new: FloatArray
    ) -> SweepRecord:
        """Make up to `sweeps` sweeps, and none after the first whose width is below a threshold.

        The arrays change places after each sweep. Returns a record of those that were made.

        Parameters
        ----------
        sweeps
            How many at most.
        stop_below
            Negative for never.
        absolute
            Whether widths are absolute.
        x, x_new
            Shape (states, 2): the iterates side by side, and room for the next ones. What no row
            computes is the same in both.

        Raises
        ------
        ValueError
            If an array has another shape.
        """
        shape = (self._states, 2)
        if not x.shape == x_new.shape == shape:
            raise ValueError(f"iterates of {shape} are wanted, not of {x.shape} and {x_new.shape}")
        records = np.empty((sweeps, len(SweepRecord._fields)))
        shares = self._shares
        pieces = (shares.bounds, shares.pieces, shares.threads)
        how = (*self._how, absolute, records, sweeps, stop_below)
        made = int(_SWEEPS(self._system, *pieces, *how, x, x_new))
        return SweepRecord(*records[:made].T)
