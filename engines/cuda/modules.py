"""Compiled CUDA modules and their launches."""

from __future__ import annotations

import functools
import threading
from typing import Any

from engines import kernels
from engines.backend import cupy

BLOCK_THREADS = 256

_loading = threading.Lock()


@functools.cache
def _function(module: str, name: str, offset_type: str, _device: int) -> Any:
    return _module(module, offset_type).get_function(name)


def _module(module: str, offset_type: str) -> Any:
    # One thread compiles, another that wants the same waits for it.
    with _loading:
        return _loaded(module, offset_type)


@functools.cache
def _loaded(module: str, offset_type: str) -> Any:
    # CuPy keeps what NVRTC makes of it in its cache folder, written whole or not at all.
    raw = cupy().RawModule(code=kernels.source(module), options=kernels.options(offset_type))
    raw.compile()
    return raw


@functools.cache
def stream(device_number: int) -> Any:
    """Return the stream that all solves on a device share.

    Parameters
    ----------
    device_number
        Which of the devices.

    Notes
    -----
    CuPy keeps freed memory by streams, so a stream for each solve would keep the memory of each.
    """
    with cupy().cuda.Device(device_number):
        return cupy().cuda.Stream(non_blocking=True)


def preload(device_number: int) -> None:
    """Open the device and load the kernels, so that the first solve finds both ready.

    Parameters
    ----------
    device_number
        Which of the devices.
    """
    with cupy().cuda.Device(device_number):
        for module in kernels.MODULES:
            _module(module, "int")


class Launcher:
    """Launches kernels for one type of row offsets on the current device and stream.

    Parameters
    ----------
    offset_type
        One of `engines.kernels.OFFSET_TYPES`.
    """

    def __init__(self, offset_type: str) -> None:
        self.offset_type = offset_type
        self._device = cupy().cuda.runtime.getDevice()

    @property
    def offset_dtype(self) -> Any:
        """The NumPy type of row offsets."""
        return cupy().int32 if self.offset_type == "int" else cupy().int64

    def launch(
        self,
        name: str,
        threads: int,
        *arguments: Any,
        module: str = "sweep",
        block: int = BLOCK_THREADS,
    ) -> None:
        """Queue a kernel.

        Parameters
        ----------
        name
            The kernel's name.
        threads
            How many threads are wanted; rounded up to whole blocks.
        arguments
            The kernel's arguments; None stands for a null pointer.
        module
            Which of `engines.kernels.MODULES` holds the kernel.
        block
            Threads a block.
        """
        null = cupy().uintp(0)
        _function(module, name, self.offset_type, self._device)(
            ((threads + block - 1) // block,),
            (block,),
            tuple(null if argument is None else argument for argument in arguments),
        )
