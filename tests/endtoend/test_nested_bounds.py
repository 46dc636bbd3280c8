"""Values whose error holds the bound of an operator: decided exactly, or refused."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest

pytestmark = pytest.mark.prism

REFUSED = "Accuracy of value"
ERROR = re.compile(r"^Result: (\S+) \(\+/- ([^\s;]+)", re.M)
RESULT = re.compile(r"^(?:Result|Error): (.*?)(?: \(.*\))?$", re.M)

THIRD = """dtmc
module m
  x : [0..3] init 0;
  [] x=0 -> 1/3:(x'=0) + 1/3:(x'=1) + 1/3:(x'=2);
  [] x>0 -> true;
endmodule
rewards "s" x=0 : 1; endrewards
"""
OF_THIRD = {
    "P=? [ F (P>=0.5 [ F x=1 ]) ]": "1.0",
    "P>=0.5 [ F x=1 ]": "true",
    "P<=0.5 [ F x=1 ]": "true",
    "P>0.5 [ F x=1 ]": "false",
    "P>=0.5 [ G x!=1 ]": "true",
    "P<0.5 [ F G x=1 ]": "false",
    "P>1/3 [ X x=1 ]": "false",
    "P<=13/27 [ F<=3 x=1 ]": "true",
    "R>=1.5 [ F x>0 ]": "true",
    "R>1.5 [ F x>0 ]": "false",
    "S>=0.5 [ x=1 ]": "true",
    "S<0.5 [ x=1 ]": "false",
    "filter(count, P>=0.5 [ F x=1 ])": "2",
}
HALF = """mdp
module m
  x : [0..3] init 0;
  [a] x=0 -> 1/2:(x'=0) + 1/4:(x'=1) + 1/4:(x'=2);
  [b] x=0 -> 1/3:(x'=0) + 1/3:(x'=1) + 1/3:(x'=2);
  [] x>0 -> true;
endmodule
rewards "s" x=0 : 1; endrewards
"""
OF_HALF = {
    "P<=0.5 [ F x=1 ]": "true",
    "P>0.5 [ F x=1 ]": "false",
    "P>=0.5 [ G x!=1 ]": "true",
    "Pmax=? [ F (P>=0.5 [ F x=1 ]) & x=0 ]": "1.0",
    "R<=2 [ F x>0 ]": "true",
    "R>=1.5 [ F x>0 ]": "true",
    "R<2 [ F x>0 ]": "false",
}
TENTH = """ctmc
module m
  x : [0..2] init 0;
  [] x=0 -> 9:(x'=1) + 1:(x'=2);
  [] x=1 -> 1:(x'=1);
endmodule
"""
OF_TENTH = {
    "P>=0.1 [ G x!=1 ]": "true",
    "P<=0.1 [ G x!=1 ]": "true",
    "P>0.1 [ G x!=1 ]": "false",
    "P<=0.9 [ F x=1 ]": "true",
    "S<=0.9 [ x=1 ]": "true",
    "S>0.9 [ x=1 ]": "false",
    "P>0 [ F<=1 x=2 ]": "true",
    "P>=1 [ F<=1 x=1 ]": "false",
}
ENDLESS = """ctmc
module m
  x : [0..3] init 0;
  [] x=0 -> 19:(x'=1);
  [] x=1 -> 23.5:(x'=2) + 1e-9:(x'=3);
  [] x>1 -> 7.1:(x'=5-x);
endmodule
"""
OF_ENDLESS = {
    "P=? [ F>=0.75 x>1 ]": "1.0",
    "P<=1 [ F>=0.75 x>1 ]": "true",
    "P>=1 [ F>=0.75 x>1 ]": "true",
    "P>1 [ F>=0.75 x>1 ]": "false",
    "P<1 [ F>=0.75 x>1 ]": "false",
    "P=? [ G>=0.75 x=0 ]": "0.0",
    "P>=0 [ G>=0.75 x=0 ]": "true",
    "P>0 [ G>=0.75 x=0 ]": "false",
    "P<1 [ F<=0.75 x>1 ]": "true",
    "filter(count, P>=1 [ true U[0.75,0.8] x>1 ])": "2",
}
TENTHS = """mdp
module m
  x : [0..10] init 0;
  [] true -> 0.1:(x'=1) + 0.1:(x'=2) + 0.1:(x'=3) + 0.1:(x'=4) + 0.1:(x'=5)
           + 0.1:(x'=6) + 0.1:(x'=7) + 0.1:(x'=8) + 0.1:(x'=9) + 0.1:(x'=10);
endmodule
"""
OF_TENTHS = {
    "P>=1 [ F>=2 x>0 ]": "true",
    "P<1 [ F[2,5] x>0 ]": "false",
    "P>0 [ G>=3 x=0 ]": "false",
    "P<=0 [ G[3,4] x=0 ]": "true",
    "P>=1 [ F=3 x>0 ]": "true",
    "P>=0.5 [ F=3 x>5 ]": "true",
    "P<=0.5 [ F=3 x>5 ]": "true",
    "P>=0.75 [ F[2,3] x>5 ]": "true",
    "P<=0.75 [ F[2,3] x>5 ]": "true",
    "P>=0.36 [ x!=3 U[2,2] x>6 ]": "true",
    "P<=0.36 [ x!=3 U[2,2] x>6 ]": "true",
    "P>=0.1 [ x!=0 U[1,1] x>6 ]": "false",
}
ROUTES = ["-explicit", "-sparse", "-hybrid", "-ii", "-gs", "-frontend builtin"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("text", "questions"),
    [
        (THIRD, OF_THIRD),
        (HALF, OF_HALF),
        (TENTH, OF_TENTH),
        (ENDLESS, OF_ENDLESS),
        (TENTHS, OF_TENTHS),
        (TENTHS.replace("mdp", "dtmc"), OF_TENTHS),
    ],
)
def test_a_bound_that_is_the_exact_value_is_met(prism_gpu, tmp_path, text, questions, route):
    model = tmp_path / "model.pm"
    model.write_text(text, encoding="utf-8")
    run = prism_gpu(model, "-pf", "; ".join(questions), *route.split())
    assert run.code == 0, run.output
    found = RESULT.findall(run.output)
    assert dict(zip(questions, found, strict=True)) == questions


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["-explicit", "-sparse", "-hybrid"])
def test_what_no_exact_value_decides_is_refused_in_the_words_of_prism(prism_gpu, tmp_path, engine):
    model = tmp_path / "model.sm"
    model.write_text(TENTH, encoding="utf-8")
    asked = "P=? [ F[0.2,0.4] x=1 ]"
    (value,) = RESULT.findall(prism_gpu(model, "-pf", asked, engine).output)
    questions = [asked.replace("=?", f"{how}{value}") for how in (">=", "<")]
    found = RESULT.findall(prism_gpu(model, "-pf", "; ".join(questions), engine).output)
    assert found == [f"Accuracy of value {value} is not enough to compare to bound {value}."] * 2


FAR = """ctmc
module m
  x : [0..60] init 0;
  [] x<60 -> 1:(x'=x+1);
  [] x>0 & x<60 -> 2:(x'=x-1);
endmodule
rewards x=60 : 1; endrewards
"""
OF_FAR = {
    "P=? [ F<=0.1 x=60 ]": "0.0",
    "P>0 [ F<=0.1 x=60 ]": "true",
    "P<=0 [ F<=0.1 x=60 ]": "false",
    "P>0 [ F<=0 x=60 ]": "false",
    "P>0 [ F[0.05,0.1] x=60 ]": "true",
    "P>=1 [ G<=0.1 x<60 ]": "false",
    "P<1 [ G<=20 x<60 ]": "true",
    "R>0 [ C<=0.1 ]": "true",
    "R>0 [ I=0.1 ]": "true",
    "filter(count, P>0 [ x<50 U<=0.1 x=50 ])": "51",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["-explicit", "-sparse", "-hybrid"])
def test_what_hardly_ever_happens_in_time_is_possible(prism_gpu, tmp_path, engine):
    model = tmp_path / "model.sm"
    model.write_text(FAR, encoding="utf-8")
    run = prism_gpu(model, "-pf", "; ".join(OF_FAR), engine)
    found = RESULT.findall(run.output)
    assert dict(zip(OF_FAR, found, strict=True)) == OF_FAR


DECAY = "ctmc module m s : [0..1]; [] s=0 -> 1:(s'=1); endmodule"
WALK = """{kind}
module m
  s : [0..40] init 20;
  [] s>0 & s<40 -> 1/2:(s'=s+1) + 1/2:(s'=s-1);
  [] s=0 | s=40 -> true;
endmodule
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("route", ["-explicit", "-sparse", "-ii", "-frontend builtin"])
def test_a_complement_has_the_error_of_its_subtraction(prism_gpu, tmp_path, route):
    model = tmp_path / "decay.sm"
    model.write_text(DECAY, encoding="utf-8")
    questions = ["P=? [ G>=41 s=1 ]", "P=? [ !(F>=12 s=0) ]", "P<1 [ !(F>=40 s=0) ]"]
    run = prism_gpu(model, "-pf", "; ".join(questions), *route.split())
    for (value, error), exponent in zip(ERROR.findall(run.output), (41, 12), strict=True):
        away = Fraction(value) - 1 + Fraction(math.exp(-exponent))
        assert abs(away) <= Fraction(error) < 1e-15
    *_, certain = RESULT.findall(run.output)
    assert certain == "true" or certain.startswith(REFUSED)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["dtmc", "mdp"])
@pytest.mark.parametrize(
    "route", ["", "-explicit", "-sparse", "-hybrid -gs", "-sparse -ii", "-frontend builtin"]
)
def test_what_comes_after_some_steps_has_the_error_of_its_solve(prism_gpu, tmp_path, kind, route):
    model = tmp_path / "walk.pm"
    model.write_text(WALK.format(kind=kind), encoding="utf-8")
    asked = "P" if kind == "dtmc" else "Pmax"
    questions = [f"{asked}=? [ F>=1 s=40 ]", "P>=0.5 [ F>=1 s=40 ]", "P<=0.5 [ F>=1 s=40 ]"]
    run = prism_gpu(model, "-pf", "; ".join(questions), *route.split())
    ((value, error),) = ERROR.findall(run.output)
    assert abs(float(value) - 0.5) <= float(error)
    for answer in RESULT.findall(run.output)[1:]:
        assert answer == "true" or answer.startswith(REFUSED)


TWO_STEPS = """dtmc
module m
  s : [0..2];
  [] s=0 -> 0.5:(s'=1) + 0.5:(s'=2);
  [] s=1 -> 0.2:(s'=1) + 0.8:(s'=0);
  [] s=2 -> true;
endmodule
"""


@pytest.mark.parametrize("route", ["-explicit", "-frontend builtin"])
def test_rounded_steps_before_exact_values_do_not_decide(prism_gpu, tmp_path, route):
    model = tmp_path / "steps.pm"
    model.write_text(TWO_STEPS, encoding="utf-8")
    # 0.30000000000000004 in doubles.
    run = prism_gpu(model, "-pf", "P<=0.3 [ F>=2 s=1 ]; P>0.3 [ F>=2 s=1 ]", *route.split())
    found = RESULT.findall(run.output)
    if "builtin" in route:
        assert found == ["true", "false"]
    assert all(
        answer == right or answer.startswith(REFUSED)
        for answer, right in zip(found, ("true", "false"), strict=True)
    )
