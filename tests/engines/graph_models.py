"""Models of many shapes for the tests of graphs, and the two ways that the CPU looks at them."""

from __future__ import annotations

import numpy as np

from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind


def build(kind, lengths, columns, choices=None):
    """A model from the lengths of its rows, its columns, and the numbers of choices of its states.

    All entries of a row have the same value.
    """
    lengths = np.asarray(lengths)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    values = np.repeat(1.0 / np.maximum(lengths, 1), lengths)
    groups = None
    if choices is not None:
        groups = np.concatenate(([0], np.cumsum(choices))).astype(np.int32)
    size = len(lengths) if choices is None else len(choices)
    matrix = CsrMatrix(offsets, np.asarray(columns, dtype=np.int32), values, size)
    return ExplicitModel(kind, matrix, groups)


def random_model(seed, kind=ModelKind.MDP, most=6):
    """Up to `most` states; few or many self-loops, dead ends, stored zeros, doubled entries."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, most + 1))
    fan, stay = int(rng.integers(1, 4)), float(rng.choice([0.0, 0.2, 0.6]))
    # Successors anywhere, nearby, upwards only (all components trivial), or towards state 0.
    shape = int(rng.integers(4))
    choices = rng.integers(1, int(rng.integers(1, 4)) + 1, size)
    if kind is not ModelKind.MDP:
        choices = np.ones(size, dtype=int)
    rows = []
    for state in np.repeat(np.arange(size), choices):
        length = int(rng.integers(1, fan + 1))
        anywhere = rng.integers(0, size, length)
        near = (state + rng.integers(-1, 2, length)) % size
        up = np.minimum(state + rng.integers(0, 3, length), size - 1)
        low = (size * rng.random(length) ** 3).astype(int)
        row = (anywhere, near, up, low)[shape]
        if rng.random() < stay:
            row = np.array([state])
        if kind is ModelKind.CTMC and rng.random() < 0.2:
            row = np.zeros(0, dtype=int)
        rows.append(row)
    lengths = [len(row) for row in rows]
    model = build(kind, lengths, np.concatenate(rows), choices if kind is ModelKind.MDP else None)
    return with_zeros(model, rng) if rng.random() < 0.3 else model


def with_zeros(model, rng):
    """The same edges, and one stored zero in front of each row."""
    matrix = model.matrix
    at = matrix.row_offsets[:-1]
    columns = np.insert(matrix.columns, at, rng.integers(0, matrix.num_columns, len(at)))
    offsets = matrix.row_offsets + np.arange(len(at) + 1, dtype=matrix.row_offsets.dtype)
    values = np.insert(matrix.values, at, 0.0)
    zeros = CsrMatrix(offsets, columns, values, matrix.num_columns)
    return ExplicitModel(model.kind, zeros, model.row_group_offsets)


def random_masks(seed, size):
    """Remain and target: empty, full, apart, overlapping."""
    rng = np.random.default_rng(seed + 10**6)
    remain = rng.random(size) < rng.choice([0.0, 0.5, 0.8, 1.0])
    target = rng.random(size) < rng.choice([0.0, 0.2, 0.4, 1.0], p=[0.1, 0.4, 0.4, 0.1])
    return remain, target


def long_line(size, upwards=True):
    """Sure steps from state to state; the last one absorbs."""
    states = np.arange(size)
    columns = np.minimum(states + 1, size - 1) if upwards else np.maximum(states - 1, 0)
    return build(ModelKind.DTMC, np.ones(size, dtype=int), columns)


def ring(size):
    """One component."""
    return build(ModelKind.DTMC, np.ones(size, dtype=int), np.roll(np.arange(size), -1))


def crumbling_line(size):
    """State i may wait, or go to 0 or i − 1; the trap `size` lies behind state 1.

    Whether i can reach 0 for sure is known only after i − 1 was found to be lost.
    """
    states = np.arange(size + 1)
    columns = np.stack((states, np.zeros(size + 1, dtype=int), states - 1), axis=1)
    columns[0], columns[1, 2], columns[size] = 0, size, size
    choices = np.full(size + 1, 2)
    return build(ModelKind.MDP, np.tile([1, 2], size + 1), columns.ravel(), choices)


def nested_rings(size, home):
    """State i may step on, wait, or go home or on; the last state absorbs.

    All but the last are one strong component of which one state breaks off a round, the last first:
    whoever wants to go home risks to enter what has broken off.
    """
    states = np.arange(size + 1)
    on = np.minimum(states + 1, size)
    columns = np.stack((on, states, home(states), on), axis=1)
    columns[size] = size
    choices = np.full(size + 1, 3)
    return build(ModelKind.MDP, np.tile([1, 1, 2], size + 1), columns.ravel(), choices)


def power_law(size, seed=0):
    """One to three choices a state, one to three successors a choice, mostly of low numbers."""
    rng = np.random.default_rng(seed)
    choices = rng.integers(1, 4, size)
    lengths = rng.integers(1, 4, choices.sum())
    columns = (size * rng.random(lengths.sum()) ** 3).astype(int)
    return build(ModelKind.MDP, lengths, columns, choices)


def everywhere(model):
    return np.ones(model.num_states, dtype=np.bool_)


def nowhere(model):
    return np.zeros(model.num_states, dtype=np.bool_)
