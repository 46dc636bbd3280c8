"""The command `prism-gpu reproduce`."""

from __future__ import annotations

import re
import resource
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from bridge import ending
from bridge.reproduce import plots, report
from bridge.reproduce.archive import ARCHIVE, pack, take_in
from bridge.reproduce.execute import Programs
from bridge.reproduce.host import ELSEWHERE, Host, examine
from bridge.reproduce.instances import plan
from bridge.reproduce.jobs import Job, Kind, Scale, Subject
from bridge.reproduce.perform import Limits, Performer, Results
from bridge.reproduce.store import Store, locked
from bridge.reproduce.tables import all_tables
from bridge.reproduce.worker import Worker
from engines.errors import BridgeError
from engines.process.leftovers import temporary_folder

ALL = "all"
DEFAULT_FOLDER = "prism-gpu-reproduce"
DEFAULT_LIMITS = {Scale.SMALL: 30.0, Scale.PAPER: 120.0, Scale.MAX: 600.0}
"""Seconds of a run, where no limit was named."""


@dataclass(frozen=True)
class Request:
    """What the command line asks for.

    Parameters
    ----------
    subjects, scale
        What is to be reproduced.
    into
        The folder of the report.
    device, front_end
        Where and with what models are built and solved; None for what there is.
    limit, budget
        Seconds that a run and that everything may take; None for no budget.
    peers_at_a_time
        How many runs of PRISM share the machine.
    fresh
        Whether results that are there are measured again.
    only
        A regular expression that is found in the names of the jobs to do; empty for all.
    peers
        Whether PRISM's own runs are among them.
    report_only
        Whether there are no jobs at all: the report is of what the folder holds.
    command
        The command line, for the record.
    """

    subjects: tuple[Subject, ...]
    scale: Scale
    into: Path
    device: str
    front_end: str | None
    limit: float
    budget: float | None
    peers_at_a_time: int
    fresh: bool
    command: str
    only: str = ""
    peers: bool = True
    report_only: bool = False


def reproduce(request: Request) -> int:
    """Measure what is not there yet, write the report, and return the exit code.

    Parameters
    ----------
    request
        What is asked for.

    Returns
    -------
    0; 1 if an answer is wrong; 128 and a signal's number after an interruption, with the report
    of what was done.

    Raises
    ------
    BridgeError
        Where nothing can be measured, or another run holds the folder.
    """
    deadline = float("inf")
    if request.budget is not None:
        # For pictures and the report; of a small budget, a fifth.
        kept = min(20.0, request.budget / 5)
        deadline = time.monotonic() + request.budget - kept
    limits = Limits(request.limit, deadline, request.peers_at_a_time)
    with locked(request.into):
        host = examine(request.device, request.front_end)
        if not request.fresh and (taken := take_in(request.into)):
            click.echo(f"{taken} results were taken from {request.into / ARCHIVE}", err=True)
        jobs = _jobs(request, host)
        store = Store(request.into, host.identity())
        if request.fresh:
            for job in jobs:
                store.forget(job)
        click.echo(_greeting(request, host, jobs), err=True)
        results = _measured(host, jobs, store, limits)
        _add_others(request, host, store, results)
        _leave(request, host, jobs, store, results)
    if results.interrupted:
        return ending.exit_code()
    return 1 if results.wrong else 0


