"""GMRES over stretches of sweeps: slow solves end after some stretches, with a proven error."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from engines.model.environment import SolverEnvironment
from engines.model.progress import Progress, SweepReport
from engines.systems.one_sided import SweepSystem
from engines.systems.space import MOST_DIRECTIONS, HasSpace, Stretched
from engines.systems.two_sided import UNIT_ROUNDOFF

FIRST_STRETCH = 32
"""Sweeps of the first stretches where none have been made before."""


@dataclass(frozen=True)
class StretchTuning:
    """How long stretches are, and when they end.

    Parameters
    ----------
    piece_sweeps
        Stretches are of multiples of so many sweeps, which a GPU queues as a whole.
    enough
        A space that does not bring the error down to this share is of stretches too short.
    floor
        Changes below this share of what rounding may make of them fall no further.
    """

    piece_sweeps: int = 8
    enough: float = 0.1
    floor: float = 0.125


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
    failure
        Why the values are of no use; empty where they are.
    """

    error: float
    sweeps: int
    stretch: int
    failure: str = ""


def solve_by_stretches(
    system: SweepSystem,
    sweeper: HasSpace,
    environment: SolverEnvironment,
    most_sweeps: int,
    *,
    stretch: int = FIRST_STRETCH,
    progress: Progress | None = None,
    tuning: StretchTuning = StretchTuning(),
) -> Extrapolated:
    """Solve x = b + A x for its least solution.

    Parameters
    ----------
    system
        A system whose sweeps rise from 0 (`engines.proofs.doubling.rises_from_zero`), before any
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
    tuning
        How long stretches are, and when they end.

    Returns
    -------
    How it ended. The error is above epsilon only where rounding leaves no smaller one.

    Raises
    ------
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

    Iterates are kept above T^m 0, which the solution is above. To θ is added what m sweeps may
    round off of T^m y, relative to T^m 0. Where θ < 1, θ x is at most θ / (1 − θ) T^m y.
    """
    space, began, made = sweeper.space(system), time.perf_counter(), 0
    stretch = max(stretch // tuning.piece_sweeps, 1) * tuning.piece_sweeps
    longest = int(system.matrix.row_lengths().max(initial=0))
    # Of each product and sum of a row, of the scaling of its entries, of what is stored. With
    # values that are nearly equal these roundings go one way, sweep for sweep.
    roundings = (longest + 4) * UNIT_ROUNDOFF
    begun, at_first, steps = False, math.inf, 0
    while made + stretch <= most_sweeps:
        made += stretch
        if not begun:
            space.begin(stretch)
            begun = True
            continue
        seen = space.stretch(stretch)
        rounding = stretch * roundings * seen.reach
        error = seen.change + rounding
        if progress is not None:
            seconds = time.perf_counter() - began
            progress(SweepReport(made, np.array([error]), seconds))
        if not math.isfinite(seen.largest):
            return Extrapolated(math.inf, made, stretch, "the values leave the numbers")
        enough = _enough(environment, seen)
        at_floor = seen.change <= (rounding if rounding > enough else tuning.floor * rounding)
        if error <= enough or (at_floor and error < 1.0):
            return Extrapolated(_as_asked(environment, error, seen), made, stretch)
        steps += 1
        at_first = error if steps == 1 else at_first
        if math.isfinite(error) and steps <= MOST_DIRECTIONS:
            space.combine()
            continue
        if math.isfinite(error) and error <= tuning.enough * at_first:
            space.forget()
        elif made + stretch <= most_sweeps:
            made += stretch
            space.lengthen(stretch)
            stretch *= 2
        steps = 0
    return Extrapolated(math.inf, made, stretch, f"{made} sweeps do not suffice")


def _enough(environment: SolverEnvironment, seen: Stretched) -> float:
    """Return the bound of the relative error that is small enough."""
    epsilon = environment.epsilon
    if not environment.absolute or epsilon == 0.0:
        return epsilon
    return epsilon / (epsilon + seen.largest)


def _as_asked(environment: SolverEnvironment, error: float, seen: Stretched) -> float:
    """Return a bound of the relative error, which is below 1, as it is asked for."""
    return seen.largest * error / (1.0 - error) if environment.absolute else error
