"""Colours in numba: who reads whom, levels, what is fresh, moves to better colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.cpu.kernels import use_threads
from engines.formats.csr import FloatArray, IndexArray, MaskArray, index_dtype
from engines.linear.moves import MOVES, UNIT, step_keys
from engines.system import SweepSystem

# isort: split
# `engines.cpu.kernels` sets what OpenMP reads when numba loads it.
from numba import get_num_threads, njit, prange

NOT_COMPUTED = -1
"""Marks entries for states that keep their values."""

PIECES_PER_THREAD = 8

WeightArray = NDArray[np.int32]


@dataclass(frozen=True)
class Dependencies:
    """Which of the states that a sweep computes read which others.

    Parameters
    ----------
    offsets, reads
        Compressed rows: entry by entry, the update whose value update u reads, or `NOT_COMPUTED`.
    weights
        The entries' values over the sum of all that u reads, in units of 1 / `UNIT`, shape
        (entries,).
    """

    offsets: IndexArray
    reads: IndexArray
    weights: WeightArray

    @property
    def updates(self) -> int:
        """Number of states that a sweep computes."""
        return len(self.offsets) - 1

    def levels(self, backwards: bool) -> IndexArray:
        """Return the step at which each state is computed by sequential Gauss-Seidel.

        Parameters
        ----------
        backwards
            Whether the last state comes first.
        """
        return find_levels(self.offsets, self.reads, backwards)

    def fresh_entries(self, colours: IndexArray) -> float:
        """Return the share of entries between computed states that see fresh values."""
        pieces = self._pieces()
        sums = np.zeros((len(pieces) - 1, 2), dtype=np.int64)
        _count_fresh_entries(pieces, self.offsets, self.reads, colours, sums)
        fresh, entries = (int(total) for total in sums.sum(axis=0))
        return fresh / max(entries, 1)

    def fresh_weights(self, levels: IndexArray, counts: Sequence[int]) -> list[float]:
        """Return the same share by weight, each row weighing the same, if levels are coloured.

        Parameters
        ----------
        levels
            Shape (updates,).
        counts
            For each of these numbers of colours, a state's colour being its level modulo it.
        """
        depth = int(levels.max(initial=0)) + 1
        colours = np.arange(depth, dtype=np.int32)[:, None] % np.array(counts, dtype=np.int32)
        pieces = self._pieces()
        sums = np.zeros((len(pieces) - 1, len(counts) + 1), dtype=np.int64)
        graph = (self.offsets, self.reads, self.weights)
        _add_fresh_weights(pieces, *graph, levels, colours, sums)
        *fresh, weight = (int(total) for total in sums.sum(axis=0))
        return [share / weight if weight > 0 else 0.0 for share in fresh]

    def move_to_better_colours(self, colours: IndexArray, count: int, levels: IndexArray) -> None:
        """Move states, in place, to the colour where the most weight of their entries is fresh.

        Parameters
        ----------
        colours
            Shape (updates,), int32.
        count
            Number of colours.
        levels
            Shape (updates,): the steps of sequential Gauss-Seidel.

        Notes
        -----
        As `engines.linear.moves` says; no move makes less weight fresh.
        """
        keys, _ = step_keys(levels, MOVES[0])
        # Renumbered by the steps of the first pass, what a step looks at lies together.
        order = _by_step(keys)
        graph = _neighbours(self.offsets, self.reads, self.weights, order)
        there = colours[order]
        wanted = np.zeros(self.updates, dtype=np.int32)
        gains = np.zeros(self.updates, dtype=np.int64)
        awake = np.ones(self.updates, dtype=np.bool_)
        for move in MOVES:
            keys, steps = step_keys(levels, move)
            keys = keys[order]
            bounds = np.zeros(steps + 1, dtype=np.int64)
            np.cumsum(np.bincount(keys, minlength=steps), out=bounds[1:])
            members = _by_step(keys)
            threads = use_threads(2 * len(self.reads) // steps)
            pieces = 1 if threads == 1 else threads * PIECES_PER_THREAD
            of_pass = (order, members, bounds, keys)
            sums = np.zeros((pieces, count + 1), dtype=np.int64)
            _move(*graph, *of_pass, awake, wanted, gains, there, sums)
        colours[order] = there

    def _pieces(self) -> IndexArray:
        threads = use_threads(len(self.reads))
        pieces = 1 if threads == 1 else get_num_threads() * PIECES_PER_THREAD
        return np.linspace(0, self.updates, pieces + 1).astype(np.int64)


def _by_step(keys: IndexArray) -> IndexArray:
    # Of numbers of 16 bits, NumPy's stable order is a radix sort.
    return np.argsort(keys.astype(np.uint16), kind="stable").astype(np.int32)


def dependencies(system: SweepSystem) -> Dependencies:
    """Return which states read which others.

    Parameters
    ----------
    system
        A system without scaling.
    """
    offsets, reads = system.matrix.row_offsets, system.matrix.columns
    if system.group_offsets is not None:
        offsets = offsets[system.group_offsets]
    if system.states is not None:
        update = np.full(system.num_states, NOT_COMPUTED, dtype=index_dtype(system.num_states))
        update[system.states] = np.arange(len(system.states), dtype=update.dtype)
        reads = update[reads]
    elif system.num_updates < system.num_states:
        reads = np.where(reads < system.num_updates, reads, NOT_COMPUTED)
    use_threads(len(reads))
    weights = np.zeros(len(reads), dtype=np.int32)
    _weigh(offsets, system.matrix.values, weights)
    return Dependencies(offsets, reads, weights)


@njit(parallel=True, cache=True, error_model="numpy")
def _weigh(offsets: IndexArray, values: FloatArray, weights: WeightArray) -> None:
    for row in prange(len(offsets) - 1):
        total = 0.0
        for entry in range(offsets[row], offsets[row + 1]):
            total += values[entry]
        if total > 0.0:
            factor = UNIT / total
            for entry in range(offsets[row], offsets[row + 1]):
                weights[entry] = np.int32(np.rint(values[entry] * factor))


@njit(cache=True)
def _neighbours(
    offsets: IndexArray, reads: IndexArray, weights: WeightArray, order: IndexArray
) -> tuple[IndexArray, IndexArray, IndexArray, WeightArray]:
    """Return the updates that each update reads, and those that read it, one after the other.

    That is: where those of each begin, shape (updates + 1,), where the readers among them begin,
    shape (updates,), then the updates and the weights of the entries. Updates have their places in
    `order` for numbers.
    """
    updates = len(order)
    place_of = np.empty(updates, dtype=np.int32)
    for place in range(updates):
        place_of[order[place]] = place
    middles = np.zeros(updates, dtype=np.int64)
    starts = np.zeros(updates + 1, dtype=np.int64)
    for row in range(updates):
        for entry in range(offsets[row], offsets[row + 1]):
            other = reads[entry]
            if other >= 0 and other != row:
                middles[place_of[row]] += 1
                starts[place_of[other] + 1] += 1
    for place in range(updates):
        starts[place + 1] += starts[place] + middles[place]
        middles[place] += starts[place]
    cursors, readers = starts[:-1].copy(), middles.copy()
    others = np.empty(starts[updates], dtype=np.int32)
    beside = np.empty(starts[updates], dtype=np.int32)
    for row in range(updates):
        place = place_of[row]
        for entry in range(offsets[row], offsets[row + 1]):
            other = reads[entry]
            if other >= 0 and other != row:
                read = place_of[other]
                others[cursors[place]], beside[cursors[place]] = read, weights[entry]
                cursors[place] += 1
                others[readers[read]], beside[readers[read]] = place, weights[entry]
                readers[read] += 1
    return starts, middles, others, beside


@njit(cache=True)
def find_levels(offsets: IndexArray, reads: IndexArray, backwards: bool) -> IndexArray:
    """Return the levels of states; the arguments are those of `Dependencies`."""
    updates = len(offsets) - 1
    levels = np.zeros(updates, dtype=np.int32)
    for step in range(updates):
        row = updates - 1 - step if backwards else step
        level = levels[row]
        for entry in range(offsets[row], offsets[row + 1]):
            other = reads[entry]
            earlier = other >= 0 and (other > row if backwards else other < row)
            if earlier and levels[other] >= level:
                level = levels[other] + 1
        levels[row] = level
        # Later states that this one reads must not be computed before it has read them.
        for entry in range(offsets[row], offsets[row + 1]):
            other = reads[entry]
            later = other >= 0 and (other < row if backwards else other > row)
            if later and levels[other] < level:
                levels[other] = level
    return levels


@njit(parallel=True, cache=True)
def _count_fresh_entries(
    pieces: IndexArray,
    offsets: IndexArray,
    reads: IndexArray,
    colours: IndexArray,
    sums: IndexArray,
) -> None:
    """Count for each piece the fresh entries, and all of them."""
    for piece in prange(len(pieces) - 1):
        fresh, entries = 0, 0
        for row in range(pieces[piece], pieces[piece + 1]):
            for entry in range(offsets[row], offsets[row + 1]):
                other = reads[entry]
                if other >= 0 and other != row:
                    entries += 1
                    if colours[other] < colours[row]:
                        fresh += 1
        sums[piece, 0], sums[piece, 1] = fresh, entries


@njit(parallel=True, cache=True)
def _add_fresh_weights(
    pieces: IndexArray,
    offsets: IndexArray,
    reads: IndexArray,
    weights: WeightArray,
    levels: IndexArray,
    colours: IndexArray,
    sums: IndexArray,
) -> None:
    """Add for each piece the fresh weight by some colourings of levels, and last all weight."""
    tried = colours.shape[1]
    for piece in prange(len(pieces) - 1):
        for row in range(pieces[piece], pieces[piece + 1]):
            for entry in range(offsets[row], offsets[row + 1]):
                other = reads[entry]
                if other >= 0 and other != row:
                    sums[piece, tried] += weights[entry]
                    for which in range(tried):
                        if colours[levels[other], which] < colours[levels[row], which]:
                            sums[piece, which] += weights[entry]


@njit(parallel=True, cache=True)
def _move(
    starts: IndexArray,
    middles: IndexArray,
    others: IndexArray,
    weights: WeightArray,
    order: IndexArray,
    members: IndexArray,
    bounds: IndexArray,
    keys: IndexArray,
    awake: MaskArray,
    wanted: IndexArray,
    gains: IndexArray,
    colours: IndexArray,
    sums: IndexArray,
) -> None:
    pieces, count = len(sums), sums.shape[1] - 1
    for step in range(len(bounds) - 1):
        first, last = bounds[step], bounds[step + 1]
        size = (last - first + pieces - 1) // pieces
        for piece in prange(pieces):
            # Sums up to colour q are the weight that is fresh if the state has colour q.
            steps = sums[piece]
            for place in range(first + piece * size, min(first + (piece + 1) * size, last)):
                row = members[place]
                gains[row] = 0
                # Where no neighbour has moved since the last look there is nothing to gain.
                if not awake[row]:
                    continue
                awake[row] = False
                # Nor where all is fresh, as in most rows of a model that goes by its levels.
                stale, own = np.int64(0), colours[row]
                for entry in range(starts[row], middles[row]):
                    if colours[others[entry]] >= own:
                        stale += weights[entry]
                for entry in range(middles[row], starts[row + 1]):
                    if colours[others[entry]] <= own:
                        stale += weights[entry]
                if stale == 0:
                    continue
                for colour in range(count + 1):
                    steps[colour] = 0
                for entry in range(starts[row], middles[row]):
                    steps[colours[others[entry]] + 1] += weights[entry]
                for entry in range(middles[row], starts[row + 1]):
                    steps[0] += weights[entry]
                    steps[colours[others[entry]]] -= weights[entry]
                fresh, best, present, better = np.int64(0), np.int64(-1), np.int64(0), 0
                for colour in range(count):
                    fresh += steps[colour]
                    if colour == own:
                        present = fresh
                    if fresh > best:
                        best, better = fresh, colour
                wanted[row], gains[row] = better, best - present
        for piece in prange(pieces):
            for place in range(first + piece * size, min(first + (piece + 1) * size, last)):
                row = members[place]
                if gains[row] <= 0:
                    continue
                goes = True
                for entry in range(starts[row], starts[row + 1]):
                    other = others[entry]
                    if keys[other] == step and _first(gains, order, other, row):
                        goes = False
                        break
                if not goes:
                    awake[row] = True
                    continue
                colours[row] = wanted[row]
                for entry in range(starts[row], starts[row + 1]):
                    awake[others[entry]] = True


@njit(inline="always")
def _first(gains: IndexArray, order: IndexArray, other: int, row: int) -> bool:
    """Return whether another state's move comes before one's own."""
    theirs, own = gains[other], gains[row]
    return bool(theirs > own or (theirs == own and order[other] < order[row]))
