"""Figures 3 to 5 of APMC, 2005: time against philosophers and against workers."""

from __future__ import annotations

from bridge.reproduce.host import Host
from bridge.reproduce.instances import apmc
from bridge.reproduce.jobs import Job, Kind, Scale, Subject
from bridge.reproduce.perform import Results
from bridge.reproduce.published import apmc_2005
from bridge.reproduce.tables.solves import REMARKS
from bridge.reproduce.tables.table import Column, Table, number, seconds

HEADS = (
    Column("philosophers"),
    Column("workers", text=True),
    Column("synchronised", text=True),
    Column("paths"),
    Column("steps a path"),
    Column("compile s"),
    Column("sample s"),
    Column("million steps a second"),
    Column("estimate"),
)
WORKER_HEADS = (
    Column("workers"),
    Column("which are", text=True),
    Column("philosophers"),
    Column("paths"),
    Column("start s"),
    Column("compile and sample s"),
    Column("whole s"),
    Column("t1 / (x tx)"),
    Column("again, warm s"),
    Column("t1 / (x tx), warm"),
    Column("estimate"),
)
PLACES = {
    "processes": "processes",
    "hosts": "network namespaces",
    "low": "processes of the lowest priority",
}


def tables(subjects: set[Subject], scale: Scale, host: Host, results: Results) -> list[Table]:
    """Return the table of sampled paths beside what the paper prints, and that of workers.

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
    jobs = apmc.jobs(subjects, scale, host)
    rows = [_row(job, host, results) for job in jobs if job.kind is Kind.PATHS]
    rows += [
        [
            *(number(row["philosophers"]), f"{row['computers']} computers", "compile"),
            *(number(row["paths"]), number(row["steps"]), "", "", "", ""),
            *(seconds(float(row["seconds"])), "published only"),
        ]
        for row in paper.rows
    ]
    paths = Table(
        "apmc",
        str(Subject.APMC),
        "Sampled paths of the dining philosophers (2005: Figure 5 and section 4)",
        f"Ours on {host.device_name}; threads are of {host.processor}. Asked is whether the first "
        "philosopher eats, and then or later the second, of the first states of each path, as "
        "`-gpusimstates` asks it. The first paths are compared with those of a plain interpreter, "
        "step by step, before anything is timed. Synchronised: a value of `-gpusimsync`, where one "
        "was named; the philosophers have no common actions, so that compile and runtime differ by "
        "chance alone. Compile: until the first path is there; sample: all paths, warm. The column "
        f"that begins with 2005 is the paper's: {paper.source}; on {paper.hardware}. Its Figures 3 "
        "to 5 print no numbers.",
        [*HEADS, Column("2005: s", theirs=True), REMARKS],
        rows,
    )
    return [paths, _workers(jobs, host, results)]


def _row(job: Job, host: Host, results: Results) -> list[str]:
    asked, record = job.parameters, results.of(job)
    cores = "the GPU" if host.device == "gpu" else f"{host.cores} threads"
    threads = asked["threads"]
    where = f"{threads} thread{'s' if threads > 1 else ''}" if threads else cores
    head = [
        *(number(asked["philosophers"]), where, asked["synchronisation"]),
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


def _workers(jobs: list[Job], host: Host, results: Results) -> Table:
    found = [job for job in jobs if job.kind is Kind.WORKERS]
    return Table(
        "apmc_workers",
        str(Subject.APMC),
        "Workers that share the paths of the dining philosophers (2005: Figures 3 and 4)",
        f"Workers of one thread each on {host.processor}, {host.cores} cores: processes of "
        "`-simcluster local:N`, or network namespaces behind a bridge, each with a dask worker, by "
        "TLS. Start: until all workers are there; then each compiles the model, and all "
        "sample; whole: the paper's time. t1 / (x tx) is the share of one worker's speed that each "
        "of x keeps, Figure 3(b). The judgement of all is that of one process, digit for digit. "
        "Figure 4 is the time against the arity of the tree by which 256 computers start each "
        "other; here batches are handed out as a star: each worker speaks to the scheduler alone "
        "and waits for no other, so that there is no arity to choose, and the column start has "
        "what deployment takes.",
        [*WORKER_HEADS, REMARKS],
        [_worker_row(job, found, results) for job in found],
    )


def _worker_row(job: Job, jobs: list[Job], results: Results) -> list[str]:
    asked, record = job.parameters, results.of(job)
    head = [
        *(number(asked["workers"]), PLACES[asked["where"]]),
        *(number(asked["philosophers"]), number(asked["paths"])),
    ]
    if record is None:
        return [*head, "", "", "", "", "", "", "", results.why(job)]
    whole, warm = (kept_share(job, jobs, results, f"{what}_seconds") for what in ("total", "warm"))
    return [
        *head,
        *(seconds(record["deploy_seconds"]), seconds(record["first_seconds"])),
        *(seconds(record["total_seconds"]), whole),
        *(seconds(record["warm_seconds"]), warm),
        *(f"{record['estimate']:.4f}", ""),
    ]


def kept_share(job: Job, jobs: list[Job], results: Results, what: str) -> str:
    """Return the paper's relative slowdown t₁ / (x tₓ), or nothing where one worker has no time.

    Parameters
    ----------
    job
        That of x workers.
    jobs, results
        All of its kind, and what was measured.
    what
        Which time.
    """
    place, workers = job.parameters["where"], job.parameters["workers"]
    for other in jobs:
        if other.parameters["where"] == place and other.parameters["workers"] == 1:
            alone, here = results.of(other), results.of(job)
            if alone is not None and here is not None:
                return f"{alone[what] / (workers * here[what]):.2f}"
    return ""
