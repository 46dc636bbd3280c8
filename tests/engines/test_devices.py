"""The choice between CPU and GPU, on machines where something is missing."""

import os
import re
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from engines.cuda import driver
from engines.devices import choice, graph, two_sided
from engines.devices.choice import not_shared_out
from engines.devices.colours import GaussSeidelScheme
from engines.errors import UnsupportedError
from engines.host.colours import Order
from engines.host.engine import CpuEngine
from engines.model.choice import Format
from engines.model.csr import CsrMatrix
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.events import Kind, told
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.result import SweepCost
from engines.systems.one_sided import SweepSystem
from tests.engines.conftest import DEVICES


@pytest.fixture
def forgetful():
    """Forget what was found out about this machine, before and after."""
    driver.find_cupy.cache_clear()
    yield
    driver.find_cupy.cache_clear()


@pytest.fixture
def used(monkeypatch):
    """Return what says whether a GPU is in use, which it is not."""
    event = threading.Event()
    monkeypatch.setattr(driver, "_used", event)
    return event


@pytest.fixture
def without_cupy(forgetful, monkeypatch):
    assert forgetful is None
    monkeypatch.setattr(driver, "driver_present", lambda: True)
    monkeypatch.setitem(sys.modules, "cupy", None)


def large_system(size=choice.GPU_ENTRIES_AT_START):
    diagonal = np.arange(size, dtype=np.int32)
    offsets = np.arange(size + 1, dtype=np.int32)
    return SweepSystem(CsrMatrix(offsets, diagonal, np.full(size, 0.5), size), np.zeros(size))


def refused(_engine, events):
    return [event.kind for event in events] == [Kind.GPU_REFUSED]


def small_system():
    one = np.zeros(1, dtype=np.int32)
    return SweepSystem(CsrMatrix(np.array([0, 1]), one, np.array([0.5]), 1), np.zeros(1))


@pytest.mark.usefixtures("without_cupy")
def test_missing_cupy_is_named_with_the_command_that_gets_it():
    assert 'pip install "prism-gpu[cuda12x]"' in driver.gpu_refusal()
    with pytest.raises(UnsupportedError, match="CuPy is not installed"):
        choice.choose_engine(SolverEnvironment(device=DeviceChoice.GPU), large_system())


@pytest.mark.usefixtures("without_cupy")
def test_without_a_wish_the_cpu_takes_over_and_says_why():
    engine, events = choice.choose_engine(SolverEnvironment(), large_system())
    assert isinstance(engine, CpuEngine)
    assert told(events).startswith("GPU not used: CuPy is not installed")


@pytest.mark.parametrize("device", [DeviceChoice.CPU, DeviceChoice.AUTO])
def test_the_cpu_takes_a_format_that_was_named_however_it_came_to_sweep(device):
    environment = SolverEnvironment(device=device, matrix_format=Format.VALUES)
    engine, _ = choice.choose_engine(environment, small_system())
    assert engine.sweeper(small_system(), -1.0, True).cost.format == Format.VALUES


@pytest.mark.usefixtures("without_cupy")
@pytest.mark.parametrize("devices", [(), (0,)])
def test_what_one_gpu_was_asked_for_needs_no_remark(devices):
    assert not_shared_out(SimpleNamespace(gpus=devices), "bounds") == ()
    assert not_shared_out(CpuEngine(), "bounds") == ()


def test_what_is_not_shared_out_among_several_gpus_is_remarked():
    several = SimpleNamespace(gpus=(0, 1, 2))
    events = not_shared_out(several, "one sweeps bounds")
    assert told(events) == "not shared among 3 GPUs: one sweeps bounds"


def test_gauss_seidel_on_several_gpus_says_that_one_sweeps(monkeypatch):
    place = SimpleNamespace(gpus=(0, 1))
    scheme = GaussSeidelScheme(place, Order.FORWARDS)
    on_cpu = GaussSeidelScheme(CpuEngine(), Order.FORWARDS)
    monkeypatch.setattr(scheme, "_device_engine", lambda: on_cpu)
    monkeypatch.setattr(on_cpu, "opposite_is_fresher", lambda *_: False)
    sweeper = scheme.sweeper(small_system(), -1.0, False)
    assert "not shared among 2 GPUs: one sweeps in colours" in told(sweeper.events)


def test_bounds_on_several_gpus_say_that_one_sweeps(monkeypatch):
    swept = SimpleNamespace(cost=SweepCost((0,), "emulated", "csr", 0))
    monkeypatch.setattr("engines.cuda.two_sided.CudaTwoSidedSweeper", lambda *_: swept)
    place = SimpleNamespace(gpus=(0, 1)), ()
    monkeypatch.setattr(two_sided, "choose_engine", lambda *_: place)
    asked = SimpleNamespace(system=small_system())
    sweeper, events = two_sided.two_sided_sweeper(asked, SolverEnvironment(), -1.0)
    assert sweeper is swept
    assert "not shared among 2 GPUs: one sweeps bounds" in told(events)


