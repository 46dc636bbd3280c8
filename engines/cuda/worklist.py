"""Worklists over the edges of a graph, on one GPU."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX, MaskArray
from engines.cuda.driver import cupy
from engines.cuda.graph_edges import Edges
from engines.cuda.graph_tuning import Patience, WorklistTuning
from engines.cuda.modules import BLOCK_THREADS, Launcher
from engines.cuda.sets import to_mask, to_set, words_for


class Counter(IntEnum):
    """The counters of a list, as in the kernels."""

    BEGIN = 0
    END = 1
    TAIL = 2
    FINISHED = 3
    EXPANDED = 4
    ALL_LEVELS = 5


class Worklist:
    """The worklist of one operation, on the current device and stream.

    Parameters
    ----------
    num_states, num_rows
        Number of states and of their rows.
    num_edges
        Number of edges.
    tuning
        How the work is shared out, and how long it goes on.
    """

    def __init__(
        self,
        num_states: int,
        num_rows: int,
        num_edges: int,
        tuning: WorklistTuning = WorklistTuning(),
    ) -> None:
        cp = self._cp = cupy()
        self._tuning, kernels = tuning, tuning.kernels
        self._num_states, self._num_rows = num_states, num_rows
        # An index may pass the last edge by the length of an item before it is compared.
        longest = kernels.longest_item_edges
        self.launcher = Launcher("long long" if _wide(num_edges, longest) else "int")
        blocks = min(tuning.most_blocks, (num_states + 31) // 32)
        team = kernels.team_blocks
        self._blocks = (blocks + team - 1) // team * team
        self._team = team if self.launcher.capability >= kernels.least_capability else 1
        # A state comes once, in as many items as its edges take, of two lists in one of them.
        self.items = cp.empty(num_states + 2 * (num_edges // longest), dtype=cp.uint64)
        self._progress = cp.zeros(2 * len(Counter), dtype=cp.uint64)
        self._counted = np.zeros((2, len(Counter)), dtype=np.int64)
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
        """Two lists in other memory: where a state may be on both, they need twice as much."""
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
        for _ in range(self._tuning.most_restarts):
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
        return int(self._progress.get()[Counter.TAIL])

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
        patience: Patience | None = None,
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
            For this list alone, in rounds and states that are expanded; None for what the whole
            operation is granted. So many levels of a team as a block may go on for by itself are a
            round.
        lists
            1 or 2.
        while_long
            Whether to stop, with what is left on the list, as soon as a team alone works it off.
        items
            Where two lists are, if not in this worklist's own memory.
        """
        tuning = self._tuning
        before = 0 if patience is None else self.rounds
        earlier = self._expanded if patience is None else 0
        batch = tuning.rounds_a_look
        if patience is not None:
            batch = min(tuning.first_look_rounds, batch)
        granted = (patience or tuning.patience).granted
        begun, counted, self.is_short = self.rounds, self._counted[:lists].copy(), False
        memory = self.list if lists == 1 else self.two_lists
        arguments = (*arguments, *(memory if items is None else self.two_lists_in(items)))
        while True:
            for _ in range(batch):
                # A team leaves a long list as it is.
                self._descend(kernel, *arguments, module=module, lists=lists)
                if not self.is_short:
                    self._round(kernel, *arguments, module=module, lists=lists)
            batch = min(2 * batch, tuning.rounds_a_look)
            progress = self._progress.get().reshape(2, len(Counter))[:lists].astype(np.int64)
            waiting = progress[:, Counter.END] - progress[:, Counter.BEGIN]
            made, self._counted[:lists] = progress - counted, progress
            expanded = int(made[:, Counter.EXPANDED].sum())
            self.is_short = bool((waiting <= self._team * tuning.kernels.member_items).all())
            levels = made[:, Counter.ALL_LEVELS].max()
            self.rounds = begun - int(-levels // tuning.block_levels)
            if not waiting.any():
                self._expanded += expanded
                return True
            if while_long and self.is_short:
                return False
            if self.rounds - before > granted(earlier + expanded):
                return False

    def _round(self, kernel: str, *arguments: Any, module: str = "graph", lists: int = 1) -> None:
        """Queue a round of all blocks, each for itself."""
        threads, most = lists * self._blocks * BLOCK_THREADS, self._tuning.block_levels
        self.launch(kernel, threads, *arguments, self._cp.int32(most), module=module)

    def _descend(self, kernel: str, *arguments: Any, module: str = "graph", lists: int = 1) -> None:
        """Queue what a team does of each short list, level by level."""
        block, most = self._tuning.kernels.team_threads, self._cp.int32(self._tuning.team_levels)
        threads = lists * self._team * block
        self.launcher.launch(kernel, threads, *arguments, most, module=module, block=block)

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


def _wide(edges: int, longest_item: int) -> bool:
    return edges > INT32_MAX - longest_item
