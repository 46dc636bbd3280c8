"""Tables 1 to 5 of GPU-PRISM, 2011, with ours and PRISM's of today beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.reproduce.families import FAMILIES
from bridge.reproduce.host import Host
from bridge.reproduce.instances import jacobi
from bridge.reproduce.jobs import Kind, Scale, Solve, Subject
from bridge.reproduce.perform import Results
from bridge.reproduce.published import gpu_prism_2011
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
from bridge.reproduce.tables.table import Cell, Column, Table, number, origin, origins, seconds

TITLES = {
    Subject.HERMAN: "Herman's ring: longest expected time of three tokens (2011: Tables 1, 2, 5)",
    Subject.CLUSTER: "Workstation cluster: premium service in the long run (2011: Tables 1, 3, 5)",
    Subject.TANDEM: "Tandem queue: customers in the long run (2011: Tables 1, 4, 5)",
}
THEIRS = (
    ("2011: iterations", "iterations"),
    ("2011: CPU s, 32 bit", "cpu_32"),
    ("2011: GPU s, 32 bit", "gpu_32"),
    ("2011: factor, 32 bit", "factor_32"),
    ("2011: CPU s, 64 bit", "cpu_64"),
    ("2011: GPU s, 64 bit", "gpu_64"),
    ("2011: factor, 64 bit", "factor_64"),
    ("2011: two GPUs s, 64 bit", "two_gpus_64"),
    ("2011: factor, two GPUs", "two_factor_64"),
    ("2011: segmented scan s", "scan_64"),
    ("2011: factor, segmented scan", "scan_factor_64"),
    ("2011: GPU memory MB", "gpu_mb"),
    ("2011: GPU memory MB, segmented scan", "scan_mb"),
)
OTHERS = (
    Column("ours, 2 GPUs: check s"),
    Column("ours, segmented scan: check s"),
    Column("ours, segmented scan: µs a sweep"),
    Column("ours, segmented scan: GPU memory MB"),
    Column("PRISM today, -hybrid: check s"),
    Column("PRISM today, -mtbdd: check s"),
)


def tables(subjects: set[Subject], scale: Scale, host: Host, results: Results) -> list[Table]:
    """Return a table a subject.

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
    found = [
        _table(subject, scale, host, results) for subject in jacobi.SUBJECTS if subject in subjects
    ]
    if Subject.TANDEM in subjects:
        found.append(_memory(scale, host, results))
    return found


def _memory(scale: Scale, host: Host, results: Results) -> Table:
    """Return how large a tandem queue fits into 1 GiB, in double and in single precision."""
    published = gpu_prism_2011().rows
    rows = []
    for precision, name in (("double", "gpu_64"), ("single", "gpu_32")):
        largest = max(row["size"] for row in published if row["family"] == "tandem" and row[name])
        jobs = jacobi.memory_jobs(scale, host)
        sizes = [size for kind, size in jobs if kind == precision]
        for size in sizes:
            job = jobs[precision, size]
            record = results.of(job)
            fits = "" if record is None else "no" if record.get("travelling_parts") else "yes"
            rows.append(
                [
                    *(precision, FAMILIES["tandem"].label(size)),
                    number((FAMILIES["tandem"].counts(size) or (0,))[0]),
                    *(
                        fits,
                        seconds(None if record is None else record.get("check_seconds")),
                        number(largest),
                    ),
                    *(origin(record), results.why(job) if record is None else ""),
                ]
            )
        if not sizes:
            what = "measured on a GPU with --scale paper"
            rows.append([precision, "", "", "", "", number(largest), "", what])
    return Table(
        "tandem-memory",
        str(Subject.TANDEM),
        f"Largest tandem queue in 1 GiB of GPU memory (2011: section 5.3), -gpumaxmem "
        f"{jacobi.MEMORY}",
        "Fits: no part of the matrix travels from the host's memory. Sweeps in single precision "
        "are made beside those in double precision, which check them: they gain time, and no size. "
        "What does not fit is solved all the same, by the split method. 2011: the largest c of "
        "Table 4 that its GPU of 1 GB has a time of.",
        [
            *(Column("precision", text=True), Column("instance", text=True), Column("states")),
            *(Column("fits", text=True), Column("ours: check s")),
            *(Column("2011: largest c", theirs=True), MEASURED, REMARKS),
        ],
        rows,
    )


