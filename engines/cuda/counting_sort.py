"""Things on the device in the order of small keys."""

from __future__ import annotations

from typing import Any

from engines.cuda.driver import cupy
from engines.cuda.modules import Launcher
from engines.cuda.prepare import _scan

THINGS = 1024
"""Things a block takes; the kernels' `THINGS`."""


def counters(things: int, keys: int) -> int:
    """Return how many numbers a sort counts with.

    Parameters
    ----------
    things
        How many are sorted.
    keys
        How many keys there are.
    """
    return keys * ((things + THINGS - 1) // THINGS)


def sorted_by_key(of_things: Any, keys: int, launcher: Launcher) -> tuple[Any, Any]:
    """Sort numbers by keys, those of one key in ascending order: a counting sort.

    Parameters
    ----------
    of_things
        The key of each thing, shape (things,), int32, from 0 to `keys` − 1.
    keys
        How many keys there are.
    launcher
        Launches kernels for a type that numbers the things, and the counters of all blocks.

    Returns
    -------
    The numbers in order, shape (things,); where those of each key begin, and where the last end,
    shape (keys + 1,). Both int32.
    """
    cp = cupy()
    things = len(of_things)
    blocks = max((things + THINGS - 1) // THINGS, 1)
    counts = cp.zeros(keys * blocks, dtype=launcher.offset_dtype)
    in_order = cp.empty(things, dtype=cp.int32)
    bounds = cp.empty(keys + 1, dtype=cp.int32)
    given: tuple[Any, ...] = (of_things, cp.int32(things), cp.int32(blocks), counts)
    threads = blocks * THINGS
    launcher.launch("count_keys", threads, *given, module="counting_sort", block=THINGS)
    _scan(counts, launcher)
    given = (*given, in_order)
    launcher.launch("scatter_by_key", threads, *given, module="counting_sort", block=THINGS)
    numbers = (cp.int32(blocks), cp.int32(keys))
    launcher.launch("find_bounds", keys + 1, counts, *numbers, bounds, module="counting_sort")
    return in_order, bounds
