"""Worklists over the edges of a graph, on one GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from engines.arrays import INT32_MAX, MaskArray
from engines.cuda.driver import cupy
from engines.cuda.graph_edges import Edges
from engines.cuda.modules import BLOCK_THREADS, Launcher
from engines.cuda.sets import to_mask, to_set, words_for

LONGEST_ITEM = 4096
"""The most edges of an item of a worklist, as in `engines/cuda/src/graph.cu`."""

BLOCKS = 1056
"""The most blocks of a round: eight for each multiprocessor of a large device."""

TEAM = 8
"""Blocks that work off short lists together, as in `engines/cuda/src/worklist.cuh`, one where the
device does not know teams; the blocks of a round are a multiple of it."""

TEAM_THREADS = 1024
"""Threads of a team's blocks, as there."""

TEAMS_FROM = 90
"""The least compute capability, times ten, of a device that knows teams."""

LEVELS = 32
"""Levels that a block goes on for by itself in a round."""

TEAM_LEVELS = 256
"""Levels that a team works off in one launch: a level takes it about three microseconds."""

MEMBER_ITEMS = 1024
"""Items of a level that each block of a team has room for, as in the kernels."""

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

COUNTERS = 6
"""Counters of a list, as in the kernels."""

BEGIN, END, TAIL, _, EXPANDED, ALL_LEVELS = range(COUNTERS)
"""Which of them is what."""


