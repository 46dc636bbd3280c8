"""What is sent signals: starting, building, solving, writing, with PRISM and without."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from bridge.exchange.manifest import load_manifest
from bridge.exchange.results import load_results
from bridge.files.umb import read_umb
from tests.signals.sending import ROOT, Scenario

MODELS = ROOT / "examples" / "models"
CLUSTER = str(MODELS / "cluster.sm")
SERVED = str(MODELS / "cluster.csl")
TANDEM = str(MODELS / "tandem.sm")
ENDLESS = ("-maxiters", "2000000000", "-epsilon", "1e-300", "-power", "-absolute")
CHAIN_STATES = 200_000


def scenarios() -> list[Scenario]:
    """Return all that this machine can run."""
    small = (CLUSTER, SERVED, "-const", "N=4,T=1", "-prop", "1", "-nogpu")
    endless = (TANDEM, "-const", "c=511", "-pctl", "R=? [ S ]", *ENDLESS, "-nogpu")
    found = [
        # A small model would be solved before a later signal comes.
        Scenario("start", endless),
        Scenario("first run", small, environment={"PRISM_GPU_CACHE": "FOLDER/cache"}, seconds=4.0),
        Scenario("build", (CLUSTER, "-const", "N=64", "-explicit"), "Building model"),
        Scenario("explore", (TANDEM, "-const", "c=2047", "-nogpu"), "Computing reachable"),
        Scenario("solve", endless, "Iteration "),
        Scenario(
            "export",
            ("export", CLUSTER, SERVED, "-const", "N=32,T=1", "-to", "FOLDER/out"),
            "Time for model construction",
            faults=_export_faults,
        ),
        Scenario("start on files", ("FOLDER/m.tra", "-dtmc"), prepare=_chain, seconds=0.6),
        Scenario(
            "solve on files",
            ("FOLDER/m.tra", "-dtmc", "-pctl", "S=? [ x=1 ]", *ENDLESS, "-nogpu"),
            "Model checking",
            prepare=_chain,
            seconds=1.0,
        ),
        Scenario(
            "write",
            ("FOLDER/m.tra", "-dtmc", "-exportmodel", "FOLDER/out.umb"),
            "Building model",
            prepare=_chain,
            faults=_umb_faults,
        ),
        Scenario(
            "write solved",
            ("solve", "FOLDER/export", "-nogpu"),
            "Solving (1",
            prepare=_exported,
            seconds=1.0,
            faults=_results_faults,
        ),
    ]
    found.append(Scenario("start without PRISM", (*small, "-frontend", "builtin")))
    return found


def _chain(folder: Path) -> None:
    """Write a chain that goes up and down."""
    last = CHAIN_STATES - 1
    with (folder / "m.tra").open("w", encoding="ascii") as file:
        file.write(f"{CHAIN_STATES} {2 * CHAIN_STATES}\n0 0 0.6\n0 1 0.4\n")
        for state in range(1, last):
            file.write(f"{state} {state - 1} 0.6\n{state} {state + 1} 0.4\n")
        file.write(f"{last} {last - 1} 0.6\n{last} {last} 0.4\n")
    (folder / "m.sta").write_text("(x)\n" + "".join(f"{s}:({s})\n" for s in range(CHAIN_STATES)))
    (folder / "m.lab").write_text('0="init" 1="deadlock"\n0: 0\n', encoding="ascii")


@cache
def _made_export() -> Path:
    import subprocess
    import sys
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="signals-export-")) / "export"
    words = ("export", CLUSTER, SERVED, "-const", "N=32,T=20", "-to", str(folder))
    subprocess.run(
        [sys.executable, "-m", "bridge", *words], check=True, capture_output=True, cwd=ROOT
    )
    return folder


def _exported(folder: Path) -> None:
    shutil.copytree(_made_export(), folder / "export")


def _checked(path: Path, read: Callable[[Path], object]) -> list[str]:
    if not path.exists():
        return []
    try:
        read(path)
    except Exception as error:
        return [f"{path.name} is not whole: {error}"]
    return []


def _export_faults(folder: Path) -> list[str]:
    return _checked(folder / "out", load_manifest)


def _umb_faults(folder: Path) -> list[str]:
    return _checked(folder / "out.umb", read_umb)


def _results_faults(folder: Path) -> list[str]:
    def read(path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
        states = read_umb(folder / "export" / "model.umb").model.num_states
        load_results(folder / "export", states)

    return _checked(folder / "export" / "results.zip", read)
