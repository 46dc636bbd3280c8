"""Models given as decision diagrams: the device has what the CPU has of them."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cuda.diagrams import expand_in_pieces
from engines.cuda.sweeper import CudaSweeper
from engines.diagrams.choices import choice_roots
from engines.diagrams.survey import survey
from engines.diagrams.system import DiagramSystem
from engines.host.expansion.build import build
from engines.model.choice import Format
from engines.systems.one_sided import Scaling, SweepSystem
from tests.engines.diagrams.expansion import expand_choices, expand_matrix, hybrid_matrix
from tests.engines.diagrams.queue_diagrams import QueueDiagrams
from tests.engines.diagrams.random_diagrams import random_model
from tests.gpu.hybrids import diagram_sweeper


def assert_same(matrix, other):
    for name in ("row_offsets", "columns", "values"):
        np.testing.assert_array_equal(getattr(matrix, name), getattr(other, name))


@pytest.mark.parametrize("seed", range(8))
def test_chains_are_expanded_as_on_the_cpu_from_every_level(seed):
    model = random_model(seed, levels=1 + seed % 4)
    for numbering in (model.numbering, model.numbering.transposed()):
        expected = expand_matrix(model.diagram, numbering)
        surveyed = survey(model.diagram, numbering)
        for level in range(surveyed.num_levels + 1):
            hybrid = build(surveyed, level)
            assert_same(expand_in_pieces(hybrid).matrix, expected)


@pytest.mark.parametrize("seed", range(8))
def test_choices_are_expanded_as_on_the_cpu_from_every_level(seed):
    model = random_model(seed, levels=1 + seed % 3, choice_variables=1 + seed % 2)
    expected = expand_choices(model.diagram, model.numbering, model.choice_variables)
    roots, _ = choice_roots(model.diagram, model.choice_variables)
    surveyed = survey(model.diagram, model.numbering, roots)
    for level in range(surveyed.num_levels + 1):
        found = expand_in_pieces(build(surveyed, level))
        assert_same(found.matrix, expected.matrix)
        assert found.row_group_offsets is not None
        np.testing.assert_array_equal(found.row_group_offsets, expected.row_group_offsets)
        np.testing.assert_array_equal(found.choice_numbers, expected.choice_numbers)


def balance(model, level=None):
    """The balance equations of a model, and their twin in CSR."""
    diagram, numbering = model.diagram(), model.numbering()
    rates = hybrid_matrix(diagram, numbering)
    into = hybrid_matrix(diagram, numbering.transposed(), level=level)
    size = numbering.num_states
    start = np.full(size, 1.0 / size)
    parts = {"scaling": Scaling.BALANCE, "omega": 0.9}
    twin = SweepSystem(expand_matrix(diagram, numbering), start, **parts)
    return DiagramSystem(into, start, rates=rates, **parts), twin


@pytest.mark.parametrize("rate_of", [None, lambda length: 0.25 + length])
@pytest.mark.parametrize("level", [None, 0, 3, 12])
def test_balance_equations_are_swept_without_their_matrix(level, rate_of):
    system, twin = balance(QueueDiagrams(3, 12, rate_of), level)
    expected = CudaSweeper(twin, -1.0, True, 0, Format.CSR)
    expected.run(70)
    for matrix_format in (Format.PATTERNS, Format.HYBRID):
        found = diagram_sweeper(system, matrix_format)
        found.run(70)
        if matrix_format is Format.PATTERNS:
            np.testing.assert_array_equal(found.values(), expected.values())
        np.testing.assert_allclose(found.values(), expected.values(), rtol=1e-11)
        assert found.residual() == pytest.approx(expected.residual(), rel=1e-6)


def test_a_million_states():
    model = QueueDiagrams(3, 100, lambda length: 0.25 + length)
    matrix = model.matrix()
    assert_same(expand_in_pieces(hybrid_matrix(model.diagram(), model.numbering())).matrix, matrix)
    system, twin = balance(model)
    swept = []
    for sweeper in (
        CudaSweeper(twin, -1.0, True, 0, Format.CSR),
        diagram_sweeper(system, Format.PATTERNS),
        diagram_sweeper(system, Format.HYBRID),
    ):
        sweeper.run(10)
        swept.append(sweeper.values())
    np.testing.assert_array_equal(swept[1], swept[0])
    np.testing.assert_allclose(swept[2], swept[0], rtol=1e-12)
