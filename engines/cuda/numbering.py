"""States that are components of their own by the order of their numbers, on one GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engines.backend import cupy

if TYPE_CHECKING:
    from engines.cuda.graph_edges import Edges
    from engines.cuda.worklist import Worklist

SPAN = 2048
"""States of a block, as in `engines/kernels/numbering.cu`."""

BLOCK = 256
"""Threads of such a block, as there."""

FURTHEST_THREADS = 1024
"""Threads of the block that joins the others, as there."""


def name_apart(
    work: Worklist, ahead: Edges, cut: Any | None, open_: Any, leader: Any, space: Any
) -> int:
    """Name the states that their numbers set apart; return how many are open then.

    Parameters
    ----------
    work
        Launches kernels.
    ahead
        The edges forwards, by states.
    cut
        Bitmap of edges that do not count; None for none.
    open_
        Bitmap of states on the device; those that are named leave it.
    leader
        Shape (states,), int32, on the device: where named states become their own leaders.
    space
        Shape (2 · states,) or longer, of four bytes, on the device; overwritten.

    Notes
    -----
    A component with states on both sides of a gap in the numbering has an edge up and one down
    across it. So where, of the edges that lead across the gaps on both sides of a state, none leads
    up, or none down, the state is a component of its own; a gap may be free of the ones, the next
    of the others. One look at each edge and two passes over the states find them all, however deep
    the graph is: PRISM numbers states in the order of their variables' values, and where a process
    only goes on, or a clock comes first among the variables, no edge leads down.
    """
    cp, states = cupy(), cupy().int32(len(leader))
    blocks = (len(leader) + SPAN - 1) // SPAN
    of_blocks = cp.empty(2 * blocks, dtype=cp.int32)
    left = cp.zeros(1, dtype=cp.uint64)

    def launch(kernel: str, threads: int, *arguments: Any, block: int = BLOCK) -> None:
        work.launcher.launch(kernel, threads, *arguments, module="numbering", block=block)

    threads = blocks * BLOCK
    graph = (*ahead.of_states, ahead.ends, cut, open_)
    launch("find_reach", threads, *graph, states, space, of_blocks)
    joined = (of_blocks, cp.int32(blocks))
    launch("reach_across", FURTHEST_THREADS, *joined, block=FURTHEST_THREADS)
    launch("name_apart", threads, space, of_blocks, states, open_, leader, left)
    return int(left.get()[0])
