"""Matrices, vectors and sets from diagrams, against all assignments one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.diagrams.diagram import NO_STATES, StateNumbering
from engines.diagrams.survey import survey
from engines.errors import InvalidModelError, UnsupportedError
from engines.host.blocks import copy_rows
from engines.host.expansion.expand import expand_surveyed, expanded_bytes
from engines.host.expansion.walks import surveyed_or_walked
from engines.host.paths import expand_set, expand_vector
from tests.engines.diagrams.expansion import expand_matrix, hybrid_matrix
from tests.engines.diagrams.random_diagrams import (
    DiagramBuilder,
    diagram_of,
    numbering_of,
    random_function,
    random_model,
)

SHAPES = [(seed, levels) for levels in (0, 1, 2, 3, 4) for seed in range(6)]


def assert_equals(matrix, dense):
    """Compare with a dense matrix: entries, their order, and that none is 0."""
    assert matrix.row_offsets.tolist() == [0, *np.cumsum((dense != 0).sum(axis=1))]
    row, column = np.nonzero(dense)
    assert matrix.columns.dtype == np.int32
    assert matrix.columns.tolist() == column.tolist()
    assert matrix.values.tolist() == dense[row, column].tolist()
    assert matrix.num_columns == dense.shape[1]


def expansions(diagram, numbering):
    """Yield a matrix as it is found: by paths, and by the blocks of each level."""
    yield expand_matrix(diagram, numbering)
    yield expand_surveyed(survey(diagram, numbering))
    for level in range(numbering.num_levels + 1):
        yield copy_rows(hybrid_matrix(diagram, numbering, level=level))


@pytest.mark.parametrize(("seed", "levels"), SHAPES)
def test_matrices_are_those_of_all_assignments(seed, levels):
    model = random_model(seed, levels)
    for matrix in expansions(model.diagram, model.numbering):
        assert_equals(matrix, model.dense[0])


@pytest.mark.parametrize(("seed", "levels"), SHAPES)
def test_a_transposed_numbering_gives_the_transpose(seed, levels):
    model = random_model(seed, levels)
    for matrix in expansions(model.diagram, model.numbering.transposed()):
        assert_equals(matrix, model.dense[0].T)


@pytest.mark.parametrize("seed", range(8))
def test_ranges_of_rows_are_those_of_the_whole_matrix(seed):
    model = random_model(seed, 4)
    hybrid = hybrid_matrix(model.diagram, model.numbering)
    for first in range(0, model.num_states + 1, 3):
        for last in (first, (first + model.num_states + 1) // 2, model.num_states):
            matrix = copy_rows(hybrid, range(first, last))
            assert_equals(matrix, model.dense[0][first:last])


@pytest.mark.parametrize("seed", range(8))
def test_every_level_gives_the_same_matrix(seed):
    model = random_model(seed, 4)
    surveyed = survey(model.diagram, model.numbering)
    for level in range(5):
        hybrid = hybrid_matrix(model.diagram, model.numbering, level=level)
        assert dense_of_hybrid(hybrid).tolist() == model.dense[0].tolist()
        assert hybrid.num_entries == (model.dense != 0).sum()
        assert hybrid.num_jobs == surveyed.jobs()[level]
        assert hybrid.nbytes == surveyed.nbytes()[level]
        assert hybrid.num_strips == surveyed.strips[level]
        assert (hybrid.block_entries() > 0).all()


@pytest.mark.parametrize("seed", range(8))
def test_blocks_put_together_from_blocks_are_the_same(seed, monkeypatch):
    model = random_model(seed, 5, density=0.6)
    plain = hybrid_matrix(model.diagram, model.numbering, level=1)
    monkeypatch.setattr("engines.host.expansion.build._nested_level", lambda _, level: level + 2)
    monkeypatch.setattr("engines.host.expansion.build.NESTED_ENTRIES", 10)
    nested = hybrid_matrix(model.diagram, model.numbering, level=1)
    for name in ("block_rows", "local_offsets", "local_columns", "local_values"):
        assert getattr(plain, name).tolist() == getattr(nested, name).tolist()


@pytest.mark.parametrize("seed", range(8))
def test_paths_followed_in_parts_come_out_in_order(seed, monkeypatch):
    model = random_model(seed, 4, choice_variables=1)
    roots = [model.diagram.low[model.diagram.root], model.diagram.high[model.diagram.root]]
    if model.diagram.variables[model.diagram.root] != model.choice_variables[0]:
        roots = [model.diagram.root] * 2
    whole = hybrid_matrix(model.diagram, model.numbering, level=4, roots=roots)
    monkeypatch.setattr("engines.host.expansion.build.JOBS_AT_ONCE", 3)
    parts = hybrid_matrix(model.diagram, model.numbering, level=4, roots=roots)
    for name in ("strip_states", "strip_jobs", "job_blocks", "job_columns", "job_choices"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()


def dense_of_hybrid(hybrid):
    """Read a hybrid matrix row by row, as its description says."""
    dense = np.zeros((hybrid.num_states, hybrid.num_columns))
    for strip in range(hybrid.num_strips):
        first, last = hybrid.strip_states[strip : strip + 2]
        for state in range(first, last):
            columns = []
            for job in range(*hybrid.strip_jobs[strip : strip + 2]):
                block = hybrid.job_blocks[job]
                assert hybrid.block_rows[block + 1] - hybrid.block_rows[block] == last - first
                place = hybrid.block_rows[block] + state - first
                for entry in range(*hybrid.local_offsets[place : place + 2]):
                    columns.append(hybrid.job_columns[job] + hybrid.local_columns[entry])
                    dense[state, columns[-1]] = hybrid.local_values[entry]
            assert columns == sorted(set(columns))
    return dense


@pytest.mark.parametrize(("seed", "levels"), SHAPES)
def test_vectors_and_sets_are_those_of_all_assignments(seed, levels):
    model = random_model(seed, levels)
    diagram, values = random_function(seed, model)
    assert expand_vector(diagram, model.numbering).tolist() == values.tolist()
    assert expand_set(diagram, model.numbering).tolist() == (values != 0).tolist()


@pytest.mark.parametrize("seed", range(6))
def test_vectors_of_values_that_recur_are_those_of_all_assignments(seed):
    # Large enough for what is met again to be copied, not followed.
    random = np.random.default_rng(seed)
    states = random.random((2,) * 9) < 0.8
    parts = np.asarray(random.integers(0, 3, (2, 2**6)) / 2.0)
    values = parts[random.integers(0, 2, 8)].reshape((2,) * 9)
    variables = range(0, 18, 2)
    diagram = diagram_of(values, variables)
    for known in (states, np.broadcast_to(states[0, 0, 0], states.shape)):
        numbering = numbering_of(known, variables, range(1, 19, 2))
        assert expand_vector(diagram, numbering).tolist() == values[known].tolist()
        assert expand_set(diagram, numbering).tolist() == (values[known] != 0).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_the_estimate_covers_the_result(seed):
    model = random_model(seed, 4)
    matrix = expand_matrix(model.diagram, model.numbering)
    size = matrix.row_offsets.nbytes + matrix.columns.nbytes + matrix.values.nbytes
    for made in (survey, surveyed_or_walked):
        assert expanded_bytes(made(model.diagram, model.numbering)) >= size


def test_a_zero_diagram_has_no_entries():
    numbering = numbering_of(np.ones((2, 2), dtype=bool), [0, 2], [1, 3])
    diagram = diagram_of(np.zeros((2,) * 4), range(4))
    for matrix in expansions(diagram, numbering):
        assert_equals(matrix, np.zeros((4, 4)))
    assert expand_vector(diagram, numbering).tolist() == [0.0] * 4
    assert expand_set(diagram, numbering).tolist() == [False] * 4


def test_a_foreign_variable_is_named():
    builder = DiagramBuilder()
    one = builder.terminal(1.0)
    for variable in (0, 2, 4, 7):
        diagram = builder.diagram(builder.test(variable, 0, one))
        numbering = numbering_of(np.ones((2, 2), dtype=bool), [1, 5], [3, 6])
        with pytest.raises(InvalidModelError, match=f"depends on variable {variable}"):
            expand_matrix(diagram, numbering)
        with pytest.raises(InvalidModelError, match=f"depends on variable {variable}"):
            survey(diagram, numbering)
        with pytest.raises(InvalidModelError, match=f"depends on variable {variable}"):
            expand_vector(diagram, numbering)


def test_a_vector_of_column_variables_is_refused():
    builder = DiagramBuilder()
    diagram = builder.diagram(builder.test(1, 0, builder.terminal(1.0)))
    numbering = numbering_of(np.ones((2, 2), dtype=bool), [0, 2], [1, 3])
    with pytest.raises(InvalidModelError, match="depends on variable 1"):
        expand_vector(diagram, numbering)


def test_columns_apart_from_their_rows_are_refused():
    numbering = numbering_of(np.ones((2, 2), dtype=bool), [0, 1], [2, 3])
    for refusing in (expand_matrix, survey):
        with pytest.raises(UnsupportedError, match="mixed"):
            refusing(diagram_of(np.ones((2,) * 4), range(4)), numbering)


def test_a_level_that_is_none_is_refused():
    model = random_model(0, 3)
    for level in (-1, 4):
        with pytest.raises(ValueError, match=f"level {level}: the state has 3 variables"):
            hybrid_matrix(model.diagram, model.numbering, level=level)


def identity_of(levels):
    """Return the identity on all states of so many variables."""
    builder = DiagramBuilder()
    node = builder.terminal(1.0)
    for level in reversed(range(levels)):
        row, column = 2 * level, 2 * level + 1
        low = builder.test(column, node, 0)
        high = builder.test(column, 0, node)
        node = builder.test(row, low, high)
    steps = np.append(np.arange(1, levels + 1), -1).astype(np.int32)
    counts = 2 ** np.arange(levels, -1, -1, dtype=np.int64)
    numbering = numbering_of(np.ones(2, dtype=bool), [0], [1])
    numbering = replace(
        numbering,
        low=steps,
        high=steps,
        low_counts=np.append(counts[1:], 0),
        counts=counts,
        root=0,
        rows=np.arange(0, 2 * levels, 2, dtype=np.int32),
        columns=np.arange(1, 2 * levels, 2, dtype=np.int32),
    )
    return builder.diagram(node), numbering


def test_the_structure_holds_more_states_than_32_bits():
    diagram, numbering = identity_of(40)
    hybrid = hybrid_matrix(diagram, numbering, level=20)
    assert (hybrid.num_entries, hybrid.num_states) == (2**40, 2**40)
    assert hybrid.num_jobs == 2**20
    assert hybrid.job_columns[-1] == 2**40 - 2**20
    assert survey(diagram, numbering).best_level() == 20
    with pytest.raises(UnsupportedError, match="columns of 32 bits"):
        expand_matrix(diagram, numbering)
    with pytest.raises(UnsupportedError, match="choose a deeper level"):
        hybrid_matrix(diagram, numbering, level=4)


def test_a_numbering_that_miscounts_is_refused():
    model = random_model(0, 3)
    for name in ("counts", "low_counts"):
        wrong = getattr(model.numbering, name).copy()
        wrong[model.numbering.root] += 1
        with pytest.raises(InvalidModelError, match=f"node {model.numbering.root} of a numbering"):
            expand_matrix(model.diagram, replace(model.numbering, **{name: wrong}))
        with pytest.raises(InvalidModelError, match=f"node {model.numbering.root} of a numbering"):
            survey(model.diagram, replace(model.numbering, **{name: wrong}))


def test_no_states_have_no_rows():
    nothing = np.array([NO_STATES, NO_STATES], dtype=np.int32)
    none = np.zeros(2, dtype=np.int64)
    variables = np.array([0, 2], dtype=np.int32)
    numbering = StateNumbering(nothing, nothing, none, none, 0, variables, variables + 1)
    diagram = diagram_of(np.ones((2,) * 4), range(4))
    for matrix in expansions(diagram, numbering):
        assert_equals(matrix, np.zeros((0, 0)))
    assert len(expand_vector(diagram_of(np.ones((2, 2)), [0, 2]), numbering)) == 0


def test_a_matrix_with_choices_is_not_expanded_without_them():
    model = random_model(0, 3)
    for made in (survey, surveyed_or_walked):
        with pytest.raises(ValueError, match="expand_surveyed_choices"):
            expand_surveyed(made(model.diagram, model.numbering, [model.diagram.root]))
