"""How far two engines' values are apart, and how far they may be."""

import math

import numpy as np
import pytest

from bridge.regress.answers import Answer, Cell, Claim, Kind
from bridge.regress.compare import (
    Tolerance,
    Values,
    claimed_of,
    distance,
    numbers_in,
    slack_of,
)


def values(*numbers, slack=0.0, boolean=False):
    vector = np.array(numbers, dtype=np.float64)
    return Values(vector, np.full_like(vector, slack), boolean)


def test_one_state_off_by_a_hundred_thousandth_is_found_among_many():
    rng = np.random.default_rng(1)
    truth = rng.random(1000)
    wrong = truth.copy()
    wrong[437] *= 1 + 1e-5
    answer = Answer(Cell(0), Kind.VALUES, claim=Claim("ESTIMATED_BOUNDED", 9e-6, absolute=False))
    kind = {"ours": False, "continuous_time": False}
    first = Values(truth, slack_of(answer, truth, **kind))
    second = Values(wrong, slack_of(answer, wrong, **kind))
    found = distance(first, second, Tolerance())
    assert (found.apart, found.state) == (1, 437)
    assert found.relative == pytest.approx(1e-5, rel=1e-3)
    assert not found.agrees
    assert distance(first, first, Tolerance()).agrees


def test_infinities_and_nan_are_equal_to_themselves_alone():
    same = values(math.inf, -math.inf, math.nan, 1.0)
    assert distance(same, same, Tolerance()).agrees
    for one, other in [(math.inf, -math.inf), (math.inf, 1e300), (math.nan, 0.0), (0.0, math.nan)]:
        found = distance(values(0.5, one), values(0.5, other), Tolerance(0.5, 1e9))
        assert (found.apart, found.state, found.absolute) == (1, 1, math.inf)


def test_truth_values_are_equal_or_not_whatever_the_tolerance():
    found = distance(
        values(1, 0, 1, boolean=True), values(1, 1, 1, boolean=True), Tolerance(0.9, 5.0)
    )
    assert (found.apart, found.state) == (1, 1)


def test_the_worst_state_is_the_one_that_exceeds_its_allowance_by_most():
    # The first gap is larger, and within what is allowed.
    found = distance(values(1e6, 1e-3), values(1e6 + 0.5, 1.1e-3), Tolerance(1e-6, 0.0))
    assert (found.apart, found.state) == (1, 1)
    assert found.absolute == 0.5


def test_what_both_sides_claim_adds_up():
    first, second = values(1.0, slack=0.01), values(1.025, slack=0.02)
    assert distance(first, second, Tolerance(0.0, 0.0)).agrees
    assert not distance(first, values(1.025), Tolerance(0.0, 0.0)).agrees


def test_vectors_of_other_lengths_cannot_be_compared():
    with pytest.raises(ValueError, match="2 and 1 states"):
        distance(values(1, 2), values(1), Tolerance())


@pytest.mark.parametrize(
    ("claim", "settings", "continuous", "slack"),
    [
        (Claim("EXACT"), {}, False, [0.0, 0.0]),
        (Claim("BOUNDED", 1e-3, True), {}, False, [1e-3, 1e-3]),
        (Claim("BOUNDED", 1e-3, False), {}, False, [2e-3, 0.0]),
        # An estimate counts up to the threshold only.
        (Claim("ESTIMATED_BOUNDED", 1e-5, False), {}, False, [2e-6, 0.0]),
        (Claim("ESTIMATED_BOUNDED", 1e-9, False), {}, False, [2e-9, 0.0]),
        (Claim("ESTIMATED_BOUNDED", 1e-5, True), {"epsilon": 1e-8}, False, [1e-8, 1e-8]),
        (Claim(), {}, False, [2e-6, 0.0]),
        (Claim(), {"absolute": True}, False, [1e-6, 1e-6]),
        (Claim("EXACT_FLOATING_POINT"), {}, False, [0.0, 0.0]),
        (Claim("EXACT_FLOATING_POINT"), {"epsilon": 8e-6}, True, [1e-6, 1e-6]),
        (Claim(), {"epsilon": 8e-6}, True, [1.6e-5, 1e-6]),
    ],
)
def test_how_far_a_value_may_be_off_is_what_its_engine_claims(claim, settings, continuous, slack):
    answer = Answer(Cell(0), Kind.VALUES, claim=claim, **settings)
    values = np.array([2.0, math.inf])
    found = slack_of(answer, values, ours=False, continuous_time=continuous)
    # Of an infinity there is no share; an absolute error does no harm.
    assert found == pytest.approx(slack)


def test_an_engine_is_held_to_its_threshold_and_to_its_claim():
    estimate = Claim("ESTIMATED_BOUNDED", 1e-5, absolute=False)
    answer = Answer(Cell(0), Kind.VALUES, claim=estimate)
    for claim, strict, full in [(estimate, 2e-6, 2e-5), (Claim(), 2e-6, 2e-6)]:
        answer = Answer(Cell(0), Kind.VALUES, claim=claim)
        one = np.array([2.0])
        found = slack_of(answer, one, ours=False, continuous_time=False)
        claimed = claimed_of(answer, one, continuous_time=False)
        assert (found[0], claimed[0]) == pytest.approx((strict, full))
        gap = distance(
            Values(one, found, claimed=claimed), values(2.0 + 1.5e-5), Tolerance(0.0, 0.0)
        )
        assert (gap.agrees, gap.within_claims) == (False, full > 1.5e-5)


def test_an_estimate_of_ours_counts_in_full_since_it_is_made_from_the_residual():
    answer = Answer(Cell(0), Kind.VALUES, claim=Claim("ESTIMATED_BOUNDED", 5e-6, absolute=True))
    for ours, slack in ((True, 5e-6), (False, 1e-6)):
        assert slack_of(answer, np.ones(1), ours=ours, continuous_time=False) == [slack]


def test_printed_results_are_split_into_words_and_numbers():
    assert numbers_in("true") == ("true", pytest.approx(np.array([])))
    words, numbers = numbers_in("[0.25,Infinity]")
    assert words == "[#,#]"
    assert numbers.tolist() == [0.25, math.inf]
    assert numbers_in("1.0E-5")[1].tolist() == [1e-5]
