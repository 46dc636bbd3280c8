"""The recurrent class of a chain, seen on its diagram: beside reachability by plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from engines.devices import recurrent
from engines.devices.recurrent import recurrent_class
from engines.host.hybrid import HostHybrid
from tests.engines import models
from tests.engines.diagrams.expansion import hybrid_matrix
from tests.engines.diagrams.queue_diagrams import QueueDiagrams
from tests.engines.diagrams.random_diagrams import as_diagram, random_model


def closure(dense):
    """Which states lead to which, in any number of steps, by squaring."""
    reach = (dense > 0.0) | np.eye(len(dense), dtype=bool)
    for _ in range(len(dense).bit_length()):
        reach = (reach.astype(int) @ reach.astype(int)) > 0
    return reach


def both(diagram, numbering, level=None):
    matrices = (numbering, numbering.transposed())
    return [hybrid_matrix(diagram, each, level=level) for each in matrices]


@pytest.mark.parametrize("seed", range(60))
def test_random_chains(seed):
    density = (0.1, 0.2, 0.35, 0.6)[seed % 4]
    model = random_model(seed, levels=1 + seed % 4, density=density)
    reach = closure(model.dense[0])
    common = reach.all(axis=0)
    for level in range(model.states.ndim + 1):
        found = recurrent_class(*both(model.diagram, model.numbering, level))
        if not common.any():
            assert isinstance(found, str)
            assert "more than one bottom strongly connected component" in found
            missed, recurrent_state = (
                int(word) for word in found.replace(",", "").split() if word.isdigit()
            )
            assert not reach[missed, recurrent_state]
            assert reach[reach[recurrent_state], recurrent_state].all()
            continue
        assert not isinstance(found, str), found
        assert common[found.state]
        assert found.size == common.sum()
        members = np.ones(len(common), bool) if found.members is None else found.members
        np.testing.assert_array_equal(members, common)


def test_both_answers_are_among_the_random_chains():
    answers = [
        closure(random_model(seed, 1 + seed % 4, density=(0.1, 0.2, 0.35, 0.6)[seed % 4]).dense[0])
        .all(axis=0)
        .sum()
        for seed in range(60)
    ]
    sizes = [random_model(seed, 1 + seed % 4).num_states for seed in range(60)]
    assert 0 in answers
    assert any(0 < answer < size for answer, size in zip(answers, sizes, strict=True))


def test_queues_are_one_class():
    model = QueueDiagrams(3, 6)
    found = recurrent_class(*both(model.diagram(), model.numbering()))
    assert not isinstance(found, str)
    assert found.members is None
    assert found.size == 7**3


def line(size, back):
    """States one after another; the last `back` of them go round."""
    rows = [{state + 1: 1.0} for state in range(size - 1)]
    return models.dtmc([*rows, {size - back: 1.0}])


def test_the_class_behind_many_transient_states_is_found():
    model = line(200, 7)
    found = recurrent_class(*both(*as_diagram(model.matrix)))
    assert not isinstance(found, str)
    assert np.flatnonzero(found.members).tolist() == list(range(193, 200))


def test_a_search_that_takes_too_long_is_no_answer(monkeypatch):
    monkeypatch.setattr(recurrent, "MOST_WALKS", 1)
    found = recurrent_class(*both(*as_diagram(line(20, 3).matrix)))
    assert found == "after 1 walks through the diagram no recurrent state was met"


def test_a_walk_finds_each_state_once_and_the_farthest_last():
    hybrid = hybrid_matrix(*as_diagram(line(50, 1).matrix))
    reached, farthest = HostHybrid.of(hybrid).reached_from(20)
    assert np.flatnonzero(reached).tolist() == list(range(20, 50))
    assert farthest == 49
