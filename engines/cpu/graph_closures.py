"""What loops that run on lists or on arrays take of a graph."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Vector(Protocol):
    """A list of numbers or Booleans, or a NumPy array of them."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> int: ...

    def __setitem__(self, index: int, value: int, /) -> None: ...


class Graph(NamedTuple):
    """The edges of a model, forwards and backwards.

    Parameters
    ----------
    groups
        Shape (states + 1,): the choices of state s are the rows ``groups[s]`` to
        ``groups[s + 1] - 1``; in a chain, each state has the row of its number.
    offsets, columns
        Shapes (rows + 1,) and (edges,): the successors of each row.
    pre_offsets, pre_rows
        Shapes (states + 1,) and (edges,): the rows that enter each state.
    state_of
        Shape (rows,): the state whose choice each row is.
    """

    groups: Vector
    offsets: Vector
    columns: Vector
    pre_offsets: Vector
    pre_rows: Vector
    state_of: Vector
