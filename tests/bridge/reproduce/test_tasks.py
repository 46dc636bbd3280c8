"""What the worker measures: right numbers, and no time of a wrong one."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bridge.reproduce.execute import Failed, Stopped
from bridge.reproduce.families import FAMILIES
from bridge.reproduce.graph_families import GENERATED
from bridge.reproduce.jobs import Kind
from bridge.reproduce.tasks import (
    colours,
    components,
    hosts,
    models,
    paths,
    patterns,
    sweeps,
    workers,
)
from bridge.reproduce.worker import Worker
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind
from tests.engines.montecarlo.explicit import Explicit

TANDEM = {"family": "tandem", "size": 3, "front_end": "none", "device": "cpu"}


def tandem(c):
    """Return the rates of the tandem queue, from its description, by plain loops."""
    states = [(f, p, s) for f in range(c + 1) for p in (1, 2) if f or p == 1 for s in range(c + 1)]
    number = {state: i for i, state in enumerate(states)}
    rates = np.zeros((len(states), len(states)))
    for (f, p, s), i in number.items():
        moves = []
        if f < c:
            moves.append(((f + 1, p, s), 4.0 * c))
        if f and p == 1:
            moves.append(((f, 2, s), 0.2))
        if f and s < c:
            moves.append(((f - 1, 1, s + 1), 1.8 if p == 1 else 2.0))
        if s:
            moves.append(((f, p, s - 1), 4.0))
        for target, rate in moves:
            rates[i, number[target]] += rate
    rows, columns = np.nonzero(rates)
    offsets = np.searchsorted(rows, np.arange(len(states) + 1)).astype(np.int32)
    matrix = CsrMatrix(offsets, columns.astype(np.int32), rates[rows, columns], len(states))
    return ExplicitModel(ModelKind.CTMC, matrix)


@pytest.fixture(autouse=True)
def _built_here(monkeypatch):
    for task in (colours, patterns, sweeps):
        monkeypatch.setattr(task, "built", lambda *asked: tandem(asked[1]))


def test_the_plain_loops_make_the_model_of_the_file():
    model = tandem(7)
    assert (model.num_states, model.matrix.num_entries) == FAMILIES["tandem"].counts(7)


@pytest.mark.parametrize("bins", [5, 28, 100])
def test_a_pattern_counts_the_entries_of_each_field(bins):
    found = patterns.measure({**TANDEM, "bins": bins}, lambda _: None)
    model = tandem(3)
    size = model.num_states
    side = min(bins, size)
    expected = np.zeros((side, side), dtype=int)
    for row in range(size):
        for entry in range(model.matrix.row_offsets[row], model.matrix.row_offsets[row + 1]):
            expected[row * side // size, model.matrix.columns[entry] * side // size] += 1
    assert found["bins"] == side
    assert np.reshape(found["fields"], (side, side)).tolist() == expected.tolist()


def test_colours_give_a_point_each_and_what_is_known_on_the_way():
    parts = []
    asked = {**TANDEM, "size": 7, "colours": [2, 3], "slice_size": 8}
    found = colours.measure(asked, lambda record: parts.append(len(record["points"])))
    assert parts == [1, 2, 3, 4]
    named = [(point["colouring"], point["colours"]) for point in found["points"]]
    assert named == [("levels", 2), ("levels", 3), ("slices", 2), ("slices", 3)]
    assert all(point["sweeps"] > 3 for point in found["points"])
    assert "status" not in found


def test_colours_that_do_not_agree_are_wrong(monkeypatch):
    solve = colours.solve_steady_state

    def skewed(model, bscc, environment):
        found = solve(model, bscc, environment)
        if environment.colours == 3:
            found.values[0] += 0.01
        return found

    monkeypatch.setattr(colours, "solve_steady_state", skewed)
    found = colours.measure({**TANDEM, "colours": [2, 3], "slice_size": 8}, lambda _: None)
    assert found["status"] == "wrong"
    assert "3 colours by levels" in found["wrong"]


def test_the_time_of_a_sweep_is_there_in_both_precisions():
    found = sweeps.measure({**TANDEM, "size": 15}, lambda _: None)
    assert 0 < found["double"] < 1e5
    assert 0 < found["single"] < 1e5


@pytest.mark.parametrize("family", ["phil", "test-and-set"])
def test_components_are_those_of_the_construction(family, monkeypatch):
    monkeypatch.setattr(components, "_warm_up", lambda _: None)
    parts = []
    asked = {"family": family, "scale": 0.0002, "device": "cpu"}
    found = components.measure(asked, lambda record: parts.append(set(record["counts"])))
    graph = GENERATED[family](0.0002)
    assert found["counts"] == {"scc": graph.sccs, "mec": graph.mecs}
    assert found["checked"] == {what: ["construction", "cpu", "tarjan"] for what in ("scc", "mec")}
    assert parts[:2] == [{"scc"}, {"scc", "mec"}]
    assert "wrong" not in found


def test_other_components_than_those_constructed_are_wrong(monkeypatch):
    graph = GENERATED["phil"](0.0002)

    class Wrong(type(graph)):
        sccs = 2

    wrong = Wrong(graph.size, graph.processes, graph.special)
    monkeypatch.setitem(components.GENERATED, "phil", lambda _: wrong)
    monkeypatch.setattr(components, "_warm_up", lambda _: None)
    asked = {"family": "phil", "scale": 0.0002, "device": "cpu"}
    found = components.measure(asked, lambda _: None)
    assert found["status"] == "wrong"
    assert "1 SCCs; 2 were expected" in found["wrong"]


@pytest.mark.parametrize("synchronisation", ["", "compile", "runtime", "lazy"])
def test_estimates_of_the_philosophers_are_within_five_deviations(synchronisation):
    program, question = paths.philosophers(3, 40)
    exact = Explicit(program).answer(question)
    assert exact == pytest.approx(0.829923, abs=1e-6)
    asked = {
        "philosophers": 3, "paths": 100_000, "steps": 40, "device": "cpu", "threads": 2,
        "synchronisation": synchronisation,
    }  # fmt: skip
    found = paths.measure(asked, lambda _: None)
    assert abs(found["estimate"] - exact) < 5 * 0.5 / 100_000**0.5


@pytest.mark.parametrize("where", ["processes", "low", "hosts"])
def test_workers_find_what_one_process_finds(where):
    pytest.importorskip("distributed")
    asked = {"philosophers": 3, "paths": 20_000, "steps": 40, "workers": 2, "where": where}
    try:
        found = workers.measure(asked, lambda _: None)
    except hosts.NoHosts as error:
        pytest.skip(str(error))
    assert abs(found["estimate"] - 0.829923) < 5 * 0.5 / 20_000**0.5
    assert found["total_seconds"] == pytest.approx(found["deploy_seconds"] + found["first_seconds"])
    assert found["warm_seconds"] > 0
    assert not [name for name in namespaces() if f"pgh{os.getpid()}" in name]


def namespaces():
    """Return the network namespaces that there are."""
    if shutil.which("ip") is None:
        return []
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False)
    return listed.stdout.split()


def test_without_root_there_are_no_hosts(monkeypatch):
    monkeypatch.setattr(hosts.os, "geteuid", lambda: 1000)
    with pytest.raises(hosts.NoHosts, match="need root"), hosts.hosts(1):
        pass


def test_workers_that_find_something_else_have_no_time(monkeypatch):
    pytest.importorskip("distributed")
    judged = workers._judged

    def wrong(*arguments):
        return replace(judged(*arguments), estimate=0.5)

    monkeypatch.setattr(workers, "_judged", wrong)
    asked = {"philosophers": 3, "paths": 500, "steps": 40, "workers": 1, "where": "processes"}
    with pytest.raises(ValueError, match="do not find what one process finds"):
        workers.measure(asked, lambda _: None)


def test_paths_are_compared_before_they_are_timed(monkeypatch):
    asked = {
        "philosophers": 3, "paths": 300, "steps": 20, "device": "cpu", "threads": 1,
        "synchronisation": "",
    }  # fmt: skip
    found = paths.measure(asked, lambda _: None)
    assert found["on"] == "cpu"
    assert 0 <= found["estimate"] <= 1
    assert found["sample_seconds"] > 0
    sample = paths.sample_path

    def longer(*arguments):
        path = sample(*arguments)
        return type("Path", (), {"answers": path.answers, "length": path.length + 1})

    monkeypatch.setattr(paths, "sample_path", longer)
    with pytest.raises(ValueError, match="path 0 of 3 philosophers differs"):
        paths.measure(asked, lambda _: None)


def test_a_model_of_another_size_is_refused(monkeypatch):
    monkeypatch.setattr(models, "_build", lambda *_: tandem(3))
    models.built.cache_clear()
    with pytest.raises(ValueError, match="28 states and 71 transitions; 120 and 363 were expected"):
        models.built("tandem", 7, "prism")


def test_a_worker_does_tasks_and_survives_one_that_fails():
    worker = Worker("cpu", "builtin", "")
    try:
        asked = {"family": "phil", "scale": 0.0002}
        with pytest.raises(Failed, match="KeyError"):
            worker.do(Kind.COMPONENTS, {"family": "none of them", "scale": 0.0002}, 200)
        found = worker.do(Kind.COMPONENTS, asked, 200)
        assert (found["status"], found["counts"]["scc"]) == ("done", 1)
        with pytest.raises(Stopped):
            worker.do(Kind.COMPONENTS, {"family": "phil", "scale": 0.3}, 0.1)
    finally:
        worker.close()


class Answers(Worker):
    """A worker that answers without a process."""

    def __init__(self, *answers):
        super().__init__("cpu", "builtin", "")
        self.answers = list(answers)

    def _started(self):
        return SimpleNamespace(stdin=io.StringIO())

    def _answer(self, process, seconds):
        del process, seconds
        if not self.answers:
            raise Stopped
        return self.answers.pop(0)


def test_what_was_known_when_a_task_is_stopped_is_kept():
    worker = Answers({"partial": {"states": 3}}, {"partial": {"more": 1}})
    assert worker.do(Kind.COLOURS, {}, 1) == {"status": "stopped", "states": 3, "more": 1}
    with pytest.raises(Stopped):
        Answers().do(Kind.COLOURS, {}, 1)


def test_a_wrong_part_of_a_task_that_is_stopped_stays_wrong():
    worker = Answers({"partial": {"states": 3, "status": "wrong", "wrong": "2 SCCs"}})
    assert worker.do(Kind.COMPONENTS, {}, 1)["status"] == "wrong"


@pytest.mark.parametrize(
    ("family", "size"),
    [("tandem", 7), ("herman", 5), ("cluster", 4), ("kanban", 2), ("fms", 2), ("polling", 4)],
)
def test_models_are_built_without_prism(family, size):
    found = models.built(family, size, "builtin")
    assert (found.num_states, found.matrix.num_entries) == FAMILIES[family].counts(size)
