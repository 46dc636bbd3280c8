"""MDPs with end components made single states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, IndexArray, index_dtype
from engines.errors import UnsupportedError
from engines.graph.mec import EndComponents
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, Item, ModelKind


@dataclass(frozen=True)
class Quotient:
    """An MDP with end components collapsed.

    Parameters
    ----------
    model
        The MDP; states are numbered by the smallest old states they stand for. It has the initial
        states, and neither labels nor rewards: those of a collapsed state are for the caller to
        choose.
    state_of
        Shape (old states,): the state of the quotient that each became part of.
    choice_of
        Shape (quotient's choices,): the old choice that each came from, −1 for a self-loop that was
        added. A state's choices are in the order of the old ones.
    """

    model: ExplicitModel
    state_of: IndexArray
    choice_of: IndexArray

    def moved(self, values: NDArray[Item]) -> NDArray[Item]:
        """Return values of the old states as those of the new ones, shape (states,).

        Parameters
        ----------
        values
            Shape (old states,); those of one component agree.
        """
        moved = np.zeros(self.model.num_states, dtype=values.dtype)
        moved[self.state_of] = values
        return moved


def collapse(model: ExplicitModel, components: EndComponents) -> Quotient:
    """Return the MDP with each end component made one state.

    The choices of `components.choices` are dropped, all others stay; a collapsed state left without
    a choice gets a self-loop. Maximal reachability probabilities stay what they were if each
    component is within the target or apart from it.

    Parameters
    ----------
    model
        An MDP.
    components
        Some of its end components, not necessarily maximal.

    Raises
    ------
    UnsupportedError
        If the model is a chain.

    Notes
    -----
    de Alfaro (1997), section 3.6; Ciesinski, Baier, Größer, Klein (2008), Reduction techniques for
    model checking Markov decision processes.
    """
    groups = model.row_group_offsets
    if model.kind is not ModelKind.MDP or groups is None:
        raise UnsupportedError(f"a {model.kind} has no end components to collapse")
    state_of, num_states = _quotient_states(components)
    old_state = np.repeat(np.arange(model.num_states, dtype=state_of.dtype), np.diff(groups))
    choice_of = np.flatnonzero(~components.choices).astype(index_dtype(model.matrix.num_rows))
    owner = state_of[old_state[choice_of]]
    stuck = np.flatnonzero(np.bincount(owner, minlength=num_states) == 0).astype(owner.dtype)
    added = np.full(len(stuck), -1, dtype=choice_of.dtype)
    owner, choice_of = np.concatenate((owner, stuck)), np.concatenate((choice_of, added))
    order = np.argsort(owner, kind="stable")
    owner, choice_of = owner[order], choice_of[order]
    initial = None
    if model.initial_states is not None:
        initial = np.zeros(num_states, dtype=np.bool_)
        initial[state_of[model.initial_states]] = True
    quotient = ExplicitModel(
        ModelKind.MDP,
        _quotient_matrix(model.matrix, state_of, num_states, owner, choice_of),
        _offsets(np.bincount(owner, minlength=num_states)),
        initial,
    )
    return Quotient(quotient, state_of, choice_of)


def _quotient_states(components: EndComponents) -> tuple[IndexArray, int]:
    """Return the new state of each old one, numbered by the smallest old states."""
    size = len(components.labels)
    states = np.arange(size, dtype=index_dtype(size))
    inside = components.labels >= 0
    first = np.full(components.count, size, dtype=states.dtype)
    np.minimum.at(first, components.labels[inside], states[inside])
    smallest = states.copy()
    smallest[inside] = first[components.labels[inside]]
    stands = smallest == states
    names = np.cumsum(stands, dtype=states.dtype) - 1
    return names[smallest], int(np.count_nonzero(stands))


def _quotient_matrix(
    matrix: CsrMatrix,
    state_of: IndexArray,
    num_states: int,
    owner: IndexArray,
    choice_of: IndexArray,
) -> CsrMatrix:
    """Return the rows of the kept choices, entries into one state added up, zeros left out."""
    kept = np.flatnonzero(choice_of >= 0).astype(choice_of.dtype)
    old = matrix.select_rows(choice_of[kept])
    present = old.values != 0.0
    loops = np.flatnonzero(choice_of < 0).astype(choice_of.dtype)
    all_rows = np.concatenate((kept[old.row_of_entry()][present], loops)).astype(np.int64)
    targets = np.concatenate((state_of[old.columns[present]], owner[loops])).astype(np.int64)
    probabilities = np.concatenate((old.values[present], np.ones(len(loops))))
    row, column, values = _added_up(all_rows, targets, probabilities, num_states)
    lengths = np.bincount(row, minlength=len(choice_of))
    narrow = column.astype(index_dtype(num_states))
    return CsrMatrix(_offsets(lengths), narrow, values, num_states)


def _added_up(
    row: IndexArray, column: IndexArray, values: FloatArray, num_columns: int
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Return entries sorted by row and column, those of one place added up."""
    if len(row) == 0:
        return row, column, values
    order = np.argsort(row * num_columns + column, kind="stable")
    row, column, values = row[order], column[order], values[order]
    new = np.concatenate(([True], (np.diff(row) != 0) | (np.diff(column) != 0)))
    starts = np.flatnonzero(new)
    return row[starts], column[starts], np.add.reduceat(values, starts)


def _offsets(lengths: IndexArray) -> IndexArray:
    offsets = np.zeros(len(lengths) + 1, dtype=index_dtype(int(lengths.sum())))
    np.cumsum(lengths, out=offsets[1:])
    return offsets
