"""Large arrays between the host and one GPU, through pinned memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from queue import SimpleQueue
from typing import Any

import numpy as np

from engines.cuda.driver import cupy

PART_BYTES = 4 << 20
"""Bytes of a pinned buffer: large enough for the bus, small enough for the cache of a core."""

LEAST_BYTES = 4 * PART_BYTES
"""Smaller arrays go the driver's own way, which is as fast for them."""


class Stage:
    """Pinned buffers of one GPU, and the threads that fill and empty them.

    Parameters
    ----------
    device
        Number of the device.

    Notes
    -----
    The driver copies pageable memory through one pinned buffer of its own, in one thread, and so at
    the pace of one core.
    """

    def __init__(self, device: int) -> None:
        cp = cupy()
        self._runtime = cp.cuda.runtime
        self._device = device
        # A core fills a third to a fifth of what the bus carries, and less where pages are new.
        threads = max(1, min(8, os.cpu_count() or 1))
        self._pool = ThreadPoolExecutor(threads, "prism-gpu-copy", self._begin_thread)
        self._free: SimpleQueue[tuple[Any, Any, Any]] = SimpleQueue()
        with cp.cuda.Device(device):
            for _ in range(2 * threads):
                memory = cp.cuda.alloc_pinned_memory(PART_BYTES)
                # Waiting without spinning: the cores have copies to make.
                copied = cp.cuda.Event(block=True, disable_timing=True)
                self._free.put((memory, np.frombuffer(memory, dtype=np.uint8), copied))

    def _begin_thread(self) -> None:
        self._runtime.setDevice(self._device)

    def up(self, array: Any, to: Any) -> None:
        """Copy a C-contiguous array to the device, converted to the type of what is there.

        Parameters
        ----------
        array
            On the host; it may be changed as soon as this returns.
        to
            On the device, C-contiguous, of as many elements. What is queued on the current stream
            later sees the copy.
        """
        flat, size = array.reshape(-1), to.dtype.itemsize
        stream = cupy().cuda.get_current_stream()

        def copy(first: int, last: int) -> None:
            buffer = memory, view, copied = self._free.get()
            try:
                copied.synchronize()
                part = view[: (last - first) * size].view(to.dtype)
                np.copyto(part, flat[first:last], casting="unsafe")
                target, source = to.data.ptr + first * size, memory.ptr
                kind = self._runtime.memcpyHostToDevice
                self._runtime.memcpyAsync(target, source, part.nbytes, kind, stream.ptr)
                copied.record(stream)
            finally:
                self._free.put(buffer)

        self._in_parts(copy, flat.size, size)

    def down(self, array: Any, to: Any) -> None:
        """Copy an array from the device to the host.

        Parameters
        ----------
        array
            On the device, C-contiguous; what was queued on the current stream before is waited for.
        to
            On the host, C-contiguous, of the same type and as many elements.
        """
        flat, size = to.reshape(-1), to.dtype.itemsize
        stream = cupy().cuda.get_current_stream()

        def copy(first: int, last: int) -> None:
            buffer = memory, view, copied = self._free.get()
            try:
                copied.synchronize()
                part = view[: (last - first) * size].view(to.dtype)
                source, kind = array.data.ptr + first * size, self._runtime.memcpyDeviceToHost
                self._runtime.memcpyAsync(memory.ptr, source, part.nbytes, kind, stream.ptr)
                copied.record(stream)
                copied.synchronize()
                np.copyto(flat[first:last], part)
            finally:
                self._free.put(buffer)

        self._in_parts(copy, flat.size, size)

    def _in_parts(self, copy: Callable[[int, int], None], elements: int, size: int) -> None:
        step = PART_BYTES // size
        firsts = range(0, elements, step)
        lasts = (min(first + step, elements) for first in firsts)
        for _ in self._pool.map(copy, firsts, lasts):
            pass


@cache
def stage(device: int) -> Stage:
    """Return the buffers of a device, which are kept."""
    return Stage(device)


def to_device(array: Any, dtype: Any) -> Any:
    """Return a copy of a NumPy array on the current device.

    Parameters
    ----------
    array
        Of any type.
    dtype
        The type that the kernels read.

    Notes
    -----
    CuPy's own conversion copies through fresh pinned memory, whose allocation takes longer than
    the transfer.
    """
    copy = cupy().empty(np.shape(array), dtype=np.dtype(dtype))
    send(array, copy)
    return copy


def send(array: Any, to: Any) -> None:
    """Copy a NumPy array over one on the current device.

    Parameters
    ----------
    array
        Of any type.
    to
        On the device, C-contiguous, of the same shape.
    """
    array = np.ascontiguousarray(array)
    if to.nbytes >= LEAST_BYTES:
        stage(to.device.id).up(array, to)
    else:
        to.set(np.ascontiguousarray(array, dtype=to.dtype))


def to_host(array: Any) -> Any:
    """Return a copy of an array on the current device as a NumPy array."""
    if not array.flags.c_contiguous:
        return array.get()
    return collect(array, np.empty(array.shape, dtype=array.dtype))


def collect(array: Any, to: Any) -> Any:
    """Copy an array on the current device over one on the host, and return that.

    Parameters
    ----------
    array
        On the device, C-contiguous.
    to
        On the host, C-contiguous, of the same type and shape.
    """
    if array.nbytes < LEAST_BYTES:
        array.get(out=to)
    else:
        stage(array.device.id).down(array, to)
    return to
