"""Reference values that need no front end: the engines alone meet them."""

from __future__ import annotations

import pytest

from tests.engines import published

KINDS = ("unbounded until", "reachability reward", "total reward", "steady-state")
CASES = [item for kind in KINDS for item in published.published(kind)]


@pytest.mark.parametrize("item", CASES, ids=str)
def test_published_values(item):
    assert published.evaluate(item) == pytest.approx(item.value, rel=1e-7)
