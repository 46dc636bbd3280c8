"""The results of a run, and their export in PRISM's forms."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bridge.files.atomic import write_text
from bridge.language.ast import Value
from bridge.language.text import Range, value_text
from engines.errors import BridgeError

Log = Callable[[str], None]


@dataclass
class ResultsTable:
    """The results of one property, a line for each choice of the constants that vary.

    Parameters
    ----------
    title
        The property.
    ranging
        Names of the constants that vary.
    rows
        Their values and the result.
    """

    title: str
    ranging: tuple[str, ...]
    rows: list[tuple[Mapping[str, Value], Value | Range | str]] = field(default_factory=list)


def export_results(tables: list[ResultsTable], target: str, form: str, log: Log) -> None:
    """Export results as PRISM's -exportresults does.

    Parameters
    ----------
    tables
        One for each property.
    target
        A file, or "stdout".
    form
        "list", "csv" or "comment".
    log
        Where the announcement goes.

    Raises
    ------
    BridgeError
        If the file cannot be written, in PRISM's words.
    """
    names = {"list": "list (plain text)", "csv": "list (CSV)", "comment": "comment"}
    to_log = target == "stdout"
    where = "below:\n" if to_log else f'to file "{target}"...'
    log(f"\nExporting results as {names[form]} {where}")
    text = "\n".join(_table_text(table, form, len(tables) > 1) for table in tables)
    if to_log:
        sys.stdout.write(text)
        return
    try:
        write_text(Path(target), text)
    except OSError as error:
        raise BridgeError(
            f"Could not export results: {target} ({error.strerror or error})"
        ) from error


def _table_text(table: ResultsTable, form: str, titled: bool) -> str:
    if form == "comment":
        return _as_comments(table, titled)
    separator = "," if form == "csv" else "\t"
    lines = []
    if titled:
        quoted = table.title.replace('"', '""')
        lines.append(f'"{quoted}"' if form == "csv" else f"{table.title}:")
    lines.append(separator.join((*table.ranging, "Result")))
    for values, result in table.rows:
        cells = [short_text(values[name]) for name in table.ranging]
        lines.append(separator.join((*cells, short_text(result))))
    return "\n".join(lines) + "\n"


def _as_comments(table: ResultsTable, titled: bool) -> str:
    lines = []
    for values, result in table.rows:
        # PRISM tells first what does not vary.
        pairs = sorted(values.items(), key=lambda pair: pair[0] in table.ranging)
        given = ",".join(f"{name}={short_text(value)}" for name, value in pairs)
        lines.append(f"// RESULT{f' ({given})' if given else ''}: {short_text(result)}")
    return "\n".join([*lines, *([table.title] if titled else [])]) + "\n"


def short_text(value: Value | Range | str) -> str:
    """Return a value as PRISM's tables show it: doubles with twelve significant digits.

    Parameters
    ----------
    value
        A constant's value or a result.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and abs(value) != float("inf") and value == value:
        return f"{value:.12g}"
    return value_text(value)
