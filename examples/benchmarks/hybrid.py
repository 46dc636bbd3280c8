"""The hybrid representation beside other layouts, on the six families of Parker's thesis (2002).

    PRISM_DIR=… python examples/benchmarks/hybrid.py [CASE ...] [--device gpu|cpu] [--sweeps N]
        [--json FILE]
    PRISM_DIR=… python examples/benchmarks/hybrid.py --colours [CASE ...] [--device gpu|cpu]

Every run is one of the command with PRISM, whose symbolic engine builds the model. All layouts make
the same number of sweeps by the same method, and must come to the same residual; a layout that the
engine cannot sweep the model in, or does not, has no figures.

With `--colours`, smaller cases are swept until they converge: by JOR, and by SOR in colours, which
CSR takes by dependency levels, and both CSR and the diagram's blocks by slices of consecutive
states. Results must agree, and so must the sweeps of the same slices.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from bridge.install import PrismInstall, find_prism

JOR = ("-jor", "-omega", "0.9")
SAME_RESIDUAL = 0.02
"""Residuals are printed with three digits, and rounded in another order by each layout."""


@dataclass(frozen=True)
class Case:
    """A property of one of PRISM's example models, and a method."""

    model: str
    constants: str
    text: str
    method: tuple[str, ...]


CASES = {
    "herman 15": Case("dtmcs/herman/herman15.pm", "", 'R=? [ F "stable" ]', ("-jacobi",)),
    "cluster 320": Case("ctmcs/cluster/cluster.sm", "N=320", 'S=? [ "premium" ]', JOR),
    "fms 7": Case("ctmcs/fms/fms.sm", "n=7", 'R{"productivity"}=? [ S ]', JOR),
    "kanban 5": Case("ctmcs/kanban/kanban.sm", "t=5", 'R{"throughput"}=? [ S ]', JOR),
    "polling 18": Case("ctmcs/polling/poll18.sm", "", "S=? [ s1=1 & !(s=1 & a=1) ]", JOR),
    "tandem 2047": Case("ctmcs/tandem/tandem.sm", "c=2047", "R=? [ S ]", JOR),
}
SMALLER = {
    "herman 13": Case("dtmcs/herman/herman13.pm", "", 'filter(max, R=? [ F "stable" ])', ()),
    "cluster 128": Case("ctmcs/cluster/cluster.sm", "N=128", 'S=? [ "premium" ]', ()),
    "fms 5": Case("ctmcs/fms/fms.sm", "n=5", 'R{"productivity"}=? [ S ]', ()),
    "kanban 4": Case("ctmcs/kanban/kanban.sm", "t=4", 'R{"throughput"}=? [ S ]', ()),
    "polling 14": Case("ctmcs/polling/poll14.sm", "", "S=? [ s1=1 & !(s=1 & a=1) ]", ()),
    "tandem 255": Case("ctmcs/tandem/tandem.sm", "c=255", "R=? [ S ]", ()),
}
SLICES = ("-gpuslice", "256", "-gpucolours", "4")
COLOURS = {
    "JOR, CSR": ("csr", ("-gpumethod", "jor", "-omega", "0.95")),
    "JOR, blocks": ("hybrid", ("-gpumethod", "jor", "-omega", "0.95")),
    "SOR by levels, CSR": ("csr", ("-gpumethod", "sor", "-omega", "0.95")),
    "SOR in slices, CSR": ("csr", ("-gpumethod", "sor", "-omega", "0.95", *SLICES)),
    "the same, blocks": ("hybrid", ("-gpumethod", "sor", "-omega", "0.95", *SLICES)),
    "SOR in chosen slices, blocks": ("hybrid", ("-gpumethod", "sor", "-omega", "0.95")),
}
"""What converges: the layout and the switches. The fourth and the fifth sweep the same slices."""
SAME_SLICES = ("SOR in slices, CSR", "the same, blocks")
SAME_RESULT = 1e-3
"""Of sweeps that stop when they change little, each method somewhere else."""

WITHOUT_MATRIX = "solved on PRISM's diagram, without a matrix"
"""In the log of a solve in the hybrid layout, whose rows may be patterns on the diagram."""

LAYOUTS = {
    "gpu": ("csr", "patterns", "auto", "hybrid"),
    "cpu": ("csr", "patterns", "auto", "hybrid"),
}


@dataclass(frozen=True)
class Sweeps:
    """What the log tells of a solve.

    Parameters
    ----------
    layout
        The layout that was swept.
    sweeps
        How many sweeps were made.
    microseconds
        Of one sweep.
    moved
        Megabytes that a sweep moves.
    device
        The most megabytes of device memory that were taken; 0 on a CPU.
    residual
        Of the last iterate.
    """

    layout: str
    sweeps: int
    microseconds: float
    moved: float
    device: float
    residual: float


def read_line(output: str) -> Sweeps | None:
    """Return what a log tells of its last solve that swept, None if there is none."""
    lines = re.findall(r"^prism-gpu: .* us a sweep, .*$", output, re.MULTILINE)
    if not lines:
        return None

    def number(pattern: str) -> float:
        found = re.search(pattern, lines[-1])
        return float(found[1]) if found else 0.0

    microseconds = number(r"([\d.]+) us a sweep")
    return Sweeps(
        lines[-1].partition("format ")[2].partition(",")[0],
        int(number(r"(\d+) sweeps")),
        microseconds,
        number(r"(\d+) GB/s") * microseconds * 1e-3,
        number(r"([\d.]+) MB of device memory"),
        number(r"residual (\S+?),"),
    )


