"""Chains whose sweeps contract slowly, or are hard to extrapolate."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import spsolve

from engines.model.csr import CsrMatrix
from engines.systems.one_sided import Scaling, SweepSystem


def system_of(matrix, offset, states=None, start=None):
    """The equations x = b + A x of some states of a chain, as a solve of ours has them."""
    matrix = csr_array(matrix)
    matrix.sort_indices()
    rows = CsrMatrix(
        matrix.indptr.astype(np.int32),
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float64),
        matrix.shape[1],
    )
    start = np.zeros(matrix.shape[1]) if start is None else start
    return SweepSystem(rows, start, offset, states, scaling=Scaling.DIAGONAL)


def two_valleys(size, leak, seed=0):
    """Two halves, each well mixed, that are left rarely for each other or for good."""
    draw = np.random.default_rng(seed)
    dense = np.zeros((2 * size, 2 * size))
    for half in (0, size):
        block = draw.random((size, size)) * (draw.random((size, size)) < 8.0 / size)
        block[np.arange(size), (np.arange(size) + 1) % size] += 0.1
        dense[half : half + size, half : half + size] = block / block.sum(axis=1, keepdims=True)
    out = np.zeros(2 * size)
    out[0], out[size] = leak, leak / 7.0
    dense *= 1.0 - out[:, None]
    dense[0, size] += 0.6 * leak
    dense[size, 0] += 0.05 * leak
    return system_of(dense, np.ones(2 * size))


def ladder(size, up):
    """A walk that drifts away from its target, so that it takes very long to reach it."""
    states = np.arange(size)
    rows = np.append(states[1:], states)
    columns = np.append(states[:-1], np.minimum(states + 1, size - 1))
    values = np.append(np.full(size - 1, 1.0 - up), np.full(size, up))
    return system_of(csr_array((values, (rows, columns)), shape=(size, size)), np.ones(size))


def line(size):
    """States one after the other: a reward at the end alone, which few sweeps do not see."""
    states = np.arange(size - 1)
    shape = (size, size)
    matrix = csr_array((np.full(size - 1, 0.9999), (states, states + 1)), shape=shape)
    return system_of(matrix, np.append(np.zeros(size - 1), 1.0))


def known_states(seed):
    """Some states have known values, infinite, 1 or 0; some of the others earn nothing at all."""
    draw = np.random.default_rng(seed)
    size = 400
    dense = draw.random((size, size)) * (draw.random((size, size)) < 0.03)
    dense[:, -3:] = 0.0
    dense[np.arange(size), (np.arange(size) * 7 + 1) % (size - 60)] += 0.3
    # From the first 40 the others are not reached.
    dense[:40, 40:] = 0.0
    dense[:40, 0] += 0.1
    dense /= dense.sum(axis=1, keepdims=True)
    leak = draw.random(size) * 1e-4
    dense *= 1.0 - leak[:, None]
    dense[:, -2] = leak
    dense[:40, -2] = 0.0
    dense[:40, :40] *= 0.9
    start = np.zeros(size)
    start[-3:] = np.inf, 1.0, 0.0
    states = np.arange(size - 3, dtype=np.int32)
    return system_of(dense[: size - 3], None, states, start)


CASES = {
    "two valleys": lambda: two_valleys(60, 1e-5),
    "deep valleys": lambda: two_valleys(40, 1e-6, 3),
    "ladder": lambda: ladder(40, 0.62),
    "line": lambda: line(500),
    "known states": lambda: known_states(1),
    "one state": lambda: system_of(np.array([[1.0 - 1e-6]]), np.array([3.0])),
}


def exactly(system):
    """The solution by SciPy, refined until it no longer changes."""
    matrix = system.matrix
    states = np.arange(matrix.num_rows) if system.states is None else system.states
    whole = csr_array(
        (matrix.values, matrix.columns, matrix.row_offsets),
        shape=(matrix.num_rows, matrix.num_columns),
    )
    others = np.setdiff1d(np.arange(system.num_states), states)
    right = np.zeros(len(states)) if system.offset is None else system.offset.copy()
    reached = others[np.diff(csr_array(whole[:, others]).tocsc().indptr) > 0]
    right += whole[:, reached] @ system.start[reached]
    equations = (eye_array(len(states)) - whole[:, states]).tocsc()
    solution = np.atleast_1d(spsolve(equations, right))
    for _ in range(3):
        solution += spsolve(equations, right - equations @ solution)
    values = system.start.copy()
    values[states] = solution
    return values
