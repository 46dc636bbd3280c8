"""The command `python -m tests.conformance`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from tqdm import tqdm

from bridge.install import find_prism
from engines.errors import BridgeError
from engines.process.cache import cache_folder
from tests.conformance.compare import Summary, differences, needs_peer
from tests.conformance.plan import SUITES, Unit, suite_folder, units
from tests.conformance.runner import OURS, PEER, Job, Runner
from tests.conformance.table import markdown
from tests.conformance.verdicts import Call

SWITCHES = (
    "-explicit",
    "-explicit -ii -maxiters 100000",
    "-explicit -ii -topological -maxiters 100000",
)
"""Those of PRISM's own list of engines and methods that use its explicit engine."""
REFEREE = "-epsilon 1e-12 -maxiters 1000000"
"""Switches by which plain PRISM decides between its own result and a different one of ours."""


def measure(
    runner: Runner,
    chosen: list[Unit],
    switches: str,
    *,
    jobs: int,
    whole_peer: bool,
    show: bool | None,
) -> Summary:
    """Run units of one suite with prism-gpu, and with plain PRISM where it matters.

    Parameters
    ----------
    runner
        Where to run.
    chosen
        Units of one suite, not empty.
    switches
        PRISM's switches that every test gets.
    jobs
        How many tests at a time.
    whole_peer
        Whether plain PRISM runs every test; else those that prism-gpu does not pass.
    show
        Whether a progress bar is shown; None: on a terminal.
    """
    hide = None if show is None else not show
    mine = [Job(unit, OURS, switches) for unit in chosen]
    title = f"{chosen[0].suite} {switches}"
    _run(runner, mine, jobs, f"{OURS}: {title}", hide)
    needed = [
        unit for unit, job in zip(chosen, mine, strict=True) if whole_peer or _open(runner, job)
    ]
    _run(runner, [Job(unit, PEER, switches) for unit in needed], jobs, f"{PEER}: {title}", hide)
    doubted = [unit for unit in needed if _differs(runner, unit, switches)]
    third = [Job(unit, PEER, f"{switches} {REFEREE}") for unit in doubted]
    _run(runner, third, jobs, f"referee: {title}", hide)
    return summarise(runner, chosen, switches, len(chosen))


def _peers(runner: Runner, unit: Unit, switches: str) -> dict[str, Call]:
    return {test.command: test for test in runner.tests(Job(unit, PEER, switches)) or []}


def _differs(runner: Runner, unit: Unit, switches: str) -> bool:
    peers = _peers(runner, unit, switches)
    return any(
        test.command in peers and differences(test, peers[test.command])
        for test in runner.tests(Job(unit, OURS, switches)) or []
    )


def _open(runner: Runner, job: Job) -> bool:
    return any(needs_peer(test) for test in runner.tests(job) or [])


def _run(runner: Runner, jobs: list[Job], workers: int, title: str, hide: bool | None) -> None:
    left = [job for job in jobs if runner.tests(job) is None]
    with tqdm(total=len(jobs), initial=len(jobs) - len(left), desc=title, disable=hide) as bar:
        for job in runner.run(left, workers):
            bar.set_postfix_str(job.unit.name[-40:], refresh=False)
            bar.update()


def summarise(runner: Runner, chosen: list[Unit], switches: str, whole: int) -> Summary:
    """Return the counts of what is finished, of a suite that has `whole` units."""
    summary = Summary(chosen[0].suite, switches, units=whole)
    for unit in chosen:
        summary.finished += runner.tests(Job(unit, OURS, switches)) is not None
        peers = _peers(runner, unit, switches)
        referees = _peers(runner, unit, f"{switches} {REFEREE}")
        for test in runner.tests(Job(unit, OURS, switches)) or []:
            summary.add(test, peers.get(test.command), referees.get(test.command))
    return summary


@click.command(name="python -m tests.conformance")
@click.option(
    "--suite", "suites", type=click.Choice(SUITES), multiple=True, default=SUITES,
    help="PRISM's prism-tests, or the auto lists of its examples; both by default.",
)  # fmt: skip
@click.option(
    "--switches", "sets", multiple=True, default=SWITCHES,
    help="Switches of every test, in one word; may be repeated.  [default: three sets]",
)  # fmt: skip
@click.option("--only", default="", help="Regular expression to be found in a test's name.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="At a time.")
@click.option("--timeout", default=60.0, show_default=True, help="Seconds that a test may take.")
@click.option("--peer", is_flag=True, help="Run plain PRISM on every test, not only if in doubt.")
@click.option("--extra", default="", help="Switches for prism-gpu alone, such as -gpu.")
@click.option("--prism-dir", metavar="DIR", help="Use the PRISM in this folder.")
@click.option("--work", type=click.Path(path_type=Path), help="Folder for copies and results.")
@click.option("--summary", is_flag=True, help="Run nothing; tell what is finished.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the counts.")
@click.option("--markdown", "page", type=click.Path(path_type=Path), help="Write the table.")
def main(
    suites: tuple[str, ...],
    sets: tuple[str, ...],
    only: str,
    jobs: int,
    timeout: float,
    peer: bool,
    extra: str,
    prism_dir: str | None,
    work: Path | None,
    summary: bool,
    json_file: Path | None,
    page: Path | None,
) -> None:
    """Run PRISM's regression suite with prism-gpu, judged by PRISM's own prism-auto.

    What is finished is kept: the command goes on where it was interrupted, and runs again only
    what changed sources, or a longer time-out, call for.
    """
    try:
        install = find_prism(prism_dir)
        folders = {suite: suite_folder(install, suite) for suite in suites}
    except (BridgeError, FileNotFoundError) as error:
        raise click.ClickException(str(error)) from error
    runner = Runner(install, work or cache_folder() / "conformance", timeout, extra)
    found: list[Summary] = []
    stopped = False
    for suite in suites:
        whole = len(units(folders[suite], suite))
        chosen = units(folders[suite], suite, only)
        for switches in sets if chosen else ():
            try:
                if not summary and not stopped:
                    # The examples have no expected results: plain PRISM's are the measure.
                    every = peer or suite == "examples"
                    measure(runner, chosen, switches, jobs=jobs, whole_peer=every, show=None)
            except KeyboardInterrupt:
                stopped = True
            found.append(summarise(runner, chosen, switches, whole))
    found = [counts for counts in found if counts.tests]
    text = markdown(found)
    click.echo(text)
    if page:
        page.write_text(_heading(install.version, timeout) + text, encoding="utf-8")
    if json_file:
        values = {"prism": install.version, "runs": [counts.as_json() for counts in found]}
        json_file.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    if stopped:
        click.echo("Interrupted; what is finished is kept, and the same command goes on.", err=True)
    sys.exit(130 if stopped else int(any(counts.new_failures for counts in found)))


def _heading(version: str, timeout: float) -> str:
    return (
        "# PRISM's regression suite\n\n"
        f"PRISM {version}'s own tests, run by its own `prism-auto -test` with `prism-gpu` as the "
        f"program, {timeout:g} s a test at most; plain PRISM with the same switches is the peer. "
        "The examples state no results: there each is compared with plain PRISM's, to 1e-5 "
        f"relative, and where the two differ, plain PRISM decides at `{REFEREE}`. Other "
        "digits: exported files that differ from the expected by less than 1e-5 relative.\n"
        "Made by `python -m tests.conformance --markdown docs/measurements/conformance.md`.\n\n"
    )


if __name__ == "__main__":
    main()
