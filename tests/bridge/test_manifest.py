"""The manifest of an export."""

from __future__ import annotations

import json
from dataclasses import fields

from bridge.exchange.manifest import plain_settings, read_settings
from engines.model.environment import (
    BoundMethod,
    Convention,
    IntervalOptions,
    Method,
    SolverEnvironment,
)


def test_settings_come_back_from_json_as_they_were():
    given = SolverEnvironment(
        method=Method.JOR,
        convention=Convention.EXPLICIT,
        epsilon=1e-9,
        max_iterations=77,
        omega=0.7,
        topological=True,
        bounds=True,
        interval=IntervalOptions(BoundMethod.VARIANT_2, upper=3.5, select_midpoint=False),
    )
    back = read_settings(json.loads(json.dumps(plain_settings(given))))
    assert back == given
    # Words of an enumeration equal its members, but are not what the engines compare with.
    for item in fields(SolverEnvironment):
        one, other = getattr(back, item.name), getattr(given, item.name)
        assert type(one) is type(other), item.name
