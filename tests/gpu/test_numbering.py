"""Components that the order of the states' numbers sets apart: exactly those of plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cuda.components import ComponentSearch
from engines.cuda.graph import CudaGraph
from engines.cuda.graph_edges import forwards
from engines.cuda.modules import stream
from engines.cuda.numbering import SPAN, Numbering
from engines.cuda.sets import to_mask, to_set
from engines.cuda.worklist import Worklist
from engines.host.graph import CpuGraph
from engines.model.explicit import ModelKind
from tests.engines import graph_models
from tests.engines.graph_models import everywhere


def edges_of(model):
    """The state that each edge leaves, and the one that it enters."""
    return model.states_of_rows()[model.matrix.row_of_entry()], model.matrix.columns


def gaps_of(size, before, after):
    """Below which states no edge leads up, or none down."""
    up, down = np.zeros((2, size + 1), dtype=np.int64)
    for across, low, high in ((up, before, after), (down, after, before)):
        there = low < high
        np.add.at(across, low[there] + 1, 1)
        np.add.at(across, high[there] + 1, -1)
    return (np.cumsum(up) == 0) | (np.cumsum(down) == 0)


def apart(size, before, after):
    """Which states have no edge up, or none down, across the gap below, and across that above."""
    gaps = gaps_of(size, before, after)
    return gaps[:-1] & gaps[1:]


def found_by(gpu, model, open_, cut):
    """The states that are named, on the device, after checking names, counts and parts."""
    size = model.num_states
    with stream(0):
        work = Worklist(size, model.matrix.num_rows, model.matrix.num_entries)
        matrix, groups = model.matrix, model.row_group_offsets
        ahead = forwards(work.launcher, matrix.row_offsets, matrix.columns, groups)
        # As searches look edges up: by states, not by their rows first.
        search = ComponentSearch(work, ahead, lambda: None, size)
        states, leader = to_set(open_), gpu.full(size, -7, dtype=gpu.int32)
        space = gpu.full(2 * size, 0xABABABAB, dtype=gpu.uint32)
        gone = None if cut is None else to_set(cut)
        numbers = Numbering(work, search._ahead, gone, states, leader, space)
        named, kept = leader.get(), to_mask(states, size)
        numbers.name_parts(by_regions=False)
        parts = leader.get()
        old = np.arange(size, dtype=np.int32) // 5 % 3
        leader.set(old)
        numbers = Numbering(work, search._ahead, gone, to_set(open_), leader, space)
        numbers.name_parts(by_regions=True)
        regions = leader.get()
    assert numbers.left == np.count_nonzero(kept)
    taken = open_ & ~kept
    np.testing.assert_array_equal(named, np.where(taken, np.arange(size), -7))
    assert not (kept & ~open_).any()
    before, after = edges_of(model)
    counted = open_[before] & open_[after]
    if cut is not None:
        counted &= ~cut
    gaps = gaps_of(size, before[counted], after[counted])[:-1]
    assert numbers.parts == np.count_nonzero(gaps & kept)
    part = np.cumsum(gaps)
    np.testing.assert_array_equal(parts, np.where(kept, part, named))
    # Regions and parts of them are called the same where both are, and there alone.
    both = np.unique(np.stack((old, part))[:, kept], axis=1)
    together = np.unique(np.stack((old, part, regions))[:, kept], axis=1)
    assert both.shape[1] == together.shape[1] == len(np.unique(regions[kept]))
    return taken


def mostly(rng, size, upwards, backwards, far):
    """A chain whose edges lead one way, but for a few; so far at the most."""
    lengths = rng.integers(0, 4, size)
    before = np.repeat(np.arange(size), lengths)
    step = rng.integers(1, far + 1, len(before))
    other = rng.random(len(before)) < backwards
    after = np.clip(before + np.where(other != upwards, step, -step), 0, size - 1)
    return graph_models.build(ModelKind.CTMC, lengths, after)


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("upwards", [True, False])
@pytest.mark.parametrize("size", [1, 7, 8, 9, 31, 33, SPAN - 1, SPAN, SPAN + 1, 70_000])
def test_exactly_the_states_between_free_gaps(gpu, size, upwards):
    rng = np.random.default_rng(size)
    seen = set()
    for backwards in (0.0, 1 / size, 0.01, 0.3):
        for far in (1, 30, size):
            model = mostly(rng, size, upwards, backwards, far)
            before, after = edges_of(model)
            for open_ in (everywhere(model), rng.random(size) < 0.8):
                for cut in (None, rng.random(len(before)) < 0.2):
                    counted = open_[before] & open_[after]
                    if cut is not None:
                        counted &= ~cut
                    expected = apart(size, before[counted], after[counted]) & open_
                    found = found_by(gpu, model, open_, cut)
                    np.testing.assert_array_equal(found, expected)
                    seen.add(int(expected.sum()) if expected.any() else -1)
    assert size < 10 or len(seen) > 4


def test_one_gap_may_be_free_of_edges_up_and_the_next_of_edges_down(gpu):
    # Up to 2, from there down to 0 and 1; 3 is entered from above alone, and 4 leads down.
    rows = [[1], [0], [0, 1], [2], [3], [3]]
    lengths = [len(row) for row in rows]
    model = graph_models.build(ModelKind.CTMC, lengths, np.concatenate(rows))
    found = found_by(gpu, model, everywhere(model), None)
    np.testing.assert_array_equal(found, [False, False, True, True, True, True])


@pytest.mark.usefixtures("offsets")
@pytest.mark.parametrize("at", [0, 5, 3_000_000, 4_999_998])
def test_many_blocks_and_one_edge_back(gpu, at):
    """More blocks than one joins at a time, and rows of more edges than a thread follows."""
    size, long_row = 5_000_000, 100
    lengths = np.ones(size, dtype=int)
    lengths[[at, at + 1]] = long_row, 2
    columns = np.repeat(np.minimum(np.arange(size) + 1, size - 1), lengths)
    columns[at + long_row] = at
    model = graph_models.build(ModelKind.CTMC, lengths, columns)
    found = found_by(gpu, model, everywhere(model), None)
    np.testing.assert_array_equal(np.flatnonzero(~found), [at, at + 1])


def test_choices_of_an_mdp_are_edges_of_its_states(gpu):
    model = graph_models.build(
        ModelKind.MDP, [1, 2, 1, 1, 1], [1, 2, 3, 0, 3, 3], choices=[1, 2, 1, 1]
    )
    found = found_by(gpu, model, everywhere(model), None)
    before, after = edges_of(model)
    np.testing.assert_array_equal(found, apart(4, before, after))
    np.testing.assert_array_equal(found, [False, False, True, True])


@pytest.mark.parametrize("upwards", [True, False])
def test_a_graph_whose_edges_lead_one_way_takes_one_look(upwards):
    model = mostly(np.random.default_rng(4), 50_000, upwards, 0.0, 1_000)
    graph = CudaGraph(model)
    labels, count = graph.strong_components(everywhere(model))
    assert graph.steps == [("numbers", 1, 0)]
    assert (graph.rounds, graph.note) == (0, "")
    expected, number = CpuGraph(model).strong_components(everywhere(model))
    np.testing.assert_array_equal(labels, expected)
    assert count == number
