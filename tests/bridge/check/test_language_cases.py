"""What other tools refuse of PRISM's language, without PRISM: PRISM's answers, or its words."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from tests.bridge.check.test_run import prism_gpu


@dataclass(frozen=True)
class Case:
    """A model, questions about it, and what PRISM's explicit engine answers.

    Parameters
    ----------
    text, question
        The model, and properties.
    answers
        A number is a result, and a text an error.
    constants
        The values of constants.
    in_prism
        Whether PRISM answers so: it lets variables leave their ranges.
    """

    text: str
    question: str
    answers: tuple[float | str, ...]
    constants: str = ""
    in_prism: bool = True


NOT_EQUALS = """dtmc
const int N = 3;
module walk
  x : [0..N] init 0;
  [] !x=N -> 0.5 : (x'=x+1) + 0.5 : (x'=0);
  [] x=N -> true;
endmodule
"""
NO_ITEMS = """dtmc
module m
  s : [0..1] init 0;
  [] s=0 -> 0.5 : (s'=1) + 0.5 : true;
  [] s=1 -> true;
endmodule
rewards "belief"
endrewards
"""
FIRST_VALUE = """dtmc
const int top;
module m
  s : [0..top] init 5;
  [] s>0 -> (s'=s-1);
  [] s=0 -> true;
endmodule
"""
OUT_OF_RANGE = """dtmc
module m
  x : [0..2] init 0;
  [] x<2 -> 0.5 : (x'=x+3) + 0.5 : (x'=0);
  [] x>=2 -> true;
endmodule
"""
HALF = """dtmc
module m
 x:[0..4] init 3;
 [] x=3 -> (x'=x/2);
 [] x!=3 -> true;
endmodule
"""
REWARDS = """ctmc
module a
  x : [0..2] init 2;
  y : [0..2] init 0;
  [] x>0 -> 2/x:(x'=x-1)&(y'=min(y+1,2));
  [] x<2 -> 1:(x'=x+1);
endmodule
rewards "safe" x>0 : y/x; endrewards
rewards "bad" true : y/x; endrewards
rewards "nan" true : (x-x)/(x-x); endrewards
"""
RATE = """ctmc
module a
  x : [0..2] init 2;
  [] x>0 -> 2:(x'=x-1);
  [] x<2 -> 1/x:(x'=x+1);
endmodule
"""
NO_RATE = """ctmc
module a
  x : [0..1] init 0;
  [] x=0 -> 1:(x'=1);
  [] x=1 -> 0:(x'=0);
endmodule
"""
RATE_OF_CONSTANT = """ctmc
const double k;
module a
  x : [0..3] init 0;
  [] x=0 -> 1:(x'=1) + k:(x'=2);
  [] x=1 -> k:(x'=3);
  [] x=2 -> 1:(x'=0);
endmodule
"""
CASES = {
    "not equals": Case(NOT_EQUALS, "P=? [ F<=3 x=N ]", (0.125,)),
    "rewards without items": Case(NO_ITEMS, 'R{"belief"}=? [ F s=1 ]', (0.0,)),
    "first value": Case(FIRST_VALUE, "P=? [ F s=0 ]", (1.0,), "top=7"),
    "first value out of range": Case(
        FIRST_VALUE,
        "P=? [ F s=0 ]",
        ('Value 5 out of range for variable s ("5", line 4, column 21)',),
        "top=3",
        in_prism=False,
    ),
    "update out of range": Case(
        OUT_OF_RANGE,
        "P=? [ F x=2 ]",
        (
            "Value of variable x overflows: 3 is out of its range 0..2, in state (x=0) "
            '("x+3", line 4, column 23)',
        ),
        in_prism=False,
    ),
    "half": Case(
        HALF,
        "P=? [ F x=1 ]",
        ('Type error in update to variable "x" ("x/2", line 4, column 16)',),
    ),
    "rewards that are not finite": Case(
        REWARDS,
        'R{"safe"}=? [ C<=1 ]; R{"bad"}=? [ C<=1 ]; R{"nan"}=? [ C<=1 ]; P=? [ G<=1 y=0 ]',
        (
            0.2527054869,
            'Reward structure is not finite at state (0,2) ("y/x", line 9, column 22)',
            'Reward structure is not finite at state (0,2) ("(x-x)/(x-x)", line 10, column 22)',
            0.3678794412,
        ),
    ),
    "rate that is not finite": Case(
        RATE,
        "P=? [ F x=1 ]",
        ("""Rate is not finite in state (x=0) ("1/x : (x'=x+1)", line 5, column 13)""",),
    ),
    "rate of zero": Case(
        NO_RATE,
        "P=? [ F x=1 ]",
        ("""Rate is zero for updates in state (x=1) ("0 : (x'=0)", line 5, column 13)""",),
    ),
    "constant rate of zero": Case(
        RATE_OF_CONSTANT,
        "P=? [ F<=1 x=3 ]",
        ("""Rate is zero for updates in state (x=1) ("0.0 : (x'=3)", line 6, column 13)""",),
        "k=0",
    ),
    "constant rate": Case(RATE_OF_CONSTANT, "P=? [ F<=1 x=3 ]", (0.2133544007,), "k=1"),
}
WITH_PRISM = [name for name in CASES if CASES[name].in_prism]


def require_answers(output: str, case: Case) -> None:
    """Compare the results and the errors of a report."""
    said = re.findall(r"^(Result|Error): (.*)$", output, re.MULTILINE)
    found = [float(text.split()[0]) if what == "Result" else text[:-1] for what, text in said]
    for ours, wanted in zip(found, case.answers, strict=True):
        assert ours == (wanted if isinstance(wanted, str) else pytest.approx(wanted, rel=1e-6))


def asked(name: str, tmp_path) -> list[object]:
    """The words of a command that asks the questions of a case."""
    case = CASES[name]
    path = tmp_path / "model.prism"
    path.write_text(case.text)
    constants = ["-const", case.constants] if case.constants else []
    return [path, "-pf", case.question, *constants]


@pytest.mark.parametrize("name", CASES)
def test_answers_without_prism(name, tmp_path):
    run = prism_gpu(*asked(name, tmp_path), "-frontend", "builtin", "-nogpu")
    require_answers(run.output, CASES[name])


@pytest.mark.slow
@pytest.mark.prism
@pytest.mark.parametrize("name", WITH_PRISM)
def test_answers_are_those_of_prisms_explicit_engine(name, tmp_path, prism):
    require_answers(prism(*asked(name, tmp_path), "-explicit").output, CASES[name])
