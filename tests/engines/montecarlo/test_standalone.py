"""The verifier as a program of its own: its counters are the sampler's."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.model.environment import DeviceChoice
from engines.montecarlo.questions import Until
from engines.montecarlo.sampler import Sampler
from engines.montecarlo.standalone import standalone
from engines.program import native
from engines.program.expressions import TRUE

from . import programs
from .reader import read_model

CASES = list(programs.cases())
LIMIT = 300


def built(text, folder, *options):
    """Return a program that is compiled with what a user may type."""
    try:
        compiler = native.compiler()
    except UnsupportedError as error:
        pytest.skip(str(error))
    (folder / "paths.c").write_text(text, encoding="utf-8")
    command = [*compiler, "-w", *options, "paths.c", "-o", "paths"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return folder / "paths"


def printed(program, *numbers):
    command = [str(program), *map(str, numbers)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("options", [(), ("-O3", "-march=native")], ids=["plain", "fast"])
@pytest.mark.parametrize("case", CASES, ids=[name for name, _, _ in CASES])
def test_its_counters_are_the_sampler_s(case, options, tmp_path):
    _, program, questions = case
    sampler = Sampler(program, questions, 9, DeviceChoice.CPU, LIMIT)
    arrays = sampler.sample(2**40, 500)
    made = built(standalone(sampler.compiled, LIMIT), tmp_path, *options)
    lines = printed(made, 9, 2**40, 500)
    expected = [
        f"true {np.sum(row == 1)} false {np.sum(row == 0)} undecided {np.sum(row == 2)}"
        for row in arrays.booleans
    ]
    booleans = len(expected)
    assert lines[:booleans] == expected
    for line, row in zip(lines[booleans:], arrays.rewards, strict=True):
        total = 0.0
        for value in row.tolist():
            total += value
        name, found, of, count = line.split()
        assert (name, of, count) == ("sum", "of", "500")
        assert float(found) == total or total != total


def test_paths_that_are_undecided_are_counted_apart(tmp_path):
    program, e = read_model("dtmc\nmodule m\n x : [0..1];\n [] true -> (x'=1-x);\nendmodule")
    sampler = Sampler(program, [Until(TRUE, e("x=2"))], 1, DeviceChoice.CPU, 20)
    made = built(standalone(sampler.compiled, 20), tmp_path)
    assert printed(made, 1, 0, 10) == ["true 0 false 0 undecided 10"]


def test_what_is_no_range_of_paths_and_errors_on_paths_are_told(tmp_path):
    program, e = read_model("dtmc\nmodule m\n x : [0..3];\n [] true -> (x'=x+1);\nendmodule")
    sampler = Sampler(program, [Until(TRUE, e("false"))], 1, DeviceChoice.CPU, 20)
    made = built(standalone(sampler.compiled, 20), tmp_path)
    last = 2**64 - 1
    for words in ((), ("1", "0"), ("1", "x", "1"), ("-1", "0", "1"), ("1", "0", "0"),
                  ("1", str(last), "2"), (str(last + 1), "0", "1")):  # fmt: skip
        done = subprocess.run([made, *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert "SEED FIRST COUNT" in done.stderr
    done = subprocess.run([made, "1", str(last), "1"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"path {last} met an error after 3 steps" in done.stderr
