"""The equations x = b + A x of a model, before any scaling."""

from __future__ import annotations

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.groups import select_groups
from engines.systems.one_sided import Direction, SweepSystem, rows_of_states


def plain_system(
    model: ExplicitModel,
    unknown: MaskArray,
    start: FloatArray,
    rewards: FloatArray | None,
    direction: Direction | None,
    *,
    accurately: bool = True,
) -> SweepSystem:
    """Return the equations x = b + A x of the unknown states, for a chain those of its steps.

    Parameters
    ----------
    model
        A DTMC, a CTMC (its embedded chain is taken), or an MDP.
    unknown
        States to solve for, shape (states,).
    start
        Known values, and the first iterate of the unknown states, shape (states,).
    rewards
        None for probabilities, else the reward of each row, as `step_rewards` returns it.
    direction
        MDPs: minimise or maximise.
    accurately
        Whether exit rates are added up in extended precision, so that they are right to the last
        digit however many rates there are: bounds count on that.
    """
    states, matrix, offset = rows_of_states(unknown), model.matrix, rewards
    groups = model.row_group_offsets
    if states is not None and groups is not None:
        matrix, groups, offset = select_groups(matrix, groups, states, rewards)
    elif states is not None:
        matrix = matrix.select_rows(states)
        offset = None if rewards is None else rewards[states]
    offset = None if offset is None else np.asarray(offset, dtype=np.float64)
    if model.kind is ModelKind.CTMC:
        exits = matrix.row_sums()
        if accurately:
            exits = accurate_row_sums(matrix.row_of_entry(), matrix.values, matrix.num_rows)
        matrix = matrix.divide_rows(exits)
        offset = None if offset is None else offset / exits
    return SweepSystem(matrix, start, offset, states, group_offsets=groups, direction=direction)


def accurate_row_sums(row: IndexArray, values: FloatArray, num_rows: int) -> FloatArray:
    """Return the sum of each row, shape (rows,), added up in extended precision.

    Parameters
    ----------
    row
        The row of each entry, ascending, shape (entries,).
    values
        Shape (entries,).
    num_rows
        Number of rows.
    """
    sums = np.zeros(num_rows, dtype=np.longdouble)
    if len(row):
        starts = np.flatnonzero(np.concatenate(([True], np.diff(row) != 0)))
        sums[row[starts]] = np.add.reduceat(values.astype(np.longdouble), starts)
    return np.array(sums, dtype=np.float64)


def direction_of(model: ExplicitModel, direction: Direction | None) -> Direction | None:
    """Return how the choices of a model are resolved; None for a chain, which has none.

    Parameters
    ----------
    model
        The model.
    direction
        What the question says.

    Raises
    ------
    ValueError
        For an MDP without a direction.
    """
    if model.kind is not ModelKind.MDP:
        return None
    if direction is None:
        raise ValueError("an MDP needs a direction: minimise or maximise")
    return direction
