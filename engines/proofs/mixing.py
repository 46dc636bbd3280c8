"""Whether sweeps for a steady state have mixed: seen from a start that is far from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from engines.arrays import FloatArray
from engines.diagrams.system import System
from engines.errors import DeviceMemoryError
from engines.host.exits import exit_rates
from engines.systems.one_sided import HasComparison, Sweeper

NEGLIGIBLE = 1e-280
"""States of a smaller share of the largest value are not looked at: their digits are lost."""

Prepare = Callable[[Any], Sweeper]


def sweeps_of_memory(
    system: System, prepare: Prepare, values: FloatArray, enough: float, sweeps: int
) -> float:
    """Return in how many sweeps the slowest part of an error falls to 1/e, at most.

    Parameters
    ----------
    system
        A system for π Q = 0 of one recurrent class, before scaling.
    prepare
        Prepares sweeps of a system, which do not stop by themselves.
    values
        Approximately π, not normalised, shape (states,).
    enough
        The number that will do; the longer one looks, the smaller it gets.
    sweeps
        The most sweeps to try.

    Returns
    -------
    That number, infinite where these sweeps do not bring the far start nearer.

    Notes
    -----
    The changes of sweeps from a single start do not show a class that is hardly ever left: little
    flows, so little changes, however wrong the classes are weighed. So half of the flow is moved to
    one state: every part of the chain, wherever it lies, then has half of what it should have. The
    quotient of both vectors is an expectation under the reversed chain (Kemeny and Snell 1960,
    section 5.3), so that sweeps bring its extremes together, and a part that exchanges little with
    the one state stays at a half. If after m sweeps the quotient is off by d < 1/2 at most, what
    was off by a half everywhere has fallen by e every m / ln(1/2d) sweeps.
    """
    exits = exit_rates(system)
    common = int(np.argmax(values))
    # How far, relative to the steady state, the start is from it everywhere but at one state.
    away = 0.5
    moved = (1.0 - away) * float(values @ exits) / exits[common]
    far = np.multiply(values, away, out=exits)
    far[common] += moved
    sweeper = prepare(replace(system, start=far))
    farthest = _comparison(sweeper, values, NEGLIGIBLE * float(values[common]))
    done, memory = 0, math.inf
    while done < sweeps and memory > enough:
        batch = min(max(16, done // 4), sweeps - done)
        done += len(sweeper.run(batch))
        distance = farthest()
        if distance < away:
            memory = min(memory, done / math.log(away / max(distance, 1e-300)))
    return memory


def _comparison(sweeper: Sweeper, reference: FloatArray, least: float) -> Callable[[], float]:
    """Return what tells how far the iterate is from a vector; see `HasComparison`."""
    if isinstance(sweeper, HasComparison):
        # Where the vector does not fit there, the host compares: else nothing would be confirmed.
        with suppress(DeviceMemoryError):
            there = sweeper.comparison(reference, least)
            if there is not None:
                return there
    looked_at = reference > least
    whole = bool(looked_at.all())
    wanted = reference if whole else reference[looked_at]

    def farthest() -> float:
        found = sweeper.values()
        found = (found if whole else found[looked_at]) / wanted
        return float(max(found.max() - 1.0, 1.0 - found.min()))

    return farthest


def change_of_a_sweep(system: System, prepare: Prepare, values: FloatArray) -> float:
    """Return how much a sweep changes a steady state, relative to it.

    Parameters
    ----------
    system, prepare, values
        As in `sweeps_of_memory`; the same states are not looked at.
    """
    sweeper = prepare(replace(system, start=values))
    sweeper.run(1)
    looked_at = values > NEGLIGIBLE * values.max()
    before = values[looked_at]
    return float(np.max(np.abs(sweeper.values()[looked_at] - before) / before))
