"""Every reference value at default settings: prism-gpu beside PRISM, same host, same run.

    python examples/benchmarks/default_settings.py VALUES.json [PATTERN] [--front-end prism|builtin]
        [--device gpu|cpu] [--models DIR] [--repeat N] [--json FILE]

Each model instance is run once by each program, with all its properties and no switch about
methods, epsilon or limits. An entry counts as wrong where it is off by more than 1e-5 relative, or
1e-10 absolute where the reference is below 1e-6. The seconds are those that both programs print as
"Time for model checking". We count as slower where that takes over 10 % and 0.1 s longer than
PRISM, and PRISM has a result. With `--repeat N` an instance with such an entry is run by both up to
N times more, and the least seconds of either count. With `--front-end builtin` PRISM is not run,
and ours parses and builds without it.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from bridge.install import find_prism

RELATIVE, ABSOLUTE, SMALL = 1e-5, 1e-10, 1e-6
SLOWER_SHARE, SLOWER_SECONDS = 1.1, 0.1
SWITCHES = {"gpu": "-gpu", "cpu": "-nogpu"}

RESULT = re.compile(r"^Result[^:]*: (\S+)(?: \((.*)\))?", re.M)
FAILURE = re.compile(r"^Error: (.*)", re.M)
SECONDS = re.compile(r"^Time for model checking: ([\d.Ee+-]+) sec", re.M)
RESIDUAL = re.compile(r"^prism-gpu: .*, residual (\S+), (\S+)$", re.M)
DECIDED = "exact floating point"


@dataclass(frozen=True)
class Answer:
    """What one program said of one property.

    Parameters
    ----------
    text
        The result, or the error message.
    error
        Its distance from the reference: relative, or absolute below 1e-6; infinite for none.
    seconds
        Of model checking; NaN where none were printed.
    remark
        The accuracy that the report gives.
    residual
        The largest residual of its solves; None where nothing was solved.
    """

    text: str
    error: float
    seconds: float
    remark: str = ""
    residual: float | None = None


@dataclass(frozen=True)
class Row:
    """One entry: the reference, our answer and PRISM's."""

    model: str
    constants: str
    property: str
    value: float | bool
    ours: Answer
    prism: Answer | None = None

    @property
    def slower(self) -> bool:
        """Whether PRISM has a result, and sooner."""
        if self.prism is None or math.isinf(self.prism.error):
            return False
        more = self.ours.seconds - self.prism.seconds
        return more > max((SLOWER_SHARE - 1.0) * self.prism.seconds, SLOWER_SECONDS)


@dataclass(frozen=True)
class Instance:
    """A model, its constants, and its entries in values.json."""

    model: str
    constants: str
    entries: list[dict[str, Any]]

    @property
    def name(self) -> str:
        """The file's name and the constants."""
        return f"{Path(self.model).name} {self.constants}".strip()


def instances(values: Path, pattern: str) -> list[Instance]:
    """Return the model instances whose name matches, in the order of the file.

    Parameters
    ----------
    values
        The file of reference values.
    pattern
        Searched for in the model's path and its constants.
    """
    groups: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for entry in json.loads(values.read_text(encoding="utf-8")):
        if re.search(pattern, f"{entry['model']} {entry['constants']}"):
            groups[entry["model"], entry["constants"]].append(entry)
    return [Instance(*key, entries) for key, entries in groups.items()]


def model_file(model: str, folders: list[Path]) -> Path:
    """Return where a model lies.

    Parameters
    ----------
    model
        Its path in the reference file.
    folders
        Where to look for it.
    """
    for folder in folders:
        if (folder / model).is_file():
            return folder / model
    raise SystemExit(f"{model} is in none of {', '.join(map(str, folders))}; see --models")


def error_of(text: str, value: float | bool | str) -> float:
    """Return how far a result is from its reference, relative or, for a small one, absolute.

    Parameters
    ----------
    text
        The result.
    value
        The reference.
    """
    if isinstance(value, bool) or text in ("true", "false"):
        return 0.0 if text == str(value).lower() else math.inf
    try:
        number, value = float(text), float(value)
    except ValueError:
        return math.inf
    if number == value:
        return 0.0
    if not math.isfinite(number) or not math.isfinite(value):
        return math.inf
    return abs(number - value) / (abs(value) if abs(value) >= SMALL else 1.0)


