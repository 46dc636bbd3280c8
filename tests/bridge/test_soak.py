"""Many models in one process: nothing that it holds grows with their number."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.prism
MEGABYTES, HEAP_MEGABYTES, OBJECTS = 100.0, 0.3, 400
"""By how much memory, Java's heap and Python's objects may differ between two samples."""
COMPILERS = 3
"""Threads that Java starts and ends as it has much or little to compile."""


@pytest.mark.parametrize(
    ("models", "checks"), [(40, 1), pytest.param(2000, 20, marks=pytest.mark.slow)]
)
def test_memory_files_and_threads_level_off(prism_install, tmp_path, models, checks):
    done = subprocess.run(
        [sys.executable, "-m", "tests.bridge.soak", str(models), str(checks)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={
            **os.environ,
            "PRISM_DIR": str(prism_install.root),
            "PRISM_JAVA_PARAMS": f"-Djava.io.tmpdir={tmp_path}",
            "TMPDIR": str(tmp_path),
        },
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["errors"] == []
    assert {len(given) for given in outcome["values"].values()} == {1}
    early, *_, late, first_threads, second_threads = outcome["samples"][3:]
    for before, after in [(early, late), (late, second_threads)]:
        for steady in ("descriptors", "files"):
            assert after[steady] <= before[steady], steady
        for steady in ("threads", "java_threads"):
            assert after[steady] <= before[steady] + COMPILERS, steady
    for before, after in [(early, late), (first_threads, second_threads)]:
        assert after["objects"] < before["objects"] + OBJECTS
        assert after["heap_mb"] < before["heap_mb"] + HEAP_MEGABYTES
        assert after["resident_mb"] < before["resident_mb"] + MEGABYTES
