"""The product of a model and a deterministic automaton, the reachable part only.

A node is a model state with the automaton's state before it has read the letter of that state.
What a step of the automaton says (rejected, accepted, goals met) is so a property of the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engines.arrays import IndexArray, MaskArray, index_dtype, ranges
from engines.automata.ldba import ACCEPTED
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind

Int64Array: TypeAlias = NDArray[np.int64]

_UNKNOWN = -3
_UNNUMBERED = -1


class DeterministicPart(Protocol):
    """A part of an automaton whose steps are made when they are asked for."""

    def step(self, state: int, letter: int) -> tuple[int, int]:
        """Return the next state, REJECTED or ACCEPTED, and the goals met, as bits."""


@dataclass(frozen=True)
class Letters:
    """What each model state lets an automaton read.

    Parameters
    ----------
    letters
        The letters that occur, shape (letters,): bit i tells whether atom i holds.
    of_state
        Shape (states,): each state's index among `letters`.
    """

    letters: Int64Array
    of_state: IndexArray


@dataclass(frozen=True)
class Product:
    """A product of a model and a deterministic automaton.

    Parameters
    ----------
    model
        A DTMC or an MDP over the nodes. Nodes where the automaton has decided stay for ever.
    states, automaton_states
        What each node is made of, shape (nodes,).
    next_states
        Shape (nodes,): the automaton's state after the letter, or REJECTED or ACCEPTED.
    goals
        Shape (nodes,): the goals met by reading the letter, as bits.
    model_rows
        Shape (choices,): the row of the model's matrix that a choice comes from; for a node that
        stays for ever the number of rows.
    """

    model: ExplicitModel
    states: Int64Array
    automaton_states: Int64Array
    next_states: Int64Array
    goals: Int64Array
    model_rows: Int64Array

    @property
    def accepted(self) -> MaskArray:
        """Nodes where the automaton accepts whatever follows, shape (nodes,)."""
        mask: MaskArray = self.next_states == ACCEPTED
        return mask

    @property
    def undecided(self) -> MaskArray:
        """Nodes where the automaton goes on, shape (nodes,)."""
        mask: MaskArray = self.next_states >= 0
        return mask


def build_product(
    model: ExplicitModel,
    letters: Letters,
    part: DeterministicPart,
    states: IndexArray,
    automaton_states: IndexArray,
    choices: MaskArray | None = None,
) -> Product:
    """Build the nodes that are reachable from the given ones.

    Parameters
    ----------
    model
        A DTMC or an MDP.
    letters
        The letter of each state.
    part
        The automaton.
    states, automaton_states
        The nodes to start from, shape (starts,), all different; node i of the product is the i-th.
    choices
        Shape (rows,): the rows of the model's matrix that may be used. Every state that is reached
        by them must have one. None for all.
    """
    source = _Source.of(model, choices)
    table = _StepTable(part, letters.letters)
    numbers = _Numbers(model.num_states)
    frontier = numbers.add(states.astype(np.int64), automaton_states.astype(np.int64))
    node_states, node_automaton_states = [frontier[0]], [frontier[1]]
    while len(frontier[0]):
        state, automaton_state = frontier
        following, _ = table.steps(automaton_state, letters.of_state[state])
        goes_on = following >= 0
        rows, row_counts = source.rows_of(state[goes_on])
        entries, entry_counts = source.entries_of(rows)
        per_node = _sums_by_group(entry_counts, row_counts)
        targets = source.matrix.columns[entries].astype(np.int64)
        frontier = numbers.add(targets, np.repeat(following[goes_on], per_node))
        node_states.append(frontier[0])
        node_automaton_states.append(frontier[1])
    all_states = np.concatenate(node_states)
    all_automaton_states = np.concatenate(node_automaton_states)
    following, goals = table.steps(all_automaton_states, letters.of_state[all_states])
    product_model, rows = _assemble(model.kind, source, numbers, all_states, following)
    return Product(product_model, all_states, all_automaton_states, following, goals, rows)


def _assemble(
    kind: ModelKind, source: _Source, numbers: _Numbers, states: Int64Array, following: Int64Array
) -> tuple[ExplicitModel, Int64Array]:
    nodes = len(states)
    # Decided nodes take the last row of the source, whose one entry is made a self-loop below.
    stays = source.num_states
    rows, row_counts = source.rows_of(np.where(following >= 0, states, stays))
    entries, entry_counts = source.entries_of(rows)
    node_of_entry = np.repeat(np.arange(nodes), _sums_by_group(entry_counts, row_counts))
    after = following[node_of_entry]
    goes_on = after >= 0
    columns = node_of_entry
    columns[goes_on] = numbers.of(
        source.matrix.columns[entries[goes_on]].astype(np.int64), after[goes_on]
    )
    dtype = index_dtype(max(nodes, len(entries)))
    matrix = CsrMatrix(
        _offsets(entry_counts).astype(dtype, copy=False),
        columns.astype(dtype, copy=False),
        source.matrix.values[entries],
        nodes,
    )
    groups = _offsets(row_counts).astype(index_dtype(len(rows)), copy=False)
    if kind is ModelKind.MDP:
        return ExplicitModel(kind, matrix, groups), source.model_rows[rows]
    return ExplicitModel(kind, matrix), source.model_rows[rows]


@dataclass(frozen=True)
class _Source:
    """A model's rows that may be used, and after its states one that has a single entry.

    Parameters
    ----------
    num_states
        Number of states of the model, which is the number of the additional one.
    matrix
        The rows.
    group_offsets
        Shape (states + 2,): where each state's rows start.
    model_rows
        Shape (rows,): the row of the model's matrix.
    """

    num_states: int
    matrix: CsrMatrix
    group_offsets: Int64Array
    model_rows: Int64Array

    @staticmethod
    def of(model: ExplicitModel, choices: MaskArray | None) -> _Source:
        matrix, groups = model.matrix, model.row_group_offsets
        rows = np.arange(matrix.num_rows, dtype=np.int64)
        offsets = np.arange(model.num_states + 1) if groups is None else groups.astype(np.int64)
        if choices is not None:
            rows = rows[choices]
            offsets = np.searchsorted(rows, offsets)
            matrix = matrix.select_rows(rows)
        entries = matrix.row_offsets.astype(np.int64)
        extended = CsrMatrix(
            np.append(entries, entries[-1] + 1),
            np.append(matrix.columns, 0),
            np.append(matrix.values, 1.0),
            matrix.num_columns,
        )
        return _Source(
            model.num_states,
            extended,
            np.append(offsets, offsets[-1] + 1),
            np.append(rows, model.matrix.num_rows),
        )

    def rows_of(self, states: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the rows of the given states one after the other, and how many each has."""
        return _ranges(self.group_offsets, states)

    def entries_of(self, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the entries of the given rows one after the other, and how many each has."""
        return _ranges(self.matrix.row_offsets, rows)


def _ranges(offsets: IndexArray, chosen: Int64Array) -> tuple[Int64Array, Int64Array]:
    starts = offsets[chosen].astype(np.int64, copy=False)
    counts = offsets[chosen + 1] - starts
    return ranges(starts, counts), counts


def _offsets(counts: Int64Array) -> Int64Array:
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def _sums_by_group(values: Int64Array, group_sizes: Int64Array) -> Int64Array:
    """Return the sum of each run of consecutive values, runs of the given sizes."""
    sums: Int64Array = np.diff(_offsets(values)[_offsets(group_sizes)])
    return sums


class _StepTable:
    """Steps of an automaton as arrays, filled in where they are asked for."""

    def __init__(self, part: DeterministicPart, letters: Int64Array) -> None:
        self._part = part
        self._letters = [int(letter) for letter in letters]
        self._next = np.full((1, len(letters)), _UNKNOWN, dtype=np.int64)
        self._goals = np.zeros((1, len(letters)), dtype=np.int64)

    def steps(self, states: Int64Array, letters: IndexArray) -> tuple[Int64Array, Int64Array]:
        """Return the next states and the goals met, for states and indices of letters."""
        if len(states):
            self._grow(int(states.max()) + 1)
        following = self._next[states, letters]
        missing = following == _UNKNOWN
        if missing.any():
            width = len(self._letters)
            for pair in np.unique(states[missing] * width + letters[missing]):
                state, letter = divmod(int(pair), width)
                step = self._part.step(state, self._letters[letter])
                self._next[state, letter], self._goals[state, letter] = step
            following = self._next[states, letters]
        return following, self._goals[states, letters]

    def _grow(self, size: int) -> None:
        more = max(size, 2 * len(self._next)) - len(self._next)
        if size > len(self._next):
            self._next = np.pad(self._next, ((0, more), (0, 0)), constant_values=_UNKNOWN)
            self._goals = np.pad(self._goals, ((0, more), (0, 0)))


class _Numbers:
    """Numbers of the nodes, in the order in which they are met."""

    def __init__(self, num_states: int) -> None:
        self._num_states = num_states
        self._number = np.full(num_states, _UNNUMBERED, dtype=np.int64)
        self._count = 0

    def add(
        self, states: Int64Array, automaton_states: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """Number the nodes that have no number yet, and return these."""
        if len(states):
            self._grow((int(automaton_states.max()) + 1) * self._num_states)
        keys = automaton_states * self._num_states + states
        fresh = keys[self._number[keys] == _UNNUMBERED]
        # Of equal keys one is kept: the one whose place was written last.
        places = np.arange(len(fresh))
        self._number[fresh] = places
        fresh = fresh[self._number[fresh] == places]
        self._number[fresh] = self._count + np.arange(len(fresh))
        self._count += len(fresh)
        automaton_states, states = np.divmod(fresh, self._num_states)
        return states, automaton_states

    def of(self, states: Int64Array, automaton_states: Int64Array) -> Int64Array:
        """Return the numbers of nodes that were met."""
        numbers: Int64Array = self._number[automaton_states * self._num_states + states]
        return numbers

    def _grow(self, size: int) -> None:
        if size > len(self._number):
            more = max(size, 2 * len(self._number)) - len(self._number)
            self._number = np.pad(self._number, (0, more), constant_values=_UNNUMBERED)
