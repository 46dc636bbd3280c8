"""Dictionaries as the kernels read them: divisors as reciprocals."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cuda.formats.tables import reciprocals
from engines.errors import UnsupportedError


def test_reciprocals_are_rounded_once():
    numbers = np.random.default_rng(1).uniform(1e-3, 1e3, 1000)
    off = reciprocals(numbers).astype(np.longdouble) * numbers - 1
    assert np.abs(off).max() <= 2.0**-53
    assert len(reciprocals(np.empty(0))) == 0


@pytest.mark.parametrize("number", [1e-309, 1e308])
def test_numbers_without_a_reciprocal_are_refused_by_name(number):
    with pytest.raises(UnsupportedError, match="no reciprocal"):
        reciprocals(np.array([1.0, number]))
