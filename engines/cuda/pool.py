"""How much of the devices' memory this process has taken."""

from __future__ import annotations

from collections.abc import Iterable

from engines.cuda.driver import cupy


def peak_bytes(device_numbers: Iterable[int]) -> int:
    """Return the most bytes that arrays have taken on some devices together.

    CuPy's pool keeps what an array gives up for the next one, so that its size is the peak since it
    was emptied, as it is where a device runs out of memory. CUDA's own share is not in there.

    Parameters
    ----------
    device_numbers
        Which of the devices.
    """
    cp = cupy()
    pool = cp.get_default_memory_pool()
    total = 0
    for number in device_numbers:
        with cp.cuda.Device(number):
            total += int(pool.total_bytes())
    return total
