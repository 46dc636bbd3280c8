"""Sweeps of systems whose matrix stays shared blocks, in colours or in none, by the library."""

from __future__ import annotations

from ctypes import c_double, c_int32, c_int64, c_void_p

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, IndexArray
from engines.diagrams.system import DiagramSystem
from engines.host.compiled.library import DOUBLES, Function, Structure, doubles
from engines.host.compiled.shares import CHUNKS_PER_THREAD, require_vectors, threads_for
from engines.host.exits import exit_rates
from engines.host.expansion.slices import SliceColours
from engines.host.hybrid import HostHybrid
from engines.systems.one_sided import Scaling, pivots

MOST_COLOURS = 2**16 - 1
"""With fewer colours, two bytes a state tell them apart, and those that are not computed."""


class HostDiagramRows(Structure):
    """`PgDiagramRows` of src/diagram_sweeps.cpp."""

    _fields_ = (
        ("hybrid", HostHybrid),
        ("rows", c_int64),
        ("states", c_void_p),
        ("divisors", c_void_p),
        ("offset", c_void_p),
        ("without_diagonal", c_int32),
    )

    num_states: int
    num_entries: int
    computed: NDArray[np.uint32] | None
    bytes_per_sweep: int

    @classmethod
    def of(cls, system: DiagramSystem) -> HostDiagramRows:
        """Return a system's rows as the library reads them, and what divides them.

        Parameters
        ----------
        system
            The system; its start is not looked at.

        Raises
        ------
        UnsupportedError
            As in `DiagramSystem.check` and `HostHybrid.of`.
        ValueError
            As there, or if the computed states or the offset do not fit the matrix.
        """
        system.check()
        hybrid, computed = HostHybrid.of(system.matrix), _computed(system)
        offset = None if system.offset is None else doubles(system.offset)
        if offset is not None and len(offset) != system.num_updates:
            raise ValueError(f"{system.num_updates} rows, but an offset of {len(offset)}")
        divisors = _divisors(system, hybrid)
        if divisors is not None and offset is not None and system.divisors is None:
            offset = offset / divisors
        arrays = (computed, divisors, offset)
        pointers = [None if array is None else array.ctypes.data for array in arrays]
        made = cls(hybrid, system.num_updates, *pointers, system.scaling is not Scaling.NONE)
        made._kept = (hybrid, *arrays)
        made.num_states, made.num_entries = hybrid.num_states, hybrid.num_entries
        made.computed = computed
        # Each array read once, the iterate read and written.
        beside = sum(array.nbytes for array in arrays if array is not None)
        made.bytes_per_sweep = hybrid.nbytes + beside + 8 * (hybrid.num_states + made.rows)
        return made


def _computed(system: DiagramSystem) -> NDArray[np.uint32] | None:
    states = system.states
    if states is None:
        return None
    inside = not len(states) or 0 <= states[0] <= states[-1] < system.num_states
    if not inside or (np.diff(states) <= 0).any():
        raise ValueError(f"computed states are not ascending numbers of {system.num_states}")
    return np.ascontiguousarray(states, dtype=np.uint32)


def _divisors(system: DiagramSystem, hybrid: HostHybrid) -> FloatArray | None:
    """Return what each row's sum is divided by, shape (rows,), or None for 1."""
    if system.scaling is Scaling.BALANCE:
        return exit_rates(system)
    if system.scaling is Scaling.DIAGONAL:
        found = pivots(*hybrid.row_parts())
        return found if system.states is None else found[system.states]
    return None if system.divisors is None else doubles(system.divisors)


