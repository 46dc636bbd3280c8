"""Maximal end components on the GPU: the CPU's, state by state and choice by choice."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.reproduce import graph_families, graphs
from engines.cuda import worklist
from engines.cuda.graph import CudaGraph
from engines.cuda.graph_tuning import (
    GraphTuning,
    NamesTuning,
    Patience,
    RefinementTuning,
    SearchTuning,
    WorklistTuning,
)
from engines.graph.mec import maximal_end_components
from engines.host.graph import CpuGraph
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.explicit import ModelKind
from tests.engines import graph_models, graph_oracles, models
from tests.engines.graph_models import everywhere, nowhere
from tests.gpu import big

GPU = SolverEnvironment(device=DeviceChoice.GPU)


@pytest.fixture(autouse=True)
def wide_offsets(request, monkeypatch):
    """`offsets` of the folder forces 64 bits in the sweeps; here in the graphs as well."""
    if "offsets" in request.fixturenames and request.getfixturevalue("offsets") == "wide":
        monkeypatch.setattr(worklist, "_wide", lambda *_: True)


def all_choices(model):
    return np.ones(model.matrix.num_rows, dtype=np.bool_)


def some_choices(seed, model):
    return np.random.default_rng(seed).random(model.matrix.num_rows) < 0.7


def expect_the_cpus(model, restrict=None, choices=None, graph=None):
    """Compare labels, number and choices; return the graph on the device."""
    graph = graph or CudaGraph(model)
    restrict = everywhere(model) if restrict is None else restrict
    choices = all_choices(model) if choices is None else choices
    labels, count, kept = graph.end_components(restrict, choices)
    expected, expected_count, expected_choices = CpuGraph(model).end_components(restrict, choices)
    assert (labels.dtype, kept.dtype) == (np.int32, np.bool_)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(kept, expected_choices)
    assert count == expected_count
    again, count = graph.end_component_states(restrict, choices)
    np.testing.assert_array_equal(again, expected)
    assert count == expected_count
    if choices.all():
        again, count = graph.end_component_states(restrict)
        np.testing.assert_array_equal(again, expected)
        assert count == expected_count
    return graph


def test_components_are_the_largest_sets_that_can_be_kept_to():
    for seed in range(200):
        model = graph_models.random_model(seed)
        within, _ = graph_models.random_masks(seed, model.num_states)
        for restrict in (None, within):
            for allowed in (None, some_choices(seed, model)):
                found = maximal_end_components(model, restrict, allowed, GPU)
                expected = graph_oracles.maximal_end_components(model, restrict, allowed)
                assert graph_oracles.sets_of(found.labels, found.count) == expected, seed


@pytest.mark.parametrize(
    "search",
    [
        SearchTuning(most_searches=0),
        SearchTuning(),
        SearchTuning(deep_rounds=0, fewest_parts=2),
    ],
    ids=["none", "few", "many"],
)
@pytest.mark.parametrize("most", [6, 60, 600])
@pytest.mark.usefixtures("poison", "offsets")
def test_random_mdps(most, search):
    for seed in range(100):
        model = graph_models.random_model(seed, most=most)
        graph = CudaGraph(model, tuning=GraphTuning(search=search))
        within, _ = graph_models.random_masks(seed, model.num_states)
        for restrict in (None, within):
            for allowed in (None, some_choices(seed, model)):
                expect_the_cpus(model, restrict, allowed, graph)
                assert not graph.note


SHAPES = {
    "power law": lambda: graph_models.power_law(20_000),
    "random": lambda: big.random_mdp(4, 10_000),
    "two components": models.end_components,
    "choices with many successors": lambda: wide_rows(3_000),
}


def wide_rows(size, seed=0):
    """A choice with 1 to 100 successors of the own block, and one that may leave it."""
    rng = np.random.default_rng(seed)
    columns, lengths = [], []
    for state in range(size):
        home = state // 500 * 500
        inside = (home + rng.integers(0, 500, rng.integers(1, 100))) % size
        lengths += [len(inside), 2]
        columns += [inside, [home, rng.integers(0, size)]]
    return graph_models.build(ModelKind.MDP, lengths, np.concatenate(columns), np.full(size, 2))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.usefixtures("offsets")
def test_shapes(name):
    model = SHAPES[name]()
    graph = expect_the_cpus(model)
    assert not graph.note
    for seed in range(3):
        within = np.random.default_rng(seed).random(model.num_states) < 0.8
        expect_the_cpus(model, within, some_choices(seed, model), graph)
        assert not graph.note


@pytest.mark.parametrize("scale", [0.0002, 0.01])
@pytest.mark.parametrize("family", graph_families.GENERATED)
def test_families_have_the_components_of_their_construction(family, scale):
    search = SearchTuning(fewest_parts=2) if scale < 0.001 else SearchTuning()
    built = graph_families.GENERATED[family](scale)
    model = graphs.generate(built)
    graph = CudaGraph(model, tuning=GraphTuning(search=search))
    expect_the_cpus(model, graph=graph)
    assert graph.end_component_states(everywhere(model))[1] == built.mecs
    assert graph.strong_components(everywhere(model))[1] == built.sccs
    assert not graph.note


@pytest.mark.parametrize("family", ["coin", "leader", "dining_crypt"])
def test_what_numbers_tell_again_and_again_takes_no_search(family):
    """Who stops for good gives the numbers away, in one process after the other."""
    built = graph_families.GENERATED[family](0.005)
    model = graphs.generate(built)
    graph = expect_the_cpus(model)
    assert {name for name, _, _ in graph.steps} == {"numbers"}
    assert graph.end_component_states(everywhere(model))[1] == built.mecs


def test_a_state_alone_may_have_the_number_of_a_part():
    """States 0 to 2 are the first part, 3 is alone, and 4 and 5 the third."""
    choices = [[[1]], [[2]], [[0]], [[3]], [[5], [3, 5]], [[4]]]
    rows = [row for of_state in choices for row in of_state]
    model = graph_models.build(
        ModelKind.MDP, [len(row) for row in rows], np.concatenate(rows), [len(c) for c in choices]
    )
    graph = expect_the_cpus(model)
    labels, count, kept = graph.end_components(everywhere(model), all_choices(model))
    np.testing.assert_array_equal(labels, [0, 0, 0, 1, 2, 2])
    np.testing.assert_array_equal(kept, [True] * 5 + [False, True])
    assert count == 3


@pytest.mark.parametrize("size", [1, 2, 5, 30, 500])
@pytest.mark.parametrize(
    "home",
    [lambda i: 0 * i, lambda i: i // 2, lambda i: np.maximum(i - 1, 0)],
    ids=["to the first", "halfway", "one back"],
)
def test_rings_that_break_one_by_one(size, home):
    model = graph_models.nested_rings(size, home)
    graph = expect_the_cpus(model)
    crumbling = expect_the_cpus(graph_models.crumbling_line(size))
    if size < 30:
        assert not graph.note
        assert not crumbling.note


def test_what_breaks_in_too_many_rounds_is_left_to_the_cpu():
    model = graph_models.nested_rings(500, lambda i: 0 * i)
    graph = expect_the_cpus(model)
    assert "left to the CPU" in graph.note


@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_the_cpu_may_take_over_after_any_round(most):
    patience = Patience(steps=most, states_a_step=10_000)
    tuning = GraphTuning(refinement=RefinementTuning(patience=patience))
    notes = set()
    for seed in range(60):
        model = graph_models.random_model(seed, most=60)
        within, _ = graph_models.random_masks(seed, model.num_states)
        graph = CudaGraph(model, tuning=tuning)
        for restrict in (None, within):
            expect_the_cpus(model, restrict, some_choices(seed, model), graph)
            notes.add(graph.note)
    rings = graph_models.nested_rings(8, lambda i: 0 * i)
    notes.add(expect_the_cpus(rings, graph=CudaGraph(rings, tuning=tuning)).note)
    assert any("left to the CPU" in note for note in notes)
    assert "" in notes


@pytest.mark.parametrize("sweeps", [0, 1, 3])
def test_the_cpu_may_take_over_within_a_round(sweeps):
    names = NamesTuning(sweeps_a_look=1, patience=Patience(steps=sweeps, states_a_step=1000))
    tuning = GraphTuning(search=SearchTuning(most_searches=0, names=names))
    notes = set()
    for seed in range(40):
        model = graph_models.random_model(seed, most=60)
        graph = CudaGraph(model, tuning=tuning)
        notes.add(expect_the_cpus(model, None, some_choices(seed, model), graph).note)
    model = SHAPES["power law"]()
    notes.add(expect_the_cpus(model, graph=CudaGraph(model, tuning=tuning)).note)
    assert any("left to the CPU" in note for note in notes)


def test_the_cpu_may_take_over_the_removals():
    """State i can only go to i + 1, and the last one has no choice within."""
    tuning = GraphTuning(
        WorklistTuning(rounds_a_look=1, team_levels=4),
        SearchTuning(patience=Patience(steps=0, states_a_step=1000)),
    )
    size = 5_000
    states = np.arange(size)
    columns = np.minimum(np.stack((states + 1, states), axis=1), size - 1)
    columns[: size // 2, 1] = columns[: size // 2, 0]
    model = graph_models.build(
        ModelKind.MDP, np.ones(2 * size, dtype=int), columns.ravel(), np.full(size, 2)
    )
    within = everywhere(model)
    within[size // 2 :] = False
    graph = expect_the_cpus(model, within, graph=CudaGraph(model, tuning=tuning))
    assert "left to the CPU" in graph.note
    graph = CudaGraph(model, tuning=tuning)
    assert expect_the_cpus(model, graph=graph).strong_components(everywhere(model))[1] == size


def test_nothing_is_kept_to_without_states_or_without_choices():
    model = graph_models.power_law(3_000)
    for restrict, choices in (
        (nowhere(model), all_choices(model)),
        (everywhere(model), ~all_choices(model)),
    ):
        labels, count, kept = CudaGraph(model).end_components(restrict, choices)
        assert count == 0
        assert (labels == -1).all()
        assert not kept.any()


@pytest.mark.parametrize("name", ["power law", "random"])
def test_ten_runs_find_the_same(name):
    model = SHAPES[name]()
    first = CudaGraph(model).end_components(everywhere(model), all_choices(model))
    for _ in range(10):
        again = CudaGraph(model).end_components(everywhere(model), all_choices(model))
        for one, other in zip(first, again, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_device_without_room_leaves_all_to_the_cpu(gpu):
    def refuse(size):
        raise gpu.cuda.memory.OutOfMemoryError(size, 0, 0)

    with gpu.cuda.using_allocator(refuse):
        graph = expect_the_cpus(graph_models.power_law(3_000))
    assert graph.note.startswith("GPU 0 ran out of memory")


def test_arguments_stay_as_they_are():
    model = graph_models.power_law(3_000)
    within = np.random.default_rng(3).random(model.num_states) < 0.9
    allowed = some_choices(1, model)
    copies = within.copy(), allowed.copy()
    CudaGraph(model).end_components(within, allowed)
    np.testing.assert_array_equal(within, copies[0])
    np.testing.assert_array_equal(allowed, copies[1])
