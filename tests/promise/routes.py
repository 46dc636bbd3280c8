"""The ways to an answer: where the model comes from, and the switches."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from engines.model.explicit import ModelKind
from tests.promise.models import MDP, Case

ROOT = Path(__file__).parents[2]
FORMS = {
    "tra": "tra",
    "umb": "umb",
    "builtin": "prism",
    "explicit": "prism",
    "sparse": "prism",
    "hybrid": "prism",
}
"""The form that each route wants the model in."""
FILES = ("tra", "umb")
"""The forms that hold doubles."""
SWITCHES = {
    "builtin": ("-frontend", "builtin"),
    "explicit": ("-explicit",),
    "sparse": ("-sparse",),
}
IN_DIAGRAMS = ("sparse", "hybrid")
FINEST_IN_DIAGRAMS = Fraction("1e-12")
"""PRISM's decision diagrams take numbers that are 1e-15 apart for one."""
IN_PRISM = ("explicit", "sparse", "hybrid")
EVERYWHERE = {
    "default": (),
    "ii": ("-ii",),
    "absolute": ("-absolute",),
    "tight": ("-epsilon", "1e-12"),
    "topological": ("-topological",),
}
OF_CHAINS = {
    **EVERYWHERE,
    "power": ("-power",),
    "jacobi": ("-jacobi",),
    "jor": ("-jor", "-omega", "0.9"),
    "gs": ("-gs",),
    "bgs": ("-bgs",),
    "sor": ("-sor", "-omega", "0.9"),
    "gmres": ("-gpumethod", "gmres"),
}
OF_MDPS = {
    **EVERYWHERE,
    "valiter": ("-valiter",),
    "gs": ("-gs",),
    "politer": ("-politer",),
    # A hundred sweeps each; PRISM's limit of 10,000 policies takes it minutes, and us a minute.
    "modpoliter": ("-modpoliter", "-maxiters", "300"),
}


def settings_for(kind: ModelKind) -> dict[str, tuple[str, ...]]:
    """Return the switches that a kind of model is asked with, by name."""
    return OF_MDPS if kind is MDP else OF_CHAINS


def takes(route: str, case: Case) -> bool:
    """Return whether a route can tell the numbers of a model apart.

    Parameters
    ----------
    route
        Its name.
    case
        The model.
    """
    return route not in IN_DIAGRAMS or case.finest >= FINEST_IN_DIAGRAMS


def command_words(
    route: str, model: Path, properties: Path, kind: ModelKind, switches: tuple[str, ...]
) -> list[str]:
    """Return the words behind `prism-gpu`."""
    words = [str(model), str(properties), *SWITCHES.get(route, ()), *switches, "-nogpu"]
    return [*words, f"-{kind.lower()}"] if route == "tra" else words


@dataclass
class Asker:
    """A process that answers many command lines, one after the other.

    Parameters
    ----------
    in_prism
        Whether it has PRISM in it.
    folder
        Where its log goes.
    seconds
        How long a command line may take.
    """

    in_prism: bool
    folder: Path
    seconds: float = 30.0
    _process: subprocess.Popen[str] | None = field(default=None, init=False)

    def log(self, words: list[str]) -> tuple[str, bool]:
        """Return what a command line prints, and whether it came to its end.

        Parameters
        ----------
        words
            Those behind `prism-gpu`.
        """
        log = self.folder / f"log-{os.getpid()}-{'prism' if self.in_prism else 'files'}.txt"
        if self._process is None:
            self._process = self._start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"words": words, "log": str(log)}) + "\n")
        process.stdin.flush()
        ended, deadline = "", time.monotonic() + self.seconds
        while not ended and process.poll() is None and time.monotonic() < deadline:
            if select.select([process.stdout], [], [], 0.5)[0]:
                ended = process.stdout.readline()
        if not ended:
            self.close()
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return text, bool(ended)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.promise.worker", "prism" if self.in_prism else "files"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
