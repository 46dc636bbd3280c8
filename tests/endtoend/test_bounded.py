"""Operators with bounds of steps or time, and total rewards: our engines beside PRISM's own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.endtoend.references import (
    TOLERANCE,
    answers,
    instances,
    model_path,
    relative_error,
)

pytestmark = pytest.mark.prism

HANDED_BACK = "PRISM's own code runs it"
EXACT = "(exact floating point)"
STEPS_TOLERANCE = 1e-9
TIME_TOLERANCE = 1e-8
"""What PRISM's own truncation leaves at the smallest epsilon that it takes."""


@dataclass(frozen=True)
class Case:
    """A model, properties that our engines answer alone, and switches."""

    model: str
    texts: tuple[str, ...]
    constants: str = ""


DTMCS = {
    "dice": Case(
        "simple/dice/dice.pm",
        (
            "P=? [ X s=1 ]",
            "P=? [ F<=5 d=1 ]",
            "P=? [ F<5 d=1 ]",
            "P=? [ F=4 d=1 ]",
            "P=? [ F[2,5] d=1 ]",
            "P=? [ s<3 U[1,4] s=3 ]",
            "P=? [ F>=3 d=1 ]",
            "P=? [ s<7 U>=2 s=5 ]",
            "P=? [ G<=3 s<7 ]",
            "P=? [ G[2,4] s>2 ]",
            "P=? [ s<5 W<=3 s=6 ]",
            "R=? [ C<=5 ]",
            "R=? [ C<=0 ]",
            "R=? [ I=5 ]",
            "filter(max, R=? [ I=2 ])",
            "R=? [ C ]",
            "filter(sum, P=? [ F<=3 d=2 ])",
            "filter(count, P>=1 [ F<=9 d=1 ])",
            "filter(count, P>=1 [ F>=2 d=1 ])",
            "filter(count, P>0 [ F>=2 d=1 ])",
            "filter(count, P>0.2 [ F[1,3] d=1 ])",
        ),
    ),
    "herman": Case(
        "dtmcs/herman/herman5.pm",
        (
            'filter(min, P=? [ F<=4 "stable" ])',
            'filter(avg, P=? [ F[2,6] "stable" ])',
            'filter(min, P=? [ X "stable" ])',
            "filter(max, R=? [ C<=7 ])",
            "filter(avg, R=? [ I=3 ])",
            "filter(max, R=? [ C ])",
        ),
    ),
    "brp": Case(
        "dtmcs/brp/brp.pm",
        (
            "P=? [ F<=40 s=5 ]",
            "P=? [ F[20,60] s=5 ]",
            "P=? [ F>=70 s=5 ]",
            "P=? [ G<=30 s!=5 ]",
            "R=? [ C<=25 ]",
            "R=? [ C ]",
            "filter(avg, R=? [ I=11 ])",
        ),
        "N=8,MAX=2",
    ),
}

MDPS = {
    "coin": Case(
        "mdps/consensus/coin2.nm",
        (
            'Pmin=? [ F<=30 "finished" ]',
            'Pmax=? [ F<=30 "finished" ]',
            'Pmin=? [ F[10,40] "finished" ]',
            'Pmax=? [ F[10,40] "all_coins_equal_1" ]',
            'Pmax=? [ "agree" U[2,20] coin1=1 ]',
            'Pmin=? [ F>=20 "agree" ]',
            'Pmax=? [ F>=20 "all_coins_equal_0" ]',
            'Pmin=? [ G<=12 !"finished" ]',
            "Pmax=? [ X coin1=1 ]",
            "filter(avg, Pmin=? [ X coin1=1 ])",
            'R{"steps"}min=? [ C<=17 ]',
            'R{"steps"}max=? [ C<=17 ]',
            'filter(max, R{"steps"}max=? [ I=6 ])',
            'R{"steps"}max=? [ C ]',
            'filter(count, P>=1 [ F<=60 "agree" ])',
        ),
        "K=2",
    ),
    "csma": Case(
        "mdps/csma/csma2_2.nm",
        (
            'Pmin=? [ F<=60 "all_delivered" ]',
            'Pmax=? [ F[30,70] "one_delivered" ]',
            'R{"time"}min=? [ C<=45 ]',
            'R{"time"}max=? [ C<=45 ]',
            'filter(avg, R{"time"}min=? [ I=9 ])',
            "Pmax=? [ X b=1 ]",
        ),
    ),
}

