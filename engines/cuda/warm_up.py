"""Loading what solves on a GPU will want, ahead of the first of them."""

from __future__ import annotations

import importlib

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
    # What a solve imports.
    for name in ("engine", "diagrams"):
        importlib.import_module(f"engines.cuda.{name}")
    stage(device_number)
