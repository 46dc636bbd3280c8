"""Strong components, against mutual reachability, SciPy and published counts."""

from __future__ import annotations

import gc
import json
import time
import weakref

import numpy as np
import pytest

from bridge.files.umb import read_umb
from engines.graph.components import bsccs, condensation_order, sccs
from engines.host.graph import CpuGraph
from engines.model.explicit import ModelKind
from tests.engines import component_checks, graph_models, graph_oracles, models, reference
from tests.engines.graph_models import everywhere
from tests.engines.graph_shapes import drawn
from tests.engines.published import FOLDER


@pytest.mark.parametrize("kind", list(ModelKind))
def test_components_are_the_states_that_reach_each_other(kind):
    for seed in range(400):
        model = graph_models.random_model(seed, kind, most=15)
        within, _ = graph_models.random_masks(seed, model.num_states)
        for restrict in (None, within):
            found = sccs(model, restrict)
            expected = graph_oracles.sccs(model, restrict)
            assert graph_oracles.sets_of(found.labels, found.count) == expected, seed
            assert (
                (found.labels >= 0) == (everywhere(model) if restrict is None else within)
            ).all()


@pytest.mark.parametrize("kind", [ModelKind.DTMC, ModelKind.CTMC])
def test_bottom_components_are_those_of_the_oracle(kind):
    for seed in range(400):
        model = graph_models.random_model(seed, kind, most=15)
        found = bsccs(model)
        sets = [sorted(states) for states in graph_oracles.sets_of(found.labels, found.count)]
        assert sets == reference.bsccs(model.matrix), seed


def test_bottom_components_of_an_mdp_are_closed_under_all_choices():
    for seed in range(200):
        model = graph_models.random_model(seed, most=10)
        edges = [set().union(*after) for after in graph_oracles.successors(model)]
        expected = [
            states
            for states in graph_oracles.sccs(model)
            if all(edges[state] <= states for state in states)
        ]
        found = bsccs(model)
        assert graph_oracles.sets_of(found.labels, found.count) == expected, seed


def test_an_absorbing_state_of_a_ctmc_is_a_bottom_component():
    found = bsccs(models.ctmc([{1: 2.0}, {2: 1.0, 3: 1.0}, {}, {3: 5.0}]))
    np.testing.assert_array_equal(found.labels, [-1, -1, 0, 1])


def test_the_components_of_a_model_go_with_it():
    model = graph_models.random_model(1, ModelKind.DTMC, most=15)
    kept = bsccs(model)
    assert bsccs(model) is kept
    labels = weakref.ref(kept.labels)
    other = graph_models.random_model(2, ModelKind.DTMC, most=15)
    del kept, model
    gc.collect()
    assert labels() is None
    # That of a model which is no longer the last one searched leaves the last one's.
    gone = graph_models.random_model(3, ModelKind.DTMC, most=15)
    bsccs(gone)
    last = bsccs(other)
    del gone
    gc.collect()
    assert bsccs(other) is last


def test_stored_zeros_join_nothing():
    model = graph_models.with_zeros(graph_models.long_line(9), np.random.default_rng(0))
    assert sccs(model).count == 9
    np.testing.assert_array_equal(bsccs(model).labels, [-1] * 8 + [0])


def test_no_states_have_no_components():
    model = graph_models.ring(4)
    found = sccs(model, np.zeros(4, dtype=np.bool_))
    assert found.count == 0
    np.testing.assert_array_equal(found.labels, [-1] * 4)


def expect_order(model, usable, component, found, count):
    """Components are SciPy's, numbered so that each comes after those that it may enter."""
    within = component >= 0
    expected, number = component_checks.strong_components(model, within, usable)
    assert count == number
    np.testing.assert_array_equal(component_checks.numbered(component, within)[0], expected)
    row = model.matrix.row_of_entry()[np.asarray(usable)[model.matrix.row_of_entry()]]
    into = model.matrix.columns[np.asarray(usable)[model.matrix.row_of_entry()]]
    sources = component[model.states_of_rows()[row]]
    assert (component[into] <= sources)[(sources >= 0) & (component[into] >= 0)].all()
    assert sorted(found) == np.flatnonzero(within).tolist()


def graphs_without_zeros(number):
    for seed in range(number):
        found = drawn(seed, 80)
        if (found.model.matrix.values != 0).all():
            yield seed, found


def test_components_are_listed_after_those_that_they_may_enter():
    for seed, given in graphs_without_zeros(300):
        model = given.model
        usable = np.random.default_rng(seed).random(model.matrix.num_rows) < 0.8
        found, bounds = CpuGraph(model).ordered_components(given.restrict, usable)
        count = len(bounds) - 1
        component = np.full(model.num_states, -1)
        component[found] = np.repeat(np.arange(count), np.diff(bounds))
        np.testing.assert_array_equal(component >= 0, given.restrict)
        expect_order(model, usable, component, found.tolist(), count)


