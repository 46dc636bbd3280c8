"""Sums of powers of a uniformised chain's matrix by the compiled library."""

from __future__ import annotations

from ctypes import c_double, c_int32, c_int64
from typing import NamedTuple

import numpy as np

from engines.arrays import FloatArray
from engines.host.compiled.library import DOUBLES, INDICES, Function, doubles
from engines.host.structures import HostSystem, shares_of
from engines.systems.power_sums import PowerSum

_ADD_POWERS = Function(
    "pg_add_powers",
    c_int64,
    *(HostSystem, DOUBLES, c_double, c_double, c_double, INDICES, c_int64, c_int32),
    *(DOUBLES, DOUBLES, c_int64, DOUBLES, DOUBLES, DOUBLES),
)

MOVED = 2.0
"""What the library says of a sweep that is not steady; of one that is, it says 1 where it changed
anything and else 0."""


class Added(NamedTuple):
    """Sweeps that were made and added.

    Parameters
    ----------
    sweeps
        How many.
    fixed
        Whether the last of them changed nothing.
    steady
        The first that was steady, counted from 1; 0 for none.
    """

    sweeps: int
    fixed: bool
    steady: int


class HostPowers:
    """Sweeps x ← P x of a uniformised chain that are added up.

    Parameters
    ----------
    problem
        The chain, as of a sum; neither its weights nor where it starts are looked at.

    Raises
    ------
    ValueError
        If there is an offset or a choice, or the diagonal has another shape.
    """

    def __init__(self, problem: PowerSum) -> None:
        system, stay = problem.system, problem.stay
        if system.offset is not None or system.group_offsets is not None:
            raise ValueError("sums of powers know neither offsets nor choices")
        self._shapes = (system.num_states, system.matrix.num_rows)
        if stay.shape != self._shapes[1:]:
            raise ValueError(f"{self._shapes[1]} rows, but a diagonal of {stay.shape}")
        steady = (problem.steady_share, problem.steady_change)
        self._system = HostSystem.of(system)
        self._chain = (doubles(stay), problem.rate, *steady)
        self._shares = shares_of(system)
        self.threads = self._shares.threads

    def add(
        self, coefficients: FloatArray, x: FloatArray, x_new: FloatArray, total: FloatArray
    ) -> Added:
        """Make a sweep for each coefficient, or until one changes nothing, and add it to the total.

        The vectors change places after each sweep.

        Parameters
        ----------
        coefficients
            Shape (sweeps,).
        x, x_new
            Shape (states,): the iterate, and room for the next one. What no row computes is the
            same in both.
        total
            Shape (rows,).

        Raises
        ------
        ValueError
            If a vector has another shape.
        """
        states, rows = self._shapes
        if not (len(x) == len(x_new) == states and len(total) == rows):
            lengths = f"{len(x)}, {len(x_new)} and {len(total)}"
            raise ValueError(f"{states} states and {rows} rows, but vectors of {lengths}")
        changes = np.empty(len(coefficients))
        shares = self._shares
        pieces = (shares.bounds, shares.pieces, shares.threads)
        how = (doubles(coefficients), changes, len(changes), x, x_new, total)
        made = int(_ADD_POWERS(self._system, *self._chain, *pieces, *how))
        changes = changes[:made]
        steady = np.flatnonzero(changes < MOVED)
        return Added(made, not changes[-1:].all(), 1 + int(steady[0]) if len(steady) else 0)
