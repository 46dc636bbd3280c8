"""Searches of graphs in diagrams: PRISM's rounds and components, or ours, edge by edge."""

from __future__ import annotations

import re
import sys

import pytest

from tests.conftest import run_command
from tests.endtoend.references import answers, assert_close
from tests.endtoend.test_components import EVERY_GRAPH

pytestmark = pytest.mark.prism

PATIENT = """
from prism_hooks import backend
backend.search_steps = backend.bottom_steps = lambda *_, **__: 1e8
from bridge import cli
cli.main()
"""

ROUNDS = re.compile(r"^(Prob[01][AE]?): (\d+) iterations in", re.M)
EDGE_BY_EDGE = re.compile(
    r"^prism-gpu: (Prob[01][AE]?), edge by edge, took [\d.]+ seconds, after 0 iterations", re.M
)
SETS = re.compile(r"^(?:yes|goal|inf|no) = .*", re.M)

CASES = {
    "dtmc": (
        ("prism-examples/dtmcs/brp/brp.pm", "-const", "N=16,MAX=2"),
        "P=? [ F s=5 ]; P=? [ s!=3 U s=4 ]; P>0 [ F s=5 & srep=2 ]; P>=1 [ F s=4 | s=5 ];"
        " P=? [ F<=20 s=5 ]; P=? [ G F s=5 ]",
    ),
    "dtmc rewards": (
        ("prism-examples/dtmcs/herman/herman7.pm",),
        'filter(max, R=? [ F "stable" ], "init"); filter(min, R=? [ F "stable" ], num_tokens=5)',
    ),
    "ctmc": (
        (
            "prism-examples/ctmcs/cluster/cluster.sm",
            "-const",
            "N=2",
            "-maxiters",
            "1000000",
            "-epsilon",
            "1e-9",
        ),
        'P=? [ "minimum" U !"premium" ]; P=? [ F<=3 !"minimum" ]; P>0 [ F !"minimum" ];'
        ' R{"num_repairs"}=? [ F !"premium" ]',
    ),
    "mdp": (
        ("prism-examples/mdps/consensus/coin2.nm", "-const", "K=2"),
        'Pmin=? [ F "finished" & "all_coins_equal_1" ]; Pmax=? [ F "finished" & !"agree" ];'
        ' Pmin=? [ pc1!=2 U "finished" ]; Pmax=? [ pc1!=2 U "finished" ];'
        ' P>=1 [ F "finished" ]; P<1 [ F "agree" & pc1=3 ]; P>0 [ F pc1=3 & pc2=2 ];'
        ' Pmax=? [ F<=9 "finished" ]; Pmin=? [ G !"all_coins_equal_1" ]',
    ),
    "mdp rewards": (
        ("prism-examples/mdps/csma/csma2_2.nm",),
        'R{"time"}max=? [ F s1=4 & s2=4 ]; R{"time"}min=? [ F s1=4 | s2=4 ];'
        ' R{"time"}max=? [ F s1=4 & cd1=9 ]; R{"time"}max=? [ C ]',
    ),
    "mdp LTL": (
        ("prism-examples/mdps/consensus/coin2.nm", "-const", "K=2"),
        'Pmax=? [ F G ("finished" & !"agree") ]; Pmin=? [ G F ("finished" & "agree") ];'
        ' R{"steps"}max=? [ (F counter=left) & (F "finished") ]',
    ),
    "mdp fairness": (
        ("prism-examples/mdps/consensus/coin2.nm", "-const", "K=2", "-fair"),
        'Pmin=? [ F "finished" & "all_coins_equal_1" ]; P>=1 [ F "finished" ]',
    ),
}

