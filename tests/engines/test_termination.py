"""Stopping: the limit, the text of the error, divergence, the measure of a change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import ConvergenceError
from engines.host.compiled.change import largest_change
from engines.methods.iterate import Contraction, iterate
from engines.model.environment import AUTOMATIC_SWEEP_LIMIT, DeviceChoice, Method, SolverEnvironment
from engines.model.progress import Measure
from engines.model.result import SolveResult, Status, SweepCost
from engines.questions.reachability import solve_reachability
from engines.questions.steady_state import solve_steady_state
from tests.engines import models, reference


def reachability(problem, environment):
    return solve_reachability(
        problem.model, problem.unknown, problem.start, environment, **problem.keywords
    )


RUIN = models.until(models.gamblers_ruin(40), models.mask(41, [40]))


@pytest.mark.parametrize("limit", [1, 2, 63, 64, 65, 130, 500])
def test_the_limit_is_an_exact_number_of_sweeps_and_an_error(device, limit):
    environment = SolverEnvironment(
        method=Method.JACOBI, epsilon=1e-14, max_iterations=limit, device=device
    )
    result = reachability(RUIN, environment)
    values, _ = reference.solve_reachability(RUIN.model, RUIN.unknown, RUIN.start, environment)
    assert result.iterations == limit
    assert result.status is Status.NOT_CONVERGED
    np.testing.assert_allclose(result.values, values, rtol=1e-12)
    with pytest.raises(ConvergenceError) as caught:
        result.raise_unless_converged()
    expected = f"Iterative method did not converge within {limit} iterations."
    assert str(caught.value).startswith(expected)


def test_no_sweeps_at_all_is_not_convergence(device):
    environment = SolverEnvironment(method=Method.JACOBI, max_iterations=0, device=device)
    result = reachability(RUIN, environment)
    assert result.iterations == 0
    assert result.status is Status.NOT_CONVERGED
    np.testing.assert_array_equal(result.values, RUIN.start)


def test_mdps_reach_the_limit_too(device):
    problem = models.mdp_problems()["MDP rewards max"]
    environment = SolverEnvironment(method=Method.VALUE_ITERATION, max_iterations=7, device=device)
    result = reachability(problem, environment)
    assert (result.iterations, result.status) == (7, Status.NOT_CONVERGED)


def test_the_sweep_that_meets_the_test_at_the_limit_converged(device):
    environment = SolverEnvironment(method=Method.JACOBI, device=device)
    needed = reachability(RUIN, environment).iterations
    for limit, status in [(needed, Status.CONVERGED), (needed - 1, Status.NOT_CONVERGED)]:
        environment = SolverEnvironment(method=Method.JACOBI, max_iterations=limit, device=device)
        result = reachability(RUIN, environment)
        assert (result.iterations, result.status) == (limit, status)


def test_an_epsilon_of_zero_never_stops(device):
    environment = SolverEnvironment(
        method=Method.JACOBI, epsilon=0.0, max_iterations=300, device=device
    )
    result = reachability(models.reward_problems()["line rewards"], environment)
    assert (result.iterations, result.status) == (300, Status.NOT_CONVERGED)
    assert result.change == 0.0


OMEGAS = [2.5, 3.0, 4.0, -1.0]


@pytest.mark.parametrize("limit", [50, 10_000])
@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("omega", OMEGAS)
def test_relaxation_that_diverges_is_never_reported_as_a_number(device, omega, absolute, limit):
    environment = SolverEnvironment(
        method=Method.JOR, omega=omega, absolute=absolute, max_iterations=limit, device=device
    )
    alone = models.chain_problems()["one unknown with a self-loop"]
    for problem in (RUIN, alone, models.reward_problems()["DTMC rewards"]):
        result = reachability(problem, environment)
        assert result.status in (Status.NOT_CONVERGED, Status.DIVERGED)
        with pytest.raises(ConvergenceError, match=r"^Iterative method di"):
            result.raise_unless_converged()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("limit", [50, 10_000])
@pytest.mark.parametrize("omega", [2.5, 4.0, -1.0])
def test_a_steady_state_that_diverges_is_never_reported_as_a_number(device, omega, limit):
    environment = SolverEnvironment(
        method=Method.JOR, omega=omega, max_iterations=limit, device=device
    )
    for model in (models.ctmc([{1: 1.0}, {0: 3.0}]), models.birth_death(12)):
        result = solve_steady_state(model, np.ones(model.num_states, np.bool_), environment)
        assert result.status in (Status.NOT_CONVERGED, Status.DIVERGED)


def made_up_result(status):
    cost = SweepCost("CPU", "SciPy", "csr", 8)
    return SolveResult(np.zeros(1), status, "Jacobi", 12, 0.0, 0.0, 0.0, 2.0, 0.5, 1.2, cost)


def test_the_statuses_that_may_be_used():
    for status in (Status.CONVERGED, Status.CHANGE_ONLY):
        result = made_up_result(status)
        assert result.raise_unless_converged() is result
    with pytest.raises(ConvergenceError, match=r"^Iterative method diverged after 12 iterations\."):
        made_up_result(Status.DIVERGED).raise_unless_converged()


def test_the_mean_of_a_sweep_is_of_the_sweeps_alone():
    assert made_up_result(Status.CONVERGED).sweep_seconds == 1.2 / 12


def test_progress_is_told_of_every_batch(device):
    seen = []
    solve_reachability(
        RUIN.model,
        RUIN.unknown,
        RUIN.start,
        SolverEnvironment(method=Method.JACOBI, epsilon=1e-12, device=device),
        progress=seen.append,
    )
    sweeps = [report.iterations for report in seen]
    assert sweeps == sorted(set(sweeps))
    assert len(sweeps) > 2
    assert sum(len(report.numbers) for report in seen) == sweeps[-1]
    assert {report.measure for report in seen} == {Measure.CHANGE}
    seconds = [report.seconds for report in seen]
    assert seconds == sorted(seconds)


def test_the_end_is_foretold_from_the_contraction():
    seen = []
    result = solve_reachability(
        RUIN.model,
        RUIN.unknown,
        RUIN.start,
        SolverEnvironment(method=Method.JACOBI, epsilon=1e-12, device=DeviceChoice.CPU),
        progress=seen.append,
    )
    later = [report for report in seen if report.iterations > result.iterations / 2]
    foretold = [report.iterations + report.sweeps_to_go for report in later]
    assert len(foretold) > 2
    np.testing.assert_allclose(foretold, result.iterations, rtol=0.01)
    assert seen[-1].sweeps_to_go == 0.0


class MadeUpSweeper:
    """A sweeper whose changes are given."""

    cost = None

    def __init__(self, changes, stop_below=-1.0):
        self.changes, self.stop_below, self.made = changes, stop_below, 0

    def run(self, sweeps):
        due = np.array([self.changes(self.made + k) for k in range(sweeps)])
        met = np.flatnonzero(due < self.stop_below)
        due = due[: met[0] + 1] if len(met) else due
        self.made += len(due)
        return due


@given(st.floats(0.05, 0.999), st.sampled_from([1e-4, 1e-6, 1e-9]))
def test_geometric_changes_stop_at_the_expected_error_not_at_the_change(rate, epsilon):
    outcome = iterate(MadeUpSweeper(lambda k: rate**k), SolverEnvironment(epsilon=epsilon))
    assert outcome.status is Status.CONVERGED
    true_error = rate ** (outcome.iterations) / (1 - rate)
    assert true_error < epsilon * 1.01


@given(st.floats(0.0, 5.0), st.floats(1e-3, 3.0))
def test_changes_that_do_not_shrink_never_converge(first, growth):
    environment = SolverEnvironment(max_iterations=500, max_iterations_named=True)
    sweeper = MadeUpSweeper(lambda k: 1.0 + first + growth * k)
    outcome = iterate(sweeper, environment)
    assert outcome.status is Status.NOT_CONVERGED
    assert outcome.iterations == 500
    assert outcome.error_estimate == float("inf")


@given(st.floats(1e-3, 0.999), st.integers(8, 200))
def test_contraction_reads_the_rate_off_a_geometric_sequence(rate, length):
    changes = rate ** np.arange(length)
    contraction = Contraction()
    contraction.observe(changes)
    if changes[-(length // 2)] > 1e-12:
        assert contraction.rate == pytest.approx(rate, rel=1e-9)
        assert contraction.error(changes[-1]) == pytest.approx(changes[-1] * rate / (1 - rate))


def test_contraction_is_not_fooled_by_a_period():
    changes = 0.99 ** np.arange(64) * np.where(np.arange(64) % 2, 1.0, 0.01)
    contraction = Contraction()
    contraction.observe(changes)
    assert contraction.rate == pytest.approx(0.99, rel=1e-3)


values = st.lists(
    st.one_of(st.just(0.0), st.floats(-10, 10), st.just(float("inf"))), min_size=1, max_size=12
)


@given(values, st.data(), st.booleans())
def test_the_change_of_a_sweep_is_the_references(before, data, absolute):
    after = data.draw(
        st.lists(st.sampled_from([*before, 0.0, 1.5]), min_size=len(before), max_size=len(before))
    )
    # Infinite values stay: a sweep never makes a number of an infinity.
    after = [b if b == float("inf") else a for b, a in zip(before, after, strict=True)]
    ours = largest_change(np.array(before), np.array(after), absolute)
    assert ours == reference.change_of_sweep(before, after, absolute=absolute)


@pytest.mark.parametrize("bad", [-1e-6, float("nan"), float("inf")])
def test_a_bad_epsilon_is_refused(bad):
    with pytest.raises(ValueError, match="epsilon must be a number of at least 0"):
        SolverEnvironment(epsilon=bad)


def test_bad_limits_and_omegas_are_refused():
    with pytest.raises(ValueError, match="max_iterations must be at least 0, not -1"):
        SolverEnvironment(max_iterations=-1)
    with pytest.raises(ValueError, match="omega must be a finite number"):
        SolverEnvironment(omega=float("nan"))


def test_the_limit_of_the_automatic_method_is_its_own_unless_the_user_named_one():
    assert SolverEnvironment().sweep_limit == AUTOMATIC_SWEEP_LIMIT
    assert SolverEnvironment(max_iterations=5, max_iterations_named=True).sweep_limit == 5
    assert SolverEnvironment(method=Method.JOR, max_iterations=7).sweep_limit == 7
    assert DeviceChoice.AUTO is SolverEnvironment().device
