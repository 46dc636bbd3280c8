"""Loops that whoever hosts the engines has compiled already, for as long as numba's are not loaded.

Loading numba takes half a second, longer than most solves. A virtual machine that runs in the
process anyway can make their sweeps and follow their graphs meanwhile. What it can do is registered
here; by default there is nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from engines.cpu import warm_up
from engines.cpu.chunks import CHUNKS_PER_THREAD, ENTRIES_PER_THREAD, ROW_COST, cut_rows, num_cores
from engines.formats.csr import CsrMatrix, FloatArray, IndexArray, MaskArray
from engines.system import SweepSystem

if TYPE_CHECKING:
    from engines.diagrams.diagram import Diagram, StateNumbering
    from engines.uniformisation import PowerSum

FEWEST_ENTRIES = 200_000
"""Smaller systems are swept by NumPy or SciPy first: hosts compile loops once they run, and most
solves are over sooner."""

FEWEST_ENTRIES_WITH_CHOICES = 20_000
"""The same of systems with choices, for which NumPy takes several passes a sweep."""

FEWEST_ENTRIES_OF_SUMS = 100_000
"""The same of sums of powers, which never change from one way to another."""

LATE_SECONDS = 0.1
"""A smaller solve that has swept for so long goes on with the host's loops."""

MOST_ENTRIES = 3_000_000
"""Larger matrices are not copied: their sweeps repay loading numba."""

MOST_ROUNDS = 16
"""Rounds of a search for strategies, each of which looks at all edges, before numba is loaded for
one that looks at each only a few times."""

MOST_LOOKS = 16
"""How often a search for end components may look at each edge, before the same."""

MOST_THREADS = 4
"""More threads are left to numba."""

ENTRIES_TO_LEAVE = 200_000
"""From so many entries on, a long solve goes on with numba, which may have more threads, and finds
patterns in rows; in smaller systems its threads wait for each other for longer."""

COMPARED_AGAIN = 16
"""After so many calls one thread and several are compared again: another program may have come."""

STAY_SECONDS = 0.5
"""A solve that has swept for so long has many sweeps left, as a rule: numba is loaded beside it."""

LEAVE_SECONDS = 2.0
"""By then it is loaded, where it is loaded at all beside a solve."""


class HostSweeps(Protocol):
    """Sweeps of one system; the sums and their order are those of `engines.cpu.kernels`."""

    def repeat(
        self,
        changes: FloatArray,
        stop_below: float,
        omega: float,
        x: FloatArray,
        x_new: FloatArray,
        absolute: bool,
        threads: int,
    ) -> int:
        """Make a sweep for each of `changes`, or until one changes less than `stop_below`.

        The vectors change places after each sweep. Returns how many were made.

        Parameters
        ----------
        changes
            Takes the largest change of each sweep, shape (sweeps,).
        stop_below
            As for a sweeper.
        omega
            Relaxation ω; systems with choices have none.
        x, x_new
            Shape (states,): the iterate, and room for the next one. What no row computes is the
            same in both.
        absolute
            Whether changes are absolute.
        threads
            How many threads share out the pieces.
        """
        ...

    def substitute(self, x: FloatArray) -> float:
        """Solve the system in one walk, as `engines.cpu.substitution_kernels.substitute` does.

        Parameters
        ----------
        x
            Shape (states,): values of states that no row computes; takes the others.

        Returns
        -------
        A bound of the relative error, or a negative number where states need each other, or where
        there is no room for it.
        """
        ...


class HostSymmetricSweeps(Protocol):
    """Sweeps of one chain's rows in their order and against it by turns, within each piece."""

    def repeat(
        self,
        changes: FloatArray,
        stop_below: float,
        omega: float,
        begun: int,
        x: FloatArray,
        x_new: FloatArray,
        absolute: bool,
        threads: int,
    ) -> int:
        """Make a sweep for each of `changes`; see `HostSweeps.repeat`.

        A row sees what its own piece has computed in the same sweep, and what others had before.

        Parameters
        ----------
        changes, stop_below, omega, x, x_new, absolute, threads
            As there.
        begun
            Sweeps made before: the first, the third and so on go in the order of the rows.
        """
        ...


