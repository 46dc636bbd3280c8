"""Tables for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape


def table(cells: Mapping[str, str]) -> str:
    """Return an HTML table with a name and a text in each row.

    Parameters
    ----------
    cells
        The texts by their names.
    """
    rows = (
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in cells.items()
    )
    return f"<table>{''.join(rows)}</table>"


def grid(rows: Sequence[Mapping[str, object]]) -> str:
    """Return an HTML table with a header and a row for each mapping.

    Parameters
    ----------
    rows
        Cells by the name of their column; columns come in the order in which they first occur.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    lines = (
        "".join(f"<td>{escape(_text(row.get(name)))}</td>" for name in columns) for row in rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)
