"""Sets of states or rows between masks on the host and bitmaps on one GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from engines.arrays import MaskArray
from engines.cuda.driver import cupy
from engines.cuda.modules import Launcher
from engines.cuda.transfer import to_device, to_host


def words_for(members: int) -> int:
    """Return how many words of 32 members each a bitmap takes."""
    return (members + 31) // 32


def to_set(mask: MaskArray, *, complement: bool = False) -> Any:
    """Return a mask as a bitmap on the current device.

    Parameters
    ----------
    mask
        Shape (members,).
    complement
        Whether the set holds what the mask does not.

    Notes
    -----
    Bytes are packed on the device: eight times as much is carried, in less time than one core
    packs it.
    """
    cp = cupy()
    members = to_device(mask.view(np.uint8), np.uint8)
    found = cp.empty(words_for(len(mask)), dtype=cp.uint32)
    arguments = (members, cp.int32(len(mask)), cp.int32(complement), found)
    Launcher("int").launch("pack_members", len(mask), *arguments, module="graph")
    return found


def to_mask(members: Any, size: int, *, complement: bool = False) -> MaskArray:
    """Return a bitmap on the current device as a mask, shape (size,).

    Parameters
    ----------
    members
        The bitmap.
    size
        How many members it has room for.
    complement
        Whether the mask holds what the set does not.
    """
    cp = cupy()
    mask = cp.empty(size, dtype=cp.uint8)
    arguments = (members, cp.int32(size), cp.int32(complement), mask)
    Launcher("int").launch("unpack_members", size, *arguments, module="graph")
    found: MaskArray = to_host(mask).view(np.bool_)
    return found
