"""Parts of matrices whose rows are in groups: the choices of some states."""

from __future__ import annotations

import numpy as np

from engines.arrays import FloatArray, IndexArray, index_dtype, offsets_of, ranges, runs_of
from engines.host.compiled.rows import gathered
from engines.model.csr import CsrMatrix


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
    offsets = offsets_of(counts)
    choices: IndexArray = ranges(groups[states], counts)
    return choices, offsets.astype(index_dtype(int(offsets[-1])))


def select_groups(
    matrix: CsrMatrix, groups: IndexArray, states: IndexArray, rewards: FloatArray | None = None
) -> tuple[CsrMatrix, IndexArray, FloatArray | None]:
    """Return the rows of some states' choices, the offsets of each state's, and what these earn.

    Parameters
    ----------
    matrix
        A row for each choice.
    groups, states
        As in `choices_of`, the states in ascending order.
    rewards
        Shape (choices,), or None for none.
    """
    firsts, behind = runs_of(states)
    first_rows, behind_rows = groups[firsts], groups[behind]
    offsets = _offsets(first_rows, behind_rows, matrix.row_lengths())
    first_entries, lengths = matrix.row_offsets[first_rows], matrix.row_offsets[behind_rows]
    lengths = lengths - first_entries
    total = int(offsets[-1])
    rows = CsrMatrix(
        offsets,
        gathered(first_entries, lengths, matrix.columns, total),
        gathered(first_entries, lengths, matrix.values, total),
        matrix.num_columns,
    )
    if rewards is not None:
        rewards = gathered(first_rows, behind_rows - first_rows, rewards, rows.num_rows)
    return rows, _offsets(firsts, behind, np.diff(groups)), rewards


def _offsets(firsts: IndexArray, behind: IndexArray, lengths: IndexArray) -> IndexArray:
    """Return the offsets of items of given lengths, from each of `firsts` to before `behind`."""
    counts = behind - firsts
    kept = gathered(firsts, counts, lengths, int(counts.sum(dtype=np.int64)))
    total = int(kept.sum(dtype=np.int64))
    offsets = np.zeros(len(kept) + 1, dtype=index_dtype(total))
    np.cumsum(kept, out=offsets[1:])
    return offsets
