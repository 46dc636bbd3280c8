"""Every matrix format on the GPU: bytes, microseconds and memory of a sweep, beside CSR and a copy.

    python examples/benchmarks/formats.py [--tandem 511] [--cluster 122] [--herman 15] [--json FILE]
        [--model FILE[:CONSTANTS]]

The matrices of tandem, cluster and herman are made here, straight from the models' descriptions, so
neither PRISM nor Storm is needed; any other model is built by PRISM. Each format's iterate is
compared with CSR's before its time is shown. A sweep is one of Jacobi's with its test of
convergence: for the balance equations of tandem, cluster and other CTMCs, and for the expected
steps of herman's ring and of other DTMCs, MDPs the longest, to a state that is not left.
Microseconds are medians by CUDA events, warm; the copy is that of the solution vector, the least
that any sweep must move.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from engines.arrays import index_dtype
from engines.cuda.bandwidth import copy_bandwidth
from engines.cuda.driver import cupy, device_summary
from engines.cuda.engine import CudaEngine
from engines.errors import UnsupportedError
from engines.model.choice import Format
from engines.model.csr import CsrMatrix
from engines.model.explicit import ModelKind
from engines.systems.one_sided import Direction, Scaling, SweepSystem

CHECKED_SWEEPS = 200
REPEATS = 7
TIMED_SECONDS = 0.05
AGREE = 1e-10


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    case: str
    states: int
    entries: int
    wanted: str
    format: str
    kernel: str
    bytes_a_sweep: int
    microseconds: float
    copy_share_percent: float
    times_the_vector_copy: float
    megabytes: float
    setup_milliseconds: float
    remark: str
    estimates: str


def from_triples(size: int, triples: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> CsrMatrix:
    """Return the matrix of rows, columns and values, rows and columns ascending."""
    row, column, value = (np.concatenate(part) for part in zip(*triples, strict=True))
    order = np.lexsort((column, row))
    offsets = np.zeros(size + 1, dtype=index_dtype(len(value)))
    np.cumsum(np.bincount(row, minlength=size), out=offsets[1:])
    return CsrMatrix(offsets, column[order].astype(np.int32), value[order].astype(float), size)


def tandem(capacity: int) -> SweepSystem:
    """Return the balance equations of an M/Cox(2)/1 queue before an M/M/1 queue.

    H. Hermanns, J. Meyer-Kayser, M. Siegle, NSMC 1999: arrivals at 4 c, phases at 2, a second phase
    with probability 0.1, service at 4.
    """
    width = capacity + 1
    size = (2 * capacity + 1) * width
    state = np.arange(size, dtype=np.int32)
    block, second = state // width, state % width
    # Block 0 is the empty first queue; then come its two phases for each number of customers.
    first, phase = (block + 1) // 2, np.where(block > 0, (block - 1) % 2, 0)
    before = np.where(first > 1, 2 * first - 3, 0)
    handed = (first > 0) & (second < capacity)
    # Columns ascend: handed over, served, a second phase, arrival.
    moves = (
        (handed, before * width + second + 1, np.where(phase == 0, 1.8, 2.0)),
        (second > 0, state - 1, 4.0),
        ((first > 0) & (phase == 0), state + width, 0.2),
        (first < capacity, (1 + 2 * first + phase) * width + second, 4.0 * capacity),
    )
    there, columns = (np.stack([move[i] for move in moves], axis=1) for i in range(2))
    rates = np.stack([np.broadcast_to(move[2], size) for move in moves], axis=1)
    offsets = np.zeros(size + 1, dtype=index_dtype(there.size))
    np.cumsum(there.sum(axis=1), out=offsets[1:])
    matrix = CsrMatrix(offsets, columns[there].astype(np.int32), rates[there], size)
    return SweepSystem(matrix, np.full(size, 1.0 / size), scaling=Scaling.BALANCE)


def cluster(stations: int) -> SweepSystem:
    """Return the balance equations of two sub-clusters of workstations with one repair unit.

    B. Haverkort, H. Hermanns, J.-P. Katoen, SRDS 2000.
    """
    shape = (stations + 1, stations + 1, 6, 2, 2, 2)
    left, right, job, left_switch, right_switch, backbone = (
        axis.ravel() for axis in np.indices(shape, dtype=np.int32)
    )
    broken = (left < stations, right < stations, left_switch == 0, right_switch == 0, backbone == 0)
    possible = job == 0
    for number, needs in enumerate(broken, 1):
        possible |= (job == number) & needs
    number_of = np.cumsum(possible) - 1
    size = int(possible.sum())
    steps = np.array([np.prod(shape[i + 1 :], dtype=np.int64) for i in range(6)])
    place = np.arange(len(job))
    triples = []

    def move(where: np.ndarray, change: dict[int, np.ndarray | int], rate: np.ndarray | float):
        where = where & possible
        target = place[where] + sum(
            steps[axis] * (np.broadcast_to(by, job.shape)[where]) for axis, by in change.items()
        )
        rates = np.broadcast_to(rate, job.shape)[where]
        triples.append((number_of[place[where]], number_of[target], rates))

    parts = (left, right, left_switch, right_switch, backbone)
    axes, mended = (0, 1, 3, 4, 5), (2.0, 2.0, 1 / 4, 1 / 4, 1 / 8)
    breaks = (left / 500, right / 500, 1 / 4000, 1 / 4000, 1 / 5000)
    for i, (part, axis, rate) in enumerate(zip(parts, axes, breaks, strict=True)):
        move(part > 0, {axis: -1}, rate)
        move((job == 0) & broken[i], {2: i + 1}, 10.0)
        move(job == i + 1, {axis: 1, 2: -job}, mended[i])
    matrix = from_triples(size, triples)
    return SweepSystem(matrix, np.full(size, 1.0 / size), scaling=Scaling.BALANCE)


def herman(processes: int) -> SweepSystem:
    """Return the expected steps of a ring to one token, of all states with more.

    T. Herman, Information Processing Letters 35(2), 1990.
    """
    size = 1 << processes
    state = np.arange(size, dtype=np.int64)
    to_the_right = (state >> 1) | ((state & 1) << (processes - 1))
    # A process that equals its left neighbour holds a token and draws a bit; others copy.
    tokens = ~(state ^ to_the_right) & (size - 1)
    held = sum((tokens >> bit) & 1 for bit in range(processes))
    row, column = state, to_the_right & ~tokens
    for bit in range(processes):
        drawn = (tokens[row] >> bit & 1).astype(bool)
        again = row[drawn], column[drawn] | (1 << bit)
        row, column = (np.concatenate(pair) for pair in zip((row, column), again, strict=True))
    matrix = from_triples(size, [(row, column, 0.5 ** held[row].astype(float))])
    unstable = np.flatnonzero(held != 1).astype(np.int32)
    return SweepSystem(
        *(matrix.select_rows(unstable), np.zeros(size), np.ones(len(unstable)), unstable),
        scaling=Scaling.DIAGONAL,
    )


def of_model(word: str) -> SweepSystem:
    """Return the system of a model that PRISM builds: of a CTMC that is one component, or of steps.

    Parameters
    ----------
    word
        The file, and behind a colon its constants.
    """
    import bridge

    file, _, constants = word.partition(":")
    values = dict(item.split("=") for item in constants.split(",")) if constants else {}
    with bridge.open(file, values, device="cpu", symbolic=True) as session:
        model = session.model
    size, matrix = model.num_states, model.matrix
    if model.kind is ModelKind.CTMC:
        return SweepSystem(matrix, np.full(size, 1.0 / size), scaling=Scaling.BALANCE)
    groups = model.row_group_offsets
    # In each row an entry leads elsewhere, or the state can stay for good.
    rows = matrix.row_of_entry()
    elsewhere = matrix.columns != model.states_of_rows()[rows]
    leaves = np.bincount(rows, elsewhere, matrix.num_rows)
    moves = leaves > 0 if groups is None else np.minimum.reduceat(leaves, groups[:-1]) > 0
    states = np.flatnonzero(moves).astype(np.int32)
    start = np.zeros(size)
    if groups is None:
        ones = np.ones(len(states))
        chosen = matrix.select_rows(states)
        return SweepSystem(chosen, start, ones, states, scaling=Scaling.DIAGONAL)
    kept = np.flatnonzero(model.rows_of(moves))
    ends = np.append(0, np.cumsum(np.diff(groups)[states])).astype(groups.dtype)
    return SweepSystem(
        *(matrix.select_rows(kept), start, np.ones(len(kept)), states),
        group_offsets=ends,
        direction=Direction.MAXIMISE,
    )


def name_of(word: str) -> str:
    """Return what the table calls a model: its file's name and its constants."""
    file, _, constants = word.partition(":")
    return f"{Path(file).stem} {constants}".strip()


