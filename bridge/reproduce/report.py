"""What a run leaves: CSV, JSON and one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge.files.atomic import write_text
from bridge.reproduce.jobs import Subject
from bridge.reproduce.plots import HINT, Picture
from bridge.reproduce.published import (
    Paper,
    apmc_2005,
    decomposition_2014,
    gauss_seidel_2013,
    gpu_prism_2011,
)
from bridge.reproduce.tables.table import Table, origin

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 1750px; margin: 1.5em auto; padding: 0 1.2em; }
h1 { font-size: 1.6em; } h2 { font-size: 1.25em; margin-top: 2.2em;
     border-bottom: 1px solid #ccc; } h3 { font-size: 1.05em; margin-top: 1.6em; }
p.caption { max-width: 62em; color: #444; font-size: .92em; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .75em; line-height: 1.35; }
th, td { padding: .28em .4em; border: 1px solid #ddd; text-align: right; vertical-align: middle; }
th { vertical-align: bottom; }
th { background: #eef2f6; font-weight: 600; } th.words, td.words { text-align: left; }
th.theirs { background: #e4e4e4; } td.theirs { background: #f4f4f4; color: #555; }
td.remarks { max-width: 22em; text-align: left; }
tr.bad td { background: #fdecea; }
td.size { white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content auto; gap: .15em 1.2em; }
dt { font-weight: 600; } dd { margin: 0; }
figure { margin: 1.2em 0; } img { max-width: 100%; height: auto; }
figcaption { max-width: 62em; color: #444; font-size: .92em; }
nav a { margin-right: 1.1em; } code { font-size: .92em; }
.note { background: #fff8e1; border: 1px solid #f0d070; padding: .5em .9em; max-width: 62em; }
"""
SUBJECTS = {
    Subject.HERMAN: "Herman's ring",
    Subject.CLUSTER: "Workstation cluster",
    Subject.TANDEM: "Tandem queue",
    Subject.GAUSS_SEIDEL: "Gauss-Seidel in colours",
    Subject.SCC: "Strongly connected components",
    Subject.MEC: "Maximal end components",
    Subject.APMC: "Sampled paths",
}
PAPERS = {
    Subject.HERMAN: gpu_prism_2011,
    Subject.CLUSTER: gpu_prism_2011,
    Subject.TANDEM: gpu_prism_2011,
    Subject.GAUSS_SEIDEL: gauss_seidel_2013,
    Subject.SCC: decomposition_2014,
    Subject.MEC: decomposition_2014,
    Subject.APMC: apmc_2005,
}
BAD = ("WRONG", "DIFFERENT")


def write_csv(tables: Sequence[Table], folder: Path) -> list[Path]:
    """Write a CSV file a table.

    Parameters
    ----------
    tables
        The tables.
    folder
        Where.

    Returns
    -------
    The files.
    """
    files = []
    for table in tables:
        file = folder / f"{table.name}.csv"
        write_text(file, table.as_csv())
        files.append(file)
    return files


