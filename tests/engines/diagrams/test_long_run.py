"""Long-run answers without a matrix: those of the expanded model, sweep for sweep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.questions.diagram_long_run import LongRun
from engines.questions.long_run import long_run_rewards
from engines.questions.long_run_distribution import steady_state_distribution
from tests.engines import models
from tests.engines.diagrams.expansion import expand_matrix
from tests.engines.diagrams.queue_diagrams import QueueDiagrams
from tests.engines.diagrams.random_diagrams import as_diagram

CPU = SolverEnvironment(device=DeviceChoice.CPU, matrix_format=Format.CSR)
NAMED = (Method.JOR, Method.GAUSS_SEIDEL, Method.BACKWARDS_SOR)


def hybrid(environment):
    return replace(environment, matrix_format=Format.HYBRID)


def with_transient_states(seed, size, transient):
    """A recurrent chain behind states that lead to it and to one another, and do not return."""
    inner = models.recurrent(seed, size - transient)
    rng = np.random.default_rng(seed)
    rows = []
    for state in range(transient):
        targets = rng.choice(np.arange(state + 1, size), 2, replace=False)
        rows.append({int(target): float(rng.uniform(0.5, 2.0)) for target in targets})
    for row in range(inner.num_states):
        entries = range(*inner.matrix.row_offsets[row : row + 2])
        columns, values = inner.matrix.columns, inner.matrix.values
        rows.append({int(columns[e]) + transient: float(values[e]) for e in entries})
    return models.ctmc(rows)


CHAINS = {
    "irreducible": models.recurrent(3, 60),
    "behind transient states": with_transient_states(5, 60, 9),
    "birth and death": models.birth_death(40),
}


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("name", CHAINS)
def test_named_methods(name, method, absolute):
    model = CHAINS[name]
    size = model.num_states
    rng = np.random.default_rng(7)
    earned = rng.uniform(0.0, 3.0, size)
    initial = rng.dirichlet(np.ones(size))
    long_run = LongRun.of_diagram(*as_diagram(model.matrix))
    # One state a slice, so that a colour is the same states whatever lies before them.
    environment = replace(CPU, method=method, absolute=absolute, epsilon=1e-10, omega=0.9)
    environment = replace(environment, slice_size=1, colours=3, max_iterations=100_000)
    pairs = [
        (
            long_run_rewards(model, RewardStructure("", earned), environment),
            long_run.average(earned, hybrid(environment)),
        ),
        (
            steady_state_distribution(model, initial, environment),
            long_run.distribution(initial, hybrid(environment)),
        ),
    ]
    for expected, found in pairs:
        # Colours by number differ where other states come before.
        if method is Method.JOR or name != "behind transient states":
            assert found.iterations == expected.iterations > 0
        assert found.status == expected.status
        assert found.cost.format.startswith("hybrid")
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-6, atol=1e-12)
        if found.iterations == expected.iterations:
            np.testing.assert_allclose(found.values, expected.values, rtol=1e-11, atol=1e-14)
            assert expected.error_known
            assert not found.error_known


@pytest.mark.parametrize("name", CHAINS)
def test_our_choice_of_a_method_is_right_to_epsilon(name):
    model = CHAINS[name]
    long_run = LongRun.of_diagram(*as_diagram(model.matrix))
    initial = np.zeros(model.num_states)
    initial[0] = 1.0
    found = long_run.distribution(initial, replace(hybrid(CPU), epsilon=1e-9))
    generator = np.zeros((model.num_states,) * 2)
    generator[model.matrix.row_of_entry(), model.matrix.columns] = model.matrix.values
    generator -= np.diag(generator.sum(axis=1))
    exact = np.linalg.lstsq(
        np.vstack([generator.T, np.ones(model.num_states)]),
        np.eye(model.num_states + 1)[-1],
        rcond=None,
    )[0]
    np.testing.assert_allclose(found.values, exact, atol=1e-8)
    if name == "behind transient states":
        np.testing.assert_array_equal(found.values[:9], 0.0)
        assert found.values[9:].min() > 0.0
    assert found.error_estimate < 1e-9


def test_the_steady_state_of_ten_thousand_queues():
    queues = QueueDiagrams(2, 99, lambda length: 0.75 + 0.125 * length)
    diagram, numbering = queues.diagram(), queues.numbering()
    model = ExplicitModel(ModelKind.CTMC, expand_matrix(diagram, numbering))
    environment = replace(CPU, method=Method.JOR, max_iterations=60)
    earned = np.arange(model.num_states, dtype=np.float64)
    expected = long_run_rewards(model, RewardStructure("", earned), environment)
    found = LongRun.of_diagram(diagram, numbering).average(earned, hybrid(environment))
    assert found.iterations == expected.iterations == 60
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-11)
    assert found.residual == pytest.approx(expected.residual, rel=1e-6)


def test_equal_rewards_and_single_states_need_no_sweep():
    long_run = LongRun.of_diagram(*as_diagram(CHAINS["behind transient states"].matrix))
    # Those of transient states do not count.
    earned = np.where(np.arange(60) < 9, 5.0, 2.0)
    found = long_run.average(earned, hybrid(CPU))
    assert (found.iterations, set(found.values.tolist())) == (0, {2.0})
    absorbing = LongRun.of_diagram(
        *as_diagram(models.dtmc([{1: 0.5, 2: 0.5}, {2: 1.0}, {2: 1.0}]).matrix)
    )
    found = absorbing.distribution(np.array([0.5, 0.5, 0.0]), hybrid(CPU))
    assert found.values.tolist() == [0.0, 0.0, 1.0]
    assert found.iterations == 0


def test_several_classes_need_a_matrix_and_so_do_some_methods():
    matrix = models.several_bsccs().matrix
    several, size = LongRun.of_diagram(*as_diagram(matrix)), matrix.num_rows
    refusal = several.refusal(hybrid(CPU))
    assert "more than one bottom strongly connected component" in refusal
    with pytest.raises(UnsupportedError, match="more than one bottom"):
        several.average(np.arange(size, dtype=float), hybrid(CPU))
    single = LongRun.of_diagram(*as_diagram(CHAINS["irreducible"].matrix))
    assert single.refusal(hybrid(CPU)) == ""
    power = replace(hybrid(CPU), method=Method.POWER)
    assert single.refusal(power).startswith("Power method needs an expanded matrix here")


def test_several_questions_walk_through_the_diagram_once(monkeypatch):
    walks = []
    monkeypatch.setattr(
        "engines.questions.diagram_long_run.recurrent_class",
        lambda *matrices: walks.append(matrices) or "none in this test",
    )
    long_run = LongRun.of_diagram(*as_diagram(CHAINS["irreducible"].matrix))
    assert [long_run.refusal(hybrid(CPU)) for _ in range(3)] == 3 * ["none in this test"]
    assert len(walks) == 1