def _jobs(request: Request, host: Host) -> list[Job]:
    if request.report_only:
        return []
    jobs = plan(request.subjects, request.scale, host)
    if not request.peers:
        jobs = [job for job in jobs if job.kind is not Kind.PEER]
    named = [job for job in jobs if re.search(request.only, job.name)]
    if jobs and not named:
        names = "; ".join(job.name for job in jobs[:: max(len(jobs) // 3, 1)])
        raise BridgeError(f'no job has a name with "{request.only}" in it; some are: {names}')
    return named


def _measured(host: Host, jobs: list[Job], store: Store, limits: Limits) -> Results:
    prism_dir = str(host.prism.root) if host.prism else ""
    worker = Worker(host.device, host.front_end, prism_dir, str(host.examples or ""))
    with temporary_folder() as folder:
        programs = Programs(host, folder)
        performer = Performer(host, store, programs, worker, limits)
        try:
            with ending.interrupting():
                return performer.all(jobs, _tell)
        finally:
            worker.close()


def _add_others(request: Request, host: Host, store: Store, results: Results) -> None:
    """Add what other runs left in the folder: the report is of all that is there."""
    for job in plan(tuple(Subject), request.scale, host):
        kept = store.get(job) if job.name not in results.records else None
        if kept is not None and job.name not in results.reasons:
            results.records[job.name] = kept


def _reported(request: Request, host: Host, results: Results) -> tuple[Subject, ...]:
    """Return the subjects that were asked for, and those that are in the folder."""
    there = {
        subject
        for subject in Subject
        for job in plan((subject,), request.scale, host)
        if job.name in results.records
    }
    return tuple(subject for subject in Subject if subject in there | set(request.subjects))


def _tell(line: str) -> None:
    from tqdm import tqdm

    tqdm.write(line, file=sys.stderr)


def _greeting(request: Request, host: Host, jobs: list[Job]) -> str:
    front_end = f"PRISM {host.prism.version}" if host.prism else "the embedded front end"
    return (
        f"prism-gpu reproduce: {', '.join(request.subjects)}, scale {request.scale}: "
        f"{len(jobs)} jobs, with {front_end}, on {host.device_name}"
    )


def _leave(request: Request, host: Host, jobs: list[Job], store: Store, results: Results) -> None:
    """Write and print what is known."""
    subjects = _reported(request, host, results)
    tables = all_tables(subjects, request.scale, host, results)
    folder = request.into
    pictures = None
    if plots.available():
        pictures = plots.draw_all(subjects, request.scale, host, results, folder / "plots")
    provenance = _provenance(request, host, results)
    notes = _notes(jobs, store, results)
    report.write_csv(tables, folder)
    report.write_json(provenance, tables, results.records, folder / "report.json")
    report.write_html(provenance, tables, pictures, notes, folder / "report.html", results.records)
    pack(folder)
    width = shutil.get_terminal_size((100, 24)).columns
    for table in tables:
        if table.subject not in request.subjects:
            continue
        click.echo(table.as_text(width))
    if pictures is None:
        click.echo(plots.HINT)
    for note in notes:
        click.echo(note)
    click.echo(f"Took {results.seconds:.0f} s. Report: {folder / 'report.html'}")


def _provenance(request: Request, host: Host, results: Results) -> dict[str, Any]:
    described = host.described()
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    memory = f"{host.memory / 2**30:.0f} GiB"
    if host.device_memory:
        memory += f", GPU {host.device_memory / 2**30:.0f} GiB"
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        "command": request.command,
        "device": host.device_name,
        "processor": f"{host.processor}, {host.cores} cores",
        "memory": memory,
        "system": described["system"],
        "front end": "PRISM" if host.prism else "embedded",
        "versions": host.versions,
        "limit of a run": f"{request.limit:g} s",
        "runs of PRISM at a time": request.peers_at_a_time,
        "this run": (
            f"{results.seconds:.0f} s by the clock, "
            f"{sum(usage.ru_utime + usage.ru_stime for usage in (spent, own)):.0f} s of CPU"
        ),
    }


def _notes(jobs: list[Job], store: Store, results: Results) -> list[str]:
    notes = []
    done = sum(1 for job in jobs if results.of(job) is not None)
    if results.interrupted:
        notes.append(
            f"Interrupted: {done} of {len(jobs)} jobs are done. The same command goes on from here."
        )
    elif waiting := [job for job in jobs if "budget" in results.reasons.get(job.name, "")]:
        notes.append(
            f"The budget ended with {len(waiting)} of {len(jobs)} jobs to do. The same command "
            "goes on from here."
        )
    for path in store.damaged:
        notes.append(f"{path.name} held no whole result; it was measured again.")
    for name in results.wrong:
        notes.append(f"WRONG: {name}: {results.records[name]['wrong']}")
    return notes


def _expression(_context: click.Context, _option: click.Parameter, text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise click.BadParameter(f"no regular expression: {error}") from error
    return text


@click.command(
    name="prism-gpu reproduce", context_settings={"help_option_names": ["--help", "-help"]}
)
@click.argument(
    "subjects",
    nargs=-1,
    type=click.Choice([*(str(subject) for subject in Subject), ALL]),
    metavar="[SUBJECT]...",
)
@click.option(
    "--scale",
    type=click.Choice([str(scale) for scale in Scale]),
    default=str(Scale.SMALL),
    show_default=True,
    help="small: minutes; paper: every row of the papers; max: what the machine holds.",
)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_FOLDER,
    show_default=True,
    help="The folder of the report.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "gpu", "cpu", ELSEWHERE]),
    default="auto",
    show_default=True,
    help=f"{ELSEWHERE}: only PRISM's runs and those of the CPU are made here.",
)
@click.option(
    "--frontend",
    type=click.Choice(["prism", "builtin"]),
    help="Who builds the models; PRISM where there is one.",
)
@click.option(
    "--resume/--fresh",
    default=True,
    show_default=True,
    help=f"Go on from the results in the folder and its {ARCHIVE}, or measure all again.",
)
@click.option(
    "--limit",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="The longest run of a program [small: 30, paper: 120, max: 600].",
)
@click.option(
    "--peers/--no-peers",
    default=True,
    show_default=True,
    help="Run PRISM as well, or leave its rows to another run.",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0.1),
    metavar="MINUTES",
    help="End after so long, with the report of what was done.",
)
@click.option(
    "--only",
    metavar="REGEX",
    default="",
    callback=_expression,
    help="Of these, jobs so named, as progress and log call them.",
)
@click.option(
    "--report",
    "report_only",
    is_flag=True,
    help="Measure nothing: only write the report of what the folder and its archive hold.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Runs of PRISM at a time; they share the memory's bandwidth, and the report says so.",
)
def command(
    subjects: tuple[str, ...],
    scale: str,
    into: Path,
    device: str,
    frontend: str | None,
    resume: bool,
    limit: float | None,
    budget: float | None,
    only: str,
    report_only: bool,
    jobs: int,
    peers: bool,
) -> None:
    """Measure the tables and figures of four papers again, beside what they print.

    SUBJECT is herman, cluster, tandem, gauss-seidel, scc, mec, apmc or all (the default).
    Every answer is compared before a time is shown. What was measured is kept in the folder: the
    same command goes on where an earlier one was stopped.
    """
    chosen = tuple(Subject) if not subjects or ALL in subjects else _unique(subjects)
    size = Scale(scale)
    request = Request(
        subjects=chosen,
        scale=size,
        into=into,
        device=device,
        front_end=frontend,
        limit=limit or DEFAULT_LIMITS[size],
        budget=budget * 60 if budget else None,
        peers_at_a_time=jobs,
        fresh=not resume,
        command=shlex.join(["prism-gpu", "reproduce", *sys.argv[2:]]),
        only=only,
        report_only=report_only,
        peers=peers,
    )
    try:
        code = reproduce(request)
    except BridgeError as error:
        raise click.ClickException(str(error)) from error
    sys.exit(code)


def _unique(subjects: Sequence[str]) -> tuple[Subject, ...]:
    """Return the subjects in the order of the papers, each once."""
    return tuple(subject for subject in Subject if subject in subjects)
