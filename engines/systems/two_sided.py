"""The form that two-sided methods sweep: one system, a lower and an upper iterate, side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from engines.arrays import FloatArray
from engines.model.csr import CsrMatrix
from engines.model.result import SweepCost
from engines.systems.one_sided import SweepSystem
from engines.systems.plain import accurate_row_sums

UNIT_ROUNDOFF = 2.0**-53

ROUNDING_SLACK = 8
"""Rounding of a row beside that of its sum, in units of roundoff: four of an entry of the matrix
(its own, that of the sum it was divided by, the division, the pivot), two of the widening itself,
two for the terms of higher order."""

SMALLEST = 2.0**-1020
"""More than a product below the normal numbers loses; a normal number itself, because processors
take a hundred times as long over the others."""


@dataclass(frozen=True)
class TwoSidedSystem:
    """A system of equations between two bounds.

    Parameters
    ----------
    system
        Not to be scaled any more; entries, offset and start are not negative. Its start is the
        first lower iterate.
    upper
        The first upper iterate, shape (states,); equal to the lower one where no row belongs to.
    monotonic_below, monotonic_above
        Whether no sweep lowers a lower value, or raises an upper one.
    slack
        Rounding of a row beside that of its sum, in units of roundoff.
    """

    system: SweepSystem
    upper: FloatArray
    monotonic_below: bool = True
    monotonic_above: bool = True
    slack: int = ROUNDING_SLACK


class SweepRecord(NamedTuple):
    """What each of several sweeps did, every field of shape (sweeps,).

    Parameters
    ----------
    widths
        Largest distance between the bounds after the sweep: absolute, or relative to the lower one.
    rises
        Largest relative amount by which the sweep, before monotonicity is enforced, raised an upper
        value; 0 says that the iterate before it was an upper bound whatever its origin.
    falls
        The same for lower values that fell.
    crossings
        Largest amount by which a lower value exceeds its upper one.
    moved
        1 where the sweep changed anything, else 0.
    """

    widths: FloatArray
    rises: FloatArray
    falls: FloatArray
    crossings: FloatArray
    moved: FloatArray


class TwoSidedSweeper(Protocol):
    """A prepared two-sided solve.

    Each sweep reads the matrix once for both iterates. A row's sum of n terms, none of them
    negative, is off by less than n and the system's slack of units of roundoff, the rounding of
    the matrix included;
    the lower value is made smaller by as much, the upper one greater. So every iterate of a bound
    is a bound, in whatever order a sum is taken.
    """

    cost: SweepCost
    seconds: float

    def run(self, sweeps: int) -> SweepRecord:
        """Make up to `sweeps` sweeps, and stop after the first whose width is below the threshold.

        The record may be shorter than asked for, never empty.
        """

    def guess_upper(self, distance: float, absolute: bool) -> None:
        """Replace the upper iterate by the lower one plus a distance, which may be relative."""

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper iterate, each of shape (states,), on the host."""


def without_self_loops(system: SweepSystem) -> SweepSystem:
    """Return the equations of a chain solved for their own states: Jacobi's.

    Parameters
    ----------
    system
        What `plain_system` returns for a chain.

    Notes
    -----
    The pivot 1 − a_ii of a row that sums to 1 is taken as the sum of its other entries: nothing is
    cancelled, so that rounding stays below a few units even where a_ii is close to 1.
    """
    matrix = system.matrix
    row = matrix.row_of_entry()
    state = row if system.states is None else system.states[row]
    keep = matrix.columns != state
    if bool(keep.all()):
        return system
    looping = np.unique(row[~keep])
    of_looping = np.zeros(matrix.num_rows, dtype=np.bool_)
    of_looping[looping] = True
    other = keep & of_looping[row]
    others = accurate_row_sums(row[other], matrix.values[other], matrix.num_rows)[looping]
    loops = accurate_row_sums(row[~keep], matrix.values[~keep], matrix.num_rows)[looping]
    allowance = matrix.row_lengths()[looping] * 4.0 * UNIT_ROUNDOFF
    pivot = np.ones(matrix.num_rows)
    pivot[looping] = np.where(np.abs(others + loops - 1.0) <= allowance, others, 1.0 - loops)
    reduced = matrix.select_entries(keep)
    reduced = replace(reduced, values=reduced.values / pivot[row[keep]])
    offset = None if system.offset is None else system.offset / pivot
    return replace(system, matrix=reduced, offset=offset)


def rounding_of_rows(matrix: CsrMatrix, slack: int) -> FloatArray:
    """Return the relative rounding of each row's sum, shape (rows,), that sweeps allow for."""
    return (matrix.row_lengths() + float(slack)) * np.float64(UNIT_ROUNDOFF)


def slack_of_quotient(matrix: CsrMatrix) -> int:
    """Return the slack for a quotient of a model: entries of one row were added up to one.

    Parameters
    ----------
    matrix
        The matrix of the model itself.
    """
    return ROUNDING_SLACK + int(matrix.row_lengths().max(initial=0))
