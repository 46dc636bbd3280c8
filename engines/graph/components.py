"""Strongly connected components of a model's graph, and those that are never left."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from engines.arrays import IndexArray, MaskArray, extremes, index_dtype
from engines.devices.graph import operations_of
from engines.model.csr import CsrMatrix
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel
from engines.process.timeline import SEARCHING, TIMELINE


@dataclass(frozen=True)
class Components:
    """Disjoint sets of states.

    Parameters
    ----------
    labels
        Shape (states,): the component of each state, −1 for none. Components are numbered by their
        smallest states.
    count
        Number of components.
    """

    labels: IndexArray
    count: int

    @cached_property
    def everywhere(self) -> bool:
        """Whether each state is in a component."""
        return extremes(self.labels)[0] >= 0

    def sizes(self) -> IndexArray:
        """Return the number of states of each component, shape (count,)."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.count)

    def members(self, wanted: MaskArray) -> Iterator[tuple[int, IndexArray]]:
        """Yield the number and the states, in order, of each wanted component.

        Parameters
        ----------
        wanted
            Shape (count,).
        """
        if self.everywhere:
            inside = np.arange(len(self.labels), dtype=self.labels.dtype)
        else:
            inside = np.flatnonzero(self.labels >= 0)
        if self.count == 1:
            if wanted[0]:
                yield 0, inside
            return
        order = np.argsort(self.labels[inside], kind="stable")
        sizes = self.sizes()
        ends = np.cumsum(sizes)
        for label in np.flatnonzero(wanted):
            yield int(label), inside[order[ends[label] - sizes[label] : ends[label]]]


@TIMELINE.counted(SEARCHING)
def sccs(
    model: ExplicitModel,
    restrict: MaskArray | None = None,
    environment: SolverEnvironment | None = None,
) -> Components:
    """Return the strongly connected components, single states without a loop included.

    Parameters
    ----------
    model
        A model of any kind; in an MDP, the edges are those of all choices.
    restrict
        Boolean mask, shape (states,): the states to look at, and no edges but among them; None for
        all.
    environment
        Which device to use; None for the CPU.
    """
    if restrict is None:
        restrict = np.ones(model.num_states, dtype=np.bool_)
    return Components(*operations_of(model, environment).strong_components(restrict))


def condensation_order(
    model: ExplicitModel, components: Components, environment: SolverEnvironment | None = None
) -> IndexArray:
    """Return the components in an order in which each comes after all that it may enter.

    Parameters
    ----------
    model
        A model of any kind; in an MDP, the edges are those of all choices.
    components
        Its strongly connected components, or those of a set of its states.
    environment
        Which device to use; None for the CPU.

    Returns
    -------
    The numbers of the components, shape (count,): by the number of components on the longest path
    that begins in each, bottom components first, and by number where that is the same.
    """
    operations = operations_of(model, environment)
    return operations.condensation_order(components.labels, components.count)


_FOUND: list[tuple[weakref.ref[ExplicitModel], Components]] = []
"""The model whose bottom components were found last: a file of properties asks for them again."""


@TIMELINE.counted(SEARCHING)
def bsccs(model: ExplicitModel, environment: SolverEnvironment | None = None) -> Components:
    """Return the bottom strongly connected components: those that no edge leaves.

    Parameters
    ----------
    model
        A model of any kind; in an MDP, the edges are those of all choices. An absorbing state of a
        CTMC is a component of its own.
    environment
        Which device to use; None for the CPU.
    """
    if not (_FOUND and _FOUND[0][0]() is model):
        _FOUND[:] = [(weakref.ref(model, _forget), _bsccs(model, environment))]
    return _FOUND[0][1]


def _forget(gone: weakref.ref[ExplicitModel]) -> None:
    """Drop the components of a model that is no more."""
    _FOUND[:] = [item for item in _FOUND if item[0] is not gone]


def _bsccs(model: ExplicitModel, environment: SolverEnvironment | None) -> Components:
    operations = operations_of(model, environment)
    # A stored zero is no edge, but those who built the model may have followed it.
    all_edges = model.matrix.extremes[0] > 0.0
    only = operations.only_bottom(model.origin if all_edges else None)
    if only is not None:
        labels = np.zeros(model.num_states, dtype=index_dtype(model.num_states))
        labels[~only] = -1
        return Components(labels, 1)
    all_components = sccs(model, environment=environment)
    if all_components.count == 1:
        return all_components
    left = operations.components_left(all_components.labels, all_components.count)
    # Leaving out components keeps the order of the others.
    names = np.where(left, -1, np.cumsum(~left) - 1).astype(all_components.labels.dtype)
    return Components(names[all_components.labels], int(np.count_nonzero(~left)))


def closed_part(model: ExplicitModel, states: IndexArray) -> ExplicitModel:
    """Return the chain of states that are never left.

    Parameters
    ----------
    model
        A DTMC or a CTMC.
    states
        The states, ascending.

    Raises
    ------
    ValueError
        If a transition leads to another state.
    """
    rows = model.matrix.select_rows(states)
    if rows.num_entries < model.num_states:
        # Many small components must not cost a pass over all states each.
        columns = np.minimum(np.searchsorted(states, rows.columns), len(states) - 1)
        outside = states[columns] != rows.columns
    else:
        place = np.full(model.num_states, -1, dtype=index_dtype(model.num_states))
        place[states] = np.arange(len(states))
        columns = place[rows.columns]
        outside = columns < 0
    if np.any(outside & (rows.values > 0.0)):
        raise ValueError("the set is left: it is no bottom component")
    # What is left outside are stored zeros, which may as well lead anywhere.
    columns = np.maximum(columns, 0).astype(index_dtype(len(states)))
    matrix = CsrMatrix(rows.row_offsets, columns, rows.values, len(states))
    return ExplicitModel(model.kind, matrix)