def wrong(error: float, value: float | bool | str) -> bool:
    """Return whether an error is too large.

    Parameters
    ----------
    error
        As `error_of` returns it.
    value
        The reference.
    """
    small = not isinstance(value, bool) and abs(float(value)) < SMALL
    return error > (ABSOLUTE if small else RELATIVE)


def answers(output: str, entries: list[dict[str, Any]]) -> Iterator[Answer]:
    """Yield what a log says of each property.

    Parameters
    ----------
    output
        The log.
    entries
        Those of values.json, in order; one more answer than the log has is a missing one.
    """
    blocks = re.split(r"^Model checking: ", output, flags=re.M)[1:]
    for number, entry in enumerate(entries):
        block = blocks[number] if number < len(blocks) else ""
        result, seconds = RESULT.search(block), SECONDS.search(block)
        taken = float(seconds[1]) if seconds else math.nan
        if result is None:
            failure = FAILURE.search(block)
            yield Answer(failure[1] if failure else "no result", math.inf, taken)
            continue
        residuals = [float(residual) for residual, _ in RESIDUAL.findall(block)]
        yield Answer(
            text=result[1],
            error=error_of(result[1], entry["value"]),
            seconds=taken,
            remark=result[2] or "",
            residual=max(residuals) if residuals else None,
        )


def run(command: list[str], timeout: float) -> str:
    """Return what a command printed until its end, or until the time was up."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=timeout, stdin=-3
        )
    except subprocess.TimeoutExpired as late:
        return late.stdout.decode() if isinstance(late.stdout, bytes) else (late.stdout or "")
    return done.stdout


def compare(
    instance: Instance, model: Path, ours: list[str], theirs: list[str], timeout: float
) -> list[Row]:
    """Run an instance on both programs.

    Parameters
    ----------
    instance
        The entries.
    model
        The model's file.
    ours, theirs
        The commands, without the files; an empty one is not run.
    timeout
        In seconds, of each program.
    """
    entries = instance.entries
    with tempfile.TemporaryDirectory() as folder:
        properties = Path(folder) / "reference.props"
        text = "\n".join(f"{entry['property']};" for entry in entries)
        properties.write_text(text, encoding="utf-8")
        words = [str(model), str(properties)]
        if instance.constants:
            words += ["-const", instance.constants]
        found = list(answers(run([*ours, *words], timeout), entries))
        peers: list[Answer | None] = [None] * len(entries)
        if theirs:
            peers = list(answers(run([*theirs, *words], timeout), entries))
    return [
        Row(instance.model, instance.constants, entry["property"], entry["value"], mine, peer)
        for entry, mine, peer in zip(entries, found, peers, strict=True)
    ]


def quickest(chosen: Answer, other: Answer) -> Answer:
    """Return one of two answers to a question, with the least seconds of both."""
    return replace(chosen, seconds=float(np.fmin(chosen.seconds, other.seconds)))


def merged(first: Row, second: Row) -> Row:
    """Return an entry of two runs: the least seconds of each, our worse answer, PRISM's better."""
    ours = sorted((first.ours, second.ours), key=lambda answer: -answer.error)
    found = [row.prism for row in (first, second) if row.prism is not None]
    prism = sorted(found, key=lambda answer: answer.error)
    return replace(first, ours=quickest(*ours), prism=quickest(*prism) if prism else None)


def measured(
    instance: Instance,
    model: Path,
    ours: list[str],
    theirs: list[str],
    timeout: float,
    repeat: int = 0,
) -> list[Row]:
    """Run an instance on both programs, and again while an entry of ours is slower.

    Parameters
    ----------
    instance, model, ours, theirs, timeout
        As `compare` takes them.
    repeat
        How many times more at most.
    """
    rows = compare(instance, model, ours, theirs, timeout)
    for _ in range(repeat):
        if not any(row.slower for row in rows):
            break
        again = compare(instance, model, ours, theirs, timeout)
        rows = [merged(row, new) for row, new in zip(rows, again, strict=True)]
    return rows


def figures(pairs: list[tuple[Answer, float | bool | str]], slower: str) -> str:
    """Return the cells of one program's line.

    Parameters
    ----------
    pairs
        Its answers, each with the reference.
    slower
        In how many entries it is slower, or nothing.
    """
    missing = sum(math.isinf(answer.error) for answer, _ in pairs)
    has = [(answer, value) for answer, value in pairs if not math.isinf(answer.error)]
    off = sum(wrong(answer.error, value) for answer, value in has)
    large = [a.error for a, v in has if isinstance(v, bool) or abs(float(v)) >= SMALL]
    silent = sum(not answer.remark and answer.residual is None for answer, _ in has)
    seconds = sum(answer.seconds for answer, _ in pairs if not math.isnan(answer.seconds))
    return (
        f"{len(pairs)} | {max(large, default=0.0):.1e} | {off} | {missing} | {silent} | "
        f"{slower} | {seconds:.1f}"
    )


