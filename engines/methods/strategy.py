"""Optimal memoryless strategies of MDPs, from values and from the graph.

A strategy is an array of shape (states,): the number of the row that each state chooses, −1 where
any choice will do.
"""

from __future__ import annotations

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, index_dtype, sums_by_row
from engines.graph.distances import distances
from engines.graph.mec import EndComponents
from engines.graph.quotient import Quotient
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel
from engines.systems.one_sided import Direction, SweepSystem

ANY_CHOICE = -1

SLACKS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, np.inf)
"""By how much, relative to the best choice, one may fall short and still count as optimal."""


def row_values(system: SweepSystem, x: FloatArray) -> FloatArray:
    """Return b + A x, shape (rows,): what each choice is worth if the states are worth `x`.

    Parameters
    ----------
    system
        A system before any scaling.
    x
        Shape (states,).
    """
    matrix = system.matrix
    # A stored zero must not meet an infinite value.
    present = np.where(matrix.values == 0.0, 0.0, x[matrix.columns])
    after = sums_by_row(matrix.row_of_entry(), matrix.values * present, matrix.num_rows)
    return after if system.offset is None else after + system.offset


def best_of_groups(system: SweepSystem, rows: FloatArray) -> FloatArray:
    """Return the best of each group's rows, shape (groups,).

    Parameters
    ----------
    system
        A system with groups and a direction.
    rows
        Shape (rows,).
    """
    groups = groups_of(system)
    reduce = np.minimum if system.direction is Direction.MINIMISE else np.maximum
    best: FloatArray = reduce.reduceat(rows, groups[:-1])
    return best


def groups_of(system: SweepSystem) -> IndexArray:
    """Return the group offsets of a system that has choices.

    Raises
    ------
    ValueError
        If it has none.
    """
    if system.group_offsets is None or system.direction is None:
        raise ValueError("a strategy needs choices and a direction: the system has none")
    return system.group_offsets


def states_of_groups(system: SweepSystem) -> IndexArray:
    """Return the state that each group computes, shape (groups,)."""
    if system.states is not None:
        return system.states
    return np.arange(system.num_updates, dtype=index_dtype(system.num_updates))


def known_states(system: SweepSystem) -> MaskArray:
    """Return the states that no group computes, shape (states,)."""
    known = np.ones(system.num_states, dtype=np.bool_)
    known[states_of_groups(system)] = False
    return known


def optimal_rows(system: SweepSystem, x: FloatArray, ends: MaskArray) -> IndexArray:
    """Return an optimal row of each group that leads to where the values are known.

    Among choices of the same value some may only keep it: they stay for ever in an end component,
    where a maximal probability, say, is promised and never earned. So a state takes an optimal
    choice that may step nearer to `ends`, and the chain of the strategy ends there with
    probability 1. Choices that differ by rounding, or by what an iteration has left, count as
    optimal too, but the larger the difference, the later they are looked at.

    Parameters
    ----------
    system
        A system with groups and a direction, before any scaling.
    x
        Values of all states, shape (states,).
    ends
        States where the strategy may end, shape (states,).

    Returns
    -------
    Row numbers, shape (groups,). A group from which nothing leads to `ends` has its first best row.

    Notes
    -----
    Baier and Katoen (2008), Principles of Model Checking, lemma 10.102; de Alfaro (1997).
    """
    matrix, groups, states = system.matrix, groups_of(system), states_of_groups(system)
    group_of_row = np.repeat(np.arange(len(groups) - 1), np.diff(groups))
    owner = states[group_of_row]
    worth = row_values(system, x)
    best = best_of_groups(system, worth)[group_of_row]
    with np.errstate(invalid="ignore"):
        missing = np.where(worth == best, 0.0, np.abs(best - worth))
    usable = np.isfinite(worth)
    strategy = np.full(system.num_states, ANY_CHOICE, dtype=np.int64)
    arrived = ends.copy()
    for slack in SLACKS:
        with np.errstate(invalid="ignore"):  # 0 times an infinite best
            good = missing <= slack * np.abs(best) if np.isfinite(slack) else usable
        found = rows_towards(matrix, owner, good & usable & ~arrived[owner], arrived)
        strategy = np.where(found >= 0, found, strategy)
        arrived |= found >= 0
        if arrived[states].all():
            break
    rows = strategy[states]
    stuck = rows < 0
    if stuck.any():
        first_best = first_rows_of(group_of_row, missing == 0.0, len(states))
        rows[stuck] = first_best[stuck]
    return rows.astype(index_dtype(matrix.num_rows))


def rows_towards(
    matrix: CsrMatrix, owner: IndexArray, allowed: MaskArray, goal: MaskArray
) -> IndexArray:
    """Return for each state the first of its allowed rows that may step nearer to the goal.

    Where the rows that are allowed never leave a set, the goal is thereby reached with probability
    1 from every state of the set that has such a row.

    Parameters
    ----------
    matrix
        Rows are choices.
    owner
        The state of each row, shape (rows,).
    allowed
        Shape (rows,).
    goal
        Shape (states,).

    Returns
    -------
    Shape (states,): −1 for states of the goal, and for those that cannot get there.
    """
    row = matrix.row_of_entry()
    usable = allowed[row] & (matrix.values != 0.0)
    row, successor = row[usable], matrix.columns[usable]
    distance = distances(owner[row], successor, goal)
    nearer = row[distance[successor] < distance[owner[row]]]
    return first_rows_of(owner, _marked(nearer, matrix.num_rows), len(goal))


