"""Gauss-Seidel in colours: right answers, in few sweeps, and never a swing for an answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.devices.colours import GaussSeidelScheme
from engines.errors import UnsupportedError
from engines.host.colours import Order
from engines.host.engine import CpuEngine
from engines.host.scaling import scaled
from engines.host.watched import METHODS, sweeps_in_colours
from engines.methods.iterate import iterate
from engines.model.environment import Method, SolverEnvironment
from engines.model.events import Kind, told
from engines.model.explicit import ModelKind
from engines.model.groups import choices_of
from engines.model.result import Status
from engines.systems.one_sided import Direction, Scaling, SweepSystem
from tests.engines import models, oracles

EPSILON = 1e-12


def balance(model, omega=1.0):
    """π Q = 0 from the uniform start."""
    size = model.num_states
    start = np.full(size, 1.0 / size)
    return SweepSystem(model.matrix, start, scaling=Scaling.BALANCE, omega=omega)


def reachability(problem, omega=1.0):
    """x = b + A x of a problem of the models' table."""
    states = np.flatnonzero(problem.unknown).astype(np.int32)
    offset = None if problem.rewards is None else problem.rewards[states]
    matrix = problem.model.matrix.select_rows(states)
    if problem.model.kind is ModelKind.CTMC:
        exits = matrix.row_sums()
        matrix, offset = matrix.divide_rows(exits), None if offset is None else offset / exits
    return SweepSystem(matrix, problem.start, offset, states, scaling=Scaling.DIAGONAL, omega=omega)


def swept(system, method, epsilon=EPSILON, limit=20_000, **keywords):
    """The sweeper and how the sweeps ended."""
    environment = SolverEnvironment(
        method=method, epsilon=epsilon, max_iterations=limit, **keywords
    )
    sweeper = GaussSeidelScheme.of(CpuEngine(), environment).sweeper(system, epsilon, False)
    return sweeper, iterate(sweeper, environment)


def steady(sweeper):
    values = sweeper.values()
    return values / values.sum()


def stationary(model):
    return oracles.limiting_matrix(model)[0]


def test_the_methods_are_those_of_gauss_seidel():
    assert {method for method in Method if sweeps_in_colours(method)} == set(METHODS)
    assert Method.BACKWARDS_SOR in METHODS
    assert Method.JACOBI not in METHODS


@pytest.mark.parametrize("keywords", [{}, {"slice_size": 8}, {"colours": 3}], ids=str)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_steady_states_are_right(seed, method, keywords):
    model = models.recurrent(seed, 60)
    omega = 0.9 if "SOR" in method else 1.0
    sweeper, outcome = swept(balance(model, omega), method, **keywords)
    assert outcome.status is Status.CONVERGED
    np.testing.assert_allclose(steady(sweeper), stationary(model), rtol=1e-8)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "problem",
    [
        models.until(models.random_dtmc(2, 120), models.mask(120, [5])),
        models.until(models.random_ctmc(4), models.mask(60, [7])),
        models.reach_reward(
            models.recurrent(12, 50, ModelKind.DTMC), models.mask(50, [0]), np.ones(50)
        ),
        models.reach_reward(models.random_dtmc(2, 80, 0.02), models.mask(80, [7]), np.ones(80)),
    ],
    ids=["DTMC", "CTMC", "rewards", "some infinite"],
)
def test_values_of_chains_are_right(problem, method):
    omega = 1.1 if "SOR" in method else 1.0
    sweeper, outcome = swept(reachability(problem, omega), method)
    assert outcome.status is Status.CONVERGED
    values = sweeper.values()
    step, unknown = oracles.dense(problem.model), problem.unknown
    known = np.where(unknown, 0.0, problem.start)
    # 0 · ∞ is no contribution.
    arriving = np.where(step > 0.0, step * np.where(np.isinf(known), 0.0, known), 0.0).sum(axis=1)
    earned = np.zeros(len(step)) if problem.rewards is None else problem.rewards
    inner = np.eye(unknown.sum()) - step[np.ix_(unknown, unknown)]
    wanted = np.linalg.solve(inner, (arriving + earned)[unknown])
    np.testing.assert_allclose(values[unknown], wanted, rtol=1e-8)
    np.testing.assert_array_equal(values[~unknown], problem.start[~unknown])
    assert sweeper.residual() < 1e-9


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("keywords", [{}, {"slice_size": 2, "colours": 2}], ids=str)
@pytest.mark.parametrize("method", [Method.GAUSS_SEIDEL, Method.BACKWARDS_GAUSS_SEIDEL])
@pytest.mark.parametrize("seed", range(2))
def test_values_of_decisions_are_right(seed, method, keywords, direction):
    model = models.proper_mdp(seed, 6)
    target = models.mask(6, [0])
    rewards = models.random_rewards(seed, model.matrix.num_rows)
    choices, groups = choices_of(np.arange(1, 6), model.row_group_offsets)
    system = SweepSystem(
        model.matrix.select_rows(choices),
        np.zeros(6),
        rewards[choices],
        np.arange(1, 6, dtype=np.int32),
        group_offsets=groups,
        direction=direction,
    )
    sweeper, outcome = swept(system, method, **keywords)
    assert outcome.status is Status.CONVERGED
    wanted = oracles.best(
        direction,
        [
            oracles.reachability_reward(step, rewards[rows], target)
            for step, rows in oracles.strategies(model)
        ],
    )
    np.testing.assert_allclose(sweeper.values(), wanted, rtol=1e-9)


