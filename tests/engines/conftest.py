"""The engines that every test of this folder runs over."""

from __future__ import annotations

import pytest

from engines.cuda.driver import gpu_refusal
from engines.methods import direct
from engines.model.environment import DeviceChoice


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request):
    """The device to ask for."""
    if request.param == "gpu":
        refusal = gpu_refusal()
        if refusal is not None:
            pytest.skip(f"no GPU: {refusal}")
        return DeviceChoice.GPU
    return DeviceChoice.CPU


@pytest.fixture
def never_at_once(monkeypatch):
    """Small systems are swept first, as large ones are."""
    monkeypatch.setattr(direct, "AT_ONCE_STATES", 0)
