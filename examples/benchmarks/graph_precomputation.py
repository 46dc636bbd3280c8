"""prob0 and prob1 on the CPU and on the GPU, beside the bytes that must be read.

    python examples/benchmarks/graph_precomputation.py [FILE.umb ...] [--label NAME]
        [--states N] [--device gpu|cpu] [--json FILE]

Without files: a grid such as a tandem queue's (states far apart), a line (nothing to do at once), a
random chain and a random MDP (states close together). The sets of both devices are compared before
anything is shown. "First" is the first question about a model, its preparation included: edges
turned round, and for the GPU copied. "Again" is the median of the questions after it, from masks on
the host to a mask on the host. The floor is the time in which the device copies the fewest bytes
that a set takes: each edge, each state's offset and each row's state once.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from engines.devices.graph import operations_of
from engines.graph.prob01 import prob0, prob1
from engines.model.csr import CsrMatrix
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.systems.one_sided import Direction

REPEATS = 7


@dataclass(frozen=True)
class Row:
    """One question about one model; seconds."""

    model: str
    states: int
    edges: int
    question: str
    members: int
    cpu_first: float
    cpu_again: float
    gpu_first: float | None = None
    gpu_again: float | None = None
    floor: float | None = None
    rounds: int = 0
    note: str = ""

    def __str__(self) -> str:
        line = f"{self.model:12} {self.question:9} {self.members:>9} of {self.states} states, "
        line += f"{self.edges} edges; ms: CPU {self.cpu_first * 1e3:.1f} first, "
        line += f"{self.cpu_again * 1e3:.2f} again"
        if self.gpu_first is None or self.gpu_again is None or self.floor is None:
            return line
        line += f"; GPU {self.gpu_first * 1e3:.1f} first, {self.gpu_again * 1e3:.3f} again "
        line += f"({self.cpu_again / self.gpu_again:.1f}x; {self.rounds} rounds; floor "
        line += f"{self.floor * 1e3:.3f}, {self.gpu_again / self.floor:.0f} times that)"
        return f"{line}; {self.note}" if self.note else line


def grid(states: int) -> ExplicitModel:
    """Return a CTMC such as a tandem queue's: one arrives, moves on, leaves."""
    side = int(states**0.5)
    first, second = (axis.ravel() for axis in np.indices((side, side)))
    moves = [
        (first < side - 1, 1, 0),
        ((first > 0) & (second < side - 1), -1, 1),
        (second > 0, 0, -1),
    ]
    sources, targets = [], []
    for possible, to_first, to_second in moves:
        here = np.flatnonzero(possible)
        sources.append(here)
        targets.append(here + to_first * side + to_second)
    return model_of(ModelKind.CTMC, np.concatenate(sources), np.concatenate(targets), side * side)


def line(states: int) -> ExplicitModel:
    """Return a DTMC of sure steps downwards; state 0 absorbs."""
    sources = np.arange(states)
    return model_of(ModelKind.DTMC, sources, np.maximum(sources - 1, 0), states)


def random_chain(states: int) -> ExplicitModel:
    """Return a DTMC of jumps anywhere; states 0 and 1 absorb."""
    random = np.random.default_rng(1)
    sources = np.repeat(np.arange(states), 4)
    targets = np.where(sources < 2, sources, random.integers(0, states, len(sources)))
    return model_of(ModelKind.DTMC, sources, targets, states)