def test_a_small_model_asks_for_no_gpu_and_says_nothing():
    engine, events = choice.choose_engine(SolverEnvironment(), small_system())
    assert isinstance(engine, CpuEngine)
    assert events == ()


@pytest.mark.usefixtures("without_cupy")
def test_no_gpu_is_opened_for_what_a_cpu_solves_meanwhile(used):
    automatic = SolverEnvironment()
    for size in (choice.GPU_ENTRIES, choice.GPU_ENTRIES_AT_START - 1):
        engine, events = choice.choose_engine(automatic, large_system(size))
        assert isinstance(engine, CpuEngine)
        assert events == ()
    assert refused(*choice.choose_engine(automatic, large_system()))
    used.set()
    middling = large_system(choice.GPU_ENTRIES)
    assert refused(*choice.choose_engine(automatic, middling))
    assert not refused(*choice.choose_engine(automatic, large_system(choice.GPU_ENTRIES - 1)))


@pytest.mark.usefixtures("forgetful")
def test_a_missing_driver_is_named(monkeypatch):
    monkeypatch.setattr(driver, "driver_present", lambda: False)
    assert "no NVIDIA driver" in driver.gpu_refusal()
    assert choice.choose_engine(SolverEnvironment(), large_system())[1] == ()


def test_searches_in_graphs_take_no_more_of_a_gpu_than_is_allowed(monkeypatch):
    monkeypatch.setattr(graph, "gpu_refusal", lambda _number: None)
    model = ExplicitModel(ModelKind.DTMC, large_system(1_000).matrix)
    for room, used in ((None, 0), (80_000, 0), (79_999, None)):
        environment = SolverEnvironment(device=DeviceChoice.GPU, device_memory=room)
        assert graph._gpu_for(model, environment) == used


BROKEN = {
    "another NumPy's": 'raise ValueError("numpy.dtype size changed\\nExpected 96, got 88")',
    "half of one": "raise AttributeError(\"module has no attribute 'ndarray'\")",
    "no libraries": 'raise RuntimeError("libcudart.so.12: cannot open")',
    "an empty folder": None,
    "devices not counted": """
class Runtime:
    def getDeviceCount(self):
        raise SystemError("returned a result with an exception set")
class cuda:
    runtime = Runtime()
""",
    "no compiler": """
class cuda:
    class runtime:
        getDeviceCount = staticmethod(lambda: 1)
    class nvrtc:
        def getVersion():
            raise RuntimeError("libnvrtc.so.13 cannot be loaded")
""",
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.usefixtures("forgetful")
def test_whatever_a_broken_cupy_raises_is_a_reason_in_one_line(monkeypatch, tmp_path, what):
    (tmp_path / "cupy").mkdir()
    if BROKEN[what] is not None:
        (tmp_path / "cupy" / "__init__.py").write_text(BROKEN[what])
    monkeypatch.setattr(driver, "driver_present", lambda: True)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    engine, events = choice.choose_engine(SolverEnvironment(), large_system())
    sys.modules.pop("cupy", None)
    assert isinstance(engine, CpuEngine)
    refusal = driver.gpu_refusal()
    assert re.fullmatch(r"(CuPy|CUDA)[^\n]* \([^\n]*Error.*\)", refusal)
    assert events == (Kind.GPU_REFUSED(reason=refusal),)
    assert "cupy" not in sys.modules  # it is not tried again
    choice.preload(0)
    with pytest.raises(UnsupportedError, match="no GPU can be used"):
        choice.choose_engine(SolverEnvironment(device=DeviceChoice.GPU), large_system())


@pytest.mark.usefixtures("forgetful")
def test_cupy_keeps_what_it_compiles_in_a_folder_of_the_user_s_own(monkeypatch, tmp_path):
    (tmp_path / "public").mkdir()
    (tmp_path / "public").chmod(0o777)
    monkeypatch.setenv("PRISM_GPU_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "public"))
    monkeypatch.setattr(driver, "driver_present", lambda: True)
    monkeypatch.setitem(sys.modules, "cupy", None)
    driver.gpu_refusal()
    folder = tmp_path / "cache" / "cuda"
    assert os.environ["CUPY_CACHE_DIR"] == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("value", ["", "-1"])
def test_hidden_devices_count_as_no_driver(monkeypatch, value):
    driver.driver_present.cache_clear()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert not driver.driver_present()
    driver.driver_present.cache_clear()


def test_the_gpu_is_among_the_devices_that_all_tests_run_over():
    if not driver.driver_present():
        pytest.skip(f"all devices are the CPU alone, no GPU: {driver.gpu_refusal()}")
    assert len(DEVICES) == 2
