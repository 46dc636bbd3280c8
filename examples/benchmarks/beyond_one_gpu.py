"""A matrix larger than the GPU's memory, and several GPUs, beside one GPU that holds it all.

    python examples/benchmarks/beyond_one_gpu.py [--tandem 4095] [--cluster 320] [--format csr]
        [--uniformise | --colours]

The matrices are those of `formats.py`. "Split" gives the solve a quarter of the memory that it
takes on one GPU, so that most of the matrix travels from the host in each sweep; the link's own
speed is measured in the same run, by copies of pinned memory. Each way's iterate is compared with
the one GPU's after the same number of sweeps before its time is shown.

With `--colours` it is Gauss-Seidel in colours, on one GPU and split: with a quarter of the bytes of
the matrix, into which the vectors have to fit as well. With `--uniformise` one GPU and several make
the sum of powers of a time-bounded question: what a function of the states is expected to be at the
time of `JUMPS` jumps. Sums are compared.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from formats import cluster, tandem

from engines.cuda.colour_engine import CudaColourEngine
from engines.cuda.driver import cupy, device_summary
from engines.cuda.engine import CudaEngine
from engines.cuda.several import SeveralEngine, SeveralSweeper
from engines.cuda.several_sums import sum_powers as sum_on_several
from engines.cuda.split import SplitSweeper, bytes_beside
from engines.cuda.split_colours import SplitColourSweeper
from engines.cuda.sweeper import device_bytes
from engines.cuda.uniformise import sum_powers
from engines.host.colours import Order
from engines.model.choice import Format
from engines.model.events import told
from engines.proofs.poisson import poisson_weights
from engines.systems.one_sided import Engine, SweepSystem
from engines.systems.power_sums import PowerSum, Summed

CHECKED_SWEEPS = 70
TIMED_SWEEPS = 256
SPLIT_SWEEPS = 16
REPEATS = 5
AGREE = 1e-10
JUMPS = 2000.0
TRUNCATION = 1e-24
LINK_BYTES = 1 << 28


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    case: str
    states: int
    entries: int
    way: str
    format: str
    microseconds: float
    speed_up: float
    link_share_percent: float | None
    remark: str


def link_bandwidth() -> float:
    """Return the bytes a second that pinned memory travels at, from the host to the device."""
    from cupyx import empty_pinned

    cp = cupy()
    runtime = cp.cuda.runtime
    host, device = empty_pinned(LINK_BYTES, dtype=np.uint8), cp.empty(LINK_BYTES, dtype=np.uint8)
    seconds = []
    with cp.cuda.Stream(non_blocking=True) as stream:
        for _ in range(REPEATS):
            began, ended = cp.cuda.Event(), cp.cuda.Event()
            began.record(stream)
            kind = runtime.memcpyHostToDevice
            runtime.memcpyAsync(device.data.ptr, host.ctypes.data, LINK_BYTES, kind, stream.ptr)
            ended.record(stream)
            ended.synchronize()
            seconds.append(cp.cuda.get_elapsed_time(began, ended) / 1e3)
    return LINK_BYTES / sorted(seconds)[REPEATS // 2]


def ways_of(system: SweepSystem, matrix_format: Format) -> Iterator[tuple[str, Engine]]:
    """Yield what a case is solved by: one GPU, a quarter of its memory, several GPUs."""
    yield "one GPU", CudaEngine(0, matrix_format)
    beside = bytes_beside(system)
    quarter = beside + (device_bytes(system) - beside) // 4
    yield "split, a quarter", CudaEngine(0, matrix_format, quarter)
    for count in counts():
        yield f"{count} GPUs", SeveralEngine(tuple(range(count)), matrix_format)


def counts() -> Iterator[int]:
    """Yield how many GPUs share a solve: the powers of two, as far as there are so many."""
    count = 2
    while count <= cupy().cuda.runtime.getDeviceCount():
        yield count
        count *= 2


def rows_of(case: str, system: SweepSystem, matrix_format: Format, link: float) -> Iterator[Row]:
    """Check each way, time it, and yield its line."""
    expected: np.ndarray | None = None
    alone = 0.0
    for way, engine in ways_of(system, matrix_format):
        sweeper = engine.sweeper(system, -1.0, True)
        split = isinstance(sweeper, SplitSweeper)
        if "GPUs" in way and not isinstance(sweeper, SeveralSweeper):
            raise SystemExit(f"{case}, {way}: {told(sweeper.cost.events)}")
        sweeper.run(CHECKED_SWEEPS)
        found = sweeper.values()
        if expected is None:
            expected = found
        require_equal(found, expected, f"{case}, {way}")
        count = SPLIT_SWEEPS if split else TIMED_SWEEPS
        seconds = []
        for _ in range(REPEATS):
            before = sweeper.seconds
            sweeper.run(count)
            seconds.append((sweeper.seconds - before) / count)
        median = sorted(seconds)[REPEATS // 2]
        alone = alone or median
        share = None
        if isinstance(sweeper, SplitSweeper):
            share = 100 * sweeper.travelling_bytes / median / link
        yield Row(
            *(case, system.num_states, system.matrix.num_entries, way, sweeper.cost.format),
            *(median * 1e6, alone / median, share, told(sweeper.cost.events)),
        )
        del sweeper
        cupy().get_default_memory_pool().free_all_blocks()


def colours_of(case: str, system: SweepSystem, link: float) -> Iterator[Row]:
    """Check sweeps in colours, whole and split, time them, and yield their lines."""
    expected: np.ndarray | None = None
    alone = 0.0
    quarter = 12 * system.matrix.num_entries // 4
    for way, memory in (("one GPU, colours", None), ("split, a quarter, colours", quarter)):
        engine = CudaColourEngine(0, Order.FORWARDS, most_memory=memory)
        sweeper = engine.prepared(engine.coloured(system, Order.FORWARDS), -1.0, True)
        split = isinstance(sweeper, SplitColourSweeper)
        if split is not (memory is not None):
            raise SystemExit(f"{case}, {way}: split {split}")
        sweeper.run(CHECKED_SWEEPS)
        found = sweeper.values()
        expected = found if expected is None else expected
        require_equal(found, expected, f"{case}, {way}")
        before, count = sweeper.seconds, SPLIT_SWEEPS if split else TIMED_SWEEPS
        sweeper.run(count)
        each = (sweeper.seconds - before) / count
        alone = alone or each
        share = None
        if isinstance(sweeper, SplitColourSweeper):
            share = 100 * sweeper.travelling_bytes / each / link
        yield Row(
            *(case, system.num_states, system.matrix.num_entries, way, sweeper.cost.format),
            *(each * 1e6, alone / each, share, told(sweeper.cost.events)),
        )
        del sweeper
        cupy().get_default_memory_pool().free_all_blocks()


def require_equal(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    """Leave the benchmark unless values agree with one GPU's."""
    error = np.abs(found - expected) / np.maximum(np.abs(expected), 1e-290)
    if not error.max() <= AGREE:
        raise SystemExit(f"{what}: {error.max():.1e} off one GPU's")


