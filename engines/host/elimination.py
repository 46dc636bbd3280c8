"""The compiled elimination of the transient states of a chain, without subtraction."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import POINTER, c_double, c_int32, c_int64, c_void_p

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.host.compiled.library import DOUBLES, INDICES, Function, doubles, indices
from engines.model.csr import CsrMatrix

_ELIMINATE = Function(
    "pg_eliminate",
    c_int32,
    *(c_int64, INDICES, INDICES, DOUBLES, DOUBLES),
    *(c_int32, c_double, c_double, POINTER(c_void_p)),
)
_ADVANCE = Function("pg_advance", c_int32, c_void_p, c_double)
_NUMBERS = Function("pg_numbers", None, c_void_p, DOUBLES)
_VALUES = Function("pg_values", c_int32, c_void_p, DOUBLES, DOUBLES, DOUBLES, DOUBLES)
_VISITS = Function("pg_visits", c_int32, c_void_p, DOUBLES, DOUBLES)
_SHARES = Function("pg_shares", c_int32, c_void_p, DOUBLES, INDICES, c_int64, DOUBLES, DOUBLES)
_RELEASE = Function("pg_release", None, c_void_p)

DONE, GOES_ON, TOO_DEAR, NEVER_LEFT = range(4)


class TooDearError(RuntimeError):
    """The factors would take more memory or operations than allowed."""


class NeverLeftError(RuntimeError):
    """Some state has no way out, as far as the numbers reach."""


class Elimination:
    """Factors of a chain's transient states, by elimination without subtraction.

    Parameters
    ----------
    matrix
        Probabilities or rates, not negative, a row for each of the states; columns from their
        number on are outside. The diagonal is not read.
    leaving
        What else leaves from each state, shape (states,).
    wide
        Whether to compute in quadruple precision, whose range is far wider too.
    most_entries, most_operations
        Limits of one triangular factor's entries and of the multiplications it takes.

    Raises
    ------
    TooDearError
        If a limit is exceeded; found out before the elimination begins.
    RuntimeError
        If some state never leaves.
    MemoryError
        If there is too little memory.
    """

    def __init__(
        self,
        matrix: CsrMatrix,
        leaving: FloatArray,
        *,
        wide: bool = False,
        most_entries: float = np.inf,
        most_operations: float = np.inf,
    ) -> None:
        self.size = matrix.num_rows
        # The library reads them as long as it eliminates.
        self._offsets = indices(matrix.row_offsets)
        self._columns = indices(matrix.columns)
        self._values = doubles(matrix.values)
        self._leaving = doubles(leaving)
        handle = c_void_p()
        status = _ELIMINATE(
            self.size,
            self._offsets,
            self._columns,
            self._values,
            self._leaving,
            int(wide),
            most_entries,
            most_operations,
            ctypes.byref(handle),
        )
        _check(status)
        self._handle = handle
        weakref.finalize(self, _RELEASE, handle)
        status = GOES_ON
        # After so many multiplications, half a second, Python may answer an interrupt.
        operations = 1e9
        while status == GOES_ON:
            status = _ADVANCE(handle, operations)
        _check(status)
        numbers = np.zeros(5)
        _NUMBERS(handle, numbers)
        self.error = float(numbers[0])
        """A bound of the relative error of every value, roundings of the given numbers included."""
        self.rounding = float(numbers[4])
        """A bound of what elimination itself adds to that, in the precision that it computes in."""
        self.entries = int(numbers[1])
        """Entries of one triangular factor."""
        self.in_range = bool(numbers[3])
        """Whether no intermediate product can have left the normal numbers."""

    def values(self, right: FloatArray, rest: FloatArray | None = None) -> FloatArray:
        """Return x = b + P x, scaled as the chain is; shape (states,).

        Parameters
        ----------
        right, rest
            b is their sum, not negative, each of shape (states,): rewards of a step, or for rates
            of a unit of time.
        """
        return self.split_values(right, rest)[0]

    def split_values(
        self, right: FloatArray, rest: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the same as the nearest doubles and what those are off by.

        Parameters
        ----------
        right, rest
            As in `values`.
        """
        high, low = np.empty(self.size), np.empty(self.size)
        status = _VALUES(
            self._handle,
            doubles(right),
            None if rest is None else doubles(rest),
            high,
            low,
        )
        _check(status)
        return high, low

    def visits(self, given: FloatArray) -> FloatArray:
        """Return y = c + y P: the expected visits, or for rates the time spent; shape (states,).

        Parameters
        ----------
        given
            c, not negative, shape (states,): where the chain starts.
        """
        found: FloatArray = np.empty(self.size)
        _check(_VISITS(self._handle, doubles(given), found))
        return found

    def shares(
        self, given: FloatArray, group: IndexArray, groups: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return visits as shares of a group of states and of one more state, visited once.

        Parameters
        ----------
        given
            As in `visits`.
        group
            The group of each state, shape (states,).
        groups
            How many groups there are.

        Returns
        -------
        The shares of the states, shape (states,), and of the one more state of each group.
        """
        found, rest = np.empty(self.size), np.empty(groups)
        where = indices(group)
        status = _SHARES(
            self._handle,
            doubles(given),
            where,
            groups,
            found,
            rest,
        )
        _check(status)
        return found, rest


def _check(status: int) -> None:
    if status == TOO_DEAR:
        raise TooDearError("the factors would fill up")
    if status == NEVER_LEFT:
        raise NeverLeftError("some states are never left")
    if status != DONE:
        raise MemoryError("elimination: out of memory")
