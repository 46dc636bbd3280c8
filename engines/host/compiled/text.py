"""Numbers and names out of lines of text, by the compiled library.

A text is an array of bytes, shape (bytes,), that ends with a line feed. Blanks are spaces, tabs and
carriage returns; empty lines, and lines that start with ``#``, count as lines and hold nothing.
"""

from __future__ import annotations

from ctypes import c_int64
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, MaskArray
from engines.host.compiled.library import DOUBLES, INDICES, MASKS, NUMBERS, Array, Function

MOST_DIGITS = 18
"""An integer has so many at most."""

Text = NDArray[np.uint8]

_BYTES = Array(np.uint8)
_NAMES = (NUMBERS, c_int64, INDICES, INDICES, _BYTES, NUMBERS)
_COUNT_LINES = Function("pg_count_lines", c_int64, _BYTES, c_int64)
_SCAN_ROWS = Function(
    "pg_scan_rows",
    c_int64,
    *(_BYTES, c_int64, c_int64),
    *(INDICES, DOUBLES, NUMBERS, NUMBERS, NUMBERS),
    *(*_NAMES, INDICES),
)
_FILL_NAME_SLOTS = Function("pg_fill_name_slots", None, NUMBERS, c_int64, INDICES, c_int64)
_SCAN_LABELS = Function(
    "pg_scan_labels", c_int64, _BYTES, c_int64, c_int64, c_int64, MASKS, INDICES
)
_SCAN_STATES = Function(
    "pg_scan_states",
    c_int64,
    *(_BYTES, c_int64, c_int64, c_int64),
    *(NUMBERS, Array(np.int8), MASKS, INDICES),
)

_Item = TypeVar("_Item", bound=np.generic)


class LineStatus(IntEnum):
    """What is wrong with a line."""

    OK = 0
    BAD_INTEGER = 1
    TOO_FEW = 2
    TOO_MANY = 3
    BAD_STATE = 4
    BAD_LABEL = 5
    BAD_SHAPE = 6
    BAD_VALUE = 7
    REPEATED = 8
    OTHER_TYPE = 9


class NameTable:
    """Names met in texts, numbered from 1 in the order of appearance.

    Attributes
    ----------
    count
        How many there are.
    """

    def __init__(self) -> None:
        self.count = 0
        self._slots = np.zeros(16, dtype=np.int32)
        self._hashes = np.zeros(2, dtype=np.int64)
        self._offsets = np.zeros(3, dtype=np.int64)
        self._bytes = np.zeros(0, dtype=np.uint8)
        self._lines = np.zeros(2, dtype=np.int32)

    def __getitem__(self, number: int) -> bytes:
        """Return a name."""
        return self._bytes[self._offsets[number] : self._offsets[number + 1]].tobytes()

    def line_of(self, number: int) -> int:
        """Return the line, within its text, where a name was new."""
        return int(self._lines[number])

    def make_room(self, names: int, name_bytes: int) -> None:
        """Make room for so many names more, of so many bytes together."""
        self._bytes = _grown(self._bytes, int(self._offsets[self.count + 1]) + name_bytes)
        most = self.count + names
        if most < len(self._hashes):
            return
        self._hashes = _grown(self._hashes, most + 1)
        self._offsets = _grown(self._offsets, most + 2)
        self._lines = _grown(self._lines, most + 1)
        # At most half of them are in use, whatever is added before the next time.
        slots = 1 << (2 * len(self._hashes)).bit_length()
        self._slots = np.zeros(slots, dtype=np.int32)
        _FILL_NAME_SLOTS(self._slots, slots, self._hashes, self.count)

    def arguments(self) -> tuple[Any, ...]:
        """Return it as the library reads it."""
        slots = (self._slots, len(self._slots), self._hashes)
        return (*slots, self._offsets, self._bytes, self._lines)


