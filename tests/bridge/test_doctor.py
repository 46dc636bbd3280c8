"""The doctor: its findings, its table and its exit code, with everything it looks at made up."""

from __future__ import annotations

import importlib.util
import io
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bridge import doctor as module
from bridge.doctor import Finding, cuda_driver_version, doctor, examine, report
from bridge.install import JavaInstall, PrismInstall
from bridge.versions import NoPrismError, RequirementError
from engines.errors import BridgeError, UnsupportedError
from tests.conftest import run_command


def prism(version="4.10.2-dev"):
    root = Path("/made/up/prism")
    return PrismInstall(root, version, root / "lib/prism.jar", (), root / "lib", "PRISM_DIR")


def java(has_compiler=True):
    home = Path("/made/up/jdk")
    return JavaInstall(home, home / "jvm", "17.0.9", 17, has_compiler, "Nobody", "JAVA_HOME")


def raiser(error):
    def call(*_arguments):
        raise error

    return call


def fake_module(monkeypatch, name, **contents):
    fake = ModuleType(name)
    vars(fake).update(contents)
    monkeypatch.setitem(sys.modules, name, fake)


@pytest.fixture
def healthy(monkeypatch, tmp_path):
    """A host where all is well but for the GPU: no driver and no CuPy."""
    monkeypatch.setattr(module, "find_prism", lambda _prism_dir: prism())
    monkeypatch.setattr(module, "find_java", java)
    monkeypatch.setattr(module, "_PACKAGES", {"json": "numpy"})
    monkeypatch.setattr(module, "_CUPY_DISTRIBUTIONS", ())
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(module, "_driver_library", lambda: None)
    monkeypatch.setattr(module, "_nvrtc_version", lambda _library: None)
    monkeypatch.setattr("engines.process.cache.cache_folder", lambda: tmp_path)
    fake_module(
        monkeypatch,
        "engines.cuda.driver",
        device_summary=raiser(UnsupportedError("CuPy is not installed")),
    )


class Driver:
    """As much of libcuda as the doctor calls; ctypes' references are filled in."""

    def __init__(self, version=13000, devices=("NVIDIA H200",)):
        self.version, self.devices = version, devices

    def cuDriverGetVersion(self, version):  # noqa: N802 (the driver's own name)
        version._obj.value = self.version
        return 0

    def cuInit(self, _flags):  # noqa: N802
        return 0 if self.devices else 100

    def cuDeviceGetCount(self, count):  # noqa: N802
        count._obj.value = len(self.devices)
        return 0

    def cuDeviceGet(self, device, ordinal):  # noqa: N802
        device._obj.value = ordinal

    def cuDeviceGetName(self, name, _length, device):  # noqa: N802
        name.value = self.devices[device.value].encode()

    def cuDeviceTotalMem_v2(self, memory, _device):  # noqa: N802
        memory._obj.value = 3 << 29

    def cuDeviceGetAttribute(self, value, attribute, _device):  # noqa: N802
        value._obj.value = {75: 9, 76: 0}[attribute]


def with_driver(monkeypatch, **settings):
    monkeypatch.setattr(module, "_driver_library", lambda: Driver(**settings))


def with_cupy(monkeypatch, **versions):
    versions = {name.replace("_", "-"): version for name, version in versions.items()}
    monkeypatch.setattr(module, "_CUPY_DISTRIBUTIONS", tuple(versions))
    monkeypatch.setattr(module, "_distribution_version", versions.get)


def finding(name):
    return next(found for found in examine() if found.name == name)


@pytest.mark.usefixtures("healthy")
def test_without_a_gpu_a_run_works_on_the_cpu(capsys):
    assert doctor(None) == 0
    out = capsys.readouterr().out
    assert "4.10.2-dev in /made/up/prism" in out
    assert "17.0.9 by Nobody in /made/up/jdk" in out
    assert "runs use the CPU engine" in out
    assert out.endswith("prism-gpu can run, on the CPU only.\n")


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize(
    ("replaced", "value", "line"),
    [
        ("find_prism", raiser(RequirementError("No PRISM found", "get it")), "No PRISM found"),
        ("find_prism", lambda _dir: prism("4.8.1"), "PRISM 4.8.1 in /made/up/prism is not"),
        ("find_java", raiser(RequirementError("No Java found", "get it")), "No Java found"),
        ("find_java", lambda: java(has_compiler=False), "JRE without a compiler"),
        ("_PACKAGES", {"no_such_package": "jpype1"}, "pip install --force-reinstall jpype1"),
    ],
)
def test_anything_required_that_is_missing_ends_in_1(monkeypatch, capsys, replaced, value, line):
    monkeypatch.setattr(module, replaced, value)
    assert doctor(None) == 1
    out = capsys.readouterr().out
    assert line in out
    assert "prism-gpu cannot run yet: see " in out


