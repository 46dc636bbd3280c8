"""Maximal end components on one GPU."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engines.cuda.components import ComponentSearch
from engines.cuda.driver import cupy
from engines.cuda.graph_tuning import RefinementTuning

if TYPE_CHECKING:
    from engines.cuda.graph_edges import Edges
    from engines.cuda.worklist import Worklist


@dataclass(frozen=True)
class Refinement:
    """The end components, or what is known of them; arrays on the device.

    Parameters
    ----------
    leader
        Shape (states,), int32: a state of the component of each; negative for states without one.
        States of `unsettled` have none so far.
    barred
        Bitmap of the rows that no end component uses, if wanted.
    unsettled
        Bitmap of the states whose component may have to be split; None where there are none.
    num_bytes
        Bytes of device memory that the rounds held, these arrays among them.
    """

    leader: Any
    barred: Any
    unsettled: Any | None
    num_bytes: int


def refine(
    work: Worklist,
    ahead: Edges,
    behind: Edges,
    search: ComponentSearch,
    kept: Any,
    barred: Any,
    *,
    with_choices: bool,
    any_barred: bool = True,
    tuning: RefinementTuning = RefinementTuning(),
) -> Refinement:
    """Return the maximal end components of an MDP.

    Parameters
    ----------
    work
        Launches kernels, and holds the list.
    ahead, behind
        The edges forwards and backwards.
    search
        Names strongly connected components.
    kept
        Bitmap of the states that components lie within; overwritten.
    barred
        Bitmap of the rows that components do not use; overwritten.
    with_choices
        Whether the rows of states without a component are to be barred too where all is settled.
    any_barred
        Whether rows may be barred yet.
    tuning
        How long it goes on.

    Notes
    -----
    de Alfaro (1997), Formal Verification of Probabilistic Systems, section 3.4, in rounds as Wijs,
    Katoen, Bošnački (2014) make them on a GPU: a round decomposes the components that lost a row in
    the last one, bars the rows that may leave their component, and removes the states without a
    row, with whatever is forced into them. Edges between components stay cut, so that a round goes
    on from the last one's components, all at the same time.

    Parts of the numbering (`engines.cuda.numbering`) come before all components: no end component
    has states in two of them. So rows that may leave their part are barred without any search, and
    without these rows the numbers may tell of more: where processes go round and stop some time,
    first of the process whose variable comes first, then of the next.
    """
    rounds = _Rounds(work, ahead, behind, search, kept, barred, tuning)
    return rounds.run(with_choices, any_barred)


class _Rounds:
    """The rounds of one refinement."""

    def __init__(
        self,
        work: Worklist,
        ahead: Edges,
        behind: Edges,
        search: ComponentSearch,
        kept: Any,
        barred: Any,
        tuning: RefinementTuning,
    ) -> None:
        cp, self._tuning = cupy(), tuning
        self._work, self._ahead, self._behind, self._search = work, ahead, behind, search
        self._kept, self._barred = kept, barred
        assert behind.state_of is not None
        self._state_of = behind.state_of
        self._num_rows, self._num_states = len(self._state_of), len(behind.offsets) - 1
        self._rows, self._states = cp.int32(self._num_rows), cp.int32(self._num_states)
        self._leader = cp.empty(self._num_states, dtype=cp.int32)
        self._usable = cp.empty(self._num_states, dtype=cp.int32)
        self._changed = cp.zeros(kept.shape, dtype=cp.uint32)
        self._alone = cp.zeros(kept.shape, dtype=cp.uint32)
        self._cut = cp.zeros((len(ahead.ends) + 31) // 32, dtype=cp.uint32)

        held = (kept, barred, self._leader, self._usable, self._changed, self._alone, self._cut)
        self._num_bytes = sum(int(array.nbytes) for array in held)

    def run(self, with_choices: bool, any_barred: bool) -> Refinement:
        among = self._copied(self._kept)
        self._launch("begin_regions", self._num_states, among, self._states, self._leader)
        # Where all states are kept, none of them can be left.
        everywhere = self._search.count(among) == self._num_states
        any_barred = any_barred or not everywhere or self._any_empty()
        if any_barred and not self._remove(among, None if everywhere else self._ahead.ends):
            return self._unsettled(among)
        parts = self._part(any_barred)
        among = self._copied(self._kept)
        if parts is None:
            return self._unsettled(among)
        self._search.drop(among, self._alone)
        first = left = self._search.count(among)
        for round_ in itertools.count():
            if left == 0:
                return self._settled(with_choices)
            if round_ >= self._tuning.patience.granted(first - left):
                break
            if round_ > 0:
                self._cut_barred(among)
            named = self._search.name_components(
                self._copied(among),
                self._leader,
                cut=self._cut,
                barred=self._barred,
                by_regions=True,
                alone=self._alone,
                parts=parts if round_ == 0 else None,
            )
            if named and self._search.unbroken:
                return self._settled(with_choices)
            if not named or not self._remove(among, self._ahead.ends):
                break
            changed = (self._kept, self._states, self._leader, self._changed, among)
            self._launch("collect_changed", len(among), *changed)
            left = self._search.count(among)
            self._search.steps.append(("round", round_ + 1, left))
        return self._unsettled(among)

    def _any_empty(self) -> bool:
        """Return whether there is a state without rows, or a row without edges."""
        found = cupy().zeros(1, dtype=cupy().int32)
        self._launch("find_rowless", self._num_states, self._ahead.groups, self._states, found)
        self._launch("find_empty", self._num_rows, self._ahead.offsets, self._rows, found)
        return bool(found.get()[0])

    def _part(self, any_barred: bool) -> int | None:
        """Bar the rows that may leave their part of the numbering, until it tells of few more.

        Returns how many parts are left of more than one state, None if given up. Their states have
        their parts for leaders, no edges between which count any more; the others, themselves.
        """
        search, parts = self._search, 1
        if any_barred:
            self._cut_barred(self._kept)
        for look in range(1, self._tuning.most_looks + 1):
            among, open_ = self._copied(self._kept), self._copied(self._kept)
            search.drop(open_, self._alone)
            before, size = self._copied(open_), search.count(open_)
            numbers = search.look_at_numbers(open_, self._leader, self._cut, look)
            gained = size - numbers.left + max(numbers.parts - parts, 0)
            parts = numbers.parts
            if gained == 0:
                break
            search.add_lost(before, open_, self._alone)
            # Of states alone too, as long as there are others, whose parts may have their numbers.
            if numbers.left:
                numbers.name_parts(False, self._kept)
            else:
                self._name_alone()
            if not self._remove(among, self._ahead.ends):
                return None
            if numbers.left == 0:
                return 0
            self._cut_barred(self._kept)
            if gained < search.tuning.fewest_parts:
                break
        self._name_alone()
        return parts

    def _name_alone(self) -> None:
        """Make the states that are components of their own their leaders."""
        self._launch("name_alone_in", self._num_states, self._alone, self._states, self._leader)

    def _cut_barred(self, among: Any) -> None:
        """Cut the edges of the barred rows of a set of states."""
        rows = (self._ahead.offsets, self._rows, self._state_of)
        self._launch("cut_rows", self._num_rows, *rows, among, self._barred, self._cut)

    def _remove(self, among: Any, columns: Any | None) -> bool:
        """Bar what leaves its component; remove what has no row left; return whether all was.

        Without `columns`, only empty rows are barred.
        """
        self._changed.data.memset_async(0, self._changed.nbytes, stream=None)
        leader = self._leader
        rows = (self._ahead.offsets, columns, self._rows, self._state_of, among, leader)
        self._launch("bar_leaving", self._num_rows, *rows, self._alone, self._barred, self._changed)
        self._work.begin()
        states = (self._ahead.groups, self._behind.offsets, among, self._alone, self._barred)
        own = (self._states, self._usable, self._kept)
        self._launch("collect_stuck", self._num_states, *states, *own, *self._work.list)
        behind = (self._behind.offsets, self._behind.ends, self._state_of)
        lost = (leader, self._barred, self._usable, self._changed, self._kept)
        patience = self._search.tuning.patience
        return self._work.close("close_stuck", *behind, *lost, module="mec", patience=patience)

    def _settled(self, with_choices: bool) -> Refinement:
        if with_choices:
            dropping = (self._rows, self._state_of, self._kept, self._barred)
            self._launch("bar_dropped", self._num_rows, *dropping)
        self._launch("drop_leaders", self._num_states, self._kept, self._states, self._leader)
        return Refinement(self._leader, self._barred, None, self._num_bytes)

    def _unsettled(self, among: Any) -> Refinement:
        # Of the removed states none is asked for again.
        removed = self._copied(among)
        self._search.drop(removed, self._kept)
        self._search.drop(among, removed)
        self._settled(with_choices=True)
        return Refinement(self._leader, self._barred, among, self._num_bytes)

    def _copied(self, members: Any) -> Any:
        copy = cupy().empty_like(members)
        copy.data.copy_from_device_async(members.data, members.nbytes, stream=None)
        return copy

    def _launch(self, kernel: str, threads: int, *arguments: Any) -> None:
        self._work.launch(kernel, threads, *arguments, module="mec")