@dataclass(frozen=True)
class ScannedRows:
    """The rows of a text, up to the first line that is none.

    Attributes
    ----------
    status, line
        What is wrong with that line, and which it is, within the text.
    keys
        Shape (rows, integers), none negative.
    values
        Shape (rows,): the doubles nearest to the decimal numbers.
    actions
        Shape (rows,): numbers of names, 0 for none; empty without a table of names.
    lines
        Shape (rows,): within the text.
    unread
        Shape (values, 3): row, first byte, and byte behind the last one, of each value that is not
        a decimal number within the range of doubles.
    """

    status: LineStatus
    line: int
    keys: NDArray[np.int64]
    values: FloatArray
    actions: NDArray[np.int32]
    lines: NDArray[np.int32]
    unread: NDArray[np.int32]


def count_lines(text: Text) -> int:
    """Return how many line feeds there are."""
    return int(_COUNT_LINES(text, len(text)))


def scan_rows(text: Text, integers: int, names: NameTable | None = None) -> ScannedRows:
    """Scan lines of integers, a value and perhaps a name.

    Parameters
    ----------
    text
        The text.
    integers
        Integers of a row.
    names
        Where the names are collected; None where rows have none.
    """
    _require_lines(text)
    most = min(count_lines(text), len(text) // (2 * integers + 2) + 1)
    keys = np.empty((most, integers), dtype=np.int64)
    values, lines = np.empty(most), np.empty(most, dtype=np.int32)
    unread = np.empty((most, 3), dtype=np.int32)
    actions = None
    if names is not None:
        actions = np.empty(most, dtype=np.int32)
        names.make_room(most, len(text))
    counts = np.array([0, 0, 0, 0 if names is None else names.count])
    table = (None, 0, None, None, None, None) if names is None else names.arguments()
    out = (keys, values, lines, unread, actions)
    status = _SCAN_ROWS(text, len(text), integers, *out, *table, counts)
    line, rows, num_unread, num_names = counts.tolist()
    if names is not None:
        names.count = num_names
    return ScannedRows(
        LineStatus(status),
        line,
        keys[:rows],
        values[:rows],
        np.zeros(0, dtype=np.int32) if actions is None else actions[:rows],
        lines[:rows],
        unread[:num_unread],
    )


def scan_labels(text: Text, masks: MaskArray) -> tuple[LineStatus, int]:
    """Set masks from lines ``state: label label …``.

    Parameters
    ----------
    text
        The text.
    masks
        Shape (labels, states).

    Returns
    -------
    What is wrong with a line, and which it is, within the text.
    """
    _require_lines(text)
    line = np.zeros(1, dtype=np.int64)
    status = _SCAN_LABELS(text, len(text), *masks.shape, masks, line)
    return LineStatus(status), int(line[0])


def scan_states(
    text: Text, values: NDArray[np.int32], kinds: NDArray[np.int8], seen: MaskArray
) -> tuple[LineStatus, int]:
    """Set the values of variables from lines ``state:(value,…)``.

    Parameters
    ----------
    text
        The text.
    values
        Shape (states, variables); true is 1, false 0.
    kinds
        Shape (variables,), what each is: 0 not known yet, 1 an integer, 2 true or false.
    seen
        Shape (states,): the states that have had a line.

    Returns
    -------
    What is wrong with a line, and which it is, within the text.
    """
    _require_lines(text)
    if kinds.shape != values.shape[1:] or seen.shape != values.shape[:1]:
        raise ValueError(f"values {values.shape}, but {kinds.shape} kinds, {seen.shape} states")
    line = np.zeros(1, dtype=np.int64)
    status = _SCAN_STATES(text, len(text), *values.shape, values, kinds, seen, line)
    return LineStatus(status), int(line[0])


def _require_lines(text: Text) -> None:
    if text.ndim != 1 or (len(text) and text[-1] != ord("\n")):
        raise ValueError("the text does not end with a line feed")


def _grown(array: NDArray[_Item], size: int) -> NDArray[_Item]:
    if size <= len(array):
        return array
    larger = np.zeros(max(size, 2 * len(array)), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