def write_json(
    provenance: dict[str, Any], tables: Sequence[Table], records: dict[str, Any], file: Path
) -> None:
    """Write everything as JSON.

    Parameters
    ----------
    provenance
        Versions, hardware, date, command.
    tables
        The tables, as they are shown.
    records
        All results, by name of the job.
    file
        Where.
    """
    content = {
        "provenance": provenance,
        "tables": [
            {
                "name": table.name,
                "title": table.title,
                "caption": table.caption,
                "columns": [column.title for column in table.columns],
                "published_columns": [column.title for column in table.columns if column.theirs],
                "rows": table.rows,
            }
            for table in tables
        ],
        "results": records,
    }
    write_text(file, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def write_html(
    provenance: dict[str, Any],
    tables: Sequence[Table],
    pictures: Sequence[Picture] | None,
    notes: Sequence[str],
    file: Path,
    records: Mapping[str, Any] | None = None,
) -> None:
    """Write the report.

    Parameters
    ----------
    provenance
        Versions, hardware, date, command.
    tables
        The tables.
    pictures
        The pictures; None where they could not be drawn.
    notes
        What the reader must know first, such as an interruption.
    file
        Where.
    records
        All results, by name of the job, for the list of when and where each was measured.
    """
    subjects = list(dict.fromkeys(Subject(table.subject) for table in tables))
    links = "".join(f'<a href="#{subject}">{SUBJECTS[subject]}</a>' for subject in subjects)
    parts = [
        "<h1>prism-gpu reproduce: published experiments, measured again</h1>",
        f"<nav>{links}</nav>",
        *(f'<p class="note">{html.escape(note)}</p>' for note in notes),
        _provenance(provenance),
        "<p class='caption'>Grey columns and grey curves are the publications' own figures, on "
        "the hardware of their years. All others were measured in this run. No time is shown of "
        "an answer that was not compared, or that differs.</p>",
    ]
    if pictures is None:
        parts.append(f'<p class="note">{html.escape(HINT)}</p>')
    for subject in subjects:
        parts.append(f'<h2 id="{subject}">{SUBJECTS[subject]}</h2>')
        parts += [_table(table) for table in tables if table.subject == subject]
        parts += [_picture(one) for one in pictures or () if one.subject is subject]
    parts.append(_origins(records or {}))
    parts.append(_sources(subjects))
    text = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>prism-gpu reproduce</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )
    write_text(file, text)


def _provenance(provenance: dict[str, Any]) -> str:
    lines = []
    for name, value in provenance.items():
        shown = (
            ", ".join(f"{key} {item}" for key, item in value.items())
            if isinstance(value, dict)
            else str(value)
        )
        lines.append(f"<dt>{html.escape(name)}</dt><dd>{html.escape(shown)}</dd>")
    return f"<dl>{''.join(lines)}</dl>"


def _table(table: Table) -> str:
    heads = "".join(
        f"<th{_classes(i, table)}>{html.escape(column.title)}</th>"
        for i, column in enumerate(table.columns)
    )
    rows = []
    for row in table.rows:
        bad = ' class="bad"' if any(word in row[-1] for word in BAD) else ""
        cells = "".join(
            f"<td{_classes(i, table)}>{html.escape(cell)}</td>" for i, cell in enumerate(row)
        )
        rows.append(f"<tr{bad}>{cells}</tr>")
    return (
        f"<h3>{html.escape(table.title)}</h3>\n"
        f'<p class="caption">{html.escape(table.caption)}</p>\n'
        f'<div class="wide"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table></div>"
    )


def _classes(position: int, table: Table) -> str:
    column = table.columns[position]
    names = []
    if column.theirs:
        names.append("theirs")
    if column.text:
        names.append("words")
    if position == 0:
        names.append("size")
    if column.title == "remarks":
        names.append("remarks")
    return f' class="{" ".join(names)}"' if names else ""


def _picture(picture: Picture) -> str:
    data = base64.b64encode(picture.file.read_bytes()).decode("ascii")
    caption = html.escape(picture.caption)
    return (
        f'<figure><img alt="{caption}" src="data:image/png;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _origins(records: Mapping[str, Any]) -> str:
    """Return the list of when and where each result was measured."""
    cells = "".join(
        f'<tr><td class="words">{html.escape(name)}</td><td class="words">{html.escape(text)}</td>'
        "</tr>"
        for name, record in sorted(records.items())
        if (text := origin(record))
    )
    if not cells:
        return ""
    return (
        "<h2>When and where each result was measured</h2>\n<details><summary>all results</summary>"
        f"<table><tbody>{cells}</tbody></table></details>"
    )


def _sources(subjects: Sequence[Subject]) -> str:
    papers: list[Paper] = []
    for subject in subjects:
        paper = PAPERS[subject]()
        if paper not in papers:
            papers.append(paper)
    items = "".join(
        f"<li>{html.escape(paper.source)}. {html.escape(paper.hardware)}. "
        f"{html.escape(paper.units)}</li>"
        for paper in papers
    )
    return f"<h2>Publications</h2><ul>{items}</ul>"
