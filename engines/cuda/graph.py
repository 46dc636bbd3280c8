"""Analyses of a model's graph on one GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.backend import cupy
from engines.cpu.graph import CpuGraph, _edges
from engines.cuda.modules import BLOCK_THREADS, Launcher, stream
from engines.cuda.prepare import _scan, to_device
from engines.errors import UnsupportedError
from engines.formats.csr import INT32_MAX, IndexArray, MaskArray
from engines.model import ExplicitModel

LONGEST_ITEM = 4096
"""The most edges of an item of a worklist, as in `engines/kernels/graph.cu`."""

BLOCKS = 1056
"""The most blocks of a round: eight for each multiprocessor of a large device."""

LOOK_EVERY = 8
"""Rounds between two looks of the host."""

PATIENCE = 64
"""Rounds that are granted to any operation."""

STATES_A_ROUND = 1000
"""So many states must be expanded for each further round, about what the CPU does in a round's
time: the rest of a graph that is as deep as it is large, such as a line, is its to do."""

RESTARTS = 64
"""How often states are removed before the CPU, which never starts anew, takes over."""

KEPT_SHARE = 64
"""A graph stays on the device between operations if it takes at most one part in so many."""

Work = Callable[["_Worklist"], tuple[MaskArray, bool]]
"""Returns a closure, or the part of it that was found, and whether it is complete."""


class CudaGraph:
    """The graph of a model on one GPU; see `engines.graph.operations.GraphOperations`.

    Components are found on the CPU. So is the rest of a closure that makes too little of its
    rounds: sets only grow, and whoever goes on from a part of a closure arrives at the same set.
    Where the device's memory is too small, the CPU does all.

    Parameters
    ----------
    model
        A model of any kind; stored zeros are no edges.
    device_number
        Which of the devices.

    Raises
    ------
    UnsupportedError
        For more states or choices than 32 bits number.

    Notes
    -----
    Each edge is looked at once, by a worklist: Merrill, Garland, Grimshaw (2012), Scalable GPU
    graph traversal; but without an order of levels, since sets need none. The states whose choices
    all lead into a set are found by counting down: Dowling, Gallier (1984), Linear-time algorithms
    for testing the satisfiability of propositional Horn formulae.
    """

    def __init__(self, model: ExplicitModel, device_number: int = 0) -> None:
        if max(model.num_states, model.matrix.num_rows) >= INT32_MAX:
            raise UnsupportedError(
                f"{model.num_states} states with {model.matrix.num_rows} choices: the GPU engine "
                "numbers them in 32 bits"
            )
        # A copy of the matrix that shares its arrays: the graph must not keep the model alive.
        self._model = ExplicitModel(model.kind, replace(model.matrix), model.row_group_offsets)
        self._offsets, self._columns = _edges(model.matrix)
        self._device = device_number
        self._kept: dict[str, _Edges] = {}
        self.rounds = 0
        """Rounds that the last operation made on the device."""
        self.note = ""
        """Why the last operation was ended by the CPU; empty where it was not."""

    def reached_from(self, sources: MaskArray) -> MaskArray:
        """Return the least set that holds `sources` and the successors of its states."""
        found, complete = self._run(
            lambda work: work.closure(self._edges("forwards", work.launcher), sources, ~sources),
            sources,
        )
        return found if complete else self._cpu.reached_from(found)

    def may_reach(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return the least set with `goal` and each of `through` that has a choice into it."""
        found, complete = self._run(
            lambda work: work.closure(
                self._edges("backwards", work.launcher), goal, through & ~goal
            ),
            goal,
        )
        return found if complete else self._cpu.may_reach(found, through)

    def must_approach(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return the least set with `goal` and each of `through` whose choices all lead into it."""
        if self._model.row_group_offsets is None:
            return self.may_reach(goal, through)
        found, complete = self._run(
            lambda work: work.closure_by_all(
                self._edges("backwards", work.launcher), goal, through & ~goal
            ),
            goal,
        )
        return found if complete else self._cpu.must_approach(found, through)

    def can_force(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return the states from which a strategy has ``through U goal`` with probability 1.

        Notes
        -----
        Prob1E as a nested fixpoint (de Alfaro 1997, section 3.4): what cannot reach the goal is
        removed, and with it each choice that may lead there, until all that is left can.
        """

        def nested(work: _Worklist) -> tuple[MaskArray, bool]:
            edges = self._edges("backwards", work.launcher)
            reaching, complete = work.closure(edges, goal, through & ~goal)
            return work.forcing(edges, goal, reaching) if complete else (goal, False)

        found, complete = self._run(nested, goal)
        return found if complete else self._cpu.can_force(goal, through)

    def strong_components(self, restrict: MaskArray) -> tuple[IndexArray, int]:
        """Return the strongly connected component of each state, and their number.

        Notes
        -----
        A graph that is one component as a whole, as those of many performance models are, is seen
        by two searches from its first state; all others are decomposed on the CPU.
        """
        if restrict.all() and self._is_one_component():
            return np.zeros(self._model.num_states, dtype=np.int32), 1
        return self._cpu.strong_components(restrict)

    def _is_one_component(self) -> bool:
        first = np.zeros(self._model.num_states, dtype=np.bool_)
        first[:1] = True

        def search(which: str) -> Work:
            return lambda work: work.closure(self._edges(which, work.launcher), first, ~first)

        for which in ("forwards", "backwards"):
            found, complete = self._run(search(which), first)
            if not (complete and found.all()):
                return False
        return True

    def components_left(self, labels: IndexArray, count: int) -> MaskArray:
        """Return which components have an edge that leaves them, shape (count,)."""
        return self._cpu.components_left(labels, count)

    def end_components(
        self, restrict: MaskArray, choices: MaskArray
    ) -> tuple[IndexArray, int, MaskArray]:
        """Return the maximal end component of each state, their number, and their choices."""
        return self._cpu.end_components(restrict, choices)

    @cached_property
    def _cpu(self) -> CpuGraph:
        return CpuGraph(self._model)

    def _run(self, work: Work, start: MaskArray) -> tuple[MaskArray, bool]:
        """Do work on the device; return what was found, and whether that is all."""
        self.rounds, self.note = 0, ""
        if len(self._columns) == 0:
            return start.copy(), True
        cp = cupy()
        with cp.cuda.Device(self._device), stream(self._device):
            try:
                list_ = _Worklist(
                    self._model.num_states, self._model.matrix.num_rows, self._columns
                )
                found, complete = work(list_)
            except cp.cuda.memory.OutOfMemoryError as error:
                self._kept.clear()
                self.note = f"GPU {self._device} ran out of memory: {error}"
            else:
                self.rounds = list_.rounds
                if not complete:
                    self.note = f"left to the CPU after {list_.rounds} rounds"
                return found, complete
            cp.get_default_memory_pool().free_all_blocks()
        return start, False

    def _edges(self, which: str, launcher: Launcher) -> _Edges:
        edges = self._kept.get(which)
        if edges is None:
            upload = _forwards if which == "forwards" else _backwards
            groups = self._model.row_group_offsets
            edges = upload(launcher, self._offsets, self._columns, groups, self._model.num_states)
            _, memory = cupy().cuda.runtime.memGetInfo()
            if edges.num_bytes <= memory // KEPT_SHARE:
                self._kept[which] = edges
        return edges


@dataclass(frozen=True)
class _Edges:
    """Edges on the device, ordered by the state that they are followed from.

    `ends` are where they lead: states, or rows of which `state_of` knows the states. The edges of
    state s are those of its row in `offsets`, or of its group of rows if `by_groups`.
    """

    offsets: Any
    groups: Any | None
    ends: Any
    state_of: Any | None
    by_groups: bool

    @property
    def of_states(self) -> tuple[Any, Any | None]:
        return self.offsets, self.groups if self.by_groups else None

    @property
    def num_bytes(self) -> int:
        arrays = (self.offsets, self.groups, self.ends, self.state_of)
        return sum(array.nbytes for array in arrays if array is not None)


def _forwards(
    launcher: Launcher,
    offsets: IndexArray,
    columns: IndexArray,
    groups: IndexArray | None,
    _num_states: int,
) -> _Edges:
    on_device = None if groups is None else to_device(groups, np.int32)
    rows = to_device(offsets, launcher.offset_dtype)
    return _Edges(rows, on_device, to_device(columns, np.int32), None, by_groups=groups is not None)


def _backwards(
    launcher: Launcher,
    offsets: IndexArray,
    columns: IndexArray,
    groups: IndexArray | None,
    num_states: int,
) -> _Edges:
    """Turn the edges round: a counting sort by the states that they enter."""
    cp = cupy()
    ahead = _forwards(launcher, offsets, columns, groups, num_states)
    edges, rows = cp.int64(len(columns)), cp.int32(len(offsets) - 1)
    # Counts, then the ends of the states' parts, then their beginnings.
    cursors = cp.zeros(num_states + 1, dtype=launcher.offset_dtype)
    entering = cp.empty(len(columns), dtype=cp.int32)
    launcher.launch("count_entering", len(columns), ahead.ends, edges, cursors, module="graph")
    _scan(cursors, launcher)
    launcher.launch(
        "scatter_rows",
        len(columns),
        *(ahead.offsets, rows, ahead.ends, edges, cursors, entering),
        module="graph",
    )
    state_of = None
    if groups is not None:
        state_of = cp.empty(int(rows), dtype=cp.int32)
        arguments = (ahead.groups, cp.int32(num_states), rows, state_of)
        launcher.launch("name_states", int(rows), *arguments, module="graph")
    return _Edges(cursors, ahead.groups, entering, state_of, by_groups=False)


class _Worklist:
    """The worklist of one operation, on the current device and stream."""

    def __init__(self, num_states: int, num_rows: int, columns: IndexArray) -> None:
        cp = self._cp = cupy()
        self._num_states, self._num_rows = num_states, num_rows
        # An index may pass the last edge by the length of an item before it is compared.
        self.launcher = Launcher("long long" if _wide(len(columns)) else "int")
        self._blocks = min(BLOCKS, (num_states + 31) // 32)
        # A state comes once, in as many items as its edges take.
        self._items = cp.empty(num_states + len(columns) // LONGEST_ITEM, dtype=cp.uint64)
        self._progress = cp.zeros(5, dtype=cp.uint64)
        self._expanded = 0
        self.rounds = 0

    def closure(self, edges: _Edges, goal: MaskArray, open_: MaskArray) -> tuple[MaskArray, bool]:
        """Close a set under edges into states of `open_`, disjoint from it."""
        left = to_device(_packed(open_), np.uint32)
        self._collect(to_device(_packed(goal), np.uint32), edges)
        complete = self._close(
            "close_some", *edges.of_states, edges.ends, edges.state_of, None, left
        )
        return self._joined(goal, open_, left), complete

    def closure_by_all(
        self, edges: _Edges, goal: MaskArray, open_: MaskArray
    ) -> tuple[MaskArray, bool]:
        """Close a set under states of `open_` whose rows all enter it; `edges` lead backwards."""
        cp = self._cp
        left = to_device(_packed(open_), np.uint32)
        entered = cp.zeros(_words(self._num_rows), dtype=cp.uint32)
        missing = cp.empty(self._num_states, dtype=cp.int32)
        self._launch(
            "count_rows", self._num_states, edges.groups, cp.int32(self._num_states), missing
        )
        self._collect(to_device(_packed(goal), np.uint32), edges)
        arguments = (edges.offsets, edges.ends, edges.state_of, entered, missing, left)
        complete = self._close("close_all", *arguments)
        return self._joined(goal, open_, left), complete

    def forcing(self, edges: _Edges, goal: MaskArray, kept: MaskArray) -> tuple[MaskArray, bool]:
        """Remove from `kept` whoever cannot reach `goal` without a risk to leave `kept`."""
        cp = self._cp
        inside = to_device(_packed(kept & ~goal), np.uint32)
        sure = to_device(_packed(goal), np.uint32)
        left = cp.empty_like(inside)
        barred = cp.zeros(_words(self._num_rows), dtype=cp.uint32)
        self._bar(to_device(_packed(~kept), np.uint32), edges, barred)
        some = (*edges.of_states, edges.ends, edges.state_of, barred, left)
        for _ in range(RESTARTS):
            left.data.copy_from_device_async(inside.data, inside.nbytes, stream=None)
            self._collect(sure, edges)
            if not self._close("close_some", *some):
                break
            self._launch("drop_members", len(inside), inside, left, cp.int32(len(inside)))
            # States that nothing enters take no choice from others.
            if self._bar(left, edges, barred) == 0:
                return goal | _unpacked(inside.get(), self._num_states), True
        return kept, False

    def _bar(self, removed: Any, edges: _Edges, barred: Any) -> int:
        """Bar the rows that enter a set; return how many items its edges took."""
        self._collect(removed, edges)
        self._round("bar_rows", edges.offsets, edges.ends, barred)
        return int(self._progress.get()[2])

    def _collect(self, states: Any, edges: _Edges) -> None:
        """Begin a list with the edges of a set."""
        self._progress.data.memset_async(0, self._progress.nbytes, stream=None)
        arguments = (states, self._cp.int32(self._num_states), *edges.of_states)
        self._launch("collect_states", self._num_states, *arguments, self._items, self._progress)

    def _close(self, kernel: str, *arguments: Any) -> bool:
        """Work off the list; return whether that was done, or given up."""
        while True:
            for _ in range(LOOK_EVERY):
                self._round(kernel, *arguments)
            self.rounds += LOOK_EVERY
            begin, end, _, _, expanded = self._progress.get().tolist()
            if begin == end:
                self._expanded += expanded
                return True
            if self.rounds > PATIENCE + (self._expanded + expanded) // STATES_A_ROUND:
                return False

    def _round(self, kernel: str, *arguments: Any) -> None:
        threads = self._blocks * BLOCK_THREADS
        self._launch(kernel, threads, *arguments, self._items, self._progress)

    def _launch(self, kernel: str, threads: int, *arguments: Any) -> None:
        self.launcher.launch(kernel, threads, *arguments, module="graph")

    def _joined(self, goal: MaskArray, open_: MaskArray, left: Any) -> MaskArray:
        return goal | (open_ & ~_unpacked(left.get(), self._num_states))


def _wide(edges: int) -> bool:
    return edges > INT32_MAX - LONGEST_ITEM


def _words(members: int) -> int:
    return (members + 31) // 32


def _packed(mask: MaskArray) -> NDArray[np.uint32]:
    """Return a mask as a bitmap of whole words."""
    words = np.zeros(_words(len(mask)), dtype="<u4")
    bits = np.packbits(mask, bitorder="little")
    words.view(np.uint8)[: len(bits)] = bits
    return words


def _unpacked(words: NDArray[np.uint32], members: int) -> MaskArray:
    return np.unpackbits(words.view(np.uint8), count=members, bitorder="little").view(np.bool_)
