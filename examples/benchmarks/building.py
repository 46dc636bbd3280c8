"""How long it takes to build a model from its text, here and by PRISM's explicit engine.

    python examples/benchmarks/building.py FOLDER [--threads N]

FOLDER holds PRISM's examples; PRISM itself is found as prism-gpu finds it. Both build the same
models; their numbers of states and transitions are compared before times are printed. Seconds are
those of the clock and, in brackets, of all processors: on a busy machine only those compare.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import time
from pathlib import Path

from bridge.check.model_text import ModelText
from bridge.install import find_prism
from engines.exploration.build import build

MODELS = (
    ("ctmcs/tandem/tandem.sm", {"c": 1023}),
    ("ctmcs/polling/poll14.sm", {}),
    ("mdps/csma/csma3_4.nm", {}),
)


Figures = tuple[int, int, float, float]
"""States, transitions, seconds, and seconds of all processors."""


def ours(path: Path, constants: dict[str, int], threads: int | None) -> Figures:
    """Build a model here."""
    begin, used = time.perf_counter(), time.process_time()
    text = ModelText(path.read_text(), str(path))
    program = text.built_program(text.constants(constants), checked=True)
    matrix = build(program, threads=threads).model.matrix
    seconds = time.perf_counter() - begin
    return matrix.num_columns, matrix.num_entries, seconds, time.process_time() - used


def prisms(script: Path, path: Path, constants: dict[str, int]) -> Figures:
    """Build a model by PRISM; its start counts among the seconds of all processors alone."""
    given = ",".join(f"{name}={value}" for name, value in constants.items())
    switches = ["-const", given] if given else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [str(script), str(path), "-explicit", "-javamaxmem", "8g", *switches]
    log = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def found(pattern: str) -> str:
        match = re.search(pattern, log)
        assert match is not None, log
        return match[1]

    seconds = float(found(r"Time for model construction: ([\d.]+)"))
    return int(found(r"States: +(\d+)")), int(found(r"Transitions: +(\d+)")), seconds, used


def main() -> None:
    """Build each model both ways, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    script = find_prism().root / "bin" / "prism"
    for name, constants in MODELS:
        path = given.folder / name
        # Once before, so that the library is loaded.
        ours(path, constants, given.threads)
        states, transitions, seconds, used = ours(path, constants, given.threads)
        *theirs, prism_seconds, prism_used = prisms(script, path, constants)
        assert [states, transitions] == theirs, (name, states, transitions, theirs)
        print(
            f"{path.stem}: {states} states, {transitions} transitions; here {seconds:.2f} s "
            f"({used:.2f}), {states / seconds / 1e6:.2f} million states a second; "
            f"PRISM {prism_seconds:.1f} s ({prism_used:.1f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
