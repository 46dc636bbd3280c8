"""The engines that every test of this folder runs over."""

from __future__ import annotations

import pytest

from engines.cuda.driver import driver_present, gpu_refusal
from engines.methods import direct
from engines.model.environment import DeviceChoice

DEVICES = ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)] if driver_present() else ["cpu"]
"""Thousands of tests run over them; `test_devices.py` says when the GPU is not among them."""


@pytest.fixture(params=DEVICES)
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
