"""The only import of CuPy: whether GPUs can be used, and what they are."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
import warnings
from typing import Any

from engines.cuda.kernel_cache import keep_cupy_private
from engines.errors import UnsupportedError
from engines.process.timeline import OPENING, TIMELINE

_used = threading.Event()


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
    with TIMELINE.part(OPENING):
        return _opened_cupy()


def _opened_cupy() -> tuple[Any, int, str]:
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
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return False
    for name in ("libcuda.so.1", "libcuda.so"):
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
    import importlib.util

    if importlib.util.find_spec("cupy") is None or not driver_present():
        return gpu_refusal(device_number)
    driver, count = _initialised(), ctypes.c_int()
    if driver is None or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return gpu_refusal(device_number)
    return _number_refusal(device_number, count.value)


def open_context_beside(device_number: int) -> None:
    """Open a GPU by the driver alone, in a thread of its own, which hardly takes Python's lock.

    It is the context that CuPy uses afterwards. What fails here is for CuPy to tell.

    Parameters
    ----------
    device_number
        Which of the devices.
    """
    if driver_present():
        opening = threading.Thread(target=_open_context, args=(device_number,), daemon=True)
        opening.start()


def _open_context(device_number: int) -> None:
    driver, device, context = _initialised(), ctypes.c_int(), ctypes.c_void_p()
    if driver is not None and driver.cuDeviceGet(ctypes.byref(device), device_number) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)


def _initialised() -> ctypes.CDLL | None:
    """Return the driver, ready to be called; None for one of another name or that is none."""
    with contextlib.suppress(OSError, AttributeError):
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuInit(0) == 0:
            return driver
    return None


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
