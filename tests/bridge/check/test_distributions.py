"""-ss and -tr without PRISM: logs and files as PRISM's explicit engine writes them."""

from __future__ import annotations

from math import exp
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.warm import run_warm

CHAIN = """ctmc
module m
  s : [0..1];
  [] s=0 -> 2 : (s'=1);
  [] s=1 -> 1 : (s'=0);
endmodule
init true endinit
"""
STEPS = """dtmc
module m
  s : [0..2] init 0;
  [] s<2 -> 0.5 : (s'=s) + 0.5 : (s'=s+1);
  [] s=2 -> true;
endmodule
"""
BARE = {"PRISM_DIR": "", "JAVA_HOME": "", "PATH": "/nowhere"}


def run(folder: Path, text: str, *words: str) -> Run:
    (folder / "model").write_text(text)
    command = ["model", *words, "-frontend", "builtin", "-nogpu"]
    return run_warm(command, timeout=60, folder=folder, **BARE)


def written(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): file.read_text()
        for file in folder.rglob("*")
        if file.is_file() and file.name != "model"
    }


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("tr.txt", ["tr0.5.txt", "tr1.0.txt"]),
        ("tr", ["tr0.5", "tr1.0"]),
        ("a.b/tr.x.txt", ["a.b/tr.x0.5.txt", "a.b/tr.x1.0.txt"]),
    ],
)
def test_each_of_several_times_has_a_file(tmp_path, target, names):
    (tmp_path / "a.b").mkdir()
    done = run(tmp_path, CHAIN, "-tr", "0.5:0.5:1", "-exporttr", target)
    assert done.code == 0
    files = written(tmp_path)
    assert sorted(files) == names
    for name, time in zip(names, (0.5, 1.0), strict=True):
        told = f'Exporting transient probabilities in plain text format to file "{name}"...'
        assert told in done.output
        pairs = [line.split("=") for line in files[name].splitlines()]
        assert [state for state, _ in pairs] == ["0", "1"]
        # From both states with probability 1/2, towards 1/3.
        first = 1 / 3 + (1 / 2 - 1 / 3) * exp(-3 * time)
        assert [float(value) for _, value in pairs] == pytest.approx([first, 1 - first], rel=1e-6)


def test_a_single_time_leaves_the_file_s_name(tmp_path):
    run(tmp_path, STEPS, "-tr", "1", "-exporttr", "tr.txt")
    # States without probability have a line too.
    assert written(tmp_path) == {"tr.txt": "0=0.5\n1=0.5\n2=0.0\n"}


def test_times_of_a_dtmc_are_whole_numbers_in_names(tmp_path):
    run(tmp_path, STEPS, "-tr", "1:2", "-exporttr", "tr.txt")
    assert written(tmp_path) == {
        "tr1.txt": "0=0.5\n1=0.5\n2=0.0\n",
        "tr2.txt": "0=0.25\n1=0.5\n2=0.25\n",
    }


def test_standard_output_gets_the_states_that_have_a_probability(tmp_path):
    done = run(tmp_path, STEPS, "-tr", "1:2", "-exporttr", "stdout")
    assert written(tmp_path) == {}
    below = "Exporting transient probabilities in plain text format below:"
    rule = "-" * 69
    assert f"{below}\n0:(0)=0.5\n1:(1)=0.5\n\n{rule}\n\nComputing transient" in done.output
    assert f"{below}\n0:(0)=0.25\n1:(1)=0.5\n2:(2)=0.25\n" in done.output


def test_a_steady_state_s_file_has_values_alone(tmp_path):
    run(tmp_path, STEPS, "-ss", "-exportss", "ss.txt")
    assert written(tmp_path) == {"ss.txt": "0.0\n0.0\n1.0\n"}
