"""`prism-gpu` on models in PRISM's language without PRISM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bridge.check.test_run import prism_gpu
from tests.conftest import Run

COIN = """dtmc
module coin
  x : [0..2] init 0;
  [] x=0 -> 0.5 : (x'=1) + 0.5 : (x'=2);
  [] x>0 -> true;
endmodule
"""
FAULTS = {
    "": "There must be at least one module",
    "\n// no module\n": "There must be at least one module",
    "dtmc\nglobal x : [0..1];": "There must be at least one module",
    "mdp\nmodule m\nendmodule\n": "There must be at least one variable",
}
MOD = """dtmc
module a
  x : [0..3] init 3;
  [] x=3 & mod(-x,3)=0 -> (1+mod(x-5,3))/4 : (x'=0) + (2-mod(x-5,3))/4 : true + 1/4 : (x'=1);
  [] x=3 & mod(-x,3)!=0 -> (x'=2);
  [] x<3 -> true;
endmodule
label "l" = mod(x-6,3)=0;
rewards "m" true : mod(x-4,3); endrewards
"""


def checked(folder: Path, text: str, *words: str) -> Run:
    """Return the run that checks a model's text."""
    path = folder / "model.prism"
    path.write_text(text)
    return prism_gpu(path, "-frontend", "builtin", *words)


@pytest.mark.parametrize("words", [["-pf", "P=? [ F x=2 ]"], ["-pf", "P=? [ F x=2 ]", "-sim"]])
def test_a_model_comes_out_of_a_pipe(words):
    command = [sys.executable, "-m", "bridge", "/dev/stdin", "-frontend", "builtin", "-nogpu"]
    done = subprocess.run(
        [*command, *words], input=COIN, capture_output=True, text=True, check=True, timeout=60
    )
    run = Run(done.returncode, done.stdout, done.stderr)
    assert run.numbers() == pytest.approx([0.5], abs=0.05)


@pytest.mark.parametrize("text", FAULTS)
def test_a_text_without_a_model_is_an_error(text, tmp_path):
    run = checked(tmp_path, text, "-pf", "P=? [ F true ]")
    assert run.code == 1
    assert f"\nError: {FAULTS[text]}.\n" in run.output


def test_explicit_files_do_not_come_out_of_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "model.tra")
    run = prism_gpu(tmp_path / "model.tra", "-pf", "P=? [ F true ]")
    assert run.code == 1
    assert "cannot come out of a pipe" in run.output


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("P=? [ F x=0 ]", 2 / 3),
        ('P=? [ F x<3 & "l" ]', 2 / 3),
        ("P=? [ F mod(-x,3)=2 ]", 1 / 3),
        ('R{"m"}=? [ F x<3 ]', 8 / 3),
    ],
)
def test_mod_of_negative_numbers(text, value, tmp_path):
    assert checked(tmp_path, MOD, "-pf", text).numbers() == pytest.approx([value])


def test_a_model_of_wrong_types_is_refused(tmp_path):
    text = COIN.replace("x>0 -> true", "x>0 -> (x'=x/2)")
    run = checked(tmp_path, text, "-pf", "P=? [ F x=2 ]")
    assert run.code == 1
    assert (
        '\nError: Type error in update to variable "x" ("x/2", line 5, column 17).\n' in run.output
    )


HUGE_RATES = """ctmc
module m
  x : [0..2] init 1;
  [] x=1 -> 1e308 : (x'=0) + 1e308 : (x'=2);
endmodule
rewards true : 1; endrewards
"""


@pytest.mark.parametrize("switches", [(), ("-ii",)])
def test_rates_of_a_state_whose_sum_overflows_are_refused(tmp_path, switches):
    run = checked(
        tmp_path, HUGE_RATES, "-pf", "P=? [ X x=0 ]; S=? [ x=0 ]; R=? [ F x=2 ]", *switches
    )
    assert "Result" not in run.output
    assert "Traceback" not in run.output + run.errors
    assert "Error: the exit rate of state 1 overflows" in run.output