def run(install: PrismInstall, case: Case, layout: str, device: str, sweeps: int) -> Sweeps | None:
    """Sweep a case in a layout; None where the engine does not."""
    model = install.root.parent / "prism-examples" / case.model
    sized = ["-const", case.constants] if case.constants else []
    words = [str(model), *sized, "-pf", case.text, "-hybrid", *case.method, "-absolute"]
    words += ["-epsilon", "1e-300", "-maxiters", str(sweeps), "-gpuformat", layout, "-gpuinfo"]
    switch = "-gpu" if device == "gpu" else "-nogpu"
    command = [sys.executable, "-m", "bridge", *words, switch]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = read_line(done.stdout)
    if found is None:
        sys.exit(f"{' '.join(command)} has not swept:\n{done.stdout}{done.stderr}")
    if layout == "hybrid":
        return found if WITHOUT_MATRIX in done.stdout else None
    return found if layout in ("auto", found.layout) else None


def converge(
    install: PrismInstall, case: Case, way: str, device: str
) -> tuple[Sweeps, float, str] | None:
    """Sweep a case until it converges; return the sweeps, the result, and the colours."""
    layout, switches = COLOURS[way]
    model = install.root.parent / "prism-examples" / case.model
    sized = ["-const", case.constants] if case.constants else []
    words = [str(model), *sized, "-pf", case.text, "-hybrid", *switches, "-maxiters", "200000"]
    words += ["-gpuformat", layout, "-gpuinfo", "-gpu" if device == "gpu" else "-nogpu"]
    command = [sys.executable, "-m", "bridge", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = read_line(done.stdout)
    result = re.search(r"^Result: (\S+)", done.stdout, re.MULTILINE)
    if found is None or result is None:
        sys.exit(f"{' '.join(command)} has no result:\n{done.stdout}{done.stderr}")
    if (layout == "hybrid") != (WITHOUT_MATRIX in done.stdout):
        return None
    colours = re.search(r"in (\d+) colours?, slices of (\d+) states?, (\d+) %", done.stdout)
    told = "" if colours is None else f", {colours[1]} × {colours[2]}, {colours[3]} %"
    return found, float(result[1]), told


def print_colours(install: PrismInstall, cases: tuple[str, ...], device: str) -> None:
    """Print one table of cases that converge in colours."""
    print("Sweeps, us a sweep, and of colours: their number × states a slice, entries fresh.")
    print(f"| case | {' | '.join(COLOURS)} |\n|---{'|---' * len(COLOURS)}|", flush=True)
    for name in cases or SMALLER:
        rows = {way: converge(install, SMALLER[name], way, device) for way in COLOURS}
        cells = [
            "–" if row is None else f"{row[0].sweeps}, {row[0].microseconds:.1f}{row[2]}"
            for row in rows.values()
        ]
        results = [row[1] for row in rows.values() if row is not None]
        apart = any(not math.isclose(r, results[0], rel_tol=SAME_RESULT) for r in results)
        both = [rows[way] for way in SAME_SLICES]
        sweeps = {row[0].sweeps for row in both if row is not None}
        # Sums are rounded in another order: the test may be met one sweep sooner or later.
        remark = " DIFFERENT" if apart or max(sweeps) - min(sweeps) > 1 else ""
        print(f"| {name} | {' | '.join(cells)} |{remark}", flush=True)


def cell(found: Sweeps | None, shown: bool) -> str:
    """Return one layout's columns of the table."""
    if found is None:
        return "– | – | –"
    name = f" ({found.layout})" if shown else ""
    return f"{found.microseconds:.1f}{name} | {found.moved:.0f} | {found.device:.0f}"


def agree(rows: list[Sweeps | None]) -> bool:
    """Return whether all layouts made the same sweeps and came to the same residual."""
    known = [row for row in rows if row is not None]
    first = known[0]
    return all(
        row.sweeps == first.sweeps
        and math.isclose(row.residual, first.residual, rel_tol=SAME_RESIDUAL)
        for row in known
    )


@click.command()
@click.argument("cases", nargs=-1, type=click.Choice([*CASES, *SMALLER]))
@click.option("--colours", is_flag=True, help="Sweep smaller cases in colours to convergence.")
@click.option("--device", type=click.Choice(["gpu", "cpu"]), default="gpu")
@click.option("--sweeps", default=500, help="Sweeps of each run.")
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(
    cases: tuple[str, ...], colours: bool, device: str, sweeps: int, file: Path | None
) -> None:
    """Print one table of cases; CASES names some of them."""
    install = find_prism()
    wrong = [name for name in cases if name not in (SMALLER if colours else CASES)]
    if wrong:
        raise click.UsageError(
            f"{wrong[0]} belongs to the {'other' if colours else '--colours'} table"
        )
    if colours:
        print_colours(install, cases, device)
        return
    layouts = LAYOUTS[device]
    heads = " | ".join(f"{name}: us a sweep | MB moved | MB on device" for name in layouts)
    print(f"| case | {heads} |\n|---{'|---' * 3 * len(layouts)}|", flush=True)
    record = {}
    for name in cases or CASES:
        rows = [run(install, CASES[name], layout, device, sweeps) for layout in layouts]
        remark = "" if agree(rows) else " DIFFERENT"
        own = ("auto", "hybrid")
        cells = [cell(row, layout in own) for row, layout in zip(rows, layouts, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |{remark}", flush=True)
        record[name] = [None if row is None else asdict(row) for row in rows]
    if file is not None:
        file.write_text(json.dumps({"device": device, "cases": record}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
