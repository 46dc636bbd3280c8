"""Figures 3 and 5 of APMC, 2005: time against philosophers and against workers."""

from __future__ import annotations

from bridge.reproduce.host import Host
from bridge.reproduce.instances import apmc
from bridge.reproduce.jobs import Job, Scale, Subject
from bridge.reproduce.perform import Results
from bridge.reproduce.published import apmc_2005
from bridge.reproduce.tables.solves import REMARKS
from bridge.reproduce.tables.table import Column, Table, number, seconds

HEADS = (
    Column("philosophers"),
    Column("workers", text=True),
    Column("paths"),
    Column("steps a path"),
    Column("compile s"),
    Column("sample s"),
    Column("million steps a second"),
    Column("estimate"),
)


def tables(subjects: set[Subject], scale: Scale, host: Host, results: Results) -> list[Table]:
    """Return the table of all points, and of what the paper prints.

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
    if Subject.APMC not in subjects:
        return []
    paper = apmc_2005()
    rows = [_row(job, host, results) for job in apmc.jobs(subjects, scale, host)]
    rows += [
        [
            *(number(row["philosophers"]), f"{row['computers']} computers", number(row["paths"])),
            *(number(row["steps"]), "", "", "", ""),
            *(seconds(float(row["seconds"])), "published only"),
        ]
        for row in paper.rows
    ]
    return [
        Table(
            "apmc",
            str(Subject.APMC),
            "Sampled paths of the dining philosophers (2005: Figures 3 and 5)",
            f"Ours on {host.device_name}; workers are threads of the CPU. Asked is whether the "
            "first philosopher eats, and then or later the second. The first paths are compared "
            "with those of a plain interpreter, step by step, before anything is timed. Compile: "
            "until the first path is there; sample: all paths, warm. The column that begins with "
            f"2005 is the paper's: {paper.source}; on {paper.hardware}. Its Figures 3 to 5 print "
            "no numbers; Figure 4, the arity of the tree that its program is handed out by, has "
            "no counterpart here.",
            [*HEADS, Column("2005: s", theirs=True), REMARKS],
            rows,
        )
    ]


def _row(job: Job, host: Host, results: Results) -> list[str]:
    asked, record = job.parameters, results.of(job)
    cores = "the GPU" if host.device == "gpu" else f"{host.cores} threads"
    threads = asked["threads"]
    where = f"{threads} thread{'s' if threads > 1 else ''}" if threads else cores
    head = [
        *(number(asked["philosophers"]), where),
        *(number(asked["paths"]), number(asked["steps"])),
    ]
    if record is None:
        return [*head, "", "", "", "", "", results.why(job)]
    return [
        *head,
        *(seconds(record["compile_seconds"]), seconds(record["sample_seconds"])),
        *(number(record["steps_per_second"] / 1e6), f"{record['estimate']:.4f}"),
        *("", f"compared: {record['compared']} paths"),
    ]
