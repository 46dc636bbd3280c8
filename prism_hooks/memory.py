"""What is said where memory does not suffice: the device's, the host's or Java's."""

from __future__ import annotations

from typing import Any

from engines.errors import DeviceMemoryError
from engines.host.expansion.room import available_host_bytes

ON_DEVICE = "Try -nogpu, which solves on the CPU, or -gpudevices all where there are several GPUs"
ON_HOST = (
    "Free some memory, or raise the limit that this process has; with a GPU, -gpuformat hybrid "
    "needs no matrix for until and reachability rewards of Markov chains"
)


def shortage(problem: Any, error: MemoryError) -> str:
    """Return what ran out of memory, where, and what to do, as the text of PRISM's error.

    Parameters
    ----------
    problem
        The `prismgpu.Problem` that was being solved.
    error
        What was wanted.
    """
    where = f"in a {problem.task} computation on {problem.numStates} states"
    cause = str(error).rstrip(".") or "an array could not be allocated"
    if isinstance(error, DeviceMemoryError):
        return f"prism-gpu ran out of device memory {where}: {cause}.\nTip: {ON_DEVICE}"
    free = available_host_bytes()
    known = "" if free is None else f"; {free / 1e9:.2f} GB of the host's memory are free"
    return f"prism-gpu ran out of memory {where}: {cause}{known}.\nTip: {ON_HOST}"


def is_full_heap(error: BaseException) -> bool:
    """Return whether an exception says that Java's heap is full.

    Parameters
    ----------
    error
        Of Java's, as JPype raises it, or any other.
    """
    return type(error).__name__ == "java.lang.OutOfMemoryError"


def is_full_cudd(error: BaseException) -> bool:
    """Return whether an exception says that the library of PRISM's diagrams has no memory left.

    Parameters
    ----------
    error
        Of Java's, as JPype raises it, or any other.
    """
    return type(error).__name__.endswith("CuddOutOfMemoryException")
