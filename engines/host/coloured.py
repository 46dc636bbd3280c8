"""Gauss-Seidel in colours by the compiled library: rows in another order, and sweeps."""

from __future__ import annotations

from ctypes import c_double, c_int32, c_int64

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.host.compiled.library import DOUBLES, INDICES, Array, Function, HostMatrix, indices
from engines.host.compiled.shares import ColourShares, check_bounds, even_shares, require_vectors
from engines.host.structures import HostSystem
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import SweepSystem

_AS_OFFSETS = Array(np.int32, np.int64)
"""Of the type that the matrix's offsets have."""
_AS_COLUMNS = Array(np.int32, np.int64)

_SWEEPS = Function(
    "pg_coloured_sweeps",
    c_int64,
    *(HostSystem, _AS_OFFSETS, INDICES, c_int64, INDICES, c_int32),
    *(DOUBLES, c_int64, c_double, DOUBLES, DOUBLES, c_int32),
)
_ARRANGE = Function(
    "pg_arrange",
    None,
    *(HostMatrix, INDICES, c_int64, c_int32, INDICES, INDICES, _AS_COLUMNS, c_int32),
    *(_AS_OFFSETS, _AS_OFFSETS, _AS_COLUMNS, DOUBLES),
)


class HostColouredSweeps:
    """Sweeps between two vectors, colour by colour.

    Parameters
    ----------
    system
        A system without scaling; row or group i computes state i.
    fresh_ends
        Where the entries of each row end that read states of earlier colours, shape (rows,).
    bounds
        The first state of each colour, and the end of the last, shape (colours + 1,).

    Raises
    ------
    ValueError
        If the sizes do not fit each other.
    """

    def __init__(self, system: SweepSystem, fresh_ends: IndexArray, bounds: IndexArray) -> None:
        rows = system.matrix.num_rows
        if len(fresh_ends) != rows:
            raise ValueError(f"{rows} rows, but {len(fresh_ends)} fresh ends")
        check_bounds(bounds, system.num_updates)
        if system.states is not None or system.num_states < system.matrix.num_columns:
            raise ValueError("row i does not compute state i")
        self._system = HostSystem.of(system)
        self._fresh_ends = fresh_ends.astype(_type_of_offsets(self._system.matrix), copy=False)
        offsets, groups = system.matrix.row_offsets, system.group_offsets
        self._shares = ColourShares(bounds, offsets if groups is None else offsets[groups])
        self._states = system.num_states

    @property
    def threads(self) -> int:
        """How many threads share out the states of a colour."""
        return self._shares.threads

    def repeat(
        self,
        changes: FloatArray,
        stop_below: float,
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
        require_vectors(self._states, x, x_new)
        shares = self._shares
        pieces = (shares.firsts, len(shares.firsts) - 1, shares.starts, shares.threads)
        how = (changes, len(changes), stop_below, x, x_new, absolute)
        return int(_SWEEPS(self._system, self._fresh_ends, *pieces, *how))


def arranged_rows(
    matrix: CsrMatrix,
    rows: IndexArray,
    first_stale: IndexArray,
    offsets: IndexArray,
    position: IndexArray,
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Return rows in another order and with other columns, entries for fresh values first.

    Parameters
    ----------
    matrix
        The rows.
    rows
        Which row comes where, shape (rows,).
    first_stale
        Columns below this are fresh, shape (rows,).
    offsets
        Where the rows will start, shape (rows + 1,).
    position
        The new number of each column, shape (columns,), int32 or int64.

    Returns
    -------
    Where the fresh entries of each row end, shape (rows,), of the type of `offsets`; columns, of
    the type of `position`, and values, shape (entries,).

    Raises
    ------
    ValueError
        If the sizes do not fit each other.
    """
    if not len(rows) == len(first_stale) == len(offsets) - 1 == matrix.num_rows:
        raise ValueError(f"{matrix.num_rows} rows, but an order of {len(rows)}")
    if len(position) < matrix.num_columns:
        raise ValueError(f"{matrix.num_columns} columns, but {len(position)} numbers for them")
    host = HostMatrix.of(matrix)
    kind = _type_of_offsets(host)
    fresh_ends = np.empty(matrix.num_rows, dtype=kind)
    columns = np.empty(matrix.num_entries, dtype=position.dtype)
    values = np.empty(matrix.num_entries)
    _ARRANGE(
        *(host, *even_shares(matrix.num_rows, matrix.num_entries)),
        *(indices(rows), indices(first_stale), position, position.dtype.itemsize > 4),
        *(offsets.astype(kind, copy=False), fresh_ends, columns, values),
    )
    return fresh_ends.astype(offsets.dtype, copy=False), columns, values


def _type_of_offsets(matrix: HostMatrix) -> type[np.signedinteger]:
    return np.int64 if matrix.wide_offsets else np.int32
