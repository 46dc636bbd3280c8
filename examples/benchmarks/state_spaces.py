"""Building state spaces: states a second on a GPU, on the CPU, and by PRISM's explicit engine.

    PRISM_DIR=… python examples/benchmarks/state_spaces.py [CASE ...] [--device gpu|cpu|both]
        [--code bytes|compiled] [--limit SECONDS] [--json FILE]

Ours is the time of search, order and matrix together, the second time; compiling is told apart.
PRISM's is what it prints as the time of model construction. In brackets are the seconds of all
processors, PRISM's with its start: on a busy machine only those compare. States and transitions
must agree.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from bridge.check.model_text import ModelText
from bridge.install import find_prism
from engines.exploration.build import ExplorationTuning, build
from engines.exploration.initial import initial_states
from engines.program.packing import Packing
from engines.program.program import Program

CASES: dict[str, tuple[str, dict[str, int]]] = {
    "polling 14": ("ctmcs/polling/poll14.sm", {}),
    "polling 15": ("ctmcs/polling/poll15.sm", {}),
    "polling 16": ("ctmcs/polling/poll16.sm", {}),
    "polling 18": ("ctmcs/polling/poll18.sm", {}),
    "tandem 511": ("ctmcs/tandem/tandem.sm", {"c": 511}),
    "tandem 1023": ("ctmcs/tandem/tandem.sm", {"c": 1023}),
    "tandem 700": ("ctmcs/tandem/tandem.sm", {"c": 700}),
    "tandem 4095": ("ctmcs/tandem/tandem.sm", {"c": 4095}),
    "cluster 128": ("ctmcs/cluster/cluster.sm", {"N": 128}),
    "cluster 170": ("ctmcs/cluster/cluster.sm", {"N": 170}),
    "cluster 256": ("ctmcs/cluster/cluster.sm", {"N": 256}),
    "kanban 4": ("ctmcs/kanban/kanban.sm", {"t": 4}),
    "fms 6": ("ctmcs/fms/fms.sm", {"n": 6}),
    "csma 3, 4": ("mdps/csma/csma3_4.nm", {}),
    "wlan 5": ("mdps/wlan/wlan5.nm", {"TRANS_TIME_MAX": 10, "COL": 0}),
    "wlan 6": ("mdps/wlan/wlan6.nm", {"TRANS_TIME_MAX": 10, "COL": 0}),
    "coin 6": ("mdps/consensus/coin6.nm", {"K": 2}),
}
USUAL = ("polling 14", "tandem 511", "cluster 128", "kanban 4", "fms 6", "csma 3, 4", "wlan 5")


Seconds = tuple[float, float] | None
"""Of the clock and of all processors; None for what was not run."""


def cell(seconds: Seconds) -> str:
    """Return seconds as the table has them."""
    return "–" if seconds is None else f"{seconds[0]:.2f} ({seconds[1]:.2f})"


@dataclass
class Row:
    """A case: seconds of each way, None where it was not gone."""

    case: str
    states: int = 0
    transitions: int = 0
    compiling: float | None = None
    gpu: float | None = None
    cpu: Seconds = None
    prism: Seconds = None

    def speed(self, seconds: float | None) -> str:
        """Return millions of states a second."""
        return "–" if not seconds else f"{self.states / seconds / 1e6:.2f}"

    def line(self) -> str:
        """Return a row of the table."""
        compiling = "–" if self.compiling is None else f"{self.compiling:.2f}"
        speeds = f"{self.speed(self.gpu)} | {self.speed(self.cpu and self.cpu[0])}"
        sizes = f"{self.states:,} | {self.transitions:,}"
        return (
            f"| {self.case} | {sizes} | {compiling} | {speeds} | {cell(self.cpu)} | "
            f"{cell(self.prism)} |"
        )


def on_gpu(program: Program, row: Row) -> None:
    """Build on the GPU, twice; compiling is that of the first time."""
    from engines.cuda.driver import cupy
    from engines.cuda.exploring import CudaExplorer

    packing = Packing.of(program)
    initial = initial_states(program, packing)
    for _ in range(2):
        began = time.perf_counter()
        explorer = CudaExplorer(program, packing, initial)
        cupy().cuda.Device().synchronize()
        ready = time.perf_counter()
        while (search := explorer.search())["begin"] != search["found"]:
            pass
        states = explorer.states()
        rows = explorer.rows()
        cupy().cuda.Device().synchronize()
        row.gpu = time.perf_counter() - ready
        row.compiling = row.compiling or ready - began
        row.states, row.transitions = len(states), len(rows.columns)
        del explorer, states, rows
        cupy().get_default_memory_pool().free_all_blocks()


def on_cpu(program: Program, row: Row, *, compiled: bool) -> None:
    """Build on the CPU, twice, by byte code or by C compiled from the program."""
    tuning = ExplorationTuning(states_before_compiling=0 if compiled else 2**40)
    counts = (row.states, row.transitions)
    for _ in range(2):
        began, used = time.perf_counter(), time.process_time()
        built = build(program, tuning=tuning)
        assert built.events == (), built.events
        row.cpu = (time.perf_counter() - began, time.process_time() - used)
        row.states, row.transitions = len(built.states), built.model.matrix.num_entries
        del built
    assert counts in ((0, 0), (row.states, row.transitions)), (counts, row)


def by_prism(prism: str, model: Path, constants: dict[str, int], limit: float, row: Row) -> None:
    """Build with PRISM's explicit engine, unless it takes longer than the limit."""
    sized = ["-const", ",".join(f"{k}={v}" for k, v in constants.items())] if constants else []
    command = [prism, str(model), *sized, "-explicit", "-javamaxmem", "8g"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return
    seconds = re.search(r"^Time for model construction: ([\d.]+)", done.stdout, re.MULTILINE)
    counts = re.findall(r"^(?:States|Transitions): +(\d+)", done.stdout, re.MULTILINE)
    if seconds is None or len(counts) != 2:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    assert [int(count) for count in counts] == [row.states, row.transitions], (counts, row)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row.prism = (float(seconds[1]), used)


@click.command()
@click.argument("cases", nargs=-1, type=click.Choice(list(CASES)))
@click.option("--device", type=click.Choice(["gpu", "cpu", "both"]), default="cpu")
@click.option("--code", type=click.Choice(["bytes", "compiled"]), default="bytes")
@click.option("--limit", default=300.0, help="Seconds that PRISM may take for a case; 0: not run.")
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(cases: tuple[str, ...], device: str, code: str, limit: float, file: Path | None) -> None:
    """Print one table of cases; CASES names some of them."""
    install = find_prism()
    examples, prism = install.root.parent / "prism-examples", str(install.root / "bin" / "prism")
    print(
        "| case | states | transitions | compiling, s | GPU, M states/s | CPU, M states/s "
        "| CPU, s | PRISM -explicit, s |\n|---|---|---|---|---|---|---|---|",
        flush=True,
    )
    rows = []
    for case in cases or USUAL:
        path, constants = CASES[case]
        text = ModelText((examples / path).read_text(encoding="utf-8"), path)
        program = text.built_program(text.constants(constants), checked=True)
        row = Row(case)
        if device in ("gpu", "both"):
            on_gpu(program, row)
        if device in ("cpu", "both"):
            on_cpu(program, row, compiled=code == "compiled")
        if limit > 0.0:
            by_prism(prism, examples / path, constants, limit, row)
        rows.append(row)
        print(row.line(), flush=True)
    if file is not None:
        record = {"cores": os.cpu_count(), "rows": [asdict(row) for row in rows]}
        file.write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
