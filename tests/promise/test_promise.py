"""Random models: the exact value lies within what is printed, by every route."""

from __future__ import annotations

import pytest

from tests.promise.asking import Questioner


def broken(folder, seeds, routes, settings=(), families=()):
    """The promises that are not kept."""
    with Questioner(folder) as asking:
        for seed in seeds:
            asking.ask(seed, routes, settings, families=families)
        assert asking.tally.asked
        return "\n".join(violation.text() for violation in asking.tally.violations)
