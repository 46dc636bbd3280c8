"""A user's script is checked by `mypy --strict` against the types of `prism_gpu`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
from pathlib import Path

import numpy as np

import prism_gpu as pg


def least(model: pg.Model, text: str) -> float:
    result: pg.Result = model.check(text, {"T": 10}, epsilon=1e-8, bounds=True)
    return float(result) if result.vector is None else float(result.vector.min())


walk = pg.mdp({"safe": np.eye(2), "bold": np.full((2, 2), 0.5)}, labels={"there": 1})
best = walk.check('Pmax=? [ F "there" ]', strategy=True)
if best.strategy is not None:
    chain = walk.induced(best.strategy)
    print(chain.simulate(10, paths=3, seed=1).states.shape, chain.transient(3).sum())
    print(least(chain, 'P=? [ F<=T "there" ]'))
results: pg.Results = pg.sweep(walk, "Pmax=? [ F<=k x=1 ]", {"k": range(3)}, epsilon=1e-8)
print([row["value"] for row in results.rows()], walk.transition_matrix.shape)
try:
    pg.open(Path("none.sm"), {"N": 3}, device="cpu")
except FileNotFoundError as error:
    print(error, walk.labels["there"].sum(), pg.__version__)
"""


@pytest.fixture
def checked(tmp_path):
    """Return a function that checks a script, and returns the exit status and what was found."""

    def check(text: str) -> tuple[int, str]:
        (tmp_path / "script.py").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull]
        # Of this checkout, whatever is installed; missing stubs of other packages are not ours.
        command += ["--ignore-missing-imports", "--follow-imports", "silent"]
        done = subprocess.run(
            [*command, "--cache-dir", str(tmp_path / "cache"), "script.py"],
            cwd=tmp_path,
            env={**os.environ, "MYPYPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return check


def test_a_script_has_types_and_wrong_settings_are_found(checked):
    pytest.importorskip("mypy")
    status, found = checked(SCRIPT)
    assert status == 0, found
    status, found = checked(SCRIPT.replace("bounds=True", "bound=True").replace('"cpu"', "0"))
    assert status == 1
    assert 'Unexpected keyword argument "bound"' in found
    assert 'Argument "device" to "open" has incompatible type "int"' in found


def test_the_script_runs():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
