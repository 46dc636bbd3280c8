"""The engines that every test of this folder runs over."""

from __future__ import annotations

import pytest

from engines.backend import gpu_refusal
from engines.cpu import engine as cpu
from engines.cpu import host_loops
from engines.environment import DeviceChoice
from engines.linear import direct


@pytest.fixture(autouse=True)
def _no_host_loops():
    """Take Java's loops away, which another test of this process may have brought."""
    before = host_loops.registered()
    host_loops.register(None)
    yield
    host_loops.register(before)


@pytest.fixture(params=["cpu-scipy", "cpu-numba", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request, monkeypatch):
    """The device to ask for, with the CPU's kernel forced."""
    if request.param == "gpu":
        refusal = gpu_refusal()
        if refusal is not None:
            pytest.skip(f"no GPU: {refusal}")
        return DeviceChoice.GPU
    for limit in ("NUMBA_ENTRIES", "NUMBA_ENTRIES_AT_START"):
        monkeypatch.setattr(cpu, limit, 0 if request.param == "cpu-numba" else 10**12)
    return DeviceChoice.CPU


@pytest.fixture
def never_at_once(monkeypatch):
    """Small systems are swept first, as large ones are."""
    monkeypatch.setattr(direct, "AT_ONCE_STATES", 0)