SCATTERED = """dtmc
module m
  s : [0..9];
  [] s=0 -> 0.2:(s'=1) + 0.3:(s'=3) + 0.1:(s'=5) + 0.4:(s'=9);
  [] s=1 -> 0.5:(s'=2) + 0.5:(s'=1);
  [] s=2 -> (s'=1);
  [] s=3 -> 0.5:(s'=4) + 0.5:(s'=0);
  [] s=4 -> (s'=3);
  [] s=5 -> 0.5:(s'=6) + 0.5:(s'=7);
  [] s=6 -> (s'=5);
  [] s=7 -> (s'=6);
  [] s=9 -> (s'=8);
  [] s=8 -> (s'=8);
endmodule
rewards "r"
  s=0 : 1;
  s=4 : 2;
endrewards
"""
COMPONENTS = {
    "dtmc": (SCATTERED, (), "P=? [ G F s=2 ]; P=? [ F G s<8 ]; P=? [ (G F s=6) & (F s=5) ]"),
    "dtmc rewards": (SCATTERED, (), 'R{"r"}=? [ C ]; R{"r"}=? [ F s=8 | s=1 ]'),
    "steady state": (SCATTERED, ("-power",), "filter(max, P=? [ G F s=7 ], true)"),
    "ctmc": (
        SCATTERED.replace("dtmc", "ctmc").replace("0.2:", "3:"),
        (),
        "P=? [ G F s=2 ]; P=? [ F G s=8 ]",
    ),
    "one component": (
        "ctmcs/tandem/tandem.sm",
        ("-const", "c=3"),
        "P=? [ G F sc=c ]; P=? [ F G sm=c ]",
    ),
    "many components": ("dtmcs/brp/brp.pm", ("-const", "N=16,MAX=2"), "P=? [ F G s=5 ]"),
    "mdp": (
        "mdps/consensus/coin2.nm",
        ("-const", "K=2"),
        'Pmax=? [ F G ("finished" & !"agree") ]; Pmin=? [ G F ("finished" & "agree") ];'
        " Pmax=? [ (G F pc1=3) & (F (counter=left & (X counter>left))) ];"
        " Pmax=? [ (F G pc1=3) | (G F pc2=2) ]",
    ),
    "mdp rewards": (
        "mdps/csma/csma2_2.nm",
        (),
        'R{"time"}max=? [ C ]; R{"time"}min=? [ F s1=4 | s2=4 ]',
    ),
}
STRONG = re.compile(r"^SCCs: \d+, BSCCs: \d+, non-BSCC states: \d+", re.M)
SIZES = re.compile(r"^BSCC sizes: ?(.*)", re.M)
FOUND = re.compile(r"^prism-gpu: (?:bottom|end|states of end) components: \d+ in", re.M)


def sizes(output):
    """Return the sizes of the bottom components, each search's sorted: their order is its own."""
    words = [line.split() for line in SIZES.findall(output) if ":" in line]
    return [sorted(int(word.partition(":")[2]) for word in line) for line in words]


def usual(cases, *kept):
    """Return the names of cases; all but some are for those who ask for slow tests."""
    return [name if name in kept else pytest.param(name, marks=pytest.mark.slow) for name in cases]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", usual(COMPONENTS, "ctmc", "mdp", "mdp rewards"))
def test_components_are_prisms(name, every_graph, prism_gpu, prism, prism_install, tmp_path):
    text, more, questions = COMPONENTS[name]
    model = prism_install.root.parent / "prism-examples" / text
    if "\n" in text:
        model = tmp_path / "model.prism"
        model.write_text(text, encoding="utf-8")
    words = (model, *more, "-pf", questions, "-sparse")
    theirs, ours = prism(*words), every_graph(*words, "-gpuinfo")
    small = prism_gpu(*words, "-gpuinfo")
    assert theirs.code == ours.code == small.code == 0, ours.output + theirs.output
    assert FOUND.search(ours.output)
    assert not FOUND.search(small.output)
    assert "PRISM's own code runs it" not in ours.output
    for run in (ours, small):
        assert STRONG.findall(run.output) == STRONG.findall(theirs.output)
        assert sizes(run.output) == sizes(theirs.output)
        assert_close(run.output, theirs.output, 1e-4)


def runner(program, install, *switches):
    """Return a function that runs a program of ours with a command line's words."""

    def run(*words):
        command = [sys.executable, "-c", program, *map(str, words), *switches]
        return run_command(command, timeout=300, PRISM_DIR=str(install.root))

    return run


@pytest.fixture
def every_graph(prism_install):
    """Our command, which searches every graph from the start."""
    return runner(EVERY_GRAPH, prism_install, "-gpuinfo")


@pytest.fixture
def patient(prism_install):
    """Our command, whose searches on diagrams may take as long as they want."""
    return runner(PATIENT, prism_install)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", usual(CASES, "dtmc", "mdp", "mdp LTL"))
def test_sets_and_rounds_are_prisms(name, patient, every_graph, prism, prism_install):
    (model, *more), text = CASES[name]
    words = (prism_install.root.parent / model, *more, "-pf", text, "-sparse")
    theirs = prism(*words)
    assert theirs.code == 0, theirs.output
    by_rounds, by_edges = patient(*words), every_graph(*words)
    expected = ROUNDS.findall(theirs.output)
    assert expected
    made = ROUNDS.findall(by_rounds.output)
    if "LTL" in name:
        # What is to be reached may be more than the end components: all that surely reach one.
        assert [search for search, _ in made] == [search for search, _ in expected]
        assert all(int(n) <= int(m) for (_, n), (_, m) in zip(made, expected, strict=True))
    else:
        # How many rounds a search on the diagram makes is PRISM's too.
        assert made == expected
    assert "edge by edge" not in by_rounds.output
    assert EDGE_BY_EDGE.findall(by_edges.output) == [search for search, _ in expected]
    if "LTL" not in name:
        # Edge by edge, they are counted.
        assert ROUNDS.findall(by_edges.output) == expected
    for ours in (by_rounds, by_edges):
        assert ours.code == 0, ours.output + ours.errors
        assert "PRISM's own code runs it" not in ours.output
        assert SETS.findall(ours.output) == SETS.findall(theirs.output)
        assert_close(ours.output, theirs.output, 1e-4)
    assert answers(by_edges.output) == answers(by_rounds.output)