class Worklist:
    """The worklist of one operation, on the current device and stream.

    Parameters
    ----------
    num_states, num_rows
        Number of states and of their rows.
    num_edges
        Number of edges.
    """

    def __init__(self, num_states: int, num_rows: int, num_edges: int) -> None:
        cp = self._cp = cupy()
        self._num_states, self._num_rows = num_states, num_rows
        # An index may pass the last edge by the length of an item before it is compared.
        self.launcher = Launcher("long long" if _wide(num_edges) else "int")
        blocks = min(BLOCKS, (num_states + 31) // 32)
        self._blocks = (blocks + TEAM - 1) // TEAM * TEAM
        self._team = TEAM if self.launcher.capability >= TEAMS_FROM else 1
        # A state comes once, in as many items as its edges take, of two lists in one of them.
        self.items = cp.empty(num_states + 2 * (num_edges // LONGEST_ITEM), dtype=cp.uint64)
        self._progress = cp.zeros(2 * COUNTERS, dtype=cp.uint64)
        self._counted = np.zeros((2, COUNTERS), dtype=np.int64)
        self._expanded = 0
        self.rounds = 0
        self.is_short = False
        """Whether a team works off what was left at the last look."""

    @property
    def list(self) -> tuple[Any, Any]:
        """The items, and how far they are."""
        return self.items, self._progress

    @property
    def two_lists(self) -> tuple[Any, Any, Any]:
        """The items of two lists, how many they are together, and how far both lists are."""
        return self.two_lists_in(self.items)

    def two_lists_in(self, items: Any) -> tuple[Any, Any, Any]:
        """The same of other memory: where a state may be on both lists, they need twice as much."""
        return items, self._cp.uint64(len(items)), self._progress

    @property
    def num_bytes(self) -> int:
        """Bytes of the items."""
        return int(self.items.nbytes)

    def closure(self, edges: Edges, goal: MaskArray, open_: MaskArray) -> tuple[MaskArray, bool]:
        """Close a set under edges into states of `open_`, disjoint from it."""
        start, opened = self._sets(goal, open_)
        left = opened.copy()
        self.collect(start, edges)
        complete = self.close(
            "close_some", *edges.of_states, edges.ends, edges.state_of, None, None, left
        )
        return self._joined(start, opened, left), complete

    def closure_by_all(
        self, edges: Edges, goal: MaskArray, open_: MaskArray
    ) -> tuple[MaskArray, bool]:
        """Close a set under states of `open_` whose rows all enter it; `edges` lead backwards."""
        cp = self._cp
        start, opened = self._sets(goal, open_)
        left = opened.copy()
        entered = cp.zeros(words_for(self._num_rows), dtype=cp.uint32)
        missing = cp.empty(self._num_states, dtype=cp.int32)
        self.launch(
            "count_rows", self._num_states, edges.groups, cp.int32(self._num_states), missing
        )
        self.collect(start, edges)
        arguments = (edges.offsets, edges.ends, edges.state_of, entered, missing, left)
        complete = self.close("close_all", *arguments)
        return self._joined(start, opened, left), complete

    def forcing(self, edges: Edges, goal: MaskArray, kept: MaskArray) -> tuple[MaskArray, bool]:
        """Remove from `kept` whoever cannot reach `goal` without a risk to leave `kept`."""
        cp = self._cp
        inside, sure, outside = self._sets(kept & ~goal, goal, ~kept)
        left = cp.empty_like(inside)
        barred = cp.zeros(words_for(self._num_rows), dtype=cp.uint32)
        self._bar(outside, edges, barred)
        some = (*edges.of_states, edges.ends, edges.state_of, None, barred, left)
        for _ in range(RESTARTS):
            left.data.copy_from_device_async(inside.data, inside.nbytes, stream=None)
            self.collect(sure, edges)
            if not self.close("close_some", *some):
                break
            self.launch("drop_members", len(inside), inside, left, cp.int32(len(inside)))
            # States that nothing enters take no choice from others.
            if self._bar(left, edges, barred) == 0:
                return goal | to_mask(inside, self._num_states), True
        return kept, False

    def _bar(self, removed: Any, edges: Edges, barred: Any) -> int:
        """Bar the rows that enter a set; return how many items its edges took."""
        self.collect(removed, edges)
        self._round("bar_rows", edges.offsets, edges.ends, barred, *self.list)
        return int(self._progress.get()[TAIL])

    def begin(self) -> None:
        """Begin an empty list, or two."""
        self._counted[:] = 0
        self._progress.data.memset_async(0, self._progress.nbytes, stream=None)

    def collect(self, states: Any, *edges: Edges, items: Any | None = None) -> None:
        """Begin a list, or two, with edges of a set; two in memory of their own."""
        self.begin()
        memory = self.two_lists if items is None else self.two_lists_in(items)
        for second, of_list in enumerate(edges):
            arguments = (states, self._cp.int32(self._num_states), *of_list.of_states)
            listing = (*arguments, self._cp.int32(second), *memory)
            self.launch("collect_states", self._num_states, *listing)

    def close(
        self,
        kernel: str,
        *arguments: Any,
        module: str = "graph",
        patience: tuple[int, int] | None = None,
        lists: int = 1,
        while_long: bool = False,
        items: Any | None = None,
    ) -> bool:
        """Work off a list, or two at a time; return whether that was done, or given up.

        What is given up may be gone on with, by the same kernel or another.

        Parameters
        ----------
        kernel, arguments, module
            Makes a round. Of two lists, each has half of the blocks.
        patience
            For this list alone: how many rounds, and how many states must be expanded for each
            further one; None for what the whole operation is granted. So many levels of a team as a
            block may go on for by itself are a round.
        lists
            1 or 2.
        while_long
            Whether to stop, with what is left on the list, as soon as a team alone works it off.
        items
            Where two lists are, if not in this worklist's own memory.
        """
        before = 0 if patience is None else self.rounds
        earlier = self._expanded if patience is None else 0
        rounds, states = patience or (PATIENCE, STATES_A_ROUND)
        batch = LOOK_EVERY if patience is None else min(FIRST_LOOK, LOOK_EVERY)
        begun, counted, self.is_short = self.rounds, self._counted[:lists].copy(), False
        memory = self.list if lists == 1 else self.two_lists
        arguments = (*arguments, *(memory if items is None else self.two_lists_in(items)))
        while True:
            for _ in range(batch):
                # A team leaves a long list as it is.
                self._descend(kernel, *arguments, module=module, lists=lists)
                if not self.is_short:
                    self._round(kernel, *arguments, module=module, lists=lists)
            batch = min(2 * batch, LOOK_EVERY)
            progress = self._progress.get().reshape(2, COUNTERS)[:lists].astype(np.int64)
            waiting = progress[:, END] - progress[:, BEGIN]
            made, self._counted[:lists] = progress - counted, progress
            expanded = int(made[:, EXPANDED].sum())
            self.is_short = bool((waiting <= self._team * MEMBER_ITEMS).all())
            self.rounds = begun - int(-made[:, ALL_LEVELS].max() // LEVELS)
            if not waiting.any():
                self._expanded += expanded
                return True
            if while_long and self.is_short:
                return False
            if self.rounds - before > rounds + (earlier + expanded) // states:
                return False

    def _round(self, kernel: str, *arguments: Any, module: str = "graph", lists: int = 1) -> None:
        """Queue a round of all blocks, each for itself."""
        threads = lists * self._blocks * BLOCK_THREADS
        self.launch(kernel, threads, *arguments, self._cp.int32(LEVELS), module=module)

    def _descend(self, kernel: str, *arguments: Any, module: str = "graph", lists: int = 1) -> None:
        """Queue what a team does of each short list, level by level."""
        threads, most = lists * self._team * TEAM_THREADS, self._cp.int32(TEAM_LEVELS)
        self.launcher.launch(kernel, threads, *arguments, most, module=module, block=TEAM_THREADS)

    def launch(self, kernel: str, threads: int, *arguments: Any, module: str = "graph") -> None:
        """Queue a kernel."""
        self.launcher.launch(kernel, threads, *arguments, module=module)

    def _sets(self, *masks: MaskArray) -> tuple[Any, ...]:
        return tuple(to_set(mask) for mask in masks)

    def _joined(self, start: Any, opened: Any, left: Any) -> MaskArray:
        """Return the mask of `start` and of what has left `opened`."""
        words = self._cp.int32(len(left))
        self.launch("join_members", len(left), start, opened, left, words)
        return to_mask(left, self._num_states)


def _wide(edges: int) -> bool:
    return edges > INT32_MAX - LONGEST_ITEM
