"""Analyses of a model's graph on one GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.backend import cupy
from engines.cpu.graph import CpuGraph, _edges
from engines.cuda.components import (
    ComponentSearch,
    SearchSteps,
    left_components,
    numbered,
    with_rest,
)
from engines.cuda.condensation import order_by_level
from engines.cuda.end_components import refine
from engines.cuda.graph_edges import Edges, backwards, forwards
from engines.cuda.modules import BLOCK_THREADS, Launcher, stream
from engines.cuda.transfer import to_device, to_host
from engines.errors import UnsupportedError
from engines.formats.csr import INT32_MAX, IndexArray, MaskArray
from engines.graph.induced import components_within
from engines.model import ExplicitModel

LONGEST_ITEM = 4096
"""The most edges of an item of a worklist, as in `engines/kernels/graph.cu`."""

BLOCKS = 1056
"""The most blocks of a round: eight for each multiprocessor of a large device."""

LOOK_EVERY = 8
"""Rounds between two looks of the host."""

FIRST_LOOK = 2
"""Rounds before the first look at a list of a decomposition, many of which are soon worked off."""

PATIENCE = 64
"""Rounds that are granted to any operation."""

STATES_A_ROUND = 1000
"""So many states must be expanded for each further round, about what the CPU does in a round's
time: the rest of a graph that is as deep as it is large, such as a line, is its to do."""

RESTARTS = 64
"""How often states are removed before the CPU, which never starts anew, takes over."""

KEPT_SHARE = 64
"""A graph stays on the device between operations if it takes at most one part in so many."""

Answer = TypeVar("Answer")
Work = Callable[["_Worklist"], tuple[MaskArray, bool]]
"""Returns a closure, or the part of it that was found, and whether it is complete."""


class CudaGraph:
    """The graph of a model on one GPU; see `engines.graph.operations.GraphOperations`.

    The rest of a closure that makes too little of its rounds is found on the CPU: sets only grow,
    and whoever goes on from a part of a closure arrives at the same set. So is the rest of a
    decomposition that does. Where the device's memory is too small, the CPU does all.

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
        self._kept: dict[str, Edges] = {}
        self.rounds = 0
        """Rounds that the last operation made on the device."""
        self.note = ""
        """Why the last operation was ended by the CPU; empty where it was not."""
        self.steps: SearchSteps = []
        """What the last decomposition did: step, its rounds or sweeps, states left after it."""
        self.device_bytes = 0
        """Bytes that the last decomposition held on the device: the graph and what it wrote to."""

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
        """Return the strongly connected component of each state, and their number."""
        found = self._on_device(lambda work: self._strong_components(work, restrict))
        return self._cpu.strong_components(restrict) if found is None else found

    def _strong_components(self, work: _Worklist, restrict: MaskArray) -> tuple[IndexArray, int]:
        size = self._model.num_states
        ahead = self._edges("forwards", work.launcher)
        made: list[Edges | None] = []

        def behind() -> Edges | None:
            if not made:
                try:
                    made.append(self._edges("backwards", work.launcher, ahead))
                except cupy().cuda.memory.OutOfMemoryError:
                    cupy().get_default_memory_pool().free_all_blocks()
                    made.append(None)
            return made[0]

        search = ComponentSearch(work, ahead, behind, size)
        open_ = to_device(_packed(restrict), np.uint32)
        leader = cupy().empty(size, dtype=np.int32)
        leader.data.memset_async(0xFF, leader.nbytes, stream=None)
        complete = search.name_components(open_, leader)
        self.steps = search.steps
        self._count_bytes(ahead, made[0] if made else None, work, search, open_, leader)
        if complete:
            return numbered(leader, size)
        left = _unpacked(open_.get(), size)
        self._leave_to_cpu(left, work)
        members = np.flatnonzero(left)
        groups = self._model.row_group_offsets
        own = components_within(self._offsets, self._columns, groups, members)
        return with_rest(leader, members, own)

    def components_left(self, labels: IndexArray, count: int) -> MaskArray:
        """Return which components have an edge that leaves them, shape (count,)."""

        def look(work: _Worklist) -> MaskArray:
            return left_components(work, self._edges("forwards", work.launcher), labels, count)

        found = self._on_device(look) if count else None
        return self._cpu.components_left(labels, count) if found is None else found

    def condensation_order(self, labels: IndexArray, count: int) -> IndexArray:
        """Return the components, each after all that it may enter, shape (count,)."""

        def look(work: _Worklist) -> IndexArray | None:
            ahead = self._edges("forwards", work.launcher)
            order = order_by_level(work, ahead, labels, count)
            if order is None:
                self.note = f"left to the CPU after {work.rounds} rounds"
            return order

        found = self._on_device(look) if count else None
        return self._cpu.condensation_order(labels, count) if found is None else found

    def end_components(
        self, restrict: MaskArray, choices: MaskArray
    ) -> tuple[IndexArray, int, MaskArray]:
        """Return the maximal end component of each state, their number, and their choices."""
        found = None
        if self._model.row_group_offsets is not None:
            found = self._on_device(lambda work: self._end_components(work, restrict, choices))
        if found is None:
            return self._cpu.end_components(restrict, choices)
        labels, count, barred = found
        return labels, count, _unpacked(~barred, self._model.matrix.num_rows)

    def end_component_states(
        self, restrict: MaskArray, choices: MaskArray | None = None
    ) -> tuple[IndexArray, int]:
        """Return the maximal end component of each state, and their number."""
        found = None
        if self._model.row_group_offsets is not None:
            found = self._on_device(lambda work: self._end_components(work, restrict, choices))
        return self._cpu.end_component_states(restrict, choices) if found is None else found[:2]

    def _end_components(
        self, work: _Worklist, restrict: MaskArray, choices: MaskArray | None
    ) -> tuple[IndexArray, int, NDArray[np.uint32]]:
        """Return the components, their number, and the bitmap of the choices that none uses."""
        size, num_rows = self._model.num_states, self._model.matrix.num_rows
        ahead = self._edges("forwards", work.launcher)
        behind = self._edges("backwards", work.launcher, ahead)
        search = ComponentSearch(work, ahead, lambda: behind, size)
        # Bits are turned round 32 at a time.
        kept = to_device(_packed(restrict), np.uint32)
        if choices is None:
            barred = cupy().zeros(_words(num_rows), dtype=np.uint32)
        else:
            barred = to_device(~_packed(choices), np.uint32)
        found = refine(work, ahead, behind, search, kept, barred)
        self.steps = search.steps
        self._count_bytes(ahead, behind, work, search, kept, found.barred, found.leader)
        without = to_host(found.barred)
        if found.unsettled is None:
            return *numbered(found.leader, size), without
        usable = _unpacked(~without, num_rows)
        left = _unpacked(found.unsettled.get(), size)
        self._leave_to_cpu(left, work)
        labels, _, own = self._cpu.end_components(left, usable)
        # The choices of settled states stay as they are.
        usable &= own | ~self._model.rows_of(left)
        leader = to_host(found.leader)
        leader[left] = -1
        members = np.flatnonzero(labels >= 0)
        leaders = to_device(leader, np.int32)
        return *with_rest(leaders, members, labels[members]), ~_packed(usable)

    def _count_bytes(
        self,
        ahead: Edges,
        behind: Edges | None,
        work: _Worklist,
        search: ComponentSearch,
        *arrays: Any,
    ) -> None:
        shared = 0 if ahead.groups is None else ahead.groups.nbytes
        of_graph = ahead.num_bytes + (0 if behind is None else behind.num_bytes - shared)
        self.device_bytes = of_graph + work.num_bytes + search.num_bytes
        self.device_bytes += sum(int(array.nbytes) for array in arrays)

    def _leave_to_cpu(self, left: MaskArray, work: _Worklist) -> None:
        self.note = f"{np.count_nonzero(left)} states left to the CPU after {work.rounds} rounds"

    @cached_property
    def _cpu(self) -> CpuGraph:
        return CpuGraph(self._model)

    def _run(self, work: Work, start: MaskArray) -> tuple[MaskArray, bool]:
        """Do work on the device; return what was found, and whether that is all."""
        if len(self._columns) == 0:
            self.rounds, self.note = 0, ""
            return start.copy(), True
        found = self._on_device(work)
        if found is None:
            return start, False
        if not found[1]:
            self.note = f"left to the CPU after {self.rounds} rounds"
        return found

    def _on_device(self, work: Callable[[_Worklist], Answer]) -> Answer | None:
        """Do work on the device; return None if there are no edges, or its memory is too small."""
        self.rounds, self.note, self.steps, self.device_bytes = 0, "", [], 0
        if len(self._columns) == 0:
            return None
        cp = cupy()
        with cp.cuda.Device(self._device), stream(self._device):
            try:
                list_ = _Worklist(
                    self._model.num_states, self._model.matrix.num_rows, self._columns
                )
                found = work(list_)
            except cp.cuda.memory.OutOfMemoryError as error:
                self._kept.clear()
                self.note = f"GPU {self._device} ran out of memory: {error}"
            else:
                self.rounds = list_.rounds
                return found
            cp.get_default_memory_pool().free_all_blocks()
        return None

    def _edges(self, which: str, launcher: Launcher, ahead: Edges | None = None) -> Edges:
        """Return the edges forwards or backwards; for the latter, the former may be given."""
        edges = self._kept.get(which)
        if edges is None:
            size = self._model.num_states
            if which == "forwards":
                groups = self._model.row_group_offsets
                edges = forwards(launcher, self._offsets, self._columns, groups)
            else:
                edges = backwards(launcher, ahead or self._edges("forwards", launcher), size)
            _, memory = cupy().cuda.runtime.memGetInfo()
            if edges.num_bytes <= memory // KEPT_SHARE:
                self._kept[which] = edges
        return edges


