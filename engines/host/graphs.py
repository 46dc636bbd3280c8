"""Searches of graphs by the compiled library: closures, components, end components."""

from __future__ import annotations

from ctypes import c_int64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.arrays import INT32_MAX, IndexArray, MaskArray, index_dtype
from engines.host.compiled.library import MASKS, Array, Function, HostMatrix, Structure, of_type

FIRST_BUDGET = 32
"""States that a search for a closed set may visit before the other candidates have their turn."""

LABELS = Array(np.int32, np.int64)
"""Numbers of states, as wide as the graph's columns are."""


class _HostGraph(Structure):
    """`PgGraph` of src/graph.hpp."""

    _fields_ = (
        ("matrix", HostMatrix),
        ("states", c_int64),
        ("groups", c_void_p),
        ("into_offsets", c_void_p),
        ("into_rows", c_void_p),
        ("state_of", c_void_p),
    )


_FILL_BACKWARDS = Function("pg_fill_backwards", c_int64, _HostGraph)
_CLOSE_FORWARDS = Function("pg_close_forwards", c_int64, _HostGraph, MASKS)
_ALL_MAY_REACH = Function("pg_all_may_reach", c_int64, _HostGraph, c_int64, c_int64)
_COMES_TO = Function("pg_comes_to", c_int64, _HostGraph, c_int64, c_int64, c_int64)
_CLOSE_IN_ORDER = Function("pg_close_in_order", c_int64, _HostGraph, c_int64, MASKS)
_CLOSE_SOME = Function("pg_close_some", c_int64, _HostGraph, MASKS, MASKS)
_CLOSE_ALL = Function("pg_close_all", c_int64, _HostGraph, MASKS, MASKS)
_COUNT_ROUNDS = Function("pg_count_rounds", c_int64, _HostGraph, MASKS, MASKS, c_int64, MASKS)
_DROP_FAILING = Function(
    "pg_drop_failing", c_int64, _HostGraph, MASKS, LABELS, c_int64, MASKS, MASKS
)
_STRONG_COMPONENTS = Function("pg_strong_components", c_int64, _HostGraph, MASKS, LABELS)
_ORDERED_COMPONENTS = Function(
    "pg_ordered_components", c_int64, _HostGraph, MASKS, MASKS, LABELS, LABELS
)
_COMPONENTS_LEFT = Function("pg_components_left", c_int64, _HostGraph, LABELS, MASKS)
_CONDENSATION_ORDER = Function(
    "pg_condensation_order", c_int64, _HostGraph, LABELS, c_int64, LABELS
)
_END_COMPONENTS = Function("pg_end_components", c_int64, _HostGraph, MASKS, c_int64, MASKS, LABELS)