def test_fewer_sweeps_than_jacobi():
    model = models.birth_death(200, 1.0, 1.1)
    jacobi = CpuEngine().sweeper(balance(model, 0.9), 1e-6, False)
    relaxed = len(jacobi.run(100_000))
    for method in (Method.GAUSS_SEIDEL, Method.BACKWARDS_GAUSS_SEIDEL):
        sweeper, outcome = swept(balance(model), method, 1e-6)
        assert outcome.iterations < 0.6 * relaxed
        wanted = models.birth_death_answer(200, 1.0, 1.1)
        np.testing.assert_allclose(steady(sweeper), wanted, rtol=1e-2)


def swinging_cycle(size=12):
    """A cycle of unequal rates: in two colours by congruence its sweeps go round for ever."""
    rates = [1.0 + 0.5 * (i % 5) for i in range(size)]
    answer = 1.0 / np.array(rates)
    return models.cycle(size, rates), answer / answer.sum()


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("colours", [2, 3, 4])
def test_sweeps_that_swing_are_left_and_the_answer_is_right(order, colours):
    model, answer = swinging_cycle()
    engine = GaussSeidelScheme(CpuEngine(), order, 1, colours)
    sweeper = engine.sweeper(balance(model), EPSILON, False)
    changes = np.concatenate([sweeper.run(64) for _ in range(100)])
    assert changes[-1] < EPSILON
    assert "oscillating" in told(sweeper.events)
    np.testing.assert_allclose(steady(sweeper), answer, rtol=1e-9)
    assert sweeper.residual() < 1e-10


def test_unwatched_these_sweeps_would_swing_for_ever():
    model, _ = swinging_cycle()
    engine = GaussSeidelScheme(CpuEngine(), Order.FORWARDS, 1, 3)
    coloured = engine.coloured(scaled(balance(model)), Order.FORWARDS)
    changes = engine.prepared(coloured, EPSILON, False).run(5_000)
    assert len(changes) == 5_000
    assert changes[-100:].max() > 0.1


def test_sweeps_turn_round_once_where_more_is_fresh_then():
    model, answer = swinging_cycle(61)
    sweeper, outcome = swept(balance(model), Method.BACKWARDS_GAUSS_SEIDEL, slice_size=1)
    assert outcome.status is Status.CONVERGED
    assert [event.kind for event in sweeper.events].count(Kind.TURNED) == 1
    assert sweeper.colouring.order is Order.FORWARDS
    np.testing.assert_allclose(steady(sweeper), answer, rtol=1e-9)


@pytest.mark.parametrize("omega", [1.5, 1.99])
@pytest.mark.parametrize("keywords", [{}, {"colours": 10**6}], ids=["chosen", "levels"])
@pytest.mark.parametrize("method", [Method.SOR, Method.BACKWARDS_SOR])
def test_over_relaxation_that_does_not_converge_is_left(method, omega, keywords):
    model = models.recurrent(5, 150, loops=False)
    sweeper, outcome = swept(balance(model, omega), method, 1e-10, **keywords)
    assert outcome.status is Status.CONVERGED
    np.testing.assert_allclose(steady(sweeper), stationary(model), rtol=1e-6)


def test_iterates_that_leave_the_numbers_are_no_answer():
    # Each state reads its predecessor fresh: an error grows through all of them in one sweep.
    size = 120
    rates = [10.0 ** (3 * (i % 2)) for i in range(size)]
    rows = [{(i + 1) % size: rates[i], (i - 1) % size: 0.3 * rates[i]} for i in range(size)]
    model = models.ctmc(rows)
    sweeper, outcome = swept(balance(model, 1.95), Method.SOR, 1e-9, colours=10**6)
    assert outcome.status is Status.CONVERGED
    assert np.isfinite(sweeper.values()).all()
    np.testing.assert_allclose(steady(sweeper), stationary(model), rtol=1e-4)


@pytest.mark.parametrize("omega", [0.0, -0.5, 2.0, 3.0])
def test_an_omega_that_cannot_converge_is_refused(omega):
    system = balance(models.recurrent(1, 20), omega)
    with pytest.raises(UnsupportedError, match="between 0 and 2"):
        swept(system, Method.SOR)


@settings(max_examples=20)
@given(st.lists(st.integers(1, 90), min_size=1, max_size=12), st.integers(0, 50))
def test_a_run_makes_no_more_sweeps_than_asked_and_batches_do_not_matter(batches, seed):
    model, _ = swinging_cycle()
    engine = GaussSeidelScheme(CpuEngine(), Order.FORWARDS, 1, 2 + seed % 3)
    one, other = (engine.sweeper(balance(model), -1.0, False) for _ in range(2))
    made = []
    for batch in batches:
        left = batch
        while left:
            changes = one.run(left)
            assert 1 <= len(changes) <= left
            left -= len(changes)
            made.extend(changes)
    assert len(made) == sum(batches)
    assert np.isfinite(other.run(1)).all()


def test_two_solves_give_the_same_bits():
    first, second = (
        swept(balance(models.recurrent(9, 300)), Method.GAUSS_SEIDEL)[0].values() for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("keywords", [{"slice_size": 0}, {"colours": -1}])
def test_slices_and_colours_below_one_are_refused(keywords):
    with pytest.raises(ValueError, match="at least 1"):
        SolverEnvironment(**keywords)
