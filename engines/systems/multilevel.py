"""Steady states by multilevel aggregation: far fewer sweeps where mass has far to go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from engines.arrays import FloatArray
from engines.systems.one_sided import HasLongestRun, Sweeper


@dataclass(frozen=True)
class CycleTuning:
    """How states are joined into levels, and what a cycle does on each of them.

    Parameters
    ----------
    omega
        Relaxation of the smoothing sweeps: with 1, cycles stall on periodic chains (polling).
    sweeps_before, sweeps_after
        Smoothing sweeps on each level, on the way down and on the way up; even numbers.
    passes
        How often states are joined in pairs for a level: aggregates are pairs of pairs of pairs.
        More of them need more sweeps: mass has to cross an aggregate within a cycle.
    rounds
        Rounds of proposals in which states find a partner; in each, half of them propose.
    enough
        A partner must be tied at least so many times as strongly as the strongest neighbour, or
        else smoothing could not move mass between the two, and no correction either.
    coarsest_states
        A chain of so few states is solved by elimination.
    least_shrinking
        A level that keeps a larger share of the states does not pay: a star has no pairs.
    longest_row_entries
        Entries that the rows of an aggregate may have together: its columns are searched one by
        one.
    floor
        No probability is let fall below, so that each state keeps a weight within its aggregate.
    smallest_looked_at
        The change of smaller probabilities says nothing: they may lie on the floor.
    largest_correction
        Bounds what one cycle multiplies by, so that products of corrections stay finite.
    cycles_a_run
        The host looks at the changes after so many cycles.
    """

    omega: float = 0.85
    sweeps_before: int = 4
    sweeps_after: int = 4
    passes: int = 3
    rounds: int = 6
    enough: float = 0.25
    coarsest_states: int = 64
    least_shrinking: float = 0.9
    longest_row_entries: int = 8192
    floor: float = 1e-290
    smallest_looked_at: float = 1e-280
    largest_correction: float = 1e50
    cycles_a_run: int = 6

    @property
    def members(self) -> int:
        """The most states of an aggregate."""
        return 1 << self.passes


MOST_CYCLES = 480
"""Cycles after which a solve by levels is given up."""


class Levels(Sweeper, HasLongestRun, Protocol):
    """A sweeper whose sweeps are cycles."""

    def restarted(self, start: FloatArray) -> Levels:
        """Return cycles from another start over the same levels; the two take turns.

        Parameters
        ----------
        start
            Shape (states,).
        """
