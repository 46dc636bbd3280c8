"""The device's copy bandwidth, the ceiling that sweeps are measured against."""

from __future__ import annotations

import functools

from engines.cuda.driver import cupy


@functools.cache
def copy_bandwidth(device_number: int = 0) -> float:
    """Return the measured rate of a large copy within the device, in bytes a second.

    Bytes read and bytes written are both counted; the median of ten copies is taken.

    Parameters
    ----------
    device_number
        Which of the devices.
    """
    cp, copies = cupy(), 10
    with cp.cuda.Device(device_number), cp.cuda.Stream(non_blocking=True) as stream:
        free, _ = cp.cuda.runtime.memGetInfo()
        size = min(1 << 29, free // 4)
        # Beside the pool, whose size is what solves have taken.
        blocks = (cp.cuda.Memory(size) for _ in range(2))
        source, target = (cp.cuda.MemoryPointer(block, 0) for block in blocks)
        source.memset_async(1, size, stream)
        seconds: list[float] = []
        for _ in range(copies + 2):
            before, after = cp.cuda.Event(), cp.cuda.Event()
            before.record(stream)
            target.copy_from_device_async(source, size, stream)
            after.record(stream)
            after.synchronize()
            seconds.append(cp.cuda.get_elapsed_time(before, after) / 1e3)
    return 2.0 * float(size) / sorted(seconds[2:])[copies // 2]
