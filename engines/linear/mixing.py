"""Whether sweeps for a steady state have mixed: seen from a start that is far from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engines.cpu.prepare import off_diagonal_row_sums
from engines.formats.csr import FloatArray
from engines.system import Sweeper, SweepSystem

MIXED = 0.02
"""Distance of the far start from the steady state, in every state relative, at which it is there;
it begins with at least a half."""

LIFE = 1.0 / math.log(0.5 / MIXED)
"""Sweeps in which the slowest part falls to 1/e, of those in which it fell from a half to that."""

FIRST_BATCH = 16

NEGLIGIBLE = 1e-280
"""States of a smaller share of the largest value are not looked at: their digits are lost."""

Prepare = Callable[[SweepSystem], Sweeper]


def sweeps_of_memory(
    system: SweepSystem, prepare: Prepare, values: FloatArray, sweeps: int
) -> float:
    """Return how many sweeps it takes to forget the start, but for a factor e.

    Parameters
    ----------
    system
        A system for π Q = 0 of one recurrent class, before scaling.
    prepare
        Prepares sweeps of a system, which do not stop by themselves.
    values
        Approximately π, not normalised, shape (states,).
    sweeps
        The most sweeps to try.

    Returns
    -------
    That number, or infinity where the start is not forgotten within the sweeps.

    Notes
    -----
    The changes of sweeps from a single start do not show a class that is hardly ever left: little
    flows, so little changes, however wrong the classes are weighed. So half of the flow is moved to
    one state: every part of the chain, wherever it lies, then has half of what it should have. The
    quotient of both vectors is an expectation under the reversed chain (Kemeny and Snell 1960,
    section 5.3), so that sweeps bring its extremes together, and a part that exchanges little with
    the one state stays at a half.
    """
    exits = off_diagonal_row_sums(system.matrix)
    flow = float(values @ exits)
    common = int(np.argmax(values))
    far = 0.5 * values
    far[common] += 0.5 * flow / exits[common]
    sweeper = prepare(replace(system, start=far))
    looked_at = np.flatnonzero(values > NEGLIGIBLE * values[common])
    wanted = values[looked_at]
    done = 0
    while done < sweeps:
        batch = min(max(FIRST_BATCH, done // 4), sweeps - done)
        sweeper.run(batch)
        done += batch
        distance = float(np.max(np.abs(sweeper.values()[looked_at] / wanted - 1.0)))
        if distance <= MIXED:
            return LIFE * done
    return math.inf
