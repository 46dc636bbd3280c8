"""Rows of the same shape as runs: found, put next to each other, and laid out for SIMD sweeps.

Neighbouring rows of a probabilistic model often read the same distances: row i + 1 has its columns
one further than row i. Such rows are a *run*. A sweep of a run needs its distances once and no
column numbers, and its inner loops go along the rows, so that the processor takes several rows in
one instruction. Where rows of the same shape are not neighbours, the states are renumbered until
they are.

This is the row-pattern dictionary of `engines.formats.patterns` for processors with vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.cpu import run_finding
from engines.formats.csr import FloatArray, IndexArray, index_dtype
from engines.system import SweepSystem

TILE = 1 << 18
"""States are renumbered within pieces of so many, so that neighbours stay in the second cache."""

MOST_CLASSES = 1 << 16
"""With more shapes of rows than this, none is frequent."""

MEAN_WITH_NUMBERS = 8
"""Runs that share their numbers pay from this mean length on."""

MEAN_NUMBERS_APART = 12
"""The same for runs whose rows have numbers of their own."""


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

    def work(self) -> IndexArray:
        """Return what each run costs, shape (runs,), in entries."""
        pairs = np.diff(self.choice_pairs[self.run_choices])
        work: IndexArray = self.lengths * (pairs + 2)
        return work


def encode(system: SweepSystem, *, least_mean: tuple[int, int] | None = None) -> Runs | None:
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
    shared, apart = least_mean or (MEAN_WITH_NUMBERS, MEAN_NUMBERS_APART)
    if system.num_updates == 0 or system.matrix.num_entries == 0:
        return None
    rows = _Rows.of(system)
    kept = rows.in_order(None)
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


@dataclass(frozen=True)
class _Rows:
    """A system's arrays as the kernels take them; for a chain each row is a group."""

    system: SweepSystem
    groups: IndexArray
    offsets: IndexArray
    columns: IndexArray
    bits: IndexArray
    given_bits: IndexArray
    states: IndexArray

    @classmethod
    def of(cls, system: SweepSystem) -> _Rows:
        matrix = system.matrix
        kind = index_dtype(max(system.num_states, matrix.num_rows))
        groups, states, given = system.group_offsets, system.states, system.offset
        return cls(
            system,
            np.arange(matrix.num_rows + 1, dtype=kind) if groups is None else groups,
            *(matrix.row_offsets, matrix.columns, _bits(matrix.values)),
            _bits(np.empty(0) if given is None else given),
            np.arange(system.num_updates, dtype=kind) if states is None else states,
        )

    def in_order(self, positions: IndexArray | None) -> _Ordered:
        """Return the rows by the positions of their states."""
        size = self.system.num_states
        place = np.arange(size, dtype=index_dtype(size)) if positions is None else positions
        update_at = np.full(size, -1, dtype=place.dtype)
        update_at[place[self.states]] = np.arange(len(self.states), dtype=place.dtype)
        return _Ordered(self, positions, place, update_at)

    def in_order_of_shapes(self) -> _Ordered | None:
        """Return the rows with those of one shape together, or None for too many shapes."""
        size = self.system.num_states
        shapes = run_finding.shapes(self.groups, self.offsets, self.columns, self.states)
        classes, count = run_finding.classify(shapes, MOST_CLASSES)
        if count < 0:
            return None
        of_states = np.zeros(size, dtype=np.int32)
        of_states[self.states] = classes + 1
        order = run_finding.sorted_in_tiles(of_states, count + 1, TILE)
        positions = np.empty(size, dtype=index_dtype(size))
        positions[order] = np.arange(size, dtype=positions.dtype)
        return self.in_order(positions)


@dataclass(frozen=True)
class _Ordered:
    """Rows by the positions of their states; `update_at` is −1 where a position has none."""

    rows: _Rows
    positions: IndexArray | None
    place: IndexArray
    update_at: IndexArray


def _found(
    ordered: _Ordered, least_mean: int, *, share_numbers: bool, share_givens: bool
) -> Runs | None:
    rows = ordered.rows
    csr = (rows.groups, rows.offsets, rows.columns)
    nothing = rows.bits[:0]
    firsts, count = run_finding.run_starts(
        *csr,
        rows.bits if share_numbers else nothing,
        rows.given_bits if share_givens else nothing,
        *(rows.states, ordered.update_at, ordered.place),
        len(rows.states) // least_mean,
    )
    if count < 0:
        return None
    filled = np.concatenate(([0], np.cumsum(ordered.update_at >= 0)))
    lengths = np.diff(filled[firsts], append=len(rows.states))
    groups = ordered.update_at[firsts]
    run_choices = _offsets(rows.groups[groups + 1] - rows.groups[groups])
    pairs_of_runs = (
        rows.offsets[rows.groups[groups + 1]] - rows.offsets[rows.groups[groups]]
    ).astype(np.int64)
    number_starts = _offsets(pairs_of_runs if share_numbers else pairs_of_runs * lengths)
    choices = np.diff(run_choices)
    given_starts = _offsets(choices if share_givens else choices * lengths)
    given = rows.system.offset
    choice_pairs = np.zeros(int(run_choices[-1]) + 1, dtype=np.int64)
    distances = np.empty(int(pairs_of_runs.sum()), dtype=np.int64)
    numbers = np.empty(int(number_starts[-1]))
    givens = np.empty(0 if given is None else int(given_starts[-1]))
    run_finding.fill(
        *csr,
        rows.system.matrix.values,
        np.empty(0) if given is None else given,
        *(ordered.update_at, ordered.place, firsts, lengths, run_choices),
        *(number_starts, given_starts),
        share_numbers,
        share_givens,
        choice_pairs,
        distances,
        numbers,
        givens,
    )
    return Runs(
        *(firsts, lengths, run_choices, choice_pairs, distances, numbers, number_starts[:-1]),
        *(givens, given_starts[:-1], ordered.positions),
        numbers_apart=not share_numbers,
        givens_apart=not share_givens and given is not None,
    )


def _bits(values: FloatArray) -> IndexArray:
    bits: IndexArray = np.ascontiguousarray(values).view(np.uint64)
    return bits


def _offsets(lengths: IndexArray) -> IndexArray:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
