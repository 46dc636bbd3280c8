"""Components inside PRISM's runs: our engines find them; the log and the results are PRISM's."""

from __future__ import annotations

import os
import re
import sys

import pytest

from tests.conftest import run_command
from tests.endtoend.comparing import assert_same_files, remarks
from tests.endtoend.references import answers, relative_error

pytestmark = pytest.mark.prism

EVERY_GRAPH = """
from dataclasses import replace
from bridge import cli, jvm
install = jvm.install_engines
jvm.install_engines = lambda options, *more: install(replace(options, smallest_graph=0), *more)
cli.main()
"""
"""Our command, with graphs of any size for the engines."""

COUNTS = re.compile(
    r"found \d+ (?:BSCCs|MECs)|\d+ of \d+ non-trivial SCCs are accepting|product has .*"
    r"|Max-Quotient MDP: .*|no zero-reward ECs found|built quotient MDP with \d+|target=.*"
    r"|All states are in BSCCs.*|Initial states are all in .*"
)
VERIFY = "prism-tests/functionality/verify"
TIGHT = ("-epsilon", "1e-9", "-maxiters", "100000")
COIN = ("prism-examples/mdps/consensus/coin2.nm", "-const", "K=2")
DICE = ("prism-examples/simple/dice/dice.pm",)
TANDEM = ("prism-examples/ctmcs/tandem/tandem.sm", "-const", "c=3")
SEVERAL = """{kind}
module m
  s : [0..6];
  [] s=0 -> {a}:(s'=1) + {b}:(s'=3) + {b}:(s'=5);
  [] s=1 -> {c}:(s'=2);
  [] s=2 -> {c}:(s'=1);
  [] s=3 -> {a}:(s'=4) + {a}:(s'=0);
  [] s=5 -> {a}:(s'=5) + {a}:(s'=6);
  [] s=6 -> {c}:(s'=5);
endmodule
rewards "r"
  s=1 : 2;
  s=6 : 5;
endrewards
"""
ZERO_REWARD_LOOPS = """mdp
module m
  s : [0..6];
  [] s=0 -> 0.5:(s'=1) + 0.5:(s'=3);
  [] s=1 -> (s'=2);
  [] s=2 -> (s'=1);
  [go] s=2 -> 0.75:(s'=2) + 0.25:(s'=4);
  [] s=3 -> (s'=3);
  [go] s=3 -> 0.5:(s'=5) + 0.5:(s'=4);
  [] s=5 -> (s'=6);
  [] s=6 -> (s'=5);
  [] s=6 -> (s'=3);
endmodule
rewards "r"
  [go] true : 2;
endrewards
"""
PROBABILITIES, RATES = {"a": 0.5, "b": 0.25, "c": 1.0}, {"a": 3.0, "b": 1.0, "c": 2.0}

# the model and its constants, properties, switches, the names of what is decomposed
CASES = {
    "mdp LTL": (
        COIN,
        'Pmax=? [ F G ("finished" & !"agree") ]; Pmin=? [ G F ("finished" & "agree") ];'
        ' Pmax=? [ (G F "finished") & (F (counter=left & (X counter>left))) ]',
        (),
        {"end", "strong"},
    ),
    "dtmc LTL": (DICE, "P=? [ G F s=7 ]; P=? [ (F s=2) & (G !(d=6)) ]", (), {"strong"}),
    "ctmc LTL": (TANDEM, "P=? [ (G F sc=c) & (F G sm<=c) ]", (), {"strong"}),
    "mdp least reward": ("MDP", 'R{"r"}min=? [ F s=4 ]', (), {"end"}),
    "mdp total, one by one": ("MDP", 'R{"r"}max=? [ C ]', ("-politer",), {"end"}),
    "mdp -ii": (COIN, 'Pmax=? [ F "agree" ]', ("-ii",), {"end"}),
    "dtmc topological": (DICE, "P=? [ F d=2 ]; R=? [ F s=7 ]", ("-topological",), set()),
    "ctmc S": (TANDEM, 'S=? [ sc=c ]; R{"customers"}=? [ S ]', (), {"strong"}),
    "dtmc deadlocks S": ("DTMC", 'S=? [ s=6 ]; R{"r"}=? [ S ]', (), {"strong"}),
    "dtmc deadlocks LTL": ("DTMC", "P=? [ F G s=4 ]; P=? [ G F s=6 ]", (), {"strong"}),
    "ctmc deadlocks S": ("CTMC", 'S=? [ s=6 ]; R{"r"}=? [ S ]', (), {"strong"}),
    "lts": ((f"{VERIFY}/ltss/lec9ctl1.prism",), "E [ G F s=1 ]; A [ F G s=0 ]", (), {"strong"}),
}


