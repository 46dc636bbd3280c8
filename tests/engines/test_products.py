"""Products, sums and transposes: SciPy's to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from engines import arrays
from engines.host.compiled import rows
from engines.host.compiled.rows import add_in_rows, gathered, row_sums
from engines.host.products import Product, from_entries, sums_beside_diagonal, transposed
from engines.model import groups as row_groups
from engines.model.csr import CsrMatrix


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
    product = Product(_matrix(array, kind)) @ vectors
    np.testing.assert_array_equal(product, array @ vectors)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_values_of_some_entries_are_added_in_their_order(array, kind, share):
    generator = np.random.default_rng(5)
    entries = np.flatnonzero(generator.random(array.nnz) < share)
    values, expected = generator.random(len(entries)), generator.random(array.shape[0])
    sums = expected.copy()
    add_in_rows(_matrix(array, kind), entries, values, sums)
    rows_of_entries = np.repeat(np.arange(array.shape[0]), np.diff(array.indptr))
    np.add.at(expected, rows_of_entries[entries], values)
    np.testing.assert_array_equal(sums, expected)


def test_a_product_is_written_over_what_was_there(array):
    vector, product = np.ones(array.shape[1]), np.full(array.shape[0], np.nan)
    assert Product(_matrix(array)).into(vector, product) is product
    np.testing.assert_array_equal(product, array @ vector)


def test_offsets_wider_than_columns_are_no_obstacle(array):
    matrix = _matrix(array)
    mixed = CsrMatrix(
        matrix.row_offsets.astype(np.int64), matrix.columns, matrix.values, matrix.num_columns
    )
    vector = np.ones(array.shape[1])
    np.testing.assert_array_equal(Product(mixed) @ vector, array @ vector)


def test_a_vector_of_every_second_number_is_read_as_such(array):
    vectors = np.random.default_rng(2).random((array.shape[1], 2))
    np.testing.assert_array_equal(Product(_matrix(array)) @ vectors[:, 1], array @ vectors[:, 1])


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
def test_selected_rows_are_scipys(rows, offsets_kind, columns_kind):
    array = random_array((40, 30), density=0.2, rng=7, format="csr")
    matrix = CsrMatrix(
        array.indptr.astype(offsets_kind), array.indices.astype(columns_kind), array.data, 30
    )
    found, wanted = matrix.select_rows(np.array(rows, dtype=np.int64)), array[rows]
    assert (found.columns.dtype, found.values.dtype) == (columns_kind, np.float64)
    np.testing.assert_array_equal(found.row_offsets, wanted.indptr)
    np.testing.assert_array_equal(found.columns, wanted.indices)
    np.testing.assert_array_equal(found.values, wanted.data)


@pytest.mark.parametrize("threads", [1, 2, 7, 100])
@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.int16, np.uint32, np.float64])
def test_runs_of_items_of_any_size_are_gathered(kind, threads, monkeypatch):
    monkeypatch.setattr(rows, "threads_for", lambda _: threads)
    items = np.arange(200).astype(kind)
    starts, lengths = np.array([7, 0, 199, 50]), np.array([3, 0, 1, 40], dtype=np.int32)
    wanted = np.concatenate([items[7:10], items[199:200], items[50:90]])
    found = gathered(starts, lengths, items, len(wanted))
    assert found.dtype == kind
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_sums_of_rows_are_those_of_plain_loops(kind):
    random = np.random.default_rng(5)
    lengths = random.integers(0, 9, 50)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(kind)
    columns, values = random.integers(0, 50, offsets[-1]), random.random(offsets[-1]) ** 9
    matrix = CsrMatrix(offsets, columns, values, 50)
    sums, beside = np.zeros(50), np.zeros(50)
    for row in range(50):
        for entry in range(offsets[row], offsets[row + 1]):
            sums[row] += values[entry]
            beside[row] += values[entry] if columns[entry] != row else 0.0
    np.testing.assert_array_equal(row_sums(matrix), sums)
    np.testing.assert_array_equal(sums_beside_diagonal(matrix), beside)


@pytest.mark.parametrize("count", [0, 1, 300])
def test_entries_of_one_place_are_added_up_as_they_come(count):
    random = np.random.default_rng(count)
    rows, columns = random.integers(0, 12, count), random.integers(0, 9, count)
    values = random.random(count) ** 9
    matrix = from_entries(rows, columns, values, 9, 12)
    sums = {}
    for row, column, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
        sums[row, column] = sums.get((row, column), 0.0) + value
    places = sorted(sums)
    assert list(zip(matrix.row_of_entry(), matrix.columns, strict=True)) == places
    assert matrix.values.tolist() == [sums[place] for place in places]


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_do_not_change_a_product(array, threads):
    vectors = np.random.default_rng(3).random((array.shape[1], 2))
    product = Product(_matrix(array))
    expected = [product @ vectors, product @ vectors[:, 0]]
    product._shares.threads = threads
    product._shares.bounds = np.linspace(0, array.shape[0], 4 * threads + 1).astype(np.int64)
    for found, wanted in zip((product @ vectors, product @ vectors[:, 0]), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_vectors_that_do_not_fit_are_refused(array):
    product = Product(_matrix(array))
    with pytest.raises(ValueError, match="times"):
        product @ np.ones(array.shape[1] + 1)
    with pytest.raises(ValueError, match="into"):
        product.added(np.ones(array.shape[1]), np.zeros(array.shape[0] + 1))


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint32])
def test_ranges_are_numbered_one_after_the_other(kind):
    starts = np.array([5, 0, 7, 2**31 - 2], dtype=kind)
    lengths = np.array([2, 0, 3, 2], dtype=kind)
    found = arrays.ranges(starts, lengths)
    assert found.tolist() == [5, 6, 7, 8, 9, 2**31 - 2, 2**31 - 1]
    assert found.dtype == np.int64
    assert arrays.ranges(starts[:0], lengths[:0]).tolist() == []


@pytest.mark.parametrize("states", [[], [0], [4, 1, 1], [0, 1, 2, 3, 4, 5]])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_choices_of_states_are_listed_state_by_state(states, kind):
    groups = np.array([0, 3, 3, 4, 9, 11, 12], dtype=kind)
    wanted = [choice for state in states for choice in range(groups[state], groups[state + 1])]
    choices, offsets = row_groups.choices_of(np.array(states, dtype=np.int64), groups)
    assert choices.tolist() == wanted
    assert np.diff(offsets).tolist() == [groups[k + 1] - groups[k] for k in states]
