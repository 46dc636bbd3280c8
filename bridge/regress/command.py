"""The command `prism-gpu regress`."""

from __future__ import annotations

import json
import platform
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import Any, NoReturn

import click

from bridge import ending
from bridge.files.atomic import write_text
from bridge.own_switches import UsageError
from bridge.refusals import error_line, require_gpu
from bridge.regress.answers import Answer
from bridge.regress.compare import Tolerance
from bridge.regress.junit import write_junit
from bridge.regress.plan import Case, cases_of
from bridge.regress.processes import Processes
from bridge.regress.run import EXACT_STATES, CaseResult, Regression, Settings
from bridge.regress.runner import Limits, Runner
from bridge.regress.solvers import (
    DEFAULT_ENGINES,
    DEFAULT_OURS,
    DEFAULT_OURS_ON_GPU,
    OUR_ENGINES,
    PRISM_ENGINES,
    named,
)
from bridge.regress.table import RULE, case_lines, summary_lines
from bridge.regress.verdicts import Outcome
from engines.errors import BridgeError, InvalidModelError, UnsupportedError
from engines.process.leftovers import temporary_folder
from prism_hooks.sweep_bar import terminal_size

_HELP = """Compare our engines with PRISM's, in every state.

Each property is checked by PRISM's own engines, PRISM untouched, and by ours. WHAT is a model with
its properties, or a folder whose lists (`auto`, `*.auto`) are run, or a list itself; PRISM's
switches (one dash) hold for every run.

Values may differ by --tolerance, on top of what both engines claim as their error. Where they
differ by more, exact fractions decide, or else our bounds from both sides together with PRISM at
-epsilon 1e-12. The exit code is 0 when all agree, or PRISM alone is wrong; 1 when ours are wrong or
nothing could decide; 2 for a wrong command line."""


class ExitCode(IntEnum):
    """How the command ends, but for signals."""

    AGREES = 0
    DISAGREES = 1
    BAD_INPUT = 2


def main(words: list[str]) -> NoReturn:
    """Run the command to the end of the process.

    Parameters
    ----------
    words
        The words after it.
    """
    try:
        _command.main(args=words, prog_name="prism-gpu regress", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(ExitCode.BAD_INPUT)
    except (UsageError, InvalidModelError, UnsupportedError, BridgeError, OSError) as error:
        print(error_line(error), flush=True)
        sys.exit(ExitCode.BAD_INPUT)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(ending.exit_code())
    sys.exit(0)


def _tolerance(_: click.Context, __: click.Parameter, text: str) -> Tolerance:
    relative, _sep, absolute = text.partition(",")
    try:
        tolerance = Tolerance(float(relative), float(absolute or Tolerance().absolute))
    except ValueError:
        raise click.BadParameter(f'"{text}" is not REL or REL,ABS: two numbers') from None
    if not (0.0 <= tolerance.relative < 1.0 and 0.0 <= tolerance.absolute < float("inf")):
        raise click.BadParameter(f'"{text}": a share from 0 to 1, and a number from 0 on')
    return tolerance


@click.command(
    help=_HELP,
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help", "-help"]},
)
@click.argument("what", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--engines",
    metavar="NAMES",
    default=",".join(DEFAULT_ENGINES),
    show_default=True,
    help=f"PRISM's engines: {', '.join(PRISM_ENGINES)}.",
)
@click.option(
    "--ours",
    metavar="NAMES",
    help=f"Ours: {', '.join(OUR_ENGINES)}.  [default: {','.join(DEFAULT_OURS)}, and "
    f"{','.join(DEFAULT_OURS_ON_GPU)} where there is a GPU]",
)
@click.option(
    "--tolerance",
    metavar="REL[,ABS]",
    default=f"{Tolerance().relative:g},{Tolerance().absolute:g}",
    show_default=True,
    callback=_tolerance,
    help="What values may differ by: a share of the larger one, plus an absolute amount.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="For one property on one engine, and for the building of a model.",
)
@click.option(
    "--exact-states",
    metavar="N",
    type=click.IntRange(min=0),
    default=EXACT_STATES,
    show_default=True,
    help="The exact engine checks models of up to so many states.",
)
@click.option("--no-arbiter", is_flag=True, help="Do not decide who is right where values differ.")
@click.option("--only", metavar="REGEX", default="", help="Of a folder or list: runs so named.")
@click.option(
    "--first", is_flag=True, help="Of the runs of one model and properties, only the first."
)
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Runs at a time.",
)
@click.option(
    "--reuse", is_flag=True, help="Let a process serve run after run: quicker, less apart."
)
@click.option(
    "--junit",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write JUnit XML: a test case for each property and engine.",
)
@click.option(
    "--json",
    "json_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write all verdicts, with the worst state of each engine.",
)
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep values, states and logs there.",
)
@click.option("--prism-dir", metavar="DIR", help="Use the PRISM in this folder.")
def _command(
    what: tuple[str, ...],
    engines: str,
    ours: str | None,
    tolerance: Tolerance,
    timeout: float,
    exact_states: int,
    no_arbiter: bool,
    only: str,
    first: bool,
    jobs: int,
    reuse: bool,
    junit: Path | None,
    json_file: Path | None,
    keep: Path | None,
    prism_dir: str | None,
) -> None:
    from bridge import jvm

    our_names = ours if ours is not None else ",".join(_default_ours())
    solvers = (
        *named(engines, PRISM_ENGINES, "--engines"),
        *named(our_names, OUR_ENGINES, "--ours"),
    )
    cases = cases_of(list(what), only, first=first)
    # Compiled once here, not by several workers at a time; and what is missing is told at once.
    runtime = jvm.find_runtime(prism_dir)
    if any(name.startswith("gpu") for name in our_names.split(",")):
        require_gpu(0, opened=False)
    settings = Settings(solvers, tolerance, exact_states, arbitrate=not no_arbiter)
    begun = datetime.now(UTC)
    with ExitStack() as stack:
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            folder = keep.absolute()
        else:
            folder = stack.enter_context(temporary_folder(prefix="prism-gpu-regress-"))
        processes = Processes(reuse=reuse)
        stack.callback(processes.stop)
        runner = Runner(
            folder, Limits(timeout), prism_dir, keep=keep is not None, processes=processes
        )
        whole, results = _run(runner, settings, cases, jobs)
    for line in summary_lines(results):
        print(line)
    if not whole:
        print(f"interrupted: {len(results)} of {len(cases)} cases were begun")
    if junit is not None:
        write_junit(results, junit)
    if json_file is not None:
        told = _as_json(results, settings, what, begun, runtime.prism.version)
        write_text(json_file, json.dumps(told, indent=1) + "\n")
    if not whole:
        sys.exit(ending.exit_code())
    if len(cases) == 1 and results and results[0].unreadable:
        sys.exit(ExitCode.BAD_INPUT)
    sys.exit(_judged(results))


