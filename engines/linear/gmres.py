"""GMRES over stretches of sweeps: slow solves end after some stretches, with a proven error."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from engines.environment import SolverEnvironment
from engines.linear.space import MOST_DIRECTIONS, HasSpace, Stretched
from engines.progress import Progress, SweepReport
from engines.system import SweepSystem

FIRST_STRETCH = 32
"""Sweeps of the first stretches where none have been made before."""

PIECE = 8
"""Stretches are of multiples of so many sweeps, which a GPU queues as a whole."""

ENOUGH = 0.1
"""A space that does not bring the error down to this share is of stretches too short."""

ROUNDING_A_SWEEP = 2.0**-52
"""What a sweep may miss of a value, relative to it: one unit in the last place, which its few
roundings stay below unless they all go one way."""


@dataclass(frozen=True)
class Extrapolated:
    """What stretches of sweeps have come to.

    Parameters
    ----------
    error
        A bound of the error of the values that the sweeper has, rounding included; relative or
        absolute as was asked.
    sweeps
        Sweeps made.
    stretch
        Of how many sweeps the last stretch was.
    """

    error: float
    sweeps: int
    stretch: int


def solve_by_stretches(
    system: SweepSystem,
    sweeper: HasSpace,
    environment: SolverEnvironment,
    most_sweeps: int,
    *,
    stretch: int = FIRST_STRETCH,
    progress: Progress | None = None,
) -> Extrapolated:
    """Solve x = b + A x for its least solution.

    Parameters
    ----------
    system
        A system whose sweeps rise from 0 (`engines.linear.doubling.rises_from_zero`), before any
        scaling.
    sweeper
        Sweeps of it that do not stop by themselves, at an iterate to begin from, which may be the
        first. In the end it has the values, or, where something fails, any iterate.
    environment
        Epsilon and its measure.
    most_sweeps
        The most sweeps to make.
    stretch
        Sweeps of the first stretches.
    progress
        Called after each stretch.

    Returns
    -------
    How it ended. The error is above epsilon only where rounding leaves no smaller one.

    Raises
    ------
    RuntimeError
        When so many sweeps do not suffice.
    DeviceMemoryError
        When the device has no room for more vectors.

    Notes
    -----
    Let T be a sweep, and T^m x = g + G x a stretch of m: then g + G x = x has the solution of
    x = T x, and what m sweeps contract well is gone from I − G, whose spectrum is 1 but for the few
    modes that contract slowly. So GMRES (Saad and Schultz 1986), preconditioned by m − 1 sweeps (a
    Neumann series), takes a step for each of these. It is done here in the form of Anderson (1965;
    equal to GMRES for linear systems: Walker and Ni 2011): the change T^m x − x of each iterate is
    computed, and the combination of iterates is taken whose change is least, relative to T^m 0.

    Nothing need be believed of that. A and b are not negative, so that T^m 0 = (I − G) x. If a
    stretch changes an iterate y, in every state, by at most θ times what m sweeps make of 0,

        |x − T^m y| = |Σ_{l ≥ 1} G^l (T^m y − y)| ≤ θ Σ_l G^l T^m 0 = θ x.

    Iterates are kept above T^m 0, which the solution is above. To the error is added what m sweeps
    may round off: m units of the last place of y, relative to T^m 0.
    """
    space, began, made = sweeper.space(system), time.perf_counter(), 0

    def counted(sweeps: int) -> int:
        nonlocal made
        if made + sweeps > most_sweeps:
            raise RuntimeError(f"{made} sweeps do not suffice")
        made += sweeps
        return sweeps

    stretch = max(stretch // PIECE, 1) * PIECE
    space.begin(counted(stretch))
    while True:
        at_first = math.inf
        for _ in range(MOST_DIRECTIONS + 1):
            seen = space.stretch(counted(stretch))
            rounding = stretch * ROUNDING_A_SWEEP * seen.reach
            error = seen.change + rounding
            if progress is not None:
                seconds = time.perf_counter() - began
                progress(SweepReport(made, np.array([error]), seconds))
            if error <= _enough(environment, seen) or seen.change <= rounding < 1.0:
                scale = seen.largest if environment.absolute else 1.0
                return Extrapolated(error * scale, made, stretch)
            if not math.isfinite(error):
                break
            at_first = min(at_first, error)
            space.combine()
        if math.isfinite(error) and error <= ENOUGH * at_first:
            space.forget()
        else:
            space.lengthen(counted(stretch))
            stretch *= 2


def _enough(environment: SolverEnvironment, seen: Stretched) -> float:
    """Return the relative error that is small enough."""
    if not environment.absolute or seen.largest == 0.0:
        return environment.epsilon
    return environment.epsilon / seen.largest
