"""Sweeps on the host's cores of systems whose matrix stays in the hybrid representation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.cpu import diagram_sweep_kernels as kernels
from engines.cpu.alternate import AlternatingSweeper
from engines.cpu.chunks import CHUNKS_PER_THREAD
from engines.cpu.kernels import unsigned, use_threads
from engines.diagrams.hybrid import HybridMatrix
from engines.diagrams.slices import SliceColours
from engines.diagrams.system import DiagramSystem
from engines.errors import UnsupportedError
from engines.formats.choice import Format
from engines.formats.csr import FloatArray, IndexArray, MaskArray
from engines.result import SweepCost
from engines.system import Scaling, pivots

MOST_COLOURS = 2**16 - 1
"""With fewer colours, two bytes a state tell them apart, and those that are not computed."""


@dataclass(frozen=True)
class HostHybrid:
    """A matrix in the hybrid representation as the loops take it, all indices unsigned.

    Parameters
    ----------
    strip_states, strip_jobs, job_columns, local_offsets, local_columns, local_values
        As in `HybridMatrix`.
    job_rows
        Shape (jobs,): the first local row of a job's block.
    num_states, num_entries
        Of the whole matrix.
    """

    strip_states: IndexArray
    strip_jobs: IndexArray
    job_rows: IndexArray
    job_columns: IndexArray
    local_offsets: IndexArray
    local_columns: IndexArray
    local_values: FloatArray
    num_states: int
    num_entries: int

    @classmethod
    def of(cls, hybrid: HybridMatrix) -> HostHybrid:
        """Return the arrays of a matrix without choices, shared where they can be.

        Parameters
        ----------
        hybrid
            The matrix.

        Raises
        ------
        UnsupportedError
            When states have choices.
        """
        if hybrid.job_choices is not None:
            raise UnsupportedError("the hybrid representation is swept for chains, not for choices")
        return cls(
            *(unsigned(hybrid.strip_states), unsigned(hybrid.strip_jobs)),
            unsigned(hybrid.block_rows[hybrid.job_blocks]),
            unsigned(hybrid.job_columns),
            *(unsigned(hybrid.local_offsets), unsigned(hybrid.local_columns)),
            hybrid.local_values,
            hybrid.num_states,
            hybrid.num_entries,
        )

    @property
    def structure(self) -> tuple[IndexArray, ...]:
        """The loops' arguments for where entries lie."""
        return (
            *(self.strip_states, self.strip_jobs, self.job_rows, self.job_columns),
            *(self.local_offsets, self.local_columns),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in (*self.structure, self.local_values))

    def row_parts(self) -> tuple[FloatArray, FloatArray]:
        """Return each state's entry on the diagonal, and the sum of its others, both (states,)."""
        pieces = use_threads(self.num_entries) * CHUNKS_PER_THREAD
        bounds = np.linspace(0, self.num_states, pieces + 1).astype(np.uint64)
        diagonal, others = np.empty(self.num_states), np.empty(self.num_states)
        find: Any = kernels.row_parts
        find(bounds, *self.structure, self.local_values, diagonal, others)
        return diagonal, others

    def exit_rates(self) -> FloatArray:
        """Return each state's sum of rates without self-loops, 1 for none, shape (states,)."""
        rates = self.row_parts()[1]
        rates[rates == 0.0] = 1.0
        return rates

    def reached_from(self, state: int) -> tuple[MaskArray, int]:
        """Return the states that one leads to, itself included, and one of the farthest.

        Parameters
        ----------
        state
            Where paths begin.

        Returns
        -------
        Shape (states,), and the state that was found last.
        """
        reached = np.zeros(self.num_states, dtype=np.bool_)
        queue = np.empty(self.num_states, dtype=np.uint32)
        reached[state], queue[0] = True, state
        reach: Any = kernels.reach
        count = int(reach(*self.structure, reached, queue))
        return reached, int(queue[count - 1])


@dataclass(frozen=True)
class HostRows:
    """The rows of a system on the host.

    Parameters
    ----------
    hybrid
        The matrix.
    rows
        Number of rows.
    states
        The state of each row, uint32; empty where row i is state i's.
    divisors, offset
        What each row's sum is divided by, and what is added then; empty for 1 and 0.
    without_diagonal
        Whether entries on the diagonal are left out.
    """

    hybrid: HostHybrid
    rows: int
    states: NDArray[np.uint32]
    divisors: FloatArray
    offset: FloatArray
    without_diagonal: bool

    @classmethod
    def of(cls, system: DiagramSystem) -> HostRows:
        """Find the divisors of a system's rows.

        Parameters
        ----------
        system
            The system.

        Raises
        ------
        UnsupportedError
            As in `DiagramSystem.check` and `HostHybrid.of`.
        """
        system.check()
        hybrid = HostHybrid.of(system.matrix)
        states = np.empty(0, dtype=np.uint32)
        if system.states is not None:
            states = system.states.astype(np.uint32)
        divisors = np.empty(0)
        offset = np.empty(0) if system.offset is None else np.array(system.offset, np.float64)
        if system.scaling is Scaling.BALANCE:
            assert system.rates is not None, "balance equations without the rates out of states"
            divisors = HostHybrid.of(system.rates).exit_rates()
        elif system.scaling is Scaling.DIAGONAL:
            divisors = pivots(*hybrid.row_parts())
            if len(states):
                divisors = divisors[states]
            if len(offset):
                offset /= divisors
        without = system.scaling is not Scaling.NONE
        rows = system.num_updates
        return cls(hybrid, rows, states, divisors, offset, without)

    @property
    def bytes_per_sweep(self) -> int:
        """Fewest bytes of a sweep: each array read once, the iterate read and written."""
        beside = (self.states, self.divisors, self.offset)
        vectors = 8 * (self.hybrid.num_states + self.rows)
        return self.hybrid.nbytes + sum(array.nbytes for array in beside) + vectors


