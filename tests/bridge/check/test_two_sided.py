"""Properties checked under -ii: bounds that are said to be bounds, and what has none."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from bridge.check.accuracy import Accuracy, accuracy_of
from bridge.check.checker import Checker
from bridge.check.distributions import report_steady_state
from bridge.check.outcome import Outcome
from bridge.language.parser import parse_property
from bridge.model import CheckableModel, NamedRewards
from engines.errors import UnsupportedError
from engines.model.environment import Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.result import SolveResult
from engines.questions.total_rewards import total_rewards
from tests.bridge.check.models import dice, gamble, mask, matrix, queue, two_sources

TIGHT = SolverEnvironment(epsilon=1e-10)
REMARK = re.compile(r"\(\+/- (\S+); rel err (\S+)\)$")
NOT_BOUNDED = "in spite of -ii"


def check(model, text, environment=TIGHT, two_sided=True):
    lines: list[str] = []
    environment = replace(environment, bounds=two_sided)
    checker = Checker(model, environment, log=lines.append)
    return checker.check(parse_property(text)), "\n".join(lines)


def two_traps() -> CheckableModel:
    """Return a chain that ends in a cycle of three with 1/3, else in {4, 5}, left at 1/4."""
    rows = [{1: 1 / 3, 4: 2 / 3}, {2: 1.0}, {3: 1.0}, {1: 1.0}, {4: 0.75, 5: 0.25}, {4: 1.0}]
    labels = {"init": mask(6, 0), "deadlock": mask(6), "here": mask(6, 1, 5)}
    model = ExplicitModel(
        ModelKind.DTMC, matrix(rows, 6), initial_states=labels["init"], labels=labels
    )
    amounts = np.array([9.0, 1.0, 0.0, 0.0, 2.0, 0.0])
    rewards = NamedRewards("r", RewardStructure("r", amounts), amounts)
    return CheckableModel(model.check(), rewards=(rewards,), source="two traps")


def waiting() -> CheckableModel:
    """Return an MDP that may wait for nothing before it earns a step, three times on average."""
    rows = [{0: 1.0}, {1: 1.0}, {1: 0.5, 2: 0.5}, {1: 1 / 3, 3: 2 / 3}, {3: 1.0}]
    labels = {"init": mask(4, 0), "deadlock": mask(4)}
    groups = np.array([0, 2, 3, 4, 5], dtype=np.int32)
    model = ExplicitModel(ModelKind.MDP, matrix(rows, 4), groups, labels["init"], labels)
    structure = RewardStructure("r", np.zeros(4), np.array([0.0, 0.0, 1.0, 0.0, 0.0]))
    return CheckableModel(
        model.check(), rewards=(NamedRewards("r", structure, np.zeros(4)),), source="waiting"
    )


# Of the trap {4, 5} the chain spends a fifth of the steps in 5; of the queue full has 1/15.
EXACT = [
    (two_traps, 'S=? [ "here" ]', Fraction(1, 9) + Fraction(2, 15)),
    (two_traps, 'R{"r"}=? [ S ]', Fraction(1, 9) + Fraction(16, 15)),
    (queue, 'S=? [ "full" ]', Fraction(1, 15)),
    (queue, "R=? [ S ]", Fraction(11, 15)),
    (dice, 'P=? [ F "six" ]', Fraction(1, 6)),
    (dice, "P=? [ F G d=2 ]", Fraction(1, 6)),
    (dice, "P=? [ (F s=3) => (F d=3) ]", Fraction(19, 24)),
    (dice, "P=? [ G s<5 | d!=6 ]", Fraction(5, 6)),
    (dice, "R=? [ C ]", Fraction(11, 3)),
    (dice, "R=? [ X (F s=7) ]", Fraction(11, 3)),
    (gamble, 'Pmin=? [ X (F "won") ]', Fraction(3, 10)),
    (gamble, 'R{"steps"}max=? [ C ]', Fraction(2)),
    (gamble, 'R{"steps"}min=? [ C ]', Fraction(1)),
]


@pytest.mark.parametrize(("model", "text", "value"), EXACT)
def test_the_error_printed_holds_and_is_no_estimate(model, text, value):
    result, log = check(model(), text)
    assert NOT_BOUNDED not in log
    if result.text.endswith("(exact floating point)"):
        assert float(result.value) == pytest.approx(float(value), rel=1e-15)
        return
    found = REMARK.search(result.text)
    assert found is not None, result.text
    error = abs(Fraction(float(result.value)) - value)
    # What is printed has sixteen digits.
    assert error <= Fraction(float(found[1])) * (1 + Fraction(1, 10**12)) + Fraction(1, 10**17)
    assert float(found[1]) < 1e-9


def test_a_lower_bound_on_steps_keeps_the_bounds_of_the_until():
    result, _ = check(dice(), 'P=? [ F>=4 "six" ]')
    assert result.value == pytest.approx(1 / 6, abs=1e-9)
    assert "estimated" not in result.text


def test_time_bounds_are_bounds_whether_asked_for_or_not():
    for two_sided in (False, True):
        result, log = check(queue(), "P=? [ F<=3 n=3 ]", two_sided=two_sided)
        assert REMARK.search(result.text), result.text
        assert NOT_BOUNDED not in log
    result, _ = check(queue(), 'P=? [ F>=0.5 "full" ]')
    assert result.value == pytest.approx(1.0, abs=1e-9)
    assert "estimated" not in result.text


def test_maximal_totals_are_bounded():
    result, log = check(waiting(), "Rmax=? [ C ]")
    assert result.value == pytest.approx(3.0, abs=1e-5)
    assert NOT_BOUNDED not in log
    assert "estimated" not in result.text


def test_what_stays_one_sided_is_said(monkeypatch):
    def without_bounds(model, rewards, environment, **more):
        return total_rewards(model, rewards, replace(environment, bounds=False), **more)

    monkeypatch.setattr("engines.questions.total_rewards.total_rewards", without_bounds)
    result, log = check(waiting(), "Rmax=? [ C ]")
    assert result.value == pytest.approx(3.0, abs=1e-8)
    assert NOT_BOUNDED in log
    assert "estimated" in result.text
    _, without = check(waiting(), "Rmax=? [ C ]", two_sided=False)
    assert NOT_BOUNDED not in without


def test_a_named_method_sweeps_the_averages():
    for method in (Method.POWER, Method.JACOBI):
        environment = SolverEnvironment(method=method)
        result, _ = check(two_traps(), 'S=? [ "here" ]', environment)
        assert result.value == pytest.approx(11 / 45, abs=1e-6)
        assert "estimated" not in result.text
    with pytest.raises(UnsupportedError, match="JOR"):
        check(two_traps(), 'S=? [ "here" ]', SolverEnvironment(method=Method.JOR))


def test_bounds_decide_a_threshold_with_the_error_that_they_have():
    assert check(queue(), 'S>0.066 [ "full" ]')[0].value is True
    assert check(queue(), 'S<=0.066 [ "full" ]')[0].value is False


def test_the_steady_state_says_how_far_its_bounds_are_apart():
    lines: list[str] = []
    report_steady_state(queue(), replace(TIGHT, bounds=True), None, lines.append)
    text = "\n".join(lines)
    found = re.search(r"bounds of each probability are at most (\S+) apart", text)
    assert found is not None
    assert float(found[1]) < 1e-10
    plain: list[str] = []
    report_steady_state(queue(), TIGHT, None, plain.append)
    assert "bounds of each" not in "\n".join(plain)
    shown = [float(number) for number in re.findall(r"\)=(\S+)", text)]
    assert shown == pytest.approx([8 / 15, 4 / 15, 2 / 15, 1 / 15])


def test_a_lower_bound_of_zero_leaves_an_absolute_error():
    values = np.array([0.5, 1e-12])
    bounds = (np.array([0.5, 0.0]), np.array([0.5, 2e-12]))
    result = SolveResult.exact(values, "a method")
    result = SolveResult.combined(values, [result], float("inf"))
    result = replace(result, two_sided=True, bounds=bounds)
    accuracy = accuracy_of(result, SolverEnvironment())
    assert accuracy.guaranteed
    assert accuracy.absolute
    assert 1e-12 <= accuracy.error < 1.1e-12


def test_exact_values_from_bounded_ones_are_as_bounded():
    steps = Outcome(np.ones(1), Accuracy(0.0))
    known = Outcome(np.ones(1), Accuracy(1e-8, absolute=False, guaranteed=True))
    guessed = Outcome(np.ones(1), Accuracy(1e-8))
    assert steps.no_better_than(known).accuracy == Accuracy(1e-8, guaranteed=True)
    assert steps.no_better_than(guessed).accuracy == Accuracy(1e-8)


def test_several_initial_states_have_a_range():
    result, log = check(two_sources(), 'S=? [ "goal" ]')
    assert NOT_BOUNDED not in log
    assert re.fullmatch(r"\[0\.25,0\.5\] \(\+/- \S+; rel err \S+\)", result.text)
