"""The compiled library under the compiler's sanitizers: no test of it leaves its arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engines.host.build import SANITIZED, build, compiler

FOLDER = Path(__file__).parent
OTHERS = (
    "test_automatic.py::test_elimination_agrees_with_dense_algebra",
    "test_automatic.py::test_elimination_of_a_class_balances_it",
    "test_policy_iteration.py::test_probabilities_are_those_of_the_best_strategy",
    *("test_products.py", "test_scaling.py", "test_symmetric.py"),
    *("test_topological.py", "test_topological_intervals.py"),
)
"""Tests of the library besides those that are named after it."""

LOADED = """
import sys, engines.host
engines.host.__path__.append(sys.argv[1])
from engines.host.compiled.library import library
assert library()._name.startswith(sys.argv[1]), library()._name
"""

RUN = f"{LOADED}\nimport pytest\nsys.exit(pytest.main(sys.argv[2:]))"

OVERRUN = f"""{LOADED}
import numpy as np
from engines.model.csr import CsrMatrix
from engines.host.compiled.library import HostMatrix
from engines.host.compiled.rows import _ROW_SUMS
matrix = HostMatrix.of(CsrMatrix(np.arange(9), np.zeros(8, np.int32), np.ones(8), 1))
_ROW_SUMS(matrix, np.empty(int(sys.argv[2])))
"""


@pytest.fixture(scope="module")
def sanitizers():
    """The sanitizers' own libraries, which a process must load first."""
    try:
        command = compiler()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    found = []
    for name in ("libasan.so", "libubsan.so"):
        asked = [*command, f"-print-file-name={name}"]
        path = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        if not Path(path).is_absolute():
            pytest.skip(f"{command[0]} comes without {name}")
        found.append(path)
    return found


@pytest.fixture(scope="module")
def run_sanitized(sanitizers, tmp_path_factory):
    """Run Python code in a process of its own whose compiled library is a sanitized one."""
    folder = tmp_path_factory.mktemp("sanitized")
    build(folder, SANITIZED)
    environment = {
        **{name: os.environ[name] for name in os.environ if not name.startswith("PYTEST_")},
        "LD_PRELOAD": " ".join(sanitizers),
        # Python itself leaves memory behind, and its own blocks have no guards around them.
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }

    def run(code, *arguments):
        return subprocess.run(
            [sys.executable, "-c", code, str(folder), *arguments],
            env=environment,
            cwd=FOLDER.parents[1],
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_what_leaves_its_arrays_is_noticed(run_sanitized):
    assert run_sanitized(OVERRUN, "8").returncode == 0
    overrun = run_sanitized(OVERRUN, "7")
    assert overrun.returncode != 0
    assert "heap-buffer-overflow" in overrun.stderr
    assert "pg_row_sums" in overrun.stderr


def test_no_test_of_the_library_leaves_its_arrays(run_sanitized):
    named = [*FOLDER.glob("test_host_*.py"), *FOLDER.glob("diagrams/test_host_*.py")]
    files = [path for path in named if path.name != Path(__file__).name]
    assert len(files) > 4
    options = ("-q", "-x", "-p", "no:cacheprovider", "-m", "not gpu and not slow and not prism")
    done = run_sanitized(RUN, *options, *map(str, files), *(f"{FOLDER}/{name}" for name in OTHERS))
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-10_000:]
    assert " passed" in done.stdout
