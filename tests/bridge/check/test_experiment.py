"""Experiments in which a model cannot be built, or a property fails, for some of the values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Run
from tests.warm import run_warm

MODEL = """dtmc
const double e;
const int m = ceil(e*10);
module M
  x : [0..2] init 0;
  [] x<2 -> e : (x'=x+1) + (m=2 ? 1-2*e : 1-e) : (x'=x);
  [] x=2 -> true;
endmodule
"""
PROPERTIES = "const int k; P=? [ F<=k x=2 ]; P=? [ F x=2 ]"
FAULT = "Error: Probabilities sum to 0.8 in state (x=0) (line 6, column 13)."
NEGATIVE = "Error: Negative bound in true U<=k x=2."
BARE = {"PRISM_DIR": "", "JAVA_HOME": "", "PATH": "/nowhere"}


def run(folder: Path, *words: str) -> Run:
    (folder / "model").write_text(MODEL)
    command = ["model", "-pf", PROPERTIES, *words, "-frontend", "builtin", "-nogpu"]
    return run_warm(command, timeout=60, folder=folder, **BARE)


@pytest.mark.parametrize("besides", [[], ["-ss"]])
def test_a_model_that_cannot_be_built_is_told_of_once(tmp_path, besides):
    words = ["-const", "e=0.1:0.1:0.3,k=0:2:5", "-exportresults", "table", *besides]
    done = run(tmp_path, *words)
    assert done.code == 0
    assert done.output.count(FAULT) == 1
    # What is not checked is not announced either.
    assert done.output.count("Model constants: e=0.2\nProperty constants") == (not besides)
    lines = (tmp_path / "table").read_text().splitlines()
    assert lines[5:8] == [f"0.2\t{k}\t{FAULT}" for k in (0, 2, 4)]
    assert lines[15] == f"0.2\t{FAULT}"
    assert [line.split("\t")[0] for line in lines[8:11]] == ["0.3"] * 3


def test_each_value_for_which_a_property_fails_is_told_of(tmp_path):
    done = run(tmp_path, "-const", "e=0.5,k=-2:1:0", "-exportresults", "table")
    assert done.output.count(NEGATIVE) == 2
    lines = (tmp_path / "table").read_text().splitlines()
    assert lines[2:5] == [f"-2\t{NEGATIVE}", f"-1\t{NEGATIVE}", "0\t0"]