def random_mdp(states: int) -> ExplicitModel:
    """Return an MDP of three choices a state, two jumps a choice; states 0 and 1 absorb."""
    random = np.random.default_rng(2)
    rows = np.repeat(np.arange(3 * states), 2)
    targets = np.where(rows < 6, rows // 3, random.integers(0, states, len(rows)))
    groups = np.arange(0, 3 * states + 1, 3, dtype=np.int32)
    return model_of(ModelKind.MDP, rows, targets, states, groups)


def model_of(
    kind: ModelKind, rows: Any, targets: Any, states: int, groups: Any = None
) -> ExplicitModel:
    """Return the model with these edges, all of a row equally likely."""
    num_rows = states if groups is None else int(groups[-1])
    counts = np.bincount(rows, minlength=num_rows)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    order = np.argsort(rows, kind="stable")
    columns = targets[order].astype(np.int32)
    values = 1.0 / counts[rows[order]]
    return ExplicitModel(kind, CsrMatrix(offsets, columns, values, states), groups)


def questions(model: ExplicitModel) -> Iterator[tuple[str, Callable[..., Any], Direction | None]]:
    """Yield the names and functions of the questions about a model, and their directions."""
    directions = [None] if model.kind is not ModelKind.MDP else list(Direction)
    for find in (prob0, prob1):
        for direction in directions:
            yield find.__name__ + (f" {direction}" if direction else ""), find, direction


def timed(ask: Callable[[], Any]) -> tuple[Any, float]:
    """Return an answer and its seconds."""
    started = time.perf_counter()
    answer = ask()
    return answer, time.perf_counter() - started


def floor_bytes(model: ExplicitModel) -> int:
    """Return the fewest bytes that a set over the model's incoming edges takes."""
    matrix = model.matrix
    rows = 0 if model.row_group_offsets is None else matrix.num_rows
    return 4 * (matrix.num_entries + model.num_states + rows)


def measure(name: str, model: ExplicitModel, target: Any, gpu: bool) -> Iterator[Row]:
    """Yield the rows of a model."""
    remain = np.ones(model.num_states, dtype=np.bool_)
    for question, find, direction in questions(model):
        answers, first, again = [], [], []
        devices = [DeviceChoice.CPU, DeviceChoice.GPU][: 1 + gpu]
        for device in devices:
            environment = SolverEnvironment(device=device)
            # A matrix of its own, so that the preparation is in the first time.
            fresh = ExplicitModel(
                model.kind,
                CsrMatrix(
                    model.matrix.row_offsets,
                    model.matrix.columns,
                    model.matrix.values,
                    model.num_states,
                ),
                model.row_group_offsets,
            )

            def ask(fresh=fresh, environment=environment, find=find, direction=direction):
                return find(fresh, remain, target, direction, environment=environment)

            answer, seconds = timed(ask)
            answers.append(answer)
            first.append(seconds)
            again.append(statistics.median(timed(ask)[1] for _ in range(REPEATS)))
        row = {"members": int(answers[0].sum()), "cpu_first": first[0], "cpu_again": again[0]}
        if gpu:
            if not np.array_equal(*answers):
                raise SystemExit(f"{name}, {question}: CPU and GPU differ")
            from engines.cuda.bandwidth import copy_bandwidth

            graph: Any = operations_of(fresh, environment)
            # Of a chain, prob1 is two sets; of an MDP, its maximum is at least as much.
            sets = 1 if find is prob0 else 2
            row |= {
                "gpu_first": first[1],
                "gpu_again": again[1],
                "floor": sets * floor_bytes(model) / copy_bandwidth(),
                "rounds": graph.rounds,
                "note": graph.note,
            }
        yield Row(name, model.num_states, model.matrix.num_entries, question, **row)


def models_of(files: tuple[Path, ...], label: str | None, states: int) -> Iterator[tuple[Any, ...]]:
    """Yield name, model and target of each case."""
    if not files:
        for make in (grid, line, random_chain, random_mdp):
            model = make(states)
            target = np.zeros(model.num_states, dtype=np.bool_)
            target[0 if make is line else 1] = True
            yield make.__name__.replace("_", " "), model, target
    for file in files:
        from bridge.files.umb import read_umb

        model = read_umb(file).model
        if label is None:
            target = np.zeros(model.num_states, dtype=np.bool_)
            target[-1] = True
        elif label in model.labels:
            target = model.labels[label]
        else:
            raise SystemExit(f"{file} has no label {label}: it has {', '.join(model.labels)}")
        yield file.stem, model, target


@click.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--label", help="The target in the files; the last state if none is named.")
@click.option("--states", default=1_000_000, show_default=True)
@click.option("--device", type=click.Choice(["gpu", "cpu"]), default="gpu", show_default=True)
@click.option("--json", "output", type=click.Path(path_type=Path), help="Write the figures there.")
def main(
    files: tuple[Path, ...], label: str | None, states: int, device: str, output: Path | None
) -> None:
    """Print the figures."""
    gpu = device == "gpu"
    # The device's start-up is no part of a question's time.
    for _, model, target in models_of((), None, 100_000):
        list(measure("warm-up", model, target, gpu))
    rows = []
    for name, model, target in models_of(files, label, states):
        for row in measure(name, model, target, gpu):
            print(row, flush=True)
            rows.append(row)
    if output is not None:
        output.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
