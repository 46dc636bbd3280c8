"""What our engines do not do runs on PRISM's own code, and one line of the log says so."""

from __future__ import annotations

import re

import pytest

from tests.endtoend.comparing import assert_same_lines, comparable, remarks
from tests.endtoend.references import answers, relative_error

pytestmark = pytest.mark.prism

DICE = "simple/dice/dice.pm"
TANDEM = "ctmcs/tandem/tandem.sm"
COIN = "mdps/consensus/coin2.nm"
SIZES = {TANDEM: "c=3", COIN: "K=2"}
HEADS = 'Pmin=? [ F "finished" & "all_coins_equal_0" ]'
TOTAL = 'R{"steps"}max=? [ C ]'
FAU = ("-transientmethod", "fau")


def words_of(prism_examples, model: str, text: str, *switches: str) -> list[object]:
    constants = ["-const", SIZES[model]] if model in SIZES else []
    return [prism_examples / model, *constants, "-pctl", text, *switches]


def told(output: str) -> list[str]:
    """Return our lines, but for those on the choice of an engine."""
    return [line for line in remarks(output) if "default engine is used: " not in line]


# model, property, switches, what the line says, PRISM's engine to compare with
CASES = {
    "fau": (TANDEM, "P=? [ F<=1 sc=c ]", FAU, "fast adaptive uniformisation", "-explicit"),
    "-exportstrat bounded": (
        COIN,
        'Pmin=? [ F<=20 "finished" ]',
        ("-exportstrat", "strategy.txt", "-explicit"),
        "strategy",
        "-explicit",
    ),
    "-exportstrat -ii": (
        COIN,
        HEADS,
        ("-exportstrat", "strategy.txt", "-ii", "-explicit"),
        "interval iteration with a strategy",
        "-explicit",
    ),
    "multi": (
        COIN,
        'multi(Pmax=? [ F "all_coins_equal_0" ], P>=0.2 [ F "all_coins_equal_1" ])',
        (),
        "multi-objective",
        "-hybrid",
    ),
    "-exportadv": (COIN, HEADS, ("-exportadv", "adversary.txt"), "adversary", "-sparse"),
    "-exact": (COIN, HEADS, ("-exact",), "exact", "-explicit"),
    "-mtbdd": (DICE, "P=? [ F d=1 ]", ("-mtbdd",), "mtbdd", "-mtbdd"),
}
# Near another case; these run with the slow tests.
LONG = ("-mtbdd", "-exportstrat bounded")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in CASES]
)
def test_prism_s_own_code_answers_and_one_line_says_so(
    prism_gpu, prism, prism_examples, tmp_path, name
):
    model, text, switches, what, engine = CASES[name]
    switches = tuple(tmp_path / s if "." in s else s for s in switches)
    words = words_of(prism_examples, model, text, *switches)
    ours = prism_gpu(*words)
    theirs = prism(*words, *(() if engine in words else (engine,)))
    assert ours.code == theirs.code == 0
    found, wanted = answers(ours.output), answers(theirs.output)
    for mine, other in zip(found, wanted, strict=True):
        assert mine == other or relative_error(mine, float(other)) <= 1e-9
    lines = told(ours.output)
    assert len(lines) == 1, lines
    assert re.search(what, lines[0], re.IGNORECASE)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("model", "constants", "kind"),
    [
        ("idtmcs/brp_int.prism", "N=16,MAX=2,err=0.01", "IDTMC"),
        ("imdps/robot-ltl.prism", "e=0.01,unc=0.01,p=0.1", "IMDP"),
        ("ptas/reach/timebounded.nm", None, "PTA"),
    ],
)
def test_models_that_only_prism_solves_are_named(
    prism_gpu, prism, prism_examples, model, constants, kind
):
    path = prism_examples.parent / "prism-tests" / "functionality" / "verify" / model
    sized = ("-const", constants) if constants else ()
    words = (path, f"{path}.props", "-prop", "1", *sized)
    ours, theirs = (run(*words, "-explicit") for run in (prism_gpu, prism))
    assert answers(ours.output) == answers(theirs.output)
    assert len(told(ours.output)) == 1
    assert f"type {kind}" in told(ours.output)[0]


def test_bounds_with_a_strategy_are_prism_s_own_error(prism_gpu, prism, prism_examples, tmp_path):
    words = words_of(prism_examples, COIN, TOTAL, "-ii", "-exportstrat", tmp_path / "strategy.txt")
    ours, theirs = (run(*words, "-explicit") for run in (prism_gpu, prism))
    assert ours.code == theirs.code
    assert answers(ours.output) == answers(theirs.output)
    assert answers(ours.output)[0].startswith("Error: ")
    assert "with a strategy" in told(ours.output)[0]


@pytest.mark.slow
def test_transients_by_fast_adaptive_uniformisation_are_prism_s_own(prism_gpu, prism_examples):
    model = prism_examples / TANDEM
    lines = told(prism_gpu(model, "-const", SIZES[TANDEM], "-tr", "0.1:0.1:0.2", *FAU).output)
    assert len(lines) == 1, lines
    assert "fast adaptive uniformisation" in lines[0]


def test_a_fallback_in_one_property_leaves_the_others_to_our_engines(prism_gpu, prism_examples):
    texts = f'multi(Pmax=? [ F "all_coins_equal_0" ], P>=0.2 [ F "all_coins_equal_1" ]); {HEADS}'
    run = prism_gpu(*words_of(prism_examples, COIN, texts))
    assert len(run.numbers()) == 2
    fallback, solve = told(run.output)
    assert "PRISM's own code runs it" in fallback
    assert "solved by policy iteration with elimination" in solve


def test_no_state_left_to_solve_for_is_no_error(prism_gpu, prism, prism_examples):
    texts = 'R{"steps"}max=? [ F false ]; R{"steps"}max=? [ C ]; Pmax=? [ F false ]'
    words = words_of(prism_examples, COIN, texts)
    ours, theirs = (run(*words, "-explicit") for run in (prism_gpu, prism))
    assert answers(ours.output) == answers(theirs.output)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("model", "text"),
    [
        (DICE, "P=? [ F d=1 ]; R=? [ F s=7 ]; P=? [ F<=5 d=1 ]"),
        (TANDEM, "R=? [ S ]; P=? [ F<=1 sc=c ]"),
        (COIN, HEADS + '; R{"steps"}max=? [ F "finished" ]'),
    ],
    ids=["dtmc", "ctmc", "mdp"],
)
def test_with_the_engines_off_prism_is_untouched(prism_gpu, prism, prism_examples, model, text):
    words = words_of(prism_examples, model, text)
    ours, theirs = prism_gpu(*words, "-gpuengine", "off"), prism(*words)
    assert "prism-gpu:" not in ours.output
    assert_same_lines(whole(ours.output), whole(theirs.output), tolerance=0.0)
    assert ours.code == theirs.code


def whole(output: str) -> list[str]:
    """Return a log's lines with iteration counts, without times and the command line."""
    times = re.sub(r"in \d+\.\d+ seconds \(average \d+\.\d+, setup \d+\.\d+\)", "in 0 s", output)
    times = re.sub(r"(iterations) in 0 s", r"\1, counted", times)
    return comparable(re.sub(r"^(\w[\w ]*): (\d+ iterations)", r"\1 took \2", times, flags=re.M))
