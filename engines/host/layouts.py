"""Layouts of a matrix that the CPU sweeps, and which of them a solve gets.

Values with codes are built only where they are asked for. They move half of CSR's bytes, but a core
that works through rows one by one is not held up by its memory, and the look-up comes on top:
measured on kanban and tandem, such a sweep takes as long as CSR's or up to 5 % longer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.host import run_encoding
from engines.host.run_encoding import Runs
from engines.host.runs import HostRunSweeps, classify
from engines.host.sweeps import HostCodes, HostSweeps
from engines.model.choice import MOST_CODES, Format
from engines.model.events import Events, Kind
from engines.model.result import SweepCost
from engines.systems.one_sided import SweepSystem

Sweeps = HostSweeps | HostRunSweeps


@dataclass(frozen=True)
class Layout:
    """A matrix that is ready to be swept.

    Parameters
    ----------
    format
        What the log calls it.
    bytes_per_sweep
        Fewest bytes that a sweep moves.
    sweeps
        Makes the sweeps.
    positions
        Shape (states,): where the iterates hold each state; None for its own number.
    """

    format: str
    bytes_per_sweep: int
    sweeps: Sweeps
    positions: IndexArray | None = None

    def cost(self, events: Events = ()) -> SweepCost:
        """Return what the log tells of such sweeps.

        Parameters
        ----------
        events
            Why another format that was named is not used.
        """
        kernel = f"compiled, threads {self.sweeps.threads}"
        return SweepCost((), kernel, self.format, self.bytes_per_sweep, events)

    def inwards(self, x: FloatArray) -> FloatArray:
        """Return a copy of an iterate, shape (states,), as the sweeps hold it."""
        if self.positions is None:
            return np.array(x, dtype=np.float64)
        moved = np.empty_like(x)
        moved[self.positions] = x
        return moved

    def outwards(self, x: FloatArray) -> FloatArray:
        """Return an iterate of the sweeps by states, shape (states,)."""
        return x if self.positions is None else x[self.positions]


def lay_out(system: SweepSystem, wanted: Format) -> tuple[Layout, Events]:
    """Lay a matrix out.

    Parameters
    ----------
    system
        A system whose matrix is scaled already.
    wanted
        `Format.AUTO` for CSR.

    Returns
    -------
    The layout; CSR, and why, where the format that was named does not fit.
    """
    layout, reason = None, ""
    try:
        if wanted is Format.VALUES:
            layout = in_codes(system)
            reason = f"there are more than {MOST_CODES} distinct values"
        elif wanted is Format.PATTERNS:
            layout = in_patterns(system)
            reason = "too few neighbouring rows have the same pattern"
        elif wanted not in (Format.AUTO, Format.CSR):
            reason = "the CPU knows csr, values and patterns"
    except MemoryError:
        reason = "there is too little memory to build it"
    if layout is not None:
        return layout, ()
    refused = (Kind.FORMAT_REFUSED(format=wanted, reason=reason),) if reason else ()
    return in_csr(system), refused


def in_csr(system: SweepSystem) -> Layout:
    """Return sweeps of a system over its rows as they are.

    Parameters
    ----------
    system
        A system whose matrix is scaled already.
    """
    return Layout("csr", system.bytes_per_sweep, HostSweeps(system))


def in_codes(system: SweepSystem) -> Layout | None:
    """Return sweeps of a system with codes for values; None for more values than codes.

    Parameters
    ----------
    system
        A system whose matrix is scaled already.
    """
    values = np.ascontiguousarray(system.matrix.values)
    found = classify(values.view(np.uint64), MOST_CODES)
    if found is None:
        return None
    classes, distinct = found
    codes, numbers = narrow_codes(classes, len(distinct)), distinct.view(np.float64)
    moved = system.bytes_per_sweep - values.nbytes + codes.nbytes + numbers.nbytes
    return Layout("values", moved, HostSweeps(system, HostCodes.of(codes, numbers)))


def in_patterns(system: SweepSystem) -> Layout | None:
    """Return sweeps of a system over runs of its rows; None where these are too short.

    Parameters
    ----------
    system
        A system whose matrix is scaled already.
    """
    runs = run_encoding.encode(system)
    return None if runs is None else in_runs(system, runs)


def in_runs(system: SweepSystem, runs: Runs) -> Layout:
    """Return sweeps of a system over its runs.

    Parameters
    ----------
    system
        A system whose matrix is scaled already.
    runs
        Its rows.
    """
    direction = None if system.group_offsets is None else system.direction
    return Layout(
        "patterns with values apart" if runs.numbers_apart else "patterns",
        runs.nbytes + 8 * (system.num_states + system.num_updates),
        HostRunSweeps(runs, direction),
        runs.positions,
    )


def largest_residual(system: SweepSystem, x: FloatArray) -> float:
    """Return the largest absolute value of b + A x − x, or of the best choice's.

    Parameters
    ----------
    system
        Without a scaling.
    x
        Shape (states,).
    """
    return residual(HostSweeps(system), x, np.empty_like(x))


def residual(sweeps: Sweeps, x: FloatArray, x_new: FloatArray) -> float:
    """Return what a sweep without relaxation would change, and write its iterate."""
    change = np.empty(1)
    sweeps.repeat(change, -1.0, 1.0, x, x_new, True)
    return float(change[0])


def narrow_codes(codes: IndexArray, distinct: int) -> IndexArray:
    """Return codes in the fewest bytes that tell so many things apart.

    Parameters
    ----------
    codes
        Of any integer type.
    distinct
        How many things there are.
    """
    for dtype in (np.uint8, np.uint16):
        if distinct <= np.iinfo(dtype).max + 1:
            return codes.astype(dtype)
    return codes.astype(np.uint32)
