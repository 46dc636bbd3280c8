"""Runs of rows of the same shape, found and swept by the compiled library."""

from __future__ import annotations

from ctypes import c_double, c_int32, c_int64, c_void_p
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, IndexArray
from engines.host.compiled.library import (
    DOUBLES,
    INDICES,
    MASKS,
    NUMBERS,
    Array,
    Function,
    Structure,
)
from engines.host.compiled.shares import Shares
from engines.host.structures import HostSystem
from engines.systems.one_sided import Direction, SweepSystem

if TYPE_CHECKING:
    from engines.host.run_encoding import Runs

KeyArray = NDArray[np.uint64]

KEYS, POSITIONS = Array(np.uint64), Array(np.int32, np.int64)


class HostRuns(Structure):
    """`PgRuns` of src/runs.cpp."""

    _fields_ = (
        *((name, c_void_p) for name in ("firsts", "lengths", "run_choices", "choice_pairs")),
        *((name, c_void_p) for name in ("distances", "numbers", "number_starts")),
        *((name, c_void_p) for name in ("givens", "given_starts")),
        *((name, c_int32) for name in ("numbers_apart", "givens_apart", "choose")),
    )

    @classmethod
    def of(cls, runs: Runs, direction: Direction | None) -> HostRuns:
        """Return runs as the library reads them; arrays are shared.

        Parameters
        ----------
        runs
            As `engines.host.run_encoding` makes them.
        direction
            Whether the least or the largest of the choices counts; None for a chain.
        """
        indices = (runs.firsts, runs.lengths, runs.run_choices, runs.choice_pairs, runs.distances)
        pointers = [INDICES.pointer(array) for array in indices]
        pointers += [DOUBLES.pointer(runs.numbers), INDICES.pointer(runs.number_starts)]
        pointers += [DOUBLES.pointer(runs.givens if len(runs.givens) else None)]
        pointers += [INDICES.pointer(runs.given_starts)]
        choose = {None: 0, Direction.MINIMISE: -1, Direction.MAXIMISE: 1}[direction]
        made = cls(*pointers, runs.numbers_apart, runs.givens_apart, choose)
        made._kept = (runs,)
        return made


_SWEEP_RUNS = Function(
    "pg_sweep_runs",
    c_int64,
    *(HostRuns, INDICES, c_int64, c_int32, c_double),
    *(DOUBLES, c_int64, c_double, DOUBLES, DOUBLES, c_int32),
)


class HostRunSweeps:
    """Sweeps over the runs of a system between two vectors, which are by positions.

    Parameters
    ----------
    runs
        The rows of the system.
    direction
        Whether the least or the largest of the choices counts; None for a chain.
    """

    def __init__(self, runs: Runs, direction: Direction | None) -> None:
        self._runs = HostRuns.of(runs, direction)
        self._shares = Shares(np.concatenate(([0], np.cumsum(runs.work()))), 0)
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
        """Make sweeps as `engines.host.sweeps.HostSweeps.repeat` does; return how many.

        Parameters
        ----------
        changes, stop_below, omega, absolute
            As there.
        x, x_new
            Shape (states,), by positions.
        """
        shares = self._shares
        pieces = (shares.bounds, shares.pieces, shares.threads, omega)
        how = (changes, len(changes), stop_below, x, x_new, absolute)
        return int(_SWEEP_RUNS(self._runs, *pieces, *how))


_SHAPES = Function("pg_shapes", None, HostSystem, c_int64, KEYS)
_CLASSIFY = Function(
    "pg_classify", c_int64, *(KEYS, c_int64, c_int64, c_int64, KEYS, NUMBERS, NUMBERS, KEYS)
)
_SORT_IN_TILES = Function(
    "pg_sort_in_tiles", None, NUMBERS, c_int64, c_int64, INDICES, INDICES, INDICES
)
_ORDER = (HostSystem, POSITIONS, POSITIONS)
_RUN_STARTS = Function(
    "pg_run_starts",
    c_int64,
    *(*_ORDER, c_int64, c_int64, c_int32, c_int32, c_int64, MASKS, INDICES),
)


class _RunArrays(Structure):
    """`PgRunArrays` of src/run_finding.cpp."""

    _fields_ = (
        *((name, c_void_p) for name in ("firsts", "lengths", "run_choices")),
        *((name, c_void_p) for name in ("number_starts", "given_starts")),
        *(("runs", c_int64), ("share_numbers", c_int32), ("share_givens", c_int32)),
        *((name, c_void_p) for name in ("choice_pairs", "distances", "numbers", "givens")),
    )


