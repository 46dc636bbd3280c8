"""Sampling in several processes: how it scales, and that killing them changes nothing.

    python examples/benchmarks/workers.py scaling [-w 1 -w 2 ...] [-n 160] [--paths N] [--json FILE]
    python examples/benchmarks/workers.py kills [-w 1 -w 2 ...] [--runs 50] [--json FILE]

Both sample Lehmann and Rabin's philosophers, the case of `paths.py`, in so many processes of this
machine, each with one thread. A run whose judgement differs from that of one process in any digit
ends the program with an error.

"scaling" takes apart where the time goes: until the processes are there ("deploy"), the first run,
in which each compiles the program, and the same paths again, warm. Its efficiency is t₁ / (w tʷ),
the relative slowdown of the paper's Figure 3(b). Two more numbers are measured for the model in
`plot_workers.py`: how long a task without work takes, there and back, and how many batches a second
this process hands out, takes in and checks.

"kills" kills up to five processes by SIGKILL during each of its runs, at random moments.
"""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from paths import philosophers

from engines.model.environment import DeviceChoice
from engines.montecarlo.cluster import run_on_cluster
from engines.montecarlo.cluster_client import OpenCluster
from engines.montecarlo.cluster_options import ClusterOptions
from engines.montecarlo.cluster_paths import Content, PathsSpec
from engines.montecarlo.methods import Judgement, SeveralMethods
from engines.montecarlo.methods_exact import ExactInterval
from engines.montecarlo.sampler import DEFAULT_PATH_LIMIT

STEPS = 200
LATENCY_TASKS = 50
SMALL_BATCHES = 400
KILL_PAUSE_S = (0.2, 2.0)
MOST_KILLED = 5
"""Of one run; else a lone worker may never come to sample a batch."""


@dataclass(frozen=True)
class Scaling:
    """How long so many processes took.

    Parameters
    ----------
    workers, paths, batch_paths
        How many.
    deploy_seconds, first_seconds, warm_seconds
        Until the processes are there; of the first run; of the second.
    batches, sampled
        Batches that the result rests on, and those that were sampled in the second run.
    task_seconds
        There and back without work, the median.
    batch_seconds
        Of this process for a batch, where paths take no time.
    """

    workers: int
    paths: int
    batch_paths: int
    deploy_seconds: float
    first_seconds: float
    warm_seconds: float
    batches: int
    sampled: int
    task_seconds: float
    batch_seconds: float


def spec_of(n: int, seed: int) -> PathsSpec:
    """Return what makes the sampler of a worker."""
    program, question = philosophers(n, STEPS)
    cpu = DeviceChoice.CPU
    return PathsSpec(
        *(program, (question,), seed, cpu, 0, DEFAULT_PATH_LIMIT, True, 1), content=Content.COUNTS
    )


def method(paths: int) -> SeveralMethods:
    """Return the method that is fed: a count, and its exact interval."""
    return SeveralMethods([ExactInterval(0.01, samples=paths)])


def in_one_process(spec: PathsSpec, paths: int) -> tuple[Judgement, float]:
    """Return the judgement on the same paths, and the seconds they took, warm."""
    sampler = spec()
    sampler.run(0, 100)
    begin = time.perf_counter()
    wanted = method(paths)
    wanted.feed(sampler.run(0, paths))
    return wanted.methods[0].result(), time.perf_counter() - begin


def same_or_exit(found: SeveralMethods, expected: Judgement) -> None:
    """Compare judgements, digit for digit."""
    judgement = found.methods[0].result()
    if judgement != expected:
        sys.exit(f"the workers' judgement {judgement} is not that of one process, {expected}")


