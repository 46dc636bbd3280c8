"""The choices of MDPs from diagrams, against all assignments one by one."""

from __future__ import annotations

import numpy as np
import pytest

from engines.diagrams.choices import choice_roots, roots_of
from engines.diagrams.diagram import ZERO
from engines.diagrams.survey import survey
from engines.errors import InvalidModelError, UnsupportedError
from engines.host.blocks import copy_choices
from engines.host.expansion import expand
from engines.host.expansion.build import build
from engines.host.expansion.expand import Choices, expand_choice_vector, expand_surveyed_choices
from tests.engines.diagrams.expansion import expand_choices
from tests.engines.diagrams.random_diagrams import DiagramBuilder, random_function, random_model

SHAPES = [
    (seed, levels, variables)
    for levels in (0, 1, 3)
    for variables in (0, 1, 3)
    for seed in range(4)
]


def numbers_of(assignments):
    """Return each assignment as a number, the first variable counting most."""
    places = 1 << np.arange(assignments.shape[1])[::-1]
    return (assignments * places).sum(axis=1)


def expansions(model):
    """Yield the choices of a model as they are found: by paths, and by the blocks of each level."""
    yield expand_choices(model.diagram, model.numbering, model.choice_variables)
    roots, assignments = choice_roots(model.diagram, model.choice_variables)
    surveyed = survey(model.diagram, model.numbering, roots)
    yield expand_surveyed_choices(surveyed, roots, assignments)
    for level in range(model.numbering.num_levels + 1):
        yield Choices(*copy_choices(build(surveyed, level)), roots, assignments)


@pytest.mark.parametrize(("seed", "levels", "variables"), SHAPES)
def test_rows_are_the_choices_of_each_state_in_order(seed, levels, variables):
    model = random_model(seed, levels, variables)
    # PRISM's sparse engine: state by state, assignment by assignment, those with an entry.
    wanted = [
        (state, choice)
        for state in range(model.num_states)
        for choice in range(2**variables)
        if model.dense[choice, state].any()
    ]
    dense = np.array([model.dense[choice, state] for state, choice in wanted])
    row, column = np.nonzero(dense) if wanted else (np.empty(0), np.empty(0, dtype=int))
    for found in expansions(model):
        numbers = numbers_of(found.assignments)
        groups = found.row_group_offsets
        states = np.repeat(np.arange(model.num_states), np.diff(groups))
        assert len(groups) == model.num_states + 1
        assert found.choice_numbers.dtype == np.int32
        assert list(zip(states, numbers[found.choice_numbers], strict=True)) == wanted
        assert found.matrix.num_rows == len(wanted)
        assert found.matrix.row_of_entry().tolist() == row.tolist()
        assert found.matrix.columns.tolist() == column.tolist()
        assert found.matrix.values.tolist() == ([] if not wanted else dense[row, column].tolist())


@pytest.mark.parametrize(("seed", "levels", "variables"), SHAPES)
def test_rewards_of_choices_are_those_of_their_states(seed, levels, variables):
    model = random_model(seed, levels, variables, density=0.6)
    choices = expand_choices(model.diagram, model.numbering, model.choice_variables)
    rewards, dense = random_function(seed, model, choices=True)
    found = expand_choice_vector(rewards, model.numbering, model.choice_variables, choices)
    states = np.repeat(np.arange(model.num_states), np.diff(choices.row_group_offsets))
    numbers = numbers_of(choices.assignments)[choices.choice_numbers]
    assert found.tolist() == dense[numbers, states].tolist()


def test_rewards_come_out_the_same_in_parts(monkeypatch):
    monkeypatch.setattr(expand, "STATES_AT_ONCE", 7)
    test_rewards_of_choices_are_those_of_their_states(0, 3, 3)


@pytest.mark.parametrize("seed", range(8))
def test_roots_are_one_for_each_assignment_with_entries(seed):
    model = random_model(seed, 2, choice_variables=3)
    roots, assignments = choice_roots(model.diagram, model.choice_variables)
    assert (roots != ZERO).all()
    assert (np.diff(numbers_of(assignments)) > 0).all()
    assert roots_of(model.diagram, model.choice_variables, assignments).tolist() == roots.tolist()
    every = np.array(list(np.ndindex(2, 2, 2)), dtype=bool)
    present = roots_of(model.diagram, model.choice_variables, every) != ZERO
    assert every[present].tolist() == assignments.tolist()


def test_a_choice_variable_that_does_not_matter_doubles_the_choices():
    builder = DiagramBuilder()
    one = builder.terminal(1.0)
    diagram = builder.diagram(builder.test(1, 0, one))
    roots, assignments = choice_roots(diagram, [0, 1])
    assert roots.tolist() == [one, one]
    assert assignments.tolist() == [[False, True], [True, True]]


def test_choice_variables_below_others_are_refused():
    builder = DiagramBuilder()
    diagram = builder.diagram(builder.test(1, 0, builder.terminal(1.0)))
    with pytest.raises(UnsupportedError, match="tests variable 1 above the choice variable 2"):
        choice_roots(diagram, [0, 2])
    with pytest.raises(UnsupportedError, match="tests variable 1 above the choice variable 2"):
        roots_of(diagram, [0, 2], np.ones((1, 2), dtype=bool))
    with pytest.raises(InvalidModelError, match="do not ascend"):
        choice_roots(diagram, [2, 0])


def test_rewards_that_depend_on_a_foreign_variable_are_refused():
    model = random_model(1, 3, choice_variables=1, density=1.0)
    choices = expand_choices(model.diagram, model.numbering, model.choice_variables)
    builder = DiagramBuilder()
    foreign = int(model.numbering.columns[1])
    rewards = builder.diagram(builder.test(foreign, 0, builder.terminal(1.0)))
    with pytest.raises(InvalidModelError, match=f"depends on variable {foreign}"):
        expand_choice_vector(rewards, model.numbering, model.choice_variables, choices)
