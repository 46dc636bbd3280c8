"""Steady states of recurrent classes: every engine and method, against the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.model.environment import Convention, Method, SolverEnvironment
from engines.model.explicit import ModelKind
from engines.model.result import Status
from engines.questions.steady_state import solve_steady_state
from tests.engines import models, reference

PROBLEMS = models.steady_state_problems()
NAMED = [Method.JACOBI, Method.JOR, Method.POWER]

OSCILLATING = {"birth and death", "one of several BSCCs", "two states of several"}
"""Periodic once self-loops are left out, as Jacobi does; it never settles there."""


def expect_the_reference(name, environment):
    model, bscc = PROBLEMS[name]
    result = solve_steady_state(model, bscc, environment)
    values, iterations = reference.solve_steady_state(model, bscc, environment)
    assert result.iterations == iterations
    np.testing.assert_allclose(result.values, values, rtol=1e-12)
    expect_a_distribution(result.values, bscc)
    return result


def expect_a_distribution(values, bscc):
    assert values.sum() == pytest.approx(1.0, abs=1e-13)
    assert (values >= 0).all()
    assert not values[~bscc].any()


def balance_defect(model, values):
    """Largest |π Q| over the largest flow through a state."""
    matrix = model.matrix
    row = matrix.row_of_entry()
    flow = values[row] * matrix.values
    into = np.bincount(matrix.columns, weights=flow, minlength=model.num_states)
    out = np.bincount(row, weights=flow, minlength=model.num_states)
    return np.abs(into - out).max() / out.max()


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("name", PROBLEMS)
def test_named_methods_sweep_as_the_reference_does(device, name, method, absolute):
    environment = SolverEnvironment(
        method=method, absolute=absolute, max_iterations=3000, device=device
    )
    result = expect_the_reference(name, environment)
    oscillates = method is Method.JACOBI and name in OSCILLATING
    assert result.status is (Status.NOT_CONVERGED if oscillates else Status.CONVERGED)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_explicit_convention_is_power_on_the_embedded_chain(device, name):
    environment = SolverEnvironment(
        method=Method.JACOBI, convention=Convention.EXPLICIT, epsilon=1e-8, device=device
    )
    result = expect_the_reference(name, environment)
    assert result.method == Method.POWER
    assert balance_defect(PROBLEMS[name][0], result.values) < 1e-6


@pytest.mark.parametrize("omega", [0.5, 0.9, 1.05])
def test_jor_relaxes_by_omega(device, omega):
    environment = SolverEnvironment(method=Method.JOR, omega=omega, epsilon=1e-9, device=device)
    expect_the_reference("CTMC", environment)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_automatic_method_balances_every_class(device, name):
    model, bscc = PROBLEMS[name]
    result = solve_steady_state(model, bscc, SolverEnvironment(epsilon=1e-10, device=device))
    assert result.status is Status.CONVERGED
    expect_a_distribution(result.values, bscc)
    assert balance_defect(model, result.values) < 1e-9


@pytest.mark.parametrize("method", [Method.JOR, Method.POWER])
def test_the_residual_is_that_of_the_values_returned(device, method):
    model, bscc = PROBLEMS["birth and death"]
    environment = SolverEnvironment(method=method, epsilon=1e-3, device=device)
    result = solve_steady_state(model, bscc, environment)
    unrelaxed = Method.POWER if method is Method.POWER else Method.JACOBI
    sweep = reference.steady_state_sweep(
        reference.rows_of(model.matrix), list(range(12)), unrelaxed, 1.0
    )
    residual = reference.largest_residual(sweep, result.values)
    assert result.residual == pytest.approx(residual, rel=1e-6)


@pytest.mark.parametrize("method", [Method.AUTO, *NAMED])
@pytest.mark.parametrize("kind", [ModelKind.DTMC, ModelKind.CTMC])
def test_a_class_of_one_state_has_probability_one(device, kind, method):
    model = models.chain(kind, [{0: 0.5, 1: 0.5}, {1: 1.0} if kind is ModelKind.DTMC else {}])
    environment = SolverEnvironment(method=method, device=device)
    result = solve_steady_state(model, models.mask(2, [1]), environment)
    np.testing.assert_array_equal(result.values, [0.0, 1.0])
    assert result.status is Status.CONVERGED


def test_the_explicit_engine_takes_one_step_in_a_class_of_one_state():
    model = models.dtmc([{0: 1.0}])
    environment = SolverEnvironment(method=Method.JACOBI, convention=Convention.EXPLICIT)
    result = solve_steady_state(model, np.array([True]), environment)
    assert (result.method, result.iterations) == (Method.POWER, 1)
    sparse = replace(environment, convention=Convention.SPARSE)
    assert solve_steady_state(model, np.array([True]), sparse).iterations == 0


def test_self_loops_of_rates_change_nothing_but_the_power_step(device):
    plain = models.birth_death(12)
    rows = reference.rows_of(plain.matrix)
    looped = models.ctmc([{**row, i: 5.0 + i} for i, row in enumerate(rows)])
    everywhere = np.ones(12, dtype=np.bool_)
    for method in (Method.JOR, Method.POWER):
        environment = SolverEnvironment(method=method, epsilon=1e-12, device=device)
        with_loops = solve_steady_state(looped, everywhere, environment)
        without = solve_steady_state(plain, everywhere, environment)
        np.testing.assert_allclose(with_loops.values, without.values, rtol=1e-8)
        assert (with_loops.iterations == without.iterations) == (method is Method.JOR)


def test_states_out_of_order_and_duplicate_entries_are_no_matter(device):
    model, _ = PROBLEMS["CTMC"]
    matrix = model.matrix
    # Each entry twice, at half the rate, and each row backwards.
    row = np.repeat(matrix.row_of_entry(), 2)[::-1]
    order = np.argsort(row, kind="stable")
    columns = np.repeat(matrix.columns, 2)[::-1][order]
    values = np.repeat(matrix.values / 2, 2)[::-1][order]
    doubled = replace(
        model,
        matrix=replace(
            matrix, row_offsets=2 * matrix.row_offsets, columns=columns.copy(), values=values
        ),
    ).check()
    everywhere = np.ones(60, dtype=np.bool_)
    environment = SolverEnvironment(method=Method.JOR, epsilon=1e-10, device=device)
    once = solve_steady_state(model, everywhere, environment)
    twice = solve_steady_state(doubled, everywhere, environment)
    assert twice.iterations == once.iterations
    np.testing.assert_allclose(twice.values, once.values, rtol=1e-12)


def test_what_does_not_fit_is_refused():
    environment = SolverEnvironment(method=Method.VALUE_ITERATION)
    everywhere = np.ones(5, dtype=np.bool_)
    with pytest.raises(UnsupportedError, match="depend on its strategy"):
        solve_steady_state(models.end_components(), everywhere, SolverEnvironment())
    with pytest.raises(UnsupportedError, match="value iteration computes no steady state"):
        solve_steady_state(models.cycle(5), everywhere, environment)