def table(rows: list[Row]) -> str:
    """Return both programs' figures as a Markdown table.

    Parameters
    ----------
    rows
        All entries.
    """
    lines = [
        "| program | entries | worst relative error | off by more than 1e-5 | no result "
        "| no residual, interval or estimate | slower than PRISM | model checking, s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    peers = [(row.prism, row.value) for row in rows if row.prism is not None]
    slower = str(sum(row.slower for row in rows)) if peers else ""
    lines.append(f"| prism-gpu | {figures([(r.ours, r.value) for r in rows], slower)} |")
    if peers:
        lines.append(f"| PRISM | {figures(peers, '')} |")
    return "\n".join(lines)


def complaints(rows: list[Row]) -> Iterator[str]:
    """Yield a line for each entry of ours that is wrong, missing or slower.

    Parameters
    ----------
    rows
        Some entries.
    """
    for row in rows:
        where = f"{Path(row.model).name} {row.constants} {row.property}: "
        if math.isinf(row.ours.error):
            yield f"{where}{row.ours.text} instead of {row.value}"
        elif wrong(row.ours.error, row.value):
            yield f"{where}{row.ours.text} instead of {row.value}, off by {row.ours.error:.1e}"
        elif row.slower and row.prism is not None:
            yield f"{where}{row.ours.seconds:.2f} s, PRISM {row.prism.seconds:.2f} s"


def record_of(rows: list[Row], device: str, front_end: str) -> dict[str, Any]:
    """Return what the JSON file holds: how it was measured, and the rows."""
    return {
        "command": " ".join(sys.argv),
        "date": time.strftime("%Y-%m-%d"),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "device": device,
        "front_end": front_end,
        "rows": [asdict(row) for row in rows],
    }


def command_of(front_end: str, device: str) -> list[str]:
    """Return our command, without the files."""
    ours = [sys.executable, "-m", "bridge", "-gpuinfo"]
    if device != "default":
        ours.append(SWITCHES[device])
    return [*ours, "-frontend", "builtin"] if front_end == "builtin" else ours


@click.command()
@click.argument("values", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("pattern", default=".")
@click.option(
    "--front-end", type=click.Choice(["prism", "builtin"]), default="prism", show_default=True
)
@click.option("--device", type=click.Choice(["default", "gpu", "cpu"]), default="default")
@click.option("--exclude", help="Leave out the instances that match this pattern.")
@click.option(
    "--models",
    "folders",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    help="A folder with prism-examples or prism-benchmarks; by default those above PRISM's own.",
)
@click.option("--timeout", default=3600.0, show_default=True, help="Seconds, of each program.")
@click.option(
    "--repeat", default=0, show_default=True, type=click.IntRange(0),
    help="Runs more, at most, of an instance with an entry slower than PRISM.",
)  # fmt: skip
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the rows here.")
def main(
    values: Path,
    pattern: str,
    front_end: str,
    device: str,
    exclude: str | None,
    folders: tuple[Path, ...],
    timeout: float,
    repeat: int,
    json_file: Path | None,
) -> None:
    """Print one table of the entries in VALUES, ours beside PRISM's."""
    theirs = []
    if front_end == "prism":
        root = find_prism().root
        folders = (*folders, *root.resolve().parents)
        theirs = [str(root / "bin" / "prism")]
    chosen = instances(values, pattern)
    if exclude:
        chosen = [instance for instance in chosen if not re.search(exclude, instance.name)]
    rows: list[Row] = []
    for instance in chosen:
        model = model_file(instance.model, list(folders))
        new = measured(instance, model, command_of(front_end, device), theirs, timeout, repeat)
        rows += new
        ours = sum(row.ours.seconds for row in new)
        peer = sum(row.prism.seconds for row in new if row.prism is not None)
        click.echo(
            f"{instance.name}: {len(new)} entries, {ours:.2f} s, PRISM {peer:.2f} s", err=True
        )
        for line in complaints(new):
            click.echo(f"  {line}", err=True)
        if json_file:
            record = record_of(rows, device, front_end)
            json_file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    click.echo(table(rows))


if __name__ == "__main__":
    main()
