"""What `-sim` does beyond PRISM's simulator: bounded paths, initial states, synchronisation."""

from __future__ import annotations

import re
import subprocess

import pytest

from engines.program import native
from tests.endtoend.test_simulation import _ERROR, CLUSTER, DICE, SEED, intervals, remarks

HERMAN = "dtmcs/herman/herman3.pm"
BOUNDED_PATHS = "P=? [ F (s=3 & (X s=7)) ]; P=? [ G (F s=7) ]; P=? [ F (G d=0) ]; P=? [ F s=7 ]"


@pytest.mark.parametrize(
    ("states", "exact"),
    [
        # 0, 1, 3, 7 are four states, of probability 1/8; each loop 3, 1 takes two more, and 1/4.
        # Of the last state F and G say the same: 7 is reached after three steps with 3/4.
        (4, [1 / 8, 3 / 4, 1 / 4, 3 / 4]),
        (6, [1 / 8 + 1 / 32, 15 / 16, 1 / 16, 15 / 16]),
        (1_000_000, [1 / 6, 1, 0, 1]),
    ],
)
@pytest.mark.parametrize("front_end", ["prism", "builtin"])
def test_any_formula_is_asked_of_the_first_states_of_paths(
    prism_gpu, prism_examples, front_end, states, exact
):
    method = ("-simmethod", "apmc", "-simapprox", "0.005", "-simconf", "1e-7")
    words = ("-sim", *method, "-gpusimstates", states, *SEED, "-frontend", front_end)
    run = prism_gpu(prism_examples / DICE, "-pf", BOUNDED_PATHS, *words)
    found = intervals(run.output)
    assert len(found) == len(exact)
    for (value, width), expected in zip(found, exact, strict=True):
        assert abs(value - expected) <= width <= 0.005
    assert run.output.count(f"asked of their first {states} states") == len(exact)
    # A path that stays at 7 is not followed to the end of a million.
    longest = map(int, re.findall(r"^Path length .* max (\d+)$", run.output, re.MULTILINE))
    assert max(longest) < 100


