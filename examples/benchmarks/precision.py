"""Double, single and mixed precision: microseconds a sweep, seconds to epsilon, and the error left.

    python examples/benchmarks/precision.py [--tandem 255] [--cluster 122] [--herman 13]
        [--method jor|jacobi|auto] [--epsilon 1e-6] [--device gpu|cpu] [--json FILE]

The systems are those of `formats.py`, made without PRISM. "µs a sweep" is the median of several
batches of sweeps that are made for it, warm, and "× double" what a sweep in double precision takes
over that. Then a named method runs to PRISM's test, a relative change of epsilon, twice, and the
second run is shown: JOR with omega 0.9, which converges where Jacobi swings. "True error" is the
largest relative error of a value above 1e-30, against a solve of our own choice at 1e-12; the error
of a sum such as a steady-state reward is far smaller. "Stated" is what the result says of itself.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
import numpy as np
from formats import cluster, herman, tandem

from bridge.reproduce.tasks.sweeps import sweep_times
from engines.cuda.driver import device_summary
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, Method, Precision, SolverEnvironment
from engines.model.events import Kind
from engines.model.result import SolveResult
from engines.solve.system import solve_system
from engines.systems.one_sided import Scaling, SweepSystem

RARE = 1e-30
EXACT = 1e-12
LIMIT = 100_000
DAMPED = 0.9
IN_SINGLE = (Kind.SINGLE, Kind.SINGLE_BUT, Kind.SINGLE_UNKNOWN, Kind.SINGLE_THEN_DOUBLE)
METHODS = {"jor": Method.JOR, "jacobi": Method.JACOBI, "auto": Method.AUTO}


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    case: str
    states: int
    entries: int
    format: str
    epsilon: float
    precision: str
    microseconds: float
    sweeps: int
    in_single: int
    seconds: float
    sweeping_seconds: float
    method: str
    status: str
    error: float
    stated_error: float
    residual: float
    note: str


def environment(device: str, matrix_format: str, epsilon: float, **how) -> SolverEnvironment:
    """Return the settings of a solve."""
    return SolverEnvironment(
        device=DeviceChoice(device),
        matrix_format=Format(matrix_format),
        epsilon=epsilon,
        max_iterations=LIMIT,
        **how,
    )


def normalised(system: SweepSystem, values: np.ndarray) -> np.ndarray:
    """Return values that may be compared with others."""
    return values / values.sum() if system.scaling is Scaling.BALANCE else values


def exact_values(system: SweepSystem, device: str, matrix_format: str) -> np.ndarray:
    """Return the solution to about twelve digits."""
    if system.scaling is Scaling.BALANCE:
        system = replace(system, omega=DAMPED)
    found = solve_system(system, environment(device, matrix_format, EXACT), "exact")
    return normalised(system, found.values)


def relative_error(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the largest relative error of a value that is not rare."""
    present = exact > RARE
    return float(np.max(np.abs(found[present] / exact[present] - 1.0)))


def sweeps_in_single(result: SolveResult) -> int:
    """Return how many of the sweeps were made in single precision."""
    made = [dict(event.details)["sweeps"] for event in result.events if event.kind in IN_SINGLE]
    return int(made[0]) if made else 0


def rows_of(
    case: str,
    system: SweepSystem,
    method: Method,
    place: tuple[str, str],
    epsilons: Sequence[float],
) -> Iterator[Row]:
    """Solve a case in each precision, on a device and in a format."""
    device, matrix_format = place
    exact = exact_values(system, device, matrix_format)
    times, used = sweep_times(system, environment(device, matrix_format, EXACT))
    damped = method is not Method.JACOBI and system.scaling is Scaling.BALANCE
    system = replace(system, omega=DAMPED if damped or method is Method.JOR else 1.0)
    for epsilon in epsilons:
        for precision in Precision:
            how = {"method": method, "precision": precision}
            settings = environment(device, matrix_format, epsilon, **how)
            # The second run finds kernels loaded and caches warm.
            for _ in range(2):
                result = solve_system(system, settings, str(method))
            yield Row(
                *(case, system.num_states, system.matrix.num_entries, used, epsilon),
                *(str(precision), times.get(str(precision), float("nan"))),
                *(result.iterations, sweeps_in_single(result)),
                *(result.seconds, result.sweeping_seconds, str(method), str(result.status)),
                relative_error(normalised(system, result.values), exact),
                *(result.error_estimate, result.residual, result.note),
            )


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| case | states | held as | epsilon | precision | µs a sweep | × double | sweeps "
        "| of them single | sweeping, s | solve, s | true error | stated | ends |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    double = {row.case: row.microseconds for row in rows if row.precision == "double"}
    for row in rows:
        alone = not np.isnan(row.microseconds)
        each = row.microseconds if alone else 1e6 * row.sweeping_seconds / max(row.sweeps, 1)
        lines.append(
            f"| {row.case} | {row.states:,} | {row.format} | {row.epsilon:.0e} | {row.precision} "
            f"| {each:.2f} | {double[row.case] / each:.2f} | {row.sweeps:,} | {row.in_single:,} "
            f"| {row.sweeping_seconds:.4f} | {row.seconds:.4f} | {row.error:.1e} "
            f"| {row.stated_error:.1e} | {row.status} |"
        )
    return "\n".join(lines)


@click.command()
@click.option("--tandem", "tandems", type=int, multiple=True, help="Capacities [255 1023].")
@click.option("--cluster", "clusters", type=int, multiple=True, help="Stations [122 320].")
@click.option("--herman", "rings", type=int, multiple=True, help="Processes [13].")
@click.option("--method", type=click.Choice(list(METHODS)), default="jor", show_default=True)
@click.option("--epsilon", "epsilons", type=float, multiple=True, help="[1e-6 1e-10].")
@click.option("--device", type=click.Choice(["gpu", "cpu"]), default="gpu", show_default=True)
@click.option("--format", "matrix_format", default="auto", show_default=True, help="A format.")
@click.option("--json", "json_file", type=click.Path(), help="Write the rows here as well.")
def main(
    tandems: tuple[int, ...],
    clusters: tuple[int, ...],
    rings: tuple[int, ...],
    method: str,
    epsilons: tuple[float, ...],
    device: str,
    matrix_format: str,
    json_file: str | None,
) -> None:
    """Print one table of cases and precisions; sizes that are named replace all by default."""
    if not (tandems or clusters or rings):
        tandems, clusters, rings = (255, 1023), (122, 320), (13,)
    makers = [
        *((f"tandem {size}", tandem, size) for size in tandems),
        *((f"cluster {size}", cluster, size) for size in clusters),
        *((f"herman {size}", herman, size) for size in rings),
    ]
    rows: list[Row] = []
    for case, make, size in makers:
        place = (device, matrix_format)
        rows.extend(rows_of(case, make(size), METHODS[method], place, epsilons or (1e-6, 1e-10)))
        click.echo(f"{case} done", err=True)
    click.echo(table(rows))
    for row in rows:
        if row.precision != "double":
            click.echo(f"{row.case}, {row.epsilon:.0e}, {row.precision}: {row.note}")
    if json_file:
        gpu = device == "gpu"
        record = {
            "command": " ".join(sys.argv),
            "date": time.strftime("%Y-%m-%d"),
            "device": device_summary()[0].partition(": ")[2].partition(",")[0] if gpu else "CPU",
            "machine": platform.machine(),
            "rows": [asdict(row) for row in rows],
        }
        Path(json_file).write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
