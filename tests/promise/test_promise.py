"""Random models: the exact value lies within what is printed, by every route.

A few dozen models; `python -m tests.promise` asks thousands.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from tests.promise.asking import Questioner
from tests.promise.judging import Printed, fault
from tests.promise.models import CTMC, DTMC, MDP, draw
from tests.promise.questions import questions_for
from tests.promise.routes import IN_PRISM, settings_for, takes

MOST_STATES = 6
MODELS = 9
"""Of each route; a model is asked with a third of the settings."""


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    """A questioner whose processes stay for the tests of this file."""
    with Questioner(tmp_path_factory.mktemp("promise"), seconds=20.0) as questioner:
        yield questioner


def broken(questioner, route, kind):
    """The promises that are not kept of models of a kind, each as a reproduction."""
    violations = []
    before = questioner.tally.asked
    drawn = ((seed, draw(seed, kind, most=MOST_STATES)) for seed in itertools.count())
    fitting = ((seed, case) for seed, case in drawn if takes(route, case))
    for number, (seed, case) in enumerate(itertools.islice(fitting, MODELS // 3)):
        settings = list(settings_for(kind))[number % 3 :: 3]
        violations += questioner.ask(seed, [route], settings, case=case)
    assert questioner.tally.asked > before
    return "\n".join(violation.text() for violation in violations)


@pytest.mark.parametrize("kind", [DTMC, CTMC, MDP], ids=str.lower)
@pytest.mark.parametrize("route", ["tra", "umb"])
def test_the_exact_value_of_a_file_lies_within_what_is_printed(asking, route, kind):
    assert broken(asking, route, kind) == ""


@pytest.mark.parametrize("kind", [DTMC, CTMC, MDP], ids=str.lower)
def test_the_exact_value_of_a_model_text_without_prism_lies_within_what_is_printed(asking, kind):
    assert broken(asking, "builtin", kind) == ""


@pytest.mark.prism
@pytest.mark.usefixtures("prism_install")
@pytest.mark.parametrize("kind", [DTMC, CTMC, MDP], ids=str.lower)
@pytest.mark.parametrize("route", IN_PRISM)
def test_the_exact_value_inside_prism_lies_within_what_is_printed(asking, route, kind):
    assert broken(asking, route, kind) == ""


@pytest.mark.parametrize(
    ("seed", "setting"),
    [
        (7040, "ii"),
        (7057, "modpoliter"),
        (7124, "topological"),
        (7188, "gs"),
        (7209, "default"),
        (30646, "ii"),
        (61975, "power"),
    ],
)
def test_models_that_once_broke_it_do_so_no_more(asking, seed, setting):
    assert asking.ask(seed, ["tra"], [setting]) == []


def test_the_value_of_a_file_is_that_of_its_doubles():
    case = draw(1, DTMC)
    (question,) = (q for q in questions_for(case, 1) if q.family == "P X")
    other = Fraction(1, 3)
    near = Printed(float(other), "+/- 1.0E-30; rel err 1.0E-30")
    assert fault(question, None, other, near) == "outside the proven error"
    assert fault(question, None, Fraction(near.value), near) == ""


def test_rows_of_doubles_are_scaled_to_a_sum_of_1():
    for seed in range(30):
        for rows in draw(seed, MDP).read().choices:
            assert all(sum(row.values()) == 1 for row in rows)


def test_some_models_have_exits_at_widely_different_rates():
    cases = [draw(seed, CTMC, most=8) for seed in range(60)]
    rates = [[r for (row,) in case.choices for r in row.values()] for case in cases]
    assert any(some and max(some) > 10**9 * min(some) for some in rates)