@pytest.mark.parametrize(
    ("model", "words", "reason"),
    [
        (DICE, ("-pf", "R=? [ F s=7 ]", "-gpusimstates", "9"), "asked for P, not for rewards"),
        (CLUSTER, ("-const", "N=4", "-pf", 'P=? [ F "minimum" ]', "-gpusimstates", "9"),
         "discrete time alone"),
        (CLUSTER, ("-const", "N=4", "-pf", 'P=? [ F<=1 "minimum" ]', "-gpusimsync", "lazy"),
         "PRISM's semantics only of a DTMC"),
        (HERMAN, ("-pf", 'P=? [ F<=9 "init" ]', "-gpusimsync", "runtime"), "several initial"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("front_end", ["prism", "builtin"])
def test_what_prism_does_not_have_is_not_left_to_it(
    prism_gpu, prism_examples, model, words, reason, front_end
):
    run = prism_gpu(prism_examples / model, *words, "-sim", "-frontend", front_end)
    (error,) = _ERROR.findall(run.output)
    assert reason in error
    assert "PRISM's own code" not in run.output
    assert not intervals(run.output)


@pytest.mark.parametrize("front_end", ["prism", "builtin"])
@pytest.mark.parametrize("strategy", ["compile", "runtime", "lazy"])
def test_each_way_to_synchronise_gives_the_exact_values(
    prism_gpu, prism_examples, strategy, front_end
):
    texts = "P=? [ F<=2 num_tokens=1 ]"
    model = prism_examples / HERMAN
    words = ("-sim", "-simmethod", "apmc", "-simapprox", "0.01", "-simconf", "1e-8", *SEED)
    run = prism_gpu(model, "-pf", texts, *words, "-gpusimsync", strategy, "-frontend", front_end)
    # Of three tokens one round leaves three with probability 1/4.
    (ends,) = re.findall(r"^Result: \[(\S+),(\S+)\]", run.output, re.MULTILINE)
    assert abs(float(ends[0]) - 15 / 16) <= 0.01
    assert float(ends[1]) == 1.0
    there = prism_gpu(
        model, "-pf", texts, *words, "-gpusimsync", strategy, "-simcluster", "local:1"
    )
    assert re.findall("^Result: .*", there.output, re.MULTILINE) == re.findall(
        "^Result: .*", run.output, re.MULTILINE
    )
    names = {"compile": "beforehand", "runtime": "at each step", "lazy": "before their guards"}
    assert run.output.count(names[strategy]) == 8


def test_several_initial_states_have_a_value_each_and_a_range_as_in_model_checking(
    prism_gpu, prism, prism_examples
):
    texts = 'P=? [ F<=1 "stable" ]; R=? [ F "stable" ];'
    texts += 'P>=0.7 [ F<=1 "stable" ]; P>=0.8 [ F<=1 "stable" ]'
    words = (prism_examples / HERMAN, "-pf", texts)
    simulation = ("-sim", "-simmethod", "ci", "-simsamples", "100000", "-simconf", "1e-7")
    ours = prism_gpu(*words, *simulation, *SEED)
    exact = prism(*words).results()
    pattern = r"^Result: \[(\S+),(\S+)\] \(\+/- (\S+) with probability 0.9999992 in all initial"
    found = re.findall(pattern, ours.output, re.MULTILINE)
    assert len(found) == 2
    for ends, numbers in zip(found, exact[:2], strict=True):
        low, high, width = map(float, ends)
        least, most = map(float, numbers.strip("[]").split(","))
        assert abs(low - least) <= width + 1e-5
        assert abs(high - most) <= width + 1e-5
        assert 0 < width < 0.05
    assert exact[2:] == ["true", "false"]
    assert ours.results()[2:] == exact[2:]
    each = re.findall(r"^In initial state \(x1=(.),x2=(.),x3=(.)\): ", ours.output, re.MULTILINE)
    assert len(each) == 4 * 8
    assert len(set(each)) == 8


def test_what_means_all_initial_states_at_once_is_refused_as_prism_refuses_it(
    prism_gpu, prism, prism_examples
):
    words = (prism_examples / HERMAN, "-pf", 'P=? [ F<=9 "init" ]', "-sim")
    ours, theirs = prism_gpu(*words), prism(*words)
    assert _ERROR.findall(ours.output) == _ERROR.findall(theirs.output) != []
    assert 'the label "init" of several initial states' in remarks(ours.output)[0]


def test_growing_lengths_decide_bounds_both_ways_and_the_log_names_the_method(
    prism_gpu, prism_examples
):
    # Exactly 1/6, and 1/4 for a visit of state 3.
    texts = "P>=0.25 [ F s=7&d=6 ]; P>=0.15 [ F s=7&d=6 ]; P>=0.3 [ (F s=3) & (F s=7) ]"
    parameters = ("-simapprox", "0.005", "-simconf", "1e-6")
    words = ("-sim", "-simmethod", "growing", *parameters, *SEED)
    run = prism_gpu(prism_examples / DICE, "-pf", texts, *words)
    assert run.results() == ["false", "true", "false"]
    assert run.output.count("each path ended") == 2
    (line,) = re.findall("^Command line: prism .*", run.output, re.MULTILINE)
    assert " ".join(("-simmethod growing", *parameters)) in line
    # PRISM would warn of a parameter that its own method does not take.
    assert "Warning" not in run.output


def test_the_ways_to_synchronise_are_different_programs(prism_gpu, prism_examples, tmp_path):
    words = ("-pf", "P=? [ F<=2 num_tokens=1 ]", "-sim", "-simsamples", "9", *SEED)
    sources = {}
    for way in ("compile", "runtime", "lazy"):
        more = ("-gpusimsync", way, "-gpusimsource", tmp_path / f"{way}.c", "-frontend", "builtin")
        prism_gpu(prism_examples / HERMAN, *words, *more)
        # One a state that paths begin in.
        assert len(list(tmp_path.glob(f"{way}*.c"))) == 8
        sources[way] = (tmp_path / f"{way}.c").read_text(encoding="utf-8")
    assert len(set(sources.values())) == 3
    # All eight combinations of the three modules' commands, or each module's on its own.
    counted = {way: text.count("HD u32 count") for way, text in sources.items()}
    assert counted["compile"] == 1 < counted["runtime"] == 3
    assert "#define LAZY 1" in sources["lazy"]


@pytest.mark.parametrize("front_end", ["prism", "builtin"])
def test_each_simulation_s_verifier_counts_what_it_counted(
    prism_gpu, prism_examples, tmp_path, front_end
):
    texts = "P=? [ F d=1 ]; P=? [ F (s=3 & (F d=2)) ]"
    words = ("-sim", "-simmethod", "apmc", "-simsamples", "5000", "-gpusimseed", "8")
    more = ("-gpusimstates", "50", "-gpusimsource", tmp_path / "paths.c", "-frontend", front_end)
    run = prism_gpu(prism_examples / DICE, "-pf", texts, *words, *more)
    estimates = [value for value, _ in intervals(run.output)]
    for name, estimate in zip(("paths", "paths-2"), estimates, strict=True):
        program = tmp_path / name
        subprocess.run([*native.compiler(), f"{program}.c", "-o", program], check=True)
        found = subprocess.run([program, "8", "0", "5000"], capture_output=True, text=True)
        num_true = round(estimate * 5000)
        assert found.stdout == f"true {num_true} false {5000 - num_true} undecided 0\n"
    # Exactly 1/6 and 1/24.
    assert estimates == pytest.approx([1 / 6, 1 / 24], abs=0.01)
