"""How far an iterate on one GPU is from another vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engines.arrays import FloatArray
from engines.cuda.driver import cupy
from engines.cuda.modules import Launcher
from engines.cuda.space import Here
from engines.cuda.transfer import to_device


def comparison(
    device: int,
    stream: Any,
    iterate: Callable[[], tuple[Any, float]],
    reference: FloatArray,
    least: float,
) -> Callable[[], float]:
    """Return what compares an iterate with a vector; see `engines.systems.one_sided.HasComparison`.

    Parameters
    ----------
    device, stream
        Where the iterate lies, and what its sweeps are queued on.
    iterate
        Returns the present iterate, and what its values have to be multiplied by.
    reference, least
        As in `HasComparison.comparison`.

    Raises
    ------
    DeviceMemoryError
        When the device has no room for the vector.
    """
    cp = cupy()
    with Here(device, stream):
        launcher = Launcher("int")
        wanted = to_device(reference, np.float64)
        worst = cp.zeros(1)

    def farthest() -> float:
        with Here(device, stream):
            worst.data.memset_async(0, worst.nbytes, stream)
            present, factor = iterate()
            size = len(present)
            arguments = (present, cp.float64(factor), wanted, cp.float64(least), worst)
            launcher.launch("find_farthest", size, *arguments, cp.int64(size), module="space")
            return float(worst.get()[0])

    return farthest
