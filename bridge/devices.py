"""What a log says of the machine's devices; no driver is opened for it."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bridge.versions import OWN_VERSION
from engines.cuda.driver import driver_present
from engines.model.environment import DeviceChoice

NVIDIA = Path("/proc/driver/nvidia/gpus")
"""Where NVIDIA's driver names its devices, a folder each."""
_MODEL = re.compile(r"^Model:\s*(.+?)\s*$", re.MULTILINE)


def devices_text(device: DeviceChoice, folder: Path = NVIDIA) -> str:
    """Return who may solve, such as "the CPU and 2 × NVIDIA H100 80GB HBM3".

    Parameters
    ----------
    device
        What the user asked for.
    folder
        Where devices are named.
    """
    if device is DeviceChoice.CPU:
        return "the CPU"
    gpus = _gpus(folder) if driver_present() else []
    if not gpus:
        return "the CPU (no GPU was found)"
    named = (name if n == 1 else f"{n} × {name}" for name, n in Counter(gpus).items())
    return ("" if device is DeviceChoice.GPU else "the CPU and ") + ", ".join(named)


def _gpus(folder: Path) -> list[str]:
    try:
        texts = [path.read_text() for path in sorted(folder.glob("*/information"))]
    except OSError:
        texts = []
    names = [match[1] for match in map(_MODEL.search, texts) if match]
    # A container may hide the names, not the devices.
    return names or ["GPU of NVIDIA"]


def header(words: Sequence[str], device: DeviceChoice) -> str:
    """Return the line that goes below PRISM's own header.

    Parameters
    ----------
    words
        The command line, without the program's name.
    device
        What the user asked for.
    """
    devices = devices_text(device)
    command = shlex.join(("prism-gpu", *words))
    return f"prism-gpu: version {OWN_VERSION} on {devices}; command line: {command}"
