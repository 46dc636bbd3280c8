"""Export, solve, report with a real PRISM: the same results as in one process."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.prism

EXACTLY = 1e-8
TRUNCATED = 1e-5
"""PRISM's own code truncates uniformisation at an epsilon of 1e-6."""

CLUSTER = """
const double T = 1;
label "worse" = left_n + right_n < 2;
"premium_soon": P=? [ F<=T "premium" ];
S=? [ "premium" ];
S>=0.9 [ !"worse" ];
R{"percent_op"}=? [ S ];
R{"num_repairs"}=? [ F !"minimum" ];
P=? [ "minimum" U left_n=0 ];
P>=1 [ F "premium" ];
P<0.3 [ "minimum" U left_n=0 ];
filter(max, P=? [ "minimum" U left_n=0 ], "worse");
filter(count, P>0.5 [ "minimum" U left_n=0 ]);
filter(forall, P>=1 [ F "premium" ] & left_n>=0);
filter(print, P=? [ X "worse" ], left_n=0 & right_n=0);
P=? [ F P<0.01 [ "minimum" U "worse" ] ];
P=? [ (F "worse") & (G F "premium") ];
"premium_soon" * 100;
P=? [ F<=T !"minimum" {"minimum"}{max} ];
R{"time_not_min"}=? [ C<=T ];
E [ F P<=0 [ "minimum" U left_n=0 ] ];
"""
COIN = """
label "settled" = counter=3;
"agreed": Pmax=? [ F "finished" & "agree" ];
P>=1 [ F "finished" ];
Pmin=? [ F "finished" & "all_coins_equal_0" ];
P>=0.05 [ F "finished" & !"agree" ];
P<0.9 [ F "finished" & !"agree" ];
Pmax=? [ F<=30 "finished" ];
Pmin=? [ X counter>6 ];
R{"steps"}max=? [ F "finished" ];
filter(avg, R{1}min=? [ F "finished" ], "settled");
filter(argmax, "agreed", "settled");
filter(range, "agreed" + 1);
Pmax=? [ F P>=0.999 [ G counter>2 ] ];
Pmax=? [ (F counter=2) & (G F "finished") ];
E [ F P<=0 [ F "all_coins_equal_1" ] ];
"""
TANDEM = """
const double T = 1;
R=? [ S ];
S=? [ sc=c ];
P=? [ F sc=c & sm=c & ph=2 ];
P<0.1 [ sm=0 U sc=c ];
filter(min, P=? [ sm>0 U sm=c ], sm>0);
R=? [ F sc=c ];
P=? [ sm=c U<=T sm<c {sm=c}{min} ];
R=? [ I=T ];
"""
CASES = {
    "cluster": ("ctmcs/cluster/cluster.sm", CLUSTER),
    "tandem": ("ctmcs/tandem/tandem.sm", TANDEM),
    "coin2": ("mdps/consensus/coin2.nm", COIN),
    "coin4": ("mdps/consensus/coin4.nm", COIN),
}


def result_lines(output: str) -> list[str]:
    """Return the results, the errors and what filters say of them, remarks left out."""
    told = re.findall(
        r"^(?:Result|Error|Property satisfied|States satisfying|Number of states|There are)\b.*",
        output,
        re.MULTILINE,
    )
    return [line.split(" (+/-")[0].split(" (exact")[0] for line in told]


NUMBER = re.compile(r"-?\d+\.\d+(?:E-?\d+)?")


def assert_same_results(ours: str, theirs: str, tolerance: float) -> None:
    mine, others = result_lines(ours), result_lines(theirs)
    assert [NUMBER.sub("#", line) for line in mine] == [NUMBER.sub("#", line) for line in others]
    for line, other in zip(mine, others, strict=True):
        for x, y in zip(NUMBER.findall(line), NUMBER.findall(other), strict=True):
            assert math.isclose(float(x), float(y), rel_tol=tolerance), (line, other)


@pytest.mark.parametrize(
    ("case", "constants"),
    [
        ("cluster", "N=2"),
        ("coin2", "K=2"),
        pytest.param("cluster", "N=64", marks=pytest.mark.slow),
        pytest.param("tandem", "c=255", marks=pytest.mark.slow),
        pytest.param("coin4", "K=2", marks=pytest.mark.slow),
    ],
)
def test_three_steps_print_what_one_process_prints(
    prism_gpu, prism_examples, tmp_path, case, constants
):
    model, text = CASES[case]
    properties = tmp_path / "all.props"
    properties.write_text(text, encoding="utf-8")
    words = (prism_examples / model, properties, "-const", constants, "-epsilon", "1e-9")
    folder, results = tmp_path / "exchange", tmp_path / "results.txt"
    exported = prism_gpu("export", *words, "-to", folder)
    assert exported.code == 0, exported.output + exported.errors
    solved = prism_gpu("solve", folder)
    assert solved.code == 0, solved.output + solved.errors
    reported = prism_gpu("report", folder, "-exportresults", results)
    assert reported.code == 0, reported.output + reported.errors
    at_once = prism_gpu(*words, "-explicit")
    assert "Error" not in at_once.output
    assert_same_results(reported.output, at_once.output, TRUNCATED)
    untimed = unbounded_only(reported.output), unbounded_only(at_once.output)
    assert_same_results(*untimed, EXACTLY)
    assert len(result_lines(untimed[0])) > 5
    assert "results come from" in reported.output
    checked = len(re.findall(r"^Result\b", at_once.output, re.MULTILINE))
    assert results.read_text(encoding="utf-8").count("Result") == checked


