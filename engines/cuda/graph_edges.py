"""A model's edges on one GPU, forwards and backwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.arrays import IndexArray
from engines.cuda.driver import cupy
from engines.cuda.modules import Launcher
from engines.cuda.prepare import _scan
from engines.cuda.transfer import to_device


@dataclass(frozen=True)
class Edges:
    """Edges on the device, ordered by the state that they are followed from.

    Parameters
    ----------
    offsets
        Shape (rows + 1,), or (states + 1,) backwards: where the edges of each begin.
    groups
        Shape (states + 1,): the rows of each state of an MDP; None in a chain.
    ends
        Shape (edges,): where they lead; forwards states, backwards rows.
    state_of
        Shape (rows,): the state of each row, backwards in an MDP; else None.
    by_groups
        Whether the edges of a state are those of its group of rows; else of the row of its number.
    """

    offsets: Any
    groups: Any | None
    ends: Any
    state_of: Any | None
    by_groups: bool

    @property
    def of_states(self) -> tuple[Any, Any | None]:
        """What the kernels look the edges of a state up in."""
        return self.offsets, self.groups if self.by_groups else None

    @property
    def num_bytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.offsets, self.groups, self.ends, self.state_of)
        return sum(array.nbytes for array in arrays if array is not None)


def forwards(
    launcher: Launcher, offsets: IndexArray, columns: IndexArray, groups: IndexArray | None
) -> Edges:
    """Copy a graph to the current device.

    Parameters
    ----------
    launcher
        For the type that numbers the edges.
    offsets, columns
        Shapes (rows + 1,) and (edges,): the successors of each row.
    groups
        Shape (states + 1,): the rows of each state; None where they are its own number.
    """
    on_device = None if groups is None else to_device(groups, np.int32)
    rows = to_device(offsets, launcher.offset_dtype)
    return Edges(rows, on_device, to_device(columns, np.int32), None, by_groups=groups is not None)


def backwards(launcher: Launcher, ahead: Edges, num_states: int) -> Edges:
    """Turn the edges round: a counting sort by the states that they enter.

    Parameters
    ----------
    launcher
        For the type that numbers the edges.
    ahead
        The edges forwards.
    num_states
        Number of states.
    """
    cp = cupy()
    edges, rows = len(ahead.ends), cp.int32(len(ahead.offsets) - 1)
    # Counts, then the ends of the states' parts, then their beginnings.
    cursors = cp.zeros(num_states + 1, dtype=launcher.offset_dtype)
    entering = cp.empty(edges, dtype=cp.int32)
    columns = (ahead.ends, cp.int64(edges), cursors)
    launcher.launch("count_entering", edges, *columns, module="graph")
    _scan(cursors, launcher)
    scattering = (ahead.offsets, rows, *columns, entering)
    launcher.launch("scatter_rows", edges, *scattering, module="graph")
    state_of = None
    if ahead.groups is not None:
        state_of = cp.empty(int(rows), dtype=cp.int32)
        arguments = (ahead.groups, cp.int32(num_states), rows, state_of)
        launcher.launch("name_states", int(rows), *arguments, module="graph")
    return Edges(cursors, ahead.groups, entering, state_of, by_groups=False)
