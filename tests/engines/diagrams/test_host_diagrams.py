"""Blocks copied and paths followed by the compiled library, in any pieces and on any threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.diagrams.choices import choice_roots
from engines.diagrams.diagram import TERMINAL
from engines.errors import InvalidModelError
from engines.host import blocks as host
from engines.host import paths
from engines.host.blocks import copy_choices, copy_rows
from engines.host.compiled import shares
from engines.host.paths import count_paths, read_points
from tests.engines.diagrams.expansion import hybrid_matrix
from tests.engines.diagrams.random_diagrams import (
    DiagramBuilder,
    diagram_of,
    numbering_of,
    random_model,
)


@pytest.fixture(params=[1, 3])
def threads(request, monkeypatch):
    """Work for one thread, or for so many, with several pieces each."""
    monkeypatch.setattr(shares, "num_cores", lambda: request.param)
    monkeypatch.setattr(shares, "ENTRIES_PER_THREAD", 1)
    return request.param


@pytest.fixture(params=[np.int32, np.int64])
def offset_type(request, monkeypatch):
    """Offsets as small matrices have them, or as those of 2³¹ entries."""
    monkeypatch.setattr(host, "index_dtype", lambda _: request.param)
    return request.param


def assert_rows(matrix, dense, offset_type=np.int32):
    """Compare a matrix with a dense one: entries, their order and their types."""
    row, column = np.nonzero(dense)
    assert matrix.row_offsets.dtype == offset_type
    assert matrix.row_offsets.tolist() == [0, *np.cumsum((dense != 0).sum(axis=1))]
    assert matrix.columns.dtype == np.int32
    assert matrix.columns.tolist() == column.tolist()
    assert matrix.values.tolist() == dense[row, column].tolist()


@pytest.mark.parametrize("level", [0, 2, 5])
@pytest.mark.usefixtures("threads")
def test_rows_are_copied_in_pieces(level, offset_type):
    model = random_model(5, 5)
    hybrid = hybrid_matrix(model.diagram, model.numbering, level=level)
    size = model.num_states
    for first, last in ((0, size), (0, 0), (3, size - 2), (size // 2, size // 2 + 1)):
        assert_rows(copy_rows(hybrid, range(first, last)), model.dense[0][first:last], offset_type)


def rows_of(model):
    """Return the rows of a model's choices in the order of PRISM: dense, states and numbers."""
    roots, assignments = choice_roots(model.diagram, model.choice_variables)
    which = assignments @ (1 << np.arange(assignments.shape[1])[::-1])
    pairs = [
        (state, number)
        for state in range(model.num_states)
        for number in range(len(roots))
        if model.dense[which[number], state].any()
    ]
    states, numbers = (list(part) for part in zip(*pairs, strict=True))
    return model.dense[which[numbers], states], states, numbers, roots


@pytest.mark.parametrize("level", [0, 2, 4])
@pytest.mark.usefixtures("threads")
def test_choices_are_copied_in_pieces(level, offset_type):
    model = random_model(2, 4, choice_variables=2)
    dense, states, numbers, roots = rows_of(model)
    found = copy_choices(hybrid_matrix(model.diagram, model.numbering, level=level, roots=roots))
    assert_rows(found[0], dense, offset_type)
    assert np.repeat(np.arange(model.num_states), np.diff(found[1])).tolist() == states
    assert found[2].tolist() == numbers


@pytest.mark.parametrize("at_once", [1, 7, 10**9])
def test_paths_are_followed_in_batches(monkeypatch, at_once, offset_type):
    monkeypatch.setattr(paths, "STEPS_AT_ONCE", at_once)
    model = random_model(2, 4, choice_variables=2)
    dense, states, numbers, roots = rows_of(model)
    counted = count_paths(model.diagram, model.numbering, roots)
    assert counted.num_entries == np.count_nonzero(dense)
    assert counted.rows.tolist() == np.bincount(states, minlength=model.num_states).tolist()
    matrix, groups, found = counted.choices()
    assert_rows(matrix, dense, offset_type)
    assert np.repeat(np.arange(model.num_states), np.diff(groups)).tolist() == states
    assert found.tolist() == numbers
    chain = random_model(4, 4)
    assert_rows(count_paths(chain.diagram, chain.numbering).matrix(), chain.dense[0], offset_type)


def steps_by_plain_loops(diagram, numbering, root):
    """Return how many nodes the paths of a matrix have, its entries, and how many there are."""

    def follow(node, level, row, column):
        if node == 0 or row < 0 or column < 0:
            return 0, 0
        if level == numbering.num_levels:
            return 1, 1
        steps, entries = 1, 0
        upper, lower = sorted((numbering.rows[level], numbering.columns[level]))
        for first in (0, 1):
            half = child(node, upper, first)
            for second in (0, 1):
                bits = {upper: first, lower: second}
                below = follow(
                    child(half, lower, second),
                    level + 1,
                    side(row, bits[numbering.rows[level]]),
                    side(column, bits[numbering.columns[level]]),
                )
                steps, entries = steps + below[0], entries + below[1]
        return steps, entries

    def child(node, variable, bit):
        if diagram.variables[node] != variable:
            return node
        return diagram.high[node] if bit else diagram.low[node]

    def side(place, bit):
        return numbering.high[place] if bit else numbering.low[place]

    return follow(root, 0, numbering.root, numbering.root)


