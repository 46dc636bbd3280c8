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


@pytest.fixture
def rounded(tmp_path):
    """The file of a queue with them."""
    model = tmp_path / "queue.prism"
    model.write_text(QUEUE.format(kind="dtmc", **ROUNDED))
    return str(model)


def values_of_rounded():
    """Return what is earned until the queue is full, from each state that it is not full in."""
    # What is earned from s until s + 1 for the first time: each state is left upwards with 3/10.
    costs = [Fraction(0)]
    for s in range(1, 9):
        costs.append((10 * s + 7 * costs[-1]) / 3)
    return [sum(costs[s:], start=Fraction(0)) for s in range(9)]


@pytest.mark.parametrize(
    "words", [(), ("-sparse",), ("-explicit", "-ii"), ("-frontend", "builtin")]
)
def test_what_filters_make_of_values_has_an_error_that_covers_the_exact_one(
    prism_gpu, rounded, words
):
    asked = [f"filter({kind}, R=? [ F s=9 ], s>2 & s<9)" for kind in FILTERS]
    asked.append("filter(range, R=? [ F s=9 ], s>2 & s<9)")
    run = prism_gpu(rounded, "-pf", "; ".join(asked), *words)
    lines = re.findall(r"^Result: (\S+) \(\+/- (\S+)(?: estimated)?;", run.output, re.MULTILINE)
    values = values_of_rounded()[3:]
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


def test_nothing_stands_behind_filters_where_prism_has_nothing(prism_gpu, prism, rounded):
    asked = "; ".join(f"filter({kind}, R=? [ F s=9 ], s>2 & s<9)" for kind in (*FILTERS, "range"))
    words = (rounded, "-pf", asked, "-explicit", "-power", "-maxiters", "1000000")
    ours, theirs = (
        re.findall(r"^Result: \S+(.*)$", run(*words).output, re.MULTILINE)
        for run in (prism_gpu, prism)
    )
    assert ours == theirs == [""] * 6


@pytest.mark.parametrize(
    "words", [(), ("-explicit",), ("-explicit", "-ii"), ("-frontend", "builtin")]
)
def test_the_error_of_arithmetic_covers_the_exact_value(prism_gpu, rounded, words):
    earned = values_of_rounded()[0]
    end = "R=? [ F s=9 ]"
    step = Fraction(3, 10)
    exact = {
        f"{end} - 8000": earned - 8000,
        f"1 - {end}": 1 - earned,
        f"2 * {end} * {end}": 2 * earned**2,
        f"max({end}, 0.01) / min({end}, 3)": earned / 3,
        f"{end} + P=? [ F<=1 s=1 ]": earned + step,
        f"filter(max, filter(min, {end}, s=0), s>2)": earned,
        f"filter(sum, {end} - 0.5, s=0)": earned - Fraction(1, 2),
        f"filter(avg, 2 * {end}, s=0)": 2 * earned,
    }
    run = prism_gpu(rounded, "-pf", "; ".join(exact), *words)
    lines = re.findall(r"^Result: (\S+) \(\+/- (\S+)(?: estimated)?;", run.output, re.MULTILINE)
    assert len(lines) == len(exact)
    for (value, error), (asked, wanted) in zip(lines, exact.items(), strict=True):
        assert abs(Fraction(value) - wanted) <= Fraction(error), asked
        assert Fraction(error) <= abs(wanted) / 10_000, asked


@pytest.mark.parametrize("words", [(), ("-explicit",), ("-frontend", "builtin")])
def test_nothing_stands_behind_what_is_computed_in_other_ways(prism_gpu, rounded, words):
    end = "R=? [ F s=9 ]"
    asked = (
        *(f"pow({end}, 2)", f"true ? {end} : 0.5", f"filter(sum, {end} - 9000)"),
        *("filter(max, s * 0.5)", f"(s<1 ? {end} : 1) / 2"),
        # Constants that were computed: 1 - 0.999999 is off by 8e-17.
        *(f"{end} / (1 - 0.999999)", f"{end} * pow(0.9, 1000)"),
        *(
            f"{end} * 1e300 * 1e300",
            f"1 / ({end} * 1e-300 * 1e-300)",
            f"filter(sum, {end} * 1e304)",
        ),
    )
    run = prism_gpu(rounded, "-pf", "; ".join(asked), *words)
    assert re.findall(r"^Result: \S+(.*)$", run.output, re.MULTILINE) == [""] * len(asked)


