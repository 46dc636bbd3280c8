"""Worklists of short and long lists: a team of blocks, and all blocks, in turns."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cuda import worklist
from engines.cuda.graph import CudaGraph
from engines.cuda.graph_tuning import GraphTuning, ListKernels, WorklistTuning
from engines.cuda.modules import Launcher, Variant, _function
from engines.cuda.sets import to_mask, to_set
from engines.host.graph import CpuGraph
from engines.model.explicit import ExplicitModel, ModelKind
from tests.engines import graph_models
from tests.engines.graph_models import everywhere


class OneBlock(Launcher):
    """Launches kernels as they are compiled for devices that do not know teams."""

    def _kernel(self, module, name):
        alone = Variant(defines=("TEAM=1",))
        return _function(module, name, self.offset_type, alone, self._device)


@pytest.fixture(params=["a team", "one block", "alone"])
def team(request, monkeypatch):
    """Short lists are worked off by a team, by one block as on older devices, or by nobody.

    Returns what the kernels are taken for.
    """
    if request.param == "one block":
        monkeypatch.setattr(worklist, "Launcher", OneBlock)
        return ListKernels(team_blocks=1)
    if request.param == "alone":
        monkeypatch.setattr(worklist.Worklist, "_descend", lambda *_, **__: None)
        return ListKernels(member_items=0)
    return ListKernels()


def layers(width: int, depth: int, seed: int, hub: int = 0) -> ExplicitModel:
    """An MDP of so many layers, each state with one to three rows into the next layer.

    The first state of each tenth layer has a row of `hub` edges.
    """
    rng = np.random.default_rng(seed)
    size = width * depth
    choices = rng.integers(1, 4, size)
    state_of = np.repeat(np.arange(size), choices)
    lengths = rng.integers(1, 3, len(state_of))
    if hub:
        first_rows = np.cumsum(choices) - choices
        lengths[first_rows[:: 10 * width]] = hub
    row_of = np.repeat(np.arange(len(state_of)), lengths)
    state_of_edge = state_of[row_of]
    layer = state_of_edge // width
    columns = (layer + 1) * width + rng.integers(0, width, len(row_of))
    columns = np.where(layer == depth - 1, state_of_edge, columns)
    return graph_models.build(ModelKind.MDP, lengths, columns, choices)


SHAPES = {
    "thin": lambda: layers(3, 4_000, 1),
    "narrow": lambda: layers(300, 400, 2),
    "as wide as a team": lambda: layers(8_192, 12, 3),
    "wide": lambda: layers(40_000, 6, 4),
    "with hubs": lambda: layers(500, 60, 5, hub=9_000),
    "power law": lambda: graph_models.power_law(60_000),
}


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("levels", [1, 3, 256])
def test_deep_and_shallow_lists_end_with_the_cpus_sets(shape, levels, team):
    model = SHAPES[shape]()
    tuning = GraphTuning(WorklistTuning(kernels=team, team_levels=levels))
    graph, here = CudaGraph(model, tuning=tuning), CpuGraph(model)
    rng = np.random.default_rng(9)
    first, last = np.zeros((2, model.num_states), dtype=np.bool_)
    first[0], last[-1] = True, True
    through = rng.random(model.num_states) < 0.98
    np.testing.assert_array_equal(graph.reached_from(first), here.reached_from(first))
    for name in ("may_reach", "must_approach", "can_force"):
        for target in (last, ~through):
            there = getattr(graph, name)(target, through)
            np.testing.assert_array_equal(there, getattr(here, name)(target, through))
    labels, count = graph.strong_components(everywhere(model))
    expected, number = here.strong_components(everywhere(model))
    assert count == number
    np.testing.assert_array_equal(labels, expected)
    ends, count = graph.end_component_states(through)
    expected, number = here.end_component_states(through)
    assert count == number
    np.testing.assert_array_equal(ends, expected)


@pytest.mark.usefixtures("without_numbers")
def test_a_deep_graph_of_thin_layers_is_not_left_to_the_cpu():
    """Each round of blocks that do not wait for each other gets on by a few layers only."""
    model = layers(1_000, 3_000, 7)
    graph = CudaGraph(model)
    labels, count = graph.strong_components(everywhere(model))
    assert count == model.num_states
    np.testing.assert_array_equal(labels, np.arange(count))
    assert not graph.note
    assert [name for name, _, _ in graph.steps] == ["numbers", "trim_forwards", "trim_both"]
    forwards, both = (rounds for _, rounds, _ in graph.steps[1:])
    # What was gone on with is counted once. From both ends there are 1,500 levels at most, 32 a
    # round, and the rounds before it is seen that the lists are short.
    assert both <= 3_000 // 2 // 32 + 2 * WorklistTuning().first_look_rounds
    assert graph.rounds == forwards + both < (3_000 + 2 * 256) // 2 // 32 + 16


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("size", [1, 31, 32, 33, 255, 256, 257, 100_000])
@pytest.mark.parametrize("complement", [False, True])
def test_masks_are_packed_and_unpacked(gpu, size, complement):
    mask = np.random.default_rng(size).random(size) < 0.5
    found = to_set(mask, complement=complement)
    words = np.packbits(mask ^ complement, bitorder="little")
    np.testing.assert_array_equal(found.view(gpu.uint8).get()[: len(words)], words)
    np.testing.assert_array_equal(to_mask(found, size), mask ^ complement)
    np.testing.assert_array_equal(to_mask(found, size, complement=True), ~(mask ^ complement))
