"""What the embedded front end makes of PRISM's switches."""

from __future__ import annotations

import pytest

from bridge.check.switches import read_switches
from bridge.own_switches import UsageError
from engines.model.environment import Method
from prism_hooks.options import HookOptions


def environment(*words: str):
    return read_switches(("model.tra", *words), HookOptions()).environment


def test_components_are_solved_one_after_the_other_where_that_is_asked_for():
    assert environment("-topological").topological
    assert not environment().topological
    both = read_switches(("model.tra", "-ii", "-topological", "-power"), HookOptions())
    assert both.environment.bounds
    assert both.environment.topological
    assert both.environment.method is Method.POWER


def test_topological_takes_no_options():
    with pytest.raises(UsageError, match="topological:backwards"):
        environment("-topological:backwards")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        # What is no number is quoted, what is out of range is not.
        (("-epsilon", "x"), 'Invalid value "x" for -epsilon switch'),
        (("-epsilon", "inf"), 'Invalid value "inf" for -epsilon switch'),
        (("-epsilon", "-1"), "Invalid value for -epsilon switch"),
        (("-maxiters", "1.5"), 'Invalid value "1.5" for -maxiters switch'),
        (("-maxiters", "9" * 5000), f'Invalid value "{"9" * 5000}" for -maxiters switch'),
        (("-maxiters", "2147483648"), 'Invalid value "2147483648" for -maxiters switch'),
        (("-simsamples", "2147483648"), 'Invalid value "2147483648" for -simsamples switch'),
        (("-maxiters", "-3"), "Invalid value for -maxiters switch"),
        (("-omega", "x"), 'Invalid value "x" for -omega switch'),
        (("-simsamples", "x"), 'Invalid value "x" for -simsamples switch'),
        (("-simsamples", "0"), "Invalid value for -simsamples switch"),
        (("-simpathlen", "x"), 'Invalid value "x" for -simpathlen switch'),
        (("-simpathlen", "-1"), "Invalid value for -simpathlen switch"),
        (("-simconf", "2"), "Invalid value for -simconf switch"),
        (("-simwidth", "0"), "Invalid value for -simwidth switch"),
        (("-epsilon",), "No value specified for -epsilon switch"),
        (("-",), "Invalid empty switch"),
        (("--",), "Invalid empty switch"),
        (("a.props", "b.props"), "Invalid argument syntax"),
    ],
)
def test_wrong_switches_are_refused_in_prisms_words(words, message):
    with pytest.raises(UsageError) as raised:
        environment(*words)
    assert str(raised.value) == message


def test_limits_may_have_a_sign_and_be_zero():
    assert environment("-maxiters", "+3").max_iterations == 3
    assert environment("-maxiters", "0").max_iterations == 0
    assert environment("-epsilon", "0").epsilon == 0.0
