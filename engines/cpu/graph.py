"""Analyses of a model's graph on the host: plain loops for small models, numba for large ones."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.cpu import (
    engine,
    graph_closures,
    graph_components,
    graph_labels,
    graph_order,
    host_loops,
)
from engines.cpu.graph_closures import Graph
from engines.cpu.graph_components import Choices, Partition, Pending, Search
from engines.cpu.graph_labels import Stacks
from engines.cpu.host_loops import HostClosures, HostLoops
from engines.formats.csr import CsrMatrix, FloatArray, IndexArray, MaskArray, index_dtype
from engines.model import ExplicitModel

LOOKED_AT = 1 << 17
"""Values that are looked at at once: their megabyte fits into a core's cache."""

SHARED_OUT = 8
"""From so many such parts on, as many threads look."""


class CpuGraph:
    """The graph of a model; see `engines.graph.operations.GraphOperations`.

    Parameters
    ----------
    model
        A model of any kind; stored zeros are no edges.
    compiled
        Whether to use numba; None to decide by the model's size.
    """

    def __init__(self, model: ExplicitModel, compiled: bool | None = None) -> None:
        self._num_states = model.num_states
        self._num_rows = model.matrix.num_rows
        # Held even where it is not read: see `operations_of`.
        self._given_groups = model.row_group_offsets
        self._offsets, self._columns = _edges(model.matrix)
        large = max(len(self._columns), self._num_states) >= engine.NUMBA_ENTRIES
        self._compiled = large if compiled is None else compiled
        self._any_way = compiled is None

    def reached_from(self, sources: MaskArray) -> MaskArray:
        """Return the least set that holds `sources` and the successors of its states."""
        host = self._by_host()
        if host is not None:
            return host.reached_from(sources)
        closed = self._copy(sources)
        self._closures.close_forwards(self._graph, closed, self._per_state())
        return _mask(closed)

    def may_reach(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return the least set with `goal` and each of `through` that has a choice into it."""
        host = self._by_host()
        if host is not None:
            return host.may_reach(goal, through)
        closed = self._copy(goal)
        self._closures.close_some(self._graph, self._copy(through), closed, self._per_state())
        return _mask(closed)

    def must_approach(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return the least set with `goal` and each of `through` whose choices all lead into it."""
        host = self._by_host()
        if host is not None:
            return host.must_approach(goal, through)
        closed = self._copy(goal)
        entered = self._copy(np.zeros(self._num_rows, dtype=np.bool_))
        missing = self._copy(np.diff(self._groups))
        self._closures.close_all(
            self._graph, self._copy(through), closed, self._per_state(), entered, missing
        )
        return _mask(closed)

    def can_force(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return the states from which a strategy has ``through U goal`` with probability 1."""
        host = self._by_host()
        forced = None if host is None else host.can_force(goal, through)
        if forced is not None:
            return forced
        reaching = self.may_reach(goal, through)
        labels, count, choices = self.end_components(
            reaching & ~goal, np.ones(self._num_rows, dtype=np.bool_)
        )
        # A strategy cannot stay for ever but in an end component, and from anywhere in one it can
        # take any choice that leaves it: what it needs is one that leads to no failing state.
        leader, kept = self._per_state(), self._copy(reaching)
        heads, following = self._unset(count), self._unset(self._num_states)
        self._closures.join_members(self._copy(labels), heads, leader, following)
        self._closures.drop_failing(
            self._graph,
            self._copy(goal),
            self._copy(choices),
            kept,
            leader,
            following,
            self._scratch(self._num_states, self._num_rows),
            self._per_state(),
        )
        return _mask(kept)

    def strong_components(self, restrict: MaskArray) -> tuple[IndexArray, int]:
        """Return the strongly connected component of each state, and their number."""
        found = self._found_by_host(restrict)
        if found is not None:
            return found.astype(index_dtype(self._num_states)), int(found.max(initial=-1)) + 1
        labels = self._per_state()
        self._labels.unlabelled(self._copy(restrict), labels)
        count = self._label(self._starts, self._targets, labels)
        self._components.renumber(labels, self._unset(count))
        return np.asarray(labels, dtype=index_dtype(self._num_states)), count

    def _found_by_host(self, restrict: MaskArray) -> NDArray[np.int32] | None:
        """Return the strong components as the host's own loops find them, where they may."""
        host = self._host()
        if host is None:
            return None
        return host.strong_components(self._edge_starts, self._columns, restrict)

    def _host(self) -> HostLoops | None:
        """Return the host's own loops where they are to stand in for numba's."""
        edges = len(self._columns)
        if not self._any_way or edges < host_loops.FEWEST_EDGES:
            return None
        return host_loops.stand_in(edges)

    def _by_host(self) -> HostClosures | None:
        """Return the host's own searches of the graph where they are to stand in for numba's."""
        return None if self._host() is None else self._host_closures

    @cached_property
    def _host_closures(self) -> HostClosures | None:
        host = host_loops.registered()
        if host is None:
            return None
        groups = self._given_groups
        return host.closures(groups, self._offsets, self._columns, self._num_states)

    def components_left(self, labels: IndexArray, count: int) -> MaskArray:
        """Return which components have an edge that leaves them, shape (count,)."""
        if self._host() is not None:
            own = np.repeat(labels, np.diff(self._edge_starts))
            left = np.zeros(count, dtype=np.bool_)
            left[own[(own >= 0) & (labels[self._columns] != own)]] = True
            return left
        leaving = self._copy(np.zeros(count, dtype=np.bool_))
        self._labels.mark_leaving(self._graph, self._copy(labels), leaving)
        return _mask(leaving)

    def condensation_order(self, labels: IndexArray, count: int) -> IndexArray:
        """Return the components, each after all that it may enter, shape (count,)."""
        kernels = self._order
        own, members = self._copy(labels), self._per_state()
        bounds, order = self._per_component(count + 1), self._per_component(count)
        kernels.sort_members(own, bounds, members)
        levels, waiting = self._per_component(count), self._scratch(count, len(self._columns))
        arguments = (own, bounds, members, waiting, self._per_component(count), levels)
        number = int(kernels.component_levels(self._graph, *arguments))
        kernels.sort_by_level(levels, self._per_component(number), order)
        return np.asarray(order, dtype=index_dtype(self._num_states))

    def end_components(
        self, restrict: MaskArray, choices: MaskArray
    ) -> tuple[IndexArray, int, MaskArray]:
        """Return the maximal end component of each state, their number, and their choices."""
        host = self._by_host()
        found = None if host is None else host.end_components(restrict, choices)
        if found is not None:
            labels = found[0].astype(index_dtype(self._num_states))
            return labels, int(labels.max(initial=-1)) + 1, found[1]
        partition = self._partition(restrict)
        left = Choices(
            usable=self._copy(choices),
            remaining=self._per_state(),
            lost=self._scratch(self._num_rows, self._num_rows),
            removed=self._per_state(),
        )
        kernels = self._components
        num_removed = kernels.first_choices(self._graph, partition, left)
        kernels.remove_states(self._graph, partition, left, 0, num_removed, 0)
        # All of it is searched once, by the faster search.
        labels = self._per_state()
        self._labels.unlabelled(self._copy(np.asarray(partition.block) == 0), labels)
        count = self._label(*self._kept_edges(left), labels)
        if count > 1:
            kernels.split_by_labels(partition, labels, count)
            # 64 bits wide, as numbers are inside of the kernels: else each is compiled once more.
            stack = (np.zeros(self._num_states + 1, dtype=np.int64) for _ in Pending._fields)
            pending = Pending(*map(self._copy, stack))
            parts = self._graph, partition, left
            top = kernels.lose_in_each(*parts, pending, 0, 0, 1, count, 0)
            if top:
                kernels.end_components(*parts, self._search(), pending, top, count)
        return *self._numbered(partition, self._num_states + 1), _mask(left.usable)

    def end_component_states(
        self, restrict: MaskArray, choices: MaskArray | None = None
    ) -> tuple[IndexArray, int]:
        """Return the maximal end component of each state, and their number."""
        if choices is None:
            choices = np.ones(self._num_rows, dtype=np.bool_)
        return self.end_components(restrict, choices)[:2]

    def _kept_edges(self, choices: Choices) -> tuple[Any, Any]:
        """Return the edges of usable choices: where each state's start, and where they lead."""
        if _mask(choices.usable).all():
            return self._starts, self._targets
        starts, columns = self._like(self._starts), self._like(self._targets)
        self._labels.keep_usable(self._graph, choices.usable, starts, columns)
        return starts, columns

    def _label(self, starts: Any, columns: Any, labels: Any) -> int:
        """Label the components of the states labelled 0, in topological order; return how many."""
        entry_at = self._scratch(self._num_states, len(self._columns))
        kernels, stacks = self._labels, Stacks(self._per_state(), entry_at, self._per_state())
        ahead, back = (kernels.far_steps(starts, columns, labels, stacks, way) for way in (0, 1))
        backwards = int(graph_labels.MUCH_NEARER * back < ahead)
        count = int(kernels.label_components(starts, columns, labels, stacks, backwards))
        kernels.order_labels(labels)
        return count

    @property
    def _closures(self) -> Any:
        return _kernels().closures if self._compiled else graph_closures

    @property
    def _components(self) -> Any:
        return _kernels().components if self._compiled else graph_components

    @property
    def _order(self) -> Any:
        return _kernels().order if self._compiled else graph_order

    @property
    def _labels(self) -> Any:
        return _kernels().labels if self._compiled else graph_labels

    @property
    def _graph(self) -> Graph:
        return self._array_graph if self._compiled else self._list_graph

    @cached_property
    def _groups(self) -> IndexArray:
        if self._given_groups is not None:
            return self._given_groups
        return np.arange(self._num_states + 1, dtype=index_dtype(self._num_states))

    @cached_property
    def _edge_starts(self) -> IndexArray:
        """Where the edges of each state start, shape (states + 1,)."""
        return self._offsets if self._given_groups is None else self._offsets[self._groups]

    @cached_property
    def _starts(self) -> Any:
        """The same, as the loops take it."""
        return self._edge_starts if self._compiled else self._edge_starts.tolist()

    @cached_property
    def _targets(self) -> Any:
        """Where the edges lead."""
        if not self._compiled:
            return self._columns.tolist()
        # An index without a sign is not asked for it.
        return self._columns.view(np.uint32) if self._columns.dtype == np.int32 else self._columns

    @cached_property
    def _array_graph(self) -> Graph:
        kernels = _kernels().closures
        columns, edges = self._columns, len(self._columns)
        pre_offsets = np.zeros(self._num_states + 1, dtype=index_dtype(edges))
        kernels.count_entries(columns, pre_offsets)
        pre_rows = np.empty(edges, dtype=index_dtype(self._num_rows))
        kernels.sort_entries(self._offsets, columns, pre_offsets[:-1].copy(), pre_rows)
        return self._graph_of(pre_offsets, pre_rows)

    @cached_property
    def _list_graph(self) -> Graph:
        order = np.argsort(self._columns, kind="stable")
        entering = np.bincount(self._columns, minlength=self._num_states)
        pre_offsets = np.concatenate(([0], np.cumsum(entering)))
        rows = np.repeat(np.arange(self._num_rows), np.diff(self._offsets))
        parts: Any = self._graph_of(pre_offsets, rows[order])
        return Graph(*(part.tolist() for part in parts))

    def _graph_of(self, pre_offsets: IndexArray, pre_rows: IndexArray) -> Graph:
        states = np.arange(self._num_states, dtype=index_dtype(self._num_states))
        # A chain's rows are its states.
        state_of = (
            states if self._given_groups is None else np.repeat(states, np.diff(self._groups))
        )
        return Graph(self._groups, self._offsets, self._columns, pre_offsets, pre_rows, state_of)

    def _partition(self, chosen: MaskArray) -> Partition:
        order, place, block = (self._per_state() for _ in range(3))
        partition = Partition(order, place, block, self._per_state(1), self._per_state(1))
        self._components.first_block(self._copy(chosen), partition)
        return partition

    def _search(self) -> Search:
        entry_at = self._scratch(self._num_states, len(self._columns))
        row_at = self._scratch(self._num_states, self._num_rows)
        number, oldest, path, opened, found, bounds = (self._per_state() for _ in range(6))
        return Search(number, oldest, row_at, entry_at, path, opened, found, bounds)

    def _numbered(self, partition: Partition, labels: int) -> tuple[IndexArray, int]:
        count = int(self._components.renumber(partition.block, self._unset(labels)))
        return np.asarray(partition.block, dtype=index_dtype(self._num_states)), count

    def _per_state(self, more: int = 0) -> Any:
        return self._scratch(self._num_states + more, self._num_states)

    def _per_component(self, size: int) -> Any:
        return self._scratch(size, self._num_states)

    def _scratch(self, size: int, largest: int) -> Any:
        """Return zeros for numbers up to `largest`, and one more."""
        return np.zeros(size, dtype=index_dtype(largest + 1)) if self._compiled else [0] * size

    def _unset(self, size: int) -> Any:
        """Return room for states or components, each −1."""
        return self._copy(np.full(size, -1, dtype=index_dtype(self._num_states)))

    def _like(self, array: Any) -> Any:
        return np.empty_like(array) if self._compiled else [0] * len(array)

    def _copy(self, array: NDArray[Any]) -> Any:
        return array.copy() if self._compiled else array.tolist()


def _edges(matrix: CsrMatrix) -> tuple[IndexArray, IndexArray]:
    """Return row offsets and columns without the entries of value 0."""
    if _none_is_zero(matrix.values):
        return matrix.row_offsets, matrix.columns
    present = matrix.values != 0.0
    kept = np.concatenate(([0], np.cumsum(present)))[matrix.row_offsets]
    return kept.astype(matrix.row_offsets.dtype), matrix.columns[present]


def _none_is_zero(values: FloatArray) -> bool:
    """Return whether no value is 0, looked at in parts that fit into a core's cache."""

    def look(first: int) -> bool:
        return bool((values[first : first + LOOKED_AT] != 0.0).all())

    firsts = range(0, len(values), LOOKED_AT)
    if len(firsts) < SHARED_OUT:
        return all(map(look, firsts))
    with ThreadPoolExecutor(min(os.cpu_count() or 1, SHARED_OUT)) as pool:
        return all(pool.map(look, firsts))


def _kernels() -> Any:
    from engines.cpu import graph_kernels

    return graph_kernels


def _mask(values: Any) -> MaskArray:
    return np.asarray(values, dtype=np.bool_)