class _Worklist:
    """The worklist of one operation, on the current device and stream."""

    def __init__(self, num_states: int, num_rows: int, columns: IndexArray) -> None:
        cp = self._cp = cupy()
        self._num_states, self._num_rows = num_states, num_rows
        # An index may pass the last edge by the length of an item before it is compared.
        self.launcher = Launcher("long long" if _wide(len(columns)) else "int")
        self._blocks = min(BLOCKS, (num_states + 31) // 32)
        # A state comes once, in as many items as its edges take.
        self.items = cp.empty(num_states + len(columns) // LONGEST_ITEM, dtype=cp.uint64)
        self._progress = cp.zeros(5, dtype=cp.uint64)
        self._expanded = 0
        self.rounds = 0

    @property
    def list(self) -> tuple[Any, Any]:
        """The items, and how far they are."""
        return self.items, self._progress

    @property
    def num_bytes(self) -> int:
        """Bytes of the items."""
        return int(self.items.nbytes)

    def closure(self, edges: Edges, goal: MaskArray, open_: MaskArray) -> tuple[MaskArray, bool]:
        """Close a set under edges into states of `open_`, disjoint from it."""
        left = to_device(_packed(open_), np.uint32)
        self.collect(to_device(_packed(goal), np.uint32), edges)
        complete = self.close(
            "close_some", *edges.of_states, edges.ends, edges.state_of, None, left
        )
        return self._joined(goal, open_, left), complete

    def closure_by_all(
        self, edges: Edges, goal: MaskArray, open_: MaskArray
    ) -> tuple[MaskArray, bool]:
        """Close a set under states of `open_` whose rows all enter it; `edges` lead backwards."""
        cp = self._cp
        left = to_device(_packed(open_), np.uint32)
        entered = cp.zeros(_words(self._num_rows), dtype=cp.uint32)
        missing = cp.empty(self._num_states, dtype=cp.int32)
        self.launch(
            "count_rows", self._num_states, edges.groups, cp.int32(self._num_states), missing
        )
        self.collect(to_device(_packed(goal), np.uint32), edges)
        arguments = (edges.offsets, edges.ends, edges.state_of, entered, missing, left)
        complete = self.close("close_all", *arguments)
        return self._joined(goal, open_, left), complete

    def forcing(self, edges: Edges, goal: MaskArray, kept: MaskArray) -> tuple[MaskArray, bool]:
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
            self.collect(sure, edges)
            if not self.close("close_some", *some):
                break
            self.launch("drop_members", len(inside), inside, left, cp.int32(len(inside)))
            # States that nothing enters take no choice from others.
            if self._bar(left, edges, barred) == 0:
                return goal | _unpacked(inside.get(), self._num_states), True
        return kept, False

    def _bar(self, removed: Any, edges: Edges, barred: Any) -> int:
        """Bar the rows that enter a set; return how many items its edges took."""
        self.collect(removed, edges)
        self._round("bar_rows", edges.offsets, edges.ends, barred)
        return int(self._progress.get()[2])

    def begin(self) -> None:
        """Begin an empty list."""
        self._progress.data.memset_async(0, self._progress.nbytes, stream=None)

    def collect(self, states: Any, edges: Edges) -> None:
        """Begin a list with the edges of a set."""
        self.begin()
        arguments = (states, self._cp.int32(self._num_states), *edges.of_states)
        self.launch("collect_states", self._num_states, *arguments, *self.list)

    def close(
        self,
        kernel: str,
        *arguments: Any,
        module: str = "graph",
        patience: tuple[int, int] | None = None,
    ) -> bool:
        """Work off the list; return whether that was done, or given up.

        `patience` is for this list alone: how many rounds, and how many states must be expanded for
        each further one; None for what the whole operation is granted.
        """
        before = 0 if patience is None else self.rounds
        earlier = self._expanded if patience is None else 0
        rounds, states = patience or (PATIENCE, STATES_A_ROUND)
        batch = LOOK_EVERY if patience is None else min(FIRST_LOOK, LOOK_EVERY)
        while True:
            for _ in range(batch):
                self._round(kernel, *arguments, module=module)
            self.rounds += batch
            batch = min(2 * batch, LOOK_EVERY)
            begin, end, _, _, expanded = self._progress.get().tolist()
            if begin == end:
                self._expanded += expanded
                return True
            if self.rounds - before > rounds + (earlier + expanded) // states:
                return False

    def _round(self, kernel: str, *arguments: Any, module: str = "graph") -> None:
        threads = self._blocks * BLOCK_THREADS
        self.launch(kernel, threads, *arguments, *self.list, module=module)

    def launch(self, kernel: str, threads: int, *arguments: Any, module: str = "graph") -> None:
        """Queue a kernel."""
        self.launcher.launch(kernel, threads, *arguments, module=module)

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
