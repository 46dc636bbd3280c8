"""Moves to better colours: who moves when, the same on the CPU and on a GPU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.arrays import IndexArray

UNIT = float(2**30)
"""A row's weight. Weights are whole numbers, so that no sum of them depends on its order."""


@dataclass(frozen=True)
class Move:
    """A pass in which every state may move once, some at a time.

    Parameters
    ----------
    bands
        The most bands of levels that move one after the other.
    classes
        Into so many classes the states of a band are split by a hash of their number; they move one
        after the other.
    """

    bands: int
    classes: int

    def bands_of(self, depth: int) -> int:
        """Return how many bands there are of so many levels."""
        return min(self.bands, max(depth, 1))


MOVES = (Move(256, 4), Move(1, 8), Move(1, 8))
"""The passes over all states.

In each step the states of one class of one band look at the colours that there are. Those move
that would gain and have no neighbour in the same step that comes before them: one that gains more,
or as much and has a lower number. So no two neighbours move at once, and no move makes less weight
fresh. That is Luby's way to independent sets (1986, A simple parallel algorithm for the maximal
independent set problem), with gains for lots.

In the order of levels each state sees where those have gone that the sweep computes before it, as
in a pass from the first state to the last: where a grid of states is swept (tandem queues), steps
that ignore the order leave a quarter more sweeps. Later passes mend what the first has left."""

MULTIPLIER = 0x9E3779B97F4A7C15
"""2⁶⁴ over the golden ratio: the hash is Fibonacci's (Knuth, The Art of Computer Programming 3,
section 6.4)."""

HASH_SHIFT = 40
"""The lowest bits of a product are dropped: they depend on few bits of the number."""


def step_keys(levels: IndexArray, move: Move) -> tuple[IndexArray, int]:
    """Return the step of a pass in which each state may move, shape (states,), and how many.

    Parameters
    ----------
    levels
        Shape (states,): the steps of sequential Gauss-Seidel.
    move
        The pass.
    """
    depth = int(levels.max(initial=0)) + 1
    bands = move.bands_of(depth)
    first_of_level = np.arange(depth) * bands // depth * move.classes
    keys = first_of_level.astype(np.int32)[levels]
    # In place: these arrays may have a number for each of many millions of states.
    hashed = np.arange(len(levels), dtype=np.uint64)
    hashed *= np.uint64(MULTIPLIER)
    hashed >>= np.uint64(HASH_SHIFT)
    hashed %= np.uint64(move.classes)
    keys += hashed.astype(np.int32)
    return keys, bands * move.classes
