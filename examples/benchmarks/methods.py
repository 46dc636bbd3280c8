"""Sweeps and seconds to epsilon: every method on the published steady states, beside PRISM's.

    python examples/benchmarks/methods.py [CASE ...] [--device gpu|cpu] [--json FILE] [--no-peers]

Each model is built once, by PRISM; each method then solves its balance equations from the uniform
distribution to PRISM's test, a relative change of 1e-6. "Error" is the largest relative error of a
probability above 1e-30, measured against a solve of our own choice at 1e-11. "Thesis" are the
sweeps of the CUDA PSOR of the thesis of 2013; PRISM's counts are those of its sparse and hybrid
engines, and its seconds those of all its checking. All seconds are by the wall clock. What runs
where no method is named goes on until the *error* is below 1e-6.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
import numpy as np

import bridge
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.model.explicit import ExplicitModel
from engines.model.result import SolveResult, Status
from engines.questions.steady_state import solve_steady_state

METHODS = {
    "jacobi": Method.JACOBI,
    "jor": Method.JOR,
    "gs": Method.GAUSS_SEIDEL,
    "bgs": Method.BACKWARDS_GAUSS_SEIDEL,
    "sor": Method.SOR,
    "gpumethod multilevel": Method.MULTILEVEL,
    "": Method.AUTO,
}
PEERS = ("-sparse -jacobi", "-hybrid -pgs", "-hybrid -bpgs")
COUNT = re.compile(r"(?:Jacobi|Gauss-Seidel): (\d+) iterations")
LIMIT = 20_000
EXACT = 1e-11
RARE = 1e-30
"""States below this probability are not judged: Jacobi's test does not look at their error."""


@dataclass(frozen=True)
class Case:
    """A chain, the property that PRISM's counts are taken from, and what the thesis counted."""

    name: str
    model: str
    constants: str
    text: str
    thesis: int | None = None


CASES = [
    Case("tandem 63", "ctmcs/tandem/tandem.sm", "c=63", 'R{"customers"}=? [ S ]'),
    Case("tandem 255", "ctmcs/tandem/tandem.sm", "c=255", 'R{"customers"}=? [ S ]', 3290),
    Case("tandem 1023", "ctmcs/tandem/tandem.sm", "c=1023", 'R{"customers"}=? [ S ]'),
    Case("cluster 64", "ctmcs/cluster/cluster.sm", "N=64", 'S=? [ "premium" ]'),
    Case("cluster 122", "ctmcs/cluster/cluster.sm", "N=122", 'S=? [ "premium" ]'),
    Case("cluster 320", "ctmcs/cluster/cluster.sm", "N=320", 'S=? [ "premium" ]'),
    Case("kanban 3", "ctmcs/kanban/kanban.sm", "t=3", 'R{"throughput"}=? [ S ]'),
    Case("kanban 4", "ctmcs/kanban/kanban.sm", "t=4", 'R{"throughput"}=? [ S ]', 285),
    Case("fms 5", "ctmcs/fms/fms.sm", "n=5", 'R{"productivity"}=? [ S ]', 660),
    Case("polling 12", "ctmcs/polling/poll12.sm", "", "S=? [ s1=1 & !(s=1 & a=1) ]"),
    Case("polling 15", "ctmcs/polling/poll15.sm", "", "S=? [ s1=1 & !(s=1 & a=1) ]", 388),
]
"""The models of PRISM's own examples. The thesis: Tables 5.3 to 5.9."""


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    case: str
    states: int
    method: str
    sweeps: int | None
    seconds: float
    setup_seconds: float
    error: float
    engine: str
    note: str


def environment(device: str, method: Method, epsilon: float) -> SolverEnvironment:
    """Return the settings of a solve."""
    return SolverEnvironment(
        method=method,
        epsilon=epsilon,
        device=DeviceChoice(device),
        max_iterations=LIMIT,
        max_iterations_named=method is not Method.AUTO,
        omega={Method.JOR: 0.9, Method.SOR: 1.1}.get(method, 1.0),
    )


def error_of(found: SolveResult, exact: SolveResult) -> float:
    """Return the largest relative error of a state's probability."""
    present = exact.values > RARE
    return float(np.max(np.abs(found.values[present] / exact.values[present] - 1.0)))