_FILL_RUNS = Function("pg_fill_runs", None, *_ORDER, _RunArrays)


def classify(keys: KeyArray, most: int) -> tuple[IndexArray, KeyArray] | None:
    """Number the distinct keys in the order of their first appearance.

    Parameters
    ----------
    keys
        Shape (n,).
    most
        How many distinct keys there may be, below 2³¹.

    Returns
    -------
    The number of each key, shape (n,), int32, and the distinct keys; None for more than `most`.
    """
    most = min(most, len(keys))
    # At most half of the places are taken, so that a search for a free one is short.
    size = 16
    while size < 2 * most:
        size *= 2
    known, numbers = np.empty(size, dtype=np.uint64), np.full(size, -1, dtype=np.int32)
    classes, distinct = np.empty(len(keys), dtype=np.int32), np.empty(most, dtype=np.uint64)
    found = int(_CLASSIFY(keys, len(keys), most, size, known, numbers, classes, distinct))
    return None if found < 0 else (classes, distinct[:found])


def sorted_in_tiles(classes: IndexArray, count: int, tile: int) -> IndexArray:
    """Return the indices by class within each tile, stably, classes by first appearance.

    Parameters
    ----------
    classes
        Shape (n,), int32, from 0 to `count` − 1.
    count
        Number of classes.
    tile
        Indices of a tile.
    """
    order: IndexArray = np.empty(len(classes), dtype=np.int64)
    places, seen = np.zeros(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    _SORT_IN_TILES(classes, len(classes), tile, places, seen, order)
    return order


class RunFinder:
    """Finds the runs of a system.

    Parameters
    ----------
    system
        The system, without a scaling.
    """

    def __init__(self, system: SweepSystem) -> None:
        self._units, self._states = system.num_updates, system.num_states
        self._system = HostSystem.of(system)
        wide = self._system.matrix.wide_columns
        self.number_type = np.dtype(np.int64 if wide else np.int32)
        """The type of positions and of numbers of rows or groups."""

    def shapes(self) -> KeyArray:
        """Return a hash of the distances of each row or group, shape (updates,).

        Two of different distances may have one hash: who takes them for equal must compare.
        """
        hashes = np.empty(self._units, dtype=np.uint64)
        _SHAPES(self._system, self._units, hashes)
        return hashes

    def starts(
        self,
        places: IndexArray | None,
        updates: IndexArray | None,
        share_numbers: bool,
        share_givens: bool,
        most: int,
        longest: int,
    ) -> IndexArray | None:
        """Return the positions that runs start at, ascending; None for too many runs.

        Parameters
        ----------
        places
            The position of each state, shape (states,); None for its number.
        updates
            The row or group that computes each position, −1 for none, shape (states,); None for
            its number.
        share_numbers, share_givens
            Whether rows of a run must share the bits of their values, and of the right-hand side.
        most
            How many runs there may be before the longest are cut.
        longest
            Rows of a run at most.
        """
        goes_on = np.zeros(self._states, dtype=np.bool_)
        starts = np.empty(most + self._units // longest + 1, dtype=np.int64)
        how = (self._states, self._units, share_numbers, share_givens, most)
        self._check(places, updates)
        found = int(_RUN_STARTS(self._system, places, updates, *how, goes_on, starts))
        return None if found < 0 else starts[:found].copy()

    def fill(
        self,
        places: IndexArray | None,
        updates: IndexArray | None,
        share_numbers: bool,
        share_givens: bool,
        starts: tuple[IndexArray, ...],
        arrays: tuple[NDArray[np.generic], ...],
    ) -> None:
        """Write the arrays of runs.

        Parameters
        ----------
        places, updates, share_numbers, share_givens
            As in `starts`.
        starts
            Firsts, lengths, starts of choices, of numbers and of the right-hand side, as in
            `engines.host.run_encoding.Runs`, the last three with their ends.
        arrays
            Where pairs of choices start, distances, numbers and the right-hand side.
        """
        pointers = [INDICES.pointer(array) for array in starts]
        written = [INDICES.pointer(array) for array in arrays[:2]]
        written += [DOUBLES.pointer(array) for array in arrays[2:]]
        how = (len(starts[0]), share_numbers, share_givens)
        self._check(places, updates)
        _FILL_RUNS(self._system, places, updates, _RunArrays(*pointers, *how, *written))

    def _check(self, *arrays: IndexArray | None) -> None:
        for array in arrays:
            if array is not None and (array.dtype, len(array)) != (self.number_type, self._states):
                raise TypeError(f"{self._states} numbers of {self.number_type} are wanted")
