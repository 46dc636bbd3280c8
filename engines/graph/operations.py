"""What an engine must offer for the analyses of graphs, and which engine does them."""

from __future__ import annotations

import weakref
from typing import Protocol

from engines.formats.csr import IndexArray, MaskArray
from engines.model import ExplicitModel


class GraphOperations(Protocol):
    """The graph of one model, prepared once; an edge is an entry that is not 0.

    Sets of states are masks of shape (states,), sets of choices masks of shape (choices,); a chain
    has one choice a state. Arguments are not changed.
    """

    def reached_from(self, sources: MaskArray) -> MaskArray:
        """Return the least set that holds `sources` and the successors of its states."""
        ...

    def may_reach(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return the least set with `goal` and each of `through` that has a choice into it."""
        ...

    def must_approach(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return the least set with `goal` and each of `through` whose choices all lead into it.

        A choice leads into a set if one of its successors is there.
        """
        ...

    def can_force(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return the states from which a strategy has ``through U goal`` with probability 1."""
        ...

    def strong_components(self, restrict: MaskArray) -> tuple[IndexArray, int]:
        """Return the strongly connected component of each state of `restrict`, and their number.

        Components are numbered by their smallest states; other states have −1.
        """
        ...

    def components_left(self, labels: IndexArray, count: int) -> MaskArray:
        """Return which components have an edge that leaves them, shape (count,)."""
        ...

    def end_components(
        self, restrict: MaskArray, choices: MaskArray
    ) -> tuple[IndexArray, int, MaskArray]:
        """Return the maximal end component of each state, their number, and their choices.

        They are numbered by their smallest states; other states have −1.
        """
        ...


_Key = tuple[int, int]

_prepared: dict[_Key, GraphOperations] = {}
"""By the identity of a matrix and its row groups, as long as the matrix lives."""


def operations_of(model: ExplicitModel) -> GraphOperations:
    """Return the operations on a model's graph, prepared at its first use.

    Parameters
    ----------
    model
        A model of any kind; its arrays must stay as they are from now on.
    """
    # The operations hold the row groups, so that their identity is not given to other ones.
    key = (id(model.matrix), id(model.row_group_offsets))
    found = _prepared.get(key)
    if found is None:
        from engines.cpu.graph import CpuGraph

        found = CpuGraph(model)
        _prepared[key] = found
        weakref.finalize(model.matrix, _prepared.pop, key, None)
    return found
