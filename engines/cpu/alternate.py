"""Sweeps between two vectors on the host, counted, timed and stopped."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.formats.csr import FloatArray

Real = TypeVar("Real", np.float32, np.float64)


class AlternatingSweeper(ABC, Generic[Real]):
    """What the host's `Sweeper`s share: a vector to read, another to write, turned round.

    Parameters
    ----------
    start
        The first iterate, shape (states,), kept.
    stop_below
        As in `engines.system.Engine.sweeper`.
    """

    def __init__(self, start: NDArray[Real], stop_below: float) -> None:
        self.seconds = 0.0
        self._x: NDArray[Real] = start
        self._x_new: NDArray[Real] = start.copy()
        self._stop_below = stop_below

    @abstractmethod
    def _step(self) -> float:
        """Write the next iterate into `_x_new`, and return the change."""

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.system.Sweeper.run`."""
        started = time.perf_counter()
        changes = np.empty(sweeps)
        done = 0
        while done < sweeps:
            changes[done] = self._step()
            self._x, self._x_new = self._x_new, self._x
            done += 1
            if changes[done - 1] < self._stop_below:
                break
        self.seconds += time.perf_counter() - started
        return changes[:done]
