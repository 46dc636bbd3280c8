"""Sets of states that PRISM asks for before a solve: probability 0, probability 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.arrays import IndexArray, MaskArray
from engines.devices.graph import operations_of
from engines.graph.prob01 import prob0, prob1
from engines.graph.rounds import rounds_of_prob0, rounds_of_prob1
from engines.methods.strategy import avoiding_strategy, until_strategy
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel
from engines.systems.one_sided import Direction
from prism_hooks.questions import Question

SETS = {"prob0": prob0, "prob1": prob1}
"""The sets by the names that `prismgpu.Problem` gives the tasks."""


COUNTED = 1 << 18
"""Transitions of the largest graph whose searches' rounds are counted, of which there may be
thousands."""

COUNTED_AS_PRISM = 1 << 21
"""The same where the user named the engine: PRISM takes much longer for them."""

PREDECESSORS = "predecessors"
"""The task of finding them for the searches that follow."""


def relate(model: ExplicitModel, environment: SolverEnvironment) -> None:
    """Find the predecessors of each state, which searches for the sets above then have at hand.

    Parameters
    ----------
    model
        The model.
    environment
        Which device to use.
    """
    nothing = np.zeros(model.num_states, dtype=np.bool_)
    # A search for nothing makes no more than what it would search through.
    operations_of(model, environment).may_reach(nothing, nothing)


def found_set(
    problem: Any,
    asked: Question,
    model: ExplicitModel,
    environment: SolverEnvironment,
    *,
    named: bool = False,
) -> tuple[MaskArray, IndexArray | None]:
    """Return the states that a `prismgpu.Problem` asks for, and a strategy that makes them so.

    Where no strategy misses the target, the strategy is that by which the others miss it.

    Parameters
    ----------
    problem
        The problem, with a task of `SETS`.
    asked
        What it asks.
    model
        Its model.
    environment
        Which device to use.
    named
        Whether the user named one of PRISM's engines, whose log this is to be.

    Returns
    -------
    A mask, shape (states,), and row numbers, shape (states,), or None where none were asked for.
    """
    find = SETS[str(problem.task)]
    direction = asked.direction
    found = find(model, asked.remain, asked.states, direction, environment=environment)
    # Of a chain under the explicit engine PRISM tells of none.
    told = direction is not None or problem.parts is not None
    if told and model.matrix.num_entries <= (COUNTED_AS_PRISM if named else COUNTED):
        problem.iterations = _rounds(problem, asked, model)
    if not problem.wantsStrategy or direction is None:
        return found, None
    if find is prob1 and direction is Direction.MINIMISE:
        everywhere = np.ones_like(found)
        never = prob0(model, everywhere, asked.states, direction, environment=environment)
        return found, avoiding_strategy(model, never, ~found)
    no = found if find is prob0 else np.zeros_like(found)
    yes = found if find is prob1 else np.zeros_like(found)
    return found, until_strategy(model, asked.states, yes, no, direction)


def _rounds(problem: Any, asked: Question, model: ExplicitModel) -> int:
    """Return how many rounds PRISM's search takes, for its log."""
    how = (model, asked.remain, asked.states, asked.direction)
    if SETS[str(problem.task)] is prob0:
        return rounds_of_prob0(*how)
    return rounds_of_prob1(*how, on_diagrams=problem.parts is not None)


def words_of(states: MaskArray) -> NDArray[np.int64]:
    """Return a mask as the words of a Java BitSet.

    Parameters
    ----------
    states
        Shape (states,).

    Returns
    -------
    Shape (words,), 64 states a word.
    """
    packed = np.packbits(states, bitorder="little")
    words = np.zeros(-(-len(packed) // 8), dtype=np.int64)
    words.view(np.uint8)[: len(packed)] = packed
    return words


def choices_of_rows(model: ExplicitModel, rows: IndexArray) -> NDArray[np.int32]:
    """Return the number that each state's choice has among its own, −1 where any will do.

    Parameters
    ----------
    model
        An MDP.
    rows
        Row numbers, shape (states,), −1 where any choice will do.
    """
    groups = model.row_group_offsets
    if groups is None:
        raise ValueError(f"a {model.kind} has no choices")
    return np.where(rows >= 0, rows - groups[:-1], -1).astype(np.int32)
