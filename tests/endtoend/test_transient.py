"""PRISM's -tr and -ss: distributions over the states, from the initial states or from a file."""

from __future__ import annotations

import math
import re

import pytest

from tests.endtoend.comparing import assert_same_files

pytestmark = pytest.mark.prism

HANDED_BACK = "PRISM's own code runs it"
HEADLINE = re.compile(
    r"^Exporting (?:transient|steady-state) probabilities in plain text format below:$"
)
PROBABILITY = re.compile(r"^(\d+):\(.*\)=(\S+)$")

# Two ends, one of them a cycle of period 2 that a fair coin leads to; 0 and 1 are transient.
ENDS = """dtmc
module m
  x : [0..4] init 0;
  [] x=0 -> 0.5 : (x'=1) + 0.25 : (x'=2) + 0.25 : (x'=3);
  [] x=1 -> 0.9 : (x'=0) + 0.1 : (x'=2);
  [] x=2 -> 1 : (x'=2);
  [] x=3 -> 1 : (x'=4);
  [] x=4 -> 1 : (x'=3);
endmodule
"""
ENTERING_2 = (0.25 + 0.05) / (1 - 0.45)
ENDS_FOR_EVER = [0.0, 0.0, ENTERING_2, (1 - ENTERING_2) / 2, (1 - ENTERING_2) / 2]

RATES = """ctmc
module m
  x : [0..4];
  [] x=0 -> 2 : (x'=1) + 1 : (x'=3);
  [] x=1 -> 4 : (x'=2) + 0.5 : (x'=1);
  [] x=2 -> 1 : (x'=1);
  [] x=3 -> 3 : (x'=4);
  [] x=4 -> 6 : (x'=3);
endmodule
init x<=1 endinit
"""
# From 0 two thirds come to 1; of the states 0 and 1 half each is where it starts.
ENTERING_1 = 0.5 + 0.5 * 2 / 3
RATES_FOR_EVER = [0.0, ENTERING_1 / 5, ENTERING_1 * 4 / 5, (1 - ENTERING_1) * 2 / 3]
RATES_FOR_EVER += [(1 - ENTERING_1) / 3]
FROM_FILE = [0.1, 0.0, 0.2, 0.3, 0.4]


def distributions(output: str) -> list[dict[int, float]]:
    """Return what each export to the log says, in order."""
    found: list[dict[int, float]] = []
    reading = False
    for line in output.splitlines():
        if HEADLINE.match(line):
            found.append({})
            reading = True
        elif reading and (match := PROBABILITY.match(line)):
            found[-1][int(match[1])] = float(match[2])
        else:
            reading = False
    return found


def assert_close(ours: dict[int, float], theirs: dict[int, float], tolerance: float) -> None:
    for state in ours.keys() | theirs.keys():
        assert ours.get(state, 0.0) == pytest.approx(
            theirs.get(state, 0.0), rel=tolerance, abs=1e-3 * tolerance
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["-explicit", "-sparse"])
@pytest.mark.parametrize(("kind", "tolerance"), [("dtmc", 1e-9), ("ctmc", 1e-8)])
@pytest.mark.parametrize(
    "filed", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["init", "file"]
)
def test_transients_and_steady_states_are_prism_s(
    prism_gpu, prism, tmp_path, engine, kind, tolerance, filed
):
    text, for_ever = (ENDS, ENDS_FOR_EVER) if kind == "dtmc" else (RATES, RATES_FOR_EVER)
    # At time 0 of a CTMC, PRISM's own code fails.
    times = "0:2:6" if kind == "dtmc" else "0.5:0.5:2"
    model = tmp_path / "model.prism"
    model.write_text(text, encoding="utf-8")
    words: list[object] = [model, "-tr", times, "-ss", "-epsilon", "1e-9"]
    if filed:
        initial = tmp_path / "initial.txt"
        initial.write_text("\n".join(map(str, FROM_FILE)) + "\n", encoding="utf-8")
        words += ["-importinitdist", initial]
    # PRISM's own symbolic engines free the first distribution twice.
    ours, theirs = prism_gpu(*words, engine, "-gpuinfo"), prism(*words, "-explicit")
    assert HANDED_BACK not in ours.output
    found, wanted = distributions(ours.output), distributions(theirs.output)
    assert len(found) == len(wanted) == 5
    for mine, other in zip(found, wanted, strict=True):
        assert math.fsum(mine.values()) == pytest.approx(1.0, abs=1e-9)
        assert_close(mine, other, 1e-7 if other is wanted[0] else tolerance)
    if not filed:
        assert_close(found[0], dict(enumerate(for_ever)), 1e-12)
    # One solve for each distribution, however many components it has; the symbolic engines need
    # none at time 0.
    solves = 4 if (engine, kind) == ("-sparse", "dtmc") else 5
    assert len(re.findall(r"^prism-gpu: .*sweeps", ours.output, re.MULTILINE)) == solves
    for line in theirs.output.splitlines() if engine == "-explicit" else ():
        if line.startswith(("Uniformisation: q", "Starting transient", "Exporting")):
            assert line.partition(".t")[0].strip() in ours.output


def test_exported_distributions_are_prism_s_files(prism_gpu, prism, prism_examples, tmp_path):
    words: list[object] = [prism_examples / "simple/dice/dice.pm", "-tr", "3", "-ss"]
    words += ["-epsilon", "1e-12"]
    folders = tmp_path / "ours", tmp_path / "theirs"
    for folder, run, switches in zip(
        folders, (prism_gpu, prism), ((), ("-explicit",)), strict=True
    ):
        folder.mkdir()
        done = run(*words, *switches, "-exporttr", folder / "tr", "-exportss", folder / "ss")
        assert done.code == 0
    for name in ("tr", "ss"):
        assert_same_files(folders[0] / name, folders[1] / name, 1e-9)


def test_what_is_no_distribution_is_left_to_prism(prism_gpu, prism, tmp_path):
    model, initial = tmp_path / "model.prism", tmp_path / "initial.txt"
    model.write_text(ENDS, encoding="utf-8")
    initial.write_text("0.5\n0\n0.25\n0.5\n0\n", encoding="utf-8")
    words = [model, "-ss", "-importinitdist", initial, "-epsilon", "1e-10"]
    ours, theirs = (run(*words, "-explicit") for run in (prism_gpu, prism))
    lines = [line for line in ours.output.splitlines() if HANDED_BACK in line]
    assert len(lines) == 1
    assert "sum to 1.25" in lines[0]
    assert_close(distributions(ours.output)[0], distributions(theirs.output)[0], 1e-6)
