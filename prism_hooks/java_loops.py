"""Loops in Java for the CPU engine, while numba is not loaded: the JVM runs anyway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.cpu import host_loops
from engines.diagrams.diagram import Diagram, StateNumbering
from engines.formats.csr import CsrMatrix, FloatArray, IndexArray, MaskArray
from engines.system import Direction, SweepSystem
from engines.uniformisation import PowerSum
from prism_hooks.crossing import (
    copy_back,
    java_doubles,
    java_flags,
    java_integers,
    numpy_array,
    overwrite,
)
from prism_hooks.exit_gate import GATE, SOLVE

NONE = -1
"""What walks along a diagram return where they found no variable that is foreign, and had room."""

SHARE_OF_FREE_HEAP = 4
"""A copy may take one part in so many of what is free of Java's heap: PRISM goes on to need it."""


class JavaLoops:
    """See `engines.cpu.host_loops.HostLoops`; the JVM must be running, with our classes."""

    name = "Java"

    def sweeps(self, system: SweepSystem, pieces: IndexArray) -> JavaSweeps | None:
        """Prepare sweeps; see `engines.cpu.host_loops.HostLoops`."""
        matrix = system.matrix
        rows = len(matrix.row_offsets) + 2 * system.num_updates
        if not _has_room(12 * matrix.num_entries + 16 * (rows + system.num_states)):
            return None
        return JavaSweeps(system, pieces)

    def symmetric_sweeps(
        self, system: SweepSystem, pieces: IndexArray
    ) -> JavaSymmetricSweeps | None:
        """Prepare sweeps; see `engines.cpu.host_loops.HostLoops`."""
        matrix = system.matrix
        if not _has_room(12 * matrix.num_entries + 36 * system.num_states):
            return None
        return JavaSymmetricSweeps(system, pieces)

    def powers(self, problem: PowerSum, pieces: IndexArray) -> JavaPowers | None:
        """Prepare a sum of powers; see `engines.cpu.host_loops.HostLoops`."""
        matrix = problem.system.matrix
        if not _has_room(12 * matrix.num_entries + 40 * problem.system.num_states):
            return None
        return JavaPowers(problem, pieces)

    def strong_components(
        self, starts: IndexArray, targets: IndexArray, within: MaskArray
    ) -> NDArray[np.int32] | None:
        """Return strong components; see `engines.cpu.host_loops.HostLoops`."""
        if not _has_room(4 * len(targets) + 32 * len(starts)):
            return None
        GATE.stop_if_ending(SOLVE)
        labels = java_integers(np.where(within, 0, -1))
        _java_class("GraphLoops").label(java_integers(starts), java_integers(targets), labels)
        return numpy_array(labels, np.int32)

    def closures(
        self, groups: IndexArray | None, offsets: IndexArray, columns: IndexArray, num_states: int
    ) -> JavaClosures | None:
        """Prepare searches of a graph; see `engines.cpu.host_loops.HostLoops`."""
        if not _has_room(12 * len(columns) + 16 * len(offsets) + 40 * num_states):
            return None
        return JavaClosures(groups, offsets, columns, num_states)

    def expanded(self, diagram: Diagram, numbering: StateNumbering, most: int) -> CsrMatrix | None:
        """Return the matrix of a diagram; see `engines.cpu.host_loops.HostLoops`."""
        loops = self._diagram_loops(diagram, numbering, most)
        if loops is None or int(loops.expand(diagram.root, numbering.root)) != NONE:
            return None
        offsets = numpy_array(loops.offsets, np.int32)
        return CsrMatrix(offsets, *_entries_of(loops, offsets), numbering.num_states)

    def expanded_choices(
        self,
        diagram: Diagram,
        numbering: StateNumbering,
        roots: NDArray[np.int32],
        most: int,
    ) -> tuple[CsrMatrix, IndexArray, NDArray[np.int32]] | None:
        """Return an MDP's choices; see `engines.cpu.host_loops.HostLoops`."""
        loops = self._diagram_loops(diagram, numbering, most)
        if loops is None or int(loops.expandChoices(java_integers(roots), numbering.root)) != NONE:
            return None
        parts = (loops.rowOffsets, loops.groups, loops.rowChoices)
        offsets, groups, choices = (numpy_array(part, np.int32) for part in parts)
        matrix = CsrMatrix(offsets, *_entries_of(loops, offsets), numbering.num_states)
        return matrix, groups, choices

    def points(
        self,
        diagram: Diagram,
        numbering: StateNumbering,
        states: IndexArray,
        roots: IndexArray,
    ) -> FloatArray | None:
        """Return values at states; see `engines.cpu.host_loops.HostLoops`."""
        loops = self._diagram_loops(diagram, numbering, 0) if _has_room(16 * len(states)) else None
        if loops is None:
            return None
        found = loops.read(numbering.root, java_integers(states), java_integers(roots))
        return None if found is None else numpy_array(found, np.float64)

    def _diagram_loops(self, diagram: Diagram, numbering: StateNumbering, most: int) -> Any | None:
        """Return what follows the paths of a diagram, if there is room for so many entries."""
        nodes, states = diagram.num_nodes + len(numbering.low), numbering.num_states
        if not _has_room(40 * most + 20 * nodes + 24 * states):
            return None
        GATE.stop_if_ending(SOLVE)
        return _java_class("DiagramLoops")(
            *(java_integers(part) for part in (diagram.variables, diagram.low, diagram.high)),
            java_doubles(diagram.values),
            *(
                java_integers(part)
                for part in (numbering.low, numbering.high, numbering.low_counts)
            ),
            *(java_integers(part) for part in (numbering.rows, numbering.columns)),
            *(states, most),
        )


