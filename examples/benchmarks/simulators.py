"""Sampling a path: prism-gpu beside PRISM's own simulator, same host, same run.

    PRISM_DIR=… python examples/benchmarks/simulators.py [CASE ...] [--device gpu|cpu]
        [--paths N] [--seconds S] [--json FILE]

Both programs run `-sim -simmethod apmc` and say how long their sampling took; ours samples N
paths, PRISM about as many as it does in S seconds. Before a time is shown the two estimates must
lie within their intervals of each other: each is off by more than its half-width once in 10,000
runs at most.
PRISM samples on one core. Ours counts from the program in memory to the last path; compiling it, on
the first run, comes on top ("start": what the whole run takes beyond the sampling).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from bridge.install import PrismInstall, find_prism

FAILURE_PROBABILITY = "0.0001"
PILOT_PATHS = 200
"""Paths of the run that tells how many PRISM samples in the seconds granted."""

PHILOSOPHERS = Path(__file__).resolve().parent.parent / "models" / "philosophers.py"


@dataclass(frozen=True)
class Case:
    """A property of a model: one of PRISM's examples, or so many philosophers."""

    model: str | int
    constants: str
    text: str


CASES = {
    "dice": Case("simple/dice/dice.pm", "", "P=? [ F d=6 ]"),
    "brp": Case("dtmcs/brp/brp.pm", "N=64,MAX=1", "P=? [ F s=5 ]"),
    "leader 4, 5": Case("dtmcs/leader_sync/leader4_5.pm", "", 'P=? [ F<=12 "elected" ]'),
    "cluster 64": Case("ctmcs/cluster/cluster.sm", "N=64", 'P=? [ F<=100 !"premium" ]'),
    "embedded": Case("ctmcs/embedded/embedded.sm", "MAX_COUNT=8", "P=? [ F<=432000 s<2 ]"),
    "polling 16": Case("ctmcs/polling/poll16.sm", "", "P=? [ F<=10 s=2 & a=1 ]"),
    "tandem 255": Case("ctmcs/tandem/tandem.sm", "c=255", "P=? [ F<=1 sm=5 ]"),
    "philosophers 20": Case(20, "", 'P=? [ F<=200 "first_eats" ]'),
    "philosophers 160": Case(160, "", 'P=? [ F<=200 "first_eats" ]'),
}


@dataclass(frozen=True)
class Run:
    """What one program did.

    Parameters
    ----------
    paths, sampling, whole
        How many paths, in how many seconds; the seconds of the whole run.
    estimate, width
        The result, and the half-width of its interval.
    mean_length
        Steps of a path.
    """

    paths: int
    sampling: float
    whole: float
    estimate: float
    width: float
    mean_length: float

    @property
    def microseconds(self) -> float:
        """Of one path."""
        return self.sampling / self.paths * 1e6


def run(words: list[str], paths: int) -> Run:
    """Sample so many paths."""
    method = ["-simmethod", "apmc", "-simsamples", str(paths), "-simconf", FAILURE_PROBABILITY]
    began = time.perf_counter()
    done = subprocess.run([*words, "-sim", *method], capture_output=True, text=True, check=False)
    whole = time.perf_counter() - began
    sampled = re.search(r"^Sampling complete: (\d+) iterations in ([\d.Ee+-]+)", done.stdout, re.M)
    result = re.search(r"^Result: (\S+) \(\+/- (\S+) with", done.stdout, re.M)
    length = re.search(r"^Path length statistics: average ([\d.Ee+-]+)", done.stdout, re.M)
    if not (sampled and result and length) or "is not done by our engines" in done.stdout:
        sys.exit(f"{' '.join(words)} has not sampled:\n{done.stdout}{done.stderr}")
    # No clock of PRISM's log is finer than that.
    seconds = max(float(sampled[2]), 5e-4)
    numbers = (float(text) for text in (result[1], result[2], length[1]))
    return Run(int(sampled[1]), seconds, whole, *numbers)


def model_of(case: Case, install: PrismInstall, folder: Path) -> Path:
    """Return the file of a case's model."""
    if isinstance(case.model, str):
        return install.root.parent / "prism-examples" / case.model
    path = folder / f"philosophers{case.model}.pm"
    subprocess.run([sys.executable, PHILOSOPHERS, str(case.model), "-o", path], check=True)
    return path


def compare(case: Case, device: str, paths: int, granted: float, folder: Path) -> tuple[Run, Run]:
    """Return what ours did, the second time, and what PRISM did."""
    install = find_prism()
    sized = ["-const", case.constants] if case.constants else []
    words = [str(model_of(case, install, folder)), *sized, "-pf", case.text]
    switch = "-gpu" if device == "gpu" else "-nogpu"
    own = [sys.executable, "-m", "bridge", *words, switch, "-gpusimseed", "1"]
    run(own, PILOT_PATHS)
    ours = run(own, paths)
    prism = [str(install.root / "bin" / "prism"), *words]
    pilot = run(prism, PILOT_PATHS)
    theirs = run(prism, max(PILOT_PATHS, int(granted / pilot.sampling * PILOT_PATHS)))
    return ours, theirs


def line(name: str, ours: Run, theirs: Run) -> str:
    """Return a row of the table."""
    apart = abs(ours.estimate - theirs.estimate) > ours.width + theirs.width
    ratio = theirs.microseconds / ours.microseconds
    return (
        f"| {name} | {ours.mean_length:.0f} | {theirs.microseconds:.1f} | "
        f"{ours.microseconds:.4f} | {ratio:,.0f} × | {ours.sampling:.3f} | "
        f"{ours.whole - ours.sampling:.2f} | {ours.estimate:.6g} |{' DIFFERENT' if apart else ''}"
    )


@click.command()
@click.argument("cases", nargs=-1, type=click.Choice(list(CASES)))
@click.option("--device", type=click.Choice(["gpu", "cpu"]), default="gpu")
@click.option("--paths", default=10_000_000, help="Paths of ours.")
@click.option("--seconds", default=5.0, help="Seconds of PRISM's sampling.")
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(
    cases: tuple[str, ...], device: str, paths: int, seconds: float, file: Path | None
) -> None:
    """Print one table of cases; CASES names some of them."""
    print(
        "| case | steps a path | PRISM: µs a path | prism-gpu: µs a path | ratio | "
        "all paths, s | start, s | estimate |\n|---|---|---|---|---|---|---|---|",
        flush=True,
    )
    record = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in cases or CASES:
            ours, theirs = compare(CASES[name], device, paths, seconds, Path(folder))
            record[name] = {"ours": asdict(ours), "prism": asdict(theirs)}
            print(line(name, ours, theirs), flush=True)
    if file is not None:
        content = {"cores": os.cpu_count(), "device": device, "cases": record}
        file.write_text(json.dumps(content, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
