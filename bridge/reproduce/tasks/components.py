"""Strong components and maximal end components of a graph: the GPU beside the CPU."""

from __future__ import annotations

import gc
import hashlib
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bridge.reproduce.forward_backward import VARIANTS, ForwardBackward
from bridge.reproduce.graph_families import GENERATED, MODELS, source_of
from bridge.reproduce.graphs import generate
from bridge.reproduce.textbook import Textbook, numbered
from bridge.reproduce.worker import Partial, Record
from engines.cuda.driver import cupy
from engines.cuda.graph import CudaGraph
from engines.cuda.graph_tuning import GraphTuning
from engines.devices.graph import operations_of
from engines.model.explicit import ExplicitModel
from engines.systems.graph import GraphOperations

REPEATS = 3
"""Questions whose median is taken."""
SHORT_SECONDS = 2.0
"""What takes longer on the CPU is asked once."""


def measure(parameters: Mapping[str, Any], partial: Partial) -> Record:
    """Return counts and seconds, after the comparisons.

    Counts are compared with those that follow from a graph's construction, and the components of
    the GPU state by state with those of our CPU engine and of the textbook's algorithms: Tarjan's
    search, and the basic one of end components over it; both on one core.

    Parameters
    ----------
    parameters
        "family"; "scale" of a generated graph, or "model", the number of one of PRISM's in "set",
        and "examples", its folder; "device".
    partial
        Takes what is known as soon as a decomposition is.
    """
    on_gpu = parameters["device"] == "gpu"
    _warm_up(on_gpu)
    started = time.perf_counter()
    expected: dict[str, int] = {}
    if "scale" in parameters:
        graph = GENERATED[parameters["family"]](float(parameters["scale"]))
        expected = {"scc": graph.sccs, "mec": graph.mecs}
        model = generate(graph)
    else:
        model = _prism_model(parameters)
    record: Record = {
        "states": model.num_states,
        "choices": model.matrix.num_rows,
        "transitions": model.matrix.num_entries,
        "making_seconds": time.perf_counter() - started,
        "counts": {},
        "checked": {what: ["construction"] for what in expected},
    }
    digests: dict[str, str] = {}

    def take(who: str, what: str, seconds: float, found: tuple[npt.NDArray[Any], int]) -> None:
        labels, count = found
        record[f"{who}_{what}_seconds"] = seconds
        known = record["counts"].setdefault(what, expected.get(what, count))
        same = digests.setdefault(what, _digest(labels)) == _digest(labels)
        if count != known or not same:
            rest = f"; {known:,} were expected" if count != known else ", others than before"
            wrong = f"{who}: {count:,} {what.upper()}s{rest}"
            record["status"], record["wrong"] = "wrong", wrong
        record["checked"].setdefault(what, []).append(who)
        partial(record)

    if on_gpu:
        _ask(model, "gpu", take, record)
    _ask(model, "cpu", take, record)
    _ask_textbook(model, take)
    if on_gpu:
        _ask_variants(model, take)
    return record


def _ask_variants(
    model: ExplicitModel,
    take: Callable[[str, str, float, tuple[npt.NDArray[Any], int]], None],
) -> None:
    """Decompose a graph by the paper's own algorithm, the graph on the GPU, in each variant."""
    for name, variant in VARIANTS.items():
        cupy().get_default_memory_pool().free_all_blocks()
        ready = ForwardBackward(model, variant)
        found, seconds = _timed(ready.strong_components)
        take(name, "scc", seconds, found)
        del ready


def _ask_textbook(
    model: ExplicitModel,
    take: Callable[[str, str, float, tuple[npt.NDArray[Any], int]], None],
) -> None:
    """Decompose a graph by what the paper has on its CPU; what is prepared once is not timed."""
    textbook = Textbook(model)
    (labels, count), seconds = _timed(textbook.strong_components)
    take("tarjan", "scc", seconds, (numbered(labels, count), count))
    # Asked once: what is prepared is used up.
    turned = textbook.turned_round()
    begun = time.perf_counter()
    labels, count = textbook.end_components(turned)
    take("tarjan", "mec", time.perf_counter() - begun, (numbered(labels, count), count))


def _timed(ask: Callable[[], Any]) -> tuple[Any, float]:
    """Return an answer, and the median of seconds: of one question where that takes long."""
    times: list[float] = []
    found = None
    while len(times) < REPEATS and (not times or times[0] < SHORT_SECONDS):
        begun = time.perf_counter()
        found = ask()
        times.append(time.perf_counter() - begun)
    return found, statistics.median(times)


def _ask(
    model: ExplicitModel,
    who: str,
    take: Callable[[str, str, float, tuple[npt.NDArray[Any], int]], None],
    record: Record,
) -> None:
    """Decompose a graph on one device, first with the copy to it, then where it lies there."""
    states = np.ones(model.num_states, dtype=np.bool_)
    questions: dict[str, Callable[[GraphOperations], tuple[npt.NDArray[Any], int]]] = {
        "scc": lambda graph: graph.strong_components(states),
        "mec": lambda graph: graph.end_component_states(states),
    }
    for what, ask in questions.items():
        gc.collect()
        held = 0
        if who == "gpu":
            # What earlier graphs held.
            pool = cupy().get_default_memory_pool()
            pool.free_all_blocks()
            held = pool.total_bytes()
        # Of the same arrays, but no graph has been prepared of it.
        unseen = replace(model, matrix=replace(model.matrix))
        begun = time.perf_counter()
        graph = operations_of(unseen) if who == "cpu" else _on_gpu(unseen)
        if who == "cpu":
            begun = time.perf_counter()
        found = ask(graph)
        first = time.perf_counter() - begun
        record[f"{who}_{what}_first_seconds"] = first
        if who == "gpu":
            # The pool gives nothing back meanwhile: it holds as much as was ever wanted at a time.
            record[f"gpu_{what}_bytes"] = cupy().get_default_memory_pool().total_bytes() - held
        # What takes long on the CPU is asked once; there is no copy that a second time would save.
        again = [first] if who == "cpu" else []
        while len(again) < REPEATS and (who == "gpu" or first < SHORT_SECONDS):
            begun = time.perf_counter()
            ask(graph)
            again.append(time.perf_counter() - begun)
        take(who, what, statistics.median(again), found)


def _on_gpu(model: ExplicitModel) -> GraphOperations:
    """Prepare a graph that stays on the GPU between questions.

    By default a large one does not, and "again" would hold another copy of it.
    """
    return CudaGraph(model, tuning=GraphTuning(kept_share=1))


def _digest(labels: npt.NDArray[Any]) -> str:
    """Return a digest of labels, which both engines number by smallest states."""
    data = np.ascontiguousarray(labels, dtype="<i4")
    return hashlib.blake2b(data.data, digest_size=16).hexdigest()


def _prism_model(parameters: Mapping[str, Any]) -> ExplicitModel:
    import bridge

    model = MODELS[parameters["set"]][int(parameters["model"])]
    with tempfile.TemporaryDirectory(prefix="prism-gpu-") as folder:
        file = source_of(model, Path(parameters["examples"]) / "mdps", Path(folder))
        with bridge.open(file, model.constants, device="cpu", symbolic=True) as session:
            return session.model


@cache
def _warm_up(on_gpu: bool) -> None:
    """Load and compile what the decompositions want: no part of any time."""
    for name in ("leader", "phil", "wlan", "test-and-set"):
        model = generate(GENERATED[name](0.0005))
        _ask(model, "cpu", lambda *_: None, {})
        if on_gpu:
            _ask(model, "gpu", lambda *_: None, {})
            _ask_variants(model, lambda *_: None)
