"""Matrices of queues from diagrams, against those from the numbers of their states."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from engines.diagrams.diagram import ZERO
from engines.diagrams.survey import survey
from engines.host.expansion.expand import expanded_bytes
from engines.host.paths import expand_vector
from tests.engines.diagrams.expansion import expand_matrix
from tests.engines.diagrams.queue_diagrams import QueueDiagrams
from tests.engines.diagrams.random_diagrams import DiagramBuilder


def assert_same(matrix, other):
    assert np.array_equal(matrix.row_offsets, other.row_offsets)
    assert np.array_equal(matrix.columns, other.columns)
    assert np.array_equal(matrix.values, other.values)


@pytest.mark.parametrize("rate_of", [None, lambda length: 0.25 + length])
@pytest.mark.parametrize(("queues", "capacity"), [(1, 5), (2, 4), (3, 12), (2, 200)])
def test_queues_are_expanded(queues, capacity, rate_of):
    model = QueueDiagrams(queues, capacity, rate_of)
    diagram, numbering = model.diagram(), model.numbering()
    assert numbering.num_states == (capacity + 1) ** queues
    assert_same(expand_matrix(diagram, numbering), model.matrix())


@pytest.mark.slow
def test_a_million_states_fit_into_the_estimate():
    model = QueueDiagrams(3, 100, lambda length: 0.25 + length)
    diagram, numbering = model.diagram(), model.numbering()
    estimate = expanded_bytes(survey(diagram, numbering))
    tracemalloc.start()
    matrix = expand_matrix(diagram, numbering)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    begin = time.perf_counter()
    matrix = expand_matrix(diagram, numbering)
    seconds = time.perf_counter() - begin
    size = matrix.row_offsets.nbytes + matrix.columns.nbytes + matrix.values.nbytes
    print(f"{matrix.num_entries} entries in {seconds:.3f} s, peak {peak / size:.2f} of the matrix")
    assert peak <= 1.1 * estimate <= 3.0 * size
    assert_same(matrix, model.matrix())


@pytest.mark.slow
def test_the_entries_of_a_billion_states_are_counted():
    model = QueueDiagrams(3, 999)
    diagram, numbering = model.diagram(), model.numbering()
    found = survey(diagram, numbering)
    # Arrivals and departures each block one length of a queue, moves one of each of two.
    assert found.num_entries == 2 * 999 * 1000**2 + 2 * 999**2 * 1000


@pytest.mark.slow
def test_a_vector_that_changes_from_state_to_state_is_placed():
    model = QueueDiagrams(3, 100)
    builder = DiagramBuilder()
    # The lowest bits of all three queues: nothing is constant over a run of states.
    node = builder.terminal(2.0)
    for queue in reversed(range(3)):
        node = builder.test(2 * (7 * queue + 6), ZERO, node)
    odd = (np.indices((101, 101, 101)) % 2).all(axis=0).ravel()
    values = expand_vector(builder.diagram(node), model.numbering())
    assert np.array_equal(values, 2.0 * odd)
