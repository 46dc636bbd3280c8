"""Answers of paths that were sampled in parts are those of one part."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.montecarlo.questions import CumulativeReward, Until
from engines.montecarlo.results import PathArrays, joined
from engines.program.expressions import TRUE

QUESTIONS = (Until(TRUE, TRUE), CumulativeReward(0, 1.0), Until(TRUE, TRUE))
COUNT = 40


def arrays(first_path=7):
    """Return made-up answers, undecided ones and sums that rounding would tell apart included."""
    chosen = np.random.default_rng(3)
    rewards = chosen.exponential(1.0, (1, COUNT)) * 10.0 ** chosen.integers(-20, 20, COUNT)
    rewards[0, ::9] = np.nan
    booleans = chosen.integers(0, 3, (2, COUNT), np.uint8)
    return PathArrays(first_path, booleans, rewards, chosen.integers(1, 99, COUNT))


def part_of(whole, begin, end):
    rows = (whole.booleans[:, begin:end], whole.rewards[:, begin:end], whole.lengths[begin:end])
    return PathArrays(whole.first_path + begin, *rows)


@given(cuts=st.sets(st.integers(1, COUNT - 1), max_size=5))
def test_parts_joined_are_the_whole_digit_for_digit(cuts):
    whole, places = arrays(), [0, *sorted(cuts), COUNT]
    parts = [part_of(whole, *pair) for pair in pairwise(places)]
    found = joined(parts)
    assert found.first_path == 7
    for name in ("booleans", "rewards", "lengths"):
        mine, other = getattr(found, name), getattr(whole, name)
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape)
        assert mine.tobytes() == np.ascontiguousarray(other).tobytes()
    assert found.batch(QUESTIONS).digest() == whole.batch(QUESTIONS).digest()


def test_a_failed_path_keeps_its_number():
    whole = arrays()
    whole.lengths[[25, 30]] = -1
    assert joined([part_of(whole, 0, 20), part_of(whole, 20, COUNT)]).first_failed == 7 + 25


def test_one_part_is_not_copied():
    whole = arrays()
    assert joined([whole]) is whole


@pytest.mark.parametrize("second", [19, 21, 0])
def test_parts_that_do_not_follow_each_other_are_refused(second):
    whole = arrays()
    with pytest.raises(ValueError, match=f"paths from 27 on are missing: {7 + second} comes next"):
        joined([part_of(whole, 0, 20), part_of(whole, second, COUNT)])
