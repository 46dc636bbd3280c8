"""Models too big for lists of dictionaries, made of whole arrays."""

from __future__ import annotations

import numpy as np

from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind


def from_triples(kind, size, row, column, value):
    order = np.lexsort((column, row))
    offsets = np.zeros(size + 1, dtype=np.int32)
    np.cumsum(np.bincount(row, minlength=size), out=offsets[1:])
    matrix = CsrMatrix(
        offsets, column[order].astype(np.int32), value[order].astype(np.float64), size
    )
    return ExplicitModel(kind, matrix)


def birth_death(size, birth=1.0, death=1.5):
    up = np.arange(size - 1)
    return from_triples(
        ModelKind.CTMC,
        size,
        np.concatenate([up, up + 1]),
        np.concatenate([up + 1, up]),
        np.concatenate([np.full(size - 1, birth), np.full(size - 1, death)]),
    )


def random_rates(seed, size, per_row=6):
    """One recurrent class, with a cycle through all states; loops and duplicates happen."""
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(size), per_row)
    column = rng.integers(0, size, size * per_row)
    column[::per_row] = (np.arange(size) + 1) % size
    return from_triples(ModelKind.CTMC, size, row, column, rng.uniform(0.1, 3.0, len(row)))


def random_dtmc(seed, size, per_row=6):
    """States 0 and 1 absorb; the others jump anywhere."""
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(2, size), per_row)
    column = rng.integers(0, size, len(row))
    # A twentieth of each state's mass ends, so that sweeps contract.
    column[::per_row] = rng.integers(0, 2, size - 2)
    value = rng.uniform(0.2, 1.0, len(row))
    value /= np.bincount(row, weights=value)[row]
    return from_triples(
        ModelKind.DTMC,
        size,
        np.concatenate([[0, 1], row]),
        np.concatenate([[0, 1], column]),
        np.concatenate([[1.0, 1.0], value]),
    )


def random_mdp(seed, size, per_row=3):
    """One to six choices a state; every choice may end in states 0 or 1, which absorb."""
    rng = np.random.default_rng(seed)
    choices = rng.integers(1, 7, size)
    choices[:2] = 1
    groups = np.zeros(size + 1, dtype=np.int32)
    np.cumsum(choices, out=groups[1:])
    rows = int(groups[-1])
    column = rng.integers(0, size, (rows, per_row))
    column[:, 0] = rng.integers(0, 2, rows)
    column[0], column[1] = 0, 1
    value = rng.uniform(0.2, 1.0, (rows, per_row))
    value /= value.sum(axis=1)[:, None]
    offsets = np.arange(rows + 1, dtype=np.int32) * per_row
    matrix = CsrMatrix(
        offsets.astype(np.int32), column.ravel().astype(np.int32), value.ravel(), size
    )
    return ExplicitModel(ModelKind.MDP, matrix, groups)


def dense_row(size, row=2):
    """A random DTMC one of whose rows has an entry for every state."""
    model = random_dtmc(8, size, 3)
    matrix = model.matrix
    keep = matrix.row_of_entry() != row
    weights = np.random.default_rng(1).uniform(0.5, 1.0, size)
    return from_triples(
        ModelKind.DTMC,
        size,
        np.concatenate([matrix.row_of_entry()[keep], np.full(size, row)]),
        np.concatenate([matrix.columns[keep], np.arange(size)]),
        np.concatenate([matrix.values[keep], weights / weights.sum()]),
    )


def dense_column(size, column=5):
    """A recurrent class that every state may leave for one and the same state."""
    model = random_rates(9, size, 3)
    matrix = model.matrix
    others = np.delete(np.arange(size), column)
    return from_triples(
        ModelKind.CTMC,
        size,
        np.concatenate([matrix.row_of_entry(), others]),
        np.concatenate([matrix.columns, np.full(size - 1, column)]),
        np.concatenate([matrix.values, np.linspace(0.1, 0.2, size - 1)]),
    )
