"""The long run of dense chains that end in one small component, which alone is asked about."""

from __future__ import annotations

import re

import pytest

from tests.endtoend.comparing import assert_same_files
from tests.endtoend.references import answers, assert_close
from tests.endtoend.test_graph_searches import PATIENT, runner

pytestmark = pytest.mark.prism

SWITCHED = 11
"""Variables that stay 1 once they are: 3 ** 11 transitions."""


def switches(
    kind: str, rest: str, guard: str = "true", stay: str = "1", count: int = SWITCHED
) -> str:
    """Return a model whose variables become 1 one by one, beside a module of its own.

    They stay 1 with probability `stay`.
    """
    modules = "\n".join(
        f"module x{i}\n  x{i} : [0..1];\n"
        f"  [go] x{i}=0 & {guard} -> 0.5:(x{i}'=0) + 0.5:(x{i}'=1);\n"
        f"  [go] x{i}=1 & {guard} -> {stay}:(x{i}'=1) + 1-{stay}:(x{i}'=0);\nendmodule"
        for i in range(count)
    )
    return f"{kind}\n{modules}\n{rest}\n"


TURNING = """module turning
  y : [0..2];
  [go] y=0 -> 0.3:(y'=1) + 0.7:(y'=2);
  [go] y=1 -> 0.6:(y'=2) + 0.4:(y'=0);
  [go] y=2 -> 0.9:(y'=0) + 0.1:(y'=2);
endmodule
rewards y=1 : 2.5; [go] y=2 & x0=1 : 4; [go] x1=0 : 1e6; endrewards"""
PARTED = """module parted
  y : [0..3];
  [go] y=0 -> 0.25:(y'=1) + 0.75:(y'=2);
  [go] y=1 -> (y'=1);
  [go] y=2 -> 0.5:(y'=3) + 0.5:(y'=2);
  [go] y=3 -> 0.9:(y'=2) + 0.1:(y'=3);
endmodule
rewards y=3 : 2; endrewards"""
ASKED = (
    "S=? [ y=2 ]; filter(max, S=? [ y=1 & x0=1 ], x0=0); S=? [ x3=0 ]; R=? [ S ];"
    ' filter(count, S>0.2 [ y=2 ], x1=1); S<0.1 [ y=2 ]; filter(min, R=? [ S ], "init")'
)
LINE = re.compile(r"^prism-gpu: all states end in one component of (\d+) states", re.M)

SETTLED = PARTED.replace("(y'=2)", "(y'=1)")
UNTIL_ALL = "(" + "*".join(f"x{i}" for i in range(SWITCHED)) + "=0 | y!=1)"

ONE = {
    "dtmc": (switches("dtmc", TURNING), 3),
    "ctmc": (switches("ctmc", TURNING), 3),
    "one state": (switches("dtmc", SETTLED), 1),
    "absorbing": (switches("ctmc", SETTLED, UNTIL_ALL), 1),
}
SEVERAL = {
    "two components": switches("dtmc", PARTED),
    "all states": switches("dtmc", TURNING, stay="0.75", count=8),
}


@pytest.fixture
def patient(prism_install):
    """Our command, whose searches on diagrams may take as long as they want."""
    return runner(PATIENT, prism_install, "-gpuinfo")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("engine", ["-hybrid", "-sparse"])
def test_the_only_component_is_asked_about_alone(name, engine, patient, prism, tmp_path):
    text, size = ONE[name]
    model = tmp_path / "model.prism"
    model.write_text(text, encoding="utf-8")
    words = (model, "-pf", ASKED, engine)
    ours, theirs = patient(*words), prism(*words, "-epsilon", "1e-12")
    assert ours.code == theirs.code == 0, ours.output + theirs.output
    # Found once: the other questions are about the same model.
    assert LINE.findall(ours.output) == [str(size)]
    assert "PRISM's own code runs it" not in ours.output
    assert "steady state:" not in ours.output
    assert_close(ours.output, theirs.output, 1e-9)


@pytest.mark.parametrize("name", SEVERAL)
def test_other_chains_are_asked_about_as_a_whole(name, patient, prism, tmp_path):
    model = tmp_path / "model.prism"
    model.write_text(SEVERAL[name], encoding="utf-8")
    words = (model, "-pf", ASKED, "-hybrid")
    ours, theirs = patient(*words), prism(*words, "-epsilon", "1e-9", "-power")
    assert ours.code == theirs.code == 0, ours.output + theirs.output
    assert not LINE.findall(ours.output)
    assert_close(ours.output, theirs.output, 1e-6)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["dtmc", "ctmc"])
def test_the_distribution_is_that_of_the_component(kind, patient, prism, tmp_path):
    model = tmp_path / "model.prism"
    model.write_text(ONE[kind][0], encoding="utf-8")
    files = [tmp_path / name for name in ("ours.txt", "theirs.txt")]
    words = (model, "-hybrid", "-ss", "-exportss")
    run = patient(*words, files[0])
    assert LINE.findall(run.output) == ["3"]
    assert run.code == prism(*words, files[1], "-epsilon", "1e-12").code == 0
    assert_same_files(*files)


def test_two_models_of_a_run_have_their_own_components(patient, tmp_path):
    model = tmp_path / "model.prism"
    text = switches("dtmc", TURNING).replace("y=2 -> 0.9", "y=2 & p<1 -> 0.9")
    more = "[go] y=2 & p>=1 -> (y'=2);\nendmodule\nrewards"
    model.write_text(text.replace("endmodule\nrewards", more) + "\nconst int p;\n")
    run = patient(model, "-pf", "S=? [ y=2 ]", "-const", "p=0:1:2", "-hybrid")
    assert run.code == 0, run.output
    assert LINE.findall(run.output) == ["3", "1", "1"]
    assert answers(run.output)[1:] == ["1.0", "1.0"]


def test_filters_list_the_states_of_an_exact_value(patient, tmp_path):
    model = tmp_path / "model.prism"
    model.write_text(ONE["one state"][0], encoding="utf-8")
    asked = "filter(max, S=? [ y=1 ], y=0); filter(min, P=? [ G F y=1 ], y=0)"
    run = patient(model, "-pf", asked)
    assert run.output.count("There are 1 states with (approximately) this value") == 2