def test_conditions_in_arithmetic_are_answered_as_by_prism(prism_gpu, prism, rounded):
    # PRISM computes branches for the states of interest alone.
    asked = "(s<1 ? 1 : 2) * 0.5; -(s<1 ? 0.5 : 1.5); P=? [ X s=1 ] + (s<1 ? 1 : 2)"
    words = (rounded, "-pf", asked, "-explicit")
    ours, theirs = (
        [float(found) for found in re.findall(r"^Result: (\S+)", run(*words).output, re.MULTILINE)]
        for run in (prism_gpu, prism)
    )
    assert ours == pytest.approx(theirs, rel=1e-12)
    assert len(ours) == 3


@pytest.mark.parametrize("asked", ["P=? [ F s=9 ] * R=? [ S ]", "max(P=? [ F s=9 ], R=? [ S ])"])
def test_what_is_not_exact_is_not_called_so_for_its_first_operand(prism_gpu, rounded, asked):
    words = (rounded, "-pf", asked, "-explicit", "-power", "-epsilon", "1e-3")
    shown = re.findall(r"^Result: \S+ \((.*)\)$", prism_gpu(*words).output, re.MULTILINE)
    assert len(shown) == 1
    assert shown[0].startswith("+/- ")


SEVERAL = """dtmc
module m
  x : [0..4];
  [] x=0 -> 1/64:(x'=0) + 1/2:(x'=1) + 31/64:(x'=3);
  [] x=1 -> 63/64:(x'=1) + 1/64:(x'=2);
  [] x=2 -> 1/32:(x'=1) + 31/32:(x'=2);
  [] x=3 -> 63/64:(x'=3) + 1/64:(x'=4);
  [] x=4 -> 1/64:(x'=3) + 63/64:(x'=4);
endmodule
rewards
  x=2 : 3;
  x=4 : 5;
endrewards
"""
IN_2, IN_4 = Fraction(32, 63) / 3, Fraction(31, 63) / 2


@pytest.mark.parametrize("kind", ["dtmc", "ctmc"])
def test_a_long_run_put_together_from_components_has_an_error(prism_gpu, tmp_path, kind):
    model = tmp_path / "several.prism"
    model.write_text(SEVERAL.replace("dtmc", kind))
    asked = "S=? [ x=2 ]; S=? [ x=4 ]; R=? [ S ]; filter(max, S=? [ x=2 ])"
    run = prism_gpu(str(model), "-pf", asked, "-explicit", "-power", "-gpuinfo")
    assert "BSCC 2" in run.output
    exact = (IN_2, IN_4, 3 * IN_2 + 5 * IN_4, Fraction(1, 3))
    found = RESULT.findall(run.output)
    for (value, error), wanted in zip(found, exact, strict=True):
        assert abs(Fraction(value) - wanted) <= Fraction(error) < wanted / 1000


def test_the_end_counts_the_results_whose_error_is_not_known(prism_gpu, tmp_path):
    model = tmp_path / "several.prism"
    model.write_text(SEVERAL)
    asked = "S=? [ x=2 ]; filter(max, P=? [ F x=2 ], x=0); pow(P=? [ F x=2 ], 2)"
    told = "; of {} no error is known"
    for words, number in ((("-explicit",), "1 result"), (("-sparse",), "2 results")):
        log = prism_gpu(str(model), "-pf", asked, *words, "-power").output
        line = re.search("^prism-gpu: errors not told .*$", log, re.MULTILINE)
        assert line is not None
        assert line[0].endswith(told.format(number))
    log = prism_gpu(str(model), "-pf", asked.rpartition(";")[0], "-explicit", "-power").output
    assert "errors not told with the results" in log
    assert "no error is known" not in log