GAPS = """mdp
module one
  s : [0..40] init 3;
  t : [0..9] init 9;
  b : bool init false;
  [] s=3 -> 0.5:(s'=11)&(t'=2) + 0.5:(s'=19)&(b'=true);
  [] s=3 -> (s'=3)&(t'=7);
  [] s=11 & t>0 -> 0.9:(t'=t-1) + 0.1:(s'=40);
  [] s=11 & t=0 -> (s'=38)&(t'=9);
  [] s=19 & b -> (b'=false) ;
  [] s=19 & !b -> 0.3:(s'=3)&(t'=0) + 0.7:(s'=37);
  [] s>=37 -> true;
endmodule
"""
WHOLE = "filter(print, P>=1 [ F {0} ], true); filter(print, P>0 [ F {0} ], true)"
SETS_STATE_BY_STATE = {
    "brp": ("dtmcs/brp/brp.pm", ("-const", "N=16,MAX=2"), WHOLE.format("s=5 & srep=2")),
    "leader": ("dtmcs/leader_sync/leader4_3.pm", (), WHOLE.format("s1=3")),
    "coin": ("mdps/consensus/coin2.nm", ("-const", "K=2"), WHOLE.format('"finished" & pc1=3')),
    "dining": ("mdps/dining_crypt/dining_crypt4.nm", (), WHOLE.format("s1=1 & s2=1 & s3=1")),
    "gaps": (GAPS, (), WHOLE.format("s=38") + "; " + WHOLE.format("s=37 | t=1")),
    "all and none": (GAPS, (), WHOLE.format("s>=0") + "; " + WHOLE.format("s=1")),
}
STATE = re.compile(r"^\d+:\(.*\)$|^Satisfying states.*", re.M)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SETS_STATE_BY_STATE)
def test_sets_are_prisms_state_by_state(name, every_graph, prism, prism_install, tmp_path):
    text, more, questions = SETS_STATE_BY_STATE[name]
    model = prism_install.root.parent / "prism-examples" / text
    if "\n" in text:
        model = tmp_path / "model.prism"
        model.write_text(text, encoding="utf-8")
    words = (model, *more, "-pf", questions, "-hybrid")
    theirs, ours = prism(*words), every_graph(*words)
    assert theirs.code == ours.code == 0, ours.output + theirs.output
    assert EDGE_BY_EDGE.findall(ours.output)
    states = STATE.findall(theirs.output)
    assert STATE.findall(ours.output) == states
    assert len(states) > 4
    assert answers(ours.output) == answers(theirs.output)


def test_the_mtbdd_engine_searches_as_ever(prism_gpu, prism, prism_install):
    model = prism_install.root.parent / "prism-examples/mdps/consensus/coin2.nm"
    words = (model, "-const", "K=2", "-pf", 'Pmin=? [ F "finished" ]', "-mtbdd")
    assert ROUNDS.findall(prism_gpu(*words).output) == ROUNDS.findall(prism(*words).output)


def test_no_matrix_is_made_for_a_search_where_none_is_wanted(every_graph, prism, prism_install):
    model = prism_install.root.parent / "prism-examples/dtmcs/herman/herman7.pm"
    words = (model, "-pf", 'R=? [ F "stable" ]', "-sparse")
    ours = every_graph(*words, "-gpuformat", "hybrid")
    refusal = "prob0 (without a matrix: -gpuformat hybrid) is not done by our engines"
    assert ours.code == 0
    assert refusal in ours.output
    assert ROUNDS.findall(ours.output) == ROUNDS.findall(prism(*words).output)


@pytest.mark.parametrize(
    ("switch", "model"),
    [
        ("-exportbsccs", "dtmcs/brp/brp.pm"),
        ("-exportmecs", "mdps/consensus/coin2.nm"),
    ],
)
def test_exports_of_components_are_in_prisms_order(
    switch, model, every_graph, prism, prism_install, tmp_path
):
    constants = "N=16,MAX=2" if "brp" in model else "K=2"
    path = prism_install.root.parent / "prism-examples" / model
    ours, theirs = tmp_path / "ours.txt", tmp_path / "theirs.txt"
    words = (path, "-const", constants, "-sparse", switch)
    run = every_graph(*words, ours)
    assert run.code == prism(*words, theirs).code == 0
    assert "an export of components is not done by our engines" in run.output
    assert ours.read_text(encoding="utf-8") == theirs.read_text(encoding="utf-8")
