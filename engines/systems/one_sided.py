"""The one form that every solve takes before it is swept, and what an engine must offer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.model.csr import CsrMatrix
from engines.model.events import Events
from engines.model.result import SweepCost

LONGEST_BATCH = 1024
"""Most sweeps between two looks of the host."""

RELAXED_OMEGA = 0.95
"""Relaxation of sweeps for π Q = 0 that cannot swing.

Jacobi is similar to the embedded chain without self-loops, and swings for ever where that is
periodic, as Gauss-Seidel may by a period of its order. With ω < 1 the splitting is regular and
each state keeps a share of itself, so that 1 is the only eigenvalue on the unit circle, in whatever
order the states are (Rose 1984, Convergent regular splittings for singular M-matrices). Nearer to 1
slow sweeps keep their speed, and swings last."""


ROUNDING_OF_A_SUM = 1e-11
"""By how much probabilities that add up to 1 may miss it."""


class Scaling(StrEnum):
    """How a matrix becomes the iteration matrix A of ``x ← (1 − ω) x + ω (b + A x)``."""

    NONE = "none"
    """As it is: the power method, value iteration."""
    DIAGONAL = "diagonal"
    """Jacobi for x = A x + b: row i without its diagonal, matrix and b divided by 1 − a_ii; where
    the row adds up to 1 that is the sum of its other entries, which no rounding of a_ii reaches."""
    BALANCE = "balance"
    """Jacobi for π Q = 0: a_ji = r_ij / Σ_{k≠j} r_jk off the diagonal, for rates r."""


def pivots(own: FloatArray, others: FloatArray) -> FloatArray:
    """Return what rows are divided by to take the diagonal out, `Scaling.DIAGONAL`.

    Parameters
    ----------
    own
        The diagonal, shape (rows,).
    others
        The sum of each row's other entries, shape (rows,); it matters where there is a diagonal.
    """
    whole = (own != 0.0) & (np.abs(others + own - 1.0) <= ROUNDING_OF_A_SUM)
    pivot = np.where(whole, others, 1.0 - own)
    # A state that only loops has nothing to divide by; PRISM puts 1 there.
    return np.where(pivot > 0.0, pivot, 1.0)


class Direction(StrEnum):
    """How an MDP's choices are resolved."""

    MINIMISE = "min"
    MAXIMISE = "max"


@dataclass(frozen=True)
class SweepSystem:
    """A system of equations, ready for an engine.

    Parameters
    ----------
    matrix
        Shape (rows, states).
    start
        Shape (states,): the first iterate; states that no row belongs to keep these values.
    offset
        The vector b, shape (rows,), or None for zero.
    states
        The state that each row (or group of rows) computes, shape (rows or groups,); None where
        row i computes state i.
    scaling
        How the engine turns `matrix` into the iteration matrix.
    omega
        Relaxation ω; 1 for none.
    group_offsets
        MDPs: rows ``group_offsets[g]`` to ``group_offsets[g + 1] - 1`` are the choices of group g.
    direction
        MDPs: minimise or maximise over the choices.
    """

    matrix: CsrMatrix
    start: FloatArray
    offset: FloatArray | None = None
    states: IndexArray | None = None
    scaling: Scaling = Scaling.NONE
    omega: float = 1.0
    group_offsets: IndexArray | None = None
    direction: Direction | None = None

    @property
    def num_states(self) -> int:
        """Number of states, the length of the iterate."""
        return len(self.start)

    @property
    def num_updates(self) -> int:
        """Number of states that a sweep computes."""
        if self.group_offsets is not None:
            return len(self.group_offsets) - 1
        return self.matrix.num_rows

    @property
    def has_choices(self) -> bool:
        """Whether several rows may compute one state."""
        return self.group_offsets is not None

    @property
    def expanded(self) -> SweepSystem:
        """The system itself, since its matrix is expanded; see `engines.diagrams.system`."""
        return self

    @property
    def bytes_per_sweep(self) -> int:
        """Fewest bytes of a sweep in CSR: each array read once, the iterate read and written."""
        matrix = self.matrix
        read = matrix.columns.nbytes + matrix.values.nbytes + matrix.row_offsets.nbytes
        for array in (self.offset, self.states, self.group_offsets):
            read += 0 if array is None else array.nbytes
        return read + 8 * (self.num_states + self.num_updates)


class Sweeper(Protocol):
    """A prepared solve: the arrays lie where they are swept."""

    cost: SweepCost
    seconds: float
    """Seconds spent in sweeps so far, by the clock of whatever makes them."""

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; return the largest change of each, in order.

        It stops after the first sweep whose change is below the threshold that the sweeper was
        made with, so the result may be shorter.
        """

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x for the present iterate."""

    def values(self) -> FloatArray:
        """Return the present iterate, shape (states,), on the host."""


