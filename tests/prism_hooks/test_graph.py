"""Decompositions of graphs as PRISM asks for them: which components, in what order."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.graph.components import sccs
from engines.graph.prob01 import prob0
from engines.host import graphs
from engines.model.csr import CsrMatrix
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from prism_hooks import graph
from prism_hooks.backend import EngineBackend
from prism_hooks.options import HookOptions
from prism_hooks.sets import relate, words_of
from tests.engines import graph_models, graph_oracles, models
from tests.engines.graph_oracles import successors

CPU = SolverEnvironment(device=DeviceChoice.CPU)
SEEDS = range(150)
KINDS = (ModelKind.DTMC, ModelKind.CTMC, ModelKind.MDP)


def edges_of(model):
    """For each state the set of its successors, entries of value 0 left out."""
    return [set().union(*after) for after in successors(model)]


def components(found):
    """The sets of states of a decomposition, in its order."""
    return [frozenset(part.tolist()) for part in np.split(found.members, found.ends)[:-1]]


def assert_in_order(found, edges):
    """Assert that each component comes after those that it may enter."""
    place = {state: at for at, part in enumerate(found) for state in part}
    for state, at in place.items():
        for after in edges[state]:
            assert place.get(after, 0) <= at, (state, after)


@pytest.mark.parametrize("kind", KINDS)
def test_strong_components_with_and_without_the_trivial_ones(kind):
    for seed in SEEDS:
        model = graph.every_entry(graph_models.random_model(seed, kind))
        edges = edges_of(model)
        masked, _ = graph_models.random_masks(seed, model.num_states)
        for within in (None, masked):
            expected = graph_oracles.sccs(model, within)
            every = graph.strong_components(model, within, CPU, with_trivial=True)
            assert components(every) == expected, seed
            ordered = graph.strong_components(model, within, CPU, with_trivial=True, in_order=True)
            assert sorted(components(ordered), key=min) == expected, seed
            assert_in_order(components(ordered), edges)
            some = graph.strong_components(model, within, CPU, with_trivial=False)
            real = [part for part in expected if len(part) > 1 or min(part) in edges[min(part)]]
            assert components(some) == real, seed


def test_absorbing_states_of_an_embedded_chain_have_loops():
    model = graph_models.build(ModelKind.CTMC, [1, 0, 1], [1, 0])
    plain = graph.strong_components(model, None, CPU, with_trivial=False)
    embedded = graph.strong_components(model, None, CPU, with_trivial=False, absorbing_loops=True)
    assert components(plain) == []
    assert components(embedded) == [{1}]


def test_end_components_within_states_and_of_accepted_ones():
    for seed in SEEDS:
        model = graph.every_entry(graph_models.random_model(seed))
        masked, accept = graph_models.random_masks(seed, model.num_states)
        for within in (None, masked):
            expected = graph_oracles.maximal_end_components(model, within, None)
            found = graph.end_components(model, within, CPU)
            assert components(found) == [frozenset(part) for part in expected], seed
            some = graph.end_components(model, within, CPU, accept=accept)
            chosen = [part for part in expected if accept[list(part)].any()]
            assert components(some) == [frozenset(part) for part in chosen], seed


def test_what_has_no_end_components_in_prism_s_sense_is_refused():
    chain = graph_models.random_model(1, ModelKind.DTMC)
    with pytest.raises(UnsupportedError, match="without choices"):
        graph.end_components(chain, None, CPU)
    nowhere = graph_models.build(ModelKind.MDP, [1, 0], [0], [2])
    with pytest.raises(UnsupportedError, match="leads nowhere"):
        graph.end_components(nowhere, None, CPU)


def test_an_entry_of_value_0_is_an_edge_to_prism():
    matrix = CsrMatrix(
        np.array([0, 2, 3], np.int32), np.array([0, 1, 0], np.int32), np.array([1.0, 0.0, 1.0]), 2
    )
    model = ExplicitModel(ModelKind.DTMC, matrix)
    assert sccs(model).count == 2
    assert sccs(graph.every_entry(model)).count == 1
    whole = graph_models.build(ModelKind.DTMC, [2, 1], [0, 1, 0])
    assert graph.every_entry(whole) is whole


def test_many_states_are_sorted_into_the_same_order():
    keys = np.random.default_rng(3).integers(0, 30, 500)
    expected = graph._sorted_by(keys, 30)
    np.testing.assert_array_equal(graph._sorted_by(keys, 30, linear_from=0), expected)


def test_loops_are_found_chunk_by_chunk():
    model = graph_models.random_model(3, ModelKind.DTMC, most=200)
    found = graph.loops(model)
    assert 0 < found.sum() < model.num_states
    np.testing.assert_array_equal(graph.loops(model, chunk_states=7), found)


def test_where_no_state_is_asked_about_there_are_no_components():
    model = graph_models.random_model(3, ModelKind.DTMC, most=200)
    nothing = graph.strong_components(
        model, np.zeros(model.num_states, dtype=np.bool_), CPU, with_trivial=True
    )
    assert len(nothing.members) == len(nothing.ends) == 0


def ask(reads, task, source, **more):
    """Return a `prismgpu.Problem` about a graph; reading its model is noted."""

    def read():
        reads.append(task)
        return source

    fields = {
        "graph": True, "numStates": 2, "embedded": False, "states": None, "remain": None,
        "withTrivial": True, "inOrder": False, "epsilon": 0.0, "absolute": False,
        "maxIterations": 0, "omega": 0.0, "topological": False,
        "detectsSteadyState": False, "intervals": None, "error": None,
        "refusal": None, "members": None,
        "ends": None, "lines": [],
    }  # fmt: skip
    problem = SimpleNamespace(task=task, modelId=1, model=read, parts=None, **(fields | more))
    problem.say = problem.lines.append
    return problem


# Two states of which the first may stay, or go on to the second, which stays.
SOURCE = SimpleNamespace(
    numStates=2, rowOffsets=[0, 1, 2, 3], columns=[0, 1, 1], groupOffsets=[0, 2, 3]
)


def test_a_graph_is_read_once_and_each_question_about_it_is_answered():
    backend = EngineBackend(HookOptions(device=DeviceChoice.CPU, show_solves=True))
    reads: list[str] = []
    strong = ask(reads, graph.STRONG_COMPONENTS, SOURCE)
    ends = ask(reads, graph.END_COMPONENTS, SOURCE, states=words_of(np.array([False, True])))
    for problem in (strong, ends):
        backend.solve(problem)
        assert problem.error is None, problem.error
        assert problem.refusal is None
    assert (strong.members.tolist(), strong.ends.tolist()) == ([0, 1], [1, 2])
    assert (ends.members.tolist(), ends.ends.tolist()) == ([1], [1])
    assert strong.members.dtype == strong.ends.dtype == np.int32
    assert reads == [graph.STRONG_COMPONENTS]
    assert "strong components: 2 in 2 states and 3 transitions" in strong.lines[-1]
    assert strong.lines[-1].endswith("s, CPU")


def test_a_refusal_names_the_decomposition():
    nowhere = SimpleNamespace(numStates=1, rowOffsets=[0, 0], columns=[], groupOffsets=[0, 1])
    problem = ask([], graph.END_COMPONENTS, nowhere)
    EngineBackend(HookOptions(device=DeviceChoice.CPU)).solve(problem)
    assert problem.refusal == "end components (of a model with a choice that leads nowhere)"


def test_searches_on_diagrams_are_given_steps_by_what_the_graph_takes():
    options, edges = HookOptions(device=DeviceChoice.CPU), 1_000_000
    new = graph.search_steps(options, edges)
    assert new == pytest.approx(2e5 + 4e4)
    known = graph.search_steps(options, edges, has_graph=True)
    assert known == pytest.approx(4e4 + 1e5)
    assert known < new
    always = HookOptions(smallest_graph=0)
    assert graph.search_steps(always, edges) == 0.0
    assert graph.search_steps(always, edges, has_graph=True) == 0.0


def test_small_graphs_stay_with_prism():
    options = HookOptions(device=DeviceChoice.CPU)
    for task in graph.DECOMPOSITIONS:
        assert graph.smallest_graph(task, options) == graph.SMALL_GRAPH[task]
        assert graph.smallest_graph(task, HookOptions(smallest_graph=7)) == 7
        assert EngineBackend(options).smallestGraph(task) == graph.SMALL_GRAPH[task]


def test_predecessors_are_found_before_the_first_search_and_once(monkeypatch):
    fill, fills = graphs._FILL_BACKWARDS, []
    monkeypatch.setattr(graphs, "_FILL_BACKWARDS", lambda graph: fills.append(1) or fill(graph))
    model = models.dtmc([{0: 0.5, 1: 0.5}, {1: 1.0}, {2: 1.0}])
    relate(model, SolverEnvironment())
    assert len(fills) == 1
    found = prob0(model, models.mask(3, [0, 1, 2]), models.mask(3, [1]))
    np.testing.assert_array_equal(found, [False, False, True])
    assert len(fills) == 1
