"""A topological order of a graph's components, on one GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engines.arrays import IndexArray
from engines.cuda.driver import cupy
from engines.cuda.prepare import _scan
from engines.cuda.transfer import to_device

if TYPE_CHECKING:
    from engines.cuda.graph_edges import Edges
    from engines.cuda.graph_tuning import Patience
    from engines.cuda.worklist import Worklist


def order_by_level(
    work: Worklist, ahead: Edges, labels: IndexArray, count: int, patience: Patience
) -> IndexArray | None:
    """Return the components by level, those of one level by number, shape (count,).

    A component's level is the number of others on the longest path that begins there.

    Parameters
    ----------
    work
        Launches kernels, and holds the list.
    ahead
        The edges forwards.
    labels
        Shape (states,): the component of each state, −1 for none.
    count
        Number of components.
    patience
        For the worklist.

    Returns
    -------
    The order, or None where there are so many levels with so little to do that it is given up.

    Notes
    -----
    The edges between components are turned round by a counting sort; a worklist counts those that
    leave each component down (Kahn 1962, Topological sorting of large networks), without an order
    of levels: a component is expanded when its last edge has been counted, and its level is final.
    """
    cp = cupy()

    def launch(kernel: str, threads: int, *arguments: object) -> None:
        work.launch(kernel, threads, *arguments, module="condensation")

    size = len(labels)
    offset_dtype, number = work.launcher.offset_dtype, cp.int32(count)
    edges = (*ahead.of_states, ahead.ends, to_device(labels, np.int32), cp.int32(size))
    leaving = cp.zeros(count, dtype=offset_dtype)
    cursors = cp.zeros(count + 1, dtype=offset_dtype)
    launch("count_crossing", size, *edges, leaving, cursors)
    _scan(cursors, work.launcher)
    crossing = int(cursors[-1:].get()[0])
    levels = cp.zeros(count, dtype=cp.int32)
    if crossing:
        sources, targets = (cp.empty(crossing, dtype=cp.int32) for _ in range(2))
        launch("scatter_crossing", size, *edges, cursors, sources, targets)
        work.begin()
        launch("collect_lowest", count, cursors, leaving, number, *work.list)
        arguments = (cursors, sources, targets, leaving, levels)
        if not work.close("close_levels", *arguments, module="condensation", patience=patience):
            return None
        del sources, targets
    keys = cp.empty(count, dtype=cp.uint64)
    launch("fill_keys", count, levels, number, keys)
    keys.sort()
    launch("name_keys", count, keys, number, levels)
    order: IndexArray = levels.get()
    return order
