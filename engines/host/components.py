"""The strongly connected components of a system, in order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, index_dtype, ranges
from engines.host.topological import ordered_components
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import SweepSystem


@dataclass(frozen=True)
class Components:
    """The equations of a system by states, and their components in topological order.

    Parameters
    ----------
    equations
        The equations, with a group of rows for each state, of none for known ones; without entries
        of value 0.
    found, bounds
        Component k is the states ``found[bounds[k]]`` to ``found[bounds[k + 1] - 1]``; it comes
        after the components that it leads to.
    component
        Shape (states,): the component of each state, −1 for known ones.
    depth
        Shape (components,): the most components of several states on a path from each.
    """

    equations: SweepSystem
    found: IndexArray
    bounds: IndexArray
    component: IndexArray
    depth: IndexArray

    @property
    def sizes(self) -> IndexArray:
        """Return the number of states of each component, shape (components,)."""
        sizes: IndexArray = np.diff(self.bounds)
        return sizes

    def entries(self) -> IndexArray:
        """Return the number of entries of each component's rows, shape (components,)."""
        of_states = np.diff(self.equations.matrix.row_offsets[self.groups])[self.found]
        before = np.concatenate(([0], np.cumsum(of_states)))[self.bounds]
        return np.asarray(np.diff(before))

    @property
    def groups(self) -> IndexArray:
        """Return where the rows of each state start, and the end, shape (states + 1,)."""
        groups = self.equations.group_offsets
        if groups is None:
            raise ValueError("the equations are not by states")
        return groups

    def extract(
        self, system: SweepSystem, own: int, start: FloatArray
    ) -> tuple[SweepSystem, IndexArray]:
        """Return the equations of one component as a system, and the states that it is over.

        Parameters
        ----------
        system
            The whole system.
        own
            The component.
        start
            Values of all states, shape (states,).

        Returns
        -------
        The system, over the component's states in ascending order and then those that they lead
        to; and the number that each of its states has in the whole system.
        """
        members = np.sort(self.found[self.bounds[own] : self.bounds[own + 1]])
        groups = self.groups
        counts = np.diff(groups)[members]
        offsets = np.concatenate(([0], np.cumsum(counts)))
        rows = ranges(groups[members], counts)
        matrix = system.matrix.select_rows(rows)
        met = np.unique(matrix.columns)
        states = np.concatenate((members, met[self.component[met] != own]))
        place = np.searchsorted(members, matrix.columns)
        place[place == len(members)] = 0
        border = states[len(members) :]
        inner = members[place] == matrix.columns
        place = np.where(inner, place, len(members) + np.searchsorted(border, matrix.columns))
        columns = place.astype(index_dtype(len(states)))
        own_groups = None
        if system.group_offsets is not None:
            own_groups = offsets.astype(index_dtype(int(offsets[-1])))
        return SweepSystem(
            CsrMatrix(matrix.row_offsets, columns, matrix.values, len(states)),
            start[states],
            None if system.offset is None else system.offset[rows],
            np.arange(len(members), dtype=np.int32) if len(border) else None,
            omega=system.omega,
            group_offsets=own_groups,
            direction=system.direction,
        ), states


def components_of(system: SweepSystem) -> Components:
    """Return the strongly connected components of a system's states, in topological order.

    Parameters
    ----------
    system
        A system without scaling, its states ascending; entries of value 0 are no edges. In an MDP
        the edges are those of all choices.

    Raises
    ------
    MemoryError
        If there is too little memory.
    """
    equations = equations_of(system)
    return Components(equations, *ordered_components(equations))


def equations_of(system: SweepSystem) -> SweepSystem:
    """Return a system with a group of rows for each state, of none for known ones.

    Parameters
    ----------
    system
        A system without scaling, its states ascending.

    Returns
    -------
    The system without entries of value 0; its arrays of indices are all of one type.
    """
    matrix, size = system.matrix, system.num_states
    dtype = index_dtype(max(matrix.num_entries, matrix.num_rows, size) + 1)
    states = slice(system.num_updates) if system.states is None else system.states
    counts = np.zeros(size, dtype=dtype)
    counts[states] = 1 if system.group_offsets is None else np.diff(system.group_offsets)
    groups = np.zeros(size + 1, dtype=dtype)
    np.cumsum(counts, out=groups[1:])
    offsets, columns, values = matrix.row_offsets, matrix.columns, matrix.values
    present = values != 0.0
    if not present.all():
        before = np.concatenate(([0], np.cumsum(present)))
        offsets, columns, values = before[offsets], columns[present], values[present]
    offsets, columns = offsets.astype(dtype, copy=False), columns.astype(dtype, copy=False)
    by_states = CsrMatrix(offsets, columns, values, matrix.num_columns)
    return replace(system, matrix=by_states, states=None, group_offsets=groups)
