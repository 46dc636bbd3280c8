"""Random models of every kind, asked everything: the GPU's answers are the CPU's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import gammainc

from engines.graph.prob01 import prob0, prob1
from engines.model.environment import DeviceChoice, Method
from engines.model.environment import SolverEnvironment as Environment
from engines.model.explicit import ModelKind
from engines.model.result import Status
from engines.questions.reachability import solve_reachability
from engines.questions.time_bounded import distribution_at, time_bounded_until
from engines.questions.until import until_probabilities
from tests.engines import models, random_models
from tests.engines.random_questions import (
    LONG_RUN,
    STEPS,
    TIMES,
    TOTAL,
    UNBOUNDED,
    directions,
    with_strategy,
)

DTMC, CTMC, MDP = ModelKind.DTMC, ModelKind.CTMC, ModelKind.MDP
EXAMPLES = [20, pytest.param(500, marks=pytest.mark.slow)]
QUIET = {"suppress_health_check": list(HealthCheck)}
LARGE = 100_002

many = pytest.mark.parametrize("examples", EXAMPLES)


def run(check, examples, *strategies):
    """Check so many examples."""
    settings(max_examples=examples, **QUIET)(given(*strategies)(check))()


def on_both(question, case, direction, **settings_of):
    """The CPU's and the GPU's result."""
    return tuple(
        question.ask(case, Environment(device=device, **settings_of), direction)
        for device in (DeviceChoice.CPU, DeviceChoice.GPU)
    )


def asked(case, questions):
    """The questions that fit a model, each with each direction."""
    for question in questions:
        if case.kind in question.kinds:
            for direction in directions(case):
                yield question, direction


@many
def test_questions_with_bounds_are_answered_alike(examples):
    def check(case):
        for question, direction in asked(case, (*STEPS, *TIMES)):
            cpu, gpu = on_both(question, case, direction)
            # The one may come to rest where the other's rounding still stirs the last digit; and
            # on the CPU, small sums look for a sweep that changes nothing only now and then.
            at_rest = 0.0 in (gpu.change, cpu.change)
            assert gpu.iterations == cpu.iterations or (
                at_rest if question in STEPS else gpu.iterations < cpu.iterations
            )
            assert gpu.status is cpu.status is Status.CONVERGED
            # Either may make the more sweeps, and rounds in each of them.
            sweeps = max(cpu.iterations, gpu.iterations)
            rounding = 2.0**-52 * (sweeps + 4) * (case.size + 4)
            np.testing.assert_allclose(gpu.values, cpu.values, rtol=rounding, atol=1e-300)
            assert gpu.error_estimate == pytest.approx(cpu.error_estimate, rel=1e-9)

    run(check, examples, random_models.random_models(DTMC, CTMC, MDP, most=9))


@many
def test_the_automatic_method_agrees_as_far_as_both_claim(examples):
    def check(case, epsilon, topological):
        settings_of = {"epsilon": epsilon, "topological": topological}
        for question, direction in asked(case, (*UNBOUNDED, TOTAL, *LONG_RUN)):
            cpu, gpu = on_both(question, case, direction, **settings_of)
            np.testing.assert_array_equal(np.isinf(gpu.values), np.isinf(cpu.values))
            np.testing.assert_array_equal(gpu.values == 0.0, cpu.values == 0.0)
            claimed = 2.0 * (gpu.error_estimate + cpu.error_estimate) + 1e-9
            finite = np.isfinite(cpu.values)
            np.testing.assert_allclose(gpu.values[finite], cpu.values[finite], rtol=claimed)

    run(
        check,
        examples,
        random_models.random_models(DTMC, CTMC, MDP, most=9, rare=False),
        st.sampled_from([1e-6, 1e-10]),
        st.booleans(),
    )


@many
def test_bounds_overlap_and_are_as_narrow(examples):
    def check(case, method, absolute):
        settings_of = {"method": method, "absolute": absolute, "max_iterations_named": True}
        questions = UNBOUNDED if case.kind is MDP else (*UNBOUNDED, *LONG_RUN)
        for question, direction in asked(case, questions):
            cpu, gpu = on_both(question, case, direction, **settings_of)
            assert (gpu.bounds[0] <= cpu.bounds[1]).all()
            assert (cpu.bounds[0] <= gpu.bounds[1]).all()
            assert gpu.status is cpu.status

    run(
        check,
        examples,
        random_models.random_models(DTMC, CTMC, MDP, most=9, rare=False),
        st.sampled_from([Method.INTERVAL, Method.OPTIMISTIC]),
        st.booleans(),
    )


@many
def test_sets_of_probability_0_and_1_are_the_same(examples):
    def check(case):
        cpu, gpu = Environment(device=DeviceChoice.CPU), Environment(device=DeviceChoice.GPU)
        for direction in directions(case):
            sides = case.model, case.remain_mask, case.target_mask, direction
            for sets in (prob0, prob1):
                np.testing.assert_array_equal(
                    sets(*sides, environment=gpu), sets(*sides, environment=cpu)
                )

    run(check, examples, random_models.random_models(DTMC, CTMC, MDP, most=10))


@many
def test_named_methods_make_the_same_sweeps(examples):
    def check(case, method, absolute):
        method = Method.VALUE_ITERATION if case.kind is MDP else method
        for direction in directions(case):
            problem = models.until(case.model, case.target_mask, direction, case.remain_mask)
            if not problem.unknown.any():
                continue
            cpu, gpu = (
                solve_reachability(
                    problem.model,
                    problem.unknown,
                    problem.start,
                    Environment(
                        method=method, absolute=absolute, max_iterations=300, device=device
                    ),
                    **problem.keywords,
                )
                for device in (DeviceChoice.CPU, DeviceChoice.GPU)
            )
            assert gpu.iterations == cpu.iterations
            np.testing.assert_allclose(gpu.values, cpu.values, rtol=1e-10, atol=1e-300)

    run(
        check,
        examples,
        random_models.random_models(DTMC, CTMC, MDP, most=9),
        st.sampled_from([Method.JACOBI, Method.JOR, Method.POWER]),
        st.booleans(),
    )


@pytest.mark.parametrize("method", [Method.AUTO, Method.POLICY_ITERATION])
@many
def test_strategies_are_as_good(examples, method):
    def check(case):
        for question in (*UNBOUNDED, TOTAL):
            for direction in directions(case):
                cpu, gpu = (
                    with_strategy(
                        question,
                        case,
                        Environment(method=method, epsilon=1e-10, device=device),
                        direction,
                    )
                    for device in (DeviceChoice.CPU, DeviceChoice.GPU)
                )
                np.testing.assert_allclose(gpu.values, cpu.values, rtol=1e-6, atol=1e-300)
                np.testing.assert_array_equal(gpu.strategy < 0, cpu.strategy < 0)

    run(check, examples, random_models.random_models(MDP, rare=False))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DTMC, CTMC])
def test_a_line_of_a_hundred_thousand_states(kind):
    stray = 1e-2
    model = random_models.long_line(kind, LARGE, stray)
    target = np.arange(LARGE) == LARGE - 2
    left = np.maximum(LARGE - 2 - np.arange(LARGE), 0)
    expected = np.where(np.arange(LARGE) == LARGE - 1, 0.0, (1.0 - stray) ** left)
    environment = Environment(device=DeviceChoice.GPU, absolute=True, epsilon=1e-9)
    everywhere = np.ones(LARGE, dtype=np.bool_)
    result = until_probabilities(model, everywhere, target, environment)
    np.testing.assert_allclose(result.values, expected, atol=1e-8)


def test_the_time_along_a_line_of_a_hundred_thousand_states():
    model = random_models.long_line(CTMC, LARGE, 0.0)
    target = np.arange(LARGE) == LARGE - 2
    left = np.maximum(LARGE - 2 - np.arange(LARGE), 1)
    expected = np.where(target, 1.0, gammainc(left, 40.0))
    expected[-1] = 0.0
    environment = Environment(device=DeviceChoice.GPU)
    everywhere = np.ones(LARGE, dtype=np.bool_)
    result = time_bounded_until(model, everywhere, target, 0.0, 40.0, environment)
    np.testing.assert_allclose(result.values, expected, rtol=1e-8, atol=result.error_estimate)


@pytest.mark.parametrize("kind", ModelKind)
def test_a_row_of_a_hundred_thousand_entries(kind):
    model = random_models.star(kind, LARGE)
    target = np.arange(LARGE) == LARGE - 2
    direction = models.MAX if kind is MDP else None
    everywhere = np.ones(LARGE, dtype=np.bool_)
    ray = np.arange(1, LARGE - 2)
    centre = 2.0 * float(np.mean(0.5 * ray / LARGE))
    environment = Environment(device=DeviceChoice.GPU, epsilon=1e-10)
    result = until_probabilities(model, everywhere, target, environment, direction=direction)
    assert result.values[0] == pytest.approx(centre, rel=1e-8)
    np.testing.assert_allclose(result.values[1:-2], 0.5 * centre + 0.5 * ray / LARGE, rtol=1e-8)


def test_a_distribution_spread_over_a_hundred_thousand_states():
    model, initial = random_models.star(CTMC, LARGE), np.eye(1, LARGE)[0]
    cpu, gpu = (
        distribution_at(model, initial, 2.0, Environment(device=device))
        for device in (DeviceChoice.CPU, DeviceChoice.GPU)
    )
    assert gpu.iterations == cpu.iterations
    np.testing.assert_allclose(gpu.values, cpu.values, rtol=1e-9, atol=1e-300)
