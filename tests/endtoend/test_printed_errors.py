"""Errors behind results that PRISM's explicit engine makes of ours: what they have, or none."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

pytestmark = pytest.mark.prism

QUEUE = """{kind}
module queue
  s : [0..9];
  [] s=0 -> {up}:(s'=1) + {low}:(s'=0);
  [] s>0 & s<9 -> {up}:(s'=s+1) + {down}:(s'=s-1);
  [] s=9 -> {down}:(s'=8) + {high}:(s'=9);
endmodule
rewards
  true : s;
endrewards
"""
CHAINS = {
    "ctmc": ({"up": 0.75, "down": 1.5, "low": 0.25, "high": 0.25}, 0.5),
    "dtmc": ({"up": 0.25, "down": 0.75, "low": 0.75, "high": 0.25}, 1 / 3),
}
"""Rates or probabilities, and what each state has of the probability of the one before it."""
RESULT = re.compile(r"^Result: (\S+) \(\+/- (\S+) estimated; rel err \S+\)$", re.MULTILINE)


@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("method", [(), ("-power", "-gpuinfo")], ids=["PRISM's default", "power"])
def test_the_exact_value_lies_within_what_is_printed(prism_gpu, tmp_path, kind, method):
    rates, ratio = CHAINS[kind]
    model = tmp_path / "queue.prism"
    model.write_text(QUEUE.format(kind=kind, **rates))
    run = prism_gpu(str(model), "-pf", "S=? [ s=0 ]; R=? [ S ]", "-explicit", *method)
    weights = [ratio**s for s in range(10)]
    exact = weights[0], sum(s * weight for s, weight in enumerate(weights))
    for (value, error), expected in zip(RESULT.findall(run.output), exact, strict=True):
        wanted = expected / sum(weights)
        assert abs(float(value) - wanted) <= float(error) < 1e-3 * wanted


FILTERS = ("min", "max", "avg", "sum", "first")
ROUNDED = {"up": 0.3, "down": 0.7, "low": 0.7, "high": 0.3}
"""Probabilities that are no doubles."""


@pytest.mark.parametrize(
    "words", [(), ("-sparse",), ("-explicit", "-ii"), ("-frontend", "builtin")]
)
def test_what_filters_make_of_values_has_an_error_that_covers_the_exact_one(
    prism_gpu, tmp_path, words
):
    model = tmp_path / "queue.prism"
    model.write_text(QUEUE.format(kind="dtmc", **ROUNDED))
    asked = [f"filter({kind}, R=? [ F s=9 ], s>2 & s<9)" for kind in FILTERS]
    asked.append("filter(range, R=? [ F s=9 ], s>2 & s<9)")
    run = prism_gpu(str(model), "-pf", "; ".join(asked), *words)
    lines = re.findall(r"^Result: (\S+) \(\+/- (\S+)(?: estimated)?;", run.output, re.MULTILINE)
    # What is earned from s until s + 1 for the first time: each state is left upwards with 3/10.
    costs = [Fraction(0)]
    for s in range(1, 9):
        costs.append((10 * s + 7 * costs[-1]) / 3)
    values = [sum(costs[s:], start=Fraction(0)) for s in range(3, 9)]
    total = sum(values)
    exact = [min(values), max(values), total / len(values), total, values[0]]
    assert len(lines) == len(asked)
    for (value, error), wanted in zip(lines, exact, strict=False):
        assert abs(Fraction(value) - wanted) <= Fraction(error) <= wanted / 100_000
    low, high = map(Fraction, lines[-1][0].strip("[]").split(","))
    for end, wanted in ((low, min(values)), (high, max(values))):
        assert abs(end - wanted) <= Fraction(lines[-1][1])


def test_a_pareto_curve_has_no_error(prism_gpu, prism, prism_examples):
    words = (prism_examples / "simple" / "dice" / "two_dice.nm", "-pf")
    words += ("multi(Pmax=? [ F d1=1 ], Pmax=? [ F d2=2 ])",)
    ours, theirs = (
        re.findall("^Result.*", run(*words).output, re.MULTILINE) for run in (prism_gpu, prism)
    )
    assert len(ours) == 1
    assert ours == theirs


def test_nothing_stands_behind_filters_where_prism_has_nothing(prism_gpu, prism, tmp_path):
    model = tmp_path / "queue.prism"
    model.write_text(QUEUE.format(kind="dtmc", **ROUNDED))
    asked = "; ".join(f"filter({kind}, R=? [ F s=9 ], s>2 & s<9)" for kind in (*FILTERS, "range"))
    words = (str(model), "-pf", asked, "-explicit", "-power", "-maxiters", "1000000")
    ours, theirs = (
        re.findall(r"^Result: \S+(.*)$", run(*words).output, re.MULTILINE)
        for run in (prism_gpu, prism)
    )
    assert ours == theirs == [""] * 6


@pytest.mark.parametrize("engine", [(), ("-explicit",)], ids=["default", "explicit"])
def test_arithmetic_has_not_the_error_of_an_operand(prism_gpu, tmp_path, engine):
    rates, _ = CHAINS["dtmc"]
    model = tmp_path / "queue.prism"
    model.write_text(QUEUE.format(kind="dtmc", **rates))
    asked = ("P=? [ F s=9 ]", "(R=? [ F s=9 ])", "R=? [ F s=9 ] - 80000", "max(R=? [ F s=9 ], 1)")
    run = prism_gpu(str(model), "-pf", "; ".join(asked), *engine)
    told = re.findall(r"^Result: \S+(?P<error> \(.*)?$", run.output, re.MULTILINE)
    assert [bool(error) for error in told] == [True, True, False, False]
