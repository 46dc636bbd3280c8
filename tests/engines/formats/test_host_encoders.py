"""What the host's encoders write down, they read back entry by entry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import UnsupportedError
from engines.model.csr import CsrMatrix
from tests.engines.formats import encoders

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
    coded = encoders.values_coded(matrix)
    expect_equal(coded.decode(), matrix)
    assert len(np.unique(bits(coded.numbers))) == len(coded.numbers)
    assert (np.diff(bits(coded.numbers).astype(object)) > 0).all()


@given(matrices(), st.integers(0, 3), st.booleans())
def test_patterns(matrix, seed, with_offset):
    offset = np.arange(matrix.num_rows) % 3 / 2.0 if with_offset else None
    for states in (None, row_states(matrix, seed)):
        coded = encoders.rows_coded(matrix, states, offset)
        expect_equal(coded.decode(), matrix)
        found = coded.offset()
        if offset is None:
            assert found is None
        else:
            np.testing.assert_array_equal(found, offset)
        # Codes come up in the order of their first rows.
        _, first = np.unique(coded.codes, return_index=True)
        assert (np.diff(first) > 0).all()


def test_more_than_16_bits_tell_apart_is_refused():
    size = 65_537
    matrix = CsrMatrix(
        np.arange(size + 1, dtype=np.int32),
        np.zeros(size, dtype=np.int32),
        np.arange(1.0, size + 1.0),
        size,
    )
    with pytest.raises(UnsupportedError, match="more than 65536 distinct values"):
        encoders.values_coded(matrix)
    ones = replace(matrix, values=np.ones(size))
    assert len(encoders.values_coded(ones).numbers) == 1
    assert (
        encoders.values_coded(replace(matrix, values=matrix.values % 65_536)).codes.dtype
        == np.uint16
    )
