"""Gauss-Seidel and SOR in colours over a diagram's matrix that is never expanded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from engines.arrays import FloatArray
from engines.diagrams.system import DiagramSystem
from engines.host.colours import Order, SweepSpeed
from engines.host.expansion.slices import Reads, SliceColours, choose_slices, reads_of
from engines.host.watched import METHODS, WatchedSweeper, check_omega
from engines.model.environment import SolverEnvironment
from engines.systems.one_sided import Place, Scaling, Scheme, Sweeper


@dataclass(frozen=True)
class ColouredDiagram:
    """Sweeps in colours, from a start.

    Parameters
    ----------
    start
        Shape (states,): the first iterate.
    omega
        Relaxation.
    colouring
        The colours of the rows.
    """

    start: FloatArray
    omega: float
    colouring: SliceColours

    def restarted(self, values: FloatArray, omega: float) -> ColouredDiagram:
        """Return the same sweeps from another iterate.

        Parameters
        ----------
        values
            Shape (states,).
        omega
            Relaxation.
        """
        return replace(self, start=np.array(values, dtype=np.float64), omega=omega)


class DiagramEngine(Place, Scheme[DiagramSystem], Protocol):
    """Sweeps one diagram's rows, found once, from the start of whatever system it is given."""

    speed: SweepSpeed

    def coloured_sweeper(
        self, coloured: ColouredDiagram, stop_below: float, absolute: bool
    ) -> Sweeper:
        """Prepare sweeps in colours."""


class ColouredDiagramScheme:
    """Sweeps of a diagram's rows in colours, where the engine itself would make Jacobi's.

    Parameters
    ----------
    engine
        The CPU's or a GPU's.
    system
        What is solved.
    environment
        One of the methods of `engines.host.watched.METHODS`, slice size, number of colours.
    """

    def __init__(
        self, engine: DiagramEngine, system: DiagramSystem, environment: SolverEnvironment
    ) -> None:
        self.order = METHODS[environment.method]
        self._engine = engine
        self._system = system
        self._environment = environment
        self._known: Reads | None = None

    @property
    def _reads(self) -> Reads:
        if self._known is None:
            self._known = reads_of(self._system)
        return self._known

    def sweeper(
        self, system: DiagramSystem, stop_below: float, absolute: bool
    ) -> WatchedSweeper[ColouredDiagram, DiagramSystem]:
        """Prepare a solve.

        Parameters
        ----------
        system
            Start and relaxation; its rows are those of the scheme's own system.
        stop_below, absolute
            As in `engines.systems.one_sided.Scheme.sweeper`.

        Raises
        ------
        UnsupportedError
            For an ω with which the sweeps cannot converge.
        """
        check_omega(system.omega)
        singular = system.scaling is Scaling.BALANCE
        return WatchedSweeper(self, system, stop_below, absolute, singular)

    def coloured(self, system: DiagramSystem, order: Order) -> ColouredDiagram:
        """Return the sweeps from the start of a system, in colours of an order."""
        matrix = self._system.matrix
        # What a sweep in blocks costs, in bytes that could have been streamed meanwhile: about what
        # it costs in CSR, whatever fewer bytes are moved (docs/measurements/symbolic.md).
        bytes_of_each = 16
        moved = bytes_of_each * (matrix.num_entries + matrix.num_states)
        wanted = (self._environment.slice_size, self._environment.colours)
        colours = choose_slices(self._reads, order, *wanted, self._engine.speed, moved)
        return ColouredDiagram(system.start, system.omega, colours)

    def prepared(self, coloured: ColouredDiagram, stop_below: float, absolute: bool) -> Sweeper:
        """Return plain sweeps in colours."""
        return self._engine.coloured_sweeper(coloured, stop_below, absolute)

    def opposite_is_fresher(self, _system: DiagramSystem, order: Order) -> bool:
        """Return whether more entries see fresh values if states are swept in opposite order."""
        later = self._reads.backwards()
        return later > 0.5 if order is Order.FORWARDS else later < 0.5
