"""What the host's encoders write down, they read back entry by entry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import UnsupportedError
from engines.formats import patterns, segments, values
from engines.model.csr import CsrMatrix

NUMBERS = (1.0, 0.5, 0.1, 0.0, -0.0, 1e-300, 3.0)


@st.composite
def matrices(draw, most_rows=80, most_columns=40):
    columns = draw(st.integers(1, most_columns))
    row = st.lists(
        st.tuples(st.integers(0, columns - 1), st.sampled_from(NUMBERS)),
        max_size=draw(st.integers(0, 9)),
    )
    rows = draw(st.lists(row, max_size=most_rows))
    offsets = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum([len(r) for r in rows], out=offsets[1:])
    flat = [pair for r in rows for pair in r]
    return CsrMatrix(
        offsets,
        np.array([c for c, _ in flat], dtype=np.int32),
        np.array([v for _, v in flat], dtype=np.float64),
        columns,
    )


def bits(numbers):
    return np.ascontiguousarray(numbers).view(np.uint64)


def expect_equal(found, matrix):
    np.testing.assert_array_equal(found.row_offsets, matrix.row_offsets)
    np.testing.assert_array_equal(found.columns, matrix.columns)
    np.testing.assert_array_equal(bits(found.values), bits(matrix.values))
    assert found.num_columns == matrix.num_columns


def row_states(matrix, seed):
    return np.random.default_rng(seed).integers(0, matrix.num_columns, matrix.num_rows)


@given(matrices())
def test_values(matrix):
    coded = values.encode(matrix)
    expect_equal(coded.decode(), matrix)
    assert len(np.unique(bits(coded.numbers))) == len(coded.numbers)
    assert (np.diff(bits(coded.numbers).astype(object)) > 0).all()


@given(matrices(), st.integers(0, 3), st.booleans())
def test_patterns(matrix, seed, with_offset):
    offset = np.arange(matrix.num_rows) % 3 / 2.0 if with_offset else None
    for states in (None, row_states(matrix, seed)):
        coded = patterns.encode(matrix, states, offset)
        expect_equal(coded.decode(), matrix)
        found = coded.offset()
        if offset is None:
            assert found is None
        else:
            np.testing.assert_array_equal(found, offset)
        # Codes come up in the order of their first rows.
        _, first = np.unique(coded.codes, return_index=True)
        assert (np.diff(first) > 0).all()


@given(matrices(), st.integers(1, 40))
def test_segments_add_up_to_rows_wherever_tiles_end(matrix, tile):
    x = np.arange(1.0, matrix.num_columns + 1.0)
    expected = [
        sum(
            matrix.values[k] * x[matrix.columns[k]]
            for k in range(matrix.row_offsets[row], matrix.row_offsets[row + 1])
        )
        for row in range(matrix.num_rows)
    ]
    np.testing.assert_allclose(segments.product(matrix, x, tile), expected, rtol=1e-13)


def test_the_papers_example_of_a_backward_segmented_scan():
    products = np.array([4.0, 1, 6, 3, 8, 6, 1, 2, 5])
    starts = np.array([1, 0, 0, 1, 0, 1, 0, 0, 0], dtype=np.bool_)
    np.testing.assert_array_equal(
        segments.scanned(products, starts, 100), [11, 7, 6, 11, 8, 14, 8, 7, 5]
    )


def test_more_than_16_bits_tell_apart_is_refused():
    size = 65_537
    matrix = CsrMatrix(
        np.arange(size + 1, dtype=np.int32),
        np.zeros(size, dtype=np.int32),
        np.arange(1.0, size + 1.0),
        size,
    )
    with pytest.raises(UnsupportedError, match="more than 65536 distinct values"):
        values.encode(matrix)
    ones = replace(matrix, values=np.ones(size))
    assert len(values.encode(ones).numbers) == 1
    assert values.encode(replace(matrix, values=matrix.values % 65_536)).codes.dtype == np.uint16