class SingleSweeper(Sweeper, Protocol):
    """Sweeps whose vectors are in single precision; `values` returns them as doubles.

    Sums are taken in double precision and rounded when they are stored, to nearest or down, as
    matrix values and right-hand side were. Changes relative to a value below 2⁻¹⁰⁰ are taken
    relative to that: near the end of the range values have no digits left.
    """

    rounding: float
    """What a sweep loses of each value at most, relative to it."""


@runtime_checkable
class HasLongestRun(Protocol):
    """A sweeper that makes few sweeps at a time."""

    longest_run: int
    """Sweeps that `run` makes at most."""


@runtime_checkable
class HasComparison(Protocol):
    """A sweeper that compares its iterate with a vector where the iterate lies."""

    def comparison(self, reference: FloatArray, least: float) -> Callable[[], float] | None:
        """Return what tells how far the present iterate x is from a vector r, relative to it.

        Parameters
        ----------
        reference
            The vector r, shape (states,), not negative.
        least
            States whose r is not above this are not looked at.

        Returns
        -------
        A function of the largest ``|x / r − 1|``; None where the host has to compare.

        Raises
        ------
        DeviceMemoryError
            Where r does not fit beside the iterate.
        """


@runtime_checkable
class HasTwin(Protocol):
    """A sweeper whose matrix other sweeps can share."""

    def twin(self, start: FloatArray, stop_below: float) -> Sweeper | None:
        """Return sweeps of the same system from another start; None where they share nothing.

        Parameters
        ----------
        start
            Shape (states,).
        stop_below
            Stop after the first sweep whose change is below this; negative for never.

        Raises
        ------
        DeviceMemoryError
            Where their vectors do not fit beside those of this sweeper.
        """


@runtime_checkable
class HasSingle(Protocol):
    """A sweeper that can make sweeps in single precision first."""

    def in_single(self, stop_below: float, nearest: bool, factor: float = 1.0) -> SingleSweeper:
        """Return sweeps of the same system in single precision from the present iterate.

        Parameters
        ----------
        stop_below
            Stop after the first sweep whose change is below this; negative for never.
        nearest
            Whether what is stored is rounded to nearest; else down.
        factor
            A power of two that the iterate is multiplied by while it is swept. Only systems without
            a right-hand side have solutions that can be multiplied so, and only relative changes
            stay what they are.

        Raises
        ------
        UnsupportedError
            Where they can be made in double precision only.
        DeviceMemoryError
            Where they do not fit beside those in double precision.
        """

    def stop_at(self, stop_below: float) -> None:
        """Stop after the first later sweep whose change is below this; negative for never."""

    def go_on_from(self, single: SingleSweeper) -> None:
        """Take over the mean of the last two iterates of `single`, which `in_single` made.

        What roundings leave near an eigenvalue of −1 changes its sign with each sweep, hardly falls
        in later ones, and vanishes from the mean.
        """


@runtime_checkable
class HasSubstitution(Protocol):
    """A sweeper that lies on the host, where a walk along the edges may end its solve."""

    def substituted(self) -> tuple[FloatArray, float] | None:
        """Return what one walk finds of equations without negative numbers.

        Returns
        -------
        The solution, shape (states,), and a bound of its relative error, which is rounding's; None
        where states need each other.
        """

    def restart(self, start: FloatArray) -> None:
        """Go on from another iterate, shape (states,)."""


@runtime_checkable
class HasEvents(Protocol):
    """A sweeper or a scheme that may do otherwise than it was asked, and tells so in the end."""

    @property
    def events(self) -> Events:
        """What happened."""


S = TypeVar("S", contravariant=True)
"""What a scheme sweeps: a system with a matrix, or with a diagram's."""


class Scheme(Protocol[S]):
    """A way to sweep at some place: Jacobi's, Gauss-Seidel's in colours, cycles."""

    def sweeper(self, system: S, stop_below: float, absolute: bool) -> Sweeper:
        """Prepare a solve.

        Parameters
        ----------
        system
            What to solve.
        stop_below
            Stop after the first sweep whose change is below this; negative for never.
        absolute
            Whether changes are absolute; else relative to the value before the sweep.
        """


class Place(Protocol):
    """Where sweeps are made."""

    @property
    def gpus(self) -> tuple[int, ...]:
        """The numbers of the GPUs, the first of which decides; empty for the CPU."""


class Engine(Place, Scheme[SweepSystem], Protocol):
    """The CPU, or GPUs. By itself it makes Jacobi's sweeps."""


def rows_of_states(unknown: MaskArray) -> IndexArray | None:
    """Return the numbers of the states to solve for, or None where that is all of them."""
    return None if bool(np.all(unknown)) else np.flatnonzero(unknown).astype(np.int32)
