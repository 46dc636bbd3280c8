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