def vector_copy_seconds(states: int) -> float:
    """Return the median time of copying a vector of so many doubles on the device."""
    cp = cupy()
    seconds = []
    with cp.cuda.Stream(non_blocking=True) as stream:
        source, target = (cp.zeros(states) for _ in range(2))
        stream.synchronize()
        count = max(10, int(2e8 / states))
        for _ in range(REPEATS):
            began, ended = cp.cuda.Event(), cp.cuda.Event()
            began.record(stream)
            for _ in range(count):
                target.data.copy_from_device_async(source.data, source.nbytes, stream)
            ended.record(stream)
            ended.synchronize()
            seconds.append(cp.cuda.get_elapsed_time(began, ended) / 1e3 / count)
    return sorted(seconds)[REPEATS // 2]


def measured(
    case: str, system: SweepSystem, wanted: Format, expected: np.ndarray | None, copy: float
) -> tuple[Row, np.ndarray]:
    """Check a format, time it, and return its line with its iterate."""
    cp = cupy()
    pool = cp.cuda.MemoryPool()
    with cp.cuda.using_allocator(pool.malloc):
        began = time.perf_counter()
        sweeper = CudaEngine(0, wanted).sweeper(system, -1.0, True)
        setup = time.perf_counter() - began
        sweeper.run(CHECKED_SWEEPS)
        found = sweeper.values()
        if expected is not None:
            error = np.abs(found - expected) / np.maximum(np.abs(expected), 1e-290)
            if not error.max() <= AGREE:
                raise SystemExit(f"{case}, {wanted}: {error.max():.1e} off CSR's iterate")
        each = sweeper.seconds / CHECKED_SWEEPS
        count = int(min(max(128, TIMED_SECONDS / each), 4096)) // 64 * 64
        seconds = []
        for _ in range(REPEATS):
            before = sweeper.seconds
            sweeper.run(count)
            seconds.append((sweeper.seconds - before) / count)
        used = pool.used_bytes()
    median = sorted(seconds)[REPEATS // 2]
    cost = sweeper.cost
    row = Row(
        *(case, system.num_states, system.matrix.num_entries, str(wanted), cost.format),
        *(cost.kernel, cost.bytes_per_sweep, median * 1e6),
        *(100 * cost.bytes_per_sweep / median / copy_bandwidth(0), median / copy),
        *(used / 1e6, setup * 1e3, cost.remark, cost.estimates),
    )
    return row, found


def rows_of(case: str, system: SweepSystem, formats: list[Format]) -> Iterator[Row]:
    """Yield a line for CSR, for each other format, and for what `auto` takes."""
    copy = vector_copy_seconds(system.num_states)
    row, expected = measured(case, system, Format.CSR, None, copy)
    yield row
    for wanted in formats:
        if wanted is Format.CSR:
            continue
        try:
            yield measured(case, system, wanted, expected, copy)[0]
        except UnsupportedError as error:
            click.echo(f"{case}, {wanted}: {error}", err=True)


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| case | states | entries | format | kernel | MB a sweep | µs a sweep | of copy bandwidth "
        "| × vector copy | device MB | set-up ms |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        used = row.wanted if row.wanted == row.format else f"{row.wanted}: {row.format}"
        lines.append(
            f"| {row.case} | {row.states:,} | {row.entries:,} | {used} | {row.kernel} "
            f"| {row.bytes_a_sweep / 1e6:.2f} | {row.microseconds:.2f} "
            f"| {row.copy_share_percent:.0f} % | {row.times_the_vector_copy:.2f} "
            f"| {row.megabytes:.0f} | {row.setup_milliseconds:.0f} |"
        )
    return "\n".join(lines)


@click.command()
@click.option("--tandem", "tandems", type=int, multiple=True, help="Capacities [255 511 1023].")
@click.option("--cluster", "clusters", type=int, multiple=True, help="Stations [122 230].")
@click.option("--herman", "rings", type=int, multiple=True, help="Processes [13].")
@click.option("--model", "models", multiple=True, help="Built by PRISM: FILE[:NAME=VALUE,...].")
@click.option(
    "--format",
    "formats",
    type=click.Choice([str(f) for f in Format]),
    multiple=True,
    help="Formats beside csr [all].",
)
@click.option("--json", "json_file", type=click.Path(), help="Write the rows here as well.")
def main(
    tandems: tuple[int, ...],
    clusters: tuple[int, ...],
    rings: tuple[int, ...],
    models: tuple[str, ...],
    formats: tuple[str, ...],
    json_file: str | None,
) -> None:
    """Print one table of formats and cases; sizes that are named replace all by default."""
    if not (tandems or clusters or rings or models):
        tandems, clusters, rings = (255, 511, 1023), (122, 230), (13,)
    makers: list[tuple[str, Callable[[Any], SweepSystem], Any]] = [
        *((f"tandem {size}", tandem, size) for size in tandems),
        *((f"cluster {size}", cluster, size) for size in clusters),
        *((f"herman {size}", herman, size) for size in rings),
        *((name_of(word), of_model, word) for word in models),
    ]
    wanted = [Format(name) for name in formats] or list(Format)
    rows: list[Row] = []
    for case, make, size in makers:
        rows.extend(rows_of(case, make(size), wanted))
        click.echo(f"{case} done; {rows[-1].estimates}", err=True)
    click.echo(table(rows))
    for row in rows:
        if row.remark:
            click.echo(f"{row.case}, {row.wanted}: {row.remark}")
    if json_file:
        record = {
            "command": " ".join(sys.argv),
            "date": time.strftime("%Y-%m-%d"),
            "device": device_summary()[0].partition(": ")[2].partition(",")[0],
            "copy_bytes_a_second": copy_bandwidth(0),
            "rows": [asdict(row) for row in rows],
        }
        Path(json_file).write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
