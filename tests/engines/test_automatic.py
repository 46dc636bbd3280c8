"""The automatic method: where named ones fail, slow chains, the direct way out."""

from __future__ import annotations

import numpy as np
import pytest

from engines.methods import direct
from engines.methods.iterate import iterate
from engines.model.csr import CsrMatrix
from engines.model.environment import Method, SolverEnvironment
from engines.model.explicit import ModelKind
from engines.model.result import Status
from engines.questions.reachability import solve_reachability
from engines.questions.steady_state import solve_steady_state
from engines.solve import system as solve_module
from engines.systems.one_sided import SweepSystem
from tests.engines import models
from tests.engines.test_reference import dense_solution


def everywhere(model):
    return np.ones(model.num_states, dtype=np.bool_)


def dense_steady_state(model):
    """π by numpy.linalg: one balance equation replaced by Σ π = 1."""
    size = model.num_states
    rates = np.zeros((size, size))
    np.add.at(rates, (model.matrix.row_of_entry(), model.matrix.columns), model.matrix.values)
    generator = rates - np.diag(rates.sum(axis=1))
    equations = generator.T.copy()
    equations[0] = 1.0
    return np.linalg.solve(equations, np.eye(size)[0])


def reachability(problem, environment):
    return solve_reachability(
        problem.model, problem.unknown, problem.start, environment, **problem.keywords
    )


TWO_STATES = models.ctmc([{1: 1.0}, {0: 3.0}])
EVEN_CYCLE = models.cycle(6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
PERIODIC_DTMC = models.chain(ModelKind.DTMC, [{1: 0.3, 2: 0.7}, {0: 1.0}, {0: 1.0}])


@pytest.mark.parametrize("model", [TWO_STATES, EVEN_CYCLE, PERIODIC_DTMC])
def test_periodic_classes_converge_where_jacobi_oscillates(device, model):
    named = SolverEnvironment(method=Method.JACOBI, max_iterations=2000, device=device)
    assert solve_steady_state(model, everywhere(model), named).status is Status.NOT_CONVERGED
    automatic = SolverEnvironment(epsilon=1e-10, device=device)
    result = solve_steady_state(model, everywhere(model), automatic)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.values, dense_steady_state(model), rtol=1e-8)


def test_a_slow_ruin_is_answered_within_the_tolerance(device):
    # The sweeps contract by cos(π/300): PRISM's test would stop 5 % off.
    problem = models.until(models.gamblers_ruin(300), models.mask(301, [300]))
    result = reachability(problem, SolverEnvironment(epsilon=1e-10, device=device))
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.values, models.gamblers_ruin_answer(300), rtol=1e-6)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-10])
def test_nearly_uncoupled_blocks_are_weighed_right(device, epsilon):
    model = models.uncoupled_blocks()
    result = solve_steady_state(
        model, everywhere(model), SolverEnvironment(epsilon=epsilon, device=device)
    )
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.values, dense_steady_state(model), rtol=1e-6)


def test_a_small_class_with_long_rows_is_weighed_right_too(device):
    # Mean row 13: past the limit of fill-in, but 24 states are eliminated all the same.
    model = models.uncoupled_blocks(block=8)
    environment = SolverEnvironment(
        epsilon=1e-10, max_iterations=20_000, max_iterations_named=True, device=device
    )
    result = solve_steady_state(model, everywhere(model), environment)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.values, dense_steady_state(model), rtol=1e-6)


def test_a_long_line_is_not_taken_for_converged_before_the_news_arrives(device):
    # For hundreds of sweeps nothing moves but one state's value.
    model = models.line(400)
    problem = models.Problem(model, ~models.mask(400, [399]), models.mask(400, [399]).astype(float))
    result = reachability(problem, SolverEnvironment(epsilon=1e-8, device=device))
    np.testing.assert_array_equal(result.values, np.ones(400))


@pytest.mark.parametrize("ratio", [0.2, 0.9, 1.0, 5.0])
def test_birth_and_death_has_its_closed_form(device, ratio):
    model = models.birth_death(40, birth=ratio, death=1.0)
    result = solve_steady_state(
        model, everywhere(model), SolverEnvironment(epsilon=1e-10, device=device)
    )
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.values, models.birth_death_answer(40, ratio, 1.0), rtol=1e-7)


@pytest.mark.usefixtures("never_at_once")
def test_what_contracts_slowly_is_solved_directly(device, monkeypatch):
    monkeypatch.setattr(solve_module, "SLOW_AFTER", 100)
    problem = models.until(models.gamblers_ruin(300), models.mask(301, [300]))
    result = reachability(problem, SolverEnvironment(epsilon=1e-12, device=device))
    assert "solved by elimination without subtraction" in result.note
    assert result.cost.kernel == "elimination"
    assert result.status is Status.CONVERGED
    assert result.residual < 1e-12
    np.testing.assert_allclose(result.values, models.gamblers_ruin_answer(300), rtol=1e-10)

    model = models.uncoupled_blocks()
    environment = SolverEnvironment(epsilon=1e-12, device=device)
    result = solve_steady_state(model, everywhere(model), environment)
    assert "solved by elimination without subtraction" in result.note
    np.testing.assert_allclose(result.values, dense_steady_state(model), rtol=1e-8)


