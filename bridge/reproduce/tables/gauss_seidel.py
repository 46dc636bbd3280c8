"""Figures 5.4 to 5.17 of the thesis of 2013: its tables, and sweeps against colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.reproduce.families import FAMILIES
from bridge.reproduce.host import Host
from bridge.reproduce.instances import gauss_seidel
from bridge.reproduce.jobs import Kind, Scale, Solve, Subject
from bridge.reproduce.perform import Results
from bridge.reproduce.published import gauss_seidel_2013
from bridge.reproduce.tables.gauss_seidel_methods import OWN_CPU, means, methods, own_cpu_cells
from bridge.reproduce.tables.solves import (
    MEASURED,
    OURS_AND_PRISM,
    PUBLISHED_ONLY,
    REMARKS,
    SECONDS,
    SIZES,
    compared_cells,
    pair,
    short_reason,
    size_cells,
)
from bridge.reproduce.tables.table import Column, Table, number, origin, origins, seconds

THEIRS = (
    ("2013: figure", "figure"),
    ("2013: size (Tamaño) MB", "megabytes"),
    ("2013: sweeps, PRISM", "psor_prism"),
    ("2013: sweeps", "psor"),
    ("2013: CPU s", "cpu"),
    ("2013: GPU s", "gpu"),
    ("2013: factor", "factor"),
    ("2013: colours", "colours"),
)


def tables(subjects: set[Subject], scale: Scale, host: Host, results: Results) -> list[Table]:
    """Return the table of rows and the table of colours.

    Parameters
    ----------
    subjects
        What is wanted.
    scale
        How large.
    host
        The machine.
    results
        What was measured.
    """
    if Subject.GAUSS_SEIDEL not in subjects:
        return []
    return [
        _rows(scale, host, results),
        means(scale, host, results),
        _colours(scale, host, results),
        methods(scale, host, results),
    ]


def _rows(scale: Scale, host: Host, results: Results) -> Table:
    paper = gauss_seidel_2013()
    theirs = [Column(title, theirs=True) for title, _ in THEIRS]
    rows = [_row(row, host, results) for row in gauss_seidel.solves(scale)]
    measured = {(row.family, row.asked, row.size) for row in gauss_seidel.solves(scale)}
    rows += [_published_only(row) for row in paper.rows if _key(row) not in measured]
    return Table(
        "gauss-seidel",
        str(Subject.GAUSS_SEIDEL),
        "Gauss-Seidel in colours (thesis of 2013: Figures 5.4 to 5.16)",
        f"To a relative change of 1e-6. Ours on {host.device_name}, with the number of colours of "
        f"its own choice; PRISM of today is its hybrid engine's pseudo Gauss-Seidel (-pgs), on one "
        f"core of {host.processor}, as in the thesis. {SECONDS} "
        "Columns that begin with 2013 are the thesis's, whose seconds are of "
        f"sweeps only: {paper.source}; on {paper.hardware}. {paper.remark}. "
        "Rows that are published only are measured with --scale paper, where the model is ours.",
        [
            *(*SIZES, Column("property", text=True), *OURS_AND_PRISM, *OWN_CPU),
            *(*theirs, MEASURED, REMARKS),
        ],
        rows,
    )


def _published(cells: Mapping[str, Any]) -> list[str]:
    shown = []
    for _, name in THEIRS:
        value = cells.get(name)
        if value is None or isinstance(value, str):
            shown.append(value or "")
        elif name in ("cpu", "gpu"):
            shown.append(seconds(float(str(value))))
        else:
            shown.append(number(value if isinstance(value, int) else float(str(value))))
    return shown


def _row(row: Solve, host: Host, results: Results) -> list[str]:
    ours, prism, remarks = pair(row, results)
    found = gauss_seidel_2013().row(family=row.family, property=row.asked, size=row.size)
    why = short_reason(results.why(row.job(Kind.PEER)))
    compared = compared_cells(row, ours, prism, why)
    return [
        *size_cells(row, ours),
        row.asked,
        *compared,
        *own_cpu_cells(row, host, ours, results),
        *_published(found or {}),
        origins(ours, prism),
        "; ".join(remarks),
    ]


def _key(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row["family"], row["property"], row["size"]


def _published_only(row: Mapping[str, Any]) -> list[str]:
    """Return a row of the thesis's that is not measured at this scale, or at any."""
    family = FAMILIES.get(row["family"])
    label = f"{row['family']} {row['size']}" if family is None else family.label(row["size"])
    # Where the states are known, the thesis's need not be repeated.
    counts = None if family is None else family.counts(row["size"])
    states = number(round(row["states"] if counts is None else counts[0]))
    remark = PUBLISHED_ONLY
    if family is None:
        remark = f"{PUBLISHED_ONLY}: no model of ours"
    empty = [""] * (len(OURS_AND_PRISM) + len(OWN_CPU))
    return [label, states, "", row["property"], *empty, *_published(row), "", remark]


def _colours(scale: Scale, host: Host, results: Results) -> Table:
    heads = [Column(f"{colours} colours") for colours in gauss_seidel.COLOURS]
    rows = []
    for job in gauss_seidel.colour_jobs(scale):
        record = results.partly(job)
        name = f"{job.parameters['family']} {job.parameters['size']}"
        if record is None:
            rows.append([name, "", "", *[""] * len(heads), "", results.why(job)])
            continue
        for colouring in ("levels", "slices"):
            points = {
                point["colours"]: point
                for point in record["points"]
                if point["colouring"] == colouring
            }
            cells = [
                ("–" if points[colours]["sweeps"] is None else number(points[colours]["sweeps"]))
                if colours in points
                else ""
                for colours in gauss_seidel.COLOURS
            ]
            rows.append([name, number(record["states"]), colouring, *cells, origin(record), ""])
    return Table(
        "colours",
        str(Subject.GAUSS_SEIDEL),
        "Sweeps against colours (thesis of 2013: Figures 5.5 to 5.17, right)",
        f"Sweeps of Gauss-Seidel for the steady state, to a relative change of 1e-6, on "
        f"{host.device_name}. Levels: a state's colour comes from the step at which a sequential "
        f"sweep could have computed it; slices: from the number of its slice of "
        f"{gauss_seidel.SLICE_SIZE} states, as in the thesis. – stands for no convergence.",
        [
            *(Column("model", text=True), Column("states"), Column("colours by", text=True)),
            *(*heads, MEASURED, REMARKS),
        ],
        rows,
    )
