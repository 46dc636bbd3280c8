"""LTL of MDPs in diagrams: the states of accepting end components, found as one set."""

from __future__ import annotations

import re

import pytest

from tests.endtoend.references import answers, assert_close, relative_error
from tests.endtoend.test_components import EVERY_GRAPH
from tests.endtoend.test_graph_searches import PATIENT, runner

pytestmark = pytest.mark.prism

FOUND = re.compile(r"^prism-gpu: states of end components: \d+ in", re.M)
ON_DIAGRAM = re.compile(r"^prism-gpu: states that can accept with probability 1: found on", re.M)
LISTED = re.compile(r"^prism-gpu: end components: ", re.M)
SETS = re.compile(r"^(?:yes|no|maybe) = .*", re.M)
PRODUCT = re.compile(r"Constructing MDP-(\w+) product")

COIN = ("mdps/consensus/coin2.nm", "-const", "K=2")
LOOPS = """mdp
const int n;
module m
  row : [0..n];
  x : [0..n];
  [] x<n -> 0.9:(x'=x+1) + 0.1:(x'=n);
  [] mod(x,2)=0 -> (x'=x);
  [] x=n -> (x'=x);
endmodule
init true endinit
"""
"""Half as many end components as states, of one state each."""

# the model and its constants, properties, the kinds of automata, how many searches there are
CASES = {
    "one pair": (COIN, 'Pmax=? [ F G ("finished" & !"agree") ]', ["DRA"], 1),
    "pairs": (COIN, "Pmax=? [ (F G pc1=3) | (G F pc2=2) ]", ["DRA"], 2),
    "least": (COIN, 'Pmin=? [ (G F "finished") & (F G "agree") ]', ["DRA"], 2),
    "empty": (COIN, "Pmax=? [ G F (pc1=2 & (X pc1=0)) ]", ["DRA"], 1),
    "states": (
        COIN,
        "filter(min, Pmax=? [ G F pc1=1 ], pc1=1); P>=1 [ F G pc1=3 ]",
        2 * ["DRA"],
        2,
    ),
}

LAST = """HOA: v1
States: 4
Start: 0
AP: 2 "p0" "p1"
{acceptance}
--BODY--
State: 0 {neither}
[!0 & !1] 0 [0 & !1] 1 [!0 & 1] 2 [0 & 1] 3
State: 1 {first}
[!0 & !1] 0 [0 & !1] 1 [!0 & 1] 2 [0 & 1] 3
State: 2 {second}
[!0 & !1] 0 [0 & !1] 1 [!0 & 1] 2 [0 & 1] 3
State: 3 {both}
[!0 & !1] 0 [0 & !1] 1 [!0 & 1] 2 [0 & 1] 3
--END--
"""
"""An automaton whose states say which of two propositions held last."""

# the formula, the automaton's kind and condition, how its states are marked, how many searches
AUTOMATA = {
    "several sets": (
        "((G F pc1=1) & (G F pc2=2)) | (F G pc2=2)",
        "DGRA",
        "acc-name: generalized-Rabin 2 2 0\nAcceptance: 4 (Fin(0)&Inf(1)&Inf(2)) | Fin(3)",
        {"neither": "{3}", "first": "{1 3}", "second": "{2}", "both": "{1 2}"},
        3,
    ),
    "Buchi": (
        "(G F pc1=1) | (G F pc2=2)",
        "DBA",
        "acc-name: Buchi\nAcceptance: 1 Inf(0)",
        {"neither": "", "first": "{0}", "second": "{0}", "both": "{0}"},
        1,
    ),
}


@pytest.fixture
def every_graph(prism_install):
    """Our command, which searches every graph edge by edge."""
    return runner(EVERY_GRAPH, prism_install, "-nogpu", "-gpuinfo")


@pytest.fixture
def patient(prism_install):
    """Our command, whose searches on diagrams are always over in time."""
    return runner(PATIENT, prism_install, "-nogpu", "-gpuinfo")


