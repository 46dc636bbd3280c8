"""Gauss-Seidel in numba: who reads whom, better colours, sweeps; imported only when wanted."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engines.cpu.kernels import chunk_bounds, use_threads
from engines.formats.csr import FloatArray, IndexArray, index_dtype
from engines.system import SweepSystem

# isort: split
# `engines.cpu.kernels` sets what OpenMP reads when numba loads it.
from numba import njit, prange

NOT_COMPUTED = -1
"""Marks entries for states that keep their values."""


@dataclass(frozen=True)
class Dependencies:
    """Which of the states that a sweep computes read which others.

    Parameters
    ----------
    offsets, reads
        Compressed rows: entry by entry, the update whose value update u reads, or `NOT_COMPUTED`.
    weights
        The entries' values over the sum of all that u reads, shape (entries,).
    """

    offsets: IndexArray
    reads: IndexArray
    weights: FloatArray

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
        return _levels(self.offsets, self.reads, backwards)

    def fresh_entries(self, colours: IndexArray) -> float:
        """Return the share of entries between computed states that see fresh values."""
        fresh, entries = _fresh_entries(self.offsets, self.reads, colours)
        return fresh / max(entries, 1)

    def fresh_weight(self, colours: IndexArray) -> float:
        """Return the same share by weight, each row weighing the same."""
        fresh, weight = _fresh_weight(self.offsets, self.reads, self.weights, colours)
        return fresh / weight if weight > 0.0 else 0.0

    def move_to_better_colours(self, colours: IndexArray, count: int, passes: int) -> None:
        """Move states, in place, to the colour where the most weight of their entries is fresh.

        Parameters
        ----------
        colours
            Shape (updates,), int32.
        count
            Number of colours.
        passes
            The most times that all states are looked at.
        """
        turned = _turned(self.offsets, self.reads, self.weights)
        _move(self.offsets, self.reads, self.weights, *turned, colours, count, passes)


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
    return Dependencies(offsets, reads, _weights(offsets, system.matrix.values))


@njit(cache=True)
def _weights(offsets: IndexArray, values: FloatArray) -> FloatArray:
    weights = np.zeros(len(values))
    for row in range(len(offsets) - 1):
        total = 0.0
        for entry in range(offsets[row], offsets[row + 1]):
            total += values[entry]
        if total > 0.0:
            for entry in range(offsets[row], offsets[row + 1]):
                weights[entry] = values[entry] / total
    return weights


@njit(cache=True)
def _turned(
    offsets: IndexArray, reads: IndexArray, weights: FloatArray
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Return who reads each update: offsets, readers and weights."""
    updates = len(offsets) - 1
    ends = np.zeros(updates + 1, dtype=np.int64)
    for entry in range(len(reads)):
        if reads[entry] >= 0:
            ends[reads[entry] + 1] += 1
    for update in range(updates):
        ends[update + 1] += ends[update]
    cursors = ends[:-1].copy()
    readers = np.empty(ends[updates], dtype=reads.dtype)
    turned = np.empty(ends[updates])
    for row in range(updates):
        for entry in range(offsets[row], offsets[row + 1]):
            update = reads[entry]
            if update >= 0:
                readers[cursors[update]] = row
                turned[cursors[update]] = weights[entry]
                cursors[update] += 1
    return ends, readers, turned


@njit(cache=True)
def _levels(offsets: IndexArray, reads: IndexArray, backwards: bool) -> IndexArray:
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


@njit(cache=True)
def _fresh_entries(offsets: IndexArray, reads: IndexArray, colours: IndexArray) -> tuple[int, int]:
    fresh, entries = 0, 0
    for row in range(len(offsets) - 1):
        for entry in range(offsets[row], offsets[row + 1]):
            other = reads[entry]
            if other >= 0 and other != row:
                entries += 1
                if colours[other] < colours[row]:
                    fresh += 1
    return fresh, entries


