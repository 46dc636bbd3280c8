"""Chains and steady states solved directly, by elimination without subtraction.

The numerical work is the compiled library's (`engines.host.elimination`); here a system is put into
its form, and quadruple precision takes over where the range of doubles does not suffice.
"""

from __future__ import annotations

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, sums_by_row
from engines.host.elimination import Elimination, NeverLeftError, TooDearError
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import ROUNDING_OF_A_SUM
from engines.systems.two_sided import UNIT_ROUNDOFF

NAME = "elimination without subtraction"

AT_ONCE_STATES = 2_000
AT_ONCE_OPERATIONS = 1e8
"""A system of no more states and multiplications, of a class of states each, is eliminated before
any iteration: in 0.05 s at most."""

MOST_OPERATIONS = 5e10
"""Of a factor that is computed where iterations take too long: half a minute."""

SMALLEST, LARGEST = 2.0**-960, 2.0**960
"""Values outside are computed again in a wider range: they may have lost digits on the way."""


class EliminatedChain:
    """The transient states of a chain, ready for right-hand sides.

    Parameters
    ----------
    matrix
        Probabilities or rates, not negative, a row for each of the states; columns from their
        number on are outside. The diagonal is not read.
    leaving
        What else leaves from each state, shape (states,).
    most_entries, most_operations
        Limits of one factor's entries and of the multiplications that it takes.
    wide
        Whether to compute in quadruple precision from the start.

    Raises
    ------
    RuntimeError
        If a limit is exceeded, or some state never leaves.
    """

    def __init__(
        self,
        matrix: CsrMatrix,
        leaving: FloatArray,
        most_entries: float = 5e7,
        most_operations: float = MOST_OPERATIONS,
        *,
        wide: bool = False,
    ) -> None:
        self._matrix, self._leaving = matrix, leaving
        self._most = (most_entries, most_operations)
        self._factors = self._factorised(wide)
        if not self._factors.in_range:
            self._factors = self._factorised(True)

    def _factorised(self, wide: bool) -> Elimination:
        entries, operations = self._most
        try:
            return Elimination(
                self._matrix,
                self._leaving,
                wide=wide,
                most_entries=entries,
                most_operations=operations,
            )
        except NeverLeftError:
            # What leaves some state may have been too little for a double.
            if wide:
                raise
            return self._factorised(True)

    def values(self, right: FloatArray, rest: FloatArray | None = None) -> tuple[FloatArray, float]:
        """Return x = b + P x, shape (states,), and a bound of each value's relative error.

        Parameters
        ----------
        right, rest
            b is their sum, not negative, each of shape (states,): for rates, what a unit of time
            earns.

        Raises
        ------
        RuntimeError
            If a value overflows.
        """
        found = self._factors.values(right, rest)
        if not _well_in_range(found) or not _well_in_range(right):
            self._factors = self._factorised(True)
            found = self._factors.values(right, rest)
        if not np.isfinite(found).all():
            raise RuntimeError("a value is larger than floating-point numbers reach")
        return found, self._error(right, found)

    @property
    def rounding(self) -> float:
        """What elimination itself adds to the relative error of a value that is not yet rounded."""
        return self._factors.rounding

    def split_values(
        self, right: FloatArray, rest: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return the values as the nearest doubles and what those are off by, and the error bound.

        Parameters
        ----------
        right, rest
            As in `values`.
        """
        high, low = self._factors.split_values(right, rest)
        if not np.isfinite(high).all():
            raise RuntimeError("a value is larger than floating-point numbers reach")
        return high, low, self._factors.error

    def visits(self, given: FloatArray) -> tuple[FloatArray, float]:
        """Return y = c + y P, shape (states,), and a bound of each value's relative error.

        Parameters
        ----------
        given
            c, not negative, shape (states,): where the chain starts.

        Raises
        ------
        RuntimeError
            If a value overflows.
        """
        found = self._factors.visits(given)
        if not _well_in_range(found) or not _well_in_range(given):
            self._factors = self._factorised(True)
            found = self._factors.visits(given)
        if not np.isfinite(found).all():
            raise RuntimeError("a value is larger than floating-point numbers reach")
        return found, self._factors.error

    def shares(
        self, given: FloatArray, group: IndexArray, groups: int
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return visits as shares of a group and one more state, and their relative error.

        Parameters
        ----------
        given, group, groups
            As in `Elimination.shares`.
        """
        found, rest = self._factors.shares(given, group, groups)
        if not (_well_in_range(found) and _well_in_range(rest) and _well_in_range(given)):
            self._factors = self._factorised(True)
            found, rest = self._factors.shares(given, group, groups)
        return found, rest, 2.0 * self._factors.error + 4.0 * UNIT_ROUNDOFF

    def _error(self, right: FloatArray, found: FloatArray) -> float:
        """Return the bound of elimination or, if that is less, one from the residual.

        What rounding leaves of the equations, r, puts the values off by at most (D − P)⁻¹ r.
        """
        bound = self._factors.error
        # Above this bound, one from the residual is worth another right-hand side.
        tight = 1e-11
        if bound <= tight or not found.any():
            return bound
        row, matrix = self._matrix.row_of_entry(), self._matrix
        other = matrix.columns != row
        size, outside = matrix.num_rows, np.zeros(matrix.num_columns - matrix.num_rows)
        after = np.append(found, outside)[matrix.columns[other]]
        row, weights, before = row[other], matrix.values[other], found[row[other]]
        gains, leaving = after - before, self._leaving * found
        missing = np.abs(sums_by_row(row, weights * gains, size) - leaving + right)
        # Differences of two values, and the values themselves, are rounded too.
        terms = sums_by_row(row, weights * (np.abs(gains) + before), size) + leaving + right
        lengths = np.bincount(row, minlength=size)
        missing += (lengths + 6.0) * UNIT_ROUNDOFF * terms
        off = self._factors.values(missing) * (1.0 + 2.0 * bound)
        positive = found > 0.0
        by_residual = float(np.max(off[positive] / found[positive], initial=0.0))
        return min(bound, by_residual)


def _well_in_range(values: FloatArray) -> bool:
    """Return whether the values that are not 0 are far from the ends of the range of doubles."""
    positive = values[values != 0.0]
    # A NaN is in no range.
    return bool(np.all((positive > SMALLEST) & (positive < LARGEST)))


def chain_of(matrix: CsrMatrix, states: IndexArray) -> CsrMatrix:
    """Return the chain between those states that have a row, the others being outside.

    Parameters
    ----------
    matrix
        Probabilities or rates, shape (rows, states of the model).
    states
        The state of each row, shape (rows,).
    """
    position = np.full(matrix.num_columns, len(states), dtype=np.int64)
    position[states] = np.arange(len(states))
    columns = position[matrix.columns]
    return CsrMatrix(matrix.row_offsets, columns, matrix.values, len(states) + 1)


def lacking(matrix: CsrMatrix) -> tuple[FloatArray, float]:
    """Return what rows of probabilities lack of 1, and what taking it for a transition doubts.

    Parameters
    ----------
    matrix
        Probabilities.

    Returns
    -------
    Shape (rows,), 0 where a row adds up to 1 but for rounding; and by what factor, less 1, values
    may change with the rounding of those differences.

    Raises
    ------
    RuntimeError
        If a row adds up to more than 1.
    """
    missing = 1.0 - matrix.row_sums()
    if (missing < -ROUNDING_OF_A_SUM).any():
        raise RuntimeError("the probabilities of some state add up to more than 1")
    missing = np.where(missing > ROUNDING_OF_A_SUM, missing, 0.0)
    if not missing.any():
        return missing, 0.0
    rounding = (matrix.row_lengths() + 1.0) * UNIT_ROUNDOFF
    short = missing > 0.0
    return missing, float(2.0 * np.sum(rounding[short] / missing[short]))


def steady_states(
    rates: CsrMatrix,
    labels: IndexArray,
    wanted: MaskArray,
    largest: int = AT_ONCE_STATES,
    most_operations: float = AT_ONCE_OPERATIONS,
) -> tuple[FloatArray, MaskArray, float]:
    """Compute the steady states of those wanted recurrent classes that are small.

    Parameters
    ----------
    rates
        Rates or probabilities, square; self-loops do not matter.
    labels
        The recurrent class of each state, -1 for none, shape (states,).
    wanted
        Which classes to solve, shape (classes,).
    largest
        Classes of more states are not solved.
    most_operations
        Multiplications a class; if the classes take more together, none is solved.

    Returns
    -------
    Probabilities, shape (states,), zero outside the classes that were solved; which those were,
    shape (classes,); and a bound of the relative error of each probability.

    Notes
    -----
    One state of each class is set apart. The others' probabilities are to its own as the time spent
    in them between two visits to it, which their elimination tells.
    """
    values = np.zeros(rates.num_rows)
    recurrent = labels >= 0
    if len(wanted) == 1:
        sizes = np.array([np.count_nonzero(recurrent)])
    else:
        sizes = np.bincount(labels[recurrent], minlength=len(wanted))
    solved = wanted & (sizes <= largest)
    if not solved.any():
        return values, solved, 0.0
    mine = recurrent & solved[labels]
    if not mine.any():
        return values, solved & False, 0.0
    states = np.flatnonzero(mine)
    apart = np.full(len(wanted), -1, dtype=np.int64)
    # The last of several assignments counts.
    apart[labels[states[::-1]]] = states[::-1]
    is_apart = np.zeros(rates.num_rows, dtype=np.bool_)
    is_apart[apart[apart >= 0]] = True
    others = states[~is_apart[states]]
    between = chain_of(rates.select_rows(others), others)
    position = np.full(rates.num_rows, -1, dtype=np.int64)
    position[others] = np.arange(len(others))
    firsts = rates.select_rows(apart[apart >= 0])
    onward = position[firsts.columns] >= 0
    given = sums_by_row(position[firsts.columns[onward]], firsts.values[onward], len(others))
    try:
        chain = EliminatedChain(
            between,
            np.zeros(len(others)),
            most_operations=most_operations * np.count_nonzero(solved),
        )
    except TooDearError:
        return values, solved & False, 0.0
    found, rest, error = chain.shares(given, labels[others], len(wanted))
    values[others] = found
    values[states[is_apart[states]]] = rest[labels[states[is_apart[states]]]]
    return values, solved, error