def unbounded_only(output: str) -> str:
    """Return what a log says of properties without a bound of time."""
    blocks = re.split(r"(?=^Model checking: )", output, flags=re.MULTILINE)
    timed = re.compile(r"<=T|I=T|premium_soon")
    return "".join(block for block in blocks[1:] if not timed.search(block.splitlines()[0]))


PAIR = """dtmc
const double p;
module pair
  s : [0..3] init 0;
  [] s=0 -> p:(s'=1) + 1-p:(s'=2);
  [] s=1 -> 0.5:(s'=3) + 0.5:(s'=0);
  [] s>1 -> true;
endmodule
label "end" = s=3;
rewards [] s=0 : 2; s=1 : 1; endrewards
"""


WHERE_TRUE = ["true", "true", "false", "true"]
PROPERTIES = """label "goal" = s=3;
P=? [ F "goal" ];
P>=0.3 [ F "goal" ];
"""


@pytest.fixture
def pair(tmp_path) -> Path:
    model = tmp_path / "pair.pm"
    model.write_text(PAIR, encoding="utf-8")
    return model


@pytest.fixture(scope="module")
def solved(prism_gpu, tmp_path_factory) -> Path:
    """Return a folder with a model, properties, and their export, solved."""
    place = tmp_path_factory.mktemp("solved")
    model, properties, folder = place / "pair.pm", place / "pair.props", place / "exchange"
    model.write_text(PAIR, encoding="utf-8")
    properties.write_text(PROPERTIES, encoding="utf-8")
    words = (model, properties, "-const", "p=0.5", "-epsilon", "1e-12", "-to", folder)
    for run in (prism_gpu("export", *words), prism_gpu("solve", folder)):
        assert run.code == 0, run.output + run.errors
    return place


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("pair.pm", "0.5:(s'=3) + 0.5", "0.25:(s'=3) + 0.75", "transitions"),
        ("pair.props", '"goal" = s=3', '"goal" = s=1', "have changed"),
    ],
)
def test_other_contents_of_the_same_files_are_refused(prism_gpu, solved, name, old, new, told):
    file = solved / name
    before = file.read_text(encoding="utf-8")
    file.write_text(before.replace(old, new), encoding="utf-8")
    try:
        run = prism_gpu("report", solved / "exchange")
    finally:
        file.write_text(before, encoding="utf-8")
    assert run.code == 1
    assert re.search(rf"^Error: .*{told}", run.output, re.MULTILINE)
    assert not run.results()


def test_results_for_other_constants_are_refused(prism_gpu, solved, tmp_path):
    folder = tmp_path / "other"
    words = (solved / "pair.pm", solved / "pair.props", "-const", "p=0.25", "-to", folder)
    assert prism_gpu("export", *words).code == 0
    shutil.copy(solved / "exchange" / "results.zip", folder)
    run = prism_gpu("report", folder)
    assert run.code == 1
    assert "another export" in run.output


def test_values_and_vectors_of_a_small_chain_are_those_of_its_equations(
    prism_gpu, solved, tmp_path
):
    # x0 = p x1, x1 = 1/2 + x0/2 with p = 1/2.
    vector = tmp_path / "vector.txt"
    run = prism_gpu("report", solved / "exchange", "-exportvector", vector)
    assert run.code == 0, run.output
    number, truth = run.results()
    assert float(number) == pytest.approx(1 / 3, rel=1e-10)
    assert truth == "true"
    # The last property's vector has taken the place of the first one's.
    assert [line.split("=")[-1] for line in vector.read_text().split()] == WHERE_TRUE


def test_an_operator_that_was_not_solved_is_an_error_and_never_computed(prism_gpu, pair, tmp_path):
    folder = tmp_path / "exchange"
    words = ("-pctl", 'P=? [ F "end" ]; R=? [ C<=3 ]', "-const", "p=0.5", "-maxiters", "1")
    assert prism_gpu("export", pair, *words, "-power", "-to", folder).code == 0
    solved = prism_gpu("solve", folder)
    assert solved.code == 1
    assert "did not converge" in solved.output
    run = prism_gpu("report", folder)
    assert run.code == 1
    # R: two in state 0, then a half of one in state 1, then a quarter of two in state 0.
    assert run.numbers() == pytest.approx([3.0])
    assert re.search(r'^Error: P=\? \[ F "end" \] has no result', run.output, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-pctl", 'P=? [ F "nowhere" ]'), "nowhere"),
        (("-pctl", 'P=? [ F "end" ]', "-intervaliter"), "interval iteration"),
        (("-pctl", "s=0"), "no P, R or S operator"),
    ],
)
def test_an_export_that_fails_leaves_nothing(prism_gpu, pair, tmp_path, words, told):
    folder = tmp_path / "exchange"
    run = prism_gpu("export", pair, "-const", "p=0.5", *words, "-to", folder)
    assert run.code == 1
    assert told in run.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pair.pm"]


def test_the_manifest_tells_where_it_came_from(prism_gpu, pair, tmp_path):
    folder = tmp_path / "exchange"
    prism_gpu("export", pair, "-pctl", "P=? [ G s<2 ]", "-const", "p=0.5", "-jor", "-to", folder)
    plain = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    assert plain["provenance"]["constants"] == "p=0.5"
    assert plain["settings"]["method"] == "JOR"
    assert plain["questions"] == [{"key": "P=? [ G s<2 ]", "text": 'P=? [ G "ap1" ]'}]
