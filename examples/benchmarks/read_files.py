"""Reading a large model from text and from UMB: MB/s and peak memory, beside PRISM and Storm.

    python examples/benchmarks/read_files.py [--transitions N] [--prism-dir DIR] [--json FILE]

The model is a random walk with jumps, made for the purpose; before anything is timed, the counts
and the row sums of what was read are checked. Each reading runs in a process of its own. Peak
memory is what the process holds above its start, from its resident set; of PRISM, whose Java heap
comes with it, the whole resident set.
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
import numpy as np

from bridge.files.storm_text import write_for_storm
from bridge.files.umb import write_umb
from bridge.files.writer import write_model
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind

MEASURED = """
import resource, sys, time
def resident():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1]) * 1024
{prepare}
before = resident()
started = time.perf_counter()
{read}
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
{check}
print(entries, seconds, made, peak)
"""
COUNT_OURS = """
matrix = model.matrix
assert abs(matrix.row_sums() - 1).max() < 1e-9
entries = matrix.num_entries
made = sum(array.nbytes for array in (matrix.row_offsets, matrix.columns, matrix.values))
made += sum(mask.nbytes for mask in {id(mask): mask for mask in model.labels.values()}.values())
"""
OURS_TEXT = {
    "prepare": "from bridge.files.reader import read_model\nread_model(sys.argv[2])",
    "read": "model = read_model(sys.argv[1]).model",
    "check": COUNT_OURS,
}
OURS_UMB = {
    "prepare": "from bridge.files.umb import read_umb\nread_umb(sys.argv[2])",
    "read": "model = read_umb(sys.argv[1]).model\ntotal = float(model.matrix.values.sum())",
    "check": COUNT_OURS + "assert abs(total - matrix.num_rows) < 1e-3",
}
COUNT_STORM = "entries, made = model.nr_transitions, 0"
STORM_TEXT = {
    "prepare": "import stormpy",
    "read": 'stem = sys.argv[1].removesuffix(".tra")\n'
    'model = stormpy.build_model_from_explicit(sys.argv[1], stem + ".lab")',
    "check": COUNT_STORM,
}
STORM_UMB = {
    "prepare": "import stormpy",
    "read": "model = stormpy.build_model_from_umb(sys.argv[1])",
    "check": COUNT_STORM,
}
BUILT = re.compile(r"Time for model construction: ([\d.]+) seconds")


@dataclass(frozen=True)
class Row:
    """One reading: megabytes of the file, seconds, megabytes of peak memory, and of the arrays."""

    tool: str
    form: str
    file_mb: float
    seconds: float
    peak_mb: float
    arrays_mb: float | None = None

    def __str__(self) -> str:
        speed = self.file_mb / self.seconds
        line = f"{self.form:5} {self.tool:15} {speed:7.0f} MB/s in {self.seconds:6.2f} s, peak "
        line += f"{self.peak_mb:.0f} MB"
        if self.arrays_mb:
            line += f" for arrays of {self.arrays_mb:.0f} MB ({self.peak_mb / self.arrays_mb:.2f}x)"
        return line


def chain(transitions: int) -> ExplicitModel:
    """Return a DTMC of about so many transitions, five a state."""
    states = max(transitions // 5, 10)
    random = np.random.default_rng(1)
    start = random.integers(0, states, states)
    columns = np.sort((start[:, None] + np.arange(5)) % states, axis=1).astype(np.int32)
    weights = random.random((states, 5)) + 0.01
    weights /= weights.sum(axis=1, keepdims=True)
    offsets = np.arange(0, 5 * states + 1, 5, dtype=np.int32)
    matrix = CsrMatrix(offsets, columns.ravel(), weights.ravel(), states)
    initial = np.zeros(states, dtype=bool)
    initial[0] = True
    return ExplicitModel(ModelKind.DTMC, matrix, initial_states=initial)


def read_with_python(tool: str, form: str, code: dict[str, str], file: Path, small: Path) -> Row:
    """Read in a Python process of its own, after a warm-up on a small file."""
    command = [sys.executable, "-c", MEASURED.format(**code), str(file), str(small)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    _, seconds, made, peak = map(float, done.stdout.splitlines()[-1].split())
    return Row(tool, form, file.stat().st_size / 1e6, seconds, peak / 1e6, made / 1e6 or None)


def read_with_prism(prism: Path, form: str, file: Path) -> Row:
    """Import with PRISM's explicit engine."""
    command = [str(prism), "-importmodel", str(file), "-explicit", "-javamaxmem", "8g"]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        output = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    built = BUILT.search(output)
    if process.returncode or not built:
        raise SystemExit("PRISM failed: " + " ".join(output.split()[-12:]))
    # UMB is read before the construction that PRISM times; start-up is a second of the whole.
    seconds = float(built[1]) if form == "text" else time.perf_counter() - started
    return Row("PRISM explicit", form, file.stat().st_size / 1e6, seconds, usage.ru_maxrss / 1024)


@click.command()
@click.option("--transitions", default=5_500_000, show_default=True)
@click.option("--prism-dir", type=click.Path(path_type=Path), envvar="PRISM_DIR")
@click.option("--json", "output", type=click.Path(path_type=Path), help="Write the figures there.")
def main(transitions: int, prism_dir: Path | None, output: Path | None) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large = chain(50), chain(transitions)
        for stem, model in (("small", small), ("large", large)):
            write_model(model, folder / stem)
            write_umb(model, folder / f"{stem}.umb", "none")
            (folder / "storm").mkdir(exist_ok=True)
            write_for_storm(model, folder / "storm" / stem)
        text, umb = folder / "large.tra", folder / "large.umb"
        print(f"{large.matrix.num_entries} transitions")
        rows = [
            read_with_python("prism-gpu", "text", OURS_TEXT, text, folder / "small.tra"),
            read_with_python("prism-gpu", "UMB", OURS_UMB, umb, folder / "small.umb"),
        ]
        if prism_dir is not None:
            prism = prism_dir / "bin" / "prism"
            rows += [read_with_prism(prism, "text", text), read_with_prism(prism, "UMB", umb)]
        try:
            import stormpy  # noqa: F401
        except ImportError:
            print("Storm: not measured; it is not installed")
        else:
            theirs = folder / "storm" / "large.tra"
            rows += [
                read_with_python("Storm", "text", STORM_TEXT, theirs, text),
                read_with_python("Storm", "UMB", STORM_UMB, umb, umb),
            ]
        for row in sorted(rows, key=lambda row: (row.form, row.seconds)):
            print(row)
        if output is not None:
            output.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