class HostPowers(Protocol):
    """The sum of powers of one matrix, with the arithmetic of `engines.cpu.uniformise_kernels`."""

    def add(
        self,
        coefficients: FloatArray,
        x: FloatArray,
        x_new: FloatArray,
        total: FloatArray,
        threads: int,
    ) -> tuple[int, bool]:
        """Make a sweep for each coefficient, or until one changes nothing, and add it to the total.

        The vectors change places after each sweep. Returns how many were made, and whether the last
        of them changed nothing.
        """
        ...


class HostClosures(Protocol):
    """Sets of states of one graph; see `engines.graph.operations.GraphOperations`."""

    def reached_from(self, sources: MaskArray) -> MaskArray:
        """Return the least set that holds `sources` and the successors of its states."""
        ...

    def may_reach(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return the least set with `goal` and each of `through` that has a choice into it."""
        ...

    def must_approach(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return the least set with `goal` and each of `through` whose choices all lead into it."""
        ...

    def can_force(self, goal: MaskArray, through: MaskArray) -> MaskArray | None:
        """Return the states from which a strategy has ``through U goal`` with probability 1.

        None where that takes more than `MOST_ROUNDS`.
        """
        ...

    def end_components(
        self, restrict: MaskArray, choices: MaskArray
    ) -> tuple[NDArray[np.int32], MaskArray] | None:
        """Return the maximal end component of each state, and the choices of components.

        Components are numbered by their smallest states; other states have −1. None where each
        edge would be looked at more than `MOST_LOOKS` times.
        """
        ...


class HostLoops(Protocol):
    """What the host can do in place of numba."""

    name: str
    """What the log calls it."""

    def sweeps(self, system: SweepSystem, pieces: IndexArray) -> HostSweeps | None:
        """Prepare sweeps, or return None where there is no room for a copy of the matrix.

        Parameters
        ----------
        system
            The system, without a scaling.
        pieces
            Where the pieces of its rows or groups start that threads share out, and the end.
        """
        ...

    def symmetric_sweeps(
        self, system: SweepSystem, pieces: IndexArray
    ) -> HostSymmetricSweeps | None:
        """Prepare sweeps of a steady state; None where there is no room for a copy of the matrix.

        Parameters
        ----------
        system
            The system, without a scaling; row i computes state i.
        pieces
            Where the pieces of its rows start that threads share out, and the end.
        """
        ...

    def powers(self, problem: PowerSum, pieces: IndexArray) -> HostPowers | None:
        """Prepare a sum of powers, or return None where there is no room for a copy of the matrix.

        Parameters
        ----------
        problem
            The sum.
        pieces
            Where the pieces of its rows start that threads share out, and the end.
        """
        ...

    def strong_components(
        self, starts: IndexArray, targets: IndexArray, within: MaskArray
    ) -> NDArray[np.int32] | None:
        """Return the strong component of each state, or None where there is no room for the graph.

        Parameters
        ----------
        starts, targets
            Where the edges of each state start, shape (states + 1,), and where they lead.
        within
            The states to look at, shape (states,).

        Returns
        -------
        Shape (states,): components are numbered by their smallest states; other states have −1.
        """
        ...

    def closures(
        self, groups: IndexArray | None, offsets: IndexArray, columns: IndexArray, num_states: int
    ) -> HostClosures | None:
        """Prepare searches of a graph, or return None where there is no room for it.

        Parameters
        ----------
        groups
            Where the choices of each state start, shape (states + 1,); None for one each.
        offsets, columns
            Where the edges of each choice start, shape (choices + 1,), and where they lead.
        num_states
            How many states there are.
        """
        ...

    def expanded(self, diagram: Diagram, numbering: StateNumbering, most: int) -> CsrMatrix | None:
        """Return the matrix of a diagram, or None where it is too large, or strange, for that.

        Parameters
        ----------
        diagram
            A function of the row and column variables of `numbering`, interleaved; where it depends
            on others, there is no matrix.
        numbering
            The states.
        most
            The most entries that it may have.
        """
        ...

    def expanded_choices(
        self,
        diagram: Diagram,
        numbering: StateNumbering,
        roots: NDArray[np.int32],
        most: int,
    ) -> tuple[CsrMatrix, IndexArray, NDArray[np.int32]] | None:
        """Return an MDP's choices by rows, or None as for `expanded`.

        Parameters
        ----------
        diagram, numbering, most
            As there.
        roots
            Shape (choices,): the diagram's node below each choice.

        Returns
        -------
        The matrix; where the rows of each state start; which choice a row is.
        """
        ...

    def points(
        self,
        diagram: Diagram,
        numbering: StateNumbering,
        states: IndexArray,
        roots: IndexArray,
    ) -> FloatArray | None:
        """Return values of functions at states, or None where one is no function of row variables.

        There may be no room for it either.

        Parameters
        ----------
        diagram, numbering
            The functions, and the states.
        states, roots
            Shape (points,): the state, and the node that the function begins with.
        """
        ...


_registered: list[HostLoops] = []


def register(loops: HostLoops | None) -> None:
    """Offer loops to the CPU engine from now on; None for none.

    Parameters
    ----------
    loops
        What the host can do.
    """
    _registered[:] = [] if loops is None else [loops]


def stand_in(entries: int) -> HostLoops | None:
    """Return the host's loops where they are the sooner way, else None.

    Parameters
    ----------
    entries
        Entries of the matrix.
    """
    return None if entries > MOST_ENTRIES or warm_up.kernels_ready() else registered()


def registered() -> HostLoops | None:
    """Return the host's loops, if there are any."""
    return _registered[0] if _registered else None


class Threads:
    """How many threads share out the sweeps of a solve: one, or as many as its size repays.

    Threads wait for each other after each sweep. Where another program keeps one of them from its
    core, one alone is faster. The sweeps are the same to the last bit.

    Parameters
    ----------
    entries
        Entries of the matrix.
    rows
        Its rows, where those are worth a thread as well.
    most
        The most there can be.
    """

    def __init__(self, entries: int, rows: int = 0, most: int = MOST_THREADS) -> None:
        repaid = (entries + ROW_COST * rows) // ENTRIES_PER_THREAD
        self.most = max(1, min(num_cores(), repaid, most, MOST_THREADS))
        self._allowed = self.most
        self._calls = 0
        self._paces: dict[int, tuple[float, ...]] = {}

    def leave_a_core(self) -> None:
        """Leave a core to what loads beside the sweeps."""
        self._allowed = max(1, self.most - 1)

    def now(self) -> int:
        """Return how many threads the next call is to have."""
        self._calls += 1
        # The first calls find the loops uncompiled: what compiles them takes a core of its own.
        if self._calls == 1:
            return max(1, min(self._allowed, num_cores() - 1))
        if self._allowed == 1 or self._calls == 2:
            return self._allowed
        if self._calls % COMPARED_AGAIN == 0:
            self._paces.clear()
        for threads in (self._allowed, 1):
            if threads not in self._paces:
                return threads
        alone, together = (min(self._paces[threads]) for threads in (1, self._allowed))
        return 1 if alone < together else self._allowed

    def note(self, threads: int, sweeps: int, seconds: float) -> None:
        """Note how long a call took.

        Parameters
        ----------
        threads
            How many threads it had.
        sweeps, seconds
            How many sweeps it made, in how long.
        """
        if self._calls > 1 and sweeps:
            # Of the last two: one call may have been held up, as when its loops are compiled anew.
            self._paces[threads] = (*self._paces.get(threads, ())[-1:], seconds / sweeps)


def pieces_for(system: SweepSystem, threads: int) -> IndexArray:
    """Cut the rows, or groups of rows, into what threads share out, as numba's threads do.

    Parameters
    ----------
    system
        The system.
    threads
        How many threads there are.
    """
    offsets, groups = system.matrix.row_offsets, system.group_offsets
    cut = offsets if groups is None else offsets[groups]
    return cut_rows(cut, 1 if threads == 1 else threads * CHUNKS_PER_THREAD)


def is_long(entries: int, seconds: float) -> bool:
    """Return whether a solve is to go on with numba, which from now on is loaded beside it.

    Parameters
    ----------
    entries
        Entries of the matrix.
    seconds
        How long it has swept.
    """
    long = entries >= ENTRIES_TO_LEAVE and seconds > STAY_SECONDS
    if long:
        warm_up.MET.meet_long_solve()
    return long


def may_leave(seconds: float) -> bool:
    """Return whether numba is loaded by now, or never will be beside a solve.

    Parameters
    ----------
    seconds
        How long a long solve has swept.
    """
    return warm_up.kernels_ready() or warm_up.has_finished() or seconds > LEAVE_SECONDS
