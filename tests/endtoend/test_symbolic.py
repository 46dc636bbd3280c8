"""PRISM's sparse and hybrid engines with ours inside, beside plain PRISM."""

from __future__ import annotations

import math
import re

import pytest

from tests.endtoend.references import answers

pytestmark = pytest.mark.prism

HANDED_BACK = "PRISM's own code runs it"
DICE = "simple/dice/dice.pm"
TWO_DICE = "simple/dice/two_dice.nm"
HERMAN = "dtmcs/herman/herman5.pm"
CLUSTER = "ctmcs/cluster/cluster.sm"
COIN = "mdps/consensus/coin2.nm"

DTMC_TEXTS = [
    "P=? [ F s=7 & d=3 ]",
    "P=? [ X s=1 ]",
    "P=? [ F<=4 s=7 & d=3 ]",
    "P=? [ G !(d=6) ]",
    "P>0.1 [ F d=6 ]",
    'R{"coin_flips"}=? [ F s=7 ]',
    'R{"coin_flips"}=? [ C<=3 ]',
    'R{"coin_flips"}=? [ C ]',
    "S=? [ d=6 ]",
    "P=? [ (G F d=1) | (F G d=2) ]",
]
CTMC_TEXTS = [
    'S=? [ "premium" ]',
    'S>0.5 [ "premium" ]',
    'P=? [ F<=20 !"minimum" ]',
    'P=? [ F[5,20] !"minimum" ]',
    'P=? [ F>=5 !"minimum" ]',
    'P=? [ G<=5 "minimum" ]',
    'P=? [ "minimum" U "premium" ]',
    'R{"percent_op"}=? [ I=5 ]',
    'R{"num_repairs"}=? [ C<=20 ]',
    'R{"num_repairs"}=? [ F !"minimum" ]',
    'R{"num_repairs"}=? [ S ]',
    'filter(max, P=? [ F<=20 !"minimum" ], "minimum")',
    'P=? [ G F !"minimum" ]',
]
MDP_TEXTS = [
    'Pmin=? [ F "finished" & "all_coins_equal_1" ]',
    'Pmax=? [ F "finished" & !"agree" ]',
    'Pmax=? [ F<=40 "finished" ]',
    'Pmin=? [ G !"all_coins_equal_1" ]',
    'R{"steps"}max=? [ F "finished" ]',
    'R{"steps"}max=? [ C<=20 ]',
    'R{"steps"}min=? [ I=20 ]',
    'Pmax=? [ G F "all_coins_equal_0" ]',
    'Pmin=? [ F G "agree" ]',
    'P>=0.1 [ F "finished" & "all_coins_equal_1" ]',
]
SLOWLY_FOUND = ['R{"num_repairs"}=? [ F !"minimum" ]']
"""Where PRISM's sweeps stop some 60,000 times their last change away from the value."""
CASES = {
    "dtmc": (DICE, "", DTMC_TEXTS),
    "ctmc": (CLUSTER, "N=3", CTMC_TEXTS),
    "mdp": (COIN, "K=2", MDP_TEXTS),
}
TIGHT = ("-epsilon", "1e-9", "-maxiters", "10000000")


def words_of(prism_examples, model: str, constants: str, texts: list[str]) -> list[object]:
    sized = ["-const", constants] if constants else []
    return [prism_examples / model, *sized, "-pctl", ";".join(texts)]


