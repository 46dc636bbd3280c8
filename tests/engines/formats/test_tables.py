"""Dictionaries as the kernels read them: distances and values apart, divisors as reciprocals."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cuda.formats.tables import parts_of, reciprocals
from engines.errors import UnsupportedError


def test_pairs_come_apart_into_signed_distances_and_the_bits_of_values():
    numbers = np.array([0.5, -0.0, np.inf, 1e-310])
    distances = np.array([-(2**31), -1, 0, 1, 2**31 - 1], dtype=np.int64)
    keys, expected = [], []
    for distance in distances:
        for code, number in enumerate(numbers):
            keys.append((int(distance) & 0xFFFFFFFF) << 32 | code)
            expected.append((distance, number))
    found = parts_of(np.array(keys, dtype=np.uint64), numbers.view(np.uint64))
    assert [part.dtype for part in found] == [np.int32, np.float64]
    np.testing.assert_array_equal(found[0], [distance for distance, _ in expected])
    wanted = np.array([number for _, number in expected])
    np.testing.assert_array_equal(found[1].view(np.uint64), wanted.view(np.uint64))


def test_reciprocals_are_rounded_once():
    numbers = np.random.default_rng(1).uniform(1e-3, 1e3, 1000)
    off = reciprocals(numbers).astype(np.longdouble) * numbers - 1
    assert np.abs(off).max() <= 2.0**-53
    assert len(reciprocals(np.empty(0))) == 0


@pytest.mark.parametrize("number", [1e-309, 1e308])
def test_numbers_without_a_reciprocal_are_refused_by_name(number):
    with pytest.raises(UnsupportedError, match="no reciprocal"):
        reciprocals(np.array([1.0, number]))
