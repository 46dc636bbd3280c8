"""States that are components of their own by the order of their numbers, on one GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engines.cuda.driver import cupy
from engines.cuda.modules import BLOCK_THREADS
from engines.cuda.prepare import _scan

if TYPE_CHECKING:
    from engines.cuda.graph_edges import Edges
    from engines.cuda.worklist import Worklist

SPAN = 2048
"""States of a block, as in `engines/cuda/src/numbering.cu`."""


class Numbering:
    """What the numbers of a graph's open states tell, at one look; on the current device.

    Parameters
    ----------
    work
        Launches kernels.
    ahead
        The edges forwards, by states.
    cut
        Bitmap of edges that do not count; None for none.
    open_
        Bitmap of states on the device; those that are components of their own leave it.
    leader
        Shape (states,), int32, on the device: where these become their own leaders.
    space
        Shape (2 · states,) or longer, of four bytes, on the device; overwritten.

    Notes
    -----
    A component with states on both sides of a gap in the numbering has an edge up and one down
    across it. So where, of the edges that lead across the gaps on both sides of a state, none leads
    up, or none down, the state is a component of its own; a gap may be free of the ones, the next
    of the others. One look at each edge and two passes over the states find them all, however deep
    the graph is: PRISM numbers states in the order of their variables' values, and where a process
    only goes on, or a clock comes first among the variables, no edge leads down. Such gaps part the
    other states too.
    """

    def __init__(
        self, work: Worklist, ahead: Edges, cut: Any | None, open_: Any, leader: Any, space: Any
    ) -> None:
        cp, self._work = cupy(), work
        self._states, self._open, self._leader = cp.int32(len(leader)), open_, leader
        self._reach = space
        blocks = (len(leader) + SPAN - 1) // SPAN
        self._threads = blocks * BLOCK_THREADS
        of_blocks = cp.empty(2 * blocks, dtype=cp.int32)
        self._gaps = cp.empty(blocks, dtype=cp.int32)
        counts = cp.zeros(2, dtype=cp.uint64)
        graph = (*ahead.of_states, ahead.ends, cut, open_)
        self._launch("find_reach", self._threads, *graph, self._states, space, of_blocks)
        joined = (of_blocks, cp.int32(blocks))
        self._launch("reach_across", 1024, *joined, block=1024)
        names = (self._states, open_, leader, self._gaps, counts)
        self._launch("name_apart", self._threads, space, of_blocks, *names)
        self.left, self.parts = (int(count) for count in counts.get())
        """How many states are open, and about how many parts they are in."""

    def name_parts(self, by_regions: bool, members: Any | None = None) -> None:
        """Make each part a region, or a part of one; what the look left must still be in `space`.

        Parameters
        ----------
        by_regions
            Whether states have regions. If not, they get numbers of states, unless all are alone.
        members
            Bitmap of the states to name, of those that were open before the look or earlier; None
            for those that are open.
        """
        _scan(self._gaps, self._work.launcher)
        members = self._open if members is None else members
        of_states = (self._states, members, cupy().int32(by_regions), self._leader)
        self._launch("name_parts", self._threads, self._reach, self._gaps, *of_states)

    def _launch(
        self, kernel: str, threads: int, *arguments: Any, block: int = BLOCK_THREADS
    ) -> None:
        self._work.launcher.launch(kernel, threads, *arguments, module="numbering", block=block)
