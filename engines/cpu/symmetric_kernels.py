"""Symmetric Gauss-Seidel in numba; imported only when a model is large enough to want it."""

from __future__ import annotations

import numpy as np

from engines.cpu.kernels import _larger_change
from engines.formats.csr import FloatArray, IndexArray

# isort: split
# `engines.cpu.kernels` sets what OpenMP reads when numba loads it.
from numba import njit, prange


@njit(parallel=True, cache=True, error_model="numpy")
def sweep(
    pieces: IndexArray,
    offsets: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    backwards: bool,
    omega: float,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> float:
    """Make one sweep, in the order of the rows of each piece or against it.

    Returns
    -------
    The largest change. A row reads `x_new` in its own piece, and `x` in others.
    """
    worst = np.zeros(len(pieces) - 1)
    for piece in prange(len(pieces) - 1):
        first, behind = pieces[piece], pieces[piece + 1]
        x_new[first:behind] = x[first:behind]
        largest = 0.0
        for done in range(behind - first):
            row = behind - 1 - done if backwards else first + done
            total = 0.0
            for entry in range(offsets[row], offsets[row + 1]):
                column = np.int64(columns[entry])
                inside = first <= column < behind
                total += values[entry] * (x_new[column] if inside else x[column])
            before = x_new[row]
            after = total if omega == 1.0 else (1.0 - omega) * before + omega * total
            x_new[row] = after
            largest = _larger_change(largest, before, after, absolute)
        worst[piece] = largest
    return worst.max() if len(worst) else 0.0
