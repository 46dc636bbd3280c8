"""What GMRES over stretches of sweeps asks of the place where sweeps are made."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from engines.arrays import FloatArray
from engines.systems.one_sided import Sweeper, SweepSystem

MOST_DIRECTIONS = 10
"""Directions that are kept before a space is begun anew. Two vectors each."""

PARALLEL = 1e-10
"""A direction of which orthogonalisation leaves a smaller share is none."""


class Stretched(NamedTuple):
    """What a stretch of sweeps has done to an iterate.

    Parameters
    ----------
    change
        The largest change of a state, in units of what as many sweeps make of 0; infinite where
        they are too few to reach a state.
    reach
        The largest value, in the same units.
    largest
        The largest finite value; infinite where a value has left the numbers.
    """

    change: float
    reach: float
    largest: float


class Space(Protocol):
    """An iterate, and the directions that those before it have gone.

    Changes are measured state by state by the *least* iterate, what a stretch makes of 0.
    """

    def begin(self, sweeps: int) -> None:
        """Find the least iterate, and begin from the iterate that the sweeper has.

        Parameters
        ----------
        sweeps
            Of a stretch.
        """

    def lengthen(self, sweeps: int) -> None:
        """Find the least iterate of longer stretches by so many sweeps more; forget directions."""

    def stretch(self, sweeps: int) -> Stretched:
        """Make a stretch of sweeps of the iterate; the sweeper has what becomes of it."""

    def combine(self) -> None:
        """Go on from the combination of iterates whose change is least, not below the least one."""

    def forget(self) -> None:
        """Go on from what the last stretch has made, without directions."""


@runtime_checkable
class HasSpace(Sweeper, Protocol):
    """A sweeper of which GMRES can be made."""

    def restart(self, start: FloatArray) -> None:
        """Go on from another iterate.

        Parameters
        ----------
        start
            Shape (states,); states without a row have the values that they had.
        """

    def space(self, system: SweepSystem) -> Space:
        """Return a space for its sweeps, which must not stop by themselves.

        Parameters
        ----------
        system
            What is swept.
        """
