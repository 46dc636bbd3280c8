"""Loading ahead of the first solve: what it loads, and that it compiles nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

SCRIPT = """
from engines.cpu import warm_up
pieces = sum(1 for _ in warm_up.steps())
from engines.cpu import kernels
functions = [getattr(kernels, x) for x in warm_up.SWEEPS]
loaded = sum(len(function.signatures) for function in functions)
compiled = sum(sum(function.stats.cache_misses.values()) for function in functions)
print(pieces, loaded, compiled, int(warm_up.kernels_ready()))
"""
COMPILE = "from engines.cpu import warm_up; warm_up._load_sweeps()"


def pieces_loaded(cache) -> list[int]:
    """Return what a fresh process loads: pieces, kernels, kernels compiled, ready for sweeps."""
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=cache, capture_output=True, text=True, check=True
    )
    return [int(word) for word in run.stdout.split()]


@pytest.mark.skipif(os.cpu_count() == 1, reason="one core: nothing is loaded ahead")
def test_nothing_is_compiled_ahead_and_what_is_compiled_is_loaded(tmp_path):
    cache = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    assert pieces_loaded(cache) == [3, 0, 0, 0]
    subprocess.run([sys.executable, "-c", COMPILE], env=cache, check=True)
    assert pieces_loaded(cache) == [4, 4, 0, 1]


def test_a_single_core_is_left_alone(monkeypatch):
    from engines.cpu import warm_up

    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0}, raising=False)
    assert list(warm_up.steps()) == []


def test_small_models_are_waited_out():
    from engines.cpu.warm_up import MOST_STATES_WITHOUT, ModelsMet

    def waits(met):
        done = threading.Event()
        threading.Thread(target=lambda: (met.wait_while_small(), done.set()), daemon=True).start()
        return done

    assert waits(ModelsMet()).wait(5.0), "a model that is still being built may be large"
    met = ModelsMet()
    met.meet(MOST_STATES_WITHOUT)
    begun = waits(met)
    assert not begun.wait(0.1)
    met.meet(MOST_STATES_WITHOUT + 1)
    assert begun.wait(5.0)


def test_small_systems_use_loaded_kernels(monkeypatch):
    from engines.cpu import engine, warm_up

    monkeypatch.setattr(warm_up, "_loaded", [])
    assert not engine.repays_numba(engine.NUMBA_ENTRIES - 1)
    monkeypatch.setattr(warm_up, "_loaded", ["sweeps"])
    assert engine.repays_numba(engine.NUMBA_ENTRIES_IF_READY)
    assert not engine.repays_numba(engine.NUMBA_ENTRIES_IF_READY - 1)
