"""Parts of matrices whose rows are in groups: the choices of some states."""

from __future__ import annotations

import numpy as np

from engines.arrays import IndexArray, index_dtype, joined, ranges
from engines.model.csr import RUN_ENTRIES, CsrMatrix


def choices_of(states: IndexArray, groups: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return the choices of the given states, and the offsets of each state's among them.

    Parameters
    ----------
    states
        State numbers, shape (selected,).
    groups
        Shape (states + 1,): where each state's choices start.
    """
    counts = np.diff(groups)[states]
    offsets = np.zeros(len(states) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    choices: IndexArray = ranges(groups[states], counts)
    return choices, offsets.astype(index_dtype(int(offsets[-1])))


def select_groups(
    matrix: CsrMatrix, groups: IndexArray, states: IndexArray
) -> tuple[CsrMatrix, IndexArray]:
    """Return the rows of some states' choices, and the offsets of each state's among them.

    Where states are many and stand in long runs, all is copied run by run, and no choice is listed:
    what takes longest is that the system makes room for what is written first.

    Parameters
    ----------
    matrix
        A row for each choice.
    groups, states
        As in `choices_of`, the states in ascending order.
    """
    starts = np.flatnonzero(np.diff(states, prepend=-2) != 1)
    lasts = np.append(starts[1:], len(states))[: len(starts)] - 1
    firsts, behind = states[starts], states[lasts] + 1
    first_entries, behind_entries = (matrix.row_offsets[groups[at]] for at in (firsts, behind))
    total = int((behind_entries - first_entries).sum(dtype=np.int64))
    if not len(starts) or total < RUN_ENTRIES * len(starts):
        choices, offsets = choices_of(states, groups)
        return matrix.select_rows(choices), offsets
    entry_runs = _runs(first_entries, behind_entries)
    rows = CsrMatrix(
        _continued(matrix.row_offsets, _runs(groups[firsts], groups[behind])),
        joined(matrix.columns, entry_runs),
        joined(matrix.values, entry_runs),
        matrix.num_columns,
    )
    return rows, _continued(groups, _runs(firsts, behind))


def _runs(firsts: IndexArray, behind: IndexArray) -> list[slice]:
    return [slice(*run) for run in zip(firsts.tolist(), behind.tolist(), strict=True)]


def _continued(offsets: IndexArray, runs: list[slice]) -> IndexArray:
    """Return offsets of the items of some runs, one run after the other, from 0 on."""
    continued = np.empty(sum(run.stop - run.start for run in runs) + 1, dtype=offsets.dtype)
    continued[0] = at = 0
    for run in runs:
        last = at + run.stop - run.start
        shift = continued[at] - offsets[run.start]
        np.add(offsets[run.start + 1 : run.stop + 1], shift, out=continued[at + 1 : last + 1])
        at = last
    return continued
