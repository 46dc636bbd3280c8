"""Sweeps of the CPU engine in each of its layouts.

    python examples/benchmarks/cpu_sweeps.py [CASE ...] [--sweeps 200] [--prism]

Jacobi for the steady states of tandem and cluster. Every layout must give the iterate of CSR to the
last bit before its time is shown: the shortest of several batches, in microseconds a sweep. With
`--prism`, PRISM's sparse engine makes the same sweeps; what it prints is its mean, in CPU time;
ours are by the wall clock.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import click
import numpy as np

import bridge
from engines.host.engine import CpuEngine, CpuSweeper
from engines.host.scaling import scaled
from engines.model.choice import Format
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import Scaling, SweepSystem

MODELS = Path(__file__).resolve().parent.parent / "models"
CASES = [
    *(("tandem", "c", size) for size in (255, 511, 1023)),
    *(("cluster", "N", size) for size in (122, 230)),
]
BATCH = 10
PRISM_MEAN = re.compile(r"Jacobi: \d+ iterations in .*average ([\d.]+)")


def jacobi_system(name: str, constant: str, size: int) -> SweepSystem:
    """Build a model and return the sweeps of its steady state."""
    with bridge.open(MODELS / f"{name}.sm", constants={constant: size}) as session:
        rates = session.rate_matrix
    states = rates.shape[0]
    matrix = CsrMatrix(rates.indptr, rates.indices, rates.data, states)
    system = SweepSystem(matrix, np.full(states, 1.0 / states), scaling=Scaling.BALANCE)
    return scaled(system)


def swept(system: SweepSystem, matrix_format: Format, sweeps: int) -> tuple[CpuSweeper, float]:
    """Return a sweeper after so many sweeps, and the seconds of one of its fastest batch."""
    sweeper = CpuEngine(matrix_format).sweeper(system, -1.0, False)
    fastest = float("inf")
    for _ in range(max(1, sweeps // BATCH)):
        started = time.perf_counter()
        sweeper.run(BATCH)
        fastest = min(fastest, (time.perf_counter() - started) / BATCH)
    return sweeper, fastest


def prism_mean(name: str, constant: str, size: int, sweeps: int) -> float:
    """Return the mean CPU time of a sweep of PRISM's sparse engine, in seconds."""
    folder = os.environ.get("PRISM_DIR")
    prism = str(Path(folder) / "bin" / "prism") if folder else "prism"
    constants = f"{constant}={size}" + (",T=1" if name == "cluster" else "")
    files = [str(MODELS / f"{name}.{kind}") for kind in ("sm", "csl")]
    words = ["-prop", "1", "-const", constants, "-sparse", "-jacobi", "-maxiters", str(sweeps)]
    done = subprocess.run([prism, *files, *words], capture_output=True, text=True, check=False)
    found = PRISM_MEAN.search(done.stdout)
    if found is None:
        raise SystemExit(f"PRISM printed no time of a sweep:\n{done.stdout}{done.stderr}")
    return float(found[1])


@click.command()
@click.argument("names", nargs=-1, metavar="[CASE]...")
@click.option("--sweeps", default=200, show_default=True, help="Sweeps of each layout.")
@click.option("--prism", is_flag=True, help="Run PRISM's sparse engine as well.")
def main(names: tuple[str, ...], sweeps: int, prism: bool) -> None:
    """Print microseconds a sweep of the cases, such as "tandem 511"; all by default."""
    cases = [case for case in CASES if not names or f"{case[0]} {case[2]}" in names]
    click.echo(
        "| case | csr | values | patterns | layout | PRISM sparse, CPU time |\n"
        "|---|---|---|---|---|---|"
    )
    for name, constant, size in cases:
        system = jacobi_system(name, constant, size)
        cells = []
        for matrix_format in (Format.CSR, Format.VALUES, Format.PATTERNS):
            sweeper, seconds = swept(system, matrix_format, sweeps)
            if matrix_format is Format.CSR:
                expected = sweeper.values().copy()
            elif not np.array_equal(sweeper.values(), expected):
                raise SystemExit(f"{name} {size}: {matrix_format} differs from csr")
            left_csr = matrix_format is Format.CSR or not sweeper.cost.remark
            cells.append(f"{seconds * 1e6:.0f}" if left_csr else "—")
        mean = f"{prism_mean(name, constant, size, sweeps) * 1e6:.0f}" if prism else ""
        click.echo(f"| {name} {size} | {' | '.join(cells)} | {sweeper.cost.format} | {mean} |")


if __name__ == "__main__":
    main()
