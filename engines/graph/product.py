"""The product of a model and a deterministic automaton, the reachable part only.

A node is a model state with the automaton's state before it has read the letter of that state.
What a step of the automaton says (rejected, accepted, goals met) is so a property of the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engines.arrays import IndexArray, MaskArray
from engines.automata.ldba import ACCEPTED
from engines.host.automaton_product import TO_BE_MADE, Int32Array, automaton_product
from engines.model.explicit import ExplicitModel, ModelKind

Int64Array: TypeAlias = NDArray[np.int64]


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
    states: Int32Array
    automaton_states: Int32Array
    next_states: Int32Array
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
    matrix, groups = model.matrix, model.row_group_offsets
    rows = None
    if choices is not None:
        rows = np.flatnonzero(choices)
        offsets = np.arange(model.num_states + 1) if groups is None else groups
        groups, matrix = np.searchsorted(rows, offsets), matrix.select_rows(rows)
    steps = _StepTable(part, letters.letters, int(automaton_states.max(initial=0)))
    first = states, automaton_states
    found = automaton_product(matrix, groups, letters.of_state, steps, first, reads_ahead=False)
    following, goals = steps.of(found.automaton_states, letters.of_state[found.states])
    model_rows = found.model_rows
    if rows is not None:
        model_rows = np.append(rows, model.matrix.num_rows)[model_rows]
    groups = found.group_offsets if model.kind is ModelKind.MDP else None
    return Product(
        ExplicitModel(model.kind, found.matrix, groups),
        found.states,
        found.automaton_states,
        following,
        goals,
        model_rows,
    )


class _StepTable:
    """Steps of an automaton as arrays, filled in where they are asked for.

    Parameters
    ----------
    part
        The automaton.
    letters
        Those that occur.
    largest
        The largest of its states that nothing leads to.
    """

    def __init__(self, part: DeterministicPart, letters: Int64Array, largest: int) -> None:
        self._part = part
        self._letters = [int(letter) for letter in letters]
        self.table = np.full((largest + 1, len(letters)), TO_BE_MADE, dtype=np.int32)
        self._goals = np.zeros(self.table.shape, dtype=np.int64)

    def make(self, state: int, letter: int) -> None:
        """Fill a step in."""
        following, goals = self._part.step(state, self._letters[letter])
        if following >= len(self.table):
            more = ((0, max(following + 1, 2 * len(self.table)) - len(self.table)), (0, 0))
            self.table = np.pad(self.table, more, constant_values=TO_BE_MADE)
            self._goals = np.pad(self._goals, more)
        self.table[state, letter], self._goals[state, letter] = following, goals

    def of(self, states: Int32Array, letters: IndexArray) -> tuple[Int32Array, Int64Array]:
        """Return the next states and the goals met, of steps that were made."""
        following: Int32Array = self.table[states, letters]
        return following, self._goals[states, letters]