@njit(cache=True)
def _fresh_weight(
    offsets: IndexArray, reads: IndexArray, weights: FloatArray, colours: IndexArray
) -> tuple[float, float]:
    fresh, weight = 0.0, 0.0
    for row in range(len(offsets) - 1):
        for entry in range(offsets[row], offsets[row + 1]):
            other = reads[entry]
            if other >= 0 and other != row:
                weight += weights[entry]
                if colours[other] < colours[row]:
                    fresh += weights[entry]
    return fresh, weight


@njit(cache=True)
def _move(
    offsets: IndexArray,
    reads: IndexArray,
    weights: FloatArray,
    reader_offsets: IndexArray,
    readers: IndexArray,
    reader_weights: FloatArray,
    colours: IndexArray,
    count: int,
    passes: int,
) -> None:
    # Sums of `steps` up to colour q are the weight that is fresh if the state has colour q.
    steps = np.zeros(count)
    for _ in range(passes):
        moved = False
        for row in range(len(offsets) - 1):
            steps[:] = 0.0
            for entry in range(offsets[row], offsets[row + 1]):
                other = reads[entry]
                if other >= 0 and other != row and colours[other] + 1 < count:
                    steps[colours[other] + 1] += weights[entry]
            for entry in range(reader_offsets[row], reader_offsets[row + 1]):
                other = readers[entry]
                if other != row:
                    steps[0] += reader_weights[entry]
                    steps[colours[other]] -= reader_weights[entry]
            fresh, best, present, wanted = 0.0, -1.0, 0.0, 0
            for colour in range(count):
                fresh += steps[colour]
                if colour == colours[row]:
                    present = fresh
                if fresh > best:
                    best, wanted = fresh, colour
            # Rounding alone moves nothing.
            if best > present + 1e-12 * (1.0 + abs(present)):
                colours[row] = wanted
                moved = True
        if not moved:
            return


