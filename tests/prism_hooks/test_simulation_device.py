"""Few paths are sampled on the CPU, many on a GPU, and the same ones."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from engines.environment import DeviceChoice
from engines.errors import UnsupportedError
from prism_hooks import simulation_device
from prism_hooks.simulation_device import GPU_PATHS, DeviceSampler, device_for

AUTO, CPU, GPU = DeviceChoice.AUTO, DeviceChoice.CPU, DeviceChoice.GPU


class Fake:
    """A sampler that says where it is and which paths it was asked for."""

    def __init__(self, device, gpu_there):
        self.on_gpu = device is GPU or (device is AUTO and gpu_there)
        self.num_devices = int(self.on_gpu)
        self.compiled = None

    def sample(self, first_path, num_paths, _progress=None):
        return ("GPU" if self.on_gpu else "CPU", first_path, num_paths)

    run = sample


@pytest.fixture
def machine(monkeypatch):
    """Return a machine, with a GPU or without, that notes which devices were opened."""
    machine = SimpleNamespace(gpu=True, compiler=True, opened=[])

    def make(device):
        machine.opened.append(device)
        if device is CPU and not machine.compiler:
            raise UnsupportedError("no C compiler")
        return Fake(device, machine.gpu)

    machine.make = make
    monkeypatch.setattr(simulation_device, "driver_present", lambda: machine.gpu)
    refusal = lambda _: None if machine.gpu else "none"  # noqa: E731
    monkeypatch.setattr(simulation_device, "gpu_refusal", refusal)
    cuda = SimpleNamespace(Device=lambda _: nullcontext())
    monkeypatch.setattr(simulation_device, "cupy", lambda: SimpleNamespace(cuda=cuda))
    return machine


@pytest.mark.parametrize(
    ("asked", "num_paths", "expected"),
    [
        (AUTO, 0, CPU),
        (AUTO, GPU_PATHS - 1, CPU),
        (AUTO, GPU_PATHS, AUTO),
        (GPU, 1, GPU),
        (CPU, 10 * GPU_PATHS, CPU),
    ],
)
def test_a_gpu_is_opened_for_many_paths_or_on_demand(machine, asked, num_paths, expected):
    assert device_for(asked, num_paths) is expected
    sampler = DeviceSampler(machine.make, asked, 0, num_paths)
    sampler.open_for(0, 10)
    assert machine.opened == [expected]
    assert sampler.on_gpu == (expected is not CPU)


def test_who_does_not_know_how_many_paths_begins_on_the_cpu_and_moves_once(machine):
    sampler = DeviceSampler(machine.make, AUTO, 0, 0)
    first, found = 0, []
    while first < 3 * GPU_PATHS:
        sampler.open_for(first, GPU_PATHS // 2)
        found.append(sampler.sample(first, GPU_PATHS // 2))
        first += GPU_PATHS // 2
    assert machine.opened == [CPU, AUTO]
    assert [place for place, *_ in found] == ["CPU"] + 5 * ["GPU"]
    assert [begin for _, begin, _ in found] == list(range(0, first, GPU_PATHS // 2))
    assert f"from number {GPU_PATHS // 2} on were sampled on the GPU" in sampler.remark


@pytest.mark.parametrize("asked", [AUTO, CPU])
def test_nobody_moves_where_there_is_no_gpu_or_it_is_not_wanted(machine, asked):
    machine.gpu = asked is CPU
    sampler = DeviceSampler(machine.make, asked, 0, 0)
    sampler.open_for(0, 5 * GPU_PATHS)
    assert machine.opened == [CPU]
    assert (sampler.on_gpu, sampler.remark) == (False, "")


def test_without_a_compiler_a_gpu_samples_few_paths_too(machine):
    machine.compiler = False
    assert DeviceSampler(machine.make, AUTO, 0, 10).on_gpu
    machine.gpu = False
    with pytest.raises(UnsupportedError, match="no C compiler"):
        DeviceSampler(machine.make, AUTO, 0, 10)
