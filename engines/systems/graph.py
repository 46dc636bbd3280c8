"""What a device must offer for the analyses of graphs."""

from __future__ import annotations

from typing import Protocol

from engines.arrays import IndexArray, MaskArray


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

    def only_bottom(self, origin: int | None = None) -> MaskArray | None:
        """Return the bottom component where there is one alone, if that is soon seen; else None.

        Parameters
        ----------
        origin
            A state that reaches all others; None for none that is known.
        """
        ...

    def components_left(self, labels: IndexArray, count: int) -> MaskArray:
        """Return which components have an edge that leaves them, shape (count,)."""
        ...

    def condensation_order(self, labels: IndexArray, count: int) -> IndexArray:
        """Return the components, each after all others that it has an edge into, shape (count,).

        They come by the number of components on the longest path from each, then by number. The
        components are strong ones, so that there are no cycles among them.
        """
        ...

    def end_components(
        self, restrict: MaskArray, choices: MaskArray
    ) -> tuple[IndexArray, int, MaskArray]:
        """Return the maximal end component of each state, their number, and their choices.

        They are numbered by their smallest states; other states have −1.
        """
        ...

    def end_component_states(
        self, restrict: MaskArray, choices: MaskArray | None = None
    ) -> tuple[IndexArray, int]:
        """Return what `end_components` does, without their choices: a mask the less to make.

        All choices may be used where none are given.
        """
        ...