@pytest.mark.usefixtures("healthy")
def test_our_front_end_takes_the_place_of_a_prism_that_is_nowhere(monkeypatch, capsys):
    monkeypatch.setattr(module, "find_prism", raiser(NoPrismError("No PRISM found", "get it")))
    monkeypatch.setattr(module, "find_java", raiser(RequirementError("No Java found", "get it")))
    assert doctor(None) == 0
    out = capsys.readouterr().out
    assert "No PRISM found" in out
    assert out.endswith(
        "prism-gpu can run, on the CPU only: PRISM models, .umb and .tra files work now. What "
        "PRISM's own pipeline does besides needs PRISM 4.10 and a JDK.\n"
    )


@pytest.mark.usefixtures("healthy")
def test_an_unusable_cache_folder_ends_in_1(monkeypatch, capsys):
    refuse = raiser(BridgeError("folder belongs to another user"))
    monkeypatch.setattr("engines.process.cache.cache_folder", refuse)
    assert doctor(None) == 1
    assert "cannot run yet: see cache folder" in capsys.readouterr().out


@pytest.mark.usefixtures("healthy")
def test_the_folder_that_the_user_named_is_the_one_examined(monkeypatch):
    seen = []
    monkeypatch.setattr(module, "find_prism", lambda folder: seen.append(folder) or prism())
    examine("/named")
    assert seen == ["/named"]


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize(
    ("version", "extra"), [(12080, "cuda12x"), (13000, "cuda13x"), (13010, "cuda13x")]
)
def test_cupys_extra_follows_the_driver(monkeypatch, version, extra):
    with_driver(monkeypatch, version=version)
    assert cuda_driver_version() == (version // 1000, version % 1000 // 10)
    cupy = finding("CuPy")
    assert not cupy.ok
    assert not cupy.required
    assert cupy.remedy == f'pip install "prism-gpu[{extra}]"'


@pytest.mark.usefixtures("healthy")
def test_without_a_driver_cupy_is_not_urged():
    assert finding("CuPy").remedy is None


@pytest.mark.usefixtures("healthy")
def test_a_driver_older_than_cuda_12_is_not_enough(monkeypatch):
    with_driver(monkeypatch, version=11040)
    assert not finding("CUDA driver").ok
    assert "11.4" in finding("CUDA driver").detail


@pytest.mark.usefixtures("healthy")
def test_cupy_must_fit_the_driver_and_be_alone(monkeypatch):
    with_driver(monkeypatch, version=12080)
    with_cupy(monkeypatch, cupy_cuda12x="14.0")
    assert finding("CuPy") == Finding("CuPy", True, False, "cupy-cuda12x 14.0")
    with_cupy(monkeypatch, cupy_cuda13x="14.0")
    assert "needs a driver for CUDA 13" in finding("CuPy").detail
    assert finding("CuPy").remedy == (
        'pip uninstall cupy-cuda13x && pip install "prism-gpu[cuda12x]"'
    )
    with_cupy(monkeypatch, cupy_cuda12x="14.0", cupy="14.0")
    assert "more than one" in finding("CuPy").detail


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize(
    ("cuda", "package"), [("12", "nvidia-cuda-nvrtc-cu12"), ("13", "nvidia-cuda-nvrtc")]
)
def test_nvrtc_is_the_one_of_cupys_cuda(monkeypatch, cuda, package):
    with_driver(monkeypatch)
    with_cupy(monkeypatch, **{f"cupy_cuda{cuda}x": "14.0"})
    tried = []
    monkeypatch.setattr(module, "_nvrtc_version", tried.append)
    assert finding("NVRTC").remedy == f"pip install {package}"
    assert all(cuda in Path(library).name for library in tried)
    monkeypatch.setattr(module, "_nvrtc_version", lambda _library: (int(cuda), 5))
    assert finding("NVRTC").detail.startswith(f"{cuda}.5")


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize(("nvrtc", "verdict"), [((12, 8), "on the GPU"), (None, "on the CPU only")])
def test_gpus_that_the_engines_see_are_listed(monkeypatch, capsys, nvrtc, verdict):
    with_driver(monkeypatch)
    with_cupy(monkeypatch, cupy_cuda12x="14.0")
    monkeypatch.setattr(module, "_nvrtc_version", lambda _library: nvrtc)
    lines = ["GPU 0: NVIDIA H200, 9 GiB free", "GPU 1: NVIDIA H100, 5 GiB free", "CuPy 14.0"]
    fake_module(monkeypatch, "engines.cuda.driver", device_summary=lambda: lines)
    assert examine()[-3:] == [
        Finding("GPU 0", True, False, "NVIDIA H200, 9 GiB free"),
        Finding("GPU 1", True, False, "NVIDIA H100, 5 GiB free"),
        Finding("GPU engine", True, False, "CuPy 14.0"),
    ]
    assert doctor(None) == 0
    assert f"can run, {verdict}" in capsys.readouterr().out


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (UnsupportedError("CUDA reports no device"), "CUDA reports no device"),
        (ValueError("cudaErrorUnknown"), "CuPy fails: ValueError: cudaErrorUnknown"),
    ],
)
def test_a_gpu_that_only_the_driver_sees_is_told(monkeypatch, error, reason):
    with_driver(monkeypatch)
    with_cupy(monkeypatch, cupy_cuda12x="14.0")
    fake_module(monkeypatch, "engines.cuda.driver", device_summary=raiser(error))
    gpu = finding("GPU")
    assert not gpu.ok
    assert gpu.detail == (
        f"{reason}, so runs use the CPU engine\n"
        "the driver sees NVIDIA H200, 1.5 GiB, compute capability 9.0"
    )


