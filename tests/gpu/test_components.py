"""Strong components on the GPU: the CPU's, state by state, whichever steps find them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bridge.reproduce import graph_families, graphs
from engines.cuda import graph as cuda
from engines.cuda import worklist
from engines.cuda.graph import CudaGraph
from engines.cuda.graph_tuning import (
    GraphTuning,
    ListKernels,
    NamesTuning,
    Patience,
    SearchTuning,
    WorklistTuning,
)
from engines.devices import graph as devices
from engines.graph.components import bsccs, sccs
from engines.host.graph import CpuGraph
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.explicit import ModelKind
from tests.engines import graph_models, graph_oracles
from tests.engines.graph_models import everywhere, nowhere
from tests.gpu import big

GPU = SolverEnvironment(device=DeviceChoice.GPU)


@pytest.fixture(autouse=True)
def wide_offsets(request, monkeypatch):
    """`offsets` of the folder forces 64 bits in the sweeps; here in the graphs as well."""
    if "offsets" in request.fixturenames and request.getfixturevalue("offsets") == "wide":
        monkeypatch.setattr(worklist, "_wide", lambda *_: True)


MOVING = NamesTuning(moving_states=0, sweeps_of_all=0, batches_between_all=1 << 30)

WAYS = {
    "numbers": SearchTuning(fewest_parts=2),
    "searches": SearchTuning(fewest_parts=2),
    "many searches": SearchTuning(fewest_parts=2, deep_rounds=0),
    "names": SearchTuning(fewest_parts=2, most_searches=0),
    "moving names": SearchTuning(fewest_parts=2, most_searches=0, names=MOVING),
}


@pytest.fixture(params=WAYS)
def way(request):
    """As it comes, however few parts there are; each of these without those before it.

    Many searches are those of deep graphs; names move by the states that have some to pass on.
    """
    if request.param != "numbers":
        request.getfixturevalue("without_numbers")
    return request.param


def graph_of(model, way):
    return CudaGraph(model, tuning=GraphTuning(search=WAYS[way]))


def expect_the_cpus(model, restrict=None, graph=None):
    """Compare the components and which of them are left; return the graph on the device."""
    graph = graph or CudaGraph(model)
    restrict = everywhere(model) if restrict is None else restrict
    cpu = CpuGraph(model)
    labels, count = graph.strong_components(restrict)
    expected, expected_count = cpu.strong_components(restrict)
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(labels, expected)
    assert count == expected_count
    before = graph.note, graph.steps
    left = graph.components_left(labels, count)
    assert left.dtype == np.bool_
    np.testing.assert_array_equal(left, cpu.components_left(labels, count))
    order = graph.condensation_order(labels, count)
    assert order.dtype == np.int32
    np.testing.assert_array_equal(order, cpu.condensation_order(labels, count))
    graph.note, graph.steps = before
    return graph


def names_of(graph):
    return [name for name, _, _ in graph.steps]


@pytest.mark.parametrize("kind", list(ModelKind))
def test_components_are_the_states_that_reach_each_other(kind, way):
    for seed in range(200):
        model = graph_models.random_model(seed, kind, most=15)
        within, _ = graph_models.random_masks(seed, model.num_states)
        for restrict in (None, within):
            members = everywhere(model) if restrict is None else restrict
            labels, count = graph_of(model, way).strong_components(members)
            expected = graph_oracles.sccs(model, restrict)
            assert graph_oracles.sets_of(labels, count) == expected, (seed, way)


@pytest.mark.parametrize("most", [3, 40, 400])
@pytest.mark.usefixtures("poison", "offsets")
def test_random_graphs_of_all_kinds_and_shapes(most, way):
    for seed in range(100):
        for kind in ModelKind:
            model = graph_models.random_model(seed, kind, most=most)
            graph = graph_of(model, way)
            within, _ = graph_models.random_masks(seed, model.num_states)
            for restrict in (everywhere(model), within):
                expect_the_cpus(model, restrict, graph)
                assert not graph.note
                assert "names" not in way or "search" not in names_of(graph)


def layers(width, depth, seed=0):
    """Few edges from layer to layer; rings at the beginning, in the middle and at the end."""
    rng = np.random.default_rng(seed)
    states = np.arange(width * depth)
    rows = [[] for _ in states]
    for state in states[:-width]:
        rows[state].append(state + width)
        if rng.random() < 0.3:
            rows[state].append((state // width + 1) * width + rng.integers(width))
    for base in (0, depth // 2 * width, (depth - 1) * width):
        for place in range(width):
            rows[base + place].append(base + (place + 1) % width)
    return from_rows(rows)


def from_rows(rows):
    lengths = [len(row) for row in rows]
    return graph_models.build(ModelKind.CTMC, lengths, np.concatenate(rows).astype(int))


def rings(count, size, seed=0):
    """Rings, joined by edges to higher states."""
    rng = np.random.default_rng(seed)
    states = np.arange(count * size)
    rows = [[state // size * size + (state + 1) % size] for state in states]
    for state in rng.integers(0, len(states), count):
        rows[state].append(rng.integers(state, len(states)))
    return from_rows(rows)


def torus(width, height):
    states = np.arange(width * height)
    x, y = states % width, states // width
    columns = np.stack((y * width + (x + 1) % width, (y + 1) % height * width + x), axis=1)
    return graph_models.build(ModelKind.CTMC, np.full(len(states), 2), columns.ravel())


def renumbered(model, seed=0):
    """The same graph, its states in random order."""
    size = model.num_states
    order = np.random.default_rng(seed).permutation(size)
    place = np.argsort(order)
    matrix = model.matrix
    rows = [
        place[matrix.columns[matrix.row_offsets[state] : matrix.row_offsets[state + 1]]]
        for state in order
    ]
    return from_rows(rows)


SHAPES = {
    "ring": lambda: graph_models.ring(5_000),
    "torus": lambda: torus(80, 80),
    "thin torus": lambda: torus(5, 1_000),
    "rings of 5": lambda: rings(1_000, 5),
    "rings in random order": lambda: renumbered(rings(30, 120)),
    "rings of 50": lambda: rings(100, 50),
    "layers": lambda: layers(50, 100),
    "thin layers": lambda: layers(3, 1_500),
    "random": lambda: big.random_rates(2, 5_000),
    "two that absorb": lambda: big.random_dtmc(1, 5_000),
    "power law": lambda: graph_models.power_law(5_000),
    "a row of all states": lambda: big.dense_row(5_000),
    "a column of all states": lambda: big.dense_column(5_000),
    "1,000 successors": lambda: big.random_rates(1, 1_500, 1_000),
    "line": lambda: graph_models.long_line(5_000),
    "line downwards": lambda: graph_models.long_line(5_000, upwards=False),
    "line in random order": lambda: renumbered(graph_models.long_line(5_000)),
    "layers in random order": lambda: renumbered(layers(50, 100)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name, way):
    model = SHAPES[name]()
    graph = expect_the_cpus(model, graph=graph_of(model, way))
    assert not graph.note, (way, graph.steps)
    within = np.random.default_rng(1).random(model.num_states) < 0.9
    expect_the_cpus(model, within, graph)


@pytest.mark.parametrize("name", ["rings of 5", "layers", "power law", "random"])
def test_ten_runs_find_the_same(name, way):
    model = SHAPES[name]()
    first = graph_of(model, way).strong_components(everywhere(model))
    for _ in range(10):
        again = graph_of(model, way).strong_components(everywhere(model))
        np.testing.assert_array_equal(again[0], first[0], way)
        assert again[1] == first[1]


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 255, 256, 257, 1025])
def test_sizes_at_the_borders_of_words_and_blocks(size, way):
    for model in (graph_models.ring(size), graph_models.long_line(size)):
        graph = expect_the_cpus(model, graph=graph_of(model, way))
        expect_the_cpus(model, nowhere(model), graph)
        assert not graph.note, way


@pytest.mark.parametrize("degree", [31, 32, 33, 4095, 4096, 4097, 8193])
@pytest.mark.usefixtures("offsets")
def test_a_state_that_many_others_enter(degree, way):
    """State 0 steps to all others, which step to it; then the last does not."""
    rows = [np.arange(1, degree + 1)] + [np.zeros(1)] * degree
    model = from_rows(rows)
    graph = expect_the_cpus(model, graph=graph_of(model, way))
    assert graph.strong_components(everywhere(model))[1] == 1
    rows[-1] = np.array([degree])
    model = from_rows(rows)
    graph = expect_the_cpus(model, graph=graph_of(model, way))
    assert graph.strong_components(everywhere(model))[1] == 2, way


def test_states_without_edges_and_graphs_without_edges():
    rows = [np.array([1]), np.array([0, 2]), np.zeros(0), np.array([3])]
    labels, count = CudaGraph(from_rows(rows)).strong_components(np.ones(4, dtype=np.bool_))
    np.testing.assert_array_equal(labels, [0, 0, 1, 2])
    assert count == 3
    empty = graph_models.build(ModelKind.CTMC, np.zeros(5, dtype=int), [])
    expect_the_cpus(empty)


def test_names_alone_take_few_sweeps_along_a_ring():
    tuning = GraphTuning(search=SearchTuning(most_searches=0))
    for model in (graph_models.ring(50_000), renumbered(graph_models.ring(50_000))):
        graph = expect_the_cpus(model, graph=CudaGraph(model, tuning=tuning))
        # The diameter is 49,999.
        assert names_of(graph)[-1] == "sweeps"
        assert graph.steps[-1][1] < 100


@pytest.mark.parametrize("upwards", [True, False])
def test_a_line_of_a_million_states_takes_few_rounds(upwards):
    model = graph_models.long_line(10**6, upwards)
    graph = CudaGraph(model)
    labels, count = graph.strong_components(everywhere(model))
    assert count == 10**6
    np.testing.assert_array_equal(labels, np.arange(10**6))
    assert not graph.note
    assert graph.rounds < 1000
    assert bsccs(model, GPU).count == 1
    order = graph.condensation_order(labels, count)
    np.testing.assert_array_equal(order, labels[::-1] if upwards else labels)
    assert graph.note == f"left to the CPU after {graph.rounds} rounds"


def test_a_component_comes_after_all_that_it_may_enter():
    for name in ("layers", "rings of 50", "power law", "two that absorb"):
        model = SHAPES[name]()
        graph = CudaGraph(model)
        labels, count = graph.strong_components(everywhere(model))
        order = graph.condensation_order(labels, count)
        assert not graph.note
        place = np.empty(count, dtype=int)
        place[order] = np.arange(count)
        state_of = model.states_of_rows()[model.matrix.row_of_entry()]
        before, after = place[labels[state_of]], place[labels[model.matrix.columns]]
        assert ((after < before) | (labels[state_of] == labels[model.matrix.columns])).all()


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("searches", [0, 4])
def test_the_cpu_may_take_over_after_any_step(searches):
    none = Patience(steps=0, states_a_step=10**12)
    notes = set()
    for name in ("layers", "rings of 5", "line in random order", "thin layers"):
        model = SHAPES[name]()
        for sweeps in (0, 1, 2, 5, 10):
            names = NamesTuning(sweeps_a_look=1, patience=replace(none, steps=sweeps))
            search = SearchTuning(patience=none, most_searches=searches, names=names)
            tuning = GraphTuning(WorklistTuning(rounds_a_look=1, team_levels=4), search)
            graph = expect_the_cpus(model, graph=CudaGraph(model, tuning=tuning))
            within = np.random.default_rng(1).random(model.num_states) < 0.9
            notes.add(graph.note)
            expect_the_cpus(model, within, graph)
    assert any("left to the CPU" in note for note in notes)


@pytest.mark.usefixtures("without_numbers")
def test_without_room_for_the_edges_backwards_names_find_all(gpu, monkeypatch):
    upload = cuda.backwards

    def refuse(*_):
        raise gpu.cuda.memory.OutOfMemoryError(1, 0, 0)

    monkeypatch.setattr(cuda, "backwards", refuse)
    for name in ("torus", "layers", "rings of 50"):
        graph = expect_the_cpus(SHAPES[name]())
        assert not graph.note
        assert names_of(graph)[:2] == ["numbers", "trim_forwards"]
        assert all(name.startswith("sweeps") for name in names_of(graph)[2:])
    monkeypatch.setattr(cuda, "backwards", upload)


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("room", [True, False])
def test_a_deep_graph_is_searched_from_both_ends_again_and_again(gpu, room):
    """Each search parts the rings that lead to its own from those that it leads to."""
    model = renumbered(rings(12, 700))
    graph, pool = CudaGraph(model), gpu.get_default_memory_pool()

    def some(size):
        if size > 15 * model.num_states and not room:
            raise gpu.cuda.memory.OutOfMemoryError(size, 0, 0)
        return pool.malloc(size)

    with gpu.cuda.using_allocator(some):
        expect_the_cpus(model, graph=graph)
    searches = [(rounds, left) for name, rounds, left in graph.steps if name == "search"]
    assert not graph.note
    # 700 levels at 32 a round; one direction after the other unless there is room for two lists.
    assert searches[0][0] >= 2 * 700 // 32
    assert all((rounds < 2 * 700 // 32) == room for rounds, _ in searches[1:])
    if room:
        assert len(searches) < 12
        assert searches[-1][1] == 0


def test_parts_that_numbers_tell_of_are_searched_at_the_same_time():
    model = graphs.generate(graph_families.GENERATED["test-and-set"](0.01))
    graph = expect_the_cpus(model)
    assert [name for name in names_of(graph) if "search" in name or "sweeps" in name] == ["search"]


def test_no_part_that_numbers_tell_of_goes_without_a_search():
    """Of 30,000 regions in so many places drawn at random, some would share one."""
    graph = expect_the_cpus(rings(30_000, 3))
    assert graph.steps[-1][0::2] == ("search", 0)


def test_a_device_without_room_leaves_all_to_the_cpu(gpu):
    def refuse(size):
        raise gpu.cuda.memory.OutOfMemoryError(size, 0, 0)

    with gpu.cuda.using_allocator(refuse):
        graph = expect_the_cpus(SHAPES["power law"]())
    assert graph.note.startswith("GPU 0 ran out of memory")


def test_the_graph_takes_what_it_says():
    model = SHAPES["torus"]()
    graph = CudaGraph(model)
    graph.strong_components(everywhere(model))
    size, edges = model.num_states, model.matrix.num_entries
    lists = 8 * (size + 2 * (edges // ListKernels().longest_item_edges))
    # Both directions, the lists, two numbers a state, the leaders, and the open states.
    expected = 2 * 4 * (size + 1 + edges) + lists + 8 * size + 4 * size + (size + 31) // 32 * 4
    assert graph.device_bytes == expected


def test_the_device_is_used_where_it_is_asked_for():
    model = big.random_mdp(3, 2_000)
    found = sccs(model, environment=GPU)
    assert isinstance(devices.operations_of(model, GPU), CudaGraph)
    here = sccs(model)
    np.testing.assert_array_equal(found.labels, here.labels)
    bottom = bsccs(model, GPU)
    np.testing.assert_array_equal(bottom.labels, bsccs(model).labels)


def test_arguments_stay_as_they_are_and_may_be_of_other_types():
    model = SHAPES["power law"]()
    matrix = model.matrix
    wide = replace(
        model,
        matrix=replace(
            matrix,
            row_offsets=matrix.row_offsets.astype(np.int64),
            columns=matrix.columns.astype(np.int64),
        ),
        row_group_offsets=model.row_group_offsets.astype(np.int64),
    )
    within = np.random.default_rng(3).random(model.num_states) < 0.5
    copy = within.copy()
    for array in (matrix.row_offsets, matrix.columns, matrix.values, within):
        array.flags.writeable = False
    labels, count = CudaGraph(wide).strong_components(within)
    np.testing.assert_array_equal(labels, CpuGraph(model).strong_components(within)[0])
    np.testing.assert_array_equal(within, copy)
    kept = labels.copy()
    CudaGraph(model).components_left(labels, count)
    np.testing.assert_array_equal(labels, kept)
