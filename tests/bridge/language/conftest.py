"""Real PRISM as an oracle for the language."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def prism_says(prism_install):
    """Return a function that asks real PRISM, in one process for all tests."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bridge.language.prism_oracle"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PRISM_DIR": str(prism_install.root)},
    )

    def ask(kind, text, **more):
        process.stdin.write(json.dumps({"ask": kind, "text": text, **more}) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, "PRISM's process ended"
        return json.loads(line)

    yield ask
    process.stdin.close()
    process.wait(timeout=60)