def _judged(results: list[CaseResult]) -> ExitCode:
    outcomes = {verdict.outcome for result in results for verdict in result.verdicts}
    if outcomes <= {Outcome.NOT_COMPARED}:
        print("nothing was compared: that is no agreement")
        return ExitCode.DISAGREES
    return ExitCode.DISAGREES if any(outcome.fails for outcome in outcomes) else ExitCode.AGREES


def _default_ours() -> tuple[str, ...]:
    from engines.cuda.driver import early_refusal

    return (*DEFAULT_OURS, *(() if early_refusal(0) else DEFAULT_OURS_ON_GPU))


def _run(
    runner: Runner, settings: Settings, cases: list[Case], jobs: int
) -> tuple[bool, list[CaseResult]]:
    results: list[CaseResult] = []
    bar: Any = None
    if sys.stderr.isatty():
        from tqdm import tqdm

        look = {"leave": False, **terminal_size()}
        bar = tqdm(total=len(cases), unit=" cases", file=sys.stderr, **look)

    def told(_: str, engine: str, answer: Answer) -> None:
        if bar is not None:
            bar.set_postfix_str(f"{engine}: {answer.cell.text[:40]}")

    def done(result: CaseResult) -> None:
        results.append(result)
        text = "\n".join(case_lines(result))
        if bar is None:
            print(text, flush=True)
        else:
            bar.write(text, file=sys.stdout)
            bar.update()

    try:
        # Whatever ends it, what was done is reported.
        with ending.interrupting():
            whole = Regression(runner, settings, told).run(cases, jobs, done)
    finally:
        if bar is not None:
            bar.close()
    return whole, results


def _as_json(
    results: list[CaseResult],
    settings: Settings,
    what: tuple[str, ...],
    begun: datetime,
    prism_version: str,
) -> dict[str, Any]:
    return {
        "command": ["prism-gpu", "regress", *what],
        "date": begun.isoformat(timespec="seconds"),
        "prism": prism_version,
        "host": platform.platform(),
        "engines": [solver.name for solver in settings.solvers],
        "tolerance": {
            "relative": settings.tolerance.relative,
            "absolute": settings.tolerance.absolute,
        },
        "rule": RULE,
        "cases": [
            {
                "name": result.case.name,
                "left_out": result.case.left_out,
                "interrupted": result.interrupted,
                "seconds": result.seconds,
                "verdicts": [verdict.as_json() for verdict in result.verdicts],
            }
            for result in results
        ],
    }
