"""A table, and how its cells are written."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Cell = str
LONGEST_CELL = 60
"""Characters of a cell on a terminal."""
GROUPED = re.compile(r"(?<![\w=,.])\d{1,3}(?:,\d{3})+(?!\d)")
"""A number with a comma before each three of its digits."""


@dataclass(frozen=True)
class Column:
    """A column's head.

    Parameters
    ----------
    title
        What is in it, with its unit.
    theirs
        Whether a publication's figures are in it, not ours.
    text
        Whether words are in it, not numbers.
    """

    title: str
    theirs: bool = False
    text: bool = False


@dataclass(frozen=True)
class Table:
    """A table of the report.

    Parameters
    ----------
    name
        A short name, for files.
    subject
        What it belongs to.
    title
        Its title.
    caption
        What is measured, and where the published figures are from.
    columns
        Heads.
    rows
        Cells, as they are shown; empty where there is nothing to be said.
    """

    name: str
    subject: str
    title: str
    caption: str
    columns: Sequence[Column]
    rows: list[list[Cell]] = field(default_factory=list)

    def compact(self) -> Table:
        """Return the table without the columns that have no cell."""
        kept = [i for i in range(len(self.columns)) if any(row[i] for row in self.rows)]
        rows = [[row[i] for i in kept] for row in self.rows]
        return replace(self, columns=[self.columns[i] for i in kept], rows=rows)

    def as_csv(self) -> str:
        """Return the table as comma-separated values, its heads first; numbers as programs read."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([column.title for column in self.columns])
        writer.writerows([_ungrouped(cell) for cell in row] for row in self.rows)
        return text.getvalue()

    def as_text(self, width: int) -> str:
        """Return the table for a terminal: a line a row where it is wide enough, else two or more.

        Parameters
        ----------
        width
            Columns of the terminal.
        """
        heads = [column.title for column in self.columns]
        rows = [[_shortened(cell) for cell in row] for row in self.rows]
        sizes = [max(len(row[i]) for row in [_longest(heads), *rows]) for i in range(len(heads))]
        lines = [self.title, ""]
        parts = _parts(sizes, width)
        for part in parts:
            for head in _wrapped([heads[i] for i in part], [sizes[i] for i in part]):
                lines.append(_line(head, [sizes[i] for i in part]))
            lines.append("  ".join("-" * sizes[i] for i in part))
            for row in rows:
                lines.append(_line([row[i] for i in part], [sizes[i] for i in part]))
            lines.append("")
        return "\n".join(line.rstrip() for line in lines)


def _ungrouped(cell: Cell) -> Cell:
    """Return a cell with its numbers as programs read them."""
    return GROUPED.sub(lambda number: number[0].replace(",", ""), cell)


def _shortened(cell: Cell) -> Cell:
    """Return what a terminal has room for; the other forms of the table have all of it."""
    return cell if len(cell) <= LONGEST_CELL else cell[: LONGEST_CELL - 1].rstrip() + "…"


def _longest(heads: list[str]) -> list[str]:
    """Return the longest word of each head: the heads are broken between words."""
    return [max(head.split(), key=len) for head in heads]


def _parts(sizes: list[int], width: int) -> list[list[int]]:
    """Return which columns stand side by side; the first one leads each part."""
    parts, used = [[0]], sizes[0]
    for i in range(1, len(sizes)):
        if used + 2 + sizes[i] > width and len(parts[-1]) > 1:
            parts.append([0])
            used = sizes[0]
        parts[-1].append(i)
        used += 2 + sizes[i]
    return parts


def _wrapped(heads: list[str], sizes: list[int]) -> list[list[str]]:
    import textwrap

    columns = [textwrap.wrap(head, size) for head, size in zip(heads, sizes, strict=True)]
    height = max(len(column) for column in columns)
    filled = [[""] * (height - len(column)) + column for column in columns]
    return [list(line) for line in zip(*filled, strict=True)]


def _line(cells: list[str], sizes: list[int]) -> str:
    first, *rest = zip(cells, sizes, strict=True)
    aligned = [first[0].ljust(first[1]), *(cell.rjust(size) for cell, size in rest)]
    return "  ".join(aligned)


def number(value: float | None, digits: int = 3) -> Cell:
    """Return a number to some digits, large ones whole and in groups; empty for None.

    Parameters
    ----------
    value
        The number.
    digits
        Significant digits of small ones.
    """
    if value is None:
        return ""
    if isinstance(value, int) or abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def seconds(value: float | None) -> Cell:
    """Return seconds to three digits, down to a millisecond; empty for None.

    Parameters
    ----------
    value
        Seconds.
    """
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def ratio(slow: float | None, fast: float | None) -> Cell:
    """Return how many times as long the first took; empty where one is not known.

    Parameters
    ----------
    slow, fast
        Seconds.
    """
    if not slow or not fast:
        return ""
    value = slow / fast
    return f"{value:,.0f} ×" if value >= 9.5 else f"{value:.2g} ×"


def relative(value: float) -> Cell:
    """Return a relative error.

    Parameters
    ----------
    value
        The error.
    """
    return "0" if value == 0 else f"{value:.0e}"


def origin(record: Mapping[str, Any] | None) -> Cell:
    """Return when and where a result was measured; empty where it does not say so.

    Parameters
    ----------
    record
        The result, or None.
    """
    if record is None or "where" not in record:
        return ""
    where = record["where"]
    name = where["processor"] if record["kind"] == "PRISM" else where["device_name"]
    return f"{record['measured'][:16]}, {name}"


def origins(ours: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None) -> Cell:
    """Return when and where the two results of a row were measured.

    Parameters
    ----------
    ours, theirs
        Our result and PRISM's, or None.
    """
    mine, others = origin(ours), origin(theirs)
    named = (("ours ", mine), ("PRISM ", others))
    return "; ".join(who + what for who, what in named if what)
