"""SciPy's loops without SciPy: the same sums and transposes, to the last bit."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from engines.cpu.sparse_tools import CsrProduct, transposed
from engines.formats import csr
from engines.formats import groups as row_groups
from engines.formats.csr import CsrMatrix

ALONE = """
import sys
import numpy as np
from engines.cpu.sparse_tools import CsrProduct
from engines.formats.csr import CsrMatrix

matrix = CsrMatrix(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([0.5, 2.0, 3.0]), 2)
assert (CsrProduct(matrix) @ np.array([4.0, 1.0])).tolist() == [4.0, 3.0]
assert "scipy.sparse" not in sys.modules
import scipy.sparse
assert scipy.sparse._sparsetools.csr_matvec
assert (scipy.sparse.eye_array(2).tocsr() @ np.ones(2)).tolist() == [1.0, 1.0]
"""


@pytest.fixture(params=[(1, 1, 1.0), (40, 30, 0.2), (7, 90, 0.0), (3000, 2000, 0.002)])
def array(request):
    rows, columns, density = request.param
    return csr_array(random_array((rows, columns), density=density, rng=7, format="csr"))


def _matrix(array, kind=np.int32):
    return CsrMatrix(
        array.indptr.astype(kind), array.indices.astype(kind), array.data, array.shape[1]
    )


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("together", [(), (2,), (3,)])
def test_products_are_scipys(array, kind, together):
    vectors = np.random.default_rng(1).random((array.shape[1], *together))
    product = CsrProduct(_matrix(array, kind)) @ vectors
    np.testing.assert_array_equal(product, array @ vectors)


def test_a_product_is_written_over_what_was_there(array):
    vector, product = np.ones(array.shape[1]), np.full(array.shape[0], np.nan)
    assert CsrProduct(_matrix(array)).into(vector, product) is product
    np.testing.assert_array_equal(product, array @ vector)


def test_offsets_wider_than_columns_are_no_obstacle(array):
    matrix = _matrix(array)
    mixed = CsrMatrix(
        matrix.row_offsets.astype(np.int64), matrix.columns, matrix.values, matrix.num_columns
    )
    vector = np.ones(array.shape[1])
    np.testing.assert_array_equal(CsrProduct(mixed) @ vector, array @ vector)


def test_a_vector_of_every_second_number_is_read_as_such(array):
    vectors = np.random.default_rng(2).random((array.shape[1], 2))
    np.testing.assert_array_equal(CsrProduct(_matrix(array)) @ vectors[:, 1], array @ vectors[:, 1])


def test_transposes_are_scipys(array):
    values = np.arange(array.nnz, dtype=np.float64)
    turned = transposed(_matrix(array), values)
    expected = csr_array((values, array.indices, array.indptr), shape=array.shape).tocsc()
    assert turned.num_columns == array.shape[0]
    np.testing.assert_array_equal(turned.row_offsets, expected.indptr)
    np.testing.assert_array_equal(turned.columns, expected.indices)
    np.testing.assert_array_equal(turned.values, expected.data)


ROWS_OF_FORTY = {
    "none": [],
    "runs": [*range(3, 9), *range(20, 40)],
    "backwards": list(range(39, -1, -1)),
    "repeated": [7, 7, 0, 39, 7],
    "every second": list(range(0, 40, 2)),
}


@pytest.mark.parametrize("rows", ROWS_OF_FORTY.values(), ids=ROWS_OF_FORTY)
@pytest.mark.parametrize("offsets_kind", [np.int32, np.int64])
@pytest.mark.parametrize("columns_kind", [np.int32, np.int64])
def test_rows_of_many_entries_are_those_of_few(monkeypatch, rows, offsets_kind, columns_kind):
    array = random_array((40, 30), density=0.2, rng=7, format="csr")
    matrix = CsrMatrix(
        array.indptr.astype(offsets_kind), array.indices.astype(columns_kind), array.data, 30
    )
    few = matrix.select_rows(np.array(rows, dtype=np.int64))
    monkeypatch.setattr(csr, "MANY_ENTRIES", 0)
    many = matrix.select_rows(np.array(rows, dtype=np.int64))
    for name in ("row_offsets", "columns", "values"):
        wanted, found = getattr(few, name), getattr(many, name)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(many.values, array.toarray()[rows][array.toarray()[rows] != 0])


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint32])
def test_ranges_are_numbered_one_after_the_other(kind):
    starts = np.array([5, 0, 7, 2**31 - 2], dtype=kind)
    lengths = np.array([2, 0, 3, 2], dtype=kind)
    found = csr.ranges(starts, lengths)
    assert found.tolist() == [5, 6, 7, 8, 9, 2**31 - 2, 2**31 - 1]
    assert found.dtype == np.int64
    assert csr.ranges(starts[:0], lengths[:0]).tolist() == []


@pytest.mark.parametrize("states", [[], [0], [4, 1, 1], [0, 1, 2, 3, 4, 5]])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_choices_of_many_states_are_those_of_few(monkeypatch, states, kind):
    groups = np.array([0, 3, 3, 4, 9, 11, 12], dtype=kind)
    wanted = [choice for state in states for choice in range(groups[state], groups[state + 1])]
    for least in (csr.MANY_ENTRIES, 0):
        monkeypatch.setattr(row_groups, "MANY_ENTRIES", least)
        choices, offsets = row_groups.choices_of(np.array(states, dtype=np.int64), groups)
        assert choices.tolist() == wanted
        assert np.diff(offsets).tolist() == [groups[k + 1] - groups[k] for k in states]


def test_scipy_is_not_imported_and_still_can_be():
    subprocess.run([sys.executable, "-c", ALONE], check=True, timeout=60)