def powers_of(system: SweepSystem, jumps: float = JUMPS) -> PowerSum:
    """Return the expectation of a function after so many jumps of the chain with these rates."""
    matrix = system.matrix
    exits = matrix.row_sums()
    rate = float(exits.max())
    poisson = poisson_weights(jumps, TRUNCATION)
    start = np.random.default_rng(1).random(system.num_states)
    stay = 1.0 - exits / rate
    return PowerSum(SweepSystem(matrix, start), stay, rate, poisson.left, poisson.weights, 0.0)


def sums_of(case: str, system: SweepSystem, matrix_format: Format) -> Iterator[Row]:
    """Check the sum of powers on one GPU and on several, time it, and yield its lines."""
    problem = powers_of(system)
    expected: np.ndarray | None = None
    alone = 0.0
    for count in (1, *counts()):
        way = "one GPU" if count == 1 else f"{count} GPUs"
        seconds, done = [], None
        for _ in range(REPEATS):
            done = summed(problem, count, matrix_format)
            if done.sweeps != problem.last:
                raise SystemExit(f"{case}, {way}: nothing changes after {done.sweeps} sweeps")
            if len(done.cost.gpus) != count:
                raise SystemExit(f"{case}, {way}: {told(done.cost.events)}")
            expected = done.values if expected is None else expected
            require_equal(done.values, expected, f"{case}, {way}")
            seconds.append(done.sweeping_seconds / done.sweeps)
        assert done is not None
        median = sorted(seconds)[REPEATS // 2]
        alone = alone or median
        yield Row(
            *(f"{case}, sum", system.num_states, system.matrix.num_entries, way, done.cost.format),
            *(median * 1e6, alone / median, None, told(done.cost.events)),
        )
        cupy().get_default_memory_pool().free_all_blocks()


def summed(problem: PowerSum, count: int, matrix_format: Format) -> Summed:
    """Return the sum that so many GPUs make."""
    if count == 1:
        return sum_powers(problem, None, 0, matrix_format)
    return sum_on_several(problem, None, tuple(range(count)), matrix_format)


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| case | states | entries | way | format | µs a sweep | speed-up | of the link | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        share = "" if row.link_share_percent is None else f"{row.link_share_percent:.0f} %"
        lines.append(
            f"| {row.case} | {row.states:,} | {row.entries:,} | {row.way} | {row.format} "
            f"| {row.microseconds:.1f} | {row.speed_up:.2f} | {share} | {row.remark} |"
        )
    return "\n".join(lines)


@click.command()
@click.option("--tandem", "tandems", type=int, multiple=True, help="Capacities [2047].")
@click.option("--cluster", "clusters", type=int, multiple=True, help="Stations [320].")
@click.option(
    "--format",
    "name",
    type=click.Choice([str(f) for f in Format]),
    default="csr",
    show_default=True,
)
@click.option("--uniformise", is_flag=True, help="Sums of powers, of one GPU and of several.")
@click.option("--colours", is_flag=True, help="Gauss-Seidel in colours, whole and split.")
@click.option("--json", "json_file", type=click.Path(), help="Write the rows here as well.")
def main(
    tandems: tuple[int, ...],
    clusters: tuple[int, ...],
    name: str,
    uniformise: bool,
    colours: bool,
    json_file: str | None,
) -> None:
    """Print one table: one GPU, the split method, several GPUs."""
    cases = [(f"tandem {c}", tandem, c) for c in tandems or ((2047,) if not clusters else ())]
    cases += [(f"cluster {n}", cluster, n) for n in clusters or ((320,) if not tandems else ())]
    link = link_bandwidth()
    rows: list[Row] = []
    for case, made, size in cases:
        if colours:
            rows += colours_of(case, made(size), link)
        elif uniformise:
            rows += sums_of(case, made(size), Format(name))
        else:
            rows += rows_of(case, made(size), Format(name), link)
        click.echo(f"{case} done", err=True)
    click.echo(table(rows))
    click.echo(f"\n{device_summary()[0]}; pinned memory travels at {link / 1e9:.1f} GB/s")
    if json_file:
        record = {
            "command": " ".join(sys.argv),
            "date": time.strftime("%Y-%m-%d"),
            "devices": device_summary(),
            "link_bytes_a_second": link,
            "rows": [asdict(row) for row in rows],
        }
        Path(json_file).write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
