"""Small dense LU: against NumPy's, and on a stack that NumPy's does not fit."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from engines.linear.dense import DenseFactors


def system(seed: int, size: int, density: float):
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(size, size)) * (random.random((size, size)) < density)
    # Large entries off the diagonal: without pivoting nothing would be left.
    matrix[np.arange(size), random.permutation(size)] += 5.0
    return matrix, random.normal(size=size)


@pytest.mark.parametrize("density", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("size", [1, 2, 7, 60, 150])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_solution_is_numpys(seed, size, density):
    matrix, right = system(seed, size, density)
    given = matrix.copy()
    found = DenseFactors(matrix).solve(right)
    np.testing.assert_array_equal(matrix, given)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(matrix @ found, right, atol=1e-9)


@pytest.mark.parametrize("matrix", [np.zeros((1, 1)), np.ones((3, 3)), np.diag([1.0, 0.0, 2.0])])
def test_a_singular_matrix_is_refused(matrix):
    with pytest.raises(RuntimeError, match="singular"):
        DenseFactors(matrix)


def test_a_thread_of_little_stack_is_enough():
    matrix, right = system(3, 400, 0.05)
    found = []
    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(DenseFactors(matrix).solve(right)))
        thread.start()
        thread.join(60)
    finally:
        threading.stack_size(before)
    np.testing.assert_allclose(matrix @ found[0], right, atol=1e-8)
