"""Qualitative reachability on the GPU: the sets of the oracles, and of the CPU, bit by bit."""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from engines.cuda import worklist
from engines.cuda.graph import CudaGraph
from engines.cuda.graph_tuning import GraphTuning, Patience, WorklistTuning
from engines.devices import graph as devices
from engines.errors import UnsupportedError
from engines.graph.prob01 import prob0, prob1, reachable
from engines.host.graph import CpuGraph
from engines.model.csr import CsrMatrix
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.questions.until import until_probabilities
from engines.systems.one_sided import Direction
from tests.engines import graph_models, graph_oracles, models, reference
from tests.engines.graph_models import everywhere, nowhere
from tests.engines.models import MAX, MIN
from tests.gpu import big

GPU = SolverEnvironment(device=DeviceChoice.GPU)
OPERATIONS = ("may_reach", "must_approach", "can_force")
STRATEGIES = 100


@pytest.fixture(autouse=True)
def wide_offsets(request, monkeypatch):
    """`offsets` of the folder forces 64 bits in the sweeps; here in the graphs as well."""
    if "offsets" in request.fixturenames and request.getfixturevalue("offsets") == "wide":
        monkeypatch.setattr(worklist, "_wide", lambda *_: True)


def expect_the_cpus_sets(model, seed=1, graph=None):
    """Compare every operation; return the reasons for which the CPU ended one of them."""
    graph = graph or CudaGraph(model)
    remain, target = graph_models.random_masks(seed, model.num_states)
    notes = []
    for name in (*OPERATIONS, "reached_from"):
        masks = (target,) if name == "reached_from" else (target, remain)
        there = getattr(graph, name)(*masks)
        notes.append(graph.note)
        here = getattr(CpuGraph(model), name)(*masks)
        assert there.dtype == np.bool_
        np.testing.assert_array_equal(there, here, f"{name}, {seed}")
    return notes


@pytest.mark.parametrize("direction", [MIN, MAX])
def test_all_memoryless_strategies_agree(direction):
    compared = 0
    for seed in range(150):
        model = graph_models.random_model(seed)
        strategies = np.prod([float(len(rows)) for rows in reference.choices_of(model)])
        if strategies > STRATEGIES:
            continue
        remain, target = graph_models.random_masks(seed, model.num_states)
        no, yes = graph_oracles.prob01(model, remain, target, direction)
        for find, expected in ((prob0, no), (prob1, yes)):
            found = find(model, remain, target, direction, environment=GPU)
            np.testing.assert_array_equal(found, expected, f"{seed}")
        compared += 1
    assert compared > 80


@pytest.mark.parametrize("kind", [ModelKind.DTMC, ModelKind.CTMC])
def test_chains_by_their_paths(kind):
    for seed in range(100):
        model = graph_models.random_model(seed, kind, most=9)
        remain, target = graph_models.random_masks(seed, model.num_states)
        no, yes = graph_oracles.prob01(model, remain, target, None)
        for find, expected in ((prob0, no), (prob1, yes)):
            found = find(model, remain, target, environment=GPU)
            np.testing.assert_array_equal(found, expected, f"{seed}")


def test_what_paths_enter_is_reachable():
    for seed in range(60):
        model = graph_models.random_model(seed, most=12)
        sources, _ = graph_models.random_masks(seed, model.num_states)
        edges = [set().union(*after) for after in graph_oracles.successors(model)]
        expected = graph_oracles.closure(edges)[sources].any(axis=0)
        found = reachable(model, sources, environment=GPU)
        np.testing.assert_array_equal(found, expected, f"{seed}")


@pytest.mark.parametrize("most", [40, 400])
@pytest.mark.usefixtures("offsets", "poison")
def test_models_of_all_kinds_and_shapes(most):
    for seed in range(40):
        for kind in ModelKind:
            model = graph_models.random_model(seed, kind, most=most)
            assert expect_the_cpus_sets(model, seed) == [""] * 4