CTMCS = {
    "cluster": Case(
        "ctmcs/cluster/cluster.sm",
        (
            'P=? [ true U<=10 !"minimum" ]',
            'filter(max, P=? [ true U[10,10] !"minimum" ], !"minimum")',
            'filter(min, P=? [ "minimum" U<=10 "premium" ], "minimum")',
            'filter(max, P=? [ !"minimum" U>=10 "minimum" ], !"minimum")',
            'P=? [ F[1,5] !"premium" ]',
            'P=? [ G<=3 "premium" ]',
            'filter(avg, P=? [ X "minimum" ])',
            'filter(count, P>0 [ F<=1 !"minimum" ])',
            'filter(count, P>=1 [ F<=1 "minimum" ])',
            'filter(count, P>0.5 [ F<=0 "minimum" ])',
            'R{"time_not_min"}=? [ C<=10 ]',
            'R{"num_repairs"}=? [ C<=10 ]',
            'filter(min, R{"percent_op"}=? [ I=10 ], !"minimum")',
            'R{"num_repairs"}=? [ C<=0 ]',
            'R{"percent_op"}=? [ I=0 ]',
            'R{"num_repairs"}=? [ C ]',
        ),
        "N=2",
    ),
    "tandem": Case(
        "ctmcs/tandem/tandem.sm",
        (
            "P=? [ true U<=1 sc=c ]",
            "P=? [ F[1,2] sc=c & sm=c ]",
            "filter(min, P=? [ sm=c U<=1 sm<c ], sm=c)",
            "P=? [ sm<c U>=1 sc=c ]",
            "R=? [ I=1 ]",
            "R=? [ C<=2 ]",
        ),
        "c=5",
    ),
    "polling": Case(
        "ctmcs/polling/poll3.sm",
        (
            "P=? [ F<=0.5 s=1 & a=1 ]",
            "filter(avg, P=? [ F[0.1,0.2] s=2 ])",
            'R{"waiting"}=? [ C<=10 ]',
            'R{"served"}=? [ C<=10 ]',
        ),
    ),
}
CASES = DTMCS | MDPS | CTMCS
LONG = ("herman", "brp", "csma", "tandem", "polling")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in CASES]
)
def test_our_engines_answer_all_of_them_as_prism_does(
    prism_gpu, prism, prism_examples, tmp_path, name
):
    case = CASES[name]
    properties = tmp_path / "bounded.props"
    properties.write_text(";\n".join(case.texts) + ";\n", encoding="utf-8")
    constants = ("-const", case.constants) if case.constants else ()
    # PRISM's own Fox-Glynn method gives up at a smaller epsilon.
    epsilon, tolerance = ("1e-9", TIME_TOLERANCE) if name in CTMCS else ("1e-13", STEPS_TOLERANCE)
    words = [prism_examples / case.model, properties, *constants]
    words += ["-epsilon", epsilon, "-maxiters", "1000000"]
    ours, theirs = (run(*words, "-explicit") for run in (prism_gpu, prism))
    assert HANDED_BACK not in ours.output
    found, wanted = answers(ours.output), answers(theirs.output)
    assert len(found) == len(case.texts)
    wrong = [
        (text, mine, other)
        for text, mine, other in zip(case.texts, found, wanted, strict=True)
        if mine != other and not relative_error(mine, float(other)) <= tolerance
    ]
    assert not wrong
    if name not in CTMCS:
        # PRISM takes these for exact too, or forgets how exact they are.
        swept = re.compile(r"\[ C \]|[FU]>=|^filter")
        for text in (text for text in case.texts if not swept.search(text)):
            exact = [EXACT in result_of(run.output, text) for run in (ours, theirs)]
            assert exact[0] == exact[1], text


def result_of(output: str, text: str) -> str:
    """Return the result line of a property."""
    block = output.partition(f"Model checking: {text}\n")[2]
    line = re.search(r"^Result.*", block, re.MULTILINE)
    assert line, text
    return line[0]


