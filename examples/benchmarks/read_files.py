"""Reading a large `.tra`: megabytes a second and peak memory, beside PRISM's own import.

    python examples/benchmarks/read_files.py [--transitions N] [--prism-dir DIR] [--engine E]

The file is a random walk with jumps, made for the purpose; before anything is timed, the counts
and the row sums of what was read are checked. Each reading runs in a process of its own. Peak
memory is what the process holds above its start, from its resident set.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import numpy as np

READ = """
import resource, sys, time
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from bridge.files.reader import read_model
read_model(Path(sys.argv[2]))  # compiles, or loads what was compiled
def resident():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1]) * 1024
before = resident()
started = time.perf_counter()
model = read_model(Path(sys.argv[1])).model
seconds = time.perf_counter() - started
matrix = model.matrix
assert abs(matrix.row_sums() - 1).max() < 1e-9
made = sum(array.nbytes for array in (matrix.row_offsets, matrix.columns, matrix.values))
made += sum(mask.nbytes for mask in {id(mask): mask for mask in model.labels.values()}.values())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
print(matrix.num_entries, seconds, made, peak)
"""
BUILT = re.compile(r"Time for model construction: ([\d.]+) seconds")


def make_chain(path: Path, transitions: int) -> None:
    """Write a DTMC of about so many transitions, five a state."""
    states = max(transitions // 5, 10)
    random = np.random.default_rng(1)
    chunk = 1 << 16
    with path.open("w") as out:
        out.write(f"# Transitions (DTMC)\n{states} {5 * states}\n")
        for first in range(0, states, chunk):
            here = np.arange(first, min(first + chunk, states))
            start = random.integers(0, states, len(here))
            targets = np.sort((start[:, None] + np.arange(5)) % states, axis=1)
            weights = random.random((len(here), 5)) + 0.01
            weights /= weights.sum(axis=1, keepdims=True)
            rows = zip(here.tolist(), targets.tolist(), weights.tolist(), strict=True)
            out.writelines(
                f"{state} {target} {weight!r}\n"
                for state, row, row_weights in rows
                for target, weight in zip(row, row_weights, strict=True)
            )


def read_with_prism(prism: Path, file: Path, engine: str) -> str:
    """Import with PRISM; return what it took."""
    command = [str(prism), "-importmodel", str(file), f"-{engine}", "-javamaxmem", "8g",
               "-cuddmaxmem", "8g"]  # fmt: skip
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        output = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    built = BUILT.search(output)
    if process.returncode or not built:
        return "failed: " + " ".join(output.split()[-12:])
    construction = float(built[1])
    return (
        f"{file.stat().st_size / construction / 1e6:7.1f} MB/s in {construction:.1f} s of "
        f"construction ({seconds:.1f} s in all), peak {usage.ru_maxrss / 1024:.0f} MB resident"
    )


@click.command()
@click.option("--transitions", default=5_500_000, show_default=True)
@click.option("--prism-dir", type=click.Path(path_type=Path), envvar="PRISM_DIR")
@click.option(
    "--engine",
    "engines",
    multiple=True,
    default=["explicit"],
    show_default=True,
    help="PRISM's engine; its symbolic ones may need minutes for a random matrix.",
)
def main(transitions: int, prism_dir: Path | None, engines: tuple[str, ...]) -> None:
    """Print the figures."""
    root = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small.tra"), Path(folder, "large.tra")
        make_chain(small, 50)
        make_chain(large, transitions)
        size = large.stat().st_size
        command = [sys.executable, "-c", READ, str(large), str(small), str(root)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        entries, seconds, made, peak = map(float, done.stdout.split())
        print(f"{large.name}: {size / 1e6:.0f} MB, {int(entries)} transitions")
        print(
            f"prism-gpu       {size / seconds / 1e6:7.1f} MB/s in {seconds:.1f} s, peak "
            f"{peak / 1e6:.0f} MB for arrays of {made / 1e6:.0f} MB ({peak / made:.2f} times)"
        )
        if prism_dir is None:
            print("PRISM: not measured; give --prism-dir")
            return
        for engine in engines:
            print(f"PRISM {engine:9} {read_with_prism(prism_dir / 'bin' / 'prism', large, engine)}")


if __name__ == "__main__":
    main()