def first_rows_of(owner: IndexArray, wanted: MaskArray, num_owners: int) -> IndexArray:
    """Return the first wanted row of each owner, −1 where it has none.

    Parameters
    ----------
    owner
        The owner of each row, shape (rows,).
    wanted
        Shape (rows,).
    num_owners
        Number of owners: states or groups.
    """
    rows = np.flatnonzero(wanted)
    owners, first = np.unique(owner[rows], return_index=True)
    chosen = np.full(num_owners, ANY_CHOICE, dtype=np.int64)
    chosen[owners] = rows[first]
    return chosen


def rows_within(matrix: CsrMatrix, states: MaskArray) -> MaskArray:
    """Return which rows lead nowhere but into the states, shape (rows,).

    Parameters
    ----------
    matrix
        Rows are choices.
    states
        Shape (states,).
    """
    leaving = ~states[matrix.columns] & (matrix.values != 0.0)
    return ~_marked(matrix.row_of_entry()[leaving], matrix.num_rows)


def _marked(numbers: IndexArray, size: int) -> MaskArray:
    marked = np.zeros(size, dtype=np.bool_)
    marked[numbers] = True
    return marked


def until_strategy(
    model: ExplicitModel, target: MaskArray, yes: MaskArray, no: MaskArray, direction: Direction
) -> IndexArray:
    """Return a strategy for the states whose until probability the graph decides.

    Where the maximum is 1, it reaches the target without leaving such states; where the minimum is
    0, it stays among such states. Elsewhere any choice will do, −1: where the maximum is 0, where
    the minimum is 1, and at the target.

    Parameters
    ----------
    model
        An MDP.
    target, yes, no
        Target states, and those of probability 1 and 0, each of shape (states,).
    direction
        Whether the probabilities are minimal or maximal.

    Returns
    -------
    Row numbers, shape (states,).
    """
    owner = owners_of_rows(model)
    if direction is Direction.MAXIMISE:
        return rows_towards(model.matrix, owner, rows_within(model.matrix, yes), target)
    staying = rows_within(model.matrix, no) & no[owner]
    return first_rows_of(owner, staying, model.num_states)


def avoiding_strategy(model: ExplicitModel, never: MaskArray, lost: MaskArray) -> IndexArray:
    """Return a strategy that misses a target with positive probability, wherever that is possible.

    Parameters
    ----------
    model
        An MDP.
    never
        States where some strategy never reaches the target, shape (states,).
    lost
        States, among them those of `never`, from which `never` can be entered, shape (states,).

    Returns
    -------
    Row numbers, shape (states,); −1 for states not in `lost`.
    """
    owner = owners_of_rows(model)
    staying = rows_within(model.matrix, never) & never[owner]
    chosen = first_rows_of(owner, staying, model.num_states)
    towards = rows_towards(model.matrix, owner, lost[owner] & ~never[owner], never)
    return np.where(towards >= 0, towards, chosen)


def earning_strategy(
    model: ExplicitModel, components: EndComponents, paying: MaskArray
) -> IndexArray:
    """Return a strategy that earns for ever, wherever one does so with positive probability.

    Parameters
    ----------
    model
        An MDP.
    components
        Its maximal end components.
    paying
        Choices of them that earn something, shape (choices,).

    Returns
    -------
    Row numbers, shape (states,); −1 for states from which no paying choice is reached.
    """
    owner = owners_of_rows(model)
    chosen = first_rows_of(owner, paying, model.num_states)
    # Inside of a component, all states come back to the one that takes the paying choice.
    for allowed in (components.choices, np.ones(len(owner), dtype=np.bool_)):
        towards = rows_towards(model.matrix, owner, allowed, chosen >= 0)
        chosen = np.where(towards >= 0, towards, chosen)
    return chosen


def expanded_strategy(
    model: ExplicitModel, components: EndComponents, quotient: Quotient, strategy: IndexArray
) -> IndexArray:
    """Return the strategy of an MDP that one of its quotient stands for.

    A collapsed component has chosen a way out, which belongs to one of its states; the others go
    there by choices that stay inside. In a component without a way out any choice will do.

    Parameters
    ----------
    model
        An MDP.
    components, quotient
        The end components that were collapsed, and the quotient.
    strategy
        A strategy of the quotient, shape (quotient's states,).

    Returns
    -------
    Row numbers of the MDP, shape (states,).
    """
    owner = owners_of_rows(model)
    taken = quotient.choice_of[strategy[strategy >= 0]]
    taken = taken[taken >= 0]
    chosen = np.full(model.num_states, ANY_CHOICE, dtype=np.int64)
    chosen[owner[taken]] = taken
    leaving = (chosen >= 0) & (components.labels >= 0)
    towards = rows_towards(model.matrix, owner, components.choices, leaving)
    return np.where(towards >= 0, towards, chosen)


def owners_of_rows(model: ExplicitModel) -> IndexArray:
    """Return the state that each choice of an MDP belongs to, shape (choices,)."""
    if model.row_group_offsets is None:
        raise ValueError(f"a {model.kind} has no choices, and no strategies")
    return model.states_of_rows()
