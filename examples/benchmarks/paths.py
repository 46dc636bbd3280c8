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

from engines.environment import DeviceChoice
from engines.montecarlo.expressions import Binary, BinaryOperator, Expression, Literal, Type
from engines.montecarlo.expressions import Variable as VariableValue
from engines.montecarlo.plan import SynchronisationStrategy
from engines.montecarlo.program import (
    Assignment,
    Command,
    ModelKind,
    Module,
    Program,
    Update,
    VariableDeclaration,
)
from engines.montecarlo.questions import Monitor
from engines.montecarlo.reference import sample_path
from engines.montecarlo.sampler import DEFAULT_PATH_LIMIT, Sampler
from engines.montecarlo.tally import BooleanOutcomes

COMPARED = 5
THINKS, DRAWS, WAITS_LEFT, WAITS_RIGHT, HAS_LEFT, HAS_RIGHT, EATS = range(7)


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


def philosophers(n: int) -> Program:
    """Return the program of `n` philosophers."""
    modules = []
    for i in range(n):
        own = VariableValue(i, Type.INT)
        left, right = ((i + by) % n for by in (-1, 1))
        left_is_free = _compare(left, BinaryOperator.LESS, HAS_RIGHT)
        left_is_taken = _compare(left, BinaryOperator.GREATER_EQUAL, HAS_RIGHT)
        right_is_free = _both(
            _compare(right, BinaryOperator.NOT_EQUAL, HAS_LEFT),
            _compare(right, BinaryOperator.NOT_EQUAL, EATS),
        )
        right_is_taken = Binary(
            BinaryOperator.OR,
            _compare(right, BinaryOperator.EQUAL, HAS_LEFT),
            _compare(right, BinaryOperator.EQUAL, EATS),
        )
        moves: list[tuple[int, Expression | None, tuple[int, ...]]] = [
            (THINKS, None, (DRAWS,)),
            (DRAWS, None, (WAITS_LEFT, WAITS_RIGHT)),
            (WAITS_LEFT, left_is_free, (HAS_LEFT,)),
            (WAITS_RIGHT, right_is_free, (HAS_RIGHT,)),
            (HAS_LEFT, right_is_free, (EATS,)),
            (HAS_LEFT, right_is_taken, (DRAWS,)),
            (HAS_RIGHT, left_is_free, (EATS,)),
            (HAS_RIGHT, left_is_taken, (DRAWS,)),
            (EATS, None, (THINKS,)),
        ]
        commands = []
        for source, condition, targets in moves:
            here: Expression = Binary(BinaryOperator.EQUAL, own, Literal(source))
            weight = Literal(1.0 / len(targets))
            updates = tuple(Update((Assignment(i, Literal(x)),), weight) for x in targets)
            commands.append(Command(here if condition is None else _both(here, condition), updates))
        modules.append(Module(f"Philosopher{i + 1}", tuple(commands)))
    variables = tuple(VariableDeclaration(f"p{i + 1}", Type.INT, 0, 6, 0) for i in range(n))
    return Program(ModelKind.DTMC, variables, tuple(modules))


def _compare(philosopher: int, operator: BinaryOperator, state: int) -> Expression:
    return Binary(operator, VariableValue(philosopher, Type.INT), Literal(state))


def _both(first: Expression, second: Expression) -> Expression:
    return Binary(BinaryOperator.AND, first, second)


def both_eat(steps: int) -> Monitor:
    """Return whether the first eats within so many steps, and then or later the second."""
    atoms = tuple(_compare(i, BinaryOperator.EQUAL, EATS) for i in (0, 1))
    transitions = ((0, 1, 0, 2), (1, 1, 2, 2), (2, 2, 2, 2))
    return Monitor(atoms, transitions, (2, 2, 1), (False, False, True), 0, steps + 1)


def measure(n: int, paths: int, steps: int, device: DeviceChoice, strategy: str, seed: int) -> Row:
    """Return the times of one case, after a look at its answers."""
    program, question = philosophers(n), both_eat(steps)
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