def rows_of(case: Case, model: ExplicitModel, device: str) -> Iterator[Row]:
    """Solve a case by each method."""
    everywhere = np.ones(model.num_states, np.bool_)
    exact = solve_steady_state(model, everywhere, environment(device, Method.AUTO, EXACT))
    for switch, method in METHODS.items():
        settings = environment(device, method, 1e-6)
        # Caches are warm afterwards.
        solve_steady_state(model, everywhere, replace(settings, max_iterations=2))
        found = solve_steady_state(model, everywhere, settings)
        yield Row(
            case.name,
            model.num_states,
            f"-{switch}" if switch else "none named",
            found.iterations if found.status is Status.CONVERGED else None,
            found.seconds,
            found.setup_seconds,
            error_of(found, exact),
            f"{found.cost.engine}, {found.cost.format}",
            found.note,
        )


def prism_counts(case: Case, examples: Path) -> Iterator[Row]:
    """Let PRISM solve a case by the methods of its own."""
    prism = str(Path(os.environ["PRISM_DIR"]) / "bin" / "prism")
    constants = ["-const", case.constants] if case.constants else []
    words = [prism, str(examples / case.model), *constants, "-pctl", case.text]
    for peer in PEERS:
        limit = ["-maxiters", str(LIMIT)]
        done = subprocess.run(
            [*words, *peer.split(), *limit], capture_output=True, text=True, check=False
        )
        counts = [int(count) for count in COUNT.findall(done.stdout)]
        seconds = re.search(r"^Time for model checking: ([\d.]+)", done.stdout, re.M)
        yield Row(
            *(case.name, 0, f"PRISM {peer}", max(counts) if counts and seconds else None),
            *(float(seconds[1]) if seconds else float("nan"), 0.0, float("nan"), "CPU", ""),
        )


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table, cases in turn."""
    lines = [
        "| case | states | method | sweeps | thesis | seconds | of it set-up | error | engine |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    thesis = {case.name: case.thesis for case in CASES}
    for row in rows:
        sweeps = "does not converge" if row.sweeps is None else f"{row.sweeps:,}"
        states = f"{row.states:,}" if row.states else ""
        published = thesis[row.case] or ""
        error = "" if np.isnan(row.error) else f"{row.error:.1e}"
        seconds = "" if np.isnan(row.seconds) else f"{row.seconds:.3f}"
        setup = f"{row.setup_seconds:.3f}" if row.states else ""
        lines.append(
            f"| {row.case} | {states} | {row.method} | {sweeps} | {published} | {seconds} "
            f"| {setup} | {error} | {row.engine} |"
        )
    return "\n".join(lines)


@click.command()
@click.argument("names", nargs=-1, metavar="[CASE]...")
@click.option("--device", type=click.Choice(["gpu", "cpu"]), default="gpu", show_default=True)
@click.option("--peers/--no-peers", default=True, help="Count PRISM's iterations as well.")
@click.option("--javamaxmem", default=None, help="Java's heap, such as 24g.")
@click.option("--json", "json_file", type=click.Path(), help="Write the rows here as well.")
def main(
    names: tuple[str, ...], device: str, peers: bool, javamaxmem: str | None, json_file: str | None
) -> None:
    """Print one table of the cases whose name begins with a given one, all by default."""
    prism_dir = os.environ.get("PRISM_DIR")
    if not prism_dir:
        raise click.UsageError("set PRISM_DIR: the models are those of PRISM's examples")
    examples = Path(prism_dir).parent / "prism-examples"
    chosen = [case for case in CASES if not names or case.name.startswith(names)]
    if not chosen:
        raise click.UsageError(f"no such case: {', '.join(names)}")
    rows: list[Row] = []
    for case in chosen:
        constants = dict(part.split("=") for part in case.constants.split(",") if part)
        path = examples / case.model
        # Only the first session of a process can set the memory.
        heap = None if rows else javamaxmem
        with bridge.open(path, constants=constants, java_max_memory=heap) as session:
            rows += rows_of(case, session.model, device)
        if peers:
            rows += prism_counts(case, examples)
        click.echo(f"{case.name} done", err=True)
    click.echo(table(rows))
    if json_file:
        record = {
            "command": " ".join(sys.argv),
            "date": time.strftime("%Y-%m-%d"),
            "machine": platform.machine(),
            "rows": [asdict(row) for row in rows],
        }
        Path(json_file).write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
