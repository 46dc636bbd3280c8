"""Up to 10⁹ states on one GPU, whose matrix of 3.5 · 10⁹ entries is never made.

    PRISM_DIR=… python examples/benchmarks/billion_states.py [CASE ...] [--sweeps N] [--json FILE]

The tandem queueing network with queues of c customers, as `examples/models/tandem_digits.sm` writes
it, from model file to the last of N sweeps of JOR, by the command with PRISM: over the blocks of
PRISM's diagram, and as `auto` does, whose patterns are found in the matrix or, of the largest case,
on the diagram. Both must come to the same residual. `x` is one vector of a double for each state.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from hybrid import SAME_RESIDUAL, WITHOUT_MATRIX, Sweeps, read_line

from bridge.install import find_prism

MODEL = Path(__file__).parent.parent / "models" / "tandem_digits.sm"

CASES = {"tandem 1023": (64, 16), "tandem 4095": (128, 32), "tandem 22360": (379, 59)}
"""The base of the digits, and the number of first digits."""

LAYOUTS = ("hybrid", "auto")


@dataclass(frozen=True)
class Run:
    """A run of the command.

    Parameters
    ----------
    states, transitions
        Of the model.
    found
        What the log tells of the sweeps.
    with_matrix
        Whether the matrix was made.
    building
        Seconds that PRISM built the model for.
    checking
        Seconds of model checking: walks, patterns, vectors, sweeps.
    whole
        Seconds from the start of the command to its end.
    """

    states: int
    transitions: int
    found: Sweeps
    with_matrix: bool
    building: float
    checking: float
    whole: float


def run(case: str, layout: str, sweeps: int, device: str) -> Run:
    """Run a case in a layout."""
    base, first = CASES[case]
    words = [str(MODEL), "-const", f"b={base},h={first}", "-pf", 'S=? [ "full" ]', "-hybrid"]
    words += ["-jor", "-omega", "0.9", "-absolute", "-epsilon", "1e-300", "-maxiters", str(sweeps)]
    words += ["-gpuformat", layout, "-gpuinfo", "-gpu" if device == "gpu" else "-nogpu"]
    command = [sys.executable, "-m", "bridge", *words]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    whole = time.perf_counter() - started
    found = read_line(done.stdout)
    if found is None:
        raise click.ClickException(
            f"{' '.join(command)} has not swept as asked:\n{done.stdout}{done.stderr}"
        )

    def number(pattern: str) -> float:
        told = re.search(pattern, done.stdout)
        return float(told[1]) if told else math.nan

    return Run(
        int(number(r"States: +(\d+)")),
        int(number(r"Transitions: +(\d+)")),
        found,
        WITHOUT_MATRIX not in done.stdout,
        number(r"Time for model construction: ([\d.]+)"),
        number(r"Time for model checking: ([\d.]+)"),
        whole,
    )


def line_of(case: str, row: Run) -> str:
    """Return a run as a line of the table."""
    found, vector = row.found, 8e-6 * row.states
    cells = [
        case,
        f"{row.states:,}",
        f"{row.transitions:,}",
        f"{found.layout}, {'of the matrix' if row.with_matrix else 'on the diagram'}",
        str(found.sweeps),
        f"{found.microseconds:.1f}",
        f"{found.moved:.0f}",
        f"{found.moved / vector:.2f}",
        f"{found.device:.0f}",
        f"{found.device / vector:.2f}",
        f"{row.building:.1f}",
        f"{row.whole - row.building:.1f}",
        f"{found.residual:.3g}",
    ]
    return f"| {' | '.join(cells)} |"


@click.command()
@click.argument("cases", nargs=-1, type=click.Choice([*CASES]))
@click.option("--device", type=click.Choice(["gpu", "cpu"]), default="gpu")
@click.option("--sweeps", default=500, help="Sweeps of each run.")
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(cases: tuple[str, ...], device: str, sweeps: int, file: Path | None) -> None:
    """Print one table of cases; CASES names some of them."""
    find_prism()
    heads = ["case", "states", "transitions", "layout", "sweeps", "us a sweep", "MB a sweep"]
    heads += ["of x", "MB on device", "of x", "s building", "s beside", "residual"]
    click.echo(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    record = []
    for case in cases or CASES:
        residuals = []
        for layout in LAYOUTS:
            row = run(case, layout, sweeps, device)
            click.echo(line_of(case, row))
            residuals.append(row.found.residual)
            record.append({"case": case, **asdict(row)})
        if not math.isclose(*residuals, rel_tol=SAME_RESIDUAL):
            raise click.ClickException(f"{case}: different residuals: {residuals}")
    if file is not None:
        file.write_text(json.dumps({"device": device, "runs": record}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
