"""Components by the states that they are called by, on one GPU: numbers, and who is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engines.arrays import IndexArray, MaskArray
from engines.cuda.driver import cupy
from engines.cuda.modules import Launcher
from engines.cuda.prepare import _scan
from engines.cuda.transfer import to_device, to_host

if TYPE_CHECKING:
    from engines.cuda.graph_edges import Edges
    from engines.cuda.worklist import Worklist


def numbered(leader: Any, num_states: int) -> tuple[IndexArray, int]:
    """Return the components numbered by their smallest states, and how many there are.

    Parameters
    ----------
    leader
        Shape (states,), int32, on the current device: a state of the component of each, or a
        negative number for none; overwritten.
    num_states
        Number of states.
    """
    cp, states, launcher = cupy(), cupy().int32(num_states), Launcher("int")

    def launch(kernel: str, *arguments: Any) -> None:
        launcher.launch(kernel, num_states, *arguments, module="components")

    smallest, flags = cp.empty(num_states, dtype=cp.uint32), cp.empty(num_states, dtype=cp.int32)
    smallest.data.memset_async(0xFF, smallest.nbytes, stream=None)
    launch("find_smallest", leader, states, smallest)
    launch("flag_smallest", leader, states, smallest, flags)
    _scan(flags, launcher)
    launch("name_by_number", leader, states, smallest, flags)
    labels: IndexArray = to_host(leader)
    return labels, int(flags[-1:].get()[0])


def with_rest(leader: Any, members: IndexArray, own: IndexArray) -> tuple[IndexArray, int]:
    """Return the components numbered as by `numbered`, some of them found on the host.

    Parameters
    ----------
    leader
        Shape (states,), int32, on the current device: as `numbered` takes it.
    members
        The states whose components the host found, ascending.
    own
        Their components, each with a number of its own, shape (members,).
    """
    first = np.empty(int(own.max(initial=-1)) + 1, dtype=np.int32)
    # Of several values for one place, NumPy keeps the last.
    first[own[::-1]] = members[::-1]
    joined = to_host(leader)
    joined[members] = first[own]
    return numbered(to_device(joined, np.int32), len(joined))


def left_components(work: Worklist, ahead: Edges, labels: IndexArray, count: int) -> MaskArray:
    """Return which components have an edge that leaves them, shape (count,).

    Parameters
    ----------
    work
        Launches kernels.
    ahead
        The edges forwards.
    labels
        Shape (states,): the component of each state, −1 for none.
    count
        Number of components.
    """
    cp = cupy()
    left = cp.zeros(count, dtype=cp.bool_)
    own = to_device(labels, np.int32)
    states = cp.int32(len(labels))
    arguments = (*ahead.of_states, ahead.ends, own, states, left)
    work.launch("mark_left", len(labels), *arguments, module="components")
    found: MaskArray = left.get()
    return found
