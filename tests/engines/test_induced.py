"""Components of a part of a graph: those that a search restricted to it finds."""

from __future__ import annotations

import numpy as np
import pytest

from engines.host.graph import CpuGraph, _edges
from engines.host.induced import components_within
from engines.model.explicit import ModelKind
from tests.engines import graph_models


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("kind", [ModelKind.DTMC, ModelKind.MDP])
def test_the_components_of_a_part_are_those_of_the_restricted_search(kind, share):
    rng = np.random.default_rng(7)
    for seed in range(60):
        model = graph_models.random_model(seed, kind, most=40)
        restrict = rng.random(model.num_states) < share
        members = np.flatnonzero(restrict)
        wanted = CpuGraph(model).strong_components(restrict)[0][members]
        offsets, columns = _edges(model.matrix)
        found = components_within(offsets, columns, model.row_group_offsets, members)
        assert len(found) == len(members)
        # The same partition, whatever the numbers.
        pairs = set(zip(found.tolist(), wanted.tolist(), strict=True))
        assert len(pairs) == len(set(found.tolist())) == len(set(wanted.tolist()))
