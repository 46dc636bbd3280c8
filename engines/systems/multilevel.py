"""Steady states by multilevel aggregation: far fewer sweeps where mass has far to go."""

from __future__ import annotations

from typing import Protocol

from engines.arrays import FloatArray
from engines.systems.one_sided import Sweeper

OMEGA = 0.85
"""Relaxation of the smoothing sweeps: with 1, cycles stall on periodic chains (polling)."""

SWEEPS_BEFORE = 2
SWEEPS_AFTER = 2
"""Smoothing sweeps on each level, on the way down and on the way up; even numbers."""

PASSES = 2
MEMBERS = 1 << PASSES
"""Aggregates are pairs of pairs, so of `MEMBERS` states at most."""

ROUNDS = 6
"""Rounds of proposals in which states find a partner; in each, half of them propose."""

ENOUGH = 0.25
"""A partner must be tied at least so many times as strongly as the strongest neighbour, or else
smoothing could not move mass between the two, and no correction either."""

COARSEST = 64
"""A chain of so few states is solved by elimination."""

LEAST_SHRINKING = 0.9
"""A level that keeps a larger share of the states does not pay: a star has no pairs."""

LONGEST_ROW = 4096
"""Entries that the rows of an aggregate may have together: its columns are searched one by one."""

FLOOR = 1e-290
"""No probability is let fall below, so that each state keeps a weight within its aggregate."""

SMALLEST_LOOKED_AT = 1e-280
"""The change of smaller probabilities says nothing: they may lie on the floor."""

LARGEST_CORRECTION = 1e50
"""Bounds what one cycle multiplies by, so that products of corrections stay finite."""

CYCLES_A_RUN = 6
"""The host looks at the changes after so many cycles."""

MOST_CYCLES = 480


class Levels(Sweeper, Protocol):
    """A sweeper whose sweeps are cycles."""

    def restarted(self, start: FloatArray) -> Levels:
        """Return cycles from another start over the same levels; the two take turns.

        Parameters
        ----------
        start
            Shape (states,).
        """