@pytest.mark.usefixtures("never_at_once")
@pytest.mark.parametrize("name", [*models.chain_problems(), *models.reward_problems()])
def test_elimination_agrees_with_dense_algebra(name, monkeypatch):
    problem = {**models.chain_problems(), **models.reward_problems()}[name]
    monkeypatch.setattr(solve_module, "SLOW_AFTER", -1)
    result = reachability(problem, SolverEnvironment(epsilon=1e-300))
    assert result.cost.kernel == "elimination" or result.change == 0.0
    np.testing.assert_allclose(result.values, dense_solution(problem), rtol=1e-10)


@pytest.mark.parametrize("name", models.steady_state_problems())
def test_elimination_of_a_class_balances_it(name):
    model, bscc = models.steady_state_problems()[name]
    if not bscc.all():
        pytest.skip("the direct solver takes a whole chain")
    values, error = direct.solve_balance(model.matrix)
    assert error < 1e-10
    np.testing.assert_allclose(values, dense_steady_state(model), rtol=1e-9)


def test_a_chain_that_is_never_left_is_refused():
    # Both states move to each other for good: I − A has no inverse.
    swap = models.csr([{1: 1.0}, {0: 1.0}])
    with pytest.raises(RuntimeError, match="never left"):
        direct.solve_chain(SweepSystem(swap, np.zeros(2)))


@pytest.mark.usefixtures("never_at_once")
def test_a_failed_elimination_is_a_note_not_a_crash(device, monkeypatch):
    def fail(*_):
        raise RuntimeError("a value is too large")

    monkeypatch.setattr(solve_module, "SLOW_AFTER", 100)
    monkeypatch.setattr(direct, "solve_chain", fail)
    problem = models.until(models.gamblers_ruin(300), models.mask(301, [300]))
    result = reachability(problem, SolverEnvironment(epsilon=1e-12, device=device))
    assert result.status in (Status.CONVERGED, Status.CHANGE_ONLY)
    np.testing.assert_allclose(result.values, models.gamblers_ruin_answer(300), rtol=1e-6)
    assert "a value is too large" in result.note


def test_a_named_method_never_turns_to_another(device, monkeypatch):
    monkeypatch.setattr(solve_module, "SLOW_AFTER", 1)
    problem = models.until(models.gamblers_ruin(300), models.mask(301, [300]))
    environment = SolverEnvironment(method=Method.JACOBI, max_iterations=500, device=device)
    result = reachability(problem, environment)
    assert result.note == ""
    assert result.status is Status.NOT_CONVERGED
    assert result.iterations == 500


def test_a_system_that_is_too_large_or_too_dense_to_be_eliminated_is_swept_on():
    assert direct.fits(models.gamblers_ruin(300).matrix)
    assert not direct.fits(models.csr([dict.fromkeys(range(500), 0.002) for _ in range(500)]))
    assert not direct.fits(models.csr([], 4))


@pytest.mark.usefixtures("never_at_once")
def test_the_named_limit_binds_the_automatic_method_too(device):
    problem = models.until(models.gamblers_ruin(300), models.mask(301, [300]))
    environment = SolverEnvironment(
        epsilon=1e-10, max_iterations=200, max_iterations_named=True, device=device
    )
    result = reachability(problem, environment)
    assert result.iterations == 200
    assert result.status in (Status.NOT_CONVERGED, Status.CHANGE_ONLY)


def test_fast_contraction_is_converged_not_change_only(device):
    # Sixty-four sweeps take this to the last digit; the first of them change zeros.
    model = models.dtmc([{0: 0.1, 1: 0.1, 2: 0.8}, {0: 0.1, 1: 0.2, 3: 0.7}, {2: 1.0}, {3: 1.0}])
    problem = models.until(model, models.mask(4, [2]))
    result = reachability(problem, SolverEnvironment(device=device))
    assert result.status is Status.CONVERGED
    assert result.error_estimate < 1e-6


class Flickering:
    """Sweeps that never move anything by more than rounding, nor ever by nothing."""

    seconds = 0.0

    def run(self, sweeps):
        return np.full(sweeps, 1e-16)


def test_a_start_that_is_the_solution_is_taken_for_it():
    outcome = iterate(Flickering(), SolverEnvironment(epsilon=1e-10))
    assert outcome.status is Status.CONVERGED
    assert outcome.error_estimate <= 1e-15
    assert outcome.iterations < 1000


@pytest.mark.parametrize(
    ("limit", "expected"), [(1_000_000, 80_000), (12_000, 6_000), (100, 5_000)]
)
def test_a_gpu_sweeps_large_systems_longer_but_turns_to_lu_within_the_limit(limit, expected):
    size = solve_module.SMALL_SYSTEM + 1
    rows = CsrMatrix(np.zeros(size + 1, np.int32), np.zeros(0, np.int32), np.zeros(0), size)
    system = SweepSystem(rows, np.zeros(size))
    assert solve_module._slow_after(system, False, limit) == expected
    assert solve_module._slow_after(system, True, limit) == solve_module.SLOW_AFTER
