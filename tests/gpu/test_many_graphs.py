"""Components of ten thousand random graphs on the GPU: SciPy's, and the same every time.

That SciPy finds what plain loops do on these graphs is shown beside the CPU's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bridge.files.umb import read_umb
from engines.devices.graph import operations_of
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.explicit import ModelKind
from tests.engines import graph_models
from tests.engines.component_checks import expect_components
from tests.engines.graph_models import everywhere
from tests.engines.graph_shapes import NUMBERINGS, Drawn, disjoint_union, drawn
from tests.engines.published import FOLDER
from tests.engines.test_components import PUBLISHED, published
from tests.engines.test_many_graphs import long_line, rows_of

GPU = SolverEnvironment(device=DeviceChoice.GPU)
SEEDS = 10_000
A_UNION = 50
REPEATS = 10


def compare(found):
    graph = operations_of(found.model, GPU)
    expect_components(graph, found)


@pytest.mark.parametrize("chunk", range(10))
def test_ten_thousand_graphs_one_by_one(chunk):
    for seed in range(SEEDS // 10 * chunk, SEEDS // 10 * (chunk + 1)):
        compare(drawn(seed))


def test_ten_thousand_graphs_side_by_side():
    for first in range(0, SEEDS, A_UNION):
        compare(disjoint_union([drawn(seed) for seed in range(first, first + A_UNION)]))


LARGE = {
    "shapes": lambda: disjoint_union([drawn(seed, 4_000) for seed in range(300)]),
    "power law": lambda: whole(graph_models.power_law(100_000)),
    "ring": lambda: whole(graph_models.ring(300_000)),
    "rings that break": lambda: whole(graph_models.nested_rings(3_000, lambda i: i // 2)),
    **{f"line {order}": lambda order=order: long_line(10**6, order) for order in NUMBERINGS},
    "line of an MDP": lambda: long_line(10**6, "random", ModelKind.MDP),
}


def whole(model):
    return Drawn("", model, everywhere(model), rows_of(model))


@pytest.mark.parametrize("name", LARGE)
def test_large_graphs(name):
    compare(LARGE[name]())


@pytest.mark.parametrize("name", ["shapes", "power law", "line random"])
@pytest.mark.usefixtures("poison")
def test_ten_runs_find_the_same(name):
    found = LARGE[name]()
    answers = []
    for _ in range(REPEATS):
        again = whole_copy(found)
        graph = operations_of(again.model, GPU)
        answer = [*graph.strong_components(again.restrict)]
        if found.model.kind is ModelKind.MDP:
            answer += graph.end_components(again.restrict, again.choices)
        answers.append(answer)
    for answer in answers[1:]:
        for part, first in zip(answer, answers[0], strict=True):
            np.testing.assert_array_equal(part, first)


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"needs published counts: no folder {FOLDER}")
@pytest.mark.parametrize(("name", "program", "constants"), PUBLISHED)
def test_published_models_have_the_published_counts(name, program, constants):
    found = whole(read_umb(FOLDER / "models" / f"{name}.umb").model)
    expected, graph = published(program, constants), operations_of(found.model, GPU)
    labels, count = graph.strong_components(found.restrict)
    assert (count, np.bincount(labels).max()) == (expected["sccs"], expected["largest_scc"])
    assert (~graph.components_left(labels, count)).sum() == expected["bsccs"]
    if found.model.kind is ModelKind.MDP:
        _, count, kept = graph.end_components(found.restrict, found.choices)
        assert (count, kept.sum()) == (expected["mecs"], expected["choices_in_mecs"])


def whole_copy(found):
    """The same model as another object, which no graph has been prepared of."""
    model = found.model
    return replace(found, model=replace(model, matrix=replace(model.matrix)))
