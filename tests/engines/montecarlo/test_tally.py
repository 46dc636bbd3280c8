"""Batches in path order, counted once, and sums that no grouping changes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.montecarlo.tally import (
    Arrival,
    BooleanOutcomes,
    ExactMoments,
    InconsistentBatchError,
    PathBatch,
    PathLengths,
    RewardOutcomes,
    Tally,
    merged_lengths,
)

DOUBLES = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(values=st.lists(DOUBLES, max_size=30), cut=st.integers(0, 30))
def test_moments_are_exact_whatever_the_groups(values, cut):
    array = np.array(values, np.float64)
    whole = ExactMoments.of(array)
    assert whole == ExactMoments.of(array[:cut]) + ExactMoments.of(array[cut:])
    assert whole == ExactMoments.of(array[::-1].copy())
    fractions = [Fraction(x) for x in values]
    assert Fraction(whole.total, 2**1126) == sum(fractions)
    assert Fraction(whole.squares, 2**2252) == sum(x * x for x in fractions)


def test_mean_and_variance_are_correctly_rounded():
    values = np.random.default_rng(1).exponential(3.0, 1000) + 1e9
    moments = ExactMoments.of(values)
    fractions = [Fraction(x) for x in values]
    mean = sum(fractions) / 1000
    assert moments.mean == float(mean)
    assert moments.variance == float(sum((x - mean) ** 2 for x in fractions) / 999)
    assert ExactMoments.of(np.array([5.0])).variance == 0.0
    assert math.isnan(ExactMoments().mean)
    infinite = ExactMoments.of(np.array([1.0, np.inf]))
    assert infinite.mean == math.inf
    with pytest.raises(ValueError, match="not a number"):
        ExactMoments.of(np.array([np.nan]))


def batch_of(first_path, num_paths, seed=0):
    answers = np.random.default_rng(seed + first_path).integers(0, 2, num_paths, np.uint8)
    lengths = PathLengths(3 * num_paths, 2, 5)
    return PathBatch(first_path, num_paths, (BooleanOutcomes.of(answers),), lengths)


@given(order=st.randoms(use_true_random=False))
def test_batches_come_out_in_order_and_once(order):
    batches = [batch_of(first, 10) for first in range(0, 100, 10)]
    arrivals = batches * 3
    order.shuffle(arrivals)
    tally, out, news = Tally(), [], 0
    for batch in arrivals:
        news += tally.add(batch) is Arrival.NEW
        out += tally.ready(out[-1].end if out else 0)
    assert out == batches
    assert news == 10
    assert [x.first_path for x in Tally().ready()] == []


def test_batches_that_contradict_each_other_are_refused():
    tally = Tally()
    tally.add(batch_of(0, 10))
    tally.add(batch_of(20, 10))
    with pytest.raises(InconsistentBatchError, match="paths 0 to 9 were sampled twice"):
        tally.add(batch_of(0, 10, seed=5))
    for first, number in ((5, 10), (15, 6), (9, 1), (15, 30), (29, 5)):
        with pytest.raises(InconsistentBatchError, match="overlap"):
            tally.add(batch_of(first, number))
    tally.add(batch_of(10, 10))
    assert [x.first_path for x in tally.ready()] == [0, 10, 20]
    tally.withdraw(10)
    tally.withdraw(11)
    assert [x.first_path for x in tally.ready()] == [0]
    assert tally.add(batch_of(10, 10, seed=3)) is Arrival.NEW
    assert 10 in tally


def test_batches_that_contradict_themselves_are_seen():
    good = batch_of(0, 10)
    assert good.problem(1) is None
    answers, lengths = good.outcomes, good.lengths
    counts = BooleanOutcomes(10, answers[0].num_true + 1, 0, answers[0].outcomes)
    values = RewardOutcomes.of(np.arange(10.0))
    wrong = RewardOutcomes(ExactMoments.of(np.arange(10.0) + 1), 0, values.values)
    for batch, problem in [
        (PathBatch(0, 11, answers, lengths), "wrong number of paths"),
        (PathBatch(0, 10, (BooleanOutcomes(10, 8, 3),), lengths), "8 true and 3 undecided"),
        (PathBatch(0, 10, (counts,), lengths), "differ from the outcomes"),
        (PathBatch(0, 10, (wrong,), lengths), "differ from the rewards"),
        (PathBatch(0, 10, answers, PathLengths(100, 2, 5)), "path lengths"),
        (PathBatch(0, 10, answers * 2, lengths), "2 answers to 1 questions"),
    ]:
        assert problem in batch.problem(1)
    assert PathBatch(0, 10, (values,), lengths).problem(1) is None


def test_digests_tell_batches_apart():
    batches = [batch_of(0, 10), batch_of(0, 10, seed=1), batch_of(10, 10)]
    values = np.arange(10.0)
    batches += [PathBatch(0, 10, (RewardOutcomes.of(values + x),)) for x in (0.0, 1e-15)]
    batches.append(PathBatch(0, 10, (RewardOutcomes(ExactMoments.of(values)),)))
    assert len({batch.digest() for batch in batches}) == len(batches)
    assert batch_of(0, 10).digest() == batches[0].digest()


def test_lengths_of_batches_are_merged():
    batches = [
        PathBatch(0, 2, (), PathLengths(7, 3, 4)),
        PathBatch(2, 3, (), PathLengths(9, 1, 5)),
    ]
    assert merged_lengths(batches) == PathLengths(16, 1, 5)
    assert merged_lengths([]) == PathLengths()