class HostSlices(Structure):
    """`PgSlices` of src/diagram_sweeps.cpp: slices of rows, shared out among threads."""

    _fields_ = (
        ("slices", c_int64),
        ("size", c_int64),
        ("colours", c_int64),
        ("backwards", c_int32),
        ("threads", c_int32),
        ("firsts", c_void_p),
        ("begins", c_void_p),
        ("ends", c_void_p),
        ("colour_of_state", c_void_p),
        ("wide", c_int32),
    )

    @classmethod
    def of(cls, rows: HostDiagramRows, colours: SliceColours | None) -> HostSlices:
        """Cut each colour's slices into pieces.

        Parameters
        ----------
        rows
            The rows.
        colours
            Their colours; None for a single one.
        """
        threads = threads_for(rows.num_entries // (1 if colours is None else colours.count))
        most = threads * CHUNKS_PER_THREAD if threads > 1 else 1
        if colours is None:
            colours = SliceColours(rows.rows, max(1, -(-rows.rows // most)), 1)
        elif colours.rows != rows.rows:
            raise ValueError(f"{rows.rows} rows, but colours of {colours.rows}")
        firsts, begins, ends = [0], [], []
        for colour in range(colours.count):
            steps = colours.steps(colour)
            bounds = np.linspace(0, steps, min(most, steps) + 1).astype(np.int64)
            bounds = colour + bounds * colours.count
            begins.append(bounds[:-1])
            ends.append(bounds[1:])
            firsts.append(firsts[-1] + len(bounds) - 1)
        arrays = (np.array(firsts), np.concatenate(begins), np.concatenate(ends))
        of_state = _coloured_states(rows, colours)
        made = cls(
            *(colours.slices, colours.slice_size, colours.count, colours.backwards, threads),
            *(array.ctypes.data for array in (*arrays, of_state)),
            of_state.dtype.itemsize > 2,
        )
        made._kept = (*arrays, of_state)
        return made


def _coloured_states(rows: HostDiagramRows, colours: SliceColours) -> IndexArray:
    """Return the colour of each state; of one that is not computed, a number behind all."""
    dtype: type[np.unsignedinteger] = np.uint16 if colours.count < MOST_COLOURS else np.uint32
    if colours.count == 1:
        return np.empty(0, dtype=dtype)
    slices = np.arange(colours.slices)
    number = (slices[::-1] if colours.backwards else slices) % colours.count
    of_row: IndexArray = np.repeat(number.astype(dtype), colours.slice_size)[: colours.rows]
    if rows.computed is None:
        return of_row
    of_state: IndexArray = np.full(rows.num_states, np.iinfo(dtype).max, dtype=dtype)
    of_state[rows.computed] = of_row
    return of_state


_SWEEPS = Function(
    "pg_diagram_sweeps",
    c_int64,
    *(HostDiagramRows, HostSlices, c_double),
    *(DOUBLES, c_int64, c_double, DOUBLES, DOUBLES, c_int32),
)


class HostDiagramSweeps:
    """Sweeps between two vectors, colour by colour.

    Parameters
    ----------
    rows
        The rows.
    colours
        The colours of a sweep; None for sweeps in which no value is fresh.

    Raises
    ------
    ValueError
        If the colours are those of another number of rows.
    """

    def __init__(self, rows: HostDiagramRows, colours: SliceColours | None = None) -> None:
        self._rows, self._slices = rows, HostSlices.of(rows, colours)
        self.threads = int(self._slices.threads)

    def repeat(
        self,
        changes: FloatArray,
        stop_below: float,
        omega: float,
        x: FloatArray,
        x_new: FloatArray,
        absolute: bool,
    ) -> int:
        """Make a sweep for each of `changes`, or until one changes less than `stop_below`.

        A row reads the states of earlier colours from the new vector, all others from the old one:
        so the result does not depend on who is first within a colour. The vectors change places
        after each sweep. Returns how many were made.

        Parameters
        ----------
        changes
            Takes the largest change of each sweep, shape (sweeps,).
        stop_below
            Negative for never.
        omega
            Relaxation ω.
        x, x_new
            Shape (states,): the iterate, and room for the next one. What no row computes is the
            same in both.
        absolute
            Whether changes are absolute.

        Raises
        ------
        ValueError
            If a vector has another shape.
        """
        require_vectors(self._rows.num_states, x, x_new)
        how = (changes, len(changes), stop_below, x, x_new, absolute)
        return int(_SWEEPS(self._rows, self._slices, omega, *how))
