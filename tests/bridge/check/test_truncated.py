"""Bounds of results where only likely states were explored: the whole model's lie within them."""

from __future__ import annotations

import math
import re
import subprocess
import sys

import pytest

from bridge.check.checker import Checker
from bridge.check.explored import explored_model
from bridge.check.truncated import check_between
from bridge.language.properties_file import parse_properties
from engines.errors import ConvergenceError, InvalidModelError, UnsupportedError
from engines.model.environment import SolverEnvironment

QUEUE = """ctmc
module queue
  x : [0..40] init 0;
  [in] x<40 -> 1 : (x'=x+1);
  [out] x>0 -> 2 : (x'=x-1);
endmodule
label "full" = x>=8;
rewards "length" true : x; endrewards
rewards "served" [out] true : 1; endrewards
"""
WALK = """dtmc
module walk
  x : [0..30] init 10;
  [] x>0 & x<30 -> 0.4 : (x'=x+1) + 0.6 : (x'=x-1);
endmodule
rewards "steps" [] true : 1; endrewards
"""
CHOICE = """mdp
module choice
  x : [0..20] init 5;
  y : [0..1];
  [a] x>0 & x<20 -> 0.5 : (x'=x+1) + 0.5 : (x'=x-1);
  [b] x>0 & x<20 -> 0.3 : (x'=x+1) & (y'=1-y) + 0.7 : (x'=x-1);
endmodule
rewards "cost" [a] true : 2; [b] true : 1; endrewards
"""
QUESTIONS = {
    QUEUE: (
        *("P=? [ F<=10 x>=8 ]", "P=? [ F[5,10] x=3 ]", "P=? [ G<=10 x<8 ]", "P=? [ F x=8 ]"),
        *("P=? [ X x=1 ]", "P=? [ (x<3) U (x=4) ]", "P=? [ G[2,8] x<4 ]", "P=? [ F>=3 x=6 ]"),
        *("P=? [ x<3 W x=5 ]", 'P=? [ F "full" & (F x=0) ]', "P=? [ !(F<=4 x=3) ]"),
        *('R{"length"}=? [ I=10 ]', 'R{"length"}=? [ C<=10 ]', 'R{"served"}=? [ C<=10 ]'),
        *('R{"length"}=? [ F x=3 ]', 'R{"length"}=? [ F x=9 ]'),
    ),
    WALK: (
        *("P=? [ F x=0 ]", "P=? [ F x=30 ]", "P=? [ F<=40 x=0 ]", "P=? [ G x<15 ]"),
        *("P=? [ F[3,9] x=9 ]", "P=? [ (F x=12) & (F x=8) ]", "P=? [ X (X x=10) ]"),
        *('R{"steps"}=? [ F x=0|x=30 ]', 'R{"steps"}=? [ C<=9 ]', 'R{"steps"}=? [ C ]'),
        'R{"steps"}=? [ F x=0 ]',
    ),
    CHOICE: (
        *("Pmin=? [ F x=0 ]", "Pmax=? [ F x=20 ]", "Pmin=? [ F<=30 x=20 ]", "Pmax=? [ G x<9 ]"),
        *("Pmax=? [ F (x=7 & (X x=6)) ]", "Pmin=? [ x>2 U y=1 ]", 'R{"cost"}min=? [ C<=12 ]'),
        *('R{"cost"}min=? [ F x=0|x=20 ]', 'R{"cost"}max=? [ F x=0|x=20 ]'),
        *('R{"cost"}max=? [ C<=12 ]', 'R{"cost"}min=? [ C ]', 'R{"cost"}max=? [ I=5 ]'),
    ),
}


def checker(text, likely=None, **settings):
    model = explored_model(text, "model.pm", {}, likely=likely, log=lambda _: None)
    return Checker(model, SolverEnvironment(**settings), log=lambda _: None)


def expression(text):
    return parse_properties(text, "", {}).properties[0].expression


@pytest.mark.parametrize("likely", [0.2, 1e-3, 1e-6, 1e-300])
@pytest.mark.parametrize(("model", "question"), [(m, q) for m in QUESTIONS for q in QUESTIONS[m]])
def test_the_result_of_the_whole_model_lies_between(model, question, likely):
    whole = checker(model, epsilon=1e-13, bounds=True).check(expression(question)).value
    truncated = checker(model, likely)
    least, greatest = check_between(truncated, expression(question)).value
    assert 0.0 <= least <= greatest
    if math.isinf(whole):
        assert math.isinf(greatest)
    else:
        assert least - 1e-11 * whole <= whole <= greatest + 1e-11 * whole
    if likely < 1e-100 and not math.isinf(whole):
        assert not truncated.engine_model.labels["unexplored"].any()
        assert greatest - least <= 3e-6 * max(whole, 1e-3)


def test_bounds_are_close_where_what_is_left_out_is_unlikely():
    result = check_between(checker(QUEUE, 1e-9), expression("P=? [ F<=10 x>=8 ]"))
    least, greatest = result.value
    assert greatest - least < 1e-10
    assert result.text.endswith("(proven; 1 state unexplored)")


