"""What is printed as exact: what the graph decides, and no value that rounding has touched."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.prism

EXACT = "(exact floating point)"
RESULT = re.compile(r"^Result: (\S+)(?: (\(.*\)))?$", re.M)

TRAP = """dtmc
module m
  s : [0..3] init 0;
  [] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [] s=1 -> 0.3 : (s'=3) + 0.7 : true;
  [] s>1 -> true;
endmodule
rewards "steps" s<2 : 1; endrewards
"""
CHOICES = """mdp
module m
  s : [0..4] init 0;
  [a] s=0 -> 0.5:(s'=1) + 0.5:(s'=2);
  [b] s=0 -> 0.3:(s'=0) + 0.7:(s'=1);
  [] s=1 -> 0.3 : (s'=3) + 0.7 : true;
  [c] s=2 -> 0.5:(s'=3) + 0.2:(s'=4) + 0.3:(s'=2);
  [] s>2 -> true;
endmodule
"""
RATES = """ctmc
module m
  s : [0..3] init 0;
  [] s=0 -> 2 : (s'=1) + 1:(s'=2);
  [] s=1 -> 3 : (s'=0);
  [] s=3 -> 3 : (s'=0);
endmodule
"""
CASES = {
    "trap.pm": (
        TRAP,
        {
            'R{"steps"}=? [ F s=3 ]': ("Infinity", True),
            "P=? [ F s=3 ]": ("0.5", True),
            "filter(state, P=? [ F s=2 ], s=1)": ("0.0", True),
            "filter(state, P=? [ F s=2 ], s=2)": ("1.0", True),
            "filter(state, P=? [ G s!=3 ], s=1)": ("0.0", True),
            'filter(state, R{"steps"}=? [ F s=3 ], s=1)': ("3.33", False),
        },
    ),
    "choices.nm": (
        CHOICES,
        {
            "Pmin=? [ F s=4 ]": ("0.0", True),
            "Pmax=? [ F s=3 ]": ("1.0", True),
            "Pmin=? [ G s!=3 ]": ("0.0", True),
            "Pmin=? [ F G s=4 ]": ("0.0", True),
            "Pmax=? [ G s!=3 ]": ("0.142857", False),
        },
    ),
    "rates.sm": (
        RATES,
        {
            "P=? [ F<=3 s=3 ]": ("0.0", True),
            "P=? [ F[1,2] s=3 ]": ("0.0", True),
            "P=? [ G<=3 s!=3 ]": ("1.0", True),
            "filter(state, P=? [ F<=3 s=0 ], s=2)": ("0.0", True),
            "P=? [ F<=3 s=2 ]": ("0.8258377", False),
        },
    ),
}


def _results(prism_gpu, folder, name, text, questions, *switches):
    model = folder / name
    model.write_text(text, encoding="utf-8")
    run = prism_gpu(model, "-pf", "; ".join(questions), *switches)
    assert run.code == 0, run.output
    return RESULT.findall(run.output)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("engine", ["-explicit", "-sparse", "-hybrid"])
@pytest.mark.parametrize("name", CASES)
def test_what_the_graph_decides_is_labelled_exact_and_nothing_else_is(
    prism_gpu, tmp_path, name, engine
):
    text, questions = CASES[name]
    found = _results(prism_gpu, tmp_path, name, text, questions, engine)
    for (question, (value, exact)), (shown, label) in zip(questions.items(), found, strict=True):
        assert shown.startswith(value), question
        assert (label == EXACT) == exact, (question, shown, label)


@pytest.mark.parametrize("engine", ["-explicit", "-sparse"])
def test_values_that_a_finite_walk_decides_are_compared_with_bounds(prism_gpu, tmp_path, engine):
    coin = (
        "dtmc\nmodule m\n  s : [0..2] init 0;\n  [] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);\n"
        '  [] s>0 -> true;\nendmodule\nrewards "steps" s=0 : 1; endrewards\n'
    )
    questions = {
        "P>=0.5 [ F s=1 ]": "true",
        "P<=0.5 [ F s=1 ]": "true",
        "P<0.5 [ F s=1 ]": "false",
        "P>=0.5 [ G s!=1 ]": "true",
        "P>=1 [ F s=1 ]": "false",
        "P>=1 [ F s>0 ]": "true",
        'R{"steps"}>=1 [ F s>0 ]': "true",
        'R{"steps"}>1 [ F s>0 ]': "false",
    }
    found = _results(prism_gpu, tmp_path, "coin.pm", coin, questions, engine)
    assert [shown for shown, _ in found] == list(questions.values())


def test_a_tiny_probability_does_not_make_its_complement_exact(prism_gpu, tmp_path):
    tiny = TRAP.replace("0.5 : (s'=1) + 0.5 : (s'=2)", "1e-20 : (s'=1) + 1 : (s'=2)")
    questions = ["P=? [ G s!=3 ]", "P=? [ F s=2 ]"]
    # PRISM's diagrams take so small a number for 0.
    found = _results(prism_gpu, tmp_path, "tiny.pm", tiny, questions, "-explicit")
    for shown, label in found:
        assert shown == "1.0"
        assert label != EXACT
