"""What `auto` learns of a large matrix from a sample of its rows."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cuda.engine import CudaEngine
from engines.cuda.formats.layout import SLICE
from engines.cuda.formats.survey import SAMPLED_ROWS
from engines.model.choice import Format
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import SweepSystem

# The first is sampled whole; of the others every so manieth slice, and of these every fourth.
SIZES = (SAMPLED_ROWS - 17, 150_732, 5 * SAMPLED_ROWS + 3)
LENGTH = 5


def matrix_of(size, value_of_row):
    """Rows of entries that are near, with one value each."""
    row = np.arange(size)[:, None]
    columns = (row + np.arange(-LENGTH // 2, LENGTH // 2) * 7).clip(0, size - 1)
    values = np.repeat(value_of_row, LENGTH) / LENGTH
    offsets = np.arange(size + 1, dtype=np.int32) * LENGTH
    return CsrMatrix(offsets, columns.ravel().astype(np.int32), values, size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("words", ["a value a slice", "rare values", "a value a row"])
def test_rows_that_share_no_values_with_others_are_surveyed(size, words):
    row = np.arange(size)
    slices = row // SLICE
    value = {
        "a value a slice": 0.5 + slices / (2.0 * slices[-1]),
        "rare values": np.where(slices % 4 == 1, 0.5 + row / (2.0 * size), 0.75),
        "a value a row": 0.5 + row / (2.0 * size),
    }[words]
    system = SweepSystem(matrix_of(size, value), np.linspace(0.5, 1.0, size))
    iterates = []
    for wanted in (Format.CSR, Format.AUTO):
        sweeper = CudaEngine(0, wanted).sweeper(system, -1.0, True)
        sweeper.run(40)
        iterates.append(sweeper.values())
    np.testing.assert_allclose(iterates[1], iterates[0], rtol=1e-12)
    assert "(chosen)" in sweeper.cost.estimates