PHASES = """ctmc
const double a;
module m
  x : [0..4] init 0;
  [] x=0 -> a : (x'=1);
  [] x=1 -> 2*a : (x'=2) + 1 : (x'=0) + 3 : (x'=1);
  [] x=2 -> 0.5 : (x'=3) + 1.5 : (x'=4);
  [] x=3 -> 1 : (x'=3);
  [] x=4 -> 1e-3 : (x'=1);
endmodule
rewards "mixed"
  x<3 : 1.5;
  x=4 : 0.25;
  [] x=1 : 2;
endrewards
label "end" = x=3;
"""


def test_self_loops_and_absorbing_states_of_a_ctmc_count_as_prism_counts_them(
    prism_gpu, prism, tmp_path
):
    model = tmp_path / "phases.sm"
    model.write_text(PHASES, encoding="utf-8")
    texts = (
        "P=? [ F<=3 x=3 ]; P=? [ x<3 U[0.5,2.5] x=4 ]; filter(avg, P=? [ X x=1 ]);"
        'filter(min, P=? [ X "end" ], "end"); R=? [ C<=4 ]; R=? [ I=4 ]; P=? [ F<=0.1 x=2 ];'
        "filter(avg, P=? [ x<4 U>=1 x=3 ]); filter(print, P=? [ F<=2 x=3 ] > 0.25)"
    )
    words = [model, "-const", "a=0.7", "-pctl", texts, "-epsilon", "1e-9"]
    ours, theirs = (run(*words, "-explicit") for run in (prism_gpu, prism))
    assert HANDED_BACK not in ours.output
    found, wanted = answers(ours.output), answers(theirs.output)
    assert len(found) == 9
    for mine, other in zip(found, wanted, strict=True):
        assert mine == other or relative_error(mine, float(other)) <= TIME_TOLERANCE


def test_an_epsilon_below_what_prism_takes_is_answered_with_its_accuracy(
    prism_gpu, prism, prism_examples
):
    words = [prism_examples / "ctmcs/cluster/cluster.sm", "-const", "N=2"]
    words += ["-pctl", 'P=? [ true U<=10 !"minimum" ]', "-epsilon", "1e-12"]
    run = prism_gpu(*words, "-gpuinfo")
    assert "Error" in answers(prism(*words, "-explicit").output)[0]
    line = result_of(run.output, 'P=? [ true U<=10 !"minimum" ]')
    claimed = re.search(r"\+/- (\S+) estimated", line)
    assert claimed, line
    value = run.numbers()[0]
    assert abs(value - 3.4874157076571715e-06) <= float(claimed[1]) < 1e-11
    # The window of the sum, which says how it was truncated.
    assert re.search(r"^prism-gpu: .*q.t = .*truncation below", run.output, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "entries", instances(r"cluster|tandem|poll3|dice|herman5|coin2|csma2_2", every_kind=True)
)
def test_bounded_reference_values_are_met(prism_gpu, prism_examples, tmp_path, entries):
    chosen = [entry for entry in entries if not entry.unbounded]
    first = entries[0]
    if not chosen or not re.search(r"^$|N=[24]$|c=(3|7|15)$|K=2$", first.constants):
        pytest.skip("nothing bounded in it, or too large for a test")
    properties = tmp_path / "bounded.props"
    properties.write_text("".join(f"{entry.text};\n" for entry in chosen), encoding="utf-8")
    constants = ("-const", first.constants) if first.constants else ()
    model = model_path(Path(prism_examples), first.model)
    run = prism_gpu(model, properties, *constants, "-epsilon", "1e-10")
    found = answers(run.output)
    wrong = [
        (entry.text, answer, entry.value)
        for answer, entry in zip(found, chosen, strict=True)
        if not relative_error(answer, entry.value) <= TOLERANCE
    ]
    assert not wrong
    assert HANDED_BACK not in run.output


@pytest.mark.parametrize("engine", [(), ("-explicit",), ("-sparse",)])
@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("simple/dice/dice.pm", "R=? [ I=-1 ]"),
        ("simple/dice/two_dice.nm", "Rmax=? [ I=-1 ]"),
        ("ctmcs/polling/poll2.sm", 'R{"waiting"}=? [ I=-1 ]'),
    ],
)
def test_a_reward_before_the_start_is_refused(prism_gpu, prism_examples, model, asked, engine):
    # PRISM's explicit engine has a number for it.
    run = prism_gpu(prism_examples / model, "-pf", asked, *engine)
    assert "Result" not in run.output
    assert re.search(r"^Error: Invalid bound -1(\.0)? in instantaneous reward", run.output, re.M)
