"""From how many paths on a GPU samples sooner than the CPU: whole runs, start-up included.

    PRISM_DIR=… python examples/benchmarks/simulation_threshold.py [CASE ...]
        [--paths 32768]... [--repeats 3] [--json FILE]

Runs `-sim` with -gpu and with -nogpu, model file to result, and prints the quicker of the repeats;
a first run of each, not timed, compiles what is kept between runs. Both must print the same
estimate, digit for digit. The cases are those of `simulators.py`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import click
from simulators import CASES, PILOT_PATHS, model_of, run

from bridge.install import find_prism

PATHS = tuple(1 << power for power in range(13, 24, 2))
DEVICES = ("-nogpu", "-gpu")


@click.command()
@click.argument("cases", nargs=-1, type=click.Choice(list(CASES)))
@click.option("--paths", multiple=True, type=int, default=PATHS)
@click.option("--repeats", default=3)
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(cases: tuple[str, ...], paths: tuple[int, ...], repeats: int, file: Path | None) -> None:
    """Print the seconds of whole runs on both devices; CASES names some of them."""
    print(f"{os.cpu_count()} cores; seconds of a whole run, CPU / GPU", flush=True)
    print(f"| case | {' | '.join(f'{number:,} paths' for number in paths)} |", flush=True)
    print(f"|---|{'---|' * len(paths)}", flush=True)
    install = find_prism()
    record: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in cases or CASES:
            case = CASES[name]
            sized = ["-const", case.constants] if case.constants else []
            words = [sys.executable, "-m", "bridge", str(model_of(case, install, Path(folder)))]
            words += [*sized, "-pf", case.text, "-gpusimseed", "1"]
            record[name] = {device: [] for device in DEVICES}
            for device in DEVICES:
                run([*words, device], PILOT_PATHS)
            for number in paths:
                found = {}
                for device in DEVICES:
                    runs = [run([*words, device], number) for _ in range(repeats)]
                    found[device] = {one.estimate for one in runs}
                    record[name][device].append(min(one.whole for one in runs))
                if len(set.union(*found.values())) > 1:
                    sys.exit(f"{name}, {number} paths: the estimates differ: {found}")
            pairs = zip(*record[name].values(), strict=True)
            told = " | ".join(f"{cpu:.2f} / {gpu:.2f}" for cpu, gpu in pairs)
            print(f"| {name} | {told} |", flush=True)
    if file is not None:
        content = {"cores": os.cpu_count(), "paths": paths, "seconds": record}
        file.write_text(json.dumps(content, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
