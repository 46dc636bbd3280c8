"""Qualitative reachability, against every memoryless strategy and the fixpoints of the oracle."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

from engines.devices import graph as devices
from engines.graph.prob01 import prob0, prob1, reachable
from engines.model.explicit import ExplicitModel, ModelKind
from tests.engines import graph_models, graph_oracles, models, reference
from tests.engines.graph_models import everywhere, nowhere
from tests.engines.models import MAX, MIN

STRATEGIES = 300


def number_of_strategies(model):
    return np.prod([float(len(rows)) for rows in reference.choices_of(model)])


@pytest.mark.parametrize("direction", [MIN, MAX])
def test_all_memoryless_strategies_agree(direction):
    compared = 0
    for seed in range(700):
        model = graph_models.random_model(seed)
        if number_of_strategies(model) > STRATEGIES:
            continue
        remain, target = graph_models.random_masks(seed, model.num_states)
        no, yes = graph_oracles.prob01(model, remain, target, direction)
        np.testing.assert_array_equal(prob0(model, remain, target, direction), no, f"{seed}")
        np.testing.assert_array_equal(prob1(model, remain, target, direction), yes, f"{seed}")
        compared += 1
    assert compared > 500


@pytest.mark.parametrize("kind", [ModelKind.DTMC, ModelKind.CTMC])
def test_chains_by_their_paths(kind):
    for seed in range(700):
        model = graph_models.random_model(seed, kind, most=9)
        remain, target = graph_models.random_masks(seed, model.num_states)
        no, yes = graph_oracles.prob01(model, remain, target, None)
        np.testing.assert_array_equal(prob0(model, remain, target), no, f"{seed}")
        np.testing.assert_array_equal(prob1(model, remain, target), yes, f"{seed}")


def test_the_fixpoints_agree_on_larger_models():
    for seed in range(100):
        model = graph_models.random_model(seed, most=40)
        remain, target = graph_models.random_masks(seed, model.num_states)
        for expected, found in (
            (reference.prob0a, prob0(model, remain, target, MAX)),
            (reference.prob0e, prob0(model, remain, target, MIN)),
            (reference.prob1a, prob1(model, remain, target, MIN)),
            (reference.prob1e, prob1(model, remain, target, MAX)),
        ):
            np.testing.assert_array_equal(found, expected(model, remain, target), f"{seed}")


def test_what_paths_enter_is_reachable():
    for seed in range(300):
        model = graph_models.random_model(seed, most=12)
        sources, _ = graph_models.random_masks(seed, model.num_states)
        edges = [set().union(*after) for after in graph_oracles.successors(model)]
        expected = graph_oracles.closure(edges)[sources].any(axis=0)
        np.testing.assert_array_equal(reachable(model, sources), expected, f"{seed}")


@pytest.mark.parametrize("direction", [MIN, MAX])
def test_without_a_target_nothing_is_reached(direction):
    model = models.random_mdp(1)
    assert prob0(model, everywhere(model), nowhere(model), direction).all()
    assert not prob1(model, everywhere(model), nowhere(model), direction).any()


@pytest.mark.parametrize("direction", [MIN, MAX])
def test_the_target_is_reached_wherever_one_may_remain(direction):
    model = models.random_mdp(2)
    target = models.mask(50, [3, 4])
    np.testing.assert_array_equal(prob0(model, nowhere(model), target, direction), ~target)
    np.testing.assert_array_equal(prob1(model, nowhere(model), target, direction), target)
    assert prob1(model, nowhere(model), everywhere(model), direction).all()


def test_an_absorbing_state_of_a_ctmc_is_no_way_on():
    model = models.ctmc([{1: 2.0, 2: 1.0}, {0: 1.0}, {}])
    target = models.mask(3, [1])
    np.testing.assert_array_equal(prob0(model, everywhere(model), target), [False, False, True])
    np.testing.assert_array_equal(prob1(model, everywhere(model), target), [False, True, False])


def test_the_arguments_stay_as_they_are_and_may_be_read_only():
    model = graph_models.power_law(40_000)
    for array in (model.matrix.row_offsets, model.matrix.columns, model.matrix.values):
        array.flags.writeable = False
    remain, target = graph_models.random_masks(1, model.num_states)
    remain.flags.writeable = target.flags.writeable = False
    no, yes = (find(model, remain, target, MIN) for find in (prob0, prob1))
    assert not (no & yes).any()
    assert (yes | ~target).all()


def test_an_mdp_needs_a_direction():
    model = models.end_components()
    for find in (prob0, prob1):
        with pytest.raises(ValueError, match="direction"):
            find(model, everywhere(model), nowhere(model))


def test_wide_indices_give_the_same_sets():
    narrow = graph_models.power_law(40_000, seed=3)
    matrix = narrow.matrix
    wide = ExplicitModel(
        ModelKind.MDP,
        type(matrix)(
            matrix.row_offsets.astype(np.int64),
            matrix.columns.astype(np.int64),
            matrix.values,
            matrix.num_columns,
        ),
        narrow.row_group_offsets.astype(np.int64),
    )
    remain, target = graph_models.random_masks(5, narrow.num_states)
    for direction in (MIN, MAX):
        for find in (prob0, prob1):
            one, other = (find(model, remain, target, direction) for model in (narrow, wide))
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("upwards", [True, False])
def test_a_line_of_a_million_states_takes_linear_time(upwards):
    warm = graph_models.long_line(200_000)
    prob1(warm, everywhere(warm), nowhere(warm))
    model = graph_models.long_line(10**6, upwards)
    far = nowhere(model)
    far[-1 if upwards else 0] = True
    started = time.perf_counter()
    assert not prob0(model, everywhere(model), far).any()
    assert prob1(model, everywhere(model), far).all()
    assert reachable(model, far).sum() == 1
    assert time.perf_counter() - started < 5.0


def test_a_line_that_crumbles_state_by_state_takes_linear_time():
    warm = graph_models.crumbling_line(60_000)
    prob1(warm, everywhere(warm), models.mask(warm.num_states, [0]), MAX)
    model = graph_models.crumbling_line(500_000)
    target = models.mask(model.num_states, [0])
    started = time.perf_counter()
    # Whatever is done, the trap is entered with some probability: only the target itself is sure.
    np.testing.assert_array_equal(prob1(model, everywhere(model), target, MAX), target)
    may = ~prob0(model, everywhere(model), target, MAX)
    assert may.sum() == model.num_states - 1
    assert time.perf_counter() - started < 5.0


def test_small_crumbling_lines_are_those_of_the_oracle():
    for size in (2, 3, 10, 50):
        model = graph_models.crumbling_line(size)
        target = models.mask(model.num_states, [0])
        expected = reference.prob1e(model, everywhere(model), target)
        np.testing.assert_array_equal(prob1(model, everywhere(model), target, MAX), expected)


def test_the_prepared_graph_goes_with_the_model():
    model = graph_models.ring(10)
    before = len(devices._prepared)
    reachable(model, everywhere(model))
    assert devices.operations_of(model) is devices.operations_of(model)
    assert len(devices._prepared) == before + 1
    del model
    gc.collect()
    assert len(devices._prepared) == before