class JavaSweeps:
    """See `engines.cpu.host_loops.HostSweeps`.

    Java's arrays hold a copy of everything: it sweeps them faster than memory of Python's.

    Parameters
    ----------
    system, pieces
        As in `engines.cpu.host_loops.HostLoops.sweeps`.
    """

    def __init__(self, system: SweepSystem, pieces: IndexArray) -> None:
        GATE.stop_if_ending(SOLVE)
        matrix = system.matrix
        self._loops = _java_class("SweepLoops")(
            None if system.group_offsets is None else java_integers(system.group_offsets),
            java_integers(matrix.row_offsets),
            java_integers(matrix.columns),
            java_doubles(matrix.values),
            None if system.offset is None else java_doubles(system.offset),
            None if system.states is None else java_integers(system.states),
            system.direction is Direction.MINIMISE,
            java_integers(pieces),
        )
        self._vectors = [java_doubles(system.start) for _ in range(2)]

    def repeat(
        self,
        changes: FloatArray,
        stop_below: float,
        omega: float,
        x: FloatArray,
        x_new: FloatArray,
        absolute: bool,
        threads: int,
    ) -> int:
        """Make sweeps; see `engines.cpu.host_loops.HostSweeps`."""
        GATE.stop_if_ending(SOLVE)
        inner, vectors = java_doubles(changes), self._vectors
        for vector, values in zip(vectors, (x, x_new), strict=True):
            overwrite(vector, values)
        made = int(self._loops.repeat(inner, stop_below, omega, *vectors, absolute, threads))
        copy_back((*vectors, inner), (x, x_new, changes))
        return made

    def substitute(self, x: FloatArray) -> float:
        """Solve in one walk; see `engines.cpu.host_loops.HostSweeps`."""
        if not _has_room(40 * len(x)):
            return -1.0
        GATE.stop_if_ending(SOLVE)
        inner = java_doubles(x)
        error = float(self._loops.substitute(inner))
        copy_back((inner,), (x,))
        return error


class JavaSymmetricSweeps:
    """See `engines.cpu.host_loops.HostSymmetricSweeps`.

    Parameters
    ----------
    system, pieces
        As in `engines.cpu.host_loops.HostLoops.symmetric_sweeps`.
    """

    def __init__(self, system: SweepSystem, pieces: IndexArray) -> None:
        GATE.stop_if_ending(SOLVE)
        matrix = system.matrix
        self._loops = _java_class("SymmetricLoops")(
            java_integers(matrix.row_offsets),
            java_integers(matrix.columns),
            java_doubles(matrix.values),
            java_integers(pieces),
        )

    def repeat(
        self,
        changes: FloatArray,
        stop_below: float,
        omega: float,
        begun: int,
        x: FloatArray,
        x_new: FloatArray,
        absolute: bool,
        threads: int,
    ) -> int:
        """Make sweeps; see `engines.cpu.host_loops.HostSymmetricSweeps`."""
        GATE.stop_if_ending(SOLVE)
        ours = (changes, x, x_new)
        inner, *vectors = (java_doubles(values) for values in ours)
        how = (inner, stop_below, omega, begun, *vectors, absolute, threads)
        made = int(self._loops.repeat(*how))
        copy_back((inner, *vectors), ours)
        return made


