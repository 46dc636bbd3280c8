"""Random models of every kind, asked everything: exact fractions have the last word."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.errors import ConvergenceError, UnsupportedError
from engines.graph.components import bsccs
from engines.graph.prob01 import prob0, prob1
from engines.methods import direct
from engines.model.environment import BoundMethod, Convention, IntervalOptions, Method
from engines.model.environment import SolverEnvironment as Environment
from engines.model.explicit import ModelKind
from engines.model.result import Status
from engines.questions.reachability import solve_reachability
from engines.questions.steady_state import solve_steady_state
from engines.systems.one_sided import Direction
from tests.engines import models, random_oracles, reference
from tests.engines.random_models import random_models, seeded_model
from tests.engines.random_questions import (
    LONG_RUN,
    STEPS,
    TIMES,
    TOTAL,
    UNBOUNDED,
    directions,
    of_chain,
    with_strategy,
)

DTMC, CTMC, MDP = ModelKind.DTMC, ModelKind.CTMC, ModelKind.MDP
UNIT_ROUNDOFF = 2.0**-53
TOO_ILL = 1e-4
"""Where rounding of the matrix alone may change values by this much, only bounds are checked."""

EASY = 50.0
"""Visits until the known states are reached, below which bounds meet within the sweeps allowed."""

LONG_RUN_TEXTS = tuple(question.text for question in LONG_RUN)
POLICY_METHODS = (Method.POLICY_ITERATION, Method.MODIFIED_POLICY_ITERATION)
QUIET = {"suppress_health_check": list(HealthCheck)}
EPSILONS = st.sampled_from([1e-6, 1e-10, 1e-3])

SWEEP = pytest.param(2000, marks=pytest.mark.slow)
some = pytest.mark.parametrize("examples", [30, SWEEP])
many = pytest.mark.parametrize("examples", [60, SWEEP])


def run(check, examples, *strategies):
    """Check so many examples: where they are few, the same each time."""
    fixed = examples < SWEEP.values[0]
    settings(max_examples=examples, derandomize=fixed, **QUIET)(given(*strategies)(check))()


def floats(values):
    """The nearest floating-point numbers."""
    return np.array([float(value) for value in values])


def expect_close(result, exact, relative, absolute=0.0):
    """The values are the exact ones to a relative error, and infinite where those are."""
    wanted = floats(exact)
    np.testing.assert_array_equal(np.isinf(result.values), np.isinf(wanted))
    finite = np.isfinite(wanted)
    error = np.abs(result.values[finite] - wanted[finite])
    allowed = relative * np.abs(wanted[finite]) + absolute + 1e-300
    assert (error <= allowed).all(), (result.values, wanted, float((error / allowed).max()))


def expect_enclosed(result, exact, environment):
    """The exact values lie between the bounds; the width and the error are as claimed."""
    assert result.two_sided
    lower, upper = result.bounds
    for low, value, up in zip(lower, exact, upper, strict=True):
        if value == float("inf"):
            assert low == up == value
        else:
            assert Fraction(float(low)) <= value, (result, exact)
            assert up == np.inf or value <= Fraction(float(up)), (result, exact)
    assert (lower <= result.values).all()
    assert (result.values <= upper).all()
    finite = np.isfinite(upper) & np.isfinite(lower)
    if result.status is Status.CONVERGED:
        assert (finite | np.isinf(lower)).all()
        scale = np.ones(len(lower)) if environment.absolute else lower
        width = upper[finite] - lower[finite]
        assert (width <= environment.epsilon * scale[finite]).all()
    scale = np.ones(len(lower)) if environment.absolute else np.where(lower > 0.0, lower, np.inf)
    distance = np.abs(result.values[finite] - floats(exact)[finite])
    claimed = result.error_estimate * (1.0 + 1e-9) + 4.0 * UNIT_ROUNDOFF
    assert (distance <= claimed * scale[finite]).all(), (result, exact)


def plain_or_relative(*kinds):
    """Models, and whether changes are absolute: epsilon must not be below the last digit."""
    return st.one_of(
        st.tuples(random_models(*kinds, rare=False), st.just(True)),
        st.tuples(random_models(*kinds), st.just(False)),
    )


def rounding(case, text):
    """What rounding of the matrix may change values by, relative to them."""
    unit = 8.0 * (case.size + 4.0) * UNIT_ROUNDOFF
    # A steady state changes by what its states' rates do, twice (O'Cinneide 1993).
    of_classes = 2.0 * case.size if text in LONG_RUN_TEXTS else 0.0
    return unit * (of_classes + random_oracles.amplification(case, text))


@some
def test_questions_with_a_bound_on_steps(device, examples):
    def check(case, absolute):
        environment = Environment(device=device, absolute=absolute)
        for question in STEPS:
            if case.kind not in question.kinds:
                continue
            for direction in directions(case):
                result = question.ask(case, environment, direction)
                exact = question.answer(case, direction)
                assert result.status is Status.CONVERGED
                # The claim is two units a sweep; a row of n entries may take n + 2 halves of one.
                claimed = result.error_estimate * (case.size + 2.0) / 4.0
                one = 2.0 * UNIT_ROUNDOFF
                expect_close(
                    result,
                    exact,
                    one + (0.0 if absolute else claimed),
                    claimed if absolute else 0.0,
                )

    run(check, examples, random_models(DTMC, MDP, CTMC), st.booleans())


@some
def test_questions_with_a_bound_on_time(device, examples):
    def check(case, epsilon):
        environment = Environment(device=device, epsilon=epsilon)
        for question in TIMES:
            result = question.ask(case, environment, None)
            exact = question.answer(case, None)
            assert result.status is Status.CONVERGED
            assert result.error_estimate <= 1e-8 * max(1.0, float(max(exact))), question
            for value, wanted in zip(result.values, exact, strict=True):
                error = abs(Fraction(float(value)) - wanted)
                # No number is closer than that to one between two of them.
                nearest = Fraction(2.0 * UNIT_ROUNDOFF) * wanted
                assert error <= Fraction(result.error_estimate) + nearest, question
            if result.bounds is not None:
                assert result.two_sided
                rounded = random_oracles.ROUNDED_OFF
                for low, wanted, up in zip(result.bounds[0], exact, result.bounds[1], strict=True):
                    low, up = Fraction(float(low)), Fraction(float(up))
                    assert low - rounded <= wanted <= up + rounded, question

    run(check, examples, random_models(CTMC), EPSILONS)


def expect_claims_kept(case, question, result, exact, environment):
    """The error is what the automatic method says that it is, but for rounding of the matrix."""
    ill = rounding(case, question.text)
    if not ill < TOO_ILL:
        return
    assert result.status in (Status.CONVERGED, Status.CHANGE_ONLY), result
    largest = max((float(v) for v in exact if v != float("inf")), default=0.0)
    if ill * (max(largest, 1.0) if environment.absolute else 1.0) < environment.epsilon / 10.0:
        assert result.status is Status.CONVERGED, result
    if result.status is Status.CONVERGED:
        # Large values have no more digits than doubles have.
        digits = 1e-12 * float(max(exact)) if environment.absolute else 0.0
        assert result.error_estimate <= max(4.0 * environment.epsilon, 1e-8, digits)
    claimed = 2.0 * result.error_estimate
    if environment.absolute:
        finite = [float(value) for value in exact if value != float("inf")]
        expect_close(result, exact, 0.0, claimed + ill * max(finite, default=0.0))
    else:
        expect_close(result, exact, claimed + ill)


@many
def test_the_automatic_method_keeps_what_it_claims(device, examples):
    def check(case, epsilon, absolute, topological):
        environment = Environment(
            device=device, epsilon=epsilon, absolute=absolute, topological=topological
        )
        for question in (*UNBOUNDED, TOTAL):
            for direction in directions(case):
                result = question.ask(case, environment, direction)
                exact = question.answer(case, direction)
                np.testing.assert_array_equal(result.values == 0.0, floats(exact) == 0.0)
                if question.text == "P [ U ]":
                    # What is sure is 1; what is nearly sure may be rounded to it.
                    assert (result.values[[v == 1 for v in exact]] == 1.0).all()
                expect_claims_kept(case, question, result, exact, environment)

    run(check, examples, random_models(DTMC, CTMC, MDP), EPSILONS, st.booleans(), st.booleans())


@many
def test_long_runs(device, examples):
    def check(case, epsilon, swept):
        environment = Environment(device=device, epsilon=epsilon)
        largest = 1 if swept else direct.AT_ONCE_STATES
        with mock.patch.object(direct, "AT_ONCE_STATES", largest):
            for question in LONG_RUN:
                result = question.ask(case, environment, None)
                exact = question.answer(case, None)
                expect_claims_kept(case, question, result, exact, environment)

    run(check, examples, random_models(DTMC, CTMC), EPSILONS, st.booleans())


@many
def test_bounds_enclose_the_exact_value(device, examples):
    def check(case, epsilon, absolute, topological, method, options):
        environment = Environment(
            method=method,
            device=device,
            epsilon=epsilon,
            absolute=absolute,
            topological=topological,
            interval=options,
            max_iterations=3000,
            max_iterations_named=True,
        )
        questions = (*UNBOUNDED, TOTAL, *(LONG_RUN if case.kind is not MDP else ()))
        visits = {q.text: random_oracles.amplification(case, q.text) for q in UNBOUNDED}
        for question in questions:
            for direction in directions(case):
                try:
                    result = question.ask(case, environment, direction)
                except (UnsupportedError, ConvergenceError) as error:
                    # Some bounds of rewards fit some models only, or are beyond all numbers.
                    if "bound" not in str(error):
                        raise
                    continue
                exact = question.answer(case, direction)
                expect_enclosed(result, exact, environment)
                # A minimum of rewards may have to outgrow those of staying, sweep by sweep.
                swept = question in UNBOUNDED[: 1 if case.kind is MDP else 2]
                if swept and visits[question.text] < EASY:
                    assert result.status is not Status.NOT_CONVERGED, result

    run(
        check,
        examples,
        random_models(DTMC, CTMC, MDP),
        EPSILONS,
        st.booleans(),
        st.booleans(),
        st.sampled_from([Method.INTERVAL, Method.OPTIMISTIC]),
        st.builds(
            IntervalOptions,
            bound_method=st.sampled_from(BoundMethod),
            select_midpoint=st.booleans(),
            monotonic_below=st.booleans(),
            monotonic_above=st.booleans(),
        ),
    )


@some
def test_strategies_leave_chains_of_the_best_value(device, examples):
    def check(case, method, topological):
        environment = Environment(
            method=method,
            device=device,
            epsilon=1e-11,
            max_iterations=3_000,
            max_iterations_named=True,
            topological=topological,
        )
        for question in (*UNBOUNDED, TOTAL):
            ill = rounding(case, question.text)
            # A sweep that changes less than epsilon leaves an error that adds up in the same way.
            left = 4.0 * environment.epsilon * random_oracles.amplification(case, question.text)
            if not max(ill, left) < TOO_ILL:
                continue
            for direction in directions(case):
                result = with_strategy(question, case, environment, direction)
                exact = question.answer(case, direction)
                if result.status is Status.NOT_CONVERGED:
                    continue
                groups = case.model.row_group_offsets
                anything = groups[1:] - 1
                rows = np.where(result.strategy >= 0, result.strategy, anything)
                assert (rows >= groups[:-1]).all()
                assert (rows < groups[1:]).all()
                found = floats(of_chain(question, case, (rows - groups[:-1]).tolist()))
                expect_close(replace(result, values=found), exact, ill + left + 1e-9)
                if method is Method.AUTO or method in POLICY_METHODS:
                    expect_close(result, exact, ill + left + 1e-9)

    run(
        check,
        examples,
        random_models(MDP),
        st.sampled_from([Method.AUTO, Method.VALUE_ITERATION, *POLICY_METHODS]),
        st.booleans(),
    )


@many
def test_sets_of_probability_0_and_1_are_those_of_exact_probabilities(device, examples):
    def check(case):
        environment = Environment(device=device)
        remain, target = case.remain_mask, case.target_mask
        for direction in directions(case):
            exact = random_oracles.until(case, direction)
            sides = case.model, remain, target, direction
            no = prob0(*sides, environment=environment)
            np.testing.assert_array_equal(no, [value == 0 for value in exact])
            yes = prob1(*sides, environment=environment)
            np.testing.assert_array_equal(yes, [value == 1 for value in exact])
        if case.kind is MDP:
            return
        found = bsccs(case.model)
        rows = [choices[0] for choices in case.steps_of]
        members = [np.flatnonzero(found.labels == k).tolist() for k in range(found.count)]
        assert members == random_oracles.recurrent_classes(rows)

    run(check, examples, random_models(DTMC, CTMC, MDP, most=8))


@some
def test_named_methods_sweep_as_the_reference_does(device, examples):
    def check(measured, method, convention, epsilon):
        case, absolute = measured
        method = Method.VALUE_ITERATION if case.kind is MDP else method
        environment = Environment(
            method=method,
            convention=convention,
            epsilon=epsilon,
            absolute=absolute,
            max_iterations=200,
            device=device,
        )
        amounts = floats(paid for of_state in case.payments for paid in of_state)
        if case.kind is CTMC:
            amounts = case.rewards.state_rewards
        for direction in directions(case):
            problems = (
                models.until(case.model, case.target_mask, direction, case.remain_mask),
                models.reach_reward(case.model, case.target_mask, amounts, direction),
            )
            for problem in problems:
                if not problem.unknown.any():
                    continue
                values, iterations = reference.solve_reachability(
                    problem.model, problem.unknown, problem.start, environment, **problem.keywords
                )
                result = solve_reachability(
                    problem.model, problem.unknown, problem.start, environment, **problem.keywords
                )
                assert result.iterations == iterations
                np.testing.assert_allclose(result.values, values, rtol=1e-9, atol=1e-300)

    run(
        check,
        examples,
        plain_or_relative(DTMC, CTMC, MDP),
        st.sampled_from([Method.JACOBI, Method.JOR, Method.POWER]),
        st.sampled_from(Convention),
        EPSILONS,
    )


@some
def test_named_methods_find_steady_states_as_the_reference_does(device, examples):
    def check(measured, method, convention):
        case, absolute = measured
        environment = Environment(
            method=method,
            convention=convention,
            absolute=absolute,
            max_iterations=200,
            device=device,
        )
        components = bsccs(case.model)
        for number in range(components.count):
            members = components.labels == number
            if np.count_nonzero(members) == 1:
                continue
            values, iterations = reference.solve_steady_state(case.model, members, environment)
            result = solve_steady_state(case.model, members, environment)
            assert result.iterations == iterations
            np.testing.assert_allclose(result.values, values, rtol=1e-9, atol=1e-300)

    run(
        check,
        examples,
        plain_or_relative(DTMC, CTMC),
        st.sampled_from([Method.JACOBI, Method.JOR, Method.POWER]),
        st.sampled_from(Convention),
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DTMC, CTMC])
@pytest.mark.parametrize("seed", range(6))
def test_chains_of_dozens_of_states(device, kind, seed):
    case = seeded_model(kind, seed, 24, rare=seed % 2 == 1)
    for topological in (False, True):
        environment = Environment(device=device, epsilon=1e-8, topological=topological)
        for question in (*UNBOUNDED, TOTAL, *LONG_RUN):
            exact = question.answer(case, None)
            result = question.ask(case, environment, None)
            expect_claims_kept(case, question, result, exact, environment)
            for method in (Method.INTERVAL, Method.OPTIMISTIC):
                narrow = replace(environment, method=method)
                expect_enclosed(question.ask(case, narrow, None), exact, narrow)


@pytest.mark.parametrize("topological", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_chain_of_a_strategy_lies_between_the_bounds_of_a_large_mdp(device, seed, topological):
    case = seeded_model(MDP, seed, 20, rare=False)
    environment = Environment(device=device, epsilon=1e-8, topological=topological)
    groups = case.model.row_group_offsets
    for question in (*UNBOUNDED, TOTAL):
        for direction in Direction:
            result = with_strategy(question, case, environment, direction)
            rows = np.where(result.strategy >= 0, result.strategy, groups[:-1])
            found = floats(of_chain(question, case, (rows - groups[:-1]).tolist()))
            for method in (Method.INTERVAL, Method.OPTIMISTIC):
                narrow = replace(environment, method=method)
                bounds = question.ask(case, narrow, direction)
                assert bounds.status is Status.CONVERGED
                lower, upper = bounds.bounds
                # No strategy is better than the best, and this one is nearly as good.
                slack = 1e-9 * np.where(np.isfinite(found), found, 0.0)
                assert (lower <= found + slack).all()
                assert (found - slack <= upper).all()
                expect_close(result, found.tolist(), 1e-7)
