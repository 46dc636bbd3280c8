"""The choice between CPU and GPU, and the only place that imports CuPy."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import warnings
from typing import Any

from engines.cpu import host_loops
from engines.environment import ALL_DEVICES, DeviceChoice, SolverEnvironment
from engines.errors import UnsupportedError
from engines.jit_folder import keep_cupy_private
from engines.system import Engine, Scaling, SweepSystem

GPU_ENTRIES = 20_000
"""Below this many entries a sweep on the CPU is over before a kernel has started."""

GPU_ENTRIES_AT_START = 250_000
"""The same while no GPU is in use, which takes half a second to open: most solves end sooner."""

GPU_ENTRIES_AT_ONCE = host_loops.MOST_ENTRIES
"""From this many entries on, a GPU is opened for the first sweep: so much for a CPU to lay out."""

ENTRIES_BEFORE_GPU = 400_000_000
"""Entries that a CPU sweeps in about the half second that a GPU takes to open. A solve that has
more to sweep repays it; one that begins on the CPU has lost no more than that if it goes on."""

ROW_IN_ORDER = 10
"""What a row costs, in entries, where it waits for the one before: steady states are swept so."""

_used, _loaded = threading.Event(), threading.Event()


def cupy() -> Any:
    """Return the module `cupy`.

    Raises
    ------
    UnsupportedError
        Saying what is missing: the driver, a device, or CuPy.
    """
    module, _, refusal = find_cupy()
    if refusal:
        raise UnsupportedError(refusal)
    return module


@functools.cache
def find_cupy() -> tuple[Any, int, str]:
    """Return the module `cupy`, the number of devices, and why they cannot be used, if so.

    What is broken is asked once: importing it again would take as long each time. A broken library
    raises whatever it likes, and CuPy's own errors share no base class.
    """
    if not driver_present():
        return None, 0, "no NVIDIA driver was found (libcuda)"
    keep_cupy_private()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import cupy as module
    except ImportError as error:
        return (
            *(None, 0),
            'CuPy is not installed: pip install "prism-gpu[cuda12x]" or "prism-gpu[cuda13x]", '
            f"whichever matches the driver ({_one_line(error)})",
        )
    except Exception as error:
        return None, 0, f"CuPy cannot be imported ({_one_line(error)})"
    try:
        devices = int(module.cuda.runtime.getDeviceCount())
        if devices == 0:
            return None, 0, "CUDA reports no device"
    except Exception as error:
        return None, 0, f"CUDA reports no usable device ({_one_line(error)})"
    try:
        module.cuda.nvrtc.getVersion()
    except Exception as error:
        return None, 0, f"CUDA's run-time compiler (NVRTC) cannot be loaded ({_one_line(error)})"
    return module, devices, ""


def _one_line(error: Exception) -> str:
    """Return the kind of an error and the first line of its text: some fill a screen."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


@functools.cache
def driver_present() -> bool:
    """Return whether an NVIDIA driver can be loaded; costs no CUDA start-up."""
    import ctypes
    import ctypes.util
    import sys

    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return False
    names = ["nvcuda.dll"] if sys.platform == "win32" else ["libcuda.so.1", "libcuda.so"]
    for name in names:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return True
    return False


def early_refusal(device_number: int = 0) -> str | None:
    """Return why a GPU cannot be used as far as the driver can tell, which is asked alone.

    CuPy takes half a second to import; a start-up that will open the GPU beside other work need
    not wait for that.

    Parameters
    ----------
    device_number
        Which of the devices.
    """
    import ctypes
    import importlib.util

    if importlib.util.find_spec("cupy") is None or not driver_present():
        return gpu_refusal(device_number)
    if os.name == "nt":
        return None
    count = ctypes.c_int()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return gpu_refusal(device_number)
    except (OSError, AttributeError):  # a driver of another name, or what only has its name
        return gpu_refusal(device_number)
    return _number_refusal(device_number, count.value)


def _number_refusal(device_number: int, devices: int) -> str | None:
    if 0 <= device_number < devices:
        return None
    return f"there is no device {device_number}: CUDA reports {devices}, numbered from 0"


def gpu_refusal(device_number: int = 0) -> str | None:
    """Return why the GPU cannot be used, or None if it can.

    Parameters
    ----------
    device_number
        Which of the devices.
    """
    _, devices, refusal = find_cupy()
    return refusal or _number_refusal(device_number, devices)


def note_use() -> None:
    """Note that a GPU is in use: what comes after that need not wait for it to open."""
    _used.set()


def is_used() -> bool:
    """Return whether that has been noted."""
    return _used.is_set()


def is_loaded() -> bool:
    """Return whether a GPU is in use, or could be without delay."""
    return is_used() or _loaded.is_set()


