"""The strongly connected components of a system in order, and walks over them.

Small systems are walked over by plain loops on lists, others by compiled loops on arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from engines.cpu import graph_components, topological_kernels
from engines.cpu.graph_closures import Graph
from engines.cpu.graph_components import Partition, Search
from engines.cpu.topological_kernels import Equations, Order
from engines.formats.csr import CsrMatrix, FloatArray, IndexArray, index_dtype, ranges
from engines.system import SweepSystem

PLAIN_ENTRIES = 20_000
"""Up to this many entries a walk begins with plain loops on lists."""

STEPS_ON_LISTS = 100
"""So many steps are taken on lists at most: each copies what the walk writes to."""

PLAIN_WORK = 300_000
"""Entries that plain loops look at before numba is loaded: about as long as that takes."""

COMPILED_WORK = 50_000_000
"""Entries that compiled loops look at between two reports of progress."""


@dataclass(frozen=True)
class Components:
    """The equations of a system by states, and their components in topological order.

    Parameters
    ----------
    equations
        The equations, on arrays.
    found, bounds
        Component k is the states ``found[bounds[k]]`` to ``found[bounds[k + 1] - 1]``; it comes
        after the components that it leads to.
    component
        Shape (states,): the component of each state, −1 for known ones.
    depth
        Shape (components,): the most components of several states on a path from each.
    """

    equations: Equations
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
        offsets, groups = np.asarray(self.equations.offsets), np.asarray(self.equations.groups)
        of_states = np.diff(offsets[groups])[self.found]
        before = np.concatenate(([0], np.cumsum(of_states)))[self.bounds]
        return np.asarray(np.diff(before))

    @property
    def on_lists(self) -> bool:
        """Whether a walk begins with plain loops on lists."""
        return max(len(self.equations.columns), len(self.component)) <= PLAIN_ENTRIES

    @property
    def order(self) -> Order:
        """Return the order as the kernels take it."""
        parts: tuple[Any, ...] = (self.found, self.bounds, self.component)
        return Order(*parts)

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
        groups = np.asarray(self.equations.groups)
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

    Notes
    -----
    Tarjan (1972), which finds each component after those that it leads to.
    """
    equations = equations_of(system)
    size = system.num_states
    compiled = max(len(equations.columns), size) > PLAIN_ENTRIES
    graph_kernels: Any = _graph_kernels() if compiled else graph_components
    of_rows: Any = _own(topological_kernels) if compiled else topological_kernels
    dtype: Any = np.asarray(equations.groups).dtype

    def room(length: int) -> Any:
        return np.zeros(length, dtype=dtype) if compiled else [0] * length

    def given(array: Any) -> Any:
        return array if compiled else array.tolist()

    groups, offsets, columns = (given(np.asarray(a)) for a in equations[:3])
    # What leads into a state is not asked for.
    graph = Graph(groups, offsets, columns, room(0), room(0), room(0))
    partition = Partition(*(room(n) for n in (size, size, size, 1, 1)))
    search = Search(*(room(size) for _ in Search._fields))
    unknown = np.diff(np.asarray(equations.groups)) > 0
    graph_kernels.first_block(given(unknown), partition)
    usable = given(np.ones(len(offsets) - 1, dtype=np.bool_))
    count = int(graph_kernels.strong_components(graph, usable, partition, 0, search))
    found = np.asarray(search.found, dtype=dtype)[: int(np.count_nonzero(unknown))]
    bounds = np.concatenate(([0], np.asarray(search.bounds)[:count])).astype(dtype)
    component = np.full(size, -1, dtype=dtype)
    component[found] = np.repeat(np.arange(count, dtype=dtype), np.diff(bounds))
    depth = room(count)
    on_lists = Equations(*(given(np.asarray(part)) for part in equations))
    of_rows.depths(on_lists, Order(*map(given, (found, bounds, component))), depth)
    return Components(equations, found, bounds, component, np.asarray(depth, dtype=dtype))


def equations_of(system: SweepSystem) -> Equations:
    """Return the equations of a system by states, on arrays.

    Parameters
    ----------
    system
        A system without scaling, its states ascending.
    """
    matrix, size = system.matrix, system.num_states
    states = np.arange(system.num_updates) if system.states is None else system.states
    # Of one type, so that numba compiles for one.
    dtype = index_dtype(max(matrix.num_entries, matrix.num_rows, size) + 1)
    counts = np.zeros(size, dtype=dtype)
    counts[states] = 1 if system.group_offsets is None else np.diff(system.group_offsets)
    groups = np.zeros(size + 1, dtype=dtype)
    np.cumsum(counts, out=groups[1:])
    offsets, columns, values = matrix.row_offsets, matrix.columns, matrix.values
    present = values != 0.0
    if not present.all():
        before = np.concatenate(([0], np.cumsum(present)))
        offsets, columns, values = before[offsets], columns[present], values[present]
    parts: tuple[Any, ...] = (
        groups,
        offsets.astype(dtype, copy=False),
        columns.astype(dtype, copy=False),
        values,
        np.empty(0) if system.offset is None else system.offset,
    )
    return Equations(*parts)


class Walk:
    """The arguments of a walk: lists for its first steps, arrays from then on.

    Parameters
    ----------
    kernels
        The module of the kernel, whose functions call nothing but each other.
    name
        The kernel: it takes the equations, the order, a rule, `numbers`, and a budget, and returns
        why it stopped.
    components
        The equations and their components.
    numbers
        Further arrays, which the kernel may write to.
    """

    def __init__(
        self, kernels: ModuleType, name: str, components: Components, numbers: list[Any]
    ) -> None:
        self._kernels, self._name = kernels, name
        self._arrays: tuple[Any, Any] = (components.equations, components.order)
        self._lists: tuple[Any, Any] | None = None
        self._numbers = [np.asarray(array) for array in numbers]
        self._plain_work = PLAIN_WORK if components.on_lists else 0

    @property
    def compiled(self) -> bool:
        """Whether compiled loops take the next steps."""
        return self._plain_work <= 0

    def step(self, rule: Any) -> int:
        """Go on until the kernel stops; return why.

        Parameters
        ----------
        rule
            What the kernel takes for its rule.
        """
        if self.compiled:
            kernel = getattr(_own(self._kernels), self._name)
            return int(kernel(*self._arrays, rule, *self._numbers, COMPILED_WORK))
        if self._lists is None:
            equations, order = self._arrays
            self._lists = (
                type(equations)(*(_listed(part) for part in equations)),
                Order(*(_listed(part) for part in order)),
            )
        numbers = [array.tolist() for array in self._numbers]
        reason = int(getattr(self._kernels, self._name)(*self._lists, rule, *numbers, PLAIN_WORK))
        for array, changed in zip(self._numbers, numbers, strict=True):
            array[:] = changed
        # Copies, and what is done elsewhere, have their price too.
        self._plain_work -= PLAIN_WORK // STEPS_ON_LISTS
        if reason == topological_kernels.OUT_OF_BUDGET:
            self._plain_work = 0
        return reason


def _listed(part: Any) -> Any:
    return part.tolist() if isinstance(part, np.ndarray) else part


_compiled: dict[str, Any] = {}


def _own(kernels: ModuleType) -> Any:
    """Return the functions of a module, compiled."""
    found = _compiled.get(kernels.__name__)
    if found is None:
        from engines.cpu import graph_kernels

        found = _compiled[kernels.__name__] = graph_kernels.compiled_functions(kernels)
    return found


def _graph_kernels() -> Any:
    from engines.cpu import graph_kernels

    return graph_kernels.components