def arranged_rows(
    rows: IndexArray,
    first_of_row: IndexArray,
    offsets: IndexArray,
    old_offsets: IndexArray,
    old_columns: IndexArray,
    old_values: FloatArray,
    position: IndexArray,
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Return rows in another order and with other columns, entries for fresh values first.

    Parameters
    ----------
    rows
        Which row comes where, shape (rows,).
    first_of_row
        Columns below this are fresh, shape (rows,).
    offsets
        Where the rows will start, shape (rows + 1,).
    old_offsets, old_columns, old_values
        The matrix.
    position
        The new number of each column, shape (columns,).

    Returns
    -------
    Where the fresh entries of each row end, shape (rows,); columns and values, shape (entries,).
    """
    fresh_ends = np.empty(len(rows), dtype=offsets.dtype)
    columns = np.empty(len(old_columns), dtype=position.dtype)
    values = np.empty(len(old_values))
    _arrange(
        *(rows, first_of_row, offsets, old_offsets, old_columns, old_values, position),
        *(fresh_ends, columns, values),
    )
    return fresh_ends, columns, values


@njit(cache=True)
def _arrange(
    rows: IndexArray,
    first_of_row: IndexArray,
    offsets: IndexArray,
    old_offsets: IndexArray,
    old_columns: IndexArray,
    old_values: FloatArray,
    position: IndexArray,
    fresh_ends: IndexArray,
    columns: IndexArray,
    values: FloatArray,
) -> None:
    for row in range(len(rows)):
        first, last = old_offsets[rows[row]], old_offsets[rows[row] + 1]
        place = offsets[row]
        for entry in range(first, last):
            column = position[old_columns[entry]]
            if column < first_of_row[row]:
                columns[place], values[place] = column, old_values[entry]
                place += 1
        fresh_ends[row] = place
        for entry in range(first, last):
            column = position[old_columns[entry]]
            if column >= first_of_row[row]:
                columns[place], values[place] = column, old_values[entry]
                place += 1


def colour_chunks(bounds: IndexArray, offsets: IndexArray) -> tuple[IndexArray, IndexArray, int]:
    """Cut each colour into pieces of about equal work, and choose the number of threads.

    Parameters
    ----------
    bounds
        The colours, shape (colours + 1,).
    offsets
        Entries before each update, shape (updates + 1,).

    Returns
    -------
    Where the pieces of each colour start among all, shape (colours + 1,); where each piece starts
    among the updates, shape (pieces + 1,); the number of threads.
    """
    colours = len(bounds) - 1
    threads = use_threads(int(offsets[-1]) // max(colours, 1))
    pieces, starts = [0], [np.zeros(1, dtype=np.int64)]
    for first, last in pairwise(bounds):
        chunks = np.array([0, last - first])
        if threads > 1:
            within = offsets[first : last + 1]
            chunks = chunk_bounds(within - within[0])
        starts.append(chunks[1:] + first)
        pieces.append(pieces[-1] + len(chunks) - 1)
    return np.array(pieces), np.concatenate(starts), threads


@njit(inline="always")
def _larger(largest: float, before: float, after: float, absolute: bool) -> float:
    # Comparisons with NaN fail, so that 0/0 and infinity less infinity count as no change.
    change = abs(after - before)
    scale = 1.0 if absolute else abs(before)
    if change > largest * scale:
        return change / scale
    return largest


@njit(parallel=True, cache=True, error_model="numpy")
def sweep_rows(
    pieces: IndexArray,
    starts: IndexArray,
    offsets: IndexArray,
    fresh_ends: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    offset: FloatArray,
    omega: float,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> float:
    """Make one sweep ``x_new ← (1 − ω) x + ω (b + A x)``, colour by colour.

    A row reads the states of earlier colours from `x_new`, all others from `x`: so the result does
    not depend on who is first within a colour. Returns the largest change; an empty `offset` stands
    for b = 0.
    """
    worst = np.zeros(len(starts) - 1)
    for colour in range(len(pieces) - 1):
        for piece in prange(pieces[colour], pieces[colour + 1]):
            largest = 0.0
            for row in range(starts[piece], starts[piece + 1]):
                total = offset[row] if len(offset) else 0.0
                for entry in range(offsets[row], fresh_ends[row]):
                    total += values[entry] * x_new[columns[entry]]
                for entry in range(fresh_ends[row], offsets[row + 1]):
                    total += values[entry] * x[columns[entry]]
                before = x[row]
                after = total if omega == 1.0 else (1.0 - omega) * before + omega * total
                x_new[row] = after
                largest = _larger(largest, before, after, absolute)
            worst[piece] = largest
    return worst.max() if len(worst) else 0.0


@njit(parallel=True, cache=True, error_model="numpy")
def sweep_groups(
    pieces: IndexArray,
    starts: IndexArray,
    group_offsets: IndexArray,
    offsets: IndexArray,
    fresh_ends: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    offset: FloatArray,
    minimise: bool,
    x: FloatArray,
    x_new: FloatArray,
    absolute: bool,
) -> float:
    """Make one sweep of value iteration with fresh values; the arguments are as in `sweep_rows`."""
    worst = np.zeros(len(starts) - 1)
    for colour in range(len(pieces) - 1):
        for piece in prange(pieces[colour], pieces[colour + 1]):
            largest = 0.0
            for group in range(starts[piece], starts[piece + 1]):
                best = np.inf if minimise else -np.inf
                for row in range(group_offsets[group], group_offsets[group + 1]):
                    total = offset[row] if len(offset) else 0.0
                    for entry in range(offsets[row], fresh_ends[row]):
                        total += values[entry] * x_new[columns[entry]]
                    for entry in range(fresh_ends[row], offsets[row + 1]):
                        total += values[entry] * x[columns[entry]]
                    best = min(best, total) if minimise else max(best, total)
                before = x[group]
                x_new[group] = best
                largest = _larger(largest, before, best, absolute)
            worst[piece] = largest
    return worst.max() if len(worst) else 0.0