LARGE = {
    "random chain": lambda: big.random_dtmc(1, 60_000),
    "recurrent chain": lambda: big.random_rates(2, 60_000),
    "MDP": lambda: big.random_mdp(3, 60_000),
    "power law": lambda: graph_models.power_law(60_000),
    "a row of all states": lambda: big.dense_row(60_000),
    "a column of all states": lambda: big.dense_column(60_000),
    "no edge": lambda: graph_models.build(ModelKind.CTMC, np.zeros(100, dtype=int), []),
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.usefixtures("offsets")
def test_large_models(name):
    model = LARGE[name]()
    graph = CudaGraph(model)
    for seed in range(4):
        assert expect_the_cpus_sets(model, seed, graph) == [""] * 4


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("degree", [31, 32, 33, 4095, 4096, 4097, 8192, 8193, 100_000])
@pytest.mark.usefixtures("offsets")
def test_a_state_that_many_others_enter(degree, rows):
    """State 0 steps to all others, and is entered by each, from one or each of its choices."""
    lengths = np.ones(1 + rows * degree, dtype=int)
    lengths[0] = degree
    columns = np.concatenate([np.arange(1, degree + 1), np.zeros(rows * degree, dtype=int)])
    choices = np.full(degree + 1, rows)
    choices[0] = 1
    model = graph_models.build(ModelKind.MDP, lengths, columns, choices)
    graph = CudaGraph(model)
    hub = models.mask(degree + 1, [0])
    for closure in (graph.may_reach, graph.must_approach, graph.can_force):
        assert closure(hub, everywhere(model)).all()
        assert not graph.note
        np.testing.assert_array_equal(closure(hub, nowhere(model)), hub)
    assert graph.reached_from(hub).all()
    # Choices that many leave: the last one found must be the one that counts.
    others = ~hub
    others[-1] = False
    assert graph.must_approach(others, hub).sum() == degree
    assert graph.can_force(others, hub).sum() == degree - 1


@pytest.mark.parametrize("size", [1, 31, 32, 33, 255, 256, 257, 1025])
def test_sizes_at_the_borders_of_words_and_blocks(size):
    model = graph_models.ring(size)
    graph = CudaGraph(model)
    for state in {0, size // 2, size - 1}:
        one = models.mask(size, [state])
        for found in (graph.reached_from(one), graph.may_reach(one, everywhere(model))):
            assert found.all()
        np.testing.assert_array_equal(graph.may_reach(one, nowhere(model)), one)
        assert not graph.may_reach(nowhere(model), everywhere(model)).any()


@pytest.mark.parametrize("upwards", [True, False])
def test_a_line_of_a_million_states_is_left_to_the_cpu_in_time(upwards):
    warm = graph_models.long_line(200_000, upwards)
    expect_the_cpus_sets(warm)
    model = graph_models.long_line(10**6, upwards)
    far = nowhere(model)
    far[-1 if upwards else 0] = True
    started = time.perf_counter()
    assert not prob0(model, everywhere(model), far, environment=GPU).any()
    assert prob1(model, everywhere(model), far, environment=GPU).all()
    assert time.perf_counter() - started < 5.0
    graph = devices.operations_of(model, GPU)
    assert isinstance(graph, CudaGraph)
    assert graph.may_reach(far, everywhere(model)).all()
    assert graph.note == f"left to the CPU after {graph.rounds} rounds"
    assert graph.rounds < 2 * WorklistTuning().patience.steps


def test_a_line_that_crumbles_state_by_state_is_left_to_the_cpu():
    model = graph_models.crumbling_line(100_000)
    target = models.mask(model.num_states, [0])
    graph = CudaGraph(model)
    np.testing.assert_array_equal(graph.can_force(target, everywhere(model)), target)
    assert "left to the CPU" in graph.note
    assert graph.may_reach(target, everywhere(model)).sum() == model.num_states - 1


@pytest.mark.parametrize("removals", [0, 1, 2, 5, 30])
def test_removals_one_after_another(removals):
    """Each removal is known only after the one before it."""
    model = graph_models.crumbling_line(max(removals, 1))
    target = models.mask(model.num_states, [0])
    graph = CudaGraph(model)
    expected = reference.prob1e(model, everywhere(model), target)
    np.testing.assert_array_equal(graph.can_force(target, everywhere(model)), expected)
    ring = graph_models.nested_rings(max(removals, 1), lambda states: states // 2)
    for state in (0, ring.num_states - 1):
        target = models.mask(ring.num_states, [state])
        expected = reference.prob1e(ring, everywhere(ring), target)
        found = CudaGraph(ring).can_force(target, everywhere(ring))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_the_cpu_may_take_over_after_any_round(rounds):
    lists = WorklistTuning(
        team_levels=WorklistTuning().block_levels,
        rounds_a_look=rounds,
        patience=Patience(steps=0, states_a_step=10**12),
    )
    tuning = GraphTuning(lists)
    ones = np.ones(1_000, dtype=int)
    line = graph_models.build(ModelKind.MDP, ones, np.maximum(np.arange(1_000) - 1, 0), ones)
    graph, end = CudaGraph(line, tuning=tuning), models.mask(1_000, [0])
    for closure in (graph.may_reach, graph.must_approach, graph.can_force):
        assert closure(end, everywhere(line)).all()
        assert graph.note == f"left to the CPU after {2 * rounds} rounds"
    assert graph.reached_from(end[::-1]).all()
    assert graph.note == f"left to the CPU after {2 * rounds} rounds"
    for seed, shape in enumerate((graph_models.power_law(5_000), big.random_mdp(1, 500))):
        expect_the_cpus_sets(shape, seed, CudaGraph(shape, tuning=tuning))


def test_the_cpu_may_take_over_after_any_removal():
    model = graph_models.crumbling_line(20)
    target = models.mask(model.num_states, [0])
    for restarts in range(4):
        tuning = GraphTuning(WorklistTuning(most_restarts=restarts))
        graph = CudaGraph(model, tuning=tuning)
        np.testing.assert_array_equal(graph.can_force(target, everywhere(model)), target)
        assert "left to the CPU" in graph.note


def test_a_device_without_room_leaves_all_to_the_cpu(gpu):
    def refuse(size):
        raise gpu.cuda.memory.OutOfMemoryError(size, 0, 0)

    with gpu.cuda.using_allocator(refuse):
        notes = expect_the_cpus_sets(graph_models.power_law(3_000))
    assert all(note.startswith("GPU 0 ran out of memory") for note in notes)


@pytest.mark.parametrize("kept", [True, False])
def test_only_a_small_graph_stays_on_the_device_and_goes_with_its_model(gpu, monkeypatch, kept):
    tuning = GraphTuning(kept_share=1 if kept else 2**62)
    monkeypatch.setattr("engines.cuda.graph.CudaGraph", partial(CudaGraph, tuning=tuning))
    pool = gpu.cuda.MemoryPool()
    with gpu.cuda.using_allocator(pool.malloc):
        model = big.random_mdp(5, 20_000)
        remain, target = graph_models.random_masks(1, 20_000)
        first = prob1(model, remain, target, MIN, environment=GPU)
        gc.collect()
        held = pool.used_bytes()
        assert (held >= 8 * model.matrix.num_entries / 2) is kept
        assert kept or held == 0
        second = prob1(model, remain, target, MIN, environment=GPU)
        np.testing.assert_array_equal(first, second)
        assert pool.used_bytes() == held
        del model
        gc.collect()
        assert pool.used_bytes() == 0


def test_arguments_stay_as_they_are_and_may_be_of_other_types():
    model = graph_models.power_law(5_000)
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
    remain, target = graph_models.random_masks(5, model.num_states)
    copies = remain.copy(), target.copy()
    for array in (matrix.row_offsets, matrix.columns, matrix.values, remain, target):
        array.flags.writeable = False
    for name in OPERATIONS:
        one, other = (getattr(CudaGraph(each), name)(target, remain) for each in (model, wide))
        np.testing.assert_array_equal(one, other)
        one[:] = True  # the caller's own
    np.testing.assert_array_equal((remain, target), copies)


def test_components_are_the_cpus():
    model = graph_models.power_law(3_000)
    graph, cpu = CudaGraph(model), CpuGraph(model)
    all_states, all_choices = everywhere(model), np.ones(model.matrix.num_rows, dtype=np.bool_)
    labels, count = graph.strong_components(all_states)
    np.testing.assert_array_equal(labels, cpu.strong_components(all_states)[0])
    left = graph.components_left(labels, count)
    np.testing.assert_array_equal(left, cpu.components_left(labels, count))
    for here, there in zip(
        cpu.end_components(all_states, all_choices),
        graph.end_components(all_states, all_choices),
        strict=True,
    ):
        np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("broken", [False, True])
def test_a_graph_that_is_one_component_is_seen_as_one(broken):
    size = 60_000
    columns = (np.arange(size) + 1) % size
    if broken:
        # State 5 is entered, and never left.
        columns[5] = 5
    chords = np.arange(size) * 7 % size
    chords[5] = columns[5]
    entries = np.sort(np.stack([columns, chords], axis=1), axis=1)
    offsets = np.arange(0, 2 * size + 1, 2, dtype=np.int32)
    matrix = CsrMatrix(offsets, entries.ravel().astype(np.int32), np.full(2 * size, 0.5), size)
    model = ExplicitModel(ModelKind.DTMC, matrix)
    found = CudaGraph(model).strong_components(everywhere(model))
    labels, count = CpuGraph(model).strong_components(everywhere(model))
    np.testing.assert_array_equal(found[0], labels)
    assert found[1] == count
    assert (count == 1) is not broken


def test_the_device_is_the_one_that_was_asked_for():
    small, large = big.random_dtmc(1, 100), big.random_dtmc(1, 50_000)
    automatic = SolverEnvironment()
    assert isinstance(devices.operations_of(small, GPU), CudaGraph)
    assert isinstance(devices.operations_of(small, automatic), CpuGraph)
    assert isinstance(devices.operations_of(large, automatic), CudaGraph)
    assert isinstance(devices.operations_of(large), CpuGraph)
    assert devices.operations_of(large, GPU) is devices.operations_of(large, automatic)
    on_cpu = SolverEnvironment(device=DeviceChoice.CPU)
    assert isinstance(devices.operations_of(large, on_cpu), CpuGraph)
    elsewhere = replace(GPU, device_number=99)
    with pytest.raises(UnsupportedError, match="no GPU can be used: there is no device 99"):
        prob0(small, everywhere(small), nowhere(small), environment=elsewhere)
    automatic = replace(automatic, device_number=99)
    assert isinstance(devices.operations_of(large, automatic), CpuGraph)


@pytest.mark.parametrize("direction", [None, *Direction])
def test_until_asks_the_device_about_the_graph(direction):
    model = big.random_dtmc(7, 3_000) if direction is None else big.random_mdp(7, 3_000)
    remain, target = graph_models.random_masks(4, 3_000)
    results = [
        until_probabilities(
            model, remain, target, SolverEnvironment(device=device), direction=direction
        )
        for device in (DeviceChoice.CPU, DeviceChoice.GPU)
    ]
    key = (id(model.matrix), id(model.row_group_offsets), 0)
    assert isinstance(devices._prepared.get(key), CudaGraph)
    for value in (0.0, 1.0):
        here, there = (result.values == value for result in results)
        np.testing.assert_array_equal(there, here)


def test_states_without_edges_are_reached_but_lead_nowhere():
    model = models.ctmc([{1: 2.0, 2: 1.0}, {0: 1.0}, {}])
    graph = CudaGraph(model)
    end = models.mask(3, [2])
    assert graph.may_reach(end, everywhere(model)).all()
    np.testing.assert_array_equal(graph.reached_from(end), end)
    stuck = ExplicitModel(ModelKind.CTMC, model.matrix)
    assert expect_the_cpus_sets(stuck) == [""] * 4