@pytest.mark.parametrize("at_once", [5, 10**9])
@pytest.mark.parametrize("seed", range(6))
def test_the_limits_are_exact(monkeypatch, seed, at_once):
    monkeypatch.setattr(paths, "STEPS_AT_ONCE", at_once)
    model = random_model(seed, 4, density=0.8)
    given = (model.diagram, model.numbering, [model.diagram.root] * 2)
    steps, entries = (2 * n for n in steps_by_plain_loops(*given[:2], model.diagram.root))
    assert entries == 2 * np.count_nonzero(model.dense) > 0
    assert count_paths(*given, most_steps=steps).num_entries == entries
    assert count_paths(*given, most_steps=steps - 1) is None
    assert count_paths(*given, most_entries=entries).num_entries == entries
    assert count_paths(*given, most_entries=entries - 1) is None
    assert count_paths(*given, most_steps=0) is None


def value_at(diagram, node, bits):
    """Return the value of a function at an assignment of variables."""
    while diagram.variables[node] != TERMINAL:
        node = (diagram.high if bits[diagram.variables[node]] else diagram.low)[node]
    return diagram.values[node]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("levels", [0, 1, 5])
@pytest.mark.parametrize("seed", range(4))
def test_functions_are_read_at_states(seed, levels):
    random = np.random.default_rng(seed)
    variables = list(range(1, 2 * levels, 2))
    states = np.asarray(random.random((2,) * levels) < 0.6)
    states[(0,) * levels] = True
    numbering = numbering_of(states, variables, [variable + 1 for variable in variables])
    builder = DiagramBuilder()
    roots = [
        builder.of_function(np.asarray(random.integers(0, 4, states.shape) / 2.0), variables)
        for _ in range(3)
    ]
    diagram = builder.diagram(roots[0])
    members = [dict(zip(variables, bits, strict=True)) for bits in np.argwhere(states).tolist()]
    points = random.integers(0, len(members), 100)
    begins = random.choice(roots, 100)
    expected = [
        value_at(diagram, node, members[state]) for node, state in zip(begins, points, strict=True)
    ]
    assert read_points(diagram, numbering, points, begins).tolist() == expected
    assert read_points(diagram, numbering, points[::2], begins[::2]).tolist() == expected[::2]
    assert read_points(diagram, numbering, points[:0], begins[:0]).tolist() == []


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("variable", [0, 2, 9])
def test_a_function_of_another_variable_is_an_error_wherever_it_is_met(variable):
    builder = DiagramBuilder()
    one = builder.terminal(1.0)
    wrong = builder.test(variable, 0, one)
    numbering = numbering_of(np.ones((2, 2), bool), [1, 3], [2, 4])
    diagram = builder.diagram(one)
    for place in (0, 17, 39):
        roots = np.full(40, one)
        roots[place] = wrong
        with pytest.raises(InvalidModelError, match=f"depends on variable {variable}"):
            read_points(diagram, numbering, np.zeros(40, dtype=int), roots)


@pytest.mark.usefixtures("threads")
def test_of_several_foreign_variables_that_of_the_last_node_is_named():
    builder = DiagramBuilder()
    one = builder.terminal(1.0)
    wrong = [builder.test(variable, 0, one) for variable in (9, 2, 0)]
    numbering = numbering_of(np.ones((2, 2), bool), [1, 3], [2, 4])
    for order in ([0, 2, 1], [2, 0, 1], [1, 0, 2]):
        roots = np.repeat(np.array(wrong)[order], 20)
        with pytest.raises(InvalidModelError, match="depends on variable 0"):
            read_points(builder.diagram(one), numbering, np.zeros(60, dtype=int), roots)


@pytest.mark.parametrize(("state", "root"), [(4, 0), (-1, 0), (0, 2), (0, -1)])
def test_points_that_are_none_are_refused(state, root):
    diagram = diagram_of(np.ones((2, 2)), [1, 3])
    numbering = numbering_of(np.ones((2, 2), bool), [1, 3], [2, 4])
    assert diagram.num_nodes == 2
    with pytest.raises(ValueError, match="are not all of 0 to"):
        read_points(diagram, numbering, np.array([0, state]), np.array([0, root]))
    with pytest.raises(ValueError, match="2 states, but 1 roots"):
        read_points(diagram, numbering, np.array([0, 1]), np.array([0]))


def test_children_that_are_none_are_refused():
    model = random_model(1, 3)
    for name in ("low", "high"):
        for child in (-1, model.diagram.num_nodes):
            children = getattr(model.diagram, name).copy()
            children[-1] = child
            with pytest.raises(ValueError, match="are not all of 0 to"):
                count_paths(replace(model.diagram, **{name: children}), model.numbering)
    with pytest.raises(ValueError, match="are not all of 0 to"):
        count_paths(model.diagram, model.numbering, [model.diagram.num_nodes])


def test_blocks_that_are_none_are_refused():
    model = random_model(1, 3)
    hybrid = hybrid_matrix(model.diagram, model.numbering, level=1)
    jobs = hybrid.job_blocks.copy()
    jobs[-1] = -1
    with pytest.raises(ValueError, match="are not all of 0 to"):
        copy_rows(replace(hybrid, job_blocks=jobs))


@pytest.mark.parametrize("variable", [0, 3, 6, 9])
@pytest.mark.parametrize("at_once", [1, 10**9])
def test_a_matrix_of_another_variable_is_an_error(monkeypatch, variable, at_once):
    monkeypatch.setattr(paths, "STEPS_AT_ONCE", at_once)
    values = np.arange(32.0).reshape((2,) * 5) + 1.0
    diagram = diagram_of(values, sorted([1, 2, 7, 8, variable]))
    numbering = numbering_of(np.ones((2, 2), bool), [1, 7], [2, 8])
    with pytest.raises(InvalidModelError, match=f"depends on variable {variable}"):
        count_paths(diagram, numbering, [0, diagram.root])