class HostGraph:
    """A graph of states with rows of edges, as the library reads it; arrays are shared.

    Masks of states have the shape (states,), masks of rows (rows,). Arguments are not changed, and
    each method raises ValueError where one has another shape, MemoryError where there is too little
    memory.

    Parameters
    ----------
    num_states
        How many states there are.
    groups
        The rows of state s are those from ``groups[s]`` to ``groups[s + 1] - 1``, shape
        (states + 1,); None for a row a state.
    offsets, columns
        Row r leads to ``columns[offsets[r]]`` to ``columns[offsets[r + 1] - 1]``, shapes
        (rows + 1,) and (edges,).
    """

    def __init__(
        self, num_states: int, groups: IndexArray | None, offsets: IndexArray, columns: IndexArray
    ) -> None:
        self.num_states = num_states
        self.num_rows = len(offsets) - 1
        if self.num_rows != num_states if groups is None else len(groups) != num_states + 1:
            raise ValueError(f"{num_states} states do not have {self.num_rows} rows in groups")
        largest = max(num_states, self.num_rows)
        wide_columns = largest >= INT32_MAX or columns.dtype.itemsize > 4
        wide_offsets = wide_columns or offsets.dtype.itemsize > 4
        self._offset_type: type[Any] = np.int64 if wide_offsets else np.int32
        self._number_type: type[Any] = np.int64 if wide_columns else np.int32
        self._label_type = index_dtype(num_states)
        offsets, columns = of_type(offsets, wide_offsets), of_type(columns, wide_columns)
        groups = None if groups is None else of_type(groups, wide_offsets)
        self._kept = [offsets, columns, groups]
        matrix = HostMatrix(
            self.num_rows,
            offsets.ctypes.data,
            columns.ctypes.data,
            None,
            wide_offsets,
            wide_columns,
        )
        self._has_groups = groups is not None
        self._num_edges = len(columns)
        self._graph = _HostGraph(
            matrix, num_states, None if groups is None else groups.ctypes.data, None, None, None
        )
        self._is_filled = False
        self._reaching: tuple[MaskArray, MaskArray] | None = None

    def reached_from(self, sources: MaskArray) -> MaskArray:
        """Return the least set that holds `sources` and the successors of its states."""
        closed = self._copied(sources)
        _checked(_CLOSE_FORWARDS(self._graph, closed))
        return closed

    def may_reach(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return the least set with `goal` and each of `through` that has a row into it.

        Who asks for probability 0 and then for probability 1 asks for the same set again.
        """
        asked = np.array((self._mask(goal), self._mask(through)))
        if self._reaching is None or not np.array_equal(self._reaching[0], asked):
            closed = self._copied(goal)
            _checked(_CLOSE_SOME(self._with_backwards(), asked[1], closed))
            self._reaching = asked, closed
        return self._reaching[1].copy()

    def must_approach(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return the least set with `goal` and each of `through` that has rows, all into it."""
        closed = self._copied(goal)
        _checked(_CLOSE_ALL(self._with_backwards(), self._mask(through), closed))
        return closed

    def rounds(
        self, goal: MaskArray, through: MaskArray, usable: MaskArray | None, *, every: bool
    ) -> tuple[int, MaskArray]:
        """Return how many rounds `may_reach` or `must_approach` takes, and the set.

        In a round all states join that have a row into the set as it was before, or rows that all
        lead there; the last round adds none.

        Parameters
        ----------
        goal, through
            As of these.
        usable
            The rows that count, where every row is needed of states whose rows all do; None for
            all.
        every
            Whether every row is needed.
        """
        closed = self._copied(goal)
        rows = np.ones(self.num_rows, dtype=np.bool_) if usable is None else self._row_mask(usable)
        graph = self._with_backwards()
        count = _checked(_COUNT_ROUNDS(graph, self._mask(through), rows, every, closed))
        return count, closed

    def can_force(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return the states from which a strategy has ``through U goal`` with probability 1.

        Notes
        -----
        A strategy cannot stay for ever but in an end component, and from anywhere in one it can
        take any row that leaves it: what it needs is one that leads to no failing state. States all
        of whose rows may lead to failing ones fail without being in any.
        """
        kept, goal = self.may_reach(goal, through), self._mask(goal)
        if kept.all():
            # Who takes each row again and again reaches the goal.
            return kept
        kept = ~self.must_approach(~kept, kept & ~goal)
        if not (kept & ~goal).any():
            return kept
        inner = np.ones(self.num_rows, dtype=np.bool_)
        labels, count = self._end_components(kept & ~goal, inner)
        _checked(_DROP_FAILING(self._graph, goal, labels, count, inner, kept))
        return kept

    def strong_components(self, restrict: MaskArray) -> tuple[IndexArray, int]:
        """Return the strongly connected component of each state, and how many there are.

        Components are numbered by their smallest states; those outside of `restrict` have −1.
        """
        labels = np.empty(self.num_states, dtype=self._number_type)
        count = _checked(_STRONG_COMPONENTS(self._graph, self._mask(restrict), labels))
        return labels.astype(self._label_type, copy=False), count

    def ordered_components(
        self, restrict: MaskArray, usable: MaskArray | None = None
    ) -> tuple[IndexArray, IndexArray]:
        """Return the strongly connected components, each after those that it may enter.

        Parameters
        ----------
        restrict
            The states to look at.
        usable
            The rows whose edges count; None for all.

        Returns
        -------
        States and bounds, shapes (states of `restrict`,) and (components + 1,): component k is
        ``states[bounds[k]]`` to ``states[bounds[k + 1] - 1]``.
        """
        if usable is None:
            usable = np.ones(self.num_rows, dtype=np.bool_)
        found = np.empty(self.num_states, dtype=self._number_type)
        bounds = np.empty(self.num_states + 1, dtype=self._number_type)
        masks = self._mask(restrict), self._row_mask(usable)
        count = _checked(_ORDERED_COMPONENTS(self._graph, *masks, found, bounds))
        return found[: bounds[count]], bounds[: count + 1]

    def only_bottom(self, origin: int | None = None) -> MaskArray | None:
        """Return the bottom component where there is one alone, if that is soon seen; else None.

        Where every state may reach the first one, that is in each bottom component. If it comes
        back to where all states are reached from, all of them are one component.
        """
        # A search in order that goes over the edges more often takes as long as one in depth.
        passes = 4
        most = passes * self._num_edges
        if self.num_states == 0 or not _checked(_ALL_MAY_REACH(self._graph, 0, most)):
            return None
        # In depth the way back is found soon, or not at all.
        few = self.num_states // 16 + 1
        if origin is not None and _checked(_COMES_TO(self._graph, 0, origin, few)):
            return np.ones(self.num_states, dtype=np.bool_)
        bottom = np.zeros(self.num_states, dtype=np.bool_)
        _checked(_CLOSE_IN_ORDER(self._graph, 0, bottom))
        return bottom

    def components_left(self, labels: IndexArray, count: int) -> MaskArray:
        """Return which components have an edge that leaves them, shape (count,)."""
        left = np.zeros(count, dtype=np.bool_)
        _checked(_COMPONENTS_LEFT(self._graph, self._labels(labels, count), left))
        return left

    def condensation_order(self, labels: IndexArray, count: int) -> IndexArray:
        """Return the components by how many follow each other from each on, then by number.

        Shape (count,). The components are strong ones, so that there are no cycles among them.
        """
        own, order = self._labels(labels, count), np.empty(count, dtype=self._number_type)
        _checked(_CONDENSATION_ORDER(self._with_backwards(), own, count, order))
        return order.astype(self._label_type, copy=False)

    def end_components(
        self, restrict: MaskArray, usable: MaskArray
    ) -> tuple[IndexArray, int, MaskArray]:
        """Return the maximal end component of each state, how many there are, and their rows.

        They lie in `restrict`, by rows of `usable`, and are numbered by their smallest states;
        other states have −1.
        """
        kept = np.array(self._row_mask(usable))
        labels, count = self._end_components(self._mask(restrict), kept)
        return labels.astype(self._label_type, copy=False), count, kept

    def _end_components(self, restrict: MaskArray, usable: MaskArray) -> tuple[IndexArray, int]:
        """Leave the rows of end components in `usable`."""
        labels = np.empty(self.num_states, dtype=self._number_type)
        graph = self._with_backwards()
        return labels, _checked(_END_COMPONENTS(graph, restrict, FIRST_BUDGET, usable, labels))

    def _with_backwards(self) -> _HostGraph:
        if not self._is_filled:
            starts = np.empty(self.num_states + 1, dtype=self._offset_type)
            rows = np.empty(self._num_edges, dtype=self._number_type)
            self._kept += [starts, rows]
            graph = self._graph
            graph.into_offsets, graph.into_rows = starts.ctypes.data, rows.ctypes.data
            if self._has_groups:
                state_of = np.empty(self.num_rows, dtype=self._number_type)
                self._kept.append(state_of)
                graph.state_of = state_of.ctypes.data
            _checked(_FILL_BACKWARDS(graph))
            self._is_filled = True
        return self._graph

    def _copied(self, mask: MaskArray) -> MaskArray:
        return np.array(_shaped(mask, self.num_states), dtype=np.bool_)

    def _mask(self, mask: MaskArray) -> MaskArray:
        return np.ascontiguousarray(_shaped(mask, self.num_states), dtype=np.bool_)

    def _row_mask(self, mask: MaskArray) -> MaskArray:
        return np.ascontiguousarray(_shaped(mask, self.num_rows), dtype=np.bool_)

    def _labels(self, labels: IndexArray, count: int) -> IndexArray:
        if len(labels) and int(labels.max()) >= count:
            raise ValueError(f"a label of {count} components is {labels.max()}")
        return np.ascontiguousarray(_shaped(labels, self.num_states), dtype=self._number_type)


def _shaped(array: NDArray[Any], size: int) -> NDArray[Any]:
    if array.shape != (size,):
        raise ValueError(f"an array of shape ({size},) is wanted, not of {array.shape}")
    return array


def _checked(status: int) -> int:
    if status < 0:
        raise MemoryError("a search of the graph: out of memory")
    return status
