"""Compiled CUDA modules and their launches."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from typing import Any

from engines.cuda import src as kernels
from engines.cuda.driver import cupy
from engines.process.timeline import LOADING, TIMELINE

BLOCK_THREADS = 256

WARP = 32
"""Threads that run together."""

_loading = threading.Lock()


@dataclass(frozen=True)
class Variant:
    """What modules over a matrix format are compiled for.

    Parameters
    ----------
    matrix_format
        One of `engines.cuda.src.HEADERS`.
    defines
        Definitions that the format's headers ask for.
    """

    matrix_format: str = "csr"
    defines: tuple[str, ...] = ()


CSR = Variant()


@functools.cache
def _function(module: str, name: str, offset_type: str, variant: Variant, _device: int) -> Any:
    return _module(module, offset_type, variant).get_function(name)


def _module(module: str, offset_type: str, variant: Variant = CSR) -> Any:
    # One thread compiles, another that wants the same waits for it.
    with TIMELINE.part(LOADING), _loading:
        return _loaded(module, offset_type, variant)


@functools.cache
def _loaded(module: str, offset_type: str, variant: Variant) -> Any:
    # CuPy keeps what NVRTC makes of it in its cache folder, written whole or not at all.
    raw = cupy().RawModule(
        code=kernels.source(module, variant.matrix_format),
        options=kernels.options(offset_type, variant.defines),
    )
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


def load_usual() -> None:
    """Load the kernels that any solve may want on the current device."""
    for module in kernels.USUAL:
        _module(module, "int")


@functools.cache
def _limits(device: int) -> tuple[int, int, int]:
    """Return a device's multiprocessors, and the threads and registers of each."""
    properties = cupy().cuda.runtime.getDeviceProperties(device)
    names = ("multiProcessorCount", "maxThreadsPerMultiProcessor", "regsPerMultiprocessor")
    processors, threads, registers = (int(properties[name]) for name in names)
    return processors, threads, registers


@functools.cache
def _most_shared_bytes(device: int) -> int:
    properties = cupy().cuda.runtime.getDeviceProperties(device)
    return int(properties.get("sharedMemPerBlockOptin", 0)) or int(properties["sharedMemPerBlock"])


class Launcher:
    """Launches kernels for one type of row offsets on the current device and stream.

    Parameters
    ----------
    offset_type
        One of `engines.cuda.src.OFFSET_TYPES`.
    variant
        What the modules over a matrix format are compiled for.
    """

    def __init__(self, offset_type: str, variant: Variant = CSR) -> None:
        self.offset_type = offset_type
        self.variant = variant
        self._device = cupy().cuda.runtime.getDevice()

    @property
    def offset_dtype(self) -> Any:
        """The NumPy type of row offsets."""
        return cupy().int32 if self.offset_type == "int" else cupy().int64

    @property
    def processors(self) -> int:
        """Multiprocessors of the device."""
        return _limits(self._device)[0]

    @property
    def capability(self) -> int:
        """Ten times the device's compute capability, such as 90."""
        return int(cupy().cuda.Device(self._device).compute_capability)

    @property
    def shared_bytes(self) -> int:
        """The most shared memory of a block that asks for it."""
        return _most_shared_bytes(self._device)

    @property
    def cache_bytes(self) -> int:
        """The second-level cache of the device."""
        return int(cupy().cuda.Device(self._device).attributes["L2CacheSize"])

    def launch(
        self,
        name: str,
        threads: int,
        *arguments: Any,
        module: str = "sweep",
        block: int = BLOCK_THREADS,
        shared_bytes: int = 0,
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
            Which of `engines.cuda.src.MODULES` or `BUILDING` holds the kernel.
        block
            Threads a block.
        shared_bytes
            Shared memory of a block beside what the kernel declares.
        """
        null = cupy().uintp(0)
        kernel = self._kernel(module, name)
        if shared_bytes > 48 << 10:
            # What a block does not have without asking has to be granted to its kernel first.
            kernel.max_dynamic_shared_size_bytes = shared_bytes
        kernel(
            ((threads + block - 1) // block,),
            (block,),
            tuple(null if argument is None else argument for argument in arguments),
            shared_mem=shared_bytes,
        )

    def resident_blocks(self, name: str, module: str, block: int) -> int:
        """Return how many blocks of a kernel the whole device runs at a time.

        Parameters
        ----------
        name, module
            The kernel.
        block
            Threads a block; of dynamic shared memory it must need little.
        """
        processors, threads, registers = _limits(self._device)
        # Registers are handed out by eights.
        used = (int(self._kernel(module, name).num_regs) + 7) // 8 * 8
        return processors * max(1, min(threads // block, registers // (used * block)))

    def _kernel(self, module: str, name: str) -> Any:
        variant = self.variant if module in kernels.FORMATTED else CSR
        return _function(module, name, self.offset_type, variant, self._device)
