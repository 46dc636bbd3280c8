"""Lines of integers, a value and perhaps an action, scanned a block at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bridge.files import tokens
from bridge.files.names import printable
from bridge.files.source import Section, TextReader, decoded, line_start
from engines.errors import InvalidModelError
from engines.formats.csr import FloatArray

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
        Shape (integers a row, rows), int64, none negative.
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
        self.slots = np.zeros(16, dtype=np.int32)
        self.hashes = np.zeros(2, dtype=np.int64)
        self.offsets = np.zeros(3, dtype=np.int64)
        self.bytes = np.zeros(0, dtype=np.uint8)
        self.lines = np.full(2, -1, dtype=np.int32)

    def make_room(self, lines: int, text_bytes: int) -> None:
        """Make room for as many new names as a block can hold."""
        most = len(self.names) + min(lines, text_bytes // 2) + 1
        used = int(self.offsets[len(self.names)])
        self.bytes = _grown(self.bytes, used + text_bytes, 0)
        if most < len(self.hashes):
            return
        self.hashes = _grown(self.hashes, most + 1, 0)
        self.offsets = _grown(self.offsets, most + 2, 0)
        self.lines = _grown(self.lines, most + 1, -1)
        slots = 1 << (2 * most).bit_length()
        self.slots = np.zeros(slots, dtype=np.int32)
        for number in range(1, len(self.names)):
            code = int(self.hashes[number])
            slot = (code ^ (code >> 29)) & (slots - 1)
            while self.slots[slot]:
                slot = (slot + 1) & (slots - 1)
            self.slots[slot] = number

    def take_new(self, section: Section, first_line: int, count: int) -> None:
        """Decode the names that a block added."""
        for number in range(len(self.names), count + 1):
            raw = self.bytes[self.offsets[number] : self.offsets[number + 1]].tobytes()
            name = decoded(section, first_line + int(self.lines[number]), raw)
            self.names.append(printable(name))


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
            len(field) <= tokens.MOST_DIGITS and field.isdigit() for field in fields
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
    nothing = np.zeros(0, dtype=np.int32)
    table = actions or ActionTable()
    for text, first_line, num_lines in reader.blocks():
        most = min(num_lines, len(text) // (2 * integers + 2) + 1)
        keys = np.empty((integers, most), dtype=np.int64)
        values = np.empty(most)
        lines = np.empty(most, dtype=np.int32)
        unsure = np.empty((3, most), dtype=np.int32)
        codes = nothing
        if actions is not None:
            codes = np.empty(most, dtype=np.int32)
            table.make_room(num_lines, len(text))
        status, line, rows, doubts, names = tokens.scan_rows(
            text, keys, values, lines, unsure, codes, table.slots, table.hashes, table.offsets,
            table.bytes, table.lines, len(table.names) - 1,
        )  # fmt: skip
        table.take_new(section, first_line, names)
        block = RowBlock(keys[:, :rows], values[:rows], codes[:rows], lines[:rows], first_line)
        for row, start, stop in unsure[:, :doubts].T.tolist():
            if row < rows or status == tokens.OK:
                values[row] = _number(section, block, row, text[start:stop].tobytes())
        if status != tokens.OK:
            _refuse_line(section, text, status, line, first_line, what)
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
    status: int,
    line: int,
    first_line: int,
    what: str,
) -> None:
    shown = line_start(text, line)
    reason = {
        tokens.BAD_INTEGER: "an index is not a whole number from 0 on",
        tokens.TOO_FEW: "too few fields",
        tokens.TOO_MANY: "too many fields",
    }[status]
    if b":" in shown:
        reason = "one row a line, as PRISM's option `rows` writes it"
    if shown.startswith(b"- "):
        reason = 'initial states belong in the .lab file, as label "init"'
    section.fail(first_line + line, f"{reason} in {shown!r}; expected {what}")


def _grown(array: NDArray[Scalar], size: int, filler: int) -> NDArray[Scalar]:
    if size <= len(array):
        return array
    larger = np.full(max(size, 2 * len(array)), filler, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


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
