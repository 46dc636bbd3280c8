"""Whether an iterate, a little enlarged, is an upper bound: Park's induction over sweeps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from engines.arrays import FloatArray
from engines.diagrams.system import System
from engines.systems.one_sided import Sweeper
from engines.systems.two_sided import UNIT_ROUNDOFF

Prepare = Callable[[Any], Sweeper]


def proven_error(
    system: System,
    prepare: Prepare,
    values: FloatArray,
    distance: float,
    absolute: bool,
    sweeps: int,
) -> float:
    """Bound how far the least solution lies above an iterate from below.

    Parameters
    ----------
    system
        A system with choices, before any scaling; its entries are not negative.
    prepare
        Prepares sweeps of a system, which do not stop by themselves.
    values
        The iterate, shape (states,).
    distance
        How far above it the guess lies, relative or absolute.
    absolute
        Whether distances are absolute.
    sweeps
        The most sweeps to try.

    Returns
    -------
    The distance of the upper bound that was found, infinite if none was.

    Notes
    -----
    If m sweeps take u to a vector that is nowhere above u, the least solution is at most u: Park's
    induction, as in Hartmanns and Kaminski (2020), Optimistic Value Iteration, where m = 1. More
    sweeps find it sooner, because a single one cannot lower a state whose successors were all moved
    up by as much. States of an end component hold each other up and differ by what the iteration
    has left; what the first sweeps make of the guess levels them.
    """
    guess: FloatArray = values + distance if absolute else values * (1.0 + distance)
    if system.states is not None:
        # Values of others are known: they are no guess, and sweeps leave them as they are.
        known = np.ones(len(values), dtype=np.bool_)
        known[system.states] = False
        guess[known] = values[known]
    done, lifted = 0, False
    while done < sweeps:
        sweeper = prepare(replace(system, start=guess))
        since, batch, rising = 0, 1, True
        while done < sweeps and rising:
            sweeper.run(batch)
            done, since = done + batch, since + batch
            after = sweeper.values()
            # What a value may rise by rounding alone.
            slack = 1.0 + since * 4.0 * UNIT_ROUNDOFF
            if bool(np.all(after <= np.maximum(guess, guess * slack))):
                return _distance(values, guess, absolute)
            batch = max(1, min(since, sweeps - done))
            # A guess that still rises is then replaced by what it rises to.
            rising = lifted or since < 16
        guess, lifted = np.maximum(guess, after), True
    return math.inf


def _distance(below: FloatArray, above: FloatArray, absolute: bool) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        width = above - below if absolute else (above - below) / below
    # What is 0 on both sides is no distance.
    return float(np.fmax.reduce(width, initial=0.0))
