"""From model file to printed result: prism-gpu beside `prism -sparse`, same host, same run.

    PRISM_DIR=… python examples/benchmarks/whole_runs.py [CASE ...] [--device gpu|cpu]
        [--limit SECONDS] [--json FILE]

Seconds are those of the wall clock, start-up included; each of our runs is made twice, and the
second counts, when compiled kernels lie in their caches. A case without PRISM's figures ran into
the limit. Where both end, the iteration counts must be equal and the results the same to 1e-6.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click

from bridge.install import PrismInstall, find_prism

JOR = ("-jor", "-omega", "0.9", "-maxiters", "1000000")
JACOBI = ("-jacobi", "-maxiters", "1000000")


@dataclass(frozen=True)
class Case:
    """A property of one of PRISM's example models, and a method."""

    model: str
    constants: str
    text: str
    method: tuple[str, ...]


CLUSTER, TANDEM = "ctmcs/cluster/cluster.sm", "ctmcs/tandem/tandem.sm"
PREMIUM, QUEUED = 'S=? [ "premium" ]', "R=? [ S ]"
CASES = {
    "herman 15": Case("dtmcs/herman/herman15.pm", "", 'R=? [ F "stable" ]', JACOBI),
    "polling 16": Case("ctmcs/polling/poll16.sm", "", "S=? [ s1=1 & !(s=1 & a=1) ]", JOR),
    "kanban 5": Case("ctmcs/kanban/kanban.sm", "t=5", 'R{"throughput"}=? [ S ]', JOR),
    "cluster 230": Case(CLUSTER, "N=230", PREMIUM, JACOBI),
    "cluster 320": Case(CLUSTER, "N=320", PREMIUM, JACOBI),
    "cluster 464": Case(CLUSTER, "N=464", PREMIUM, JOR),
    "cluster 572": Case(CLUSTER, "N=572", PREMIUM, JOR),
    "tandem 511": Case(TANDEM, "c=511", QUEUED, JACOBI),
    "tandem 1023": Case(TANDEM, "c=1023", QUEUED, JACOBI),
    "tandem 2047": Case(TANDEM, "c=2047", QUEUED, JACOBI),
    "tandem 4095": Case(TANDEM, "c=4095", QUEUED, JACOBI),
}
USUAL = tuple(name for name in CASES if name not in ("cluster 572", "tandem 4095"))


@dataclass
class Run:
    """What one program did."""

    seconds: float | None = None
    building: float = 0.0
    reading: float = 0.0
    solving: float = 0.0
    iterations: int = 0
    result: str = ""
    states: int = 0

    @property
    def rest(self) -> float:
        """Start-up, precomputation and the rest, in seconds."""
        return (self.seconds or 0.0) - self.building - self.reading - self.solving


@dataclass
class Row:
    """A case, done by both."""

    case: str
    ours: Run = field(default_factory=Run)
    prism: Run = field(default_factory=Run)


def number(pattern: str, output: str) -> float:
    """Return the number that a pattern finds, 0 where it finds none."""
    found = re.search(pattern, output, re.MULTILINE)
    return float(found[1].replace(",", "")) if found else 0.0


def run(words: list[str], limit: float) -> Run:
    """Run a program; its log tells how the time was spent."""
    began = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Run()
    seconds = time.perf_counter() - began
    if process.returncode != 0:
        sys.exit(f"{' '.join(words)} failed:\n{output}")
    found = re.search(r"^Result: (\S+)", output, re.MULTILINE)
    return Run(
        seconds,
        number(r"^Time for model construction: ([\d.]+)", output),
        number(r"^prism-gpu: read .* in ([\d.]+) seconds", output),
        number(r"^(?:JOR|Jacobi): \d+ iterations in ([\d.]+)", output),
        int(number(r"^(?:JOR|Jacobi): (\d+) iterations", output)),
        found[1] if found else "",
        int(number(r"^States: +(\d+)", output)),
    )


def agree(row: Row) -> bool:
    """Return whether both counted the same sweeps and found the same."""
    if row.prism.seconds is None:
        return True
    ends = [re.findall(r"[\d.]+(?:E-?\d+)?", run.result)[-1] for run in (row.ours, row.prism)]
    ours, theirs = map(float, ends)
    return row.ours.iterations == row.prism.iterations and abs(ours - theirs) <= 1e-6 * theirs


def line(row: Row) -> str:
    """Return a row of the table."""
    ours, prism = row.ours, row.prism
    peer = "–" if prism.seconds is None else f"{prism.seconds:.1f} s"
    ratio = "–" if prism.seconds is None else f"{prism.seconds / (ours.seconds or 1.0):.1f} ×"
    parts = (ours.building, ours.reading, ours.solving, ours.rest)
    split = " | ".join(f"{part:.2f}" for part in parts)
    return (
        f"| {row.case} | {ours.states:,} | {ours.iterations:,} | {peer} | {ours.seconds:.2f} s | "
        f"{ratio} | {split} |"
    )


def words_of(install: PrismInstall, case: Case) -> list[str]:
    """Return what both programs are told."""
    model = install.root.parent / "prism-examples" / case.model
    sized = ["-const", case.constants] if case.constants else []
    return [str(model), *sized, "-pf", case.text, "-sparse", *case.method]


@click.command()
@click.argument("cases", nargs=-1, type=click.Choice(list(CASES)))
@click.option("--device", type=click.Choice(["gpu", "cpu"]), default="gpu")
@click.option("--limit", default=600.0, help="Seconds that PRISM may take for a case.")
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(cases: tuple[str, ...], device: str, limit: float, file: Path | None) -> None:
    """Print one table of cases; CASES names some of them."""
    install = find_prism()
    prism = str(install.root / "bin" / "prism")
    switch = "-gpu" if device == "gpu" else "-nogpu"
    print(
        "| case | states | sweeps | prism -sparse | prism-gpu | ratio | building | reading | "
        "solving | rest |\n|---|---|---|---|---|---|---|---|---|---|",
        flush=True,
    )
    rows = []
    for name in cases or USUAL:
        words = words_of(install, CASES[name])
        ours = [sys.executable, "-m", "bridge", *words, switch, "-gpuinfo"]
        run(ours, 3600.0)
        row = Row(name, run(ours, 3600.0))
        if limit > 0.0:
            row.prism = run([prism, *words, "-javamaxmem", "8g"], limit)
        rows.append(row)
        print(line(row) + ("" if agree(row) else " DIFFERENT"), flush=True)
    if file is not None:
        record = {"cores": os.cpu_count(), "device": device, "rows": [asdict(r) for r in rows]}
        file.write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
