"""Jacobi on our engines beside PRISM's sparse engine, same host, same run.

    python examples/benchmarks/against_prism.py [CASE ...] [--device gpu|cpu] [--json FILE]

Each case is first checked: the iteration counts must differ by one at most and the results by
1e-6 relative at most; only then are the seconds shown. "Check" is what both programs print as
`Time for model checking`, by the wall clock: all of a property's work on a model that is built.
"Solve" is the share of it from the matrix in memory to the solution, set-up included; PRISM prints
the CPU time of its process for it, ours is by the wall clock, and the two are not compared. Each of
our runs is made twice, and the second counts, when compiled kernels lie in their caches. PRISM's
sparse engine runs on one core.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click

MODELS = Path(__file__).resolve().parent.parent / "models"
sys.path.insert(0, str(MODELS))

JACOBI = re.compile(
    r"Jacobi: (\d+) iterations in ([\d.]+) seconds \(average ([\d.]+), setup ([\d.]+)\)"
)
CHECK = re.compile(r"^Time for model checking: ([\d.E-]+) seconds", re.M)
SPEED = re.compile(
    r"prism-gpu: (.+), kernel (.+?), format .*?, ([\d.]+) us a sweep, (\d+) GB/s(.*)"
)
EXACT_SECONDS = re.compile(r"prism-gpu: .*solved in ([\d.]+) s")
SHARE = re.compile(r"(\d+) % of copy bandwidth")


@dataclass(frozen=True)
class Case:
    """A property of a model, and how the model is made."""

    name: str
    model: str
    properties: str
    constants: str
    prop: str = "1"


CASES = [
    Case("tandem 255", "tandem.sm", "tandem.csl", "c=255"),
    Case("tandem 511", "tandem.sm", "tandem.csl", "c=511"),
    Case("cluster 122", "cluster.sm", "cluster.csl", "N=122,T=1"),
    Case("cluster 230", "cluster.sm", "cluster.csl", "N=230,T=1"),
    Case("herman 15", "herman 15", 'filter(max, R=? [ F "stable" ], num_tokens=3)', ""),
]


@dataclass(frozen=True)
class Measured:
    """What one program printed of a case."""

    value: float
    iterations: int
    solve_seconds: float
    check_seconds: float
    states: int
    transitions: int
    output: str


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    case: str
    states: int
    transitions: int
    prism_iterations: int
    iterations: int
    prism_check_seconds: float
    check_seconds: float
    ratio: float
    prism_solve_cpu_seconds: float
    solve_seconds: float
    microseconds_a_sweep: float
    copy_share_percent: float | None
    engine: str
    value: float
    prism_value: float


def files_of(case: Case, folder: Path) -> list[str]:
    """Return the words that name the case's model and properties."""
    if case.model.startswith("herman"):
        from herman import herman_model

        path = folder / f"{case.model.replace(' ', '')}.pm"
        path.write_text(herman_model(int(case.model.split()[1])), encoding="utf-8")
        return [str(path), "-pctl", case.properties]
    words = [str(MODELS / case.model), str(MODELS / case.properties), "-prop", case.prop]
    return [*words, "-const", case.constants]


