"""Whether numba has a kernel at hand, or would have to compile it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def are_compiled(*kernels: Any) -> bool:
    """Return whether all these are loaded, or lie in numba's cache.

    Parameters
    ----------
    kernels
        Functions that numba compiles.
    """
    return all(kernel.signatures or _is_cached(kernel) for kernel in kernels)


def _is_cached(kernel: Any) -> bool:
    name = kernel.py_func.__name__
    return any(Path(kernel.stats.cache_path).glob(f"*{name}*.nbi"))
