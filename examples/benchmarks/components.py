"""Strong components and maximal end components: tables 1 and 2 of the 2014 paper again.

    python examples/benchmarks/components.py [--models small|large|paper] [--scale X]
        [--only NAME ...] [--device gpu|cpu] [--peers tarjan,cpu,scipy,prism,storm] [--jobs N]
        [--peers-from FILE] [--json FILE] [--markdown FILE]

Two groups of cases (`component_cases.py`): PRISM's models, built by PRISM as diagrams and expanded
by us (`--models`; PRISM_DIR says where PRISM is), and generated graphs of the structure and, at
`--scale 1`, the size of those in the paper. Every result is compared, state by state where the
other program tells, before a time is shown; the generated ones also with the numbers of components
that follow from their construction.

"First" is a question about a graph that has not been seen: its copy to the device, the
decomposition, the result's way back. "Again" is the median of three more, the graph on the device.
The peers run in processes of their own, `--jobs` at a time and while the GPU goes on with the next
cases: Tarjan's search and the basic algorithm over it as the paper has them
(`bridge/reproduce/textbook.py`), our own engine on one core, SciPy, PRISM and Storm. Their times
hold neither the loading nor what they prepare: that is in the JSON. A peer has `--timeout` seconds
for a case. With `--peers-from` the GPU has the host to itself.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from component_cases import GENERATED, MODELS, PrismModel, source_of
from component_peers import PEERS, digest, save, timed, warm_up
from component_tables import tables

from bridge.install import find_prism
from bridge.reproduce.graphs import generate
from engines.devices.graph import operations_of
from engines.errors import BridgeError
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.explicit import ExplicitModel

REPEATS = 3
Complete = Callable[["Row"], None]
"""Waits for the peers, and puts down what they said."""
PEER_PROGRAM = Path(__file__).parent / "component_peers.py"


@dataclass(frozen=True)
class Case:
    """A graph to be made, and the numbers of its components where its construction tells them."""

    name: str
    family: str
    group: str
    make: Callable[[], ExplicitModel]
    sccs: int | None = None
    mecs: int | None = None


@dataclass
class Row:
    """A graph, and what each program said and took; seconds and bytes.

    What is by question has the keys "scc" and "mec"; `times` is by program and question, such as
    "gpu scc first".
    """

    name: str
    family: str
    group: str
    states: int
    choices: int
    transitions: int
    making_seconds: float
    counts: dict[str, int] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    checked: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    rounds: dict[str, int] = field(default_factory=dict)
    gpu_bytes: dict[str, int] = field(default_factory=dict)
    graph_bytes: int = 0
    copy_bandwidth: float | None = None

    def take(self, who: str, what: str, count: int, found: str | None) -> None:
        """Compare a result with those before it, or keep it as the first."""
        if self.counts.setdefault(what, count) != count:
            raise click.ClickException(
                f"{self.name}, {what}: {who} finds {count} components, "
                f"{', '.join(self.checked[what])} {self.counts[what]}"
            )
        if found is not None and self.digests.setdefault(what, found) != found:
            raise click.ClickException(
                f"{self.name}, {what}: {who} finds other components than "
                f"{', '.join(self.checked[what])}, though as many"
            )
        self.checked.setdefault(what, []).append(who)


def models_of(size: str, folder: Path) -> Iterator[Case]:
    """Yield the cases of PRISM's models of a size."""
    try:
        install = find_prism()
    except BridgeError as error:
        raise click.UsageError(f"the models are those of PRISM's examples: {error}") from error
    examples = install.beside("prism-examples")
    if examples is None:
        raise click.UsageError(f"there is no prism-examples by {install.root}")
    mdps = examples / "mdps"

    def build(model: PrismModel) -> ExplicitModel:
        import bridge

        file = source_of(model, mdps, folder)
        with bridge.open(file, model.constants, device="cpu", symbolic=True) as session:
            return session.model

    for model in MODELS[size]:
        yield Case(model.name, model.family, "PRISM", partial(build, model))


def generated(scale: float, threads: int | None) -> Iterator[Case]:
    """Yield the cases of the generated graphs."""
    for name, family in GENERATED.items():
        graph = family(scale)
        make = partial(generate, graph, threads)
        yield Case(f"{name}-like", name, "generated", make, graph.sccs, graph.mecs)


def unseen(model: ExplicitModel) -> ExplicitModel:
    """Return a model of the same arrays, that no graph has been prepared of."""
    return replace(model, matrix=replace(model.matrix))