@pytest.mark.usefixtures("healthy")
def test_a_driver_without_a_gpu_is_no_error(monkeypatch):
    with_driver(monkeypatch, devices=())
    assert finding("GPU").detail == "not usable without CuPy, so runs use the CPU engine"


FINDINGS = [
    Finding("PRISM", True, True, "4.10"),
    Finding("Java", False, True, "No Java found. Searched:\n  JAVA_HOME", "get a JDK"),
    Finding("CUDA driver", False, False, "none in /bücher"),
]


def test_the_table_is_aligned(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "utf-8"))
    assert report(FINDINGS).splitlines() == [
        "\N{CHECK MARK} PRISM        4.10",
        "\N{BALLOT X} Java         No Java found. Searched:",
        "                 JAVA_HOME",
        "               \N{RIGHTWARDS ARROW} get a JDK",
        "\N{EN DASH} CUDA driver  none in /bücher",
        "",
        "prism-gpu cannot run yet: see Java.",
    ]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_the_table_can_be_printed_where_the_marks_cannot(monkeypatch, encoding):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding))
    lines = report(FINDINGS).splitlines()
    assert lines[0] == "+ PRISM        4.10"
    assert lines[1].startswith("x Java")
    assert lines[3].endswith("-> get a JDK")
    assert lines[4] == "- CUDA driver  none in /b\\xfccher"


@pytest.mark.parametrize(
    ("forbidden", "remedy"), [(True, "unset PYTHONDONTWRITEBYTECODE"), (False, "-m compileall -q ")]
)
def test_byte_code_that_is_not_kept_is_told(monkeypatch, tmp_path, forbidden, remedy):
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", forbidden)
    (found,) = (item for item in examine() if item.name == "byte code")
    assert (found.ok, found.required) == (False, False)
    assert remedy in str(found.remedy)
    place = Path(importlib.util.cache_from_source(doctor.__code__.co_filename))
    place.parent.mkdir(parents=True)
    place.touch()
    assert "byte code" not in {item.name for item in examine()}


def test_a_missing_c_compiler_is_told_and_keeps_nothing_from_running(monkeypatch, tmp_path):
    from engines.program.native import compiler

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    compiler.cache_clear()
    try:
        (found,) = (item for item in examine() if item.name == "C compiler")
    finally:
        compiler.cache_clear()
    assert (found.ok, found.required) == (False, False)
    assert "-sim" in found.detail
    assert "install gcc" in str(found.remedy)


@pytest.mark.parametrize("command", ["doctor", "server", "reproduce", "regress"])
def test_each_command_explains_itself_with_one_dash_too(command):
    command_line = [sys.executable, "-m", "bridge", command, "-help"]
    run = run_command(command_line, timeout=60)
    assert run.code == 0, run.errors
    assert run.output.startswith(f"Usage: prism-gpu {command}")
