"""Rows of the same shape as runs: found, put next to each other, and laid out for SIMD sweeps.

Neighbouring rows of a probabilistic model often read the same distances: row i + 1 has its columns
one further than row i. Such rows are a *run*. A sweep of a run needs its distances once and no
column numbers, and its inner loops go along the rows, so that the processor takes several rows in
one instruction. Where rows of the same shape are not neighbours, the states are renumbered until
they are.

This is the row-pattern dictionary of `engines.cuda.formats.patterns` for processors with vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.arrays import FloatArray, IndexArray, offsets_of
from engines.host import runs as run_finding
from engines.host.runs import RunFinder
from engines.systems.one_sided import SweepSystem

LONGEST_RUN = 1024
"""Rows of a run at most: its part of the iterate stays in the first cache, and work divides."""


@dataclass(frozen=True)
class Runs:
    """A system's rows as runs.

    Parameters
    ----------
    firsts, lengths
        Shape (runs,): position of the first state of a run, and its number of states.
    run_choices
        Shape (runs + 1,): where the choices of a run start; chains have one a run.
    choice_pairs
        Shape (choices + 1,): where the pairs of a choice start.
    distances
        Shape (pairs,): position of the column less position of the row's state.
    numbers
        Values, shape (pairs,) where the rows of a run share them. Else those of a run's first pair
        by rows, then those of its second, and so on.
    number_starts
        Shape (runs,): where the numbers of a run start.
    givens, given_starts
        The right-hand side by choices, in the same two ways; both empty for none.
    positions
        Shape (states,): the new number of each state; None where none has changed.
    numbers_apart, givens_apart
        Whether rows have their own numbers, and their own right-hand side.
    """

    firsts: IndexArray
    lengths: IndexArray
    run_choices: IndexArray
    choice_pairs: IndexArray
    distances: IndexArray
    numbers: FloatArray
    number_starts: IndexArray
    givens: FloatArray
    given_starts: IndexArray
    positions: IndexArray | None
    numbers_apart: bool
    givens_apart: bool

    @property
    def nbytes(self) -> int:
        """Bytes that a sweep reads beside the iterate."""
        arrays = (
            *(self.firsts, self.lengths, self.run_choices, self.choice_pairs, self.distances),
            *(self.numbers, self.number_starts, self.givens, self.given_starts),
        )
        return sum(int(array.nbytes) for array in arrays)

    def share_inside(self) -> float:
        """Return the share of entries whose columns lie in the run of their row, or partly so."""
        pairs = np.diff(self.choice_pairs[self.run_choices])
        lengths = np.repeat(self.lengths, pairs)
        inside = np.abs(self.distances) < lengths
        return float(lengths[inside].sum() / max(int(lengths.sum()), 1))

    def work(self) -> IndexArray:
        """Return what each run costs, shape (runs,), in entries."""
        pairs = np.diff(self.choice_pairs[self.run_choices])
        work: IndexArray = self.lengths * (pairs + 2)
        return work


def encode(system: SweepSystem, *, least_mean: tuple[int, int] = (8, 12)) -> Runs | None:
    """Lay a system out in runs, if its rows repeat often enough.

    Parameters
    ----------
    system
        A system whose matrix is scaled already.
    least_mean
        How long the runs must be in the mean: those with shared numbers, and those without.

    Returns
    -------
    None where the runs would be shorter.
    """
    shared, apart = least_mean
    if system.num_updates == 0 or system.matrix.num_entries == 0:
        return None
    rows = _Rows(system)
    kept = rows.in_order()
    found = _with_shared_numbers(kept, shared)
    if found is not None:
        return found
    moved = rows.in_order_of_shapes()
    if moved is not None:
        found = _with_shared_numbers(moved, shared)
    for ordered in (kept, moved):
        if found is None and ordered is not None:
            found = _found(ordered, apart, share_numbers=False, share_givens=False)
    return found


def _with_shared_numbers(ordered: _Ordered, least_mean: int) -> Runs | None:
    found = _found(ordered, least_mean, share_numbers=True, share_givens=True)
    if found is None and ordered.rows.system.offset is not None:
        found = _found(ordered, least_mean, share_numbers=True, share_givens=False)
    return found


class _Rows:
    """The rows of a system, by the positions of their states."""

    def __init__(self, system: SweepSystem) -> None:
        self.system = system
        self.finder = RunFinder(system)

    def in_order(self) -> _Ordered:
        """Return the rows as they are."""
        if self.system.states is None and self.system.num_updates == self.system.num_states:
            return _Ordered(self, None, None)
        own = np.arange(self.system.num_states, dtype=self.finder.number_type)
        return _Ordered(self, None, self._updates(own))

    def in_order_of_shapes(self) -> _Ordered | None:
        """Return the rows with those of one shape together, or None for too many shapes."""
        size = self.system.num_states
        most_shapes = 1 << 16  # Of more, none is frequent.
        found = run_finding.classify(self.finder.shapes(), most_shapes)
        if found is None:
            return None
        classes, distinct = found
        of_states = np.zeros(size, dtype=np.int32)
        of_states[self._states()] = classes + 1
        tile = 1 << 18  # States: neighbours stay in the second cache.
        order = run_finding.sorted_in_tiles(of_states, len(distinct) + 1, tile)
        places = np.empty(size, dtype=self.finder.number_type)
        places[order] = np.arange(size, dtype=places.dtype)
        return _Ordered(self, places, self._updates(places))

    def _updates(self, places: IndexArray) -> IndexArray:
        updates = np.full(len(places), -1, dtype=places.dtype)
        updates[places[self._states()]] = np.arange(self.system.num_updates, dtype=places.dtype)
        return updates

    def _states(self) -> IndexArray | slice:
        states = self.system.states
        return slice(self.system.num_updates) if states is None else states


@dataclass(frozen=True)
class _Ordered:
    """Rows by the positions of their states; `updates` is −1 where a position has none.

    None stands for the states' own numbers, and for rows that compute the states of their numbers.
    """

    rows: _Rows
    places: IndexArray | None
    updates: IndexArray | None

    def groups_at(self, positions: IndexArray) -> IndexArray:
        """Return the rows or groups that compute the states of some positions."""
        return positions if self.updates is None else self.updates[positions].astype(np.int64)

    def lengths(self, firsts: IndexArray) -> IndexArray:
        """Return how many states each run has whose first positions are given."""
        updates = self.rows.system.num_updates
        if self.updates is None:
            return np.diff(firsts, append=updates)
        filled = np.concatenate(([0], np.cumsum(self.updates >= 0)))
        return np.diff(filled[firsts], append=updates)


def _found(
    ordered: _Ordered, least_mean: int, *, share_numbers: bool, share_givens: bool
) -> Runs | None:
    system, finder = ordered.rows.system, ordered.rows.finder
    how = (ordered.places, ordered.updates, share_numbers, share_givens)
    firsts = finder.starts(*how, system.num_updates // least_mean, LONGEST_RUN)
    if firsts is None:
        return None
    lengths = ordered.lengths(firsts)
    groups, offsets = ordered.groups_at(firsts), system.matrix.row_offsets
    begin, end = groups, groups + 1
    if system.group_offsets is not None:
        begin, end = system.group_offsets[begin], system.group_offsets[end]
    choices = (end - begin).astype(np.int64)
    pairs = (offsets[end] - offsets[begin]).astype(np.int64)
    run_choices = offsets_of(choices)
    number_starts = offsets_of(pairs if share_numbers else pairs * lengths)
    given_starts = offsets_of(choices if share_givens else choices * lengths)
    given = system.offset
    choice_pairs = np.empty(int(run_choices[-1]) + 1, dtype=np.int64)
    distances = np.empty(int(pairs.sum()), dtype=np.int64)
    numbers = np.empty(int(number_starts[-1]))
    givens = np.empty(0 if given is None else int(given_starts[-1]))
    starts = (firsts, lengths, run_choices, number_starts, given_starts)
    finder.fill(*how, starts, (choice_pairs, distances, numbers, givens))
    return Runs(
        *(firsts, lengths, run_choices, choice_pairs, distances, numbers, number_starts[:-1]),
        *(givens, given_starts[:-1], ordered.places),
        numbers_apart=not share_numbers,
        givens_apart=not share_givens and given is not None,
    )