def measure(
    spec: PathsSpec, workers: int, paths: int, batches: int, expected: Judgement
) -> Scaling:
    """Return the times of so many processes."""
    size = -(-paths // batches)
    options = ClusterOptions(batch_paths=size)
    begin = time.perf_counter()
    with OpenCluster(f"local:{workers}") as cluster:
        deployed = time.perf_counter()
        first = method(paths)
        run_on_cluster(spec, first, cluster, options)
        compiled = time.perf_counter()
        second = method(paths)
        report = run_on_cluster(spec, second, cluster, options)
        end = time.perf_counter()
        for found in (first, second):
            same_or_exit(found, expected)
        task_s = task_seconds(cluster)
        few = method(SMALL_BATCHES)
        small = time.perf_counter()
        run_on_cluster(spec, few, cluster, ClusterOptions(batch_paths=1))
        batch_s = (time.perf_counter() - small) / SMALL_BATCHES
    return Scaling(
        *(workers, paths, size, deployed - begin, compiled - deployed, end - compiled),
        *(report.batches, report.sampled, task_s, batch_s),
    )


def task_seconds(cluster: OpenCluster) -> float:
    """Return how long a task without work takes, there and back."""
    seconds = []
    for i in range(LATENCY_TASKS):
        begin = time.perf_counter()
        cluster.client.submit(abs, i, pure=False).result()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


@dataclass(frozen=True)
class KilledRun:
    """A run during which processes were killed."""

    workers: int
    killed: int
    lost: int
    repeated: int
    cut_off: int
    seconds: float
    estimate: float


def kill_at_random(
    cluster: OpenCluster, chosen: random.Random, stop: threading.Event, killed: list[int]
) -> None:
    """Kill -9 processes of a cluster, those that have just been started included."""
    while len(killed) < MOST_KILLED and not stop.wait(chosen.uniform(*KILL_PAUSE_S)):
        nannies: list[Any] = list(cluster.client.cluster.workers.values())
        running = sorted(nanny.pid for nanny in nannies if nanny.pid)
        if running:
            killed.append(chosen.choice(running))
            os.kill(killed[-1], signal.SIGKILL)


def run_with_kills(
    spec: PathsSpec, workers: int, paths: int, batches: int, expected: Judgement, seed: int
) -> KilledRun:
    """Return what happened during one run."""
    options = ClusterOptions(batch_paths=-(-paths // batches), patience_s=120.0)
    wanted, stop, killed = method(paths), threading.Event(), list[int]()
    with OpenCluster(f"local:{workers}") as cluster:
        arguments = (cluster, random.Random(seed), stop, killed)
        killer = threading.Thread(target=kill_at_random, args=arguments)
        begin = time.perf_counter()
        killer.start()
        try:
            report = run_on_cluster(spec, wanted, cluster, options)
        finally:
            stop.set()
            killer.join()
        seconds = time.perf_counter() - begin
    same_or_exit(wanted, expected)
    estimate = wanted.methods[0].result().estimate
    counts = (len(killed), report.lost, report.repeated, len(report.cut_off))
    return KilledRun(workers, *counts, seconds, estimate)


def write(file: Path | None, content: dict[str, Any]) -> None:
    """Keep the measurements."""
    if file is not None:
        content = {"cores": os.cpu_count(), "steps": STEPS, **content}
        file.write_text(json.dumps(content, indent=1), encoding="utf-8")


@click.group()
def main() -> None:
    """Sample philosophers in several processes of this machine."""


@main.command()
@click.option("-w", "--workers", multiple=True, default=(1, 2, 4, 8), show_default=True)
@click.option("-n", "number", default=160, show_default=True, help="Philosophers.")
@click.option("--paths", default=100_000, show_default=True)
@click.option("--batches", default=200, show_default=True, help="How many the paths are cut into.")
@click.option("--seed", default=1, show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path))
def scaling(
    workers: tuple[int, ...], number: int, paths: int, batches: int, seed: int, file: Path | None
) -> None:
    """Measure the time of numbers of processes."""
    spec = spec_of(number, seed)
    expected, alone = in_one_process(spec, paths)
    print(f"{number} philosophers, {paths:,} paths of up to {STEPS} steps; {os.cpu_count()} cores")
    print(f"one process without a cluster: {alone:.2f} s, estimate {expected.estimate}\n")
    print(
        "| workers | deploy, s | first run, s | warm run, s | efficiency | batches | sampled | "
        "task, ms | this process, ms a batch |\n|---|---|---|---|---|---|---|---|---|",
        flush=True,
    )
    rows = []
    for count in workers:
        row = measure(spec, count, paths, batches, expected)
        rows.append(row)
        efficiency = rows[0].workers * rows[0].warm_seconds / (count * row.warm_seconds)
        print(
            f"| {count} | {row.deploy_seconds:.2f} | {row.first_seconds:.2f} | "
            f"{row.warm_seconds:.2f} | {efficiency:.2f} | {row.batches} | {row.sampled} | "
            f"{row.task_seconds * 1e3:.2f} | {row.batch_seconds * 1e3:.2f} |",
            flush=True,
        )
    content = {"philosophers": number, "alone_seconds": alone, "rows": list(map(asdict, rows))}
    write(file, content)


@main.command()
@click.option("--runs", default=50, show_default=True)
@click.option("-w", "--workers", multiple=True, default=(1, 2, 4, 8), help="Taken in turn.")
@click.option("-n", "number", default=20, show_default=True, help="Philosophers.")
@click.option("--paths", default=400_000, show_default=True)
@click.option("--batches", default=80, show_default=True, help="How many the paths are cut into.")
@click.option("--seed", default=1, show_default=True, help="Of the paths, and of the killing.")
@click.option("--json", "file", type=click.Path(path_type=Path))
def kills(
    runs: int,
    workers: tuple[int, ...],
    number: int,
    paths: int,
    batches: int,
    seed: int,
    file: Path | None,
) -> None:
    """Kill processes during runs, and compare what comes out."""
    spec = spec_of(number, seed)
    expected, alone = in_one_process(spec, paths)
    print(f"{number} philosophers, {paths:,} paths, one process: {alone:.2f} s")
    print(f"its estimate: {expected.estimate}\n")
    print("| run | workers | killed | workers lost | batches again | cut off | s | estimate |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    rows = []
    for i in range(runs):
        count = workers[i % len(workers)]
        row = run_with_kills(spec, count, paths, batches, expected, seed + i)
        rows.append(row)
        print(
            f"| {i + 1} | {count} | {row.killed} | {row.lost} | {row.repeated} | {row.cut_off} | "
            f"{row.seconds:.1f} | {row.estimate} |",
            flush=True,
        )
        write(file, {"philosophers": number, "paths": paths, "rows": list(map(asdict, rows))})
    print(f"\n{runs} runs, {sum(row.killed for row in rows)} processes killed, one estimate")


if __name__ == "__main__":
    main()
