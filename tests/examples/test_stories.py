"""The stories in `examples/` run, and what they print is right."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture
def story(tmp_path, prism_install):
    """Return a function that runs a story, with `prism-gpu` on the path, and returns its output."""
    command = tmp_path / "bin" / "prism-gpu"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bridge "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    modules = (str(ROOT), os.environ.get("PYTHONPATH", ""))
    environment = {
        **os.environ,
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, modules)),
        "PRISM_DIR": str(prism_install.root),
    }

    def run(name: str, *words: str) -> str:
        program = "sh" if name.endswith(".sh") else sys.executable
        done = subprocess.run(
            [program, str(EXAMPLES / name), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=280,
            stdin=subprocess.DEVNULL,
            cwd=tmp_path,
            env=environment,
        )
        assert done.returncode == 0, done.stdout
        assert "Traceback" not in done.stdout
        return done.stdout

    return run


def test_every_story_has_a_test():
    here = Path(__file__).read_text(encoding="utf-8")
    for path in EXAMPLES.iterdir():
        if path.suffix in (".py", ".sh"):
            assert f'"{path.name}"' in here, path.name


@pytest.mark.prism
def test_the_python_api(story):
    output = story("python_api.py")
    assert "CTMC: 2772 states, 12832 transitions" in output
    assert "premium quality: 0.999833069267" in output


@pytest.mark.prism
def test_an_experiment_as_a_table(story):
    output = story("pandas_experiment.py")
    rows = [line.split() for line in output.splitlines() if line.split()[:1] == ["31"]]
    # With pandas a row has both properties; the customers come first either way.
    assert float(rows[0][1]) == pytest.approx(31.815, rel=1e-5)


@pytest.mark.prism
def test_a_run_shared_by_two_machines(story):
    output = story("two_machines.sh")
    assert "2 of 2 operators solved" in output
    first, second = re.findall(r"^Result: (\S+)", output, re.MULTILINE)
    assert float(first) == pytest.approx(0.999833069267, abs=1e-9)
    assert second == "true"


@pytest.mark.prism
@pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib (the extra plots)"
)
def test_the_walk_through_one_model_leaves_its_pictures(story, tmp_path):
    output = story("walk_through.py", "pictures")
    assert "Jacobi: not converged after 1000 sweeps" in output
    assert "JOR: converged after 95 sweeps" in output
    names = {"matrix", "exit_rates", "sweeps", "recovery", "premium"}
    for name in names:
        assert (tmp_path / "pictures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert {path.stem for path in (tmp_path / "pictures").iterdir()} == names


@pytest.mark.slow
@pytest.mark.prism
def test_a_published_experiment(story):
    if importlib.util.find_spec("bridge.reproduce") is None:
        pytest.skip("prism-gpu has no command reproduce")
    assert "herman" in story("reproduce.sh")


@pytest.mark.slow
def test_the_first_three_results_in_an_environment_of_their_own(tmp_path):
    # In a copy, because the environment is made beside it.
    if not (ROOT / ".git").exists():
        pytest.skip("needs a clone, to make a clone of")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    script = ["sh", str(clone / "examples" / "quickstart.sh")]
    done = subprocess.run(script, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    _, premium, customers = map(float, re.findall(r"^Result: (\S+)", done.stdout, re.MULTILINE))
    assert premium == pytest.approx(0.9987027807, rel=1e-6)
    assert customers == pytest.approx(255.82809698, rel=1e-6)


def test_the_script_that_reproduces_names_a_case_and_a_scale():
    text = (EXAMPLES / "reproduce.sh").read_text(encoding="utf-8")
    assert "prism-gpu reproduce herman" in text
    assert "--scale small" in text
