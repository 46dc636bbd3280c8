"""GMRES over stretches of sweeps: right within the error that it proves, wherever it ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import UnsupportedError
from engines.host.engine import CpuEngine
from engines.host.space import HostSpace
from engines.methods import stretches
from engines.methods.gmres import Extrapolated, solve_by_stretches
from engines.methods.stretches import NAME
from engines.model.environment import DeviceChoice, Method, Precision, SolverEnvironment
from engines.model.result import Status
from engines.solve import system as solve
from engines.solve.system import solve_system
from engines.systems.one_sided import Scaling
from engines.systems.space import HasSpace
from tests.engines.gmres_cases import CASES, exactly, ladder, line, system_of, two_valleys

NAMED = SolverEnvironment(
    method=Method.GMRES, device=DeviceChoice.CPU, max_iterations=200_000, max_iterations_named=True
)
AUTOMATIC = SolverEnvironment(device=DeviceChoice.CPU)


def one_state(digits):
    """A state that each step earns 2⁻ᵈ in, and leaves with that probability: 1 in all."""
    rare = 2.0**-digits
    system = system_of(np.array([[1.0 - rare]]), np.array([rare]))
    return replace(system, scaling=Scaling.NONE)


def off(values, exact):
    """The largest relative error of finite values; what is 0 or infinite must be so exactly."""
    finite = np.isfinite(exact) & (exact > 1e-30)
    exact = np.where(exact > 1e-30, exact, 0.0)
    assert np.array_equal(values[~finite], exact[~finite])
    return float(np.max(np.abs(values[finite] / exact[finite] - 1.0), initial=0.0))


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("case", CASES)
def test_values_are_within_the_error_that_is_proven(case, epsilon):
    system = CASES[case]()
    environment = SolverEnvironment(
        method=Method.GMRES,
        device=DeviceChoice.CPU,
        epsilon=epsilon,
        max_iterations=200_000,
        max_iterations_named=True,
    )
    result = solve_system(system, environment, Method.GMRES)
    exact = exactly(system)
    # SciPy's own digits go by the condition, of which the largest value tells.
    doubt = 1e-15 * np.max(exact[np.isfinite(exact)])
    assert off(result.values, exact) <= result.error_estimate + doubt
    assert (result.status is Status.CONVERGED) == (result.error_estimate <= epsilon)
    assert result.status is Status.CONVERGED or epsilon < 1e-3
    assert NAME in result.note
    assert result.iterations > 0


@pytest.mark.parametrize("case", ["two valleys", "deep valleys"])
def test_slow_valleys_take_few_sweeps(case):
    system = CASES[case]()
    result = solve_system(system, NAMED, Method.GMRES)
    # Jacobi's contraction is 1 − 10⁻⁶ or nearer to 1.
    assert result.iterations < 1_500
    assert result.residual < 1e-3


def test_absolute_errors():
    system = two_valleys(30, 0.1)
    environment = SolverEnvironment(
        method=Method.GMRES, device=DeviceChoice.CPU, epsilon=1e-4, absolute=True
    )
    result = solve_system(system, environment, Method.GMRES)
    assert result.status is Status.CONVERGED
    error = np.max(np.abs(result.values - exactly(system)))
    assert error <= result.error_estimate <= 1e-4


def test_sweeps_that_do_not_suffice_are_told():
    environment = SolverEnvironment(
        method=Method.GMRES, device=DeviceChoice.CPU, max_iterations=100
    )
    result = solve_system(two_valleys(30, 1e-6), environment, Method.GMRES)
    assert result.status is Status.NOT_CONVERGED
    assert "sweeps do not suffice" in result.note


def test_rounding_that_leaves_no_proof_is_no_success():
    # The solution is beyond 10¹⁶ steps: the change of a sweep is below the last digit.
    result = solve_system(ladder(100, 0.7), NAMED, Method.GMRES)
    assert result.status is not Status.CONVERGED


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"offset": np.full(8, -1.0)}, "without negative numbers"),
        ({"omega": 1.5}, "without negative numbers"),
        ({"scaling": Scaling.BALANCE, "offset": None}, "for steady states try multilevel"),
        ({"group_offsets": np.arange(0, 9, 2)}, "not for MDPs"),
    ],
)
def test_what_the_proof_does_not_cover_is_refused(change, reason):
    system = system_of(np.full((8, 8), 0.1), np.ones(8))
    with pytest.raises(UnsupportedError, match=reason):
        solve_system(replace(system, **change), NAMED, Method.GMRES)


@pytest.mark.parametrize("automatic", [False, True])
def test_an_absolute_error_is_proven_for_values_below_it_too(automatic, monkeypatch):
    monkeypatch.setattr(solve, "SMALL_SYSTEM", 0)
    system = one_state(33)
    environment = AUTOMATIC if automatic else NAMED
    result = solve_system(system, replace(environment, absolute=True), "x")
    assert result.status is not Status.CONVERGED or abs(result.values[0] - 1.0) <= 1e-6
    assert abs(result.values[0] - 1.0) <= result.error_estimate


def test_an_infinite_solution_is_never_converged():
    # Nothing is left for good, and each step earns something.
    system = system_of(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([1.0, 0.0]))
    for absolute, epsilon in [(False, 1e-6), (True, 1e-6), (True, 1e6)]:
        environment = replace(NAMED, absolute=absolute, epsilon=epsilon, max_iterations=5_000)
        result = solve_system(system, environment, Method.GMRES)
        assert result.status is not Status.CONVERGED


def test_values_beyond_all_numbers_end_it():
    system = replace(one_state(30), offset=np.array([1e306]))
    result = solve_system(system, NAMED, Method.GMRES)
    assert result.status in (Status.DIVERGED, Status.NOT_CONVERGED)
    assert result.iterations < 10_000


def test_a_named_method_is_no_other():
    system = two_valleys(60, 1e-5)
    few = replace(NAMED, max_iterations=100)
    result = solve_system(system, few, Method.GMRES, direct=lambda _: pytest.fail("direct"))
    assert result.status is Status.NOT_CONVERGED
    fine = replace(NAMED, epsilon=1e-15)
    result = solve_system(system, fine, Method.GMRES, direct=lambda _: pytest.fail("direct"))
    assert result.status is Status.CHANGE_ONLY
    for precision in (Precision.SINGLE, Precision.MIXED):
        result = solve_system(system, replace(NAMED, precision=precision), Method.GMRES)
        assert result.status is Status.CONVERGED
        assert "in double precision" in result.note


def test_the_rounding_of_long_rows_is_in_the_bound():
    # Each sweep rounds thousands of products of 1/n the same way.
    size = 3_000
    leak = 1e-7
    dense = np.full((size, size), (1.0 - leak) / size)
    system = replace(system_of(dense, np.full(size, leak)), scaling=Scaling.NONE)
    result = solve_system(system, NAMED, Method.GMRES)
    gone = 1.0 - float(np.sum(dense[0].astype(np.longdouble)))
    assert abs(result.values[0] - leak / gone) <= max(result.error_estimate, 1e-8)
    assert result.error_estimate > 1e-7


def test_a_space_that_gets_on_is_begun_anew(monkeypatch):
    """As many slow modes as a dozen valleys have take more directions than are kept."""
    forgotten, forget = [], HostSpace.forget
    monkeypatch.setattr(HostSpace, "forget", lambda self: forgotten.append(1) or forget(self))
    valleys = 13
    states = np.arange(3 * valleys)
    dense = np.zeros((len(states), len(states)))
    dense[states, (states // 3) * 3 + (states + 1) % 3] = 1.0
    leak = 1e-3 * (1.0 + np.arange(valleys))
    dense[::3] *= (1.0 - leak)[:, None]
    dense[states[::3], (states[::3] + 3) % len(states)] += leak * 0.9
    system = system_of(dense, np.ones(len(states)))
    result = solve_system(system, NAMED, Method.GMRES)
    assert result.status is Status.CONVERGED
    assert off(result.values, exactly(system)) <= result.error_estimate + 1e-12
    assert forgotten


def test_an_error_that_rounding_leaves_is_better_than_none(monkeypatch):
    monkeypatch.setattr(solve, "SMALL_SYSTEM", 0)
    system = one_state(36)
    result = solve_system(system, AUTOMATIC, "Jacobi")
    assert result.status is Status.CHANGE_ONLY
    assert abs(result.values[0] - 1.0) <= result.error_estimate < 1e-3
    assert "rounding leaves an error" in result.note
    result = solve_system(system, AUTOMATIC, "Jacobi", direct=lambda _: (np.ones(1), 1e-12))
    assert result.finished_by == "elimination"


def test_a_slow_automatic_solve_ends_by_it(monkeypatch):
    monkeypatch.setattr(solve, "SMALL_SYSTEM", 10)
    system = two_valleys(60, 1e-5)
    result = solve_system(system, AUTOMATIC, "Jacobi", direct=lambda _: pytest.fail("direct"))
    assert result.status is Status.CONVERGED
    assert result.finished_by.startswith(NAME)
    assert "converges too slowly" in result.note
    assert off(result.values, exactly(system)) <= result.error_estimate < 1e-6
    assert stretches.LATE < result.iterations < 3 * stretches.LATE


def test_a_small_system_is_left_to_elimination():
    system = two_valleys(60, 1e-5)
    exact = exactly(system)
    result = solve_system(system, AUTOMATIC, "Jacobi", direct=lambda _: (exact, 1e-12))
    assert result.finished_by == "elimination"


@pytest.mark.parametrize("direct", [False, True])
def test_where_it_fails_the_sweeps_go_on_from_where_they_were(monkeypatch, direct):
    seen = []

    def fail(_system, sweeper, *_, **__):
        seen.append(np.array(sweeper.values()))
        sweeper.restart(np.zeros_like(seen[-1]))
        return Extrapolated(np.inf, 100, 8, "it was to fail")

    monkeypatch.setattr(stretches, "solve_by_stretches", fail)
    monkeypatch.setattr(solve, "SMALL_SYSTEM", 10)
    monkeypatch.setattr(stretches, "REPAY", 0)
    system = two_valleys(60, 0.05)
    exact = exactly(system)
    ways = {"direct": lambda _: (exact, 1e-12)} if direct else {}
    result = solve_system(system, AUTOMATIC, "Jacobi", **ways)
    assert len(seen) == len([after for after in stretches.AFTER if after >= 1_024]) - direct
    assert (seen[1] >= seen[0]).all()
    assert (seen[1] > seen[0]).any()
    assert result.status is Status.CONVERGED
    assert off(result.values, exact) <= max(result.error_estimate, 1e-9)
    # Who swept to the end does not care.
    assert ("it was to fail" in result.note) == direct
    # What was swept in vain counts as well.
    assert result.iterations > stretches.AFTER[len(seen)] + 100 * len(seen)


def test_a_stretch_too_short_to_reach_a_state_is_made_longer():
    system = line(500)
    sweeper = CpuEngine().sweeper(system, -1.0, False)
    assert isinstance(sweeper, HasSpace)
    found = solve_by_stretches(system, sweeper, AUTOMATIC, 20_000)
    assert found.stretch >= 512
    np.testing.assert_allclose(sweeper.values(), 0.9999 ** np.arange(499, -1, -1), rtol=1e-6)


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 40),
    leak=st.floats(1e-9, 0.5),
    shape=st.sampled_from(["dense", "sparse", "triangular"]),
)
def test_random_systems(seed, size, leak, shape):
    draw = np.random.default_rng(seed)
    dense = draw.random((size, size)) + 1e-3
    if shape == "sparse":
        dense *= draw.random((size, size)) < 2.0 / size
    elif shape == "triangular":
        dense = np.triu(dense)
    total = dense.sum(axis=1, keepdims=True)
    dense = np.divide(dense, total, out=np.zeros_like(dense), where=total > 0.0) * (1.0 - leak)
    earned = draw.random(size) * (draw.random(size) < 0.5)
    system = system_of(dense, earned)
    result = solve_system(system, NAMED, Method.GMRES)
    exact = exactly(system)
    small = exact <= 1e-13 * exact.max(initial=0.0)
    assert (result.values[small] <= 1e-12 * exact.max(initial=0.0)).all()
    if result.status is Status.CONVERGED:
        error = np.abs(result.values / np.where(small, 1.0, exact) - 1.0)[~small]
        # LU itself is off by the condition, 1 / leak.
        assert error.max(initial=0.0) <= result.error_estimate + 1e-15 / leak
