"""Small models of our own of which an engine of PRISM's says a wrong number, and ours do not."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.prism

RESULT = re.compile(r"^Result: (\S+)", re.MULTILINE)

# Two actions lead to the same state: P(s=1) is 3/8 in both.
PARALLEL = """
{kind}
module m
  s : [0..2] init 0;
  [a] s=0 -> {to_one}:(s'=1) + {to_two}:(s'=2);
  [b] s=0 -> {and_one}:(s'=1) + {and_two}:(s'=2);
  [] s>0 -> 1:true;
endmodule
rewards [a] true : 3; [b] true : 5; endrewards
"""
RATES = {"to_one": 2, "to_two": 1, "and_one": 1, "and_two": 4}
PROBABILITIES = {"to_one": "1/2", "to_two": "1/2", "and_one": "1/4", "and_two": "3/4"}
CHAINS = {
    "ctmc": PARALLEL.format(kind="ctmc", **RATES),
    "dtmc": PARALLEL.format(kind="dtmc", **PROBABILITIES),
}
MEAN_REWARD = {"ctmc": (3 * 3 + 5 * 5) / 8, "dtmc": 4.0}

# Waiting in state 0 is free, and no way to the end; the cheaper way there costs 3.
FREE_LOOP = """
mdp
module m
  s : [0..2] init 0;
  [] s=0 -> true;
  [go] s=0 -> 0.5:(s'=1) + 0.5:(s'=0);
  [dear] s=0 -> (s'=1);
  [pay] s=1 -> (s'=2);
  [] s=2 -> true;
endmodule
rewards [pay] true : 3; [dear] true : 1; endrewards
"""


def results(run, folder, text, properties, *switches) -> list[float]:
    """Return the numbers that a program finds."""
    model = folder / "model.prism"
    model.write_text(text)
    outcome = run(model, "-pctl", properties, *switches)
    assert outcome.code == 0, outcome.output
    return [float(number) for number in RESULT.findall(outcome.output)]


@pytest.mark.parametrize("engine", ["-explicit", "-hybrid"])
@pytest.mark.parametrize("kind", CHAINS)
def test_transitions_of_two_actions_to_one_state_both_count(prism_gpu, tmp_path, kind, engine):
    asked = "P=? [ X (G s=1) ]; R=? [ F (s>0 & (X true)) ]"
    found = results(prism_gpu, tmp_path, CHAINS[kind], asked, engine)
    assert found == pytest.approx([0.375, MEAN_REWARD[kind]], rel=1e-12)


@pytest.mark.parametrize("engine", ["-explicit", "-hybrid"])
def test_operators_inside_a_formula_keep_what_transitions_earn(prism_gpu, tmp_path, engine):
    asked = "P=? [ X (G F (R>=4 [ C<=1 ])) ]; P=? [ F ((R>=4 [ C<=1 ]) & (X s=1)) ]"
    found = results(prism_gpu, tmp_path, CHAINS["dtmc"], asked, engine)
    assert found == pytest.approx([0.0, 0.375], rel=1e-12)


@pytest.mark.parametrize(
    "switches", [(), ("-sparse",), ("-topological",), ("-ii",), ("-explicit",)]
)
def test_the_least_reward_is_not_that_of_waiting_for_good(prism_gpu, tmp_path, switches):
    asked = "Rmin=? [ F s=2 ]; Rmin=? [ F (s=1 & (X s=2)) ]; Rmax=? [ F s=2 ]"
    found = results(prism_gpu, tmp_path, FREE_LOOP, asked, *switches)
    assert found == pytest.approx([3.0, 3.0, float("inf")], rel=1e-6)


@pytest.mark.parametrize("engine", ["-sparse", "-hybrid", "-mtbdd", "-explicit"])
@pytest.mark.parametrize("kind", ["ctmc", "dtmc", "mdp"])
def test_extrema_are_those_of_each_state(prism_gpu, tmp_path, kind, engine):
    text = FREE_LOOP if kind == "mdp" else CHAINS[kind]
    asked = ["P=? [ X s=1 ]", "P=? [ F<=2 s=1 ]"]
    if kind == "mdp":
        asked = [question.replace("=?", "max=?") for question in asked]
    both = ", ".join(asked)
    questions = [*asked, f"max({both}, 0.25)", f"min({both}, 0.9)", f"max(0.999, {asked[0]})"]
    one, two, *extrema = results(prism_gpu, tmp_path, text, "; ".join(questions), engine)
    expected = [max(one, two, 0.25), min(one, two, 0.9), max(0.999, one)]
    assert extrema == pytest.approx(expected, rel=1e-6)
    summed = f"filter(sum, max({asked[0]}, s*0.1, 0.01))"
    (total,) = results(prism_gpu, tmp_path, text, summed, engine)
    # State 1 stays in a chain, and goes on in the MDP.
    later = 0.1 if kind == "mdp" else 1.0
    assert total == pytest.approx(max(one, 0.01) + later + 0.2, rel=1e-6)


ALTERNATING = """
{kind}
module m
  x : [0..1] init 0;
  [] x=0 -> 1:(x'=1);
  [] x=1 -> 1:(x'=0);
endmodule
"""


@pytest.mark.parametrize("switches", [(), ("-sparse",), ("-explicit",), ("-frontend", "builtin")])
@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
def test_values_that_a_filter_keeps_are_right_beyond_its_states(
    prism_gpu, tmp_path, kind, switches
):
    # A product with an automaton begins in the states of the filter alone.
    most = "max" if kind == "mdp" else ""
    again, at_once = f"P{most}=? [ G F x=0 ]", f"P{most}=? [ F (x=0 & (X x=1)) ]"
    asked = [
        f"filter(print, {again}, x=1)",
        *(f"filter(min, filter(print, {path}, x=0), x=1)" for path in (again, at_once)),
        f"filter(sum, filter(printall, {at_once}, x=0))",
    ]
    found = results(prism_gpu, tmp_path, ALTERNATING.format(kind=kind), "; ".join(asked), *switches)
    assert found == [1.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize("switches", [(), ("-sparse",), ("-explicit",), ("-frontend", "builtin")])
def test_rewards_at_a_step_are_those_of_all_states(prism_gpu, tmp_path, switches):
    # PRISM's explicit engine fails where they select the states of a filter, and knows one state's.
    text = ALTERNATING.format(kind="dtmc") + "rewards x=0 : 2; x=1 : 3; endrewards"
    asked = [
        "filter(max, P=? [ X x=0 ], R>2.5 [ I=1 ])",
        "filter(max, P=? [ X x=0 ], R<2.5 [ I=1 ])",
        "filter(print, R=? [ I=1 ], x=1)",
        "filter(sum, R=? [ I=3 ])",
    ]
    found = results(prism_gpu, tmp_path, text, "; ".join(asked), *switches)
    assert found == [0.0, 1.0, 3.0, 5.0]