def assert_same(ours, theirs):
    """Demand PRISM's sets and answers."""
    assert theirs.code == ours.code == 0, ours.output + theirs.output
    assert SETS.findall(ours.output) == SETS.findall(theirs.output)
    assert PRODUCT.findall(ours.output) == PRODUCT.findall(theirs.output)
    assert_close(ours.output, theirs.output, 1e-4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_states_are_prisms(name, every_graph, patient, prism, prism_install):
    (model, *constants), questions, kinds, searches = CASES[name]
    path = prism_install.root.parent / "prism-examples" / model
    words = (path, *constants, "-pf", questions, "-sparse")
    theirs, ours = prism(*words), every_graph(*words)
    assert_same(ours, theirs)
    assert PRODUCT.findall(ours.output) == kinds
    assert len(FOUND.findall(ours.output)) == searches
    assert not LISTED.search(ours.output)
    assert "PRISM's own code runs it" not in ours.output
    on_diagram = patient(*words)
    assert_same(on_diagram, theirs)
    assert len(ON_DIAGRAM.findall(on_diagram.output)) == searches
    assert not FOUND.search(on_diagram.output)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", AUTOMATA)
def test_conditions_of_other_tools(name, every_graph, patient, prism, prism_install, tmp_path):
    formula, kind, acceptance, marks, searches = AUTOMATA[name]
    automaton, tool = tmp_path / "automaton.hoa", tmp_path / "tool"
    automaton.write_text(LAST.format(acceptance=acceptance, **marks), encoding="utf-8")
    tool.write_text(f'#!/bin/sh\ncp "{automaton}" "$2"\n', encoding="utf-8")
    tool.chmod(0o755)
    model = prism_install.root.parent / "prism-examples" / COIN[0]
    words = (model, *COIN[1:], "-pf", f"Pmax=? [ {formula} ]", "-sparse")
    external = ("-ltl2datool", tool, "-ltl2dasyntax", "spot")
    theirs, ours = prism(*words, *external), every_graph(*words, *external)
    assert_same(ours, theirs)
    assert PRODUCT.findall(ours.output) == [kind]
    assert len(FOUND.findall(ours.output)) == searches
    on_diagram = patient(*words, *external)
    assert_same(on_diagram, theirs)
    assert ON_DIAGRAM.search(on_diagram.output)
    assert not FOUND.search(on_diagram.output)
    own = every_graph(*words)
    assert relative_error(answers(own.output)[0], float(answers(ours.output)[0])) < 1e-4


def test_many_components_are_no_list_of_diagrams(every_graph, prism, tmp_path):
    model = tmp_path / "loops.prism"
    model.write_text(LOOPS, encoding="utf-8")
    even = "Pmax=? [ F G mod(x,2)=0 ]"
    questions = f"filter(min, {even}, x<n); filter(max, {even}, x=n); filter(sum, {even}, true)"
    words = (model, "-pf", questions, "-sparse", "-const")
    assert_same(every_graph(*words, "n=9"), prism(*words, "n=9"))
    ours = every_graph(*words, "n=173")
    assert [float(value) for value in answers(ours.output)[:2]] == [0.9, 0.0]
    # Even states stay; odd ones, but for the last of a row, have one way to the next.
    assert relative_error(answers(ours.output)[2], 174 * (87 + 0.9 * 86)) < 1e-12
    assert f"components: {174 * 87} in {174 * 174} states" in ours.output
    assert "PRISM's own code runs it" not in ours.output


def test_fairness_is_prisms(every_graph, prism, prism_install):
    model = prism_install.root.parent / "prism-examples" / COIN[0]
    words = (model, *COIN[1:], "-pf", 'Pmin=? [ G F "finished" ]', "-sparse", "-fair")
    theirs, ours = prism(*words), every_graph(*words)
    assert_same(ours, theirs)
    assert not FOUND.search(ours.output)


def test_an_exported_target_is_the_components_alone(patient, prism, tmp_path):
    model = tmp_path / "walk.prism"
    walk = (
        "mdp module m s : [0..2]; [] s<2 -> (s'=s+1); [] s=2 -> (s'=1); [] s=2 -> true; endmodule"
    )
    model.write_text(walk, encoding="utf-8")
    ours, theirs = tmp_path / "ours.lab", tmp_path / "theirs.lab"
    words = (model, "-pf", "Pmax=? [ G F s=1 ]", "-sparse")
    # From its first state the components are surely reached, but it is in none.
    assert ON_DIAGRAM.search(patient(*words).output)
    assert_same(patient(*words, "-exporttarget", ours), prism(*words, "-exporttarget", theirs))
    assert ours.read_text(encoding="utf-8") == theirs.read_text(encoding="utf-8")


WAYS = """mdp
module m
  s : [0..3];
  [a] s=0 -> (s'=1);
  [b] s=0 -> (s'=2);
  [stay] s=1 -> true;
  [c] s=2 -> (s'=3);
  [d] s=3 -> (s'=2);
endmodule
"""
"""State 0 has one way to the component that accepts."""


@pytest.mark.parametrize("formula", ["G F s=3", "(G F s=2) & (G F s=3)", "F G s!=1"])
def test_an_exported_adversary_has_the_way_to_the_components(
    every_graph, patient, prism, tmp_path, formula
):
    model = tmp_path / "ways.nm"
    model.write_text(WAYS, encoding="utf-8")
    written = []
    for run in (prism, patient, every_graph):
        file = tmp_path / f"{len(written)}.txt"
        words = (model, "-pf", f"Pmax=? [ {formula} ]", "-sparse", "-exportadv", file)
        assert run(*words).code == 0
        written.append(file.read_text(encoding="utf-8"))
    assert re.search(r" 1 b$", written[0], re.M)
    assert written[1:] == written[:1] * 2
