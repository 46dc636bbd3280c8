"""Components of one graph by one of the programs that ours is compared with, timed.

    python examples/benchmarks/component_peers.py FOLDER tarjan|cpu|scipy|prism|storm

The folder holds a model's arrays, as `save` writes them. Each decomposition gives a line of JSON:
what it was ("scc" or "mec"), its seconds, how many components there are, and a digest of which
state is in which. `components.py` starts this program in a process of its own, so that it can be
stopped and may run out of memory alone.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bridge.reproduce.textbook import Textbook, numbered
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind

MOST_SETS = 10_000
"""Of more end components than these, given as sets, only the number is compared."""


def save(model: ExplicitModel, folder: Path) -> None:
    """Write the arrays of an MDP's graph into a folder."""
    arrays = {
        "offsets": model.matrix.row_offsets,
        "columns": model.matrix.columns,
        "groups": model.row_group_offsets,
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def load(folder: Path) -> ExplicitModel:
    """Return the model that `save` wrote; its values are all 1."""
    offsets, columns, groups = (
        np.load(folder / f"{name}.npy") for name in ("offsets", "columns", "groups")
    )
    ones = np.broadcast_to(np.float64(1.0), len(columns))
    matrix = CsrMatrix(offsets, columns, ones, len(groups) - 1)
    return ExplicitModel(ModelKind.MDP, matrix, groups)


def digest(labels: np.ndarray) -> str:
    """Return a digest of labels that are numbered by smallest states; −1 is none."""
    data = np.ascontiguousarray(labels, dtype="<i4")
    return hashlib.blake2b(data.data, digest_size=16).hexdigest()


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a function returns, and its seconds."""
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def tell(what: str, seconds: float, count: int, labels: np.ndarray | None, **more: float) -> None:
    """Print the line of a decomposition."""
    found = None if labels is None else digest(labels)
    line = {"what": what, "seconds": seconds, "count": count, "digest": found, **more}
    print(json.dumps(line), flush=True)


def tiny_model() -> ExplicitModel:
    """Return a model whose components need each of a program's kernels: they are loaded with it."""
    offsets = np.array([0, 1, 2, 4], dtype=np.int32)
    columns = np.array([1, 0, 0, 1], dtype=np.int32)
    groups = np.array([0, 1, 3], dtype=np.int32)
    ones = np.broadcast_to(np.float64(1.0), 4)
    return ExplicitModel(ModelKind.MDP, CsrMatrix(offsets, columns, ones, 2), groups)


def warm_up() -> None:
    """Load the kernels of our engine."""
    from engines.host.graph import CpuGraph

    graph = CpuGraph(tiny_model())
    graph.strong_components(np.ones(2, dtype=np.bool_))
    graph.end_components(np.ones(2, dtype=np.bool_), np.ones(3, dtype=np.bool_))


def by_cpu(model: ExplicitModel) -> None:
    """Ours on one core: Tarjan, and the splitting of end components, by the compiled library."""
    from engines.host.graph import CpuGraph

    warm_up()
    graph = CpuGraph(model)
    states = np.ones(model.num_states, dtype=np.bool_)
    # The edges are turned round at the first question; Tarjan does not need that.
    _, prepared = timed(lambda: graph.reached_from(~states))
    (labels, count), seconds = timed(lambda: graph.strong_components(states))
    tell("scc", seconds, count, labels, prepare=prepared)
    (labels, count), seconds = timed(lambda: graph.end_component_states(states))
    tell("mec", seconds, count, labels, prepare=prepared)


def by_textbook(model: ExplicitModel) -> None:
    """Tarjan's search as it was published, and the basic algorithm of end components over it."""
    tiny = Textbook(tiny_model())
    # Loads what is timed below.
    tiny.strong_components()
    tiny.end_components(tiny.turned_round())
    textbook = Textbook(model)
    (labels, count), seconds = timed(textbook.strong_components)
    tell("scc", seconds, count, numbered(labels, count))
    turned, prepared = timed(textbook.turned_round)
    (labels, count), seconds = timed(lambda: textbook.end_components(turned))
    tell("mec", seconds, count, numbered(labels, count), prepare=prepared)


def by_scipy(model: ExplicitModel) -> None:
    """SciPy's strong components; it has no end components."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    matrix = model.matrix
    assert model.row_group_offsets is not None
    offsets = matrix.row_offsets[model.row_group_offsets]
    shape = (model.num_states, model.num_states)
    columns = matrix.columns.copy()
    graph = csr_array((np.ones(matrix.num_entries), columns, offsets), shape=shape)
    # SciPy 1.17 may never end where a state has two edges to another.
    _, prepared = timed(graph.sum_duplicates)
    (count, labels), seconds = timed(lambda: connected_components(graph, connection="strong"))
    tell("scc", seconds, int(count), numbered(labels, int(count)), prepare=prepared)


def by_prism(model: ExplicitModel) -> None:
    """PRISM's own computers of components, on its own sparse MDP."""
    from bridge import jvm

    options = jvm.default_options()
    jvm.start(jvm.find_runtime(with_engines=False), options)
    import jpype

    mdp = _prism_mdp(model)
    parent = jvm.java_class("prism.PrismComponent")()
    info = jvm.java_class("explicit.SCCInfo")(model.num_states)
    computer = jvm.java_class("explicit.SCCComputerTarjan")(parent, mdp, info)
    _, seconds = timed(lambda: computer.computeSCCs(False))
    count = int(info.getNumSCCs())
    labels = np.array(_field(info, "stateToSCCIndex").get(info), dtype=np.int32)
    tell("scc", seconds, count, numbered(labels, count))
    del computer, info
    computer = jvm.java_class("explicit.ECComputerDefault")(parent, mdp)
    try:
        _, seconds = timed(computer.computeMECStates)
    except jpype.JException as error:
        raise SystemExit(f"PRISM, end components: {error}") from error
    sets = computer.getMECStates()
    labels = np.full(model.num_states, -1, dtype=np.int32)
    if len(sets) > MOST_SETS:
        tell("mec", seconds, len(sets), None)
        return
    for number, words in enumerate(sets):
        bits = np.array(words.toLongArray(), dtype="<i8").view(np.uint8)
        labels[np.flatnonzero(np.unpackbits(bits, bitorder="little"))] = number
    tell("mec", seconds, len(sets), numbered(labels, len(sets)))


def _prism_mdp(model: ExplicitModel) -> Any:
    """Return a `MDPSparse` with the model's arrays: PRISM itself makes one of objects only."""
    import jpype

    from bridge import jvm

    mdp = jvm.java_class("explicit.MDPSparse")(jvm.java_class("explicit.MDPSimple")(0))
    matrix, groups = model.matrix, model.row_group_offsets
    assert groups is not None
    for name, kind, array in (
        ("cols", jpype.JInt, matrix.columns),
        ("choiceStarts", jpype.JInt, matrix.row_offsets),
        ("rowStarts", jpype.JInt, groups),
        ("nonZeros", jpype.JDouble, matrix.values),
    ):
        _field(mdp, name).set(mdp, jpype.JArray(kind)(np.ascontiguousarray(array)))
    numbers = {
        "numStates": model.num_states,
        "numDistrs": matrix.num_rows,
        "numTransitions": matrix.num_entries,
        "maxNumDistrs": int(np.diff(groups).max()),
    }
    for name, number in numbers.items():
        _field(mdp, name).setInt(mdp, number)
    mdp.addInitialState(0)
    return mdp


def _field(thing: Any, name: str) -> Any:
    owner = thing.getClass()
    while name not in {str(field.getName()) for field in owner.getDeclaredFields()}:
        owner = owner.getSuperclass()
    field = owner.getDeclaredField(name)
    field.setAccessible(True)
    return field


def by_storm(model: ExplicitModel) -> None:
    """Storm's maximal end components; it offers Python no strong components."""
    import stormpy
    from stormpy.analysis import get_maximal_end_components

    from bridge.files.umb import write_umb

    initial = np.arange(model.num_states) == 0
    lengths = model.matrix.row_lengths()
    uniform = replace(model.matrix, values=np.repeat(1.0 / lengths, lengths))
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "model.umb")
        write_umb(ExplicitModel(model.kind, uniform, model.row_group_offsets, initial), file)
        built = stormpy.build_model_from_umb(file)
    if built.nr_states != model.num_states:
        raise SystemExit(f"Storm reads {built.nr_states} states instead of {model.num_states}")
    found, seconds = timed(lambda: get_maximal_end_components(built))
    count = int(found.size)
    if count > MOST_SETS or model.num_states > 10**7:
        tell("mec", seconds, count, None)
        return
    labels = np.full(model.num_states, -1, dtype=np.int32)
    for number, component in enumerate(found):
        labels[[pair[0] for pair in component]] = number
    tell("mec", seconds, count, numbered(labels, count))


PEERS = {
    "tarjan": by_textbook,
    "cpu": by_cpu,
    "scipy": by_scipy,
    "prism": by_prism,
    "storm": by_storm,
}


def main() -> None:
    """Decompose the graph in a folder."""
    folder, peer = sys.argv[1:]
    model = load(Path(folder))
    gc.collect()
    PEERS[peer](model)
    sys.stdout.flush()
    # A JVM's clean-up, and Storm's, would only take time.
    os._exit(0)


if __name__ == "__main__":
    main()
