"""Draw how sampling scales with the number of workers: measured, modelled, and the paper's.

    python examples/benchmarks/plot_workers.py FILE PICTURE [--paths 940000]

FILE is what `workers.py scaling --json FILE` measured. The model takes its constants from there and
adds up, for w workers:

    deploy + compile + max(n c (1 + s + 2 b w / n) / w + b c (1 - 1/w) / 2 + l,  m (n / b) (1 + s))

n paths of c seconds each, in batches of b paths. Of them the share s is sampled twice, and so is
the first batch of each worker, whence 2 b w / n with the batches under way when the last path is
there (over-generation). Half a batch is waited for in the end, and a task takes l there and back.
However many workers there are, this process needs m for each batch. "deploy" is a straight line
through what was measured for processes of one machine; for a cluster that runs already it is 0.

The paper's curve is made of the two times that its section 4 states for 500 computers: 99 s for
940,000 paths and 446 s for ten times as many. The difference is nine times the sampling, so that
38.6 s of the 99 s are sampling and 60.4 s deployment, by a binary tree: 6.7 s a level.

Source: G. Guirado, T. Herault, R. Lassaigne, S. Peyronnet, Distribution, approximation and
probabilistic model checking, PDMC 2005, Figures 3 and 4.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from plot_sweeps import pyplot

from engines.montecarlo.cluster_options import ClusterOptions

WORKERS = [2**k for k in range(13)]
LEAST_BATCHES = 4
"""For each worker; and no batch takes longer than half a second. So it is with -simcluster."""
LONGEST_BATCH_S = 0.5
PAPER_COMPUTERS, PAPER_PATHS = 500, 940_000
PAPER_S, PAPER_TENFOLD_S = 99.0, 446.0
MEASURED, RUNNING, DEPLOYED, PAPER = "#0072b2", "#009e73", "#56b4e9", "#d55e00"


@dataclass(frozen=True)
class Constants:
    """What was measured, in seconds.

    Parameters
    ----------
    path, task, batch
        Of a path; of a task there and back; of this process for a batch.
    compiling
        Of a worker before its first path.
    deploy, deploy_each
        Of the deployment: for any number of processes, and for each.
    """

    path: float
    task: float
    batch: float
    compiling: float
    deploy: float
    deploy_each: float


def constants_of(record: dict[str, Any]) -> Constants:
    """Return the constants of the model."""
    rows = record["rows"]
    workers = [row["workers"] for row in rows]
    each, one = np.polyfit(workers, [row["deploy_seconds"] for row in rows], 1)
    return Constants(
        path=record["alone_seconds"] / rows[0]["paths"],
        task=float(np.median([row["task_seconds"] for row in rows])),
        batch=float(np.median([row["batch_seconds"] for row in rows])),
        compiling=max(0.0, min(row["first_seconds"] - row["warm_seconds"] for row in rows)),
        deploy=max(0.0, float(one)),
        deploy_each=max(0.0, float(each)),
    )


def sampling_seconds(constants: Constants, paths: int, workers: int) -> float:
    """Return how long so many workers sample, by the model."""
    share = ClusterOptions().confirmed_share
    size = min(LONGEST_BATCH_S / constants.path, paths / (LEAST_BATCHES * workers))
    twice = 1 + share + 2 * size * workers / paths
    work = paths * constants.path * twice / workers
    waiting = size * constants.path * (1 - 1 / workers) / 2 + constants.task
    return max(work + waiting, constants.batch * paths / size * (1 + share))


def paper_seconds(paths: int, workers: int) -> float:
    """Return how long the paper's workers take, by the two times that it states."""
    sampling = (PAPER_TENFOLD_S - PAPER_S) / 9
    level = (PAPER_S - sampling) / math.log2(PAPER_COMPUTERS)
    work = sampling * PAPER_COMPUTERS / PAPER_PATHS
    return level * math.log2(workers) + work * paths / workers


def draw(record: dict[str, Any], paths: int, picture: str) -> None:
    """Draw seconds, and the relative slowdown of the paper's Figure 3(b)."""
    constants = constants_of(record)
    running = [constants.compiling + sampling_seconds(constants, paths, w) for w in WORKERS]
    deployed = [
        constants.deploy + constants.deploy_each * w + seconds
        for w, seconds in zip(WORKERS, running, strict=True)
    ]
    paper = [paper_seconds(paths, w) for w in WORKERS]
    rows = record["rows"]
    scale = paths / rows[0]["paths"]
    counts = [row["workers"] for row in rows]
    measured = [row["warm_seconds"] * scale for row in rows]
    plt = pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    curves = [
        (WORKERS, paper, "s--", PAPER, "paper: its times for 500 computers, and a binary tree"),
        (WORKERS, deployed, "^-", DEPLOYED, "model: processes that are started one by one"),
        (WORKERS, running, "o-", RUNNING, "model: a cluster that runs already"),
        (counts, measured, "D:", MEASURED, f"measured, warm, on {record['cores']} cores"),
    ]
    for workers, seconds, style, colour, label in curves:
        left.plot(workers, seconds, style, color=colour, label=label, ms=5, lw=1.4)
        slowdown = [seconds[0] / (w * s) for w, s in zip(workers, seconds, strict=True)]
        right.plot(workers, slowdown, style, color=colour, ms=5, lw=1.4)
    left.plot([PAPER_COMPUTERS], [PAPER_S * paths / PAPER_PATHS], "*", color="black", ms=13)
    left.annotate(
        "paper: 99 s", (PAPER_COMPUTERS, PAPER_S * paths / PAPER_PATHS), xytext=(-8, -14),
        ha="right", textcoords="offset points", fontsize=9,
    )  # fmt: skip
    philosophers, steps = record["philosophers"], record["steps"]
    left.set(
        xscale="log", yscale="log", xlabel="workers", ylabel="seconds",
        title=f"{paths:,} paths of {philosophers} philosophers, {steps} steps",
    )  # fmt: skip
    right.set(
        xscale="log", ylim=(0, 1.15), xlabel="workers", ylabel="t(1) / (w t(w))",
        title="relative slowdown: 1 is perfect",
    )  # fmt: skip
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    figure.savefig(picture, dpi=150)


@click.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.argument("picture")
@click.option("--paths", default=PAPER_PATHS, show_default=True)
def main(file: Path, picture: str, paths: int) -> None:
    """Draw the figure, as PNG or SVG, and print the constants."""
    record = json.loads(file.read_text(encoding="utf-8"))
    print(constants_of(record))
    print("| workers | model: cluster runs, s | paper, s |\n|---|---|---|")
    constants = constants_of(record)
    for workers in WORKERS:
        ours = constants.compiling + sampling_seconds(constants, paths, workers)
        print(f"| {workers} | {ours:.2f} | {paper_seconds(paths, workers):.1f} |")
    draw(record, paths, picture)


if __name__ == "__main__":
    main()
