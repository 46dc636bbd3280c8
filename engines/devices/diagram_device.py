"""Sweeps on a GPU of systems whose matrix is never expanded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from engines.cuda.driver import cupy
from engines.diagrams.system import DiagramSystem
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.host.colours import GPU_SPEED
from engines.host.diagram_colours import ColouredDiagram
from engines.host.watched import sweeps_in_colours
from engines.model.choice import PAIR_BYTES, Format
from engines.model.environment import SolverEnvironment
from engines.model.events import Event, Events, Kind
from engines.systems.one_sided import Sweeper

if TYPE_CHECKING:
    from engines.cuda.diagram_sweeps import DiagramSweeper
    from engines.cuda.rows import DeviceRows

Made = TypeVar("Made")


class DeviceDiagramEngine:
    """Sweeps one diagram's rows on a GPU, from any start; a `DiagramEngine`.

    Parameters
    ----------
    system
        What is solved. Its rows are found once, for all sweepers.
    environment
        Format, device, memory.

    Raises
    ------
    DeviceMemoryError
        When the device cannot hold vectors and rows; nothing is left allocated.
    UnsupportedError
        When the rows cannot be swept in the format that was asked for, and why.
    """

    speed = GPU_SPEED

    def __init__(self, system: DiagramSystem, environment: SolverEnvironment) -> None:
        from engines.cuda.diagram_rows import check_system

        self._system = system
        self._device = environment.device_number
        self.gpus = (self._device,)
        self._memory = environment.device_memory
        # What is wrong with the system is said before its bytes are counted.
        check_system(system)
        vectors, need = self._vector_bytes(), self._need()
        self._require("vectors and rows", need, self._memory)
        self._rows = self._on_device(lambda: self._laid_out(environment))
        self._taken = need - vectors
        self.events: Events = ()
        """Why sweeps from another start, by which a result is confirmed, were not possible."""

    def sweeper(self, system: DiagramSystem, stop_below: float, absolute: bool) -> DiagramSweeper:
        """Prepare a solve from another start.

        Parameters
        ----------
        system
            Its start is taken; all else is that of the engine's own system.
        stop_below, absolute
            As in `engines.systems.one_sided.Scheme.sweeper`.

        Raises
        ------
        DeviceMemoryError
            When the device cannot hold more vectors.
        """
        from engines.cuda.diagram_sweeps import DiagramSweeper

        vectors = self._vector_bytes()
        left = None if self._memory is None else self._memory - self._taken
        where = (stop_below, absolute, self._device)
        try:
            self._require("vectors", vectors, left)
            sweeper = self._on_device(lambda: DiagramSweeper(self._rows, system, *where))
        except DeviceMemoryError as error:
            self.events = (Kind.UNCONFIRMED(reason=str(error)),)
            raise
        self._taken += vectors
        return sweeper

    def coloured_sweeper(
        self, coloured: ColouredDiagram, stop_below: float, absolute: bool
    ) -> Sweeper:
        """Prepare sweeps in colours.

        Parameters
        ----------
        coloured
            Start, relaxation and colours.
        stop_below, absolute
            As in `engines.systems.one_sided.Scheme.sweeper`.

        Raises
        ------
        DeviceMemoryError
            When the device cannot hold the vectors.
        """
        from engines.cuda.diagram_colours import DiagramColourSweeper

        left = None if self._memory is None else self._memory - self._taken
        self._require("vectors", self._vector_bytes(), left)
        where = (stop_below, absolute, self._device)
        return self._on_device(lambda: DiagramColourSweeper(self._rows, coloured, *where))

    def _laid_out(self, environment: SolverEnvironment) -> DeviceRows:
        from engines.cuda.diagram_sweeps import laid_out
        from engines.cuda.formats.patterns import FEW_PATTERNS
        from engines.cuda.modules import stream

        events: list[Event] = []
        if environment.num_devices != 1:
            events.append(Kind.SWEEPS_ALONE(gpu=self._device))
        rows, wanted = None, environment.matrix_format
        if sweeps_in_colours(environment.method):
            if wanted is Format.PATTERNS:
                raise UnsupportedError(
                    f"sweeps in colours need a row's entries one by one: {Format.HYBRID}, not "
                    f"{Format.PATTERNS}"
                )
            wanted = Format.HYBRID
        with stream(self._device):
            if wanted is Format.AUTO:
                try:
                    rows = laid_out(self._system, Format.PATTERNS, FEW_PATTERNS)
                except UnsupportedError as error:
                    refused = Kind.NOT_IN_FORMAT(format=Format.PATTERNS, reason=str(error))
                    events.append(refused)
                    wanted = Format.HYBRID
            if rows is None:
                most = max(FEW_PATTERNS, self._most_patterns())
                rows = laid_out(self._system, wanted, most)
        return replace(rows, events=tuple(events))

    def _most_patterns(self) -> int:
        """Return how many patterns the device has room for."""
        from engines.cuda.memory import available_bytes

        matrix = self._system.matrix
        row_bytes = PAIR_BYTES * (matrix.num_entries // self._system.num_states + 1)
        # Many patterns have codes of four bytes, of which two are counted.
        taken = self._need() + 2 * self._system.num_updates
        # Finding one takes at most four slots, each with a hash, a row and a code, and its place.
        table_bytes = 96
        return max(available_bytes(self._memory) - taken, 0) // (table_bytes + row_bytes)

    def _vector_bytes(self) -> int:
        from engines.cuda.queued import HISTORY

        return 16 * self._system.num_states + 16 * HISTORY

    def _need(self) -> int:
        """Return the bytes of rows and vectors."""
        from engines.cuda.diagram_rows import system_bytes
        from engines.cuda.queued import HISTORY

        return system_bytes(self._system) + 16 * HISTORY

    def _require(self, what: str, need: int, memory: int | None) -> None:
        from engines.cuda.memory import available_bytes

        with cupy().cuda.Device(self._device):
            available = max(available_bytes(memory), 0)
        if need > available:
            raise DeviceMemoryError(
                f"GPU {self._device}: {what} of {self._system.num_states} states take about {need} "
                f"bytes without the matrix, and {available} bytes are free"
            )

    def _on_device(self, make: Callable[[], Made]) -> Made:
        cp = cupy()
        with cp.cuda.Device(self._device):
            try:
                return make()
            except cp.cuda.memory.OutOfMemoryError as error:
                cp.get_default_memory_pool().free_all_blocks()
                raise DeviceMemoryError(
                    f"GPU {self._device} ran out of memory without the matrix: {error}"
                ) from error
