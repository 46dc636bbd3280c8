"""How many words a matrix is expected to have, by those of a sample of it."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cuda.formats.layout import SLICE
from engines.cuda.formats.survey import PART, SAMPLED_ROWS, expected_words
from engines.cuda.formats.tables import Sample
from engines.formats.choice import MOST_CODES


def test_what_a_sample_holds_all_of_is_all_there_is():
    assert expected_words(40, 40, 0.01) == 40
    assert expected_words(900, 500, 1.0) == 900
    assert expected_words(0, 0, 0.5) == 0
    assert expected_words(None, 70, 0.5) is None


@pytest.mark.parametrize("power", [0.25, 0.5, 1.0])
def test_words_go_on_growing_as_they_grow_in_the_sample(power):
    rows = 1 << 22
    words = {share: 20 * (rows * share) ** power for share in (1 / 64, 1 / 64 / PART)}
    found = expected_words(*map(round, words.values()), 1 / 64)
    whole = 20 * rows**power
    if whole > 1.1 * MOST_CODES:
        assert found is None
    else:
        assert found == pytest.approx(whole, rel=0.05)


def test_words_drawn_by_lot_are_not_taken_for_few():
    rng = np.random.default_rng(1)
    row_words = rng.integers(0, 1_000_000, 1 << 16)
    counts = [len(np.unique(part)) for part in (row_words, row_words[::PART])]
    assert expected_words(*counts, 1 / 100) is None


@pytest.mark.parametrize(
    "rows", [1, 31, 33, 65_535, 65_536, 65_569, 150_732, 2_546_432, 11_261_376]
)
def test_the_part_of_a_sample_has_no_rows_but_the_samples(rows):
    def sampled(sample):
        # As `sampled_row` in engines/kernels/formats/building.cuh.
        number = np.arange(sample.rows, dtype=np.int64)
        at = number // SLICE * sample.stride * SLICE + number % SLICE
        return set(at[at < rows].tolist())

    sample = Sample.of(rows, SAMPLED_ROWS)
    part = sample.thinned(rows, PART)
    assert sampled(part) <= sampled(sample)
    assert len(sampled(part)) == pytest.approx(len(sampled(sample)) / PART, abs=PART * SLICE)
