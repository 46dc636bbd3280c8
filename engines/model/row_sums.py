"""Rows of probabilities that sum to 1 only roughly, and what is made of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.model.csr import CsrMatrix

ROUNDED_SUM = 1e-13
"""A sum this close to 1 is 1 but for rounding: of a hundred probabilities in PRISM's diagrams,
which merge numbers that are 1e-15 apart, or of several hundred doubles. `prismgpu.RowSums` has the
same number."""

ROUNDING = 2.0**-53
"""What an addition of two numbers that are together 1 at most may be off."""


@dataclass(frozen=True)
class RescaledRows:
    """Which rows were divided by their sums.

    Parameters
    ----------
    rows
        Their numbers, ascending; at least one.
    totals
        What the probabilities of each summed to, the shape of `rows`.
    """

    rows: IndexArray
    totals: FloatArray

    def remark(self, row_group_offsets: IndexArray | None) -> str:
        """Return a line for the log.

        Parameters
        ----------
        row_group_offsets
            As in `ExplicitModel`; None where a row is a state.
        """
        first = int(self.rows[0])
        name, where = "state", f"state {first}"
        if row_group_offsets is not None:
            state = int(np.searchsorted(row_group_offsets, first, side="right")) - 1
            choice = first - int(row_group_offsets[state])
            name, where = "choice", f"choice {choice} of state {state}"
        rows = f"1 {name}" if len(self.rows) == 1 else f"{len(self.rows)} {name}s"
        return (
            f"the probabilities of {rows} do not sum to 1 and are divided by their sum; "
            f"the first is {where}, with sum {float(self.totals[0])!r}"
        )


def rescaled(matrix: CsrMatrix) -> tuple[CsrMatrix, RescaledRows | None]:
    """Return probabilities whose rows sum to 1 but for rounding.

    Parameters
    ----------
    matrix
        Rows that sum to 1 as closely as `ExplicitModel.check` asks for.

    Returns
    -------
    The matrix, itself where every row does already; and which rows were divided by their sums.

    Notes
    -----
    What leaves a state may be far less than such a row lacks. Methods that take a diagonal entry
    as given, and others that take it as what the rest of the row leaves, would then solve
    different models.
    """
    sums = _sums(matrix)
    off = np.abs(sums - 1.0) > ROUNDED_SUM
    if not off.any():
        return matrix, None
    rows = np.flatnonzero(off)
    return matrix.divide_rows(np.where(off, sums, 1.0)), RescaledRows(rows, sums[rows])


def are_one(matrix: CsrMatrix) -> bool:
    """Return whether all rows sum to 1 but for rounding.

    Parameters
    ----------
    matrix
        Probabilities.
    """
    sums = _sums(matrix)
    most, least = sums.max(initial=1.0), sums.min(initial=1.0)
    return bool(most - 1.0 <= ROUNDED_SUM and 1.0 - least <= ROUNDED_SUM)


def _sums(matrix: CsrMatrix) -> FloatArray:
    """Return the sums of the rows, unrounded where rounding may have taken a long one from 1."""
    sums = matrix.row_sums()
    for row in np.flatnonzero(np.abs(sums - 1.0) > ROUNDED_SUM):
        first, last = matrix.row_offsets[row : row + 2]
        if abs(sums[row] - 1.0) <= ROUNDED_SUM + ROUNDING * float(last - first):
            sums[row] = math.fsum(matrix.values[first:last])
    return sums
