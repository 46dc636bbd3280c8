"""Strongly connected components on one GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from engines.backend import cupy
from engines.cuda.modules import Launcher
from engines.cuda.numbering import name_apart
from engines.cuda.prepare import _scan
from engines.cuda.transfer import to_device, to_host
from engines.formats.csr import IndexArray, MaskArray

if TYPE_CHECKING:
    from engines.cuda.graph_edges import Edges
    from engines.cuda.worklist import Worklist

PATIENCE = 64
"""Rounds that are granted to any trimming or search."""

STATES_A_ROUND = 1000
"""So many states must be expanded for each further round, as in `engines.cuda.graph`."""

MOST_SEARCHES = 4
"""The most searches from a state of each region, before names are propagated."""

WORTHWHILE_SHARE = 8
"""Another search follows if the last one named at least one in so many states."""

NONE = 0x40
"""Each byte of a count of edges where there are none, as in the kernels."""

SWEEPS_A_LOOK = 8
"""Sweeps between two looks of the host."""

PASSES = 4
"""How often a warp repeats its part of a sweep while that changes something."""

SWEEPS_BY_NUMBER = 24
"""Sweeps that are granted to names in the order of the states' numbers. They need few of them or,
as along a ring, may need as many as there are states; shuffled names do not."""

SWEEPS_OF_ALL = 32
"""Sweeps that all states take part in before only those do that have something to pass on."""

MOVING_FROM = 1 << 20
"""Of fewer states all take part in every sweep: it costs little, and they learn more in it."""

ALL_AGAIN = 4
"""In one batch of so many all states take part once, for the names that other names tell of."""

MOST_SWEEPS = 512
"""Sweeps that are granted to any propagation."""

STATES_A_SWEEP = 1000
"""So many further states grant one more sweep, about what the CPU does in a sweep's time."""

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

    Notes
    -----
    1. States that the order of their numbers sets apart (`engines.cuda.numbering`): all, where each
       edge of the graph leads to a larger number.
    2. Trimming: states that no open state enters, or that enter none, are components of their own
       (McLendon, Hendrickson, Plimpton, Rauchwerger 2005), counted down by worklists without an
       order of levels, from both ends at a time where the lists are short.
    3. Searches from one state of each region, backwards and then forwards among what was met
       (Fleischer, Hendrickson, Pinar 2000; regions named by their pivots: Wijs, Katoen, Bošnački
       2014), and trimming again. This names components that are large.
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
    ) -> None:
        cp = self._cp = cupy()
        self._work, self._behind = work, behind
        self._is_turned = False
        self._num_states = num_states
        self._ahead = self._by_states(ahead)
        self._words = (num_states + 31) // 32
        # Counts of edges and pivots, or names: the steps that need them follow each other.
        self._numbers = cp.empty(2 * num_states, dtype=cp.uint32)
        self._total = cp.empty(1, dtype=cp.uint64)
        self.steps: SearchSteps = []
        """What was done: name of the step, rounds or sweeps, states left."""
        self.unbroken = False
        """Whether the last search found each region to be one component."""

    @property
    def num_bytes(self) -> int:
        """Bytes of device memory that the search itself holds."""
        of_states = self._ahead.offsets.nbytes if self._grouped else 0
        return int(self._numbers.nbytes + of_states)

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
            Whether `leader` holds the region of each open state, a number of a state, and no edge
            that counts leads from one region to another.
        alone
            Bitmap of states that those are added to that are seen to be components of their own
            before any search; None if nobody asks.
        """
        size = left = self.count(open_)
        self.unbroken = False
        first = None if alone is None else open_.copy()
        for search in range(MOST_SEARCHES + 1):
            left = name_apart(self._work, self._ahead, cut, open_, leader, self._numbers)
            self.steps.append(("numbers", 1, left))
            if left:
                left = self._trim(open_, leader, cut, barred)
            if search == 0 and alone is not None:
                words = self._cp.int32(self._words)
                self._launch("add_lost", self._words, first, open_, words, alone)
            behind = None if left == 0 else self._turned()
            if left == 0 or behind is None or search == MOST_SEARCHES:
                break
            before = left
            left = self._search(open_, leader, cut, barred, by_regions, behind)
            self.unbroken = before == size and left == 0
            if left == 0 or before - left < before // WORTHWHILE_SHARE:
                break
        return left == 0 or self._propagate(open_, leader, cut, barred, by_regions, left)

    def _trim(self, open_: Any, leader: Any, cut: Any | None, barred: Any | None) -> int:
        """Name states that are components of their own; return how many others are left."""
        counts, states = self._numbers, self._cp.int32(self._num_states)
        counts.data.memset_async(NONE, counts.nbytes, stream=None)
        along = (*self._ahead.of_states, self._ahead.ends, cut)
        counting = (*along, open_, states, counts)
        self._work.launch("count_inner", self._num_states, *counting, module="trimming")
        self._work.begin()
        self._collect_trivial(self._ahead, open_, leader, second=False)
        named = (counts, open_, leader)
        left, complete = -1, False
        if not self._is_turned:
            # Edges are not turned round before it is known that a list is left, and what for.
            left, complete = self._drain("trim_forwards", open_, *along, *named, while_long=True)
        behind = self._turned() if left else None
        if behind is not None:
            self._collect_trivial(behind, open_, leader, second=True)
            against = (behind.offsets, behind.ends, behind.state_of, barred)
            left, _ = self._drain("trim_both", open_, *along, *against, *named, lists=2)
        elif left and not complete:
            left, _ = self._drain("trim_forwards", open_, *along, *named)
        return left

    def _collect_trivial(self, edges: Edges, open_: Any, leader: Any, *, second: bool) -> None:
        states, which = self._cp.int32(self._num_states), self._cp.int32(second)
        arguments = (*edges.of_states, self._numbers, states, open_, leader, which)
        collecting = (*arguments, *self._work.two_lists)
        self._work.launch("collect_trivial", self._num_states, *collecting, module="trimming")

    def _search(
        self,
        open_: Any,
        leader: Any,
        cut: Any | None,
        barred: Any | None,
        by_regions: bool,
        behind: Edges,
    ) -> int:
        """Name the component of one state of each region; return how many states are left."""
        cp, size = self._cp, self._num_states
        states, words = cp.int32(size), cp.int32(self._words)
        regions = leader if by_regions else None
        pivots = self._numbers[: self._num_states]
        pivots.data.memset_async(0, pivots.nbytes, stream=None)
        self._launch("find_pivots", size, open_, states, regions, pivots)
        chosen, found, unmet = (cp.empty_like(open_) for _ in range(3))
        self._launch("collect_pivots", self._words, open_, states, regions, pivots, chosen)
        found.data.copy_from_device_async(open_.data, open_.nbytes, stream=None)
        some = (*behind.of_states, behind.ends, behind.state_of, barred)
        searches = (
            (behind, "close_some", "graph", some),
            (
                self._ahead,
                "close_forwards",
                "components",
                (*self._ahead.of_states, self._ahead.ends, cut),
            ),
        )
        for edges, kernel, module, arguments in searches:
            unmet.data.copy_from_device_async(found.data, found.nbytes, stream=None)
            self._work.launch("drop_members", self._words, unmet, chosen, words)
            self._work.collect(chosen, edges)
            if not self._close(kernel, *arguments, unmet, module=module):
                left = self.count(open_)
                self.steps.append((f"{kernel}, given up", self._rounds, left))
                return left
            self._work.launch("drop_members", self._words, found, unmet, words)
        naming = (found, states, cp.int32(by_regions), pivots, open_, leader)
        self._launch("name_found", size, *naming)
        left = self.count(open_)
        self.steps.append(("search", self._rounds, left))
        return left

    def _propagate(
        self,
        open_: Any,
        leader: Any,
        cut: Any | None,
        barred: Any | None,
        by_regions: bool,
        left: int,
    ) -> bool:
        """Name what is left by the largest names; return whether that was done, or given up.

        The leaders of states that stay open are overwritten.
        """
        cp = self._cp
        edges = (*self._ahead.of_states, self._ahead.ends)
        if cut is None:
            cut = cp.zeros((len(self._ahead.ends) + 31) // 32, dtype=cp.uint32)
        # The worklist has room for two numbers a state.
        both = self._work.items.view(np.int32)
        listed, rest = both[: self._num_states], both[self._num_states : 2 * self._num_states]
        listed_count = cp.zeros(1, dtype=cp.int32)
        changed = cp.empty(SWEEPS_A_LOOK, dtype=cp.int32)
        size = cp.int32(self._num_states)
        self._launch("collect_open", self._num_states, open_, size, listed, listed_count)
        self._launch("cut_outer", left, *edges, open_, listed, cp.int32(left), cut)
        behind = self._turned()
        against = (None,) * 3
        if behind is not None:
            against = (behind.offsets, behind.ends, behind.state_of)
        if not by_regions:
            self._launch("begin_region", left, listed, cp.int32(left), leader)
        due = cp.empty((self._num_states + 7) // 8, dtype=cp.uint32)
        most, sweeps = MOST_SWEEPS + left // STATES_A_SWEEP, 0
        shuffled, by_number = 0, True
        while left:
            count, mixed = cp.int32(left), cp.int32(shuffled)
            self._launch("begin_names", left, listed, count, mixed, self._numbers)
            due.data.memset_async(0, due.nbytes, stream=None)
            moving, begun = True, sweeps
            while moving:
                if sweeps >= most:
                    self.steps.append(("sweeps, given up", sweeps, left))
                    return False
                if not shuffled and sweeps - begun >= SWEEPS_BY_NUMBER:
                    shuffled, by_number = 1, False
                    mixed, begun = cp.int32(1), sweeps
                    self.steps.append(("sweeps by number, given up", sweeps, left))
                    self._launch("begin_names", left, listed, count, mixed, self._numbers)
                changed.data.memset_async(0, changed.nbytes, stream=None)
                arguments = (*edges, cut, *against, barred, open_, leader, listed, count, mixed)
                few = left < MOVING_FROM or sweeps - begun < SWEEPS_OF_ALL
                of_all = few or behind is None
                again = (sweeps - begun) // SWEEPS_A_LOOK % ALL_AGAIN == 0
                for sweep in range(SWEEPS_A_LOOK):
                    every = cp.int32(of_all or (again and sweep == 0))
                    others = (every, cp.int32(PASSES), self._numbers, due, cp.int32(sweep), changed)
                    self._launch("raise_names", left, *arguments, *others)
                made = changed.get()
                moving = bool(made[-1])
                sweeps += SWEEPS_A_LOOK if moving else 1 + int(np.count_nonzero(made))
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

    def _close(self, kernel: str, *arguments: Any, module: str, **how: Any) -> bool:
        before = self._work.rounds
        complete = self._work.close(
            kernel, *arguments, module=module, patience=(PATIENCE, STATES_A_ROUND), **how
        )
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


def numbered(leader: Any, num_states: int) -> tuple[IndexArray, int]:
    """Return the components numbered by their smallest states, and how many there are.

    Parameters
    ----------
    leader
        Shape (states,), int32, on the current device: a state of the component of each, or a
        negative number for none; overwritten.
    num_states
        Number of states.
    """
    cp, states, launcher = cupy(), cupy().int32(num_states), Launcher("int")

    def launch(kernel: str, *arguments: Any) -> None:
        launcher.launch(kernel, num_states, *arguments, module="components")

    smallest, flags = cp.empty(num_states, dtype=cp.uint32), cp.empty(num_states, dtype=cp.int32)
    smallest.data.memset_async(0xFF, smallest.nbytes, stream=None)
    launch("find_smallest", leader, states, smallest)
    launch("flag_smallest", leader, states, smallest, flags)
    _scan(flags, launcher)
    launch("name_by_number", leader, states, smallest, flags)
    labels: IndexArray = to_host(leader)
    return labels, int(flags[-1:].get()[0])


def with_rest(leader: Any, members: IndexArray, own: IndexArray) -> tuple[IndexArray, int]:
    """Return the components numbered as by `numbered`, some of them found on the host.

    Parameters
    ----------
    leader
        Shape (states,), int32, on the current device: as `numbered` takes it.
    members
        The states whose components the host found, ascending.
    own
        Their components, each with a number of its own, shape (members,).
    """
    first = np.empty(int(own.max(initial=-1)) + 1, dtype=np.int32)
    # Of several values for one place, NumPy keeps the last.
    first[own[::-1]] = members[::-1]
    joined = to_host(leader)
    joined[members] = first[own]
    return numbered(to_device(joined, np.int32), len(joined))


def left_components(work: Worklist, ahead: Edges, labels: IndexArray, count: int) -> MaskArray:
    """Return which components have an edge that leaves them, shape (count,).

    Parameters
    ----------
    work
        Launches kernels.
    ahead
        The edges forwards.
    labels
        Shape (states,): the component of each state, −1 for none.
    count
        Number of components.
    """
    cp = cupy()
    left = cp.zeros(count, dtype=cp.bool_)
    own = to_device(labels, np.int32)
    states = cp.int32(len(labels))
    arguments = (*ahead.of_states, ahead.ends, own, states, left)
    work.launch("mark_left", len(labels), *arguments, module="components")
    found: MaskArray = left.get()
    return found