def test_an_until_is_lost_where_states_to_pass_are_left_out():
    few = QUEUE.replace("x<40 -> 1 : (x'=x+1)", "x<40 -> 0.5 : (x'=x+1) + 0.5 : (x'=x+2)")
    # Only x=0 is explored; x=1 and x=2 are met.
    least, greatest = check_between(checker(few, 0.99), expression("P=? [ x<2 U x=2 ]")).value
    assert (least, greatest) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("P>=0.01 [ F<=10 x>=8 ]", True),
        ("P<0.01 [ F<=10 x>=8 ]", False),
        ("P>0 [ F x=3 ]", True),
        ("P>=1 [ F x=3 ]", True),
        ('R{"length"}>3 [ F x=3 ]', True),
    ],
)
def test_bounds_decide(question, value):
    # The whole model has 0.0116, 0.0116, 1, 1 and 5.
    assert check_between(checker(QUEUE, 1e-9), expression(question)).value is value


def test_bounds_that_do_not_decide_are_an_error():
    with pytest.raises(ConvergenceError, match="a smaller probability"):
        check_between(checker(QUEUE, 0.1), expression("P>=0.01 [ F<=10 x>=8 ]"))


@pytest.mark.parametrize(
    "question",
    [
        *("S=? [ x=0 ]", 'R{"length"}=? [ S ]', "P=? [ F P>0.5 [ F x=3 ] ]"),
        *(
            "filter(max, P=? [ F x=3 ], x<2)",
            "P=? [ F x=3 ] + 1",
            'R{"length"}=? [ (F x=3) & (F x=4) ]',
        ),
        *("x=0", "E [ F x=3 ]"),
    ],
)
def test_other_properties_are_refused(question):
    with pytest.raises((UnsupportedError, InvalidModelError), match="gputruncate"):
        check_between(checker(QUEUE, 1e-3), expression(question))


def test_questions_about_what_is_left_out_are_about_the_model_as_built():
    result = check_between(checker(WALK, 1e-3), expression('P=? [ F "unexplored" ]'))
    assert 0.0 < result.value < 1.0
    counted = check_between(checker(WALK, 1e-3), expression('filter(count, "unexplored")'))
    assert counted.value == 1


def test_several_initial_states_have_the_least_and_the_greatest():
    text = QUEUE.replace(" init 0", "") + "init x<3 endinit"
    low, high = check_between(checker(text, 1e-9), expression("P=? [ F<=1 x=4 ]")).value
    one = [
        check_between(
            checker(QUEUE.replace("init 0", f"init {x}"), 1e-9), expression("P=? [ F<=1 x=4 ]")
        ).value
        for x in (0, 2)
    ]
    assert low == pytest.approx(one[0][0], abs=1e-9)
    assert high == pytest.approx(one[1][1], abs=1e-9)


def run(tmp_path, *words, model=QUEUE):
    path = tmp_path / "model.sm"
    path.write_text(model)
    command = [sys.executable, "-m", "bridge", str(path), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_a_run_prints_bounds(tmp_path):
    code, log = run(tmp_path, "-pf", "P=? [ F<=10 x>=8 ]", "-gputruncate", "1e-6")
    assert code == 0
    assert "only likely states are explored (-gputruncate); no PRISM takes part" in log
    assert re.search(r'1 of the states are unexplored and have the label "unexplored"', log)
    found = re.search(r"^Result: \[([\d.]+),([\d.]+)\] \(proven; 1 state unexplored\)$", log, re.M)
    assert found is not None
    assert float(found[1]) <= 0.011601817470995252 <= float(found[2])


def test_no_more_than_so_many_states_are_explored(tmp_path):
    endless = QUEUE.replace("[0..40]", "int").replace("x<40 -> 1", "true -> 1")
    words = ("-pf", "P=? [ F<=10 x>=8 ]", "-gputruncate", "1e-9", "-maxstates", "12")
    code, log = run(tmp_path, *words, model=endless)
    assert code == 0
    assert re.search(r"^States:      13 \(1 initial\)$", log, re.M)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-gputruncate", "2"), 'Invalid value "2" for -gputruncate switch'),
        (("-gputruncate", "few"), 'Invalid value "few" for -gputruncate switch'),
        (("-gputruncate", "0.1", "-sim"), "-sim has no bounds"),
        (("-gputruncate", "0.1", "-ss"), "-steadystate has no bounds"),
        (("-gputruncate", "0.1", "-frontend", "prism"), "leave -frontend prism out"),
        (("-gputruncate", "0.1", "-gpuengine", "off"), "is not PRISM's"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path, words, message):
    code, log = run(tmp_path, "-pf", "P=? [ F x=3 ]", *words)
    assert code == 1
    assert message in log


def test_explicit_files_are_refused(tmp_path):
    run(tmp_path, "-frontend", "builtin", "-exporttrans", str(tmp_path / "model.tra"))
    command = [sys.executable, "-m", "bridge", str(tmp_path / "model.tra"), "-ctmc"]
    command += ["-pf", "P=? [ F true ]", "-gputruncate", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "explores models in PRISM's language" in done.stdout + done.stderr
