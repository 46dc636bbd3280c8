"""The switches of -sim choose the method that PRISM would, or are refused with its words."""

from __future__ import annotations

import pytest

from bridge.language.text import double_text
from engines.montecarlo.methods import Bound, MethodError
from engines.montecarlo.methods_adaptive import AdaptiveReward
from engines.montecarlo.methods_apmc import ApproximateChecking
from engines.montecarlo.methods_choice import SamplingSwitches, choose_method
from engines.montecarlo.methods_confidence import FixedSampleInterval, SequentialInterval
from engines.montecarlo.methods_exact import ExactInterval

AT_LEAST = Bound(True, 0.5)

CHOICES = [
    ({}, None, False, FixedSampleInterval, "width=unknown, confidence=0.01", 1000),
    (
        {"method": "aci", "width": 0.1},
        None,
        False,
        SequentialInterval,
        "width=0.1, confidence=0.01",
        None,
    ),
    (
        {"method": "apmc", "approximation": 0.05},
        None,
        False,
        ApproximateChecking,
        "approximation=0.05, confidence=0.01",
        1060,
    ),
    (
        {"method": "clopper-pearson"},
        None,
        False,
        ExactInterval,
        "width=unknown, confidence=0.01",
        1000,
    ),
    (
        {"method": "adaptive", "max_reward": 9.0},
        None,
        True,
        AdaptiveReward,
        "width=0.05, confidence=0.01",
        None,
    ),
]


@pytest.mark.parametrize(("switches", "bound", "reward", "kind", "text", "samples"), CHOICES)
def test_switches_choose_the_method(switches, bound, reward, kind, text, samples):
    choice = choose_method(SamplingSwitches(**switches), bound, reward=reward)
    assert isinstance(choice.method, kind)
    shown = f"{text}, number of samples={samples or 'unknown'}"
    assert choice.method.parameters_text(double_text) == shown
    assert not choice.warnings


def test_a_bound_is_tested_sequentially_by_default():
    method = choose_method(SamplingSwitches(), AT_LEAST, reward=False).method
    shown = "type I error=0.01, type II error=0.01, delta=0.05, iterations=unknown"
    assert method.parameters_text(double_text) == shown


@pytest.mark.parametrize(
    ("switches", "bound", "reward", "error"),
    [
        ({"method": "sprt"}, None, False, "SPRT on a quantitative"),
        ({"method": "apmc"}, None, True, "APMC method on reward properties"),
        ({"width": 0.1, "confidence": 0.1, "samples": 3}, None, False, "all three parameters"),
        ({"width": 0.6}, AT_LEAST, False, "too wide"),
        ({"method": "adaptive"}, None, True, "-simmaxrwd"),
        ({"method": "clopper-pearson"}, None, True, "reward properties"),
        ({"method": "apmc", "approximation": 1e-6}, None, False, "too high"),
        ({"method": "apmc", "approximation": 0.01, "samples": 9}, None, False, "N\\*eps\\^2"),
        ({"method": "guess"}, None, False, "Unknown simulation method"),
    ],
)
def test_switches_that_make_no_sense_are_refused(switches, bound, reward, error):
    with pytest.raises(MethodError, match=error):
        choose_method(SamplingSwitches(**switches), bound, reward=reward)


def test_switches_without_use_are_warned_of():
    choice = choose_method(SamplingSwitches(approximation=0.1), None, reward=False)
    assert choice.warnings == (
        "Option -simapprox is not used for the CI method and is being ignored",
    )
