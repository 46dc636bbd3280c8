"""The rest of a slow solve: Gauss-Seidel in colours, from where Jacobi's sweeps have come.

Let A and b be non-negative, and let Jacobi's sweeps rise from 0 to the least solution of
x = b + A x. A sweep in colours is then x' = b' + A' x with non-negative A' and b' and the same
least solution, and so many of its sweeps rise at least as high as so many of Jacobi's (Stein and
Rosenberg 1948). So an iterate of Jacobi's is one to go on from, and lies between 0 and the iterate
that as many sweeps in colours reach, as `engines.proofs.doubling.LateDoubling` requires.
"""

from __future__ import annotations

from dataclasses import replace

from engines.arrays import FloatArray
from engines.devices.colours import GaussSeidelScheme
from engines.diagrams.system import System
from engines.host.colours import Order, entries_by_direction
from engines.host.engine import CpuEngine
from engines.model.events import Event
from engines.systems.one_sided import Sweeper, SweepSystem

COLOURS_AFTER = 1_024
"""Sweeps of Jacobi's before."""

COLOURS_REPAY = 1 << 30
"""Entries still to be swept from which on colours repay their choice: half a second of sweeps on
two cores."""

SMALLEST_COLOURED = 10_000
"""Systems of fewer rows are solved by LU in milliseconds."""


def may_serve(system: System) -> bool:
    """Return whether a system whose sweeps rise from 0 may be finished in colours.

    Parameters
    ----------
    system
        A system before any scaling.
    """
    return system.omega == 1.0 and system.num_updates > SMALLEST_COLOURED


def repays(system: System, iterations: int, expected: float) -> bool:
    """Return whether it is time to go on in colours.

    Parameters
    ----------
    system
        What is solved.
    iterations
        Sweeps made.
    expected
        Sweeps to come.
    """
    dear = expected * system.matrix.num_entries > COLOURS_REPAY
    return iterations >= COLOURS_AFTER and dear and system.expanded is not None


def coloured_sweeps(
    system: SweepSystem, values: FloatArray, absolute: bool
) -> tuple[Sweeper, Event]:
    """Prepare sweeps in colours on the host, in the order in which more entries see fresh values.

    Parameters
    ----------
    system
        What is solved, before any scaling.
    values
        The iterate to go on from, shape (states,).
    absolute
        Whether changes are absolute.

    Returns
    -------
    The sweeps, which do not stop by themselves, and what their colours are.

    Raises
    ------
    MemoryError
        If the host has no room for them.
    """
    before, behind = entries_by_direction(system)
    order = Order.FORWARDS if before >= behind else Order.BACKWARDS
    given = replace(system, start=values.copy())
    sweeper = GaussSeidelScheme(CpuEngine(), order).sweeper(given, -1.0, absolute)
    return sweeper, sweeper.events[0]
