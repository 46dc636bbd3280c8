"""The residual of every method as its sweeps go on, for `plot_sweeps.py`.

    python examples/benchmarks/residuals.py FILE [--tandem 255] [--cluster 122] [--device gpu|cpu]

Each method sweeps the balance equations of a model from `formats.py` from the uniform distribution.
From time to time its clock is read and the residual is taken: the largest absolute value of
b + A x − x, x divided by its sum, in double precision, outside the time that counts. Preparation
counts: a method's seconds begin with it. A cycle of the multilevel method counts as one sweep.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
from formats import cluster, tandem

from engines.cuda.driver import device_summary
from engines.devices.choice import choose_engine
from engines.devices.colours import GaussSeidelScheme
from engines.errors import UnsupportedError
from engines.host.watched import relaxation, sweeps_in_colours
from engines.methods.levels import LevelScheme
from engines.methods.single import CALM, STALLED
from engines.model.environment import DeviceChoice, Method, Precision, SolverEnvironment
from engines.systems.one_sided import HasSingle, Sweeper, SweepSystem

METHODS = {
    "jacobi": Method.JACOBI,
    "jor 0.9": Method.JOR,
    "gs": Method.GAUSS_SEIDEL,
    "bgs": Method.BACKWARDS_GAUSS_SEIDEL,
    "sor 1.1": Method.SOR,
    "multilevel": Method.MULTILEVEL,
    "jor 0.9, mixed": Method.JOR,
}
OMEGA = {Method.JOR: 0.9, Method.SOR: 1.1}
SMALLEST = 1e-15
LEVEL = 0.7
"""In single precision, a residual that a look does not bring down to this share is at its floor."""

GROWTH = 1.15
"""Each look comes after so many times the sweeps of the last."""


def prepared(
    system: SweepSystem, method: Method, device: str
) -> tuple[Sweeper, SweepSystem, float]:
    """Return the sweeps of a method, its system and the seconds that took."""
    omega = relaxation(method, OMEGA.get(method, 1.0))
    settings = SolverEnvironment(method=method, omega=omega, device=DeviceChoice(device))
    system = replace(system, omega=omega)
    engine, _ = choose_engine(settings, system)
    if sweeps_in_colours(method):
        engine = GaussSeidelScheme.of(engine, settings)
    elif method is Method.MULTILEVEL:
        engine = LevelScheme(engine)
    # The first preparation and the first sweep load kernels.
    for warm in (False, True):
        began = time.perf_counter()
        sweeper = engine.sweeper(system, -1.0, False)
        took = time.perf_counter() - began
        if not warm:
            sweeper.run(1)
    return sweeper, system, took


def looks(sweeper: Sweeper, before: int, most: int) -> Iterator[tuple[int, float]]:
    """Sweep on, yielding sweeps made and the last change from time to time."""
    made = before
    while made < most:
        wanted = max(1, int(made * (GROWTH - 1.0)))
        changes = sweeper.run(min(wanted, most - made))
        made += len(changes)
        yield made, float(changes[-1])


def history(
    name: str, system: SweepSystem, device: str, most: int, most_seconds: float
) -> list[tuple[int, float, float]]:
    """Return sweeps, seconds and residual at each look."""
    sweeper, _, began = prepared(system, METHODS[name], device)
    points: list[tuple[int, float, float]] = []

    def note(sweeps: int, seconds: float) -> bool:
        total = float(np.sum(sweeper.values()))
        residual = sweeper.residual() / total if total > 0.0 else float("inf")
        points.append((sweeps, seconds, residual))
        return bool(residual > SMALLEST and seconds < most_seconds)

    before = 0
    if name.endswith(Precision.MIXED):
        assert isinstance(sweeper, HasSingle)
        single = sweeper.in_single(-1.0, True)
        for before, change in looks(single, 0, most):
            sweeper.go_on_from(single)
            going = note(before, began + single.seconds)
            level = len(points) > 1 and points[-1][2] > LEVEL * points[-2][2]
            if not going or change < STALLED or (level and change < CALM):
                break
        began += single.seconds
    for sweeps, _ in looks(sweeper, before, most):
        if not note(sweeps, began + sweeper.seconds):
            break
    return points


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--tandem", "tandems", type=int, multiple=True, help="Capacities [255].")
@click.option("--cluster", "clusters", type=int, multiple=True, help="Stations [122].")
@click.option("--method", "methods", type=click.Choice(list(METHODS)), multiple=True, help="[all]")
@click.option("--sweeps", default=20_000, show_default=True, help="The most of a method.")
@click.option("--seconds", default=5.0, show_default=True, help="The longest of a method.")
@click.option("--device", type=click.Choice(["gpu", "cpu"]), default="gpu", show_default=True)
def main(
    file: str,
    tandems: tuple[int, ...],
    clusters: tuple[int, ...],
    methods: tuple[str, ...],
    sweeps: int,
    seconds: float,
    device: str,
) -> None:
    """Write the residuals of every method to a JSON file."""
    if not (tandems or clusters):
        tandems, clusters = (255,), (122,)
    rows = []
    for name, make, size in (
        *(("tandem", tandem, size) for size in tandems),
        *(("cluster", cluster, size) for size in clusters),
    ):
        system = make(size)
        for method in methods or METHODS:
            try:
                points = history(method, system, device, sweeps, seconds)
            except (UnsupportedError, RuntimeError) as error:
                click.echo(f"{name} {size}, {method}: {error}", err=True)
                continue
            rows.append(
                {
                    "case": f"{name} {size}",
                    "states": system.num_states,
                    "method": method,
                    "sweeps": [point[0] for point in points],
                    "seconds": [point[1] for point in points],
                    "residual": [point[2] for point in points],
                }
            )
            last = points[-1]
            click.echo(
                f"{name} {size}, {method}: {last[0]:,} sweeps, {last[1]:.3f} s, {last[2]:.1e}",
                err=True,
            )
    gpu = device == "gpu"
    record = {
        "command": " ".join(sys.argv),
        "date": time.strftime("%Y-%m-%d"),
        "device": device_summary()[0].partition(": ")[2].partition(",")[0] if gpu else "CPU",
        "rows": rows,
    }
    Path(file).write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
