"""The tasks of a notebook user: what they return, and how their lines are counted."""

from __future__ import annotations

import numpy as np
import pytest


def test_what_closed_forms_know(load):
    tasks = load("notebook_tasks")
    assert tasks.our_chain() == pytest.approx(150 / 299)
    shares = (1 / 1.1) ** np.arange(201)
    assert tasks.our_queue() == pytest.approx(shares @ np.arange(201) / shares.sum())
    least, chance = tasks.our_strategy()
    assert (least, chance) == (pytest.approx(2.0), pytest.approx(0.75))
    assert tasks.our_paths() == pytest.approx(150, abs=2)


def test_lines_are_those_of_the_body(load):
    tasks = load("notebook_tasks")

    def task():
        """Say what it does."""
        # A comment is no line.
        first = 1

        return first

    assert tasks.body_lines(task) == 2