def _table(subject: Subject, scale: Scale, host: Host, results: Results) -> Table:
    paper = gpu_prism_2011()
    theirs = [Column(title, theirs=True) for title, _ in THEIRS]
    rows = []
    for row in jacobi.solves(subject, scale, host):
        ours, prism, remarks = pair(row, results)
        published = _published(paper.row(family=row.family, size=row.size) or {})
        why = short_reason(results.why(row.job(Kind.PEER)))
        others, why_not = _others(row, scale, host, results)
        cells = [*size_cells(row, ours), *compared_cells(row, ours, prism, why), *others]
        rows.append([*cells, *published, origins(ours, prism), "; ".join([*remarks, *why_not])])
    measured = {row.size for row in jacobi.solves(subject, scale, host)}
    rows += [
        _published_only(subject, dict(row))
        for row in paper.rows
        if row["family"] == subject and row["size"] not in measured
    ]
    return Table(
        str(subject),
        str(subject),
        TITLES[subject],
        f"Jacobi to a relative change of 1e-6, property {_property(subject)}. Ours on "
        f"{host.device_name}; PRISM of today is its sparse engine, on one core of "
        f"{host.processor}. {SECONDS} Columns that begin with 2011 "
        f"are the paper's, whose seconds are of whole runs: {paper.source}; on {paper.hardware}. "
        "Rows that are published only are measured with --scale paper.",
        [*SIZES, *OURS_AND_PRISM, *OTHERS, *theirs, MEASURED, REMARKS],
        rows,
    )


def _others(row: Solve, scale: Scale, host: Host, results: Results) -> tuple[list[Cell], list[str]]:
    """Return the cells of `OTHERS`, and why ours are missing."""
    jobs = jacobi.other_jobs(row, scale, host)
    found = {name: results.of(job) for name, job in jobs.items()}
    remarks = []
    for name, what in (("two", "2 GPUs"), ("scan", "segmented scan")):
        if name in jobs and found[name] is None:
            remarks.append(f"{what}: {results.why(jobs[name])}")

    def cell(name: str, field: str) -> Cell:
        record = found.get(name)
        if record is None:
            theirs = name in jobs and name in ("hybrid", "mtbdd")
            return short_reason(results.why(jobs[name])) if theirs else ""
        return (seconds if field == "check_seconds" else number)(record.get(field))

    return [
        cell("two", "check_seconds"),
        cell("scan", "check_seconds"),
        cell("scan", "sweep_microseconds"),
        cell("scan", "device_megabytes"),
        cell("hybrid", "check_seconds"),
        cell("mtbdd", "check_seconds"),
    ], remarks


def _published(row: Mapping[str, Any]) -> list[Cell]:
    """Return the cells of `THEIRS`."""
    times = ("CPU s", "GPU s", "GPUs s", "scan s")
    return [
        seconds(row.get(name)) if any(word in title for word in times) else number(row.get(name))
        for title, name in THEIRS
    ]


def _published_only(subject: Subject, row: Mapping[str, Any]) -> list[Cell]:
    """Return a row of the paper's that is not measured at this scale."""
    label = FAMILIES[str(subject)].label(row["size"])
    head = [label, number(row["states"]), *[""] * (1 + len(OURS_AND_PRISM) + len(OTHERS))]
    return [*head, *_published(row), "", PUBLISHED_ONLY]


def _property(subject: Subject) -> str:
    family = str(subject)
    return FAMILIES[family].properties[jacobi.PROPERTIES[family]]
