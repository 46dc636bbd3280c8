"""Processes that are started: what they import, and that they end with whoever started them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import engines
from engines.process import child

KILLED = """
import os, sys
from pathlib import Path
from engines.process import child
child.run(["/bin/sh", "-c", "echo $$ > " + sys.argv[1] + "; sleep 60 & wait"])
"""


def test_nothing_that_was_started_outlives_a_killed_process(tmp_path):
    told = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", KILLED, str(told)])
    wait_until(lambda: told.exists() and told.read_text().strip())
    shell = int(told.read_text())
    parent.kill()
    parent.wait()
    wait_until(lambda: not is_running(shell))


def wait_until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_command_gives_its_output_and_code():
    done = child.run(["/bin/sh", "-c", "echo $X; echo no >&2; exit 3"], {"X": "yes"})
    assert (done.returncode, done.stdout, done.stderr) == (3, "yes\n", "no\n")
    with pytest.raises(FileNotFoundError):
        child.run(["/nowhere/at/all"])


def hostile(folder: Path) -> Path:
    """Fill a folder with modules that say that they were imported."""
    for name in ("json", "runpy", "multiprocessing", "numpy", "engines"):
        told = f"open({str(folder / 'imported')!r}, 'a').write({name!r})\n"
        (folder / f"{name}.py").write_text(told)
    return folder / "imported"


def test_nothing_is_imported_from_the_working_folder(tmp_path):
    imported = hostile(tmp_path)
    for command in (child.module("engines.errors"), child.module("json.tool")):
        subprocess.run(command, cwd=tmp_path, check=True, input=b"1", stdout=subprocess.DEVNULL)
    assert not imported.exists()


def test_a_child_finds_our_packages_and_none_of_their_parts_at_the_top(tmp_path, monkeypatch):
    # engines/cuda at the top would hide the package `cuda`, which CuPy is made of.
    package = Path(engines.__file__).parent
    (tmp_path / "told.py").write_text("import json, sys, engines; print(json.dumps(sys.path))")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = subprocess.run(child.module("told"), check=True, capture_output=True, cwd=tmp_path)
    found = [Path(folder) for folder in json.loads(done.stdout)]
    assert package.parent in found
    assert not [folder for folder in found if package in (folder, *folder.parents)]


def test_workers_import_nothing_from_the_working_folder(tmp_path, monkeypatch):
    for needed in ("distributed", "cryptography"):
        pytest.importorskip(needed)
    from engines.montecarlo.cluster_client import OpenCluster

    imported = hostile(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    with OpenCluster("local:1") as cluster:
        assert cluster.num_workers == 1
    assert not imported.exists()
