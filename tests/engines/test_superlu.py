"""Sparse LU: SciPy's own to the last bit, without the import of SciPy's packages."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu

from engines.cpu.sparse_tools import from_entries
from engines.linear import fill, superlu
from engines.linear.superlu import SparseFactors

ALONE = """
import sys
import numpy as np
from engines.linear import fill
from engines.linear.direct import _solve

size = 3_000
fill.SURELY_SMALL = 100
states = np.arange(size)
rows, columns = np.append(states, states[1:]), np.append(states, states[:-1])
entries = np.append(np.full(size, 2.0), np.full(size - 1, -1.0))
solution, error = _solve(rows, columns, entries, np.ones(size))
np.testing.assert_allclose(solution, 2.0 - 2.0 ** -(states + 1.0) - 1.0, rtol=1e-12)
assert error < 1e-12
assert not [name for name in sys.modules if name.startswith("scipy.sparse")]
from scipy.sparse import eye_array
from scipy.sparse.linalg import splu
assert splu(eye_array(4).tocsc()).solve(np.ones(4)).tolist() == [1.0] * 4
assert splu(eye_array(4).tocsc()).L.nnz == 4
assert np.array_equal(_solve(rows, columns, entries, np.ones(size))[0], solution)
"""


def entries_of(size, seed, share=3.0):
    """A matrix whose diagonal outweighs the rest, some places given twice."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, size, (2, int(share * size)))
    states = np.arange(size)
    values = np.append(-rng.random(len(rows)) / (2.0 * share), np.full(size, 4.0))
    return np.append(rows, states), np.append(columns, states), values


@pytest.mark.parametrize("size", [1, 2, 70, 1_500])
@pytest.mark.parametrize("seed", range(3))
def test_factors_are_scipys(size, seed):
    rows, columns, values = entries_of(size, seed)
    matrix = from_entries(rows, columns, values, size, size)
    theirs = coo_array((values, (rows, columns)), shape=(size, size)).tocsc()
    right = np.random.default_rng(seed).random(size)
    found = SparseFactors(matrix).solve(right)
    np.testing.assert_array_equal(found, splu(theirs).solve(right))
    np.testing.assert_allclose(theirs @ found, right, rtol=1e-12)


@pytest.mark.parametrize("missing", [ImportError, AttributeError, TypeError])
def test_scipys_own_function_serves_where_its_module_has_changed(monkeypatch, missing):
    def refuse(_name):
        raise missing

    rows, columns, values = entries_of(70, 1)
    matrix = from_entries(rows, columns, values, 70, 70)
    found = SparseFactors(matrix).solve(np.ones(70))
    monkeypatch.setattr(superlu, "extension", refuse)
    np.testing.assert_array_equal(SparseFactors(matrix).solve(np.ones(70)), found)


def test_a_singular_matrix_has_no_factors():
    with pytest.raises(RuntimeError, match="singular"):
        SparseFactors(from_entries([0, 1, 1], [0, 0, 1], np.array([1.0, 1.0, 0.0]), 2, 2))


@pytest.mark.parametrize("shape", [(1, 1), (30, 70), (200, 90)])
@pytest.mark.parametrize("share", [0.0, 0.5, 4.0])
def test_entries_of_one_place_are_added_up(shape, share):
    rng = np.random.default_rng(int(10 * share) + shape[0])
    count = int(share * shape[0])
    rows, columns = rng.integers(0, shape[0], count), rng.integers(0, shape[1], count)
    values = rng.integers(1, 9, count).astype(np.float64)
    found = from_entries(rows, columns, values, shape[1], shape[0])
    expected = coo_array((values, (rows, columns)), shape=shape).tocsr()
    expected.sort_indices()
    assert found.num_columns == shape[1]
    np.testing.assert_array_equal(found.row_offsets, expected.indptr)
    np.testing.assert_array_equal(found.columns, expected.indices)
    np.testing.assert_array_equal(found.values, expected.data)


def test_scipys_packages_are_not_imported_and_still_can_be():
    subprocess.run([sys.executable, "-c", ALONE], check=True, timeout=60)


@pytest.mark.parametrize("size", [2_500, 9_000])
def test_what_would_fill_up_is_told_without_them(size):
    rng = np.random.default_rng(size)
    row, column = np.repeat(np.arange(size), 3), rng.integers(0, size, 3 * size)
    if size > 2 * fill.WIDEST_LEVEL:
        with pytest.raises(RuntimeError, match="would fill up"):
            fill.require_little_fill(row, column, size)
    else:
        fill.require_little_fill(row, column, size)


@pytest.mark.parametrize("share", [0.5, 6.0])
def test_a_thread_of_little_stack_is_enough(share):
    """Solves run on threads of Java's, whose stack is PRISM's `-javastack`."""
    rows, columns, values = entries_of(1_500, 3, share)
    matrix, found = from_entries(rows, columns, values, 1_500, 1_500), []
    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(
            target=lambda: found.append(SparseFactors(matrix).solve(np.ones(1_500)))
        )
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    np.testing.assert_array_equal(found[0], SparseFactors(matrix).solve(np.ones(1_500)))
