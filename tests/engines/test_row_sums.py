"""Rows of probabilities that sum to 1 only roughly."""

from __future__ import annotations

import numpy as np
import pytest

from engines.model.csr import CsrMatrix
from engines.model.row_sums import ROUNDED_SUM, are_one, rescaled


def _rows(*rows):
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    values = np.concatenate(rows)
    columns = np.concatenate([np.arange(len(row)) for row in rows]).astype(np.int32)
    return CsrMatrix(offsets, columns, values, max(map(len, rows)))


@pytest.mark.parametrize("entries", [3, 70_000, 100_001])
def test_a_long_row_whose_sum_is_rounded_stays_as_it_is(entries):
    matrix = _rows(np.full(entries, 1.0 / entries), np.array([0.25, 0.75]))
    assert are_one(matrix)
    again, changed = rescaled(matrix)
    assert again is matrix
    assert changed is None


def test_some_of_them_are_rounded_further_than_short_ones():
    sums = [abs(np.cumsum(np.full(n, 1.0 / n))[-1] - 1.0) for n in (70_000, 100_001)]
    assert max(sums) > ROUNDED_SUM


@pytest.mark.parametrize("entries", [3, 70_000])
def test_what_is_not_1_but_for_rounding_is_divided_by_its_sum(entries):
    short = np.full(entries, (1.0 - 1e-7) / entries)
    matrix = _rows(np.array([0.25, 0.75]), short)
    assert not are_one(matrix)
    again, changed = rescaled(matrix)
    assert changed is not None
    assert changed.rows.tolist() == [1]
    np.testing.assert_allclose(again.values[2:], 1.0 / entries, rtol=1e-11)
    assert again.values[:2].tolist() == [0.25, 0.75]
