"""Sampled paths of dining philosophers: seconds, steps a second, and the answers.

    python examples/benchmarks/paths.py [-n 160]... [--paths 940000] [--steps 200]
        [--device gpu|cpu] [--strategy auto|lazy]... [--seed 1] [--json FILE]

The case of the APMC paper's Figures 3 and 5: Lehmann and Rabin's philosophers (the model that
`examples/models/philosophers.py` writes), paths of 200 steps, and 940,000 of them, which is what
ε = 10⁻² and δ = 10⁻¹⁰ ask for by the Chernoff–Hoeffding bound. Asked is a property that reads two
philosophers: that the first eats, and then or later the second. Answers of the first paths are
compared with the plain interpreter's before anything is timed. "compile" is the time to the first
path, its compiled code not in the cache; "sample" is the time of all paths, warm.

Source: G. Guirado, T. Herault, R. Lassaigne, S. Peyronnet, Distribution, approximation and
probabilistic model checking, PDMC 2005 (500 computers: 99 s for 940,000 paths).
"""

from __future__ import annotations

import json
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from bridge.reproduce.tasks.paths import philosophers
from engines.model.environment import DeviceChoice
from engines.montecarlo.plan import SynchronisationStrategy
from engines.montecarlo.reference import sample_path
from engines.montecarlo.sampler import DEFAULT_PATH_LIMIT, Sampler
from engines.montecarlo.tally import BooleanOutcomes

COMPARED = 5


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    philosophers: int
    paths: int
    steps: int
    device: str
    strategy: str
    compile_seconds: float
    sample_seconds: float
    steps_per_second: float
    estimate: float


def measure(n: int, paths: int, steps: int, device: DeviceChoice, strategy: str, seed: int) -> Row:
    """Return the times of one case, after a look at its answers."""
    program, question = philosophers(n, steps)
    begin = time.perf_counter()
    chosen = SynchronisationStrategy(strategy)
    sampler = Sampler(program, [question], seed, device, strategy=chosen)
    arrays = sampler.sample(0, COMPARED)
    compiled = time.perf_counter() - begin
    for i in range(COMPARED):
        path = sample_path(sampler.compiled.plan, [question], seed, i, DEFAULT_PATH_LIMIT)
        if path.answers[0] != arrays.booleans[0][i] or path.length != arrays.lengths[i]:
            raise SystemExit(f"path {i} of {n} philosophers differs from the interpreter's")
    sampler.run(0, min(paths, 20_000))
    begin = time.perf_counter()
    batch = sampler.run(0, paths)
    seconds = time.perf_counter() - begin
    outcome = batch.outcomes[0]
    assert isinstance(outcome, BooleanOutcomes)
    where = "gpu" if sampler.on_gpu else "cpu"
    speed = batch.lengths.total / seconds
    estimate = outcome.num_true / paths
    return Row(n, paths, steps, where, strategy, compiled, seconds, speed, estimate)


@click.command()
@click.option("-n", "numbers", type=int, multiple=True, default=(160,), show_default=True)
@click.option("--paths", default=940_000, show_default=True)
@click.option("--steps", default=200, show_default=True)
@click.option("--device", type=click.Choice(["auto", "gpu", "cpu"]), default="auto")
@click.option("--strategy", "strategies", multiple=True, default=("auto",), show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--json", "output", type=click.Path(dir_okay=False, path_type=Path))
def main(
    numbers: tuple[int, ...],
    paths: int,
    steps: int,
    device: str,
    strategies: tuple[str, ...],
    seed: int,
    output: Path | None,
) -> None:
    """Sample paths of philosophers and print a table."""
    click.echo("| philosophers | device | strategy | compile s | sample s | Msteps/s | estimate |")
    click.echo("|---|---|---|---|---|---|---|")
    rows = []
    for n in numbers:
        for strategy in strategies:
            row = measure(n, paths, steps, DeviceChoice(device), strategy, seed)
            rows.append(row)
            click.echo(
                f"| {n} | {row.device} | {strategy} | {row.compile_seconds:.2f} | "
                f"{row.sample_seconds:.3f} | {row.steps_per_second / 1e6:.1f} | "
                f"{row.estimate:.6f} |"
            )
    if output is not None:
        document = {"machine": platform.processor(), "rows": [asdict(row) for row in rows]}
        output.write_text(json.dumps(document, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
