"""Tests that need a GPU: marked and skipped as a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.cuda.driver import driver_present, gpu_refusal
from engines.model.environment import DeviceChoice, SolverEnvironment

HERE = Path(__file__).parent


class Absent(pytest.Item):
    """All tests of a file, where no GPU can run them."""

    def runtest(self):
        pytest.skip(f"no GPU: {gpu_refusal()}")


class WithoutGpu(pytest.Module):
    """A file whose thousands of tests need not be made to be skipped one by one."""

    def collect(self):
        assert self.obj  # It is imported all the same.
        yield Absent.from_parent(self, name="all tests")


def pytest_pycollect_makemodule(module_path, parent):
    if HERE in module_path.parents and not driver_present():
        return WithoutGpu.from_parent(parent, path=module_path)
    return None


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(autouse=True, scope="session")
def gpu():
    """CuPy, or a skip that says why there is none."""
    refusal = gpu_refusal()
    if refusal is not None:
        pytest.skip(f"no GPU: {refusal}")
    from engines.cuda.driver import cupy

    return cupy()


@pytest.fixture(params=["narrow", "wide"])
def offsets(request, monkeypatch):
    """Row offsets as the model wants them, and forced to 64 bits."""
    if request.param == "wide":
        monkeypatch.setattr("engines.cuda.rows.needs_wide_offsets", lambda _system: True)
    return request.param


@pytest.fixture
def poison(gpu):
    """Device memory that holds NaN doubles and indices of −1 before it is written."""
    pool = gpu.cuda.MemoryPool()

    def poisoned(size):
        memory = pool.malloc(size)
        if size:
            # Memory that was freed may still be in use on its stream, where its next use would
            # come later; this one is on another stream.
            gpu.cuda.runtime.deviceSynchronize()
            gpu.cuda.runtime.memset(memory.ptr, 0xFF, size)
            gpu.cuda.runtime.deviceSynchronize()
        return memory

    with gpu.cuda.using_allocator(poisoned):
        yield


@pytest.fixture(params=[(0, 0), (0, 0, 0), (0, 1), (1, 0), (0, 1, 2, 3), "all"])
def devices(request, gpu):
    """Names of devices: one that stands for several, some, and all that there are."""
    count = gpu.cuda.runtime.getDeviceCount()
    wanted = tuple(range(max(count, 2))) if request.param == "all" else request.param
    if max(wanted) >= count:
        pytest.skip(f"there are {count} GPUs, not {max(wanted) + 1}")
    return wanted


@pytest.fixture
def all_devices(gpu):
    """Names of all devices, two at least."""
    count = gpu.cuda.runtime.getDeviceCount()
    if count < 2:
        pytest.skip("there is one GPU")
    return tuple(range(count))


def on(device, **settings):
    return SolverEnvironment(device=device, **settings)


@pytest.fixture
def both():
    """Solve on the CPU and on the GPU with the same settings."""

    def solve(function, *arguments, settings, **keywords):
        return tuple(
            function(*arguments, on(device, **settings), **keywords)
            for device in (DeviceChoice.CPU, DeviceChoice.GPU)
        )

    return solve


@pytest.fixture
def without_numbers(monkeypatch):
    """Strong components without a look at the order of the states' numbers: all others are left."""

    class Uninformed:
        """Numbers that tell nothing."""

        parts = 1

        def __init__(self, _work, _ahead, _cut, open_, _leader, _space):
            self.left = sum(word.bit_count() for word in open_.get().tolist())

    monkeypatch.setattr("engines.cuda.components.Numbering", Uninformed)
