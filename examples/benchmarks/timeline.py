"""Where the seconds of whole commands go, from Enter to the prompt, beside `prism -sparse`.

    PRISM_DIR=… python examples/benchmarks/timeline.py [CASE ...] [--runs 5] [--device gpu|cpu]
        [--peer/--no-peer]

A first run of each case fills the caches and is left out; of the others, medians. No engine and no
method is named. The parts are those that `-gpuinfo` prints; what is left of the clock on the wall
is the end of the process. CPU seconds are those of all threads.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import click

from bridge.install import find_prism
from engines.errors import BridgeError


@dataclass(frozen=True)
class Case:
    """A property of one of PRISM's example models."""

    model: str
    constants: str
    text: str


PREMIUM = 'S=? [ "premium" ]'
CASES = {
    "dice": Case("simple/dice/dice.pm", "", "P=? [ F d=6 ]"),
    "csma3_4": Case("mdps/csma/csma3_4.nm", "", 'R{"time"}min=? [ F "all_delivered" ]'),
    "wlan5": Case(
        "mdps/wlan/wlan5.nm", "TRANS_TIME_MAX=10,COL=0", 'R{"cost"}max=? [ F s1=12&s2=12 ]'
    ),
    "coin6": Case("mdps/consensus/coin6.nm", "K=2", 'Pmax=? [ F "finished"&!"agree" ]'),
    "cluster 320": Case("ctmcs/cluster/cluster.sm", "N=320", PREMIUM),
    "cluster 572": Case("ctmcs/cluster/cluster.sm", "N=572", PREMIUM),
    "polling 16": Case("ctmcs/polling/poll16.sm", "", "S=? [ s1=1 & !(s=1 & a=1) ]"),
    "kanban 5": Case("ctmcs/kanban/kanban.sm", "t=5", 'R{"throughput"}=? [ S ]'),
    "tandem 4095": Case("ctmcs/tandem/tandem.sm", "c=4095", "R=? [ S ]"),
}
LARGE = ("cluster 572", "tandem 4095")
NOTHING_MORE = "the end"


@dataclass
class Run:
    """One whole command."""

    wall: float
    cpu: float
    result: str
    parts: dict[str, float] = field(default_factory=dict)


def run(words: list[str]) -> Run:
    """Run a command; raise where it fails."""
    began = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = process.stdout.read() if process.stdout else ""
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    if status != 0:
        sys.exit(f"{' '.join(words)} failed:\n{output}")
    result = re.findall(r"^Result: (\S+)", output, re.MULTILINE)
    made = Run(wall, used.ru_utime + used.ru_stime, result[-1] if result else "")
    told = re.search(r"^prism-gpu: [\d.]+ s in all: (.*)$", output, re.MULTILINE)
    if told:
        found = re.findall(r"([\d.]+) ([^,]+)", told[1])
        made.parts = {name: float(seconds) for seconds, name in found}
        counted = sum(value for name, value in made.parts.items() if "beside" not in name)
        made.parts[NOTHING_MORE] = wall - counted
    return made


def median(runs: list[Run], of: Callable[[Run], float]) -> float:
    """Return the median of a figure of some runs."""
    return statistics.median(map(of, runs))


def row(name: str, runs: list[Run], peers: list[Run]) -> str:
    """Return a row of the table, and the parts below it."""
    wall, cpu = median(runs, lambda each: each.wall), median(runs, lambda each: each.cpu)
    beside = "– | – | –"
    if peers:
        peer = median(peers, lambda each: each.wall)
        peer_cpu = median(peers, lambda each: each.cpu)
        beside = f"{peer:.2f} s | {peer_cpu:.2f} s | {peer / wall:.2f} ×"
    names = dict.fromkeys(name for each in runs for name in each.parts)
    seconds = {
        part: statistics.median(each.parts.get(part, 0.0) for each in runs) for part in names
    }
    told = ", ".join(f"{part} {took:.2f}" for part, took in seconds.items() if took >= 0.005)
    return f"| {name} | {wall:.2f} s | {cpu:.2f} s | {beside} | {told} |"


@click.command()
@click.argument("cases", nargs=-1, type=click.Choice(list(CASES)))
@click.option("--runs", default=5, show_default=True, help="Runs of each case.")
@click.option("--device", type=click.Choice(["gpu", "cpu", "auto"]), default="auto")
@click.option("--peer/--no-peer", default=True, help="Whether PRISM runs beside.")
def main(cases: tuple[str, ...], runs: int, device: str, peer: bool) -> None:
    """Print a table of cases; CASES names some of them, by default all but the largest."""
    try:
        install = find_prism()
    except BridgeError as error:
        raise click.ClickException(str(error)) from error
    switches = {"gpu": ["-gpu"], "cpu": ["-nogpu"], "auto": []}[device]
    print(
        "| case | prism-gpu | CPU | prism -sparse | CPU | ratio | parts, in seconds |\n"
        "|---|---|---|---|---|---|---|",
        flush=True,
    )
    for name in cases or [each for each in CASES if each not in LARGE]:
        case = CASES[name]
        model = install.root.parent / "prism-examples" / case.model
        words = [str(model), *(["-const", case.constants] if case.constants else [])]
        words += ["-pf", case.text]
        ours = [sys.executable, "-m", "bridge", *words, *switches, "-gpuinfo"]
        theirs = [str(install.root / "bin" / "prism"), *words, "-sparse", "-javamaxmem", "8g"]
        run(ours)
        found = [run(ours) for _ in range(runs)]
        peers = [run(theirs) for _ in range(runs)] if peer else []
        print(row(name, found, peers), flush=True)


if __name__ == "__main__":
    main()
