"""Lines of integers, a value and perhaps an action, scanned a block at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bridge.files.names import printable
from bridge.files.source import Section, TextReader, decoded, line_start
from engines.arrays import FloatArray
from engines.errors import InvalidModelError
from engines.host.compiled.text import MOST_DIGITS, LineStatus, NameTable, scan_rows

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
RATIONAL = re.compile(rb"(\d{1,300})/(\d{1,300})")
COMMENT = b"#"

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class SizeLine:
    """The first line that is no comment, and the comments before it."""

    numbers: tuple[int, ...]
    line: int
    comments: tuple[str, ...]


@dataclass(frozen=True)
class RowBlock:
    """Rows of a block of text.

    Parameters
    ----------
    keys
        Shape (rows, integers a row), int64, none negative.
    values
        Shape (rows,); may hold NaN, infinite and negative ones.
    actions
        Shape (rows,): numbers of `ActionTable`, 0 for none; empty where actions are not allowed.
    lines
        Shape (rows,): line numbers, less `first_line`.
    first_line
        Number of the block's first line.
    """

    keys: NDArray[np.int64]
    values: FloatArray
    actions: NDArray[np.int32]
    lines: NDArray[np.int32]
    first_line: int

    def line_of(self, row: int) -> int:
        """Return the line number of a row of the block."""
        return self.first_line + int(self.lines[row])


class ActionTable:
    """The action names of a file, numbered from 1 in the order of appearance."""

    def __init__(self) -> None:
        self.names: list[str] = [""]
        self.table = NameTable()

    def take_new(self, section: Section, first_line: int) -> None:
        """Decode the names that a block added."""
        for number in range(len(self.names), self.table.count + 1):
            line = first_line + self.table.line_of(number)
            self.names.append(printable(decoded(section, line, self.table[number])))


def read_size_line(reader: TextReader, counts: tuple[int, ...], meaning: str) -> SizeLine:
    """Read the comments and the line of counts at the head of a file.

    Parameters
    ----------
    reader
        At the head of the file.
    counts
        How many numbers the line may have.
    meaning
        What they mean, for messages.

    Raises
    ------
    InvalidModelError
        If the line is missing or is something else.
    """
    comments: list[str] = []
    while (raw := reader.readline()) is not None:
        text = raw.strip()
        if text.startswith(COMMENT):
            comments.append(decoded(reader.section, reader.line - 1, text))
            continue
        if not text:
            continue
        fields = text.split()
        if len(fields) not in counts or not all(
            len(field) <= MOST_DIGITS and field.isdigit() for field in fields
        ):
            reader.fail(f"expected {meaning}, found {text[:60]!r}")
        return SizeLine(tuple(map(int, fields)), reader.line - 1, tuple(comments))
    reader.section.fail(None, f"is empty; expected {meaning}")


def read_rows(
    reader: TextReader, integers: int, what: str, actions: ActionTable | None = None
) -> Iterator[RowBlock]:
    """Yield the rows of the rest of a file.

    Parameters
    ----------
    reader
        After the size line.
    integers
        Integers at the start of each row.
    what
        The shape of a row, for messages.
    actions
        Where action names are collected; None where rows have none.

    Raises
    ------
    InvalidModelError
        Naming the line that is not such a row.
    """
    section = reader.section
    for text, first_line in reader.blocks():
        found = scan_rows(text, integers, None if actions is None else actions.table)
        if actions is not None:
            actions.take_new(section, first_line)
        block = RowBlock(found.keys, found.values, found.actions, found.lines, first_line)
        for row, start, stop in found.unread.tolist():
            block.values[row] = _number(section, block, row, text[start:stop].tobytes())
        if found.status is not LineStatus.OK:
            _refuse_line(section, text, found.status, found.line, first_line, what)
        yield block


def check_values(section: Section, block: RowBlock, what: str) -> None:
    """Refuse values that are NaN, infinite or negative.

    Raises
    ------
    InvalidModelError
        Naming the first line with such a value.
    """
    wrong = ~((block.values >= 0.0) & (block.values < np.inf))
    if wrong.any():
        row = int(np.argmax(wrong))
        section.fail(
            block.line_of(row),
            f"the {what} is {block.values[row]}; it must be finite and not negative",
        )


def _number(section: Section, block: RowBlock, row: int, token: bytes) -> float:
    if NUMBER.fullmatch(token) or token in (b"NaN", b"Infinity", b"-Infinity", b"+Infinity"):
        return float(token)
    if (rational := RATIONAL.fullmatch(token)) and int(rational[2]):
        try:
            return int(rational[1]) / int(rational[2])
        except OverflowError:
            return float("inf")
    line = block.line_of(row)
    if token.startswith(b"["):
        section.fail(line, f"{token[:40]!r} is an interval; interval models cannot be read")
    section.fail(line, f"{token[:40]!r} is not a number")


def _refuse_line(
    section: Section,
    text: NDArray[np.uint8],
    status: LineStatus,
    line: int,
    first_line: int,
    what: str,
) -> None:
    shown = line_start(text, line)
    reason = {
        LineStatus.BAD_INTEGER: "an index is not a whole number from 0 on",
        LineStatus.TOO_FEW: "too few fields",
        LineStatus.TOO_MANY: "too many fields",
    }[status]
    if b":" in shown:
        reason = "one row a line, as PRISM's option `rows` writes it"
    if shown.startswith(b"- "):
        reason = 'initial states belong in the .lab file, as label "init"'
    section.fail(first_line + line, f"{reason} in {shown!r}; expected {what}")


def allocate(
    section: Section, shape: tuple[int, ...], dtype: type[Scalar], what: str
) -> NDArray[Scalar]:
    """Return an array of zeros.

    Raises
    ------
    InvalidModelError
        If there is not that much memory.
    """
    try:
        return np.zeros(shape, dtype=dtype)
    except (MemoryError, ValueError, OverflowError) as error:
        raise InvalidModelError(
            f"{printable(str(section.path))}: {what} of shape {shape} do not fit into memory"
        ) from error