def measure_gpu(model: ExplicitModel, row: Row) -> None:
    """Put down the GPU's results and times, and the memory that it took."""
    from engines.cuda.bandwidth import copy_bandwidth
    from engines.cuda.driver import cupy
    from engines.cuda.graph import CudaGraph
    from engines.cuda.graph_tuning import GraphTuning

    # By default a large graph is not kept between two questions.
    kept = GraphTuning(kept_share=1)
    row.copy_bandwidth = copy_bandwidth()
    pool = cupy().get_default_memory_pool()
    states = np.ones(model.num_states, dtype=np.bool_)
    questions: dict[str, Callable[[Any], Any]] = {
        "scc": lambda graph: graph.strong_components(states),
        "mec": lambda graph: graph.end_component_states(states),
    }
    for what, ask in questions.items():
        # What is loaded once in a process is no part of any time.
        ask(CudaGraph(unseen(model), tuning=kept))
        gc.collect()
        pool.free_all_blocks()
        taken = pool.total_bytes()
        graph, row.times[f"gpu {what} first"] = _asked(
            row, what, ask, partial(CudaGraph, unseen(model), tuning=kept)
        )
        row.gpu_bytes[what] = pool.total_bytes() - taken
        again = [_asked(row, what, ask, lambda graph=graph: graph)[1] for _ in range(REPEATS)]
        row.times[f"gpu {what}"] = statistics.median(again)
        row.rounds[what] = getattr(graph, "rounds", 0)
        if note := getattr(graph, "note", ""):
            row.notes.append(f"GPU, {what}: {note}")
        del graph


def _asked(
    row: Row, what: str, ask: Callable[[Any], Any], graph_of: Callable[[], Any]
) -> tuple[Any, float]:
    """Ask the GPU, compare its answer, and return the graph and the seconds."""
    started = time.perf_counter()
    graph = graph_of()
    labels, count = ask(graph)
    seconds = time.perf_counter() - started
    row.take("GPU", what, count, digest(labels))
    return graph, seconds


def measure_cpu(model: ExplicitModel, row: Row) -> None:
    """Put down the results of our CPU engine, as a session of ours would get them."""
    fresh = unseen(model)
    graph = operations_of(fresh)
    states = np.ones(model.num_states, dtype=np.bool_)
    (labels, count), row.times["own scc first"] = timed(lambda: graph.strong_components(states))
    row.take("CPU engine", "scc", count, digest(labels))
    (labels, count), row.times["own mec"] = timed(lambda: graph.end_component_states(states))
    row.take("CPU engine", "mec", count, digest(labels))


def ask_peers(folder: Path, peers: tuple[str, ...], timeout: float) -> dict[str, list[str]]:
    """Return what each peer said: lines of JSON, and one of plain text if it failed."""
    answers = {}
    for peer in peers:
        command = [sys.executable, str(PEER_PROGRAM), str(folder), peer]
        failure = ""
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=timeout
            )
            output = done.stdout
            if done.returncode:
                said = [line for line in done.stderr.splitlines() if line.strip()]
                failure = f"failed: {said[-1] if said else f'code {done.returncode}'}"
        except subprocess.TimeoutExpired as error:
            # Bytes, even where text was asked for.
            output = (error.stdout or b"").decode()
            failure = f"took more than {timeout:.0f} s"
        # Storm prints its warnings to the same place.
        lines = [line for line in output.splitlines() if line.startswith("{")]
        lines += [failure] if failure else []
        answers[peer] = lines
    return answers


def take_answers(row: Row, answers: dict[str, list[str]]) -> None:
    """Put down what the peers said."""
    for peer, lines in answers.items():
        for line in lines:
            if not line.startswith("{"):
                row.notes.append(f"{peer}: {line}")
                continue
            answer = json.loads(line)
            what = answer["what"]
            row.take(peer, what, answer["count"], answer["digest"])
            row.times[f"{peer} {what}"] = answer["seconds"]
            if "prepare" in answer:
                row.times[f"{peer} {what} prepare"] = answer["prepare"]


