"""Analyses of a model's graph on one GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from engines.arrays import INT32_MAX, IndexArray, MaskArray
from engines.cuda.component_labels import left_components, numbered, with_rest
from engines.cuda.components import ComponentSearch, SearchSteps
from engines.cuda.condensation import order_by_level
from engines.cuda.driver import cupy
from engines.cuda.end_components import refine
from engines.cuda.graph_edges import Edges, backwards, forwards
from engines.cuda.graph_tuning import GraphTuning
from engines.cuda.modules import Launcher, stream
from engines.cuda.sets import to_mask, to_set, words_for
from engines.cuda.transfer import to_device, to_host
from engines.cuda.worklist import Worklist
from engines.errors import UnsupportedError
from engines.host.graph import CpuGraph, _edges
from engines.host.induced import components_within
from engines.model.explicit import ExplicitModel

Answer = TypeVar("Answer")
EndComponents = tuple[IndexArray, int, MaskArray | None]
"""The component of each state, how many there are, and the choices of all of them if wanted."""
Work = Callable[[Worklist], tuple[MaskArray, bool]]
"""Returns a closure, or the part of it that was found, and whether it is complete."""


class CudaGraph:
    """The graph of a model on one GPU; see `engines.systems.graph.GraphOperations`.

    The rest of a closure that makes too little of its rounds is found on the CPU: sets only grow,
    and whoever goes on from a part of a closure arrives at the same set. So is the rest of a
    decomposition that does. Where the device's memory is too small, the CPU does all.

    Parameters
    ----------
    model
        A model of any kind; stored zeros are no edges.
    device_number
        Which of the devices.
    tuning
        How the work is shared out, and when it is left to the CPU.

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

    def __init__(
        self,
        model: ExplicitModel,
        device_number: int = 0,
        tuning: GraphTuning = GraphTuning(),
    ) -> None:
        if max(model.num_states, model.matrix.num_rows) >= INT32_MAX:
            raise UnsupportedError(
                f"{model.num_states} states with {model.matrix.num_rows} choices: the GPU engine "
                "numbers them in 32 bits"
            )
        # A copy of the matrix that shares its arrays: the graph must not keep the model alive.
        self._model = ExplicitModel(model.kind, replace(model.matrix), model.row_group_offsets)
        self._offsets, self._columns = _edges(model.matrix)
        self._device, self._tuning = device_number, tuning
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

        def nested(work: Worklist) -> tuple[MaskArray, bool]:
            edges = self._edges("backwards", work.launcher)
            reaching, complete = work.closure(edges, goal, through & ~goal)
            return work.forcing(edges, goal, reaching) if complete else (goal, False)

        found, complete = self._run(nested, goal)
        return found if complete else self._cpu.can_force(goal, through)

    def strong_components(self, restrict: MaskArray) -> tuple[IndexArray, int]:
        """Return the strongly connected component of each state, and their number."""
        found = self._on_device(lambda work: self._strong_components(work, restrict))
        return self._cpu.strong_components(restrict) if found is None else found

    def _strong_components(self, work: Worklist, restrict: MaskArray) -> tuple[IndexArray, int]:
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

        search = ComponentSearch(work, ahead, behind, size, self._tuning.search)
        open_ = to_set(restrict)
        leader = cupy().empty(size, dtype=np.int32)
        leader.data.memset_async(0xFF, leader.nbytes, stream=None)
        complete = search.name_components(open_, leader)
        self.steps = search.steps
        self._count_bytes(ahead, made[0] if made else None, work, search, open_, leader)
        if complete:
            return numbered(leader, size)
        left = to_mask(open_, size)
        self._leave_to_cpu(left, work)
        members = np.flatnonzero(left)
        groups = self._model.row_group_offsets
        own = components_within(self._offsets, self._columns, groups, members)
        return with_rest(leader, members, own)

    def only_bottom(self, origin: int | None = None) -> MaskArray | None:
        """Return the bottom component where there is one alone, if that is soon seen; else None."""
        # Before the edges have come to the device, the CPU has seen it.
        return self._cpu.only_bottom(origin)

    def components_left(self, labels: IndexArray, count: int) -> MaskArray:
        """Return which components have an edge that leaves them, shape (count,)."""

        def look(work: Worklist) -> MaskArray:
            return left_components(work, self._edges("forwards", work.launcher), labels, count)

        found = self._on_device(look) if count else None
        return self._cpu.components_left(labels, count) if found is None else found

    def condensation_order(self, labels: IndexArray, count: int) -> IndexArray:
        """Return the components, each after all that it may enter, shape (count,)."""

        def look(work: Worklist) -> IndexArray | None:
            ahead = self._edges("forwards", work.launcher)
            patience = self._tuning.search.patience
            order = order_by_level(work, ahead, labels, count, patience)
            if order is None:
                self.note = f"left to the CPU after {work.rounds} rounds"
            return order

        found = self._on_device(look) if count else None
        return self._cpu.condensation_order(labels, count) if found is None else found

    def end_components(
        self, restrict: MaskArray, choices: MaskArray
    ) -> tuple[IndexArray, int, MaskArray]:
        """Return the maximal end component of each state, their number, and their choices."""
        found = self._ended(restrict, choices, with_choices=True)
        if found is None:
            return self._cpu.end_components(restrict, choices)
        labels, count, own = found
        assert own is not None
        return labels, count, own

    def end_component_states(
        self, restrict: MaskArray, choices: MaskArray | None = None
    ) -> tuple[IndexArray, int]:
        """Return the maximal end component of each state, and their number."""
        found = self._ended(restrict, choices, with_choices=False)
        return self._cpu.end_component_states(restrict, choices) if found is None else found[:2]

    def _ended(
        self, restrict: MaskArray, choices: MaskArray | None, *, with_choices: bool
    ) -> EndComponents | None:
        if self._model.row_group_offsets is None:
            return None
        return self._on_device(
            lambda work: self._end_components(work, restrict, choices, with_choices)
        )

    def _end_components(
        self,
        work: Worklist,
        restrict: MaskArray,
        choices: MaskArray | None,
        with_choices: bool,
    ) -> EndComponents:
        size, num_rows = self._model.num_states, self._model.matrix.num_rows
        ahead = self._edges("forwards", work.launcher)
        behind = self._edges("backwards", work.launcher, ahead)
        search = ComponentSearch(work, ahead, lambda: behind, size, self._tuning.search)
        kept = to_set(restrict)
        if choices is None:
            barred = cupy().zeros(words_for(num_rows), dtype=np.uint32)
        else:
            barred = to_set(choices, complement=True)
        graph = (work, ahead, behind, search, kept, barred)
        asked = choices is not None
        found = refine(
            *graph,
            with_choices=with_choices,
            any_barred=asked,
            tuning=self._tuning.refinement,
        )
        self.steps = search.steps
        self._count_bytes(ahead, behind, work, search)
        self.device_bytes += found.num_bytes
        if found.unsettled is None:
            own = to_mask(found.barred, num_rows, complement=True) if with_choices else None
            return *numbered(found.leader, size), own
        usable = to_mask(found.barred, num_rows, complement=True)
        left = to_mask(found.unsettled, size)
        self._leave_to_cpu(left, work)
        labels, _, own = self._cpu.end_components(left, usable)
        # The choices of settled states stay as they are.
        usable &= own | ~self._model.rows_of(left)
        leader = to_host(found.leader)
        leader[left] = -1
        members = np.flatnonzero(labels >= 0)
        leaders = to_device(leader, np.int32)
        return *with_rest(leaders, members, labels[members]), usable

    def _count_bytes(
        self,
        ahead: Edges,
        behind: Edges | None,
        work: Worklist,
        search: ComponentSearch,
        *arrays: Any,
    ) -> None:
        shared = 0 if ahead.groups is None else ahead.groups.nbytes
        of_graph = ahead.num_bytes + (0 if behind is None else behind.num_bytes - shared)
        self.device_bytes = of_graph + work.num_bytes + search.num_bytes
        self.device_bytes += sum(int(array.nbytes) for array in arrays)

    def _leave_to_cpu(self, left: MaskArray, work: Worklist) -> None:
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

    def _on_device(self, work: Callable[[Worklist], Answer]) -> Answer | None:
        """Do work on the device; return None if there are no edges, or its memory is too small."""
        self.rounds, self.note, self.steps, self.device_bytes = 0, "", [], 0
        if len(self._columns) == 0:
            return None
        cp = cupy()
        with cp.cuda.Device(self._device), stream(self._device):
            try:
                list_ = Worklist(
                    self._model.num_states,
                    self._model.matrix.num_rows,
                    len(self._columns),
                    self._tuning.worklists,
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
            if edges.num_bytes <= memory // self._tuning.kept_share:
                self._kept[which] = edges
        return edges
