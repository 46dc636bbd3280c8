"""Loading what solves on a GPU will want, ahead of the first of them."""

from __future__ import annotations

import importlib

import numpy as np

from engines.cuda.driver import cupy
from engines.cuda.modules import load_usual
from engines.cuda.transfer import stage


def preload(device_number: int) -> None:
    """Open the device, load the kernels and prepare transfers: the first solve finds them ready.

    Parameters
    ----------
    device_number
        Which of the devices.
    """
    with cupy().cuda.Device(device_number):
        load_usual()
        # What building and solving import.
        for name in ("exploring", "graph", "engine", "diagrams"):
            importlib.import_module(f"engines.cuda.{name}")
        _load_cupys()
    stage(device_number)


def _load_cupys() -> None:
    """Have CuPy load the kernels by which the states of a program are put in order and counted."""
    cp = cupy()
    cp.sort(cp.zeros(2, dtype=np.uint64))
    cp.cumsum(cp.zeros(2, dtype=np.int32), dtype=np.int64)