@pytest.fixture
def every_graph(prism_install):
    """Return a function that runs our command, graphs of any size for the engines.

    It runs on the CPU, but for `PRISM_GPU_TEST_SWITCHES`.
    """
    switches = os.environ.get("PRISM_GPU_TEST_SWITCHES", "-nogpu").split()

    def run(*words):
        command = [sys.executable, "-c", EVERY_GRAPH, *map(str, words), *switches, "-gpuinfo"]
        return run_command(command, timeout=300, PRISM_DIR=str(prism_install.root))

    return run


@pytest.fixture
def words_of(prism_install, tmp_path):
    """Return a function that gives a case's words, the model written if need be."""

    def words(model, text, *switches):
        if isinstance(model, str):
            values = RATES if model == "CTMC" else PROBABILITIES
            path = tmp_path / "several.prism"
            source = SEVERAL.format(kind=model.lower(), **values)
            path.write_text(ZERO_REWARD_LOOPS if model == "MDP" else source, encoding="utf-8")
            model = (path,)
        path, *rest = model
        return (
            prism_install.root.parent / path,
            *rest,
            "-pf",
            text,
            "-explicit",
            *TIGHT,
            *switches,
        )

    return words


def decomposed(output: str) -> set[str]:
    """Return what our lines say was decomposed."""
    return set(re.findall(r"^prism-gpu: (\w+) components: \d+ in \d+ states", output, re.MULTILINE))


def assert_same_answers(ours: str, theirs: str) -> None:
    found, wanted = answers(ours), answers(theirs)
    assert len(found) == len(wanted) > 0
    for mine, other in zip(found, wanted, strict=True):
        assert mine == other or relative_error(mine, float(other)) <= 1e-5


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_the_log_counts_what_prism_s_counts_and_the_results_are_prism_s(
    every_graph, prism, words_of, name
):
    model, text, switches, parts = CASES[name]
    words = words_of(model, text, *switches)
    ours, theirs = every_graph(*words), prism(*words)
    assert ours.code == theirs.code == 0, ours.output + ours.errors
    assert_same_answers(ours.output, theirs.output)
    assert COUNTS.findall(ours.output) == COUNTS.findall(theirs.output)
    assert decomposed(ours.output) == parts
    assert not re.search("components.*own code", ours.output)


def test_small_graphs_are_prism_s_own_and_gpuinfo_says_so(prism_gpu, words_of):
    words = words_of(*CASES["mdp LTL"][:2])
    run = prism_gpu(*words, "-gpuinfo")
    assert decomposed(run.output) == set()
    said = [line for line in run.output.splitlines() if "own code" in line]
    assert 0 < len(said) <= 2 * len(answers(run.output))
    assert "end components of less than 150000 states and transitions" in run.output
    assert "own code" not in prism_gpu(*words).output


def test_exact_numbers_and_engines_off_are_prism_s(every_graph, prism, words_of):
    model, text, *_ = CASES["dtmc LTL"]
    for switches in (("-exact",), ("-gpuengine", "off")):
        words = words_of(model, "P=? [ F s=7 ]" if "-exact" in switches else text)
        ours = every_graph(*words, *switches)
        theirs = prism(*words, *(s for s in switches if s == "-exact"))
        assert answers(ours.output) == answers(theirs.output)
        assert decomposed(ours.output) == set()


def test_exports_have_prism_s_components_and_the_log_says_in_what_order(
    every_graph, prism, words_of, tmp_path
):
    words = words_of(COIN, "true")
    said = []
    for switch in ("-exportbsccs", "-exportsccs", "-exportmecs"):
        files = [tmp_path / f"{name}.txt" for name in ("ours", "theirs")]
        ours = every_graph(*words, switch, files[0])
        assert prism(*words, switch, files[1]).code == ours.code == 0
        said.append(remarks(ours.output))
        if switch != "-exportmecs":
            assert_same_files(*files, tolerance=0.0)
            continue
        mine, other = (sorted(blocks(file)) for file in files)
        assert mine == other
        assert len(mine) == 8
    assert all("an export of strong components" in lines[0] for lines in said[:2])
    assert "listed by their smallest states" in "".join(said[2])


def blocks(file) -> list[tuple[str, ...]]:
    """Return the components of an export, without their numbers."""
    text = file.read_text(encoding="utf-8").split(os.linesep * 2)[1:]
    return [tuple(sorted(block.strip().splitlines()[1:])) for block in text]
