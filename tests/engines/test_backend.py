"""The choice between CPU and GPU, on machines where something is missing."""

import sys
import threading

import numpy as np
import pytest

from engines import backend
from engines.cpu.engine import CpuEngine
from engines.environment import DeviceChoice, SolverEnvironment
from engines.errors import UnsupportedError
from engines.formats.csr import CsrMatrix
from engines.system import SweepSystem


@pytest.fixture
def forgetful():
    """Forget what was found out about this machine, before and after."""
    backend.cupy.cache_clear()
    yield
    backend.cupy.cache_clear()


@pytest.fixture
def used(monkeypatch):
    """Return what says whether a GPU is in use, which it is not."""
    event = threading.Event()
    monkeypatch.setattr(backend, "_used", event)
    return event


@pytest.fixture
def without_cupy(forgetful, monkeypatch):
    assert forgetful is None
    monkeypatch.setattr(backend, "driver_present", lambda: True)
    monkeypatch.setitem(sys.modules, "cupy", None)


def large_system(size=backend.GPU_ENTRIES_AT_START):
    diagonal = np.arange(size, dtype=np.int32)
    offsets = np.arange(size + 1, dtype=np.int32)
    return SweepSystem(CsrMatrix(offsets, diagonal, np.full(size, 0.5), size), np.zeros(size))


def small_system():
    one = np.zeros(1, dtype=np.int32)
    return SweepSystem(CsrMatrix(np.array([0, 1]), one, np.array([0.5]), 1), np.zeros(1))


@pytest.mark.usefixtures("without_cupy")
def test_missing_cupy_is_named_with_the_command_that_gets_it():
    assert 'pip install "prism-gpu[cuda12x]"' in backend.gpu_refusal()
    with pytest.raises(UnsupportedError, match="CuPy is not installed"):
        backend.choose_engine(SolverEnvironment(device=DeviceChoice.GPU), large_system())


@pytest.mark.usefixtures("without_cupy")
def test_without_a_wish_the_cpu_takes_over_and_says_why():
    engine, note = backend.choose_engine(SolverEnvironment(), large_system())
    assert isinstance(engine, CpuEngine)
    assert note.startswith("GPU not used: CuPy is not installed")


@pytest.mark.usefixtures("without_cupy")
def test_a_small_model_asks_for_no_gpu_and_says_nothing():
    engine, note = backend.choose_engine(SolverEnvironment(), small_system())
    assert isinstance(engine, CpuEngine)
    assert note == ""


@pytest.mark.usefixtures("without_cupy")
def test_no_gpu_is_opened_for_what_a_cpu_solves_meanwhile(used):
    automatic = SolverEnvironment()
    for size in (backend.GPU_ENTRIES, backend.GPU_ENTRIES_AT_START - 1):
        engine, note = backend.choose_engine(automatic, large_system(size))
        assert isinstance(engine, CpuEngine)
        assert note == ""
    assert backend.choose_engine(automatic, large_system())[1].startswith("GPU not used")
    used.set()
    middling = large_system(backend.GPU_ENTRIES)
    assert backend.choose_engine(automatic, middling)[1].startswith("GPU not used")
    assert backend.choose_engine(automatic, large_system(backend.GPU_ENTRIES - 1))[1] == ""


@pytest.mark.usefixtures("forgetful")
def test_a_missing_driver_is_named(monkeypatch):
    monkeypatch.setattr(backend, "driver_present", lambda: False)
    assert "no NVIDIA driver" in backend.gpu_refusal()
    assert backend.choose_engine(SolverEnvironment(), large_system())[1] == ""


@pytest.mark.parametrize("value", ["", "-1"])
def test_hidden_devices_count_as_no_driver(monkeypatch, value):
    backend.driver_present.cache_clear()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert not backend.driver_present()
    backend.driver_present.cache_clear()
