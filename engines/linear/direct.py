"""LU: the way out when sweeps contract too slowly and the system is small enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engines.cpu.prepare import off_diagonal_row_sums
from engines.cpu.sparse_tools import CsrProduct, from_entries
from engines.formats.csr import CsrMatrix, FloatArray, row_sums
from engines.linear.dense import DenseFactors
from engines.linear.elimination import (
    LARGEST_DENSE_CLASS,
    ROUNDING_OF_ELIMINATION,
    eliminated_chain,
)
from engines.linear.fill import require_little_fill
from engines.linear.superlu import SparseFactors
from engines.system import SweepSystem

LARGEST_SYSTEM = 500_000
LARGEST_MEAN_ROW = 12.0
LARGEST_DENSE_ENTRIES = 20_000
"""Beyond these, fill-in exhausts memory or patience."""

ACCURATE = 1e-10
"""Where LU leaves a larger error, a small chain is eliminated without subtraction instead."""

LARGEST_DENSE_SYSTEM = 64
"""Up to so many unknowns a system is solved as a dense one: sooner than SuperLU is loaded."""

MASS_ROUNDING = 1e-14
"""By how much the probabilities of a row may miss 1."""


def fits(matrix: CsrMatrix) -> bool:
    """Return whether LU of a system over this matrix may be cheap enough to try.

    How far the factors fill up is looked at when they are needed.
    """
    sparse = matrix.num_entries <= max(LARGEST_MEAN_ROW * matrix.num_rows, LARGEST_DENSE_ENTRIES)
    return 0 < matrix.num_rows <= LARGEST_SYSTEM and sparse


def solve_reachability_system(
    system: SweepSystem, *, as_given: bool = False
) -> tuple[FloatArray, float]:
    """Solve x = A x + b for the states that have a row; the others keep their start values.

    Parameters
    ----------
    system
        A system without choices, before any scaling.
    as_given
        Whether the entries are to be taken as they are. Else rows that sum to 1 but for rounding
        are taken to do so exactly, where the solution depends on that.

    Returns
    -------
    Values of all states, shape (states,), and their estimated relative error.

    Raises
    ------
    RuntimeError
        If the factors would fill up, or the matrix is singular.
    """
    matrix = system.matrix
    states = np.arange(matrix.num_rows) if system.states is None else system.states
    position = np.full(system.num_states, -1, dtype=np.int64)
    position[states] = np.arange(len(states))
    row = matrix.row_of_entry()
    inner = position[matrix.columns] >= 0
    right = np.zeros(len(states)) if system.offset is None else system.offset.copy()
    right += np.bincount(
        row[~inner],
        weights=matrix.values[~inner] * system.start[matrix.columns[~inner]],
        minlength=len(states),
    )
    identity = np.arange(len(states))
    places = row[inner], position[matrix.columns[inner]]
    solution, error = _solve(
        np.concatenate([places[0], identity]),
        np.concatenate([places[1], identity]),
        np.concatenate([-matrix.values[inner], np.ones(len(states))]),
        right,
    )
    dense = not as_given and len(states) <= LARGEST_DENSE_CLASS
    if error > ACCURATE and dense and _keeps_mass(matrix):
        leaving = row_sums(row[~inner], matrix.values[~inner], len(states))
        inside = row_sums(
            places[0].astype(np.int64) * len(states) + places[1],
            matrix.values[inner],
            len(states) ** 2,
        )
        solution = eliminated_chain(inside.reshape((len(states), -1)), leaving, right)
        error = len(states) * ROUNDING_OF_ELIMINATION
    values = np.array(system.start, dtype=np.float64)
    values[states] = solution
    return values, error


def _keeps_mass(matrix: CsrMatrix) -> bool:
    """Return whether the rows are probabilities of all that may happen: what is not inside leaves.

    Elimination without subtraction rests on that; a transposed chain does not have it.
    """
    positive = bool(np.all(matrix.values >= 0.0))
    return positive and bool(np.all(np.abs(matrix.row_sums() - 1.0) <= MASS_ROUNDING))


def solve_balance_system(rates: CsrMatrix, start: FloatArray) -> tuple[FloatArray, float]:
    """Solve π Q = 0, Σ π = 1 for a recurrent class.

    One unknown, the largest of `start`, is fixed at 1 and its equation dropped; what remains is
    a non-singular M-matrix. The solution is normalised afterwards.

    Parameters
    ----------
    rates
        Rates or probabilities of the class, square; self-loops do not matter.
    start
        An approximation of π, shape (states,).

    Returns
    -------
    π, shape (states,), and its estimated relative error.

    Raises
    ------
    RuntimeError
        If the factors would fill up.
    """
    size = rates.num_rows
    pinned = int(np.argmax(start))
    exits = off_diagonal_row_sums(rates)
    row = rates.row_of_entry()
    keep = (rates.columns != row) & (rates.columns != pinned)
    inner = keep & (row != pinned)
    position = np.arange(size) - (np.arange(size) > pinned)
    right = np.bincount(
        rates.columns[keep & (row == pinned)],
        weights=rates.values[keep & (row == pinned)],
        minlength=size,
    )
    others = np.arange(size) != pinned
    identity = np.arange(size - 1)
    solution, error = _solve(
        np.concatenate([position[rates.columns[inner]], identity]),
        np.concatenate([position[row[inner]], identity]),
        np.concatenate([-rates.values[inner], exits[others]]),
        right[others],
    )
    values = np.ones(size)
    values[others] = solution
    return values / values.sum(), error


def _solve(
    rows: np.ndarray, columns: np.ndarray, entries: FloatArray, right: FloatArray
) -> tuple[FloatArray, float]:
    """Return the solution, and the relative size of the last of two steps of refinement.

    What a refinement step still changes is what rounding, times the condition of the system, has
    left: an estimate of the error where a residual alone says little.
    """
    size = len(right)
    matrix: Any
    solve: Callable[[FloatArray], FloatArray]
    if size <= LARGEST_DENSE_SYSTEM:
        matrix = np.zeros((size, size))
        np.add.at(matrix, (rows, columns), entries)
        solve = DenseFactors(matrix).solve
    else:
        require_little_fill(rows, columns, size)
        sparse = from_entries(rows, columns, entries, size, size)
        matrix, solve = CsrProduct(sparse), SparseFactors(sparse).solve
    solution = solve(right)
    for _ in range(2):
        correction = solve(right - matrix @ solution)
        solution = solution + correction
    positive = np.abs(solution) > 0.0
    error = np.max(np.abs(correction[positive] / solution[positive]), initial=0.0)
    return solution, float(error)
