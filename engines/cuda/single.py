"""Sweeps in single precision beside those in double precision, over the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from engines.cuda.engine import CudaSweeper
from engines.cuda.prepare import narrowed
from engines.cuda.rows import OWN_VALUES
from engines.formats.csr import FloatArray
from engines.single import DOWN, TO_NEAREST


class CudaSingleSweeper(CudaSweeper):
    """A solve on the device with two vectors in single precision.

    Dictionaries of values stay in double precision and are shared; formats in which each entry has
    a value of its own get a copy of the values in single precision.

    Parameters
    ----------
    double
        Sweeps of the system in double precision, whose iterate is where these begin.
    stop_below
        As in `engines.system.Engine.sweeper`.
    nearest
        Whether what is stored is rounded to nearest; else down.
    factor
        As in `engines.system.HasSingle.in_single`.

    Raises
    ------
    UnsupportedError
        For sums of segments or panels.
    """

    def __init__(
        self, double: CudaSweeper, stop_below: float, nearest: bool, factor: float
    ) -> None:
        cp = self._cp = double._cp
        self._device, self._stream = double._device, double._stream
        self._stop_below, self._absolute = stop_below, double._absolute
        self._omega = double._omega
        with cp.cuda.Device(self._device), self._stream:
            (rows,) = double._rows
            start = double._vectors[double._current]
            (rows,) = self._rows = (rows.in_single(nearest, int(start.size)),)
            self._launcher = rows.launcher
            first = narrowed(start, nearest, rows.launcher, factor)
            self._vectors = (first, first.copy())
            self._open()
        unit = TO_NEAREST if nearest else DOWN
        self._factor = factor
        self.rounding = unit * (2 if rows.layout.matrix_format in OWN_VALUES else 1)

    def values(self) -> FloatArray:
        """Return the present iterate, shape (states,), on the host."""
        return np.asarray(super().values(), dtype=np.float64) / self._factor

    def hand_over(self, vector: Any) -> None:
        """Write the mean of the last two iterates to a vector of doubles, on the current stream.

        Parameters
        ----------
        vector
            On the device. States that no row computes keep the values that they have there.
        """
        (rows,) = self._rows
        states, count = rows.device.states, rows.count
        cp = self._cp
        where = (*self._vectors, states, cp.int32(count))
        arguments = (*where, cp.float64(self._factor), vector)
        self._launcher.launch("copy_widened", count, *arguments, module="prepare")
