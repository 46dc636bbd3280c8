"""The lines of the log have the form that tools read."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from engines.cuda import pool
from engines.model.result import SolveResult, SweepCost
from prism_hooks.report import iterations_line, solve_line


def test_the_line_of_a_solve_is_prism_s():
    result = replace(
        SolveResult.exact(np.zeros(2), "Jacobi"),
        iterations=4,
        seconds=1.234,
        setup_seconds=0.216,
        sweeping_seconds=1.0,
    )
    assert iterations_line(result) == (
        "Jacobi: 4 iterations in 1.23 seconds (average 0.250000, setup 0.22)"
    )


def test_a_solve_without_sweeps_has_no_average():
    line = iterations_line(SolveResult.exact(np.zeros(2), "Power method"))
    assert line == "Power method: 0 iterations in 0.00 seconds (average 0.000000, setup 0.00)"


class Device:
    """A device whose pool has taken a million bytes for each unit of its number."""

    current = 0

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        Device.current = self._number

    def __exit__(self, *_: object) -> None:
        Device.current = 0


@pytest.mark.parametrize(
    ("engine", "megabytes"),
    [("GPU 3", "3.0"), ("GPU", "5.0"), ("GPU 1+3", "4.0"), ("CPU and GPU 2", "2.0")],
)
def test_the_line_of_a_gpu_s_solve_tells_its_memory(monkeypatch, engine, megabytes):
    held = SimpleNamespace(total_bytes=lambda: Device.current * 1_000_000)
    cupy = SimpleNamespace(
        get_default_memory_pool=lambda: held, cuda=SimpleNamespace(Device=Device)
    )
    monkeypatch.setattr(pool, "cupy", lambda: cupy)
    result = SolveResult.exact(np.zeros(2), "Jacobi")
    on_gpu = replace(result, cost=SweepCost(engine, "sweep", "csr", 0))
    text = f", at most {megabytes} MB of device memory, "
    assert text in solve_line(on_gpu, 5)
    assert "device memory" not in solve_line(result, 5)
