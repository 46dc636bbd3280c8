"""Strong components by the algorithm of the 2014 paper in its variants, beside ours, on one GPU.

    python examples/benchmarks/component_variants.py [--scale X] [--only NAME ...]
        [--variant "F0,7" ...] [--json FILE]

The graphs are those of `components.py`, of the structure and, at `--scale 1`, the size of the
paper's ten. F i,j makes i search iterations a launch with a cache in shared memory, over rows
interleaved up to out-degree j; "nh" is without the kernel that makes a step of both searches in one
scan; the last variant searches backwards without a transposed graph. All labels are compared before
a time is shown; times are of the decomposition, the graph on the device.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from bridge.reproduce.forward_backward import VARIANTS, ForwardBackward
from bridge.reproduce.graph_families import GENERATED
from bridge.reproduce.graphs import generate
from bridge.reproduce.published import decomposition_2014
from engines.model.explicit import ExplicitModel

PUBLISHED = {"F0,1": "f01", "F0,7": "gpu_scc", "F3,1": "f31", "F3,7": "f37", "F0,1-nh": "f01_nh"}
OURS = "ours"
REPEATS = 3


def algorithms(model: ExplicitModel, wanted: tuple[str, ...]) -> dict[str, Callable[[], Any]]:
    """Return what makes the graph of each algorithm ready, and then decomposes it."""
    from engines.cuda.graph import CudaGraph
    from engines.cuda.graph_tuning import GraphTuning

    def ours() -> Callable[[], Any]:
        graph = CudaGraph(model, tuning=GraphTuning(kept_share=1))
        states = np.ones(model.num_states, dtype=np.bool_)
        return lambda: graph.strong_components(states)

    found: dict[str, Callable[[], Any]] = {OURS: ours}
    for name in wanted:
        found[name] = lambda name=name: ForwardBackward(model, VARIANTS[name]).strong_components
    return found


def measured(model: ExplicitModel, ready: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the seconds of each algorithm, after the comparison of its labels."""
    seconds: dict[str, float] = {}
    first: tuple[np.ndarray, int] | None = None
    for name, prepare in ready.items():
        decompose = prepare()
        labels, count = decompose()
        first = first or (labels, count)
        if count != first[1] or not np.array_equal(labels, first[0]):
            raise click.ClickException(
                f"{name} finds {count} components of {model.num_states} states, others {first[1]}"
            )
        times = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            decompose()
            times.append(time.perf_counter() - began)
        seconds[name] = statistics.median(times)
    return seconds


def table(rows: list[dict[str, Any]], names: tuple[str, ...]) -> str:
    """Return the rows as a Markdown table, the paper's seconds behind a slash."""
    every = (OURS, *names)
    lines = [f"| graph | states | {' | '.join(every)} |", "|---" * (2 + len(every)) + "|"]
    for row in rows:
        paper = decomposition_2014().row(family=row["family"]) or {}
        cells = []
        for name in every:
            theirs = paper.get(PUBLISHED.get(name, ""))
            beside = "" if theirs is None else f" / {theirs:g}"
            cells.append(f"{row['seconds'][name]:.3g}{beside}")
        lines.append(f"| {row['family']} | {row['states']:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


@click.command()
@click.option("--scale", default=0.01, show_default=True, help="1 is the size in the paper.")
@click.option("--only", multiple=True, type=click.Choice(list(GENERATED)), help="These families.")
@click.option(
    "--variant", "chosen", multiple=True, type=click.Choice(list(VARIANTS)), help="These variants."
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path))
def main(
    scale: float, only: tuple[str, ...], chosen: tuple[str, ...], json_file: Path | None
) -> None:
    """Print one table: ours, and the paper's variants; seconds, the paper's own behind a slash."""
    names = chosen or tuple(VARIANTS)
    rows: list[dict[str, Any]] = []
    for family in only or tuple(GENERATED):
        model = generate(GENERATED[family](scale))
        seconds = measured(model, algorithms(model, names))
        rows.append({"family": family, "states": model.num_states, "seconds": seconds})
        click.echo(f"{family} done", err=True)
    click.echo(table(rows, names))
    if json_file is not None:
        json_file.write_text(json.dumps({"scale": scale, "rows": rows}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
