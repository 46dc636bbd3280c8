"""The memory of a device: what a solve may take of it."""

from __future__ import annotations

from engines.cuda.driver import cupy
from engines.errors import DeviceMemoryError, amount_text


def available_bytes(most_memory: int | None = None) -> int:
    """Return the bytes of the current device that may be taken.

    Parameters
    ----------
    most_memory
        The most bytes that the user allows, or None.
    """
    cp = cupy()
    pool = cp.get_default_memory_pool()
    free = int(cp.cuda.runtime.memGetInfo()[0]) + int(pool.free_bytes())
    return free if most_memory is None else min(free, most_memory)


def require_bytes(
    device_number: int, needed: int, what: str, most_memory: int | None = None
) -> None:
    """Raise `DeviceMemoryError` unless the current device has room.

    Parameters
    ----------
    device_number
        The current device.
    needed
        Bytes.
    what
        What they are for.
    most_memory
        The most bytes that the user allows, or None.
    """
    available = available_bytes(most_memory)
    if needed > available:
        raise DeviceMemoryError(
            f"GPU {device_number}: {amount_text(needed)} needed for {what}, "
            f"{amount_text(available)} available"
        )
