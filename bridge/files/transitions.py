"""Reading `.tra`: the transitions of a DTMC, CTMC or MDP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from bridge.files.rows import (
    ActionTable,
    RowBlock,
    Scalar,
    allocate,
    check_values,
    read_rows,
    read_size_line,
)
from bridge.files.source import STATES_FOR_FREE, Section
from engines.arrays import IndexArray, MaskArray, index_dtype, offsets_of
from engines.host.assemble import (
    UNSET,
    Entries,
    Place,
    RowStatus,
    append_rows,
    count_choices,
    count_rows,
    place_rows,
    tidy_rows,
)
from engines.model.csr import CsrMatrix
from engines.model.explicit import ROW_SUM_TOLERANCE, ModelKind
from engines.model.row_sums import rescaled

HEADER = re.compile(r"# ?Transitions(?: \((.*)\))?\s*")
SECTION_TITLE = re.compile(
    r"# (?:States|Labels|Observations|State rewards|Transition rewards|Reward structure.*)\s*"
)


@dataclass(frozen=True)
class Transitions:
    """What a `.tra` holds.

    Parameters
    ----------
    kind
        The kind of model.
    matrix
        A row a state, or a choice (MDP); sorted by column, without zeros. Probabilities of a row
        sum to 1 but for rounding.
    row_group_offsets
        MDPs only, shape (states + 1,).
    action_names
        Names of actions; the first is empty.
    actions
        Index into the names, for each choice (MDP) or transition; None where there are none.
        −1 is a transition that stands for parallel ones of several actions.
    deadlocks
        States without a line, which got a self-loop as PRISM gives them; shape (states,).
    num_choices
        The number of choices that the file declares (MDP).
    note
        Which rows were divided by their sums, for the log; empty for none.
    """

    kind: ModelKind
    matrix: CsrMatrix
    row_group_offsets: IndexArray | None
    action_names: tuple[str, ...]
    actions: IndexArray | None
    deadlocks: MaskArray
    num_choices: int
    note: str = ""


@dataclass(frozen=True)
class _Head:
    kind: ModelKind
    states: int
    choices: int
    transitions: int
    line: int

    @property
    def integers(self) -> int:
        return 3 if self.kind is ModelKind.MDP else 2

    @property
    def row_shape(self) -> str:
        if self.kind is ModelKind.MDP:
            return "`state choice target probability [action]`"
        value = "rate" if self.kind is ModelKind.CTMC else "probability"
        return f"`state target {value} [action]`"

    @property
    def value_name(self) -> str:
        return "rate" if self.kind is ModelKind.CTMC else "probability"


def read_transitions(section: Section, kind: ModelKind | None = None) -> Transitions:
    """Read the transitions of a model.

    PRISM's explicit engine takes states in ascending order only, its symbolic engines in any;
    this reader takes any, and is fastest on ascending ones.

    Parameters
    ----------
    section
        The text.
    kind
        The kind of model. None: as the header says; without a header, as PRISM deduces it (three
        counts: an MDP; two: a CTMC if one of the first six values exceeds 1, else a DTMC).

    Raises
    ------
    InvalidModelError
        Naming the file, and the line where there is one.
    """
    head = _read_head(section, kind)
    _refuse_absurd_counts(section, head)
    build = _Assembly(section, head)
    if not build.append():
        build.place()
    return build.finish()


def _read_head(section: Section, kind: ModelKind | None) -> _Head:
    with section.open() as reader:
        size = read_size_line(
            reader, (2, 3, 4), "`states transitions` or `states choices transitions`"
        )
        named = _kind_of_comments(section, size.comments, kind)
        counts = size.numbers
        if len(counts) == 4:
            section.fail(size.line, "four counts: a POMDP, which cannot be read")
        wanted = kind or named or _guess(section, len(counts))
        if (wanted is ModelKind.MDP) != (len(counts) == 3):
            section.fail(
                size.line,
                f"{len(counts)} counts, but a {wanted} has "
                + ("`states choices transitions`" if wanted is ModelKind.MDP
                   else "`states transitions`"),
            )  # fmt: skip
        head = _Head(wanted, counts[0], counts[-2] if len(counts) == 3 else counts[0],
                     counts[-1], size.line)  # fmt: skip
    if head.states == 0:
        section.fail(head.line, "a model needs at least one state")
    return head


def _kind_of_comments(
    section: Section, comments: tuple[str, ...], kind: ModelKind | None
) -> ModelKind | None:
    named = None
    for comment in comments:
        if SECTION_TITLE.fullmatch(comment):
            section.fail(None, f"is no transitions file: it starts with {comment!r}")
        match = HEADER.fullmatch(comment)
        if match and match[1] and kind is None:
            if match[1] not in ModelKind.__members__:
                known = ", ".join(ModelKind)
                section.fail(None, f"holds a model of type {match[1]}; only {known} can be read")
            named = ModelKind(match[1])
    return named


def _guess(section: Section, counts: int) -> ModelKind:
    if counts == 3:
        return ModelKind.MDP
    values: list[float] = []
    with section.open() as reader:
        read_size_line(reader, (2,), "`states transitions`")
        # PRISM looks at so many lines to tell a CTMC by a value above 1.
        while len(values) < 6 and (line := reader.readline()) is not None:
            fields = line.split()
            if fields and not fields[0].startswith(b"#"):
                try:
                    values.append(float(fields[2]))
                except (IndexError, ValueError):
                    break
    return ModelKind.CTMC if any(value > 1 for value in values) else ModelKind.DTMC


def _refuse_absurd_counts(section: Section, head: _Head) -> None:
    shortest_line = 2 * head.integers + 2
    if not section.holds(head.transitions * shortest_line - 1):
        section.fail(
            head.line,
            f"{head.transitions} transitions are declared, more than the file can hold",
        )
    if head.states > STATES_FOR_FREE and not section.holds(head.states - STATES_FOR_FREE):
        section.fail(
            head.line, f"{head.states} states are declared, for a file that is far too short"
        )
    if head.kind is ModelKind.MDP and head.choices > head.transitions:
        section.fail(
            head.line,
            f"{head.choices} choices, but {head.transitions} transitions; every choice has one",
        )


class _Assembly:
    """The arrays of a model while its file is read."""

    def __init__(self, section: Section, head: _Head) -> None:
        self.section = section
        self.head = head
        self.nondeterministic = head.kind is ModelKind.MDP
        self.group_offsets: NDArray[np.int64] | None = None
        rows = head.choices
        offset_type = index_dtype(head.transitions + head.states)
        column_type = index_dtype(head.states)
        self.groups: IndexArray = self._zeros(
            head.states if self.nondeterministic else 0, offset_type
        )
        self.lengths: IndexArray = self._zeros(rows, offset_type)
        self.columns: IndexArray = self._zeros(head.transitions, column_type)
        self.values = self._zeros(head.transitions, np.float64)
        self.codes: NDArray[np.int32] = self._zeros(
            rows if self.nondeterministic else head.transitions, np.int32
        )
        if self.nondeterministic:
            self.codes[:] = UNSET
        self.table = ActionTable()

    def append(self) -> bool:
        """Read transitions in ascending order; False if they are in another."""
        place = Place()
        groups = self.groups if self.nondeterministic else None
        for block in self._blocks():
            if place.filled + len(block.values) > self.head.transitions:
                self.section.fail(
                    block.line_of(self.head.transitions - place.filled),
                    f"more than the {self.head.transitions} transitions that line "
                    f"{self.head.line} declares",
                )
            status, entry = append_rows(
                block.keys, block.values, block.actions, groups, self.lengths, self._entries(),
                place,
            )  # fmt: skip
            if status is RowStatus.OUT_OF_ORDER:
                return False
            self._refuse(status, block, entry)
        self._check_count(place.filled)
        if self.nondeterministic and place.row + 1 != self.head.choices:
            self._wrong_choices(place.row + 1)
        return True

    def place(self) -> None:
        """Read transitions in any order, in passes over the file: count, then place."""
        self.groups[:] = 0
        self.lengths[:] = 0
        self.codes[:] = UNSET if self.nondeterministic else 0
        self.table = ActionTable()
        if self.nondeterministic:
            for block in self._blocks():
                status, entry = count_choices(block.keys, self.groups, self.head.choices)
                self._refuse(status, block, entry)
            self.group_offsets = offsets_of(self.groups)
            if int(self.group_offsets[-1]) != self.head.choices:
                self._wrong_choices(int(self.group_offsets[-1]))
        count = 0
        for block in self._blocks():
            count += len(block.values)
            status, entry = count_rows(
                block.keys, self.group_offsets, self.lengths, self.head.states
            )
            self._refuse(status, block, entry)
        self._check_count(count)
        if self.group_offsets is not None and not self.lengths.all():
            row = int(np.argmin(self.lengths))
            state = int(np.searchsorted(self.group_offsets, row, side="right")) - 1
            choice = row - int(self.group_offsets[state])
            self.section.fail(None, f"choice {choice} of state {state} has no transition")
        next_entry = offsets_of(self.lengths)[:-1]
        self.table = ActionTable()
        for block in self._blocks():
            status, entry = place_rows(
                block.keys, block.values, block.actions, self.group_offsets, next_entry,
                self._entries(), self.head.states,
            )  # fmt: skip
            self._refuse(status, block, entry)

    def finish(self) -> Transitions:
        """Sort the rows, add self-loops to deadlocks, and see to the rows' sums."""
        self._tidy_rows()
        deadlocks = self._fix_deadlocks()
        offsets = offsets_of(self.lengths).astype(index_dtype(len(self.values)), copy=False)
        codes = self.codes if self.table.names[1:] else self.codes[:0]
        group_offsets = self._group_offsets()
        matrix = CsrMatrix(offsets, self.columns, self.values, self.head.states)
        note = ""
        if self.head.kind is not ModelKind.CTMC:
            self._check_sums(matrix, group_offsets)
            matrix, changed = rescaled(matrix)
            note = "" if changed is None else changed.remark(group_offsets)
        actions: IndexArray | None = None
        if len(codes):
            actions = codes if len(self.table.names) > 127 else codes.astype(np.int8)
        return Transitions(
            self.head.kind, matrix, group_offsets, tuple(self.table.names), actions, deadlocks,
            self.head.choices, note,
        )  # fmt: skip

    def _group_offsets(self) -> IndexArray | None:
        if not self.nondeterministic:
            return None
        return offsets_of(self.groups).astype(index_dtype(len(self.lengths)), copy=False)

    def _tidy_rows(self) -> None:
        """Sort the rows and drop zeros: without rates above 0 a state is a deadlock."""
        offsets = offsets_of(self.lengths).astype(index_dtype(len(self.values)), copy=False)
        codes = self.codes if self.table.names[1:] and not self.nondeterministic else None
        status, row, left = tidy_rows(offsets, self.columns, self.values, codes)
        if status is RowStatus.DUPLICATE:
            reason = "a duplicate of an earlier transition"
            self._fail_at(row, self._group_offsets(), left, reason)
        if left == len(self.values):
            return
        self.columns, self.values = self.columns[:left].copy(), self.values[:left].copy()
        self.lengths = np.diff(offsets).astype(self.lengths.dtype, copy=False)
        if not self.nondeterministic:
            self.codes = self.codes[:left].copy()

    def _check_sums(self, matrix: CsrMatrix, group_offsets: IndexArray | None) -> None:
        sums = matrix.row_sums()
        wrong = np.abs(sums - 1.0) > ROW_SUM_TOLERANCE
        if wrong.any():
            row = int(np.argmax(wrong))
            reason = f"the probabilities from here sum to {float(sums[row])!r}, not 1"
            self._fail_at(row, group_offsets, None, reason)

    def _entries(self) -> Entries:
        return Entries(self.columns, self.values, self.codes)

    def _blocks(self) -> Iterator[RowBlock]:
        with self.section.open() as reader:
            read_size_line(reader, (2, 3), "counts")
            shape = self.head.row_shape
            for block in read_rows(reader, self.head.integers, shape, self.table):
                check_values(self.section, block, self.head.value_name)
                yield block

    def _fix_deadlocks(self) -> MaskArray:
        sizes = self.groups if self.nondeterministic else self.lengths
        deadlocks: MaskArray = sizes == 0
        states = np.flatnonzero(deadlocks)
        if len(states) == 0:
            return deadlocks
        rows = states
        if self.nondeterministic:
            rows = offsets_of(self.groups)[states]
            self.groups[states] = 1
            self.codes = np.insert(self.codes, rows, 0)
        positions = offsets_of(self.lengths)[rows]
        if self.nondeterministic:
            self.lengths = np.insert(self.lengths, rows, 1)
        else:
            self.lengths[states] = 1
            self.codes = np.insert(self.codes, positions, 0)
        self.columns = np.insert(self.columns, positions, states)
        self.values = np.insert(self.values, positions, 1.0)
        return deadlocks

    def _zeros(self, size: int, dtype: type[Scalar]) -> NDArray[Scalar]:
        return allocate(self.section, (size,), dtype, "the model's arrays")

    def _check_count(self, count: int) -> None:
        if count != self.head.transitions:
            self.section.fail(
                self.head.line,
                f"{self.head.transitions} transitions are declared, but {count} follow",
            )

    def _wrong_choices(self, count: int) -> NoReturn:
        self.section.fail(
            self.head.line, f"{self.head.choices} choices are declared, but {count} follow"
        )

    def _refuse(self, status: RowStatus, block: RowBlock, entry: int) -> None:
        if status is RowStatus.OK:
            return
        states = self.head.states
        source, target = int(block.keys[entry, 0]), int(block.keys[entry, -1])
        reason = {
            RowStatus.BAD_SOURCE: f"state {source}, but the states are 0 to {states - 1}",
            RowStatus.BAD_TARGET: f"target {target}, but the states are 0 to {states - 1}",
            RowStatus.TOO_MANY_ROWS: f"more than the {self.head.choices} choices declared",
            RowStatus.BAD_CHOICE: f"choice {int(block.keys[entry, -2])} of state {source}, but "
            f"only {self.head.choices} choices are declared in all",
            RowStatus.CHANGED: "the file was changed while it was read",
            RowStatus.TWO_ACTIONS: f"choice {int(block.keys[entry, -2])} of state {source} has two "
            "actions",
        }[status]
        self.section.fail(block.line_of(entry), reason)

    def _fail_at(
        self, row: int, group_offsets: IndexArray | None, target: int | None, message: str
    ) -> NoReturn:
        """Fail at the first line of a row, or at the last one to a target."""
        key = [row]
        if group_offsets is not None:
            state = int(np.searchsorted(group_offsets, row, side="right")) - 1
            key = [state, row - int(group_offsets[state])]
        found = None
        for block in self._blocks():
            hit = np.logical_and.reduce(
                [block.keys[:, place] == number for place, number in enumerate(key)]
            )
            if target is not None:
                hit &= block.keys[:, -1] == target
            if hit.any():
                last = len(hit) - 1 - int(np.argmax(hit[::-1]))
                found = block.line_of(int(np.argmax(hit)) if target is None else last)
                if target is None:
                    break
        name = f"state {key[0]}" + (f", choice {key[1]}" if len(key) == 2 else "")
        self.section.fail(found, f"{name}: {message}")