def measure(command: list[str]) -> Measured:
    """Run a command and read PRISM's form of report."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found, check = JACOBI.search(done.stdout), CHECK.search(done.stdout)
    result = re.search(r"^Result[^:]*: ([^\s(]+)", done.stdout, re.M)
    if done.returncode or found is None or check is None or result is None:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    states = re.search(r"^States:\s+(\d+)", done.stdout, re.M)
    transitions = re.search(r"^Transitions:\s+(\d+)", done.stdout, re.M)
    return Measured(
        float(result[1]),
        int(found[1]),
        float(found[2]),
        float(check[1]),
        int(states[1]) if states else 0,
        int(transitions[1]) if transitions else 0,
        done.stdout,
    )


def compare(case: Case, device: str, folder: Path, limits: list[str]) -> Row:
    """Run a case on both programs, check the answers, and return its line."""
    words = [*files_of(case, folder), "-jacobi", "-maxiters", "100000", *limits]
    prism_dir = os.environ.get("PRISM_DIR")
    prism = str(Path(prism_dir) / "bin" / "prism") if prism_dir else "prism"
    switch = {"gpu": "-gpu", "cpu": "-nogpu"}[device]
    command = [sys.executable, "-m", "bridge", *words, switch, "-gpuinfo"]
    measure(command)
    ours = measure(command)
    theirs = measure([prism, *words, "-sparse"])
    if abs(ours.iterations - theirs.iterations) > 1:
        raise SystemExit(f"{case.name}: {ours.iterations} sweeps, PRISM {theirs.iterations}")
    if abs(ours.value - theirs.value) > 1e-6 * abs(theirs.value):
        raise SystemExit(f"{case.name}: {ours.value}, PRISM {theirs.value}")
    speed = SPEED.search(ours.output)
    share = SHARE.search(speed[5]) if speed else None
    exact = EXACT_SECONDS.search(ours.output)
    return Row(
        case=case.name,
        states=ours.states,
        transitions=ours.transitions,
        prism_iterations=theirs.iterations,
        iterations=ours.iterations,
        prism_check_seconds=theirs.check_seconds,
        check_seconds=ours.check_seconds,
        ratio=theirs.check_seconds / ours.check_seconds,
        prism_solve_cpu_seconds=theirs.solve_seconds,
        solve_seconds=float(exact[1]) if exact else ours.solve_seconds,
        microseconds_a_sweep=float(speed[3]) if speed else float("nan"),
        copy_share_percent=float(share[1]) if share else None,
        engine=f"{speed[1]}, {speed[2]}" if speed else "",
        value=ours.value,
        prism_value=theirs.value,
    )


def device_name(device: str) -> str:
    """Return the name of the device that our engines ran on."""
    if device == "cpu":
        return f"CPU, {os.cpu_count()} cores"
    from engines.cuda.driver import device_summary

    return device_summary()[0].partition(": ")[2].partition(",")[0]


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| case | states | transitions | sweeps (PRISM) | PRISM sparse: check s "
        "| ours: check s | ratio | PRISM sparse: solve, CPU time s | ours: solve s "
        "| µs a sweep | of copy bandwidth | engine |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        share = "" if row.copy_share_percent is None else f"{row.copy_share_percent:.0f} %"
        lines.append(
            f"| {row.case} | {row.states:,} | {row.transitions:,} "
            f"| {row.iterations:,} ({row.prism_iterations:,}) "
            f"| {row.prism_check_seconds:.2f} | {row.check_seconds:.3f} | {row.ratio:.0f} × "
            f"| {row.prism_solve_cpu_seconds:.2f} | {row.solve_seconds:.3f} "
            f"| {row.microseconds_a_sweep:.1f} | {share} | {row.engine} |"
        )
    return "\n".join(lines)


@click.command()
@click.argument("names", nargs=-1, metavar="[CASE]...")
@click.option("--device", type=click.Choice(["gpu", "cpu"]), default="gpu", show_default=True)
@click.option("--javamaxmem", default=None, help="Java's heap for both programs, such as 24g.")
@click.option("--json", "json_file", type=click.Path(), help="Write the rows here as well.")
def main(names: tuple[str, ...], device: str, javamaxmem: str | None, json_file: str | None):
    """Print one table of the cases (all by default), ours beside PRISM's sparse engine."""
    chosen = [case for case in CASES if not names or case.name in names]
    unknown = set(names) - {case.name for case in CASES}
    if unknown:
        raise click.UsageError(f"no such case: {', '.join(sorted(unknown))}")
    limits = ["-javamaxmem", javamaxmem] if javamaxmem else []
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in chosen:
            rows.append(compare(case, device, Path(folder), limits))
            click.echo(f"{case.name} done", err=True)
    click.echo(table(rows))
    if json_file:
        record = {
            "command": " ".join(sys.argv),
            "date": time.strftime("%Y-%m-%d"),
            "machine": platform.machine(),
            "device": device_name(device),
            "python": platform.python_version(),
            "rows": [asdict(row) for row in rows],
        }
        Path(json_file).write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