class CpuDiagramSweeper(AlternatingSweeper[np.float64]):
    """A solve on the host, in colours or in none; a `Sweeper`.

    Parameters
    ----------
    rows
        The rows.
    start
        The first iterate, shape (states,).
    omega
        Relaxation.
    stop_below, absolute
        As in `engines.system.Engine.sweeper`.
    colours
        The colours of a sweep; None for sweeps in which no value is fresh.
    """

    def __init__(
        self,
        rows: HostRows,
        start: FloatArray,
        omega: float,
        stop_below: float,
        absolute: bool,
        colours: SliceColours | None = None,
    ) -> None:
        super().__init__(np.array(start, dtype=np.float64), stop_below)
        self._rows, self._omega, self._absolute = rows, omega, absolute
        self._threads = use_threads(rows.hybrid.num_entries // (colours.count if colours else 1))
        self._at_once = self._whole()
        self._colours = self._at_once if colours is None else colours
        self._pieces = self._cut(self._colours)
        self._of_state = self._coloured_states(self._colours)
        name = str(Format.HYBRID) if colours is None else f"{Format.HYBRID} by colours"
        kernel = f"numba, threads {self._threads}"
        self.cost = SweepCost("CPU", kernel, name, rows.bytes_per_sweep)
        # No piece, no work: this loads or compiles the loop, which belongs to the preparation.
        nothing = np.empty(0, dtype=np.uint64)
        self._sweep(self._colours, (np.zeros(1, dtype=np.uint64), nothing, nothing), 1.0, True)

    def _whole(self) -> SliceColours:
        """Return one colour of as many slices as keep the threads busy."""
        pieces = self._threads * CHUNKS_PER_THREAD if self._threads > 1 else 1
        return SliceColours(self._rows.rows, max(1, -(-self._rows.rows // pieces)), 1)

    def _coloured_states(self, colours: SliceColours) -> IndexArray:
        """Return the colour of each state; of one that is not computed, a number behind all."""
        dtype: type[np.unsignedinteger] = np.uint16 if colours.count < MOST_COLOURS else np.uint32
        if colours.count == 1:
            return np.empty(0, dtype=dtype)
        slices = np.arange(colours.slices)
        number = (slices[::-1] if colours.backwards else slices) % colours.count
        of_row: IndexArray = np.repeat(number.astype(dtype), colours.slice_size)[: colours.rows]
        if not len(self._rows.states):
            return of_row
        of_state: IndexArray = np.full(
            self._rows.hybrid.num_states, np.iinfo(dtype).max, dtype=dtype
        )
        of_state[self._rows.states] = of_row
        return of_state

    def _cut(self, colours: SliceColours) -> tuple[IndexArray, IndexArray, IndexArray]:
        """Cut each colour's slices into pieces: where its pieces begin, and of each its steps."""
        pieces, begins, ends = [0], [], []
        most = self._threads * CHUNKS_PER_THREAD if self._threads > 1 else 1
        for colour in range(colours.count):
            steps = colours.steps(colour)
            bounds = np.linspace(0, steps, min(most, steps) + 1).astype(np.uint64)
            begins.append(bounds[:-1])
            ends.append(bounds[1:])
            pieces.append(pieces[-1] + len(bounds) - 1)
        return np.array(pieces, dtype=np.uint64), np.concatenate(begins), np.concatenate(ends)

    def _step(self) -> float:
        return self._sweep(self._colours, self._pieces, self._omega, self._absolute)

    def _sweep(
        self,
        colours: SliceColours,
        pieces: tuple[IndexArray, IndexArray, IndexArray],
        omega: float,
        absolute: bool,
    ) -> float:
        rows, number = self._rows, np.uint64
        use_threads(rows.hybrid.num_entries // colours.count)
        sweep: Any = kernels.sweep_slices
        largest: float = sweep(
            *(*pieces, number(rows.rows), number(colours.slice_size), number(colours.count)),
            *(colours.backwards, rows.states, self._of_state, *rows.hybrid.structure),
            *(rows.hybrid.local_values, rows.without_diagonal, rows.divisors, rows.offset),
            *(omega, self._x, self._x_new, absolute),
        )
        return largest

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x for the present iterate."""
        x_new = self._x_new.copy()
        largest = self._sweep(self._at_once, self._cut(self._at_once), 1.0, True)
        self._x_new = x_new
        return largest

    def values(self) -> FloatArray:
        """Return the present iterate, shape (states,)."""
        return self._x
