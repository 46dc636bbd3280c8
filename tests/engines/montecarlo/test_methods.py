"""Stopping rules: against PRISM's own classes, and their guarantees computed exactly."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bridge.install import find_java
from bridge.language.text import double_text
from engines.montecarlo.intervals import (
    clopper_pearson,
    clopper_pearson_paths,
    hoeffding_paths,
    mixture_interval,
    student_quantile,
)
from engines.montecarlo.methods import (
    NOT_PRECISE,
    Bound,
    MethodError,
    SeveralMethods,
    UndecidedPathError,
)
from engines.montecarlo.methods_adaptive import AdaptiveProbability, AdaptiveReward
from engines.montecarlo.methods_apmc import ApproximateChecking
from engines.montecarlo.methods_confidence import FixedSampleInterval, Quantile, SequentialInterval
from engines.montecarlo.methods_exact import ExactInterval
from engines.montecarlo.methods_sprt import SequentialTest
from engines.montecarlo.tally import BooleanOutcomes, PathBatch, RewardOutcomes
from tests.engines.montecarlo.prism_methods import prism_answers

STUDENT, NORMAL = Quantile.STUDENT, Quantile.NORMAL


def outcomes_of(answers):
    answers = np.asarray(answers)
    if answers.dtype == np.float64:
        return RewardOutcomes.of(answers)
    return BooleanOutcomes.of(answers.astype(np.uint8))


def fed(method, answers, cuts=()):
    for part in np.split(np.asarray(answers), cuts):
        if not method.finished:
            method.feed(outcomes_of(part))
    return method


def coins(seed, probability, num_paths):
    return (np.random.default_rng(seed).random(num_paths) < probability).astype(np.uint8)


def lengths(seed, mean, num_paths):
    return np.random.default_rng(seed).exponential(mean, num_paths)


AT_LEAST, AT_MOST = Bound(True, 0.5), Bound(False, 0.5)
REWARD_AT_LEAST = Bound(True, 4.0)

CASES = [
    (f"{prefix}width 0.01 {n}", FixedSampleInterval(quantile, n, confidence=0.01, bound=bound), p)
    for prefix, quantile in (("CI", STUDENT), ("ACI", NORMAL))
    for n in (2, 3, 30, 201, 202, 1000)
    for p, bound in ((0.4, None), (0.9, AT_LEAST), (0.55, AT_MOST))
]
CASES += [
    (f"ACIconfidence 0.03 {n}", FixedSampleInterval(NORMAL, n, width=0.03, bound=AT_LEAST), p)
    for n in (10, 500)
    for p in (0.2, 0.6)
]
CASES += [
    (f"{prefix}iterations{kind} {delta} {width} {more}", method, p)
    for prefix, quantile in (("CI", STUDENT), ("ACI", NORMAL))
    for delta, width in ((0.05, 0.1), (0.01, 0.05))
    for p in (0.02, 0.5, 1.0)
    for kind, more, method in (
        ("", "", SequentialInterval(quantile, width, delta)),
        ("Manual", "40", SequentialInterval(quantile, width, delta, least_paths=40)),
    )
]
CASES += [
    (f"{prefix}iterationsReward 0.05 0.5 100", sequential, "R")
    for prefix, sequential in (
        ("CI", SequentialInterval(STUDENT, 0.5, 0.05, max_reward=100.0, bound=REWARD_AT_LEAST)),
        ("ACI", SequentialInterval(NORMAL, 0.5, 0.05, max_reward=100.0)),
    )
]
CASES += [
    ("CIwidth 0.05 500", FixedSampleInterval(STUDENT, 500, confidence=0.05), "R"),
    ("ACIwidth 0.05 500", FixedSampleInterval(NORMAL, 500, confidence=0.05), "R"),
    ("APMCapproximation 0.01 700", ApproximateChecking(confidence=0.01, samples=700), 0.3),
    ("APMCconfidence 0.05 700", ApproximateChecking(approximation=0.05, samples=700), 0.3),
    ("APMCiterations 0.05 0.05", ApproximateChecking(0.05, 0.05, bound=AT_LEAST), 0.9),
]
CASES += [
    (f"SPRT {a} {b} {width}", SequentialTest(bound, type_one=a, type_two=b, indifference=width), p)
    for a, b, width in ((0.01, 0.01, 0.05), (0.1, 0.001, 0.02))
    for bound in (AT_LEAST, AT_MOST, Bound(True, 0.95), Bound(False, 0.95))
    for p in (0.3, 0.52, 0.99)
    if bound.threshold + width <= 1
]
CASES += [
    (
        "SPRT 0.05 0.05 0.3",
        SequentialTest(bound, type_one=0.05, type_two=0.05, indifference=0.3, reward=True),
        "R",
    )
    for bound in (REWARD_AT_LEAST, Bound(False, 4.0))
]


def answers_of(case):
    _, _, kind = CASES[case]
    return lengths(case, 5.0, 3000) if kind == "R" else coins(case, kind, 3000)


def prism_line(words, method, kind, answers):
    bound = "=?"
    if method.bound is not None:
        bound = f"{'>=' if method.bound.at_least else '<='} {method.bound.threshold}"
    shown = " ".join(repr(float(x)) if kind == "R" else str(x) for x in answers)
    return f"{words}|{bound}|{'R' if kind == 'R' else 'P'}|{shown}"


@pytest.fixture(scope="module")
def prisms(prism_install, tmp_path_factory):
    lines = [prism_line(*CASES[case], answers_of(case)) for case in range(len(CASES))]
    folder = tmp_path_factory.mktemp("oracle")
    return prism_answers(prism_install, find_java(), folder, lines)


def assert_same_text(ours, theirs, case):
    """Equal but for the last digits of numbers, which Java 17 prints too many of now and then."""
    number = re.compile(r"-?\d+\.\d+(?:E-?\d+)?|Infinity|NaN")
    assert number.sub("#", ours) == number.sub("#", theirs), case
    for mine, prisms in zip(number.findall(ours), number.findall(theirs), strict=True):
        assert float(mine) == pytest.approx(float(prisms), rel=2e-12, abs=2e-15), case


@pytest.mark.prism
def test_every_method_says_what_prisms_says_of_the_same_answers(prisms):
    never = 0
    for case, (words, prototype, _) in enumerate(CASES):
        method = prototype.fresh()
        theirs = prisms[case]
        if words.startswith("APMC") or not method.finished:
            assert method.parameters_text(double_text) == method.fresh().parameters_text(
                double_text
            )
            assert_same_text(method.parameters_text(double_text), theirs[1], words)
        fed(method, answers_of(case))
        if theirs[-1] == "never":
            assert not method.finished, words
            never += 1
            continue
        assert method.num_paths == int(theirs[0]), words
        judgement = method.result()
        if judgement.bound is None:
            shown = double_text(judgement.estimate)
        else:
            shown = {True: "true", False: "false", None: ""}[judgement.decision]
        shown = f"{shown} ({judgement.accuracy_text(double_text)})"
        if judgement.problem:
            shown = f"error: {judgement.problem}"
        assert_same_text(method.parameters_text(double_text), theirs[2], words)
        assert_same_text(shown, theirs[3], words)
        assert_same_text(method.explanation(double_text), theirs[4], words)
    assert never < len(CASES) / 4


def test_the_confidence_of_ci_is_that_of_students_distribution():
    # PRISM's class swaps the two arguments of the distribution here, and claims 99.999995 %.
    answers = coins(1, 0.5, 1000)
    method = fed(FixedSampleInterval(STUDENT, 1000, width=0.04), answers)
    statistic = 0.04 / (np.std(answers, ddof=1) / math.sqrt(1000))
    assert method.result().confidence == pytest.approx(2 * stats.t.sf(statistic, 999), rel=1e-9)


def test_students_quantile_is_right_to_prisms_accuracy():
    for freedom in (1, 2, 3, 7, 30, 100, 200):
        for confidence in (0.2, 0.05, 0.01, 1e-3):
            exact = stats.t.isf(confidence / 2, freedom)
            assert student_quantile(confidence, freedom) == pytest.approx(exact, rel=1e-4)


METHODS = [
    (FixedSampleInterval(STUDENT, 700, confidence=0.05), 0.4),
    (SequentialInterval(STUDENT, 0.05, 0.05), 0.4),
    (SequentialInterval(NORMAL, 0.7, 0.05, max_reward=50.0), "R"),
    (FixedSampleInterval(NORMAL, 700, confidence=0.05), "R"),
    (ApproximateChecking(0.06, 0.05), 0.4),
    (SequentialTest(AT_LEAST, type_one=0.01, type_two=0.01, indifference=0.03), 0.4),
    (ExactInterval(0.05, samples=700), 0.4),
    (AdaptiveProbability(0.06, 0.05), 0.4),
    (AdaptiveReward(2.5, 0.05, largest=100.0), "R"),
]


@pytest.mark.parametrize("place", range(len(METHODS)))
@settings(max_examples=12)
@given(cuts=st.lists(st.integers(0, 4000), max_size=9))
def test_batches_of_any_size_give_the_same_judgement(place, cuts):
    prototype, kind = METHODS[place]
    answers = lengths(3, 5.0, 4000).clip(0, 50) if kind == "R" else coins(3, kind, 4000)
    whole = fed(prototype.fresh(), answers)
    cut = fed(prototype.fresh(), answers, sorted(cuts))
    assert whole.finished
    assert cut.num_paths == whole.num_paths
    assert cut.result() == whole.result()


@pytest.mark.parametrize("place", range(len(METHODS)))
def test_sampling_as_wanted_reaches_the_same_judgement(place):
    prototype, kind = METHODS[place]
    answers = lengths(3, 5.0, 9000).clip(0, 50) if kind == "R" else coins(3, kind, 9000)
    method = prototype.fresh()
    sampled = 0
    while not method.finished:
        wanted = method.paths_wanted_next(most=500)
        assert 1 <= wanted <= 500
        method.feed(outcomes_of(answers[sampled : sampled + wanted]))
        sampled += wanted
    assert method.result() == fed(prototype.fresh(), answers).result()
    assert method.progress() == 100
    with pytest.raises(ValueError, match="seen enough"):
        prototype.fresh().result()


def binomial_tail(num_true, num_paths, p, above):
    """P(X >= num_true) or P(X <= num_true), exactly."""
    p = Fraction(p)
    counts = range(num_true, num_paths + 1) if above else range(num_true + 1)
    return sum(math.comb(num_paths, k) * p**k * (1 - p) ** (num_paths - k) for k in counts)


@pytest.mark.parametrize("confidence", [0.3, 0.01, 1e-9])
def test_clopper_pearson_bounds_leave_half_of_the_confidence_each_exactly(confidence):
    for num_paths in (1, 2, 7, 40):
        for num_true in range(num_paths + 1):
            lower, upper = clopper_pearson(num_true, num_paths, confidence)
            half = Fraction(confidence) / 2
            if num_true:
                tail = binomial_tail(num_true, num_paths, lower, above=True)
                assert half * Fraction(999999, 1000000) <= tail <= half
            if num_true < num_paths:
                tail = binomial_tail(num_true, num_paths, upper, above=False)
                # An upper bound next to 1 is rounded: its distance from 1 has fewer digits.
                assert tail <= half
                assert tail >= half * Fraction(99, 100) or 1 - upper < 1e-9


def test_clopper_pearson_takes_no_more_paths_than_the_width_needs():
    for width, confidence in ((0.1, 0.05), (0.02, 0.01)):
        paths = clopper_pearson_paths(width, confidence)

        def widest(n, confidence=confidence):
            ends = [(k / n, *clopper_pearson(k, n, confidence)) for k in range(n + 1)]
            return max(max(p - low, high - p) for p, low, high in ends)

        assert widest(paths) <= width
        assert widest(paths - 1) > width


@pytest.mark.parametrize("p", [0.003, 0.1, 0.5, 0.97])
def test_a_confidence_sequence_misses_at_any_time_with_at_most_its_confidence(p):
    """The probability of ever missing up to 300 paths, by walking through all numbers of hits."""
    confidence = 0.1
    alive, missed = {0: 1.0}, 0.0
    for n in range(1, 301):
        following = {}
        for k, weight in alive.items():
            following[k] = following.get(k, 0.0) + weight * (1 - p)
            following[k + 1] = following.get(k + 1, 0.0) + weight * p
        alive = {}
        for k, weight in following.items():
            if weight < 1e-12:
                missed += weight
                continue
            lower, upper = mixture_interval(k, n, confidence)
            if lower <= p <= upper:
                alive[k] = weight
            else:
                missed += weight
    assert missed <= confidence
    # And it is of use: less than twice as wide as an interval for 300 paths alone.
    assert missed > 0.002
    lower, upper = mixture_interval(150, 300, confidence)
    assert upper - lower < 2 * (np.subtract(*clopper_pearson(150, 300, confidence)[::-1]))


@pytest.mark.parametrize(("p", "wrong"), [(0.55, False), (0.45, True)])
def test_the_sequential_test_errs_no_more_than_it_says(p, wrong):
    """The probability of each decision, by walking through all numbers of true paths."""
    method = SequentialTest(AT_LEAST, type_one=0.05, type_two=0.02, indifference=0.05)
    accept, reject = 0.02 / 0.95, 0.98 / 0.05
    alive, decided = {0: 1.0}, {True: 0.0, False: 0.0}
    for n in range(1, 2500):
        following = {}
        for k, weight in alive.items():
            following[k] = following.get(k, 0.0) + weight * (1 - p)
            following[k + 1] = following.get(k + 1, 0.0) + weight * p
        alive = {}
        for k, weight in following.items():
            ratio = (0.45 / 0.55) ** k * (0.55 / 0.45) ** (n - k)
            if n >= 2 and ratio <= accept:
                decided[True] += weight
            elif n >= 2 and ratio >= reject:
                decided[False] += weight
            else:
                alive[k] = weight
    assert sum(alive.values()) < 1e-3
    assert decided[wrong] <= (0.05 / 0.98 if p > 0.5 else 0.02 / 0.95) + 1e-3
    # The same walk, sampled: the class decides as the walk does.
    decisions = [fed(method.fresh(), coins(seed, p, 4000)).result().decision for seed in range(300)]
    share = decisions.count(wrong) / 300
    assert abs(share - decided[wrong]) < 5 * math.sqrt(decided[wrong] / 300) + 0.01


def test_the_sequential_test_goes_on_where_powers_underflow():
    # Near 0.5 by turns the ratio stays near 1 while its two factors leave the doubles.
    turns = np.tile(np.array([0, 1], np.uint8), 20_000)
    method = SequentialTest(AT_LEAST, type_one=0.01, type_two=0.01, indifference=0.05)
    fed(method, turns)
    assert not method.finished
    fed(method, np.ones(100, np.uint8))
    assert method.result().decision is True
    assert method.num_paths < 40_100


def test_the_paper_and_hoeffding_ask_for_these_paths():
    assert hoeffding_paths(1e-2, 1e-10) == 118_595
    assert ApproximateChecking(approximation=1e-2, confidence=1e-10).samples == 118_595
    assert ApproximateChecking(confidence=1e-10, samples=940_000).approximation < 0.0036
    # One path fewer is not enough.
    assert 2 * math.exp(-2 * 118_594 * 1e-4) > 1e-10 >= 2 * math.exp(-2 * 118_595 * 1e-4)


@pytest.mark.parametrize("probability", [0.0, 0.004, 0.3, 1.0])
def test_adaptive_intervals_cover_and_take_fewer_paths_at_the_ends(probability):
    method = AdaptiveProbability(0.02, 0.01)
    missed, paths = 0, []
    for seed in range(40):
        ended = fed(method.fresh(), coins(seed, probability, 60_000))
        lower, upper = ended.result().interval
        missed += not lower <= probability <= upper
        assert ended.result().half_width <= 0.02
        paths.append(ended.num_paths)
    assert missed <= 2
    if probability != 0.3:
        assert max(paths) < hoeffding_paths(0.02, 0.01) / 4


def test_adaptive_reward_intervals_cover_at_every_look():
    rng = np.random.default_rng(7)
    missed = 0
    for _ in range(60):
        method = AdaptiveReward(1e-9, 0.1, largest=8.0)
        for _ in range(20):
            fed(method, np.concatenate([rng.choice([0.0, 1.0, 8.0], 60, p=[0.6, 0.3, 0.1])]))
            lower, upper = method._judged().interval
            if not lower <= 1.1 <= upper:
                missed += 1
                break
    assert missed <= 60 * 0.1 + 3 * math.sqrt(60 * 0.09)
    narrow = fed(AdaptiveReward(0.1, 0.1, largest=8.0), rng.choice([0.0, 1.0], 60_000))
    assert narrow.finished
    assert narrow.result().estimate == pytest.approx(0.5, abs=0.1)


def test_adaptive_stopping_decides_bounds_without_the_width():
    ended = fed(AdaptiveProbability(1e-6, 0.01, Bound(True, 0.5)), coins(1, 0.9, 4000))
    assert ended.result().decision is True
    assert ended.num_paths < 400
    ended = fed(AdaptiveProbability(1e-6, 0.01, Bound(False, 0.5)), coins(1, 0.9, 4000))
    assert ended.result().decision is False
    close = fed(AdaptiveProbability(0.05, 0.01, Bound(True, 0.5)), coins(1, 0.5, 9000)).result()
    assert close.decision is None
    assert close.problem == NOT_PRECISE


def test_undecided_paths_widen_sound_intervals_and_stop_the_others():
    answers = np.array([1] * 50 + [0] * 40 + [2] * 10, np.uint8)
    exact = fed(ExactInterval(0.05, samples=100), answers).result()
    lower, upper = clopper_pearson(50, 100, 0.05)[0], clopper_pearson(60, 100, 0.05)[1]
    assert exact.interval == (lower, upper)
    assert "10 of 100 paths met the path limit" in exact.remarks[0]
    many = np.tile(answers, 40)
    with pytest.raises(MethodError, match="raise the path limit"):
        fed(AdaptiveProbability(0.01, 0.05), many)
    for method, _ in METHODS[:6]:
        if isinstance(method, FixedSampleInterval | SequentialInterval | SequentialTest):
            with pytest.raises(UndecidedPathError, match="maximum path length"):
                fed(method.fresh(), answers[::-1])


def test_a_path_that_is_undecided_after_the_stop_changes_nothing():
    answers = np.concatenate([np.ones(200, np.uint8), np.full(50, 2, np.uint8)])
    method = SequentialTest(Bound(True, 0.5), type_one=0.01, type_two=0.01, indifference=0.1)
    assert fed(method, answers).result().decision is True


def test_equal_answers_are_remarked_on():
    judgement = fed(FixedSampleInterval(STUDENT, 50, confidence=0.01), np.ones(50, np.uint8))
    result = judgement.result()
    assert result.half_width == 0.0
    assert "Clopper-Pearson gives [0.899" in result.remarks[0]


def test_infinite_rewards_make_an_infinite_mean_as_in_prism():
    rewards = np.array([1.0, np.inf, 2.0, 3.0])
    result = fed(FixedSampleInterval(STUDENT, 4, confidence=0.05), rewards).result()
    assert result.estimate == math.inf
    assert math.isnan(result.half_width)
    with pytest.raises(MethodError, match=r"path 1 has reward inf.*-simmaxrwd"):
        fed(AdaptiveReward(0.1, 0.05, largest=10.0), rewards)


def test_several_methods_share_paths_and_stop_on_their_own():
    answers = [coins(1, 0.5, 5000), coins(2, 0.5, 5000)]
    methods = SeveralMethods(
        [ExactInterval(0.05, samples=300), SequentialInterval(STUDENT, 0.03, 0.05)]
    )
    alone = [
        fed(method.fresh(), part).result()
        for method, part in zip(methods.methods, answers, strict=True)
    ]
    first = 0
    while not methods.finished:
        wanted = methods.paths_wanted_next(256)
        parts = [BooleanOutcomes.of(part[first : first + wanted]) for part in answers]
        methods.feed(PathBatch(first, wanted, tuple(parts)))
        first += wanted
    assert [method.result() for method in methods.methods] == alone
    assert methods.num_paths == max(result.num_paths for result in alone)


def test_counts_alone_do_for_fixed_numbers_of_paths_only():
    method = ExactInterval(0.05, samples=30)
    method.feed(BooleanOutcomes(20, 7))
    with pytest.raises(ValueError, match="in path order"):
        method.fresh().feed(BooleanOutcomes(31, 7))
    method.feed(BooleanOutcomes(10, 1))
    assert method.result().estimate == 8 / 30
    with pytest.raises(ValueError, match="counts alone"):
        SequentialInterval(STUDENT, 0.1, 0.1).feed(BooleanOutcomes(20, 7))
