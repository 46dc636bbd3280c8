"""Strongly connected components on one GPU."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from engines.cuda.driver import cupy
from engines.cuda.graph_tuning import SearchTuning
from engines.cuda.numbering import Numbering
from engines.cuda.parting import Parting

if TYPE_CHECKING:
    from engines.cuda.graph_edges import Edges
    from engines.cuda.worklist import Worklist

SearchSteps = list[tuple[str, int, int]]


class ComponentSearch:
    """Names the strongly connected components of sets of states, on the current device and stream.

    Parameters
    ----------
    work
        Launches kernels, and holds the list.
    ahead
        The edges forwards.
    behind
        Returns the edges backwards, or None where there is no room for them.
    num_states
        Number of states.
    tuning
        How long each step goes on.

    Notes
    -----
    1. States that the order of their numbers sets apart (`engines.cuda.numbering`): all, where each
       edge of the graph leads to a larger number.
    2. Trimming: states that no open state enters, or that enter none, are components of their own
       (McLendon, Hendrickson, Plimpton, Rauchwerger 2005), counted down by worklists without an
       order of levels, from both ends at a time where the lists are short.
    3. Searches from one state of each region, backwards and then forwards among what was met
       (Fleischer, Hendrickson, Pinar 2000; regions named by their pivots: Wijs, Katoen, Bošnački
       2014), and trimming again. This names components that are large. Regions are the parts that
       the numbers tell of; in a deep graph, what a search met and the rest part regions.
    4. What is left: each state learns the largest name that reaches it and that it reaches; where
       both are the same they name its component, and edges between states that differ are cut
       (Alabandi, Sands, Biros, Burtscher 2023, A high-performance SCC implementation for GPUs).
       Names also pass between a state and those that its names tell of, so that long paths take few
       sweeps. States are named by their numbers, as long as that is fast, and by shuffled ones in
       turns: the former suit models whose numbering goes along with their edges, the latter make
       the number of rounds logarithmic whatever the numbering.

    Edges are never counted in an order that the result depends on.
    """

    def __init__(
        self,
        work: Worklist,
        ahead: Edges,
        behind: Callable[[], Edges | None],
        num_states: int,
        tuning: SearchTuning = SearchTuning(),
    ) -> None:
        cp = self._cp = cupy()
        self.tuning = tuning
        self._work, self._behind = work, behind
        self._is_turned = False
        self._num_states = num_states
        self._ahead = self._by_states(ahead)
        self._words = (num_states + 31) // 32
        # Counts of edges and pivots, or names: the steps that need them follow each other.
        self._numbers = cp.empty(2 * num_states, dtype=cp.uint32)
        self._total = cp.empty(1, dtype=cp.uint64)
        self._crossed = cp.empty(1, dtype=cp.int32)
        self._both: Any | None = None
        self._cut_bytes = 0
        self.steps: SearchSteps = []
        """What was done: name of the step, rounds or sweeps, states left."""
        self.unbroken = False
        """Whether the last search found each region to be one component."""

    @property
    def num_bytes(self) -> int:
        """Bytes of device memory that the search itself holds."""
        of_states = self._ahead.offsets.nbytes if self._grouped else 0
        both = 0 if self._both is None else self._both.nbytes
        return int(self._numbers.nbytes + of_states + both) + self._cut_bytes

    def _by_states(self, ahead: Edges) -> Edges:
        """Return the edges looked up by states at once, not by their rows first."""
        self._grouped = ahead.by_groups
        if not ahead.by_groups:
            return ahead
        offsets = self._cp.empty(self._num_states + 1, dtype=ahead.offsets.dtype)
        places = self._cp.int32(self._num_states + 1)
        self._launch(
            "gather_offsets", self._num_states + 1, ahead.offsets, ahead.groups, places, offsets
        )
        return replace(ahead, offsets=offsets, by_groups=False)

    def name_components(
        self,
        open_: Any,
        leader: Any,
        *,
        cut: Any | None = None,
        barred: Any | None = None,
        by_regions: bool = False,
        alone: Any | None = None,
        parts: int | None = None,
    ) -> bool:
        """Name the component of each open state; return whether all were named.

        Parameters
        ----------
        open_
            Bitmap of states on the device; those that are named leave it.
        leader
            Shape (states,), int32, on the device: where the leaders of named states are written.
        cut, barred
            Bitmaps of edges, and of the rows that these edges make up, that do not count; None for
            none. More edges may be cut.
        by_regions
            Whether `leader` holds the region of each open state, any number, and no edge that
            counts leads from one region to another.
        alone
            Bitmap of states that those are added to that are seen to be components of their own
            before any search; None if nobody asks.
        parts
            How many parts the numbers of the open states tell of, if these are the regions; None
            if their numbers have not been looked at.
        """
        tuning, size = self.tuning, self.count(open_)
        self.unbroken = False
        first = None if alone is None else open_.copy()
        parting = Parting(by_regions, cut, barred)
        for search in itertools.count():
            if search == 0 and parts is not None:
                left, parting.parts = size, parts
            else:
                left = self._look_at_numbers(open_, leader, parting)
            if left:
                left = self._trim(open_, leader, parting)
            if search == 0 and alone is not None:
                self.add_lost(first, open_, alone)
            behind = None if left == 0 else self._turned()
            most = tuning.most_searches_in_depth if parting.is_deep else tuning.most_searches
            if left == 0 or behind is None or search >= most:
                break
            before = left
            left = self._search(open_, leader, parting, behind)
            self.unbroken = before == size and left == 0 and not parting.is_parted
            if left == 0:
                break
            if not parting.is_deep and before - left < before // tuning.worthwhile_share:
                break
        return left == 0 or self._propagate(open_, leader, parting, left)

    def look_at_numbers(self, open_: Any, leader: Any, cut: Any | None, look: int) -> Numbering:
        """Name open states that their numbers set apart; return what these tell of the others.

        What it returns holds until the next step.
        """
        numbers = Numbering(self._work, self._ahead, cut, open_, leader, self._numbers)
        self.steps.append(("numbers", look, numbers.left))
        return numbers

    def _look_at_numbers(self, open_: Any, leader: Any, parting: Parting) -> int:
        """Name states that their numbers set apart; return how many others are left.

        Without the edges between parts, numbers may tell of more of them.
        """
        fewest = self.tuning.fewest_parts
        for look in range(self.tuning.most_looks):
            numbers = self.look_at_numbers(open_, leader, parting.cut, look + 1)
            left = numbers.left
            if left == 0 or numbers.parts < max(fewest, parting.parts + 1):
                break
            numbers.name_parts(parting.by_regions)
            parting.parts, parting.by_regions = numbers.parts, True
            before = parting.is_crossed
            self._cut_ahead(open_, leader, parting)
            if not self._crossed.get()[0]:
                # No region has been parted: they were as many before.
                parting.is_crossed = before
                break
            parting.is_parted = True
        return left

    def _trim(self, open_: Any, leader: Any, parting: Parting) -> int:
        """Name states that are components of their own; return how many others are left."""
        counts, states = self._numbers, self._cp.int32(self._num_states)
        # So the kernels know where there are no edges.
        counts.data.memset_async(0x40, counts.nbytes, stream=None)
        along = (*self._ahead.of_states, self._ahead.ends, parting.cut)
        counting = (*along, open_, states, counts)
        self._work.launch("count_inner", self._num_states, *counting, module="trimming")
        self._work.begin()
        self._collect_trivial(self._ahead, open_, leader, second=False)
        named = (counts, open_, leader)
        left, complete, begun = -1, False, self._work.rounds
        if not self._is_turned:
            # Edges are not turned round before it is known that a list is left, and what for.
            left, complete = self._drain("trim_forwards", open_, *along, *named, while_long=True)
        behind = self._turned() if left else None
        if behind is not None:
            # While all states are open whose edges backwards this list will hold.
            self._cut_behind(open_, leader, parting, behind)
            self._collect_trivial(behind, open_, leader, second=True)
            sets = (parting.cut_behind, parting.barred)
            against = (behind.offsets, behind.ends, behind.state_of, *sets)
            left, _ = self._drain("trim_both", open_, *along, *against, *named, lists=2)
        elif left and not complete:
            left, _ = self._drain("trim_forwards", open_, *along, *named)
        parting.is_deep |= self._work.rounds - begun >= self.tuning.deep_rounds
        return left

    def _collect_trivial(self, edges: Edges, open_: Any, leader: Any, *, second: bool) -> None:
        states, which = self._cp.int32(self._num_states), self._cp.int32(second)
        arguments = (*edges.of_states, self._numbers, states, open_, leader, which)
        collecting = (*arguments, *self._work.two_lists)
        self._work.launch("collect_trivial", self._num_states, *collecting, module="trimming")

    def _search(self, open_: Any, leader: Any, parting: Parting, behind: Edges) -> int:
        """Name the component of one state of each region; return how many states are left."""
        chosen = self._choose(open_, leader, parting)
        self._cut_behind(open_, leader, parting, behind)
        begun, name = self._work.rounds, "search"
        meet = self._meet_both if parting.is_deep and self._has_both() else self._meet
        found = meet(chosen, open_, parting, behind)
        rounds = self._work.rounds - begun
        if found is None:
            name, parting.is_deep, parting.met = "search, given up", False, None
        else:
            self.drop(open_, found)
            parting.is_deep |= rounds >= self.tuning.deep_rounds
        left = self.count(open_)
        self.steps.append((name, rounds, left))
        return left

    def _meet(self, chosen: Any, open_: Any, parting: Parting, behind: Edges) -> Any | None:
        """Return what chosen states lead to among what leads to them; None if given up."""
        found = open_.copy()
        for edges, cut, barred in (
            (behind, parting.cut_behind, parting.barred),
            (self._ahead, parting.cut, None),
        ):
            unmet = found.copy()
            self.drop(unmet, chosen)
            self._work.collect(chosen, edges)
            sets = (edges.state_of, cut, barred, unmet)
            complete = self._close("close_some", *edges.of_states, edges.ends, *sets)
            if not complete:
                return None
            self.drop(found, unmet)
        return found

    def _meet_both(self, chosen: Any, open_: Any, parting: Parting, behind: Edges) -> Any | None:
        """Return the same, and part by it: what leads to them is looked for at the same time."""
        ahead, unmet, unmet_behind = self._ahead, open_.copy(), open_.copy()
        for members in (unmet, unmet_behind):
            self.drop(members, chosen)
        self._work.collect(chosen, ahead, behind, items=self._both)
        along = (*ahead.of_states, ahead.ends, parting.cut)
        against = (behind.offsets, behind.ends, behind.state_of, parting.cut_behind, parting.barred)
        sets = (unmet, unmet_behind)
        if not self._close("close_both", *along, *against, *sets, lists=2, items=self._both):
            return None
        parting.met = sets
        found = open_.copy()
        for members in sets:
            self.drop(found, members)
        return found

    def _has_both(self) -> bool:
        """Return whether there is room for two lists that a state may be on both of."""
        if self._both is None:
            try:
                self._both = self._cp.empty(2 * len(self._work.items), dtype=self._cp.uint64)
            except self._cp.cuda.memory.OutOfMemoryError:
                self._cp.get_default_memory_pool().free_all_blocks()
        return self._both is not None

    def add_lost(self, before: Any, after: Any, members: Any) -> None:
        """Add to a bitmap of states what another one has lost."""
        words = self._cp.int32(self._words)
        self._launch("add_lost", self._words, before, after, words, members)

    def drop(self, members: Any, dropped: Any) -> None:
        """Take the states of a bitmap out of another."""
        self._work.launch(
            "drop_members", self._words, members, dropped, self._cp.int32(self._words)
        )

    def _choose(self, open_: Any, leader: Any, parting: Parting) -> Any:
        """Return the set of a state of each region, which that is called by from now on."""
        size, pivots = self._num_states, self._numbers
        pivots.data.memset_async(0, pivots.nbytes, stream=None)
        states, places = self._cp.int32(size), self._cp.uint32(len(pivots))
        regions = leader if parting.by_regions else None
        parted = (*(parting.met or (None, None)), places, pivots)
        self._launch("find_pivots", size, open_, states, regions, *parted)
        chosen, named = self._cp.empty_like(open_), self._cp.int32(parting.by_regions)
        self._launch("name_regions", size, open_, states, named, *parted, leader, chosen)
        parting.by_regions = True
        if parting.met is not None:
            parting.met = None
            self._cut_ahead(open_, leader, parting)
        return chosen

    def _cut_ahead(self, open_: Any, leader: Any, parting: Parting) -> None:
        """Cut the edges forwards between regions; those backwards have to follow."""
        parting.cut = self._cut_crossing(self._ahead, open_, leader, parting.cut)
        parting.is_crossed = True

    def _cut_behind(self, open_: Any, leader: Any, parting: Parting, behind: Edges) -> None:
        """Cut the edges backwards between regions if that is still to be done."""
        if parting.is_crossed:
            parting.cut_behind = self._cut_crossing(behind, open_, leader, parting.cut_behind)
        parting.is_crossed = False

    def _cut_crossing(self, edges: Edges, open_: Any, leader: Any, cut: Any | None) -> Any:
        size = self._num_states
        if cut is None:
            cut = self._cp.zeros((len(edges.ends) + 31) // 32, dtype=self._cp.uint32)
            self._cut_bytes += int(cut.nbytes)
        self._crossed.data.memset_async(0, self._crossed.nbytes, stream=None)
        along = (*edges.of_states, edges.ends, edges.state_of)
        cutting = (open_, self._cp.int32(size), leader, cut, self._crossed)
        self._launch("cut_crossing", size, *along, *cutting)
        return cut

    def _propagate(self, open_: Any, leader: Any, parting: Parting, left: int) -> bool:
        """Name what is left by the largest names; return whether that was done, or given up.

        The leaders of states that stay open are overwritten.
        """
        cut, barred = parting.cut, parting.barred
        cp, tuning = self._cp, self.tuning.names
        edges = (*self._ahead.of_states, self._ahead.ends)
        if cut is None:
            cut = cp.zeros((len(self._ahead.ends) + 31) // 32, dtype=cp.uint32)
        # The worklist has room for two numbers a state.
        both = self._work.items.view(np.int32)
        listed, rest = both[: self._num_states], both[self._num_states : 2 * self._num_states]
        listed_count = cp.zeros(1, dtype=cp.int32)
        changed = cp.empty(tuning.sweeps_a_look, dtype=cp.int32)
        size = cp.int32(self._num_states)
        self._launch("collect_open", self._num_states, open_, size, listed, listed_count)
        self._launch("cut_outer", left, *edges, open_, listed, cp.int32(left), cut)
        behind = self._turned()
        against = (None,) * 3
        if behind is not None:
            against = (behind.offsets, behind.ends, behind.state_of)
        if not parting.by_regions:
            self._launch("begin_region", left, listed, cp.int32(left), leader)
        due = cp.empty((self._num_states + 7) // 8, dtype=cp.uint32)
        passes = cp.int32(tuning.passes)
        most, sweeps = tuning.patience.granted(left), 0
        # In a deep graph, too few sweeps are granted to names by number.
        shuffled, by_number = int(parting.is_deep), not parting.is_deep
        while left:
            count, mixed = cp.int32(left), cp.int32(shuffled)
            self._launch("begin_names", left, listed, count, mixed, self._numbers)
            due.data.memset_async(0, due.nbytes, stream=None)
            moving, begun = True, sweeps
            while moving:
                if sweeps >= most:
                    self.steps.append(("sweeps, given up", sweeps, left))
                    return False
                if not shuffled and sweeps - begun >= tuning.sweeps_by_number:
                    shuffled, by_number = 1, False
                    mixed, begun = cp.int32(1), sweeps
                    self.steps.append(("sweeps by number, given up", sweeps, left))
                    self._launch("begin_names", left, listed, count, mixed, self._numbers)
                changed.data.memset_async(0, changed.nbytes, stream=None)
                arguments = (*edges, cut, *against, barred, open_, leader, listed, count, mixed)
                few = left < tuning.moving_states or sweeps - begun < tuning.sweeps_of_all
                of_all = few or behind is None
                again = (sweeps - begun) // tuning.sweeps_a_look % tuning.batches_between_all == 0
                for sweep in range(tuning.sweeps_a_look):
                    every = cp.int32(of_all or (again and sweep == 0))
                    others = (every, passes, self._numbers, due, cp.int32(sweep), changed)
                    self._launch("raise_names", left, *arguments, *others)
                made = changed.get()
                moving = bool(made[-1])
                sweeps += tuning.sweeps_a_look if moving else 1 + int(np.count_nonzero(made))
            listed_count.data.memset_async(0, listed_count.nbytes, stream=None)
            ending = (cut, listed, count, mixed, self._numbers, open_, leader, rest, listed_count)
            self._launch("cut_different", left, *edges, *ending)
            left = int(listed_count.get()[0])
            listed, rest = rest, listed
            shuffled = 1 - shuffled if by_number else 1
            self._work.rounds += 1
            self.steps.append(("sweeps", sweeps, left))
        return True

    def _drain(self, kernel: str, open_: Any, *arguments: Any, **how: Any) -> tuple[int, bool]:
        """Work off lists as far as worthwhile; return how many states are open, and if it ended."""
        complete = self._close(kernel, *arguments, module="trimming", **how)
        left = self.count(open_)
        given_up = not complete and not (how.get("while_long") and self._work.is_short)
        name = f"{kernel}, given up" if given_up else kernel
        self.steps.append((name, self._rounds, left))
        return left, complete

    def _close(self, kernel: str, *arguments: Any, **how: Any) -> bool:
        before = self._work.rounds
        complete = self._work.close(kernel, *arguments, patience=self.tuning.patience, **how)
        self._rounds = self._work.rounds - before
        return complete

    def _turned(self) -> Edges | None:
        """Return the edges backwards, or None where there is no room for them."""
        self._is_turned = True
        return self._behind()

    def count(self, members: Any) -> int:
        """Return how many states a bitmap holds."""
        self._total.data.memset_async(0, self._total.nbytes, stream=None)
        words = self._cp.int32(self._words)
        self._launch("count_members", self._words, members, words, self._total)
        return int(self._total.get()[0])

    def _launch(self, kernel: str, threads: int, *arguments: Any) -> None:
        self._work.launch(kernel, threads, *arguments, module="components")
