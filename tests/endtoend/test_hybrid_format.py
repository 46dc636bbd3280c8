"""`-gpuformat hybrid` with PRISM: PRISM's diagram swept itself, beside the expanded matrix."""

from __future__ import annotations

import math
import re
import sys

import pytest

from tests.conftest import run_command
from tests.endtoend.references import answers

pytestmark = pytest.mark.prism

WITHOUT_MATRIX = "prism-gpu: solved on PRISM's diagram, without a matrix: -gpuformat hybrid"
JOR = ("-jor", "-omega", "0.9")
SLICES = ("-gpuslice", "16", "-gpucolours", "3")
FAMILIES = {
    "cluster": ("ctmcs/cluster/cluster.sm", "N=6", 'S=? [ "premium" ]; R{"num_repairs"}=? [ S ]'),
    "tandem": ("ctmcs/tandem/tandem.sm", "c=15", "R=? [ S ]; S=? [ sc=c ]"),
    "kanban": ("ctmcs/kanban/kanban.sm", "t=1", 'R{"throughput"}=? [ S ]'),
    "fms": ("ctmcs/fms/fms.sm", "n=2", 'R{"productivity"}=? [ S ]; S=? [ P1=0 ]'),
    "polling": ("ctmcs/polling/poll5.sm", "", "S=? [ s1=1 & !(s=1 & a=1) ]"),
    # Its recurrent class is what is left of many transient states.
    "herman": ("dtmcs/herman/herman5.pm", "", "filter(min, S=? [ x1=1 ])"),
}


def solves(run) -> list[tuple[str, str]]:
    """Return the method and the number of sweeps of each solve."""
    return re.findall(r"^([A-Z][\w -]+): (\d+) iterations in", run.output, re.MULTILINE)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "method", [JOR, pytest.param((*JOR, *SLICES, "-gpumethod", "sor"), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", FAMILIES)
def test_the_long_run_is_swept_on_the_diagram(prism_gpu, prism_examples, name, method):
    model, constants, text = FAMILIES[name]
    sized = ["-const", constants] if constants else []
    words = [prism_examples / model, *sized, "-pf", text, *method, "-nogpu", "-gpuinfo"]
    expected = prism_gpu(*words, "-gpuformat", "csr")
    found = prism_gpu(*words, "-gpuformat", "hybrid")
    assert found.code == expected.code == 0
    assert WITHOUT_MATRIX in found.output
    assert WITHOUT_MATRIX not in expected.output
    assert "format hybrid" in found.output
    assert "prism-gpu: read " not in found.output
    assert len(solves(found)) == text.count(";") + 1
    # The rows of a class are numbered among its own states, where there is a matrix of it.
    same_colours = "-gpuslice" not in method or name != "herman"
    if same_colours:
        assert solves(found) == solves(expected)
    for mine, other in zip(answers(found.output), answers(expected.output), strict=True):
        assert math.isclose(float(mine), float(other), rel_tol=1e-9 if same_colours else 1e-4)


def test_the_long_run_distribution_is_that_of_the_matrix(prism_gpu, prism_examples, tmp_path):
    words = [prism_examples / FAMILIES["herman"][0], "-ss", *JOR, "-nogpu", "-epsilon", "1e-10"]
    values = []
    for matrix_format in ("csr", "hybrid"):
        file = tmp_path / matrix_format
        run = prism_gpu(*words, "-gpuformat", matrix_format, "-exportss", file)
        assert (WITHOUT_MATRIX in run.output) == (matrix_format == "hybrid")
        lines = file.read_text().split()
        values.append([float(line.rpartition("=")[2]) for line in lines])
    assert values[0] == pytest.approx(values[1], rel=1e-9, abs=1e-15)
    assert sum(values[1]) == pytest.approx(1.0)


def test_several_ends_are_seen_and_the_matrix_is_made(prism_gpu, prism, prism_examples):
    words = [prism_examples / "simple/dice/dice.pm", "-pf", "S=? [ d=6 ]"]
    run = prism_gpu(*words, "-gpuformat", "hybrid", "-nogpu")
    assert "-gpuformat hybrid: the long run is computed with a matrix: state" in run.output
    assert "more than one bottom strongly connected component" in run.output
    assert float(answers(run.output)[0]) == pytest.approx(
        float(answers(prism(*words).output)[0]), rel=1e-5
    )


NO_ROOM = """
import sys
from engines.host.expansion import room
from bridge.cli import main

room.SHARE_OF_HOST = 0.0
main(sys.argv[1:])
"""


def test_what_no_matrix_fits_is_swept_on_the_diagram(prism_gpu, prism_install, prism_examples):
    texts = "R=? [ S ]; P=? [ sm<c U sc=c ]; P=? [ F<=1 sc=c ]"
    words = [prism_examples / "ctmcs/tandem/tandem.sm", "-const", "c=7", "-pf", texts, "-nogpu"]
    command = [sys.executable, "-c", NO_ROOM, *map(str, words)]
    run = run_command(command, timeout=300, PRISM_DIR=str(prism_install.root))
    assert run.code == 0
    line = "solved on PRISM's diagram, without a matrix: the matrix takes 0.0 GB of memory, and"
    assert line in run.output
    assert "PRISM's own code runs it" in run.output.partition("F<=1")[2]
    for mine, other in zip(answers(run.output), answers(prism_gpu(*words).output), strict=True):
        assert math.isclose(float(mine), float(other), rel_tol=1e-6)