def least_gpu_entries(sweeps: int | None = None) -> int:
    """Return from how many entries on a GPU sweeps what it may or may not sweep.

    What was in use before decides, not what has been loaded meanwhile: the same solves in the same
    order are made by the same devices.

    Parameters
    ----------
    sweeps
        How many sweeps there will be, or None where that is not known.
    """
    if is_used():
        return GPU_ENTRIES
    if sweeps is None:
        return GPU_ENTRIES_AT_START
    more = ENTRIES_BEFORE_GPU // max(sweeps, 1) + 1
    return min(max(GPU_ENTRIES, more), GPU_ENTRIES_AT_ONCE)


def sweeps_before_gpu(environment: SolverEnvironment, system: SweepSystem) -> int | None:
    """Return how many sweeps to make on the CPU before a GPU is opened for the rest.

    None where the solve is to be made in one place: a device was named, the GPU is in use, there is
    none, or the system is too small or too large for both.

    Parameters
    ----------
    environment
        Which device the user asked for, and the most sweeps.
    system
        What is to be solved, in an unknown number of sweeps.
    """
    if environment.device is not DeviceChoice.AUTO or is_used() or not driver_present():
        return None
    entries = system.matrix.num_entries
    if not least_gpu_entries(environment.sweep_limit) <= entries < GPU_ENTRIES_AT_ONCE:
        return None
    in_order = environment.automatic and system.scaling is Scaling.BALANCE
    return ENTRIES_BEFORE_GPU // (entries + (ROW_IN_ORDER * system.num_updates if in_order else 0))


def choose_engine(
    environment: SolverEnvironment, system: SweepSystem, sweeps: int | None = None
) -> tuple[Engine, str]:
    """Return the engine for a solve, and a remark for the log.

    Parameters
    ----------
    environment
        Which device the user asked for.
    system
        What is to be solved.
    sweeps
        In how many sweeps at most, or None where that is not known.

    Raises
    ------
    UnsupportedError
        When the GPU was asked for and cannot be used.
    """
    from engines.cpu.engine import CpuEngine

    choice = environment.device
    if choice is DeviceChoice.CPU:
        return CpuEngine(environment.matrix_format), ""
    if choice is DeviceChoice.AUTO and (
        system.matrix.num_entries < least_gpu_entries(sweeps) or not driver_present()
    ):
        return CpuEngine(), ""
    refusal = gpu_refusal(environment.device_number)
    if refusal is None:
        return _cuda_engine(environment), ""
    if choice is DeviceChoice.GPU:
        raise UnsupportedError(f"no GPU can be used: {refusal}")
    return CpuEngine(), f"GPU not used: {refusal}"


def _cuda_engine(environment: SolverEnvironment) -> Engine:
    note_use()
    first, wanted = environment.device_number, environment.num_devices
    there = find_cupy()[1] - first
    if wanted > there:
        raise UnsupportedError(f"there are {there} GPUs from number {first} on, not {wanted}")
    how = (environment.matrix_format, environment.device_memory)
    number = there if wanted == ALL_DEVICES else wanted
    if number == 1:
        from engines.cuda.engine import CudaEngine

        return CudaEngine(first, *how)
    from engines.cuda.several import SeveralEngine

    return SeveralEngine(tuple(range(first, first + number)), *how)


def not_shared_out(engine: Engine, what: str) -> str:
    """Return a remark where several GPUs were asked for and one sweeps; empty where not.

    Parameters
    ----------
    engine
        The engine that was chosen.
    what
        What cannot be shared out.
    """
    devices: tuple[int, ...] = getattr(engine, "devices", ())
    return f"not shared out among {len(devices)} GPUs: {what}" if len(devices) > 1 else ""


def preload(device_number: int) -> None:
    """Open the GPU and load the kernels, if there is one that can be used.

    What cannot be loaded now, the solve that wants it tries again, and says why not.

    Parameters
    ----------
    device_number
        Which of the devices.
    """
    if gpu_refusal(device_number) is None:
        from engines.cuda import warm_up

        with contextlib.suppress(Exception):
            warm_up.preload(device_number)
            _loaded.set()


def device_summary() -> list[str]:
    """Return a line for each GPU: number, name, memory, compute capability, versions.

    Raises
    ------
    UnsupportedError
        When no GPU can be used, saying why.
    """
    module = cupy()
    runtime = module.cuda.runtime
    lines = []
    for number in range(runtime.getDeviceCount()):
        properties: dict[str, Any] = runtime.getDeviceProperties(number)
        with module.cuda.Device(number):
            free, total = runtime.memGetInfo()
        lines.append(
            f"GPU {number}: {properties['name'].decode()}, {free / 2**30:.1f} of "
            f"{total / 2**30:.1f} GiB free, compute capability "
            f"{properties['major']}.{properties['minor']}"
        )
    lines.append(
        f"CuPy {module.__version__}, CUDA runtime {_cuda_version(runtime.runtimeGetVersion())}, "
        f"driver {_cuda_version(runtime.driverGetVersion())}"
    )
    return lines


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
