"""The rates out of the states of a system for π Q = 0."""

from __future__ import annotations

from engines.arrays import FloatArray
from engines.diagrams.system import DiagramSystem, System
from engines.host.hybrid import HostHybrid
from engines.host.products import sums_beside_diagonal


def exit_rates(system: System) -> FloatArray:
    """Return the rates out of each state, self-loops left out, shape (states,).

    Parameters
    ----------
    system
        A system with `Scaling.BALANCE`, before scaling.
    """
    if isinstance(system, DiagramSystem):
        assert system.rates is not None, "balance equations without the rates out of states"
        return HostHybrid.of(system.rates).exit_rates()
    return sums_beside_diagonal(system.matrix)
