"""Sweeps on the CPU of systems whose matrix is never expanded."""

from __future__ import annotations

from engines.diagrams.system import DiagramSystem
from engines.errors import UnsupportedError
from engines.host.colours import CPU_SPEED
from engines.host.diagram_colours import ColouredDiagram
from engines.host.diagram_sweeper import CpuDiagramSweeper
from engines.host.diagram_sweeps import HostDiagramRows
from engines.model.choice import Format
from engines.model.environment import SolverEnvironment


class HostDiagramEngine:
    """Sweeps one diagram's rows on the host's cores, from any start; a `DiagramEngine`.

    Parameters
    ----------
    system
        What is solved. Its rows are found once, for all sweepers.
    environment
        The format.

    Raises
    ------
    UnsupportedError
        When the rows cannot be swept in the format that was asked for, and why.
    """

    gpus = ()
    speed = CPU_SPEED

    def __init__(self, system: DiagramSystem, environment: SolverEnvironment) -> None:
        if environment.matrix_format is Format.PATTERNS:
            raise UnsupportedError(
                f"the CPU sweeps rows without a matrix as {Format.HYBRID}; {Format.PATTERNS} are "
                "found by a GPU"
            )
        self._rows = HostDiagramRows.of(system)

    def sweeper(
        self, system: DiagramSystem, stop_below: float, absolute: bool
    ) -> CpuDiagramSweeper:
        """Prepare a solve from another start.

        Parameters
        ----------
        system
            Its start is taken; all else is that of the engine's own system.
        stop_below, absolute
            As in `engines.systems.one_sided.Scheme.sweeper`.
        """
        return CpuDiagramSweeper(self._rows, system.start, system.omega, stop_below, absolute)

    def coloured_sweeper(
        self, coloured: ColouredDiagram, stop_below: float, absolute: bool
    ) -> CpuDiagramSweeper:
        """Prepare sweeps in colours.

        Parameters
        ----------
        coloured
            Start, relaxation and colours.
        stop_below, absolute
            As in `engines.systems.one_sided.Scheme.sweeper`.
        """
        begun = (coloured.start, coloured.omega)
        return CpuDiagramSweeper(self._rows, *begun, stop_below, absolute, coloured.colouring)