@pytest.mark.parametrize("onwards", [lambda at: (at + 1) % 100, lambda at: np.minimum(at + 1, 99)])
def test_two_processes_are_searched_in_either_order(onwards):
    """Rings are searched from their nearest process, chains from their farthest."""
    first, last = np.divmod(np.arange(100 * 100), 100)
    for targets in (
        (onwards(first) * 100 + last, first * 100 + onwards(last)),
        (first * 100 + onwards(last), onwards(first) * 100 + last),
    ):
        model = graph_models.build(
            ModelKind.DTMC, np.full(100 * 100, 2), np.stack(targets, axis=1).ravel()
        )
        everything = everywhere(model)
        expected, count = component_checks.strong_components(model, everything)
        found = sccs(model)
        assert found.count == count
        np.testing.assert_array_equal(found.labels, expected)


def test_large_models_have_the_components_that_scipy_finds():
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    model = graph_models.power_law(100_000)
    matrix, size = model.matrix, model.num_states
    state_of = np.repeat(np.arange(size), np.diff(model.row_group_offsets))
    edges = (state_of[matrix.row_of_entry()], matrix.columns)
    square = coo_array((np.ones(matrix.num_entries), edges), shape=(size, size)).tocsr()
    count, labels = connected_components(square, connection="strong")
    found = sccs(model)
    assert found.count == count
    # The same sets: as many pairs of labels as there are labels.
    assert len(np.unique(np.stack((labels, found.labels)), axis=1).T) == count
    assert (np.diff(np.unique(found.labels, return_index=True)[1]) > 0).all()


@pytest.mark.parametrize(
    ("model", "count", "bottom"),
    [
        (graph_models.long_line(10**6), 10**6, 1),
        (graph_models.long_line(10**6, upwards=False), 10**6, 1),
        (graph_models.ring(10**6), 1, 1),
    ],
    ids=["line", "line backwards", "ring"],
)
def test_a_million_states_in_a_row_take_linear_time(model, count, bottom):
    bsccs(graph_models.ring(200_000))
    started = time.perf_counter()
    assert sccs(model).count == count
    assert bsccs(model).count == bottom
    assert time.perf_counter() - started < 5.0


PUBLISHED = [
    ("coin2_K2", "coin2.nm", "K=2"),
    ("csma2_2", "csma2_2.nm", ""),
    ("firewire_abst_d3", "firewire_abst.nm", "delay=3"),
    ("leader3", "leader3.nm", ""),
    ("wlan0_COL0", "wlan0.nm", "TRANS_TIME_MAX=10"),
    ("zeroconf_N20_K2", "zeroconf.nm", "N=20,K=2,reset=true"),
    ("cluster_N2", "cluster.sm", "N=2"),
    ("dice", "dice.pm", ""),
    ("egl_N2_L2", "egl.pm", "N=2,L=2"),
    ("herman7", "herman7.pm", ""),
    ("nand_N5_K1", "nand.pm", "N=5,K=1"),
    ("tandem_c3", "tandem.sm", "c=3"),
]


def published(program, constants):
    entries = json.loads((FOLDER / "mec.json").read_text())["models"]
    return next(
        entry
        for entry in entries
        if entry["model"].endswith(f"/{program}") and entry["constants"] == constants
    )


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"needs published counts: no folder {FOLDER}")
@pytest.mark.parametrize(("name", "program", "constants"), PUBLISHED)
def test_published_models_have_the_published_counts(name, program, constants):
    model = read_umb(FOLDER / "models" / f"{name}.umb").model
    expected = published(program, constants)
    assert model.num_states == expected["states"]
    components, bottom = sccs(model), bsccs(model)
    assert (components.count, bottom.count) == (expected["sccs"], expected["bsccs"])
    assert np.bincount(components.labels).max() == expected["largest_scc"]
    assert (bottom.labels >= 0).sum() == expected["states_in_bsccs"]


def levels(model, found):
    """The most components that follow each other from each on, by plain recursion."""
    edges = [set().union(*after) for after in graph_oracles.successors(model)]
    after = [set() for _ in range(found.count)]
    for state, successors in enumerate(edges):
        own = found.labels[state]
        if own >= 0:
            after[own] |= {found.labels[other] for other in successors} - {own, -1}

    def level(component):
        return 1 + max((level(other) for other in after[component]), default=-1)

    return [level(component) for component in range(found.count)], after


@pytest.mark.parametrize("kind", list(ModelKind))
def test_a_component_comes_after_all_that_it_may_enter(kind):
    for seed in range(150):
        model = graph_models.random_model(seed, kind, most=15)
        within, _ = graph_models.random_masks(seed, model.num_states)
        for restrict in (None, within):
            found = sccs(model, restrict)
            order = condensation_order(model, found).tolist()
            level, after = levels(model, found)
            assert order == sorted(range(found.count), key=lambda c: (level[c], c)), seed
            place = {component: at for at, component in enumerate(order)}
            for component, others in enumerate(after):
                assert all(place[other] < place[component] for other in others), seed


@pytest.mark.parametrize("upwards", [True, False])
def test_a_line_of_a_million_states_is_ordered_from_its_end(upwards):
    model = graph_models.long_line(10**6, upwards)
    condensation_order(model, sccs(model))
    started = time.perf_counter()
    order = condensation_order(model, sccs(model))
    assert time.perf_counter() - started < 5.0
    states = np.arange(10**6)
    np.testing.assert_array_equal(order, states[::-1] if upwards else states)


def test_no_components_have_an_empty_order():
    model = graph_models.ring(4)
    order = condensation_order(model, sccs(model, np.zeros(4, dtype=np.bool_)))
    assert order.shape == (0,)
