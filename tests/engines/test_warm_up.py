"""Loading ahead of the first solve: what it loads, and that it compiles nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
from engines.cpu import warm_up
pieces = sum(1 for _ in warm_up.steps())
from engines.cpu import graph_kernels
kernel = graph_kernels.closures.close_some
print(pieces, len(kernel.signatures), sum(kernel.stats.cache_misses.values()))
"""


def pieces_loaded(**variables: str) -> list[int]:
    """Return the pieces loaded by a fresh process, the kernels then ready, and those compiled."""
    environment = {**os.environ, **variables}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    return [int(word) for word in run.stdout.split()]


@pytest.mark.skipif(os.cpu_count() == 1, reason="one core: nothing is loaded ahead")
def test_nothing_is_compiled_ahead_and_what_is_compiled_is_loaded(tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert pieces_loaded(**cache) == [4, 0, 0]
    compile_once = (
        "import numpy as np; from engines.cpu import warm_up, graph_kernels; "
        "warm_up._load_kernels()"
    )
    subprocess.run([sys.executable, "-c", compile_once], env={**os.environ, **cache}, check=True)
    assert pieces_loaded(**cache) == [5, 1, 0]


def test_a_single_core_is_left_alone(monkeypatch):
    from engines.cpu import warm_up

    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0}, raising=False)
    assert list(warm_up.steps()) == []