def rows_by_name(file: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of an earlier run by the names of their graphs."""
    return {row["name"]: row for row in json.loads(file.read_text(encoding="utf-8"))["rows"]}


def take_earlier(row: Row, before: dict[str, Any]) -> None:
    """Put down what the peers said of the same graph in an earlier run."""
    for what, names in before["checked"].items():
        for peer in filter(PEERS.__contains__, names):
            row.take(peer, what, before["counts"][what], before["digests"][what])
    peers = tuple(PEERS)
    row.times |= {key: time for key, time in before["times"].items() if key.startswith(peers)}
    row.notes += [note for note in before["notes"] if note.startswith(peers)]


def measure(
    case: Case, gpu: bool, ask: Callable[[str, ExplicitModel], Complete]
) -> tuple[Row, Complete]:
    """Make a graph, give it to the peers, and measure it here; their part is put down later."""
    model, seconds = timed(case.make)
    matrix = model.matrix
    row = Row(
        case.name,
        case.family,
        case.group,
        model.num_states,
        matrix.num_rows,
        matrix.num_entries,
        seconds,
        graph_bytes=4 * (2 * model.num_states + matrix.num_entries + 1),
    )
    for what, count in (("scc", case.sccs), ("mec", case.mecs)):
        if count is not None:
            row.take("construction", what, count, None)
    complete = ask(case.name, model)
    (measure_gpu if gpu else measure_cpu)(model, row)
    return row, complete


def device_name(gpu: bool) -> str:
    """Return the name of the device that our engines ran on."""
    if not gpu:
        return f"CPU, {os.cpu_count()} cores"
    from engines.cuda.driver import device_summary

    return device_summary()[0].partition(": ")[2].partition(",")[0]


def write_record(file: Path, record: dict[str, Any], rows: list[Row]) -> None:
    """Write what is known so far."""
    content = {**record, "rows": [asdict(row) for row in rows]}
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def warm(gpu: bool) -> None:
    """Load the compiled library, and have the device's kernels compiled: no part of any time."""
    warm_up()
    if gpu:
        for name in ("leader", "phil", "wlan"):
            model = generate(GENERATED[name](0.001))
            states = np.ones(model.num_states, dtype=np.bool_)
            graph = operations_of(model, SolverEnvironment(device=DeviceChoice.GPU))
            graph.strong_components(states)
            graph.end_component_states(states)


@dataclass(frozen=True)
class Peers:
    """Those whom a row waits for: asked beside, or in an earlier run."""

    folder: Path
    chosen: tuple[str, ...]
    timeout: float
    pool: ThreadPoolExecutor
    earlier: dict[str, dict[str, Any]] | None

    def ask(self, name: str, model: ExplicitModel) -> Complete:
        """Begin to ask about a graph; return what completes its row."""
        if self.earlier is not None:
            known = self.earlier[name]
            return lambda row: take_earlier(row, known)
        room = Path(tempfile.mkdtemp(dir=self.folder))
        save(model, room)

        def work() -> dict[str, list[str]]:
            try:
                return ask_peers(room, self.chosen, self.timeout)
            finally:
                for file in room.iterdir():
                    file.unlink()

        answers = self.pool.submit(work)
        return lambda row: take_answers(row, answers.result())


@click.command()
@click.option("--models", type=click.Choice(["none", *MODELS]), default="none", show_default=True)
@click.option("--scale", default=0.0, help="Size of the generated graphs, 1 for the paper's.")
@click.option("--only", multiple=True, help="Only families whose names begin so.")
@click.option("--device", type=click.Choice(["gpu", "cpu"]), default="gpu", show_default=True)
@click.option(
    "--peers", default="cpu,scipy", show_default=True, help="tarjan,cpu,scipy,prism,storm"
)
@click.option(
    "--peers-from",
    "peers_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Ask no peers: compare with those of an earlier run's --json.",
)
@click.option("--jobs", default=1, show_default=True, help="Peers at a time.")
@click.option("--timeout", default=300.0, show_default=True, help="Seconds for a peer and a case.")
@click.option("--threads", type=int, help="Threads that generate a graph; all cores by default.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the rows there.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the tables there.")
def main(
    models: str,
    scale: float,
    only: tuple[str, ...],
    device: str,
    peers: str,
    peers_file: Path | None,
    jobs: int,
    timeout: float,
    threads: int | None,
    json_file: Path | None,
    markdown: Path | None,
) -> None:
    """Print the tables."""
    chosen_peers = tuple(peer for peer in peers.split(",") if peer)
    if unknown := set(chosen_peers) - set(PEERS):
        raise click.UsageError(f"no such peer: {', '.join(sorted(unknown))}")
    gpu = device == "gpu"
    earlier = None if peers_file is None else rows_by_name(peers_file)
    rows: list[Row] = []
    record = {
        "command": " ".join(["python", *sys.argv]),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "device": device_name(gpu),
        "scale": scale,
    }
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prism-gpu-")))
        cases = list(models_of(models, folder)) if models != "none" else []
        cases += list(generated(scale, threads)) if scale else []
        cases = [case for case in cases if not only or case.family.startswith(only)]
        if earlier is not None and (new := {case.name for case in cases} - set(earlier)):
            raise click.UsageError(f"{peers_file} does not have {', '.join(sorted(new))}")
        if not cases:
            raise click.UsageError("no case is left: give --models or --scale, or another --only")
        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        ask = Peers(folder, chosen_peers, timeout, pool, earlier).ask
        waiting: list[tuple[Row, Complete]] = []
        warm(gpu)

        def settle() -> None:
            row, complete = waiting.pop(0)
            complete(row)
            rows.append(row)
            click.echo(f"{row.name}: {row.times}; {'; '.join(row.notes)}", err=True)

        def keep() -> None:
            # After each step: whoever stops the run keeps what there is.
            if json_file:
                write_record(json_file, record, [*rows, *(row for row, _ in waiting)])

        for case in cases:
            # Graphs lie in the folder until their peers are done: not too many of them.
            while len(waiting) > jobs:
                settle()
            waiting.append(measure(case, gpu, ask))
            keep()
        while waiting:
            settle()
            keep()
    text = tables([{**record, "rows": [asdict(row) for row in rows]}])
    click.echo(text)
    if markdown:
        markdown.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
