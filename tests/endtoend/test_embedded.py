"""The front end without PRISM: values, reports, experiments, refusals."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.conftest import Run, run_command
from tests.endtoend.comparing import assert_same_lines
from tests.endtoend.references import TIGHT, TOLERANCE, check, instances
from tests.endtoend.test_reports import CLUSTER, COIN, HERMAN

MODELS = Path(__file__).parents[2] / "examples" / "models"
REPORTED = re.compile(
    r"Model checking:|(Model|Property) constants|States satisfying|(Minimum|Maximum) value"
    r"|Number of|There are|The first|\d+:\(|Count|Sum|Average|Value in|Range|Property satisfied"
    r"|Satisfying|Results \(|\(none\)|\(all zero\)|Result|Type:|States:|Transitions:|Choices:"
    r"|Max/avg:|Error"
)
FAST = r"herman(3|5|7)\.pm$|simple/dice/|coin2|leader[34]|csma2_2|poll[34]\.sm|zeroconf.*|phil3"


@pytest.fixture(scope="module")
def embedded():
    """Return a function that runs `prism-gpu` with the front end of its own."""

    def run(*words: object, timeout: float = 300, **environment: str) -> Run:
        switches = ["-frontend", "builtin", "-nogpu"]
        command = [sys.executable, "-m", "bridge", *map(str, words), *switches]
        return run_command(command, timeout=timeout, **environment)

    return run


def reported(output: str) -> list[str]:
    """Return what a report says of each property, apart from how it was computed."""
    _, _, body = output.partition("Model checking:")
    lines = [line for line in f"Model checking:{body}".splitlines() if REPORTED.match(line)]
    return [re.sub(r" \((\+/- .*|exact floating point)\)$", "", line) for line in lines]


def unlike_prism(line: str) -> bool:
    """Tell which lines PRISM's log has once more, at the building of a model."""
    return line.startswith("Model constants")


@pytest.mark.sampled(2)
@pytest.mark.prism
@pytest.mark.parametrize(
    ("model", "text", "constants"),
    [
        ("dtmcs/herman/herman5.pm", HERMAN, "k=3"),
        ("ctmcs/cluster/cluster.sm", CLUSTER, "N=3"),
        ("mdps/consensus/coin2.nm", COIN, "K=2"),
    ],
    ids=["dtmc", "ctmc", "mdp"],
)
def test_filters_nesting_and_bounds_are_reported_as_prism_reports_them(
    embedded, prism, prism_examples, tmp_path, model, text, constants
):
    properties = tmp_path / "filters.props"
    properties.write_text(text, encoding="utf-8")
    words = (prism_examples / model, properties, "-const", constants, "-epsilon", "1e-9")
    ours, theirs = embedded(*words), prism(*words, "-explicit")
    assert ours.code == theirs.code == 0, ours.output + ours.errors
    found = [
        [line for line in reported(run.output) if not unlike_prism(line)] for run in (ours, theirs)
    ]
    assert len(found[0]) > 30
    assert_same_lines(*found)


def fast_or_slow() -> list[pytest.param]:
    """Return every model instance of the reference values, most of them marked slow."""
    cases = []
    for case in instances(".", every_kind=True):
        quick = re.search(FAST, str(case.id)) or not case.values[0]
        quick = quick or re.search(FAST, case.values[0][0].model)
        marks = case.marks if quick else (*case.marks, pytest.mark.slow)
        cases.append(pytest.param(*case.values, id=case.id, marks=marks))
    return cases


@pytest.mark.sampled(8)
@pytest.mark.prism
@pytest.mark.parametrize("entries", fast_or_slow())
def test_reference_values_are_met_without_prism(embedded, prism_examples, tmp_path, entries):
    errors = check(embedded, prism_examples, tmp_path, entries)
    wrong = [(e.text, e.value, x) for e, x in zip(entries, errors, strict=True) if x > TOLERANCE]
    assert not wrong


def test_the_example_models_are_checked_without_prism_and_java(embedded, tmp_path):
    bare = {"PRISM_DIR": "", "JAVA_HOME": "", "PATH": "/nowhere"}
    run_command(
        [sys.executable, str(MODELS / "herman.py"), "7", "-o", str(tmp_path / "herman7.pm")],
        timeout=60,
    )
    herman = embedded(
        tmp_path / "herman7.pm",
        "-pctl",
        'filter(max, R=? [ F "stable" ], num_tokens=3)',
        *TIGHT,
        **bare,
    )
    # McIver and Morgan (2005): 4abc/N steps from three tokens with gaps a, b and c.
    assert herman.numbers() == pytest.approx([4 * 2 * 2 * 3 / 7], rel=1e-9)
    tandem = embedded(
        MODELS / "tandem.sm", "-csl", 'R{"customers"}=? [ S ]', "-const", "c=3", *TIGHT, **bare
    )
    assert tandem.code == 0
    assert len(tandem.numbers()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dtmc\nmodule m\n  x : [0..1];\n  [] x=0 -> 0.5:(x'=1);\nendmodule\n", "sum"),
        ("dtmc\nmodule m\n  x : [0..1];\n  [] x=0 -> (x'=2);\nendmodule\n", "range"),
        ("dtmc\nmodule m\n  x : [0..1];\n  [] y=0 -> (x'=1);\nendmodule\n", "y"),
        ("dtmc\nmodule m\n  x : [0..1]\nendmodule\n", "line"),
        ("dtmc\nconst int N;\nmodule m\n  x : [0..N];\n  [] true -> (x'=1);\nendmodule\n", '"N"'),
        ("smg\nmodule m\n  x : [0..1];\nendmodule\n", "a SMG"),
    ],
)
def test_faults_of_a_model_are_named(embedded, tmp_path, text, message):
    model = tmp_path / "model.pm"
    model.write_text(text)
    run = embedded(model, "-pctl", "P=? [ F x=1 ]")
    assert "Error: " in run.output
    assert message in run.output.partition("Error: ")[2]
    assert "Result" not in run.output
    assert "Traceback" not in run.output + run.errors


def test_states_are_numbered_as_prism_numbers_them(embedded, tmp_path):
    model = tmp_path / "model.pm"
    model.write_text(
        "dtmc\nmodule a\n  x : [0..2] init 2;\n  b : bool;\n"
        "  [] true -> 0.5:(x'=0)&(b'=true) + 0.25:(x'=1) + 0.25:(x'=2)&(b'=false);\nendmodule\n"
    )
    run = embedded(model, "-exportstates", "stdout", "-exporttrans", tmp_path / "t.tra")
    listed = [line for line in run.output.splitlines() if re.match(r"\d+:\(", line)]
    assert listed == ["0:(0,true)", "1:(1,false)", "2:(1,true)", "3:(2,false)"]
    assert "\n3 0 0.5" in (tmp_path / "t.tra").read_text()
