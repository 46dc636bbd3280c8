"""Importing our modules touches neither the GPU nor the JVM, and stays light."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import bridge
import engines
import prism_hooks


def modules_of(package):
    # An editable installation has the examples beside the package's own folder.
    folder = str(Path(package.__file__).parent)
    names = [package.__name__]
    names += [m.name for m in pkgutil.walk_packages([folder], package.__name__ + ".")]
    return [name for name in names if not name.endswith("__main__")]


def loaded_after(*names):
    """The top-level packages that a fresh interpreter has loaded after importing the names."""
    lines = [f"import {name}" for name in names]
    lines += [
        "import sys, json",
        "print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("package", [engines, bridge, prism_hooks])
def test_importing_everything_loads_neither_cupy_nor_jpype(package):
    loaded = loaded_after(*modules_of(package))
    assert not loaded & {"cupy", "cupyx", "cupy_backends", "jpype"}


def test_choosing_a_backend_is_light():
    assert not loaded_after("engines.devices.choice") & {"scipy", "numba", "cupy"}


def test_the_solvers_load_neither_scipy_nor_numba_before_they_need_them():
    assert not loaded_after("engines.reachability", "engines.steady_state") & {"scipy", "numba"}