def assert_same_answers(ours: list[str], theirs: list[str], texts: list[str], tolerance: float):
    assert len(ours) == len(theirs) == len(texts)
    for text, mine, other in zip(texts, ours, theirs, strict=True):
        if mine != other:
            slow = 100.0 if text in SLOWLY_FOUND else 1.0
            close = math.isclose(float(mine), float(other), rel_tol=slow * tolerance)
            assert close, (text, mine, other)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["-sparse", pytest.param("-hybrid", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_solve_is_ours_and_gives_prism_s_answer(
    prism_gpu, prism, prism_examples, name, engine
):
    model, constants, texts = CASES[name]
    # Plain Jacobi does not converge on cluster; JOR does, slowly.
    words = [*words_of(prism_examples, model, constants, texts), engine]
    ours = prism_gpu(*words, "-epsilon", "1e-9")
    theirs = prism(*words, *TIGHT, "-jor", "-omega", "0.9")
    # Next is one product on the diagram, which needs no solve.
    handed_back = [line for line in ours.output.splitlines() if HANDED_BACK in line]
    assert all(line.startswith("prism-gpu: next, ") for line in handed_back)
    assert_same_answers(answers(ours.output), answers(theirs.output), texts, 1e-6)
    assert ours.code == theirs.code == 0


def test_the_hybrid_engine_builds_diagrams(prism_gpu, prism_examples):
    words = [prism_examples / DICE, "-pctl", "P=? [ F s=7 & d=3 ]", "-gpuinfo", "-hybrid"]
    run = prism_gpu(*words)
    assert "Building model (engine:symbolic)" in run.output
    assert "Engine: Hybrid" in run.output
    read = re.search(r"^prism-gpu: read 13 states and 20 transitions out of", run.output, re.M)
    assert read, run.output


def test_named_methods_sweep_as_often_as_the_sparse_engine(prism_gpu, prism, prism_examples):
    words = [prism_examples / CLUSTER, "-const", "N=3", "-sparse", "-jor", "-omega", "0.9"]
    words += ["-pctl", 'S=? [ "premium" ]; P=? [ !"minimum" U "premium" ]']
    counts = [
        re.findall(r"^JOR: (\d+) iterations", run(*words).output, re.MULTILINE)
        for run in (prism_gpu, prism)
    ]
    assert counts[0] == counts[1] != []


def test_several_properties_of_a_model_read_it_once(prism_gpu, prism_examples):
    texts = ['S=? [ "premium" ]', 'R{"num_repairs"}=? [ S ]', 'P=? [ F<=20 !"minimum" ]']
    words = words_of(prism_examples, CLUSTER, "N=3", [*texts, 'P=? [ "minimum" U "premium" ]'])
    run = prism_gpu(*words, "-sparse", "-gpuinfo")
    assert len(re.findall(r"^prism-gpu: read ", run.output, re.MULTILINE)) == 1
    assert len(answers(run.output)) == 4


def test_bounds_need_no_quotient_and_no_other_engine(prism_gpu, prism_examples):
    texts = ['Pmax=? [ F "finished" & !"agree" ]', 'R{"steps"}max=? [ F "finished" ]']
    run = prism_gpu(*words_of(prism_examples, COIN, "K=2", texts), "-hybrid", "-ii")
    assert "quotient" not in run.output
    found = re.findall(r"^Result: (\S+) \(\+/- (\S+); rel err", run.output, re.MULTILINE)
    assert len(found) == 2
    for (value, error), true in zip(found, (13 / 120, 75.0), strict=True):
        assert abs(float(value) - true) <= float(error)


def test_what_the_engines_refuse_between_bounds_is_prism_s(prism_gpu, prism, prism_examples):
    words = words_of(prism_examples, COIN, "K=2", ['R{"steps"}max=? [ F "finished" ]'])
    words += ["-sparse", "-ii:boundmethod=dsmpi"]
    ours, theirs = prism_gpu(*words), prism(*words)
    assert HANDED_BACK in ours.output
    assert answers(ours.output) == answers(theirs.output)
    assert ours.code == theirs.code


def test_vectors_of_models_with_several_initial_states_are_exported(
    prism_gpu, prism, prism_examples, tmp_path
):
    # Plain PRISM's symbolic engines print the vector after they have freed it.
    files = [tmp_path / "ours.vec", tmp_path / "explicit.vec"]
    words = [prism_examples / HERMAN, "-pctl", 'R=? [ F "stable" ]', *TIGHT, "-exportvector"]
    assert prism_gpu(*words, files[0], "-sparse").code == 0
    assert prism(*words, files[1], "-explicit").code == 0
    ours, theirs = ([float(x) for x in file.read_text().split()] for file in files)
    assert ours == pytest.approx(theirs, rel=1e-7)
    assert len(ours) == 32


@pytest.mark.parametrize(
    ("switches", "text"),
    [
        (("-cuddmaxmem", "1m"), "Out of memory (or other internal error) in the CUDD library"),
        (("-maxiters", "3", "-jacobi"), "did not converge within 3 iterations"),
    ],
)
def test_limits_end_in_prism_s_own_errors(prism_gpu, prism, prism_examples, switches, text):
    words = [prism_examples / CLUSTER, "-const", "N=64", "-pctl", 'S=? [ "premium" ]', "-sparse"]
    runs = [run(*words, *switches) for run in (prism_gpu, prism)]
    assert all(text in run.output for run in runs), runs[0].output
    assert runs[0].code == runs[1].code


LEAST_TOTAL = """mdp
module m
  s : [0..3] init 0;
  [a] s=0 -> 0.5:(s'=1) + 0.5:(s'=2);
  [b] s=0 -> (s'=3);
  [] s=1 -> (s'=0);
  [] s=2 -> true;
  [c] s=3 -> 0.5:(s'=2) + 0.5:(s'=3);
endmodule
rewards s=0 : 1; s=1 : 2; [c] true : 3; endrewards
rewards "everywhere" true : 1; endrewards
"""


def test_the_least_total_reward_is_answered_where_prism_has_no_method(prism_gpu, tmp_path):
    path = tmp_path / "least.nm"
    path.write_text(LEAST_TOTAL)
    text = 'Rmin=? [ C ]; R>=3.9 [ C ]; R{"everywhere"}min=? [ C ]'
    for switch in ("-hybrid", "-sparse"):
        run = prism_gpu(path, switch, "-pf", text)
        least, bounded, endless = run.results()
        assert float(least) == pytest.approx(4.0, rel=1e-9)
        assert (bounded, endless) == ("true", "Infinity")
    refused = prism_gpu(path, "-mtbdd", "-pf", "Rmin=? [ C ]")
    assert "Expected minimum total reward (C) is not yet supported for MDPs" in refused.output