class JavaPowers:
    """See `engines.cpu.host_loops.HostPowers`.

    Parameters
    ----------
    problem, pieces
        As in `engines.cpu.host_loops.HostLoops.powers`.
    """

    def __init__(self, problem: PowerSum, pieces: IndexArray) -> None:
        GATE.stop_if_ending(SOLVE)
        system, matrix = problem.system, problem.system.matrix
        self._loops = _java_class("PowerLoops")(
            java_integers(matrix.row_offsets),
            java_integers(matrix.columns),
            java_doubles(matrix.values),
            None if system.states is None else java_integers(system.states),
            java_doubles(problem.stay),
            float(problem.rate),
            java_integers(pieces),
        )

    def add(
        self,
        coefficients: FloatArray,
        x: FloatArray,
        x_new: FloatArray,
        total: FloatArray,
        threads: int,
    ) -> tuple[int, bool]:
        """Make sweeps and add them; see `engines.cpu.host_loops.HostPowers`."""
        GATE.stop_if_ending(SOLVE)
        changed = java_doubles(np.ones(len(coefficients)))
        inner = [java_doubles(values) for values in (x, x_new, total)]
        made = int(self._loops.add(java_doubles(coefficients), changed, *inner, threads))
        copy_back(inner, (x, x_new, total))
        return made, made > 0 and float(changed[made - 1]) == 0.0


class JavaClosures:
    """See `engines.cpu.host_loops.HostClosures`.

    Parameters
    ----------
    groups, offsets, columns, num_states
        As in `engines.cpu.host_loops.HostLoops.closures`.
    """

    def __init__(
        self, groups: IndexArray | None, offsets: IndexArray, columns: IndexArray, num_states: int
    ) -> None:
        GATE.stop_if_ending(SOLVE)
        self._loops = _java_class("ClosureLoops")(
            None if groups is None else java_integers(groups),
            java_integers(offsets),
            java_integers(columns),
            num_states,
        )

    def reached_from(self, sources: MaskArray) -> MaskArray:
        """Return what is reached; see `engines.cpu.host_loops.HostClosures`."""
        return self._found("reachedFrom", sources)

    def may_reach(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return what may reach a goal; see `engines.cpu.host_loops.HostClosures`."""
        return self._found("mayReach", goal, through)

    def must_approach(self, goal: MaskArray, through: MaskArray) -> MaskArray:
        """Return what must come nearer; see `engines.cpu.host_loops.HostClosures`."""
        return self._found("mustApproach", goal, through)

    def can_force(self, goal: MaskArray, through: MaskArray) -> MaskArray | None:
        """Return what can force a goal; see `engines.cpu.host_loops.HostClosures`."""
        GATE.stop_if_ending(SOLVE)
        found = self._loops.canForce(java_flags(goal), java_flags(through), host_loops.MOST_ROUNDS)
        return None if found is None else np.array(found, dtype=np.bool_)

    def end_components(
        self, restrict: MaskArray, choices: MaskArray
    ) -> tuple[NDArray[np.int32], MaskArray] | None:
        """Return end components; see `engines.cpu.host_loops.HostClosures`."""
        GATE.stop_if_ending(SOLVE)
        usable = java_flags(choices)
        search = _java_class("EndComponentLoops")(self._loops)
        labels = search.find(java_flags(restrict), usable, host_loops.MOST_LOOKS)
        if labels is None:
            return None
        return numpy_array(labels, np.int32), np.array(usable, dtype=np.bool_)

    def _found(self, search: str, *sets: MaskArray) -> MaskArray:
        GATE.stop_if_ending(SOLVE)
        return np.array(getattr(self._loops, search)(*map(java_flags, sets)), dtype=np.bool_)


def register() -> None:
    """Offer Java's loops to the CPU engine."""
    host_loops.register(JavaLoops())


CLASSES = ("DiagramLoops", "SweepLoops", "SymmetricLoops", "PowerLoops", "GraphLoops")
"""Those that small models want."""


def load_classes() -> Iterator[None]:
    """Load the classes of Java's loops, and what tells JPype about them, pausing after each."""
    _has_room(0)
    for name in CLASSES:
        _java_class(name)
        yield


def _has_room(size: int) -> bool:
    import jpype

    runtime = jpype.JClass("java.lang.Runtime").getRuntime()
    taken = int(runtime.totalMemory()) - int(runtime.freeMemory())
    return size <= (int(runtime.maxMemory()) - taken) // SHARE_OF_FREE_HEAP


def _java_class(name: str) -> Any:
    import jpype

    return jpype.JClass(f"prismgpu.{name}")


def _entries_of(loops: Any, offsets: IndexArray) -> tuple[NDArray[np.int32], FloatArray]:
    """Return the columns and values that a diagram's loops have found."""
    found = slice(int(offsets[-1]))
    columns = numpy_array(loops.columns, np.int32)[found]
    return columns, numpy_array(loops.entries, np.float64)[found]
