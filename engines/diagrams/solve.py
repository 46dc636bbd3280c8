"""Solves of models whose matrix is never expanded: a GPU sweeps what their diagrams stand for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from engines.backend import cupy, gpu_refusal
from engines.diagrams.build import build
from engines.diagrams.diagram import Diagram, StateNumbering
from engines.diagrams.hybrid import HybridMatrix
from engines.diagrams.room import available_host_bytes
from engines.diagrams.survey import survey
from engines.environment import Convention, DeviceChoice, Method, Precision, SolverEnvironment
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.formats.choice import PAIR_BYTES, Format
from engines.formats.csr import CsrMatrix, FloatArray, MaskArray, index_dtype
from engines.gauss_seidel import relaxation
from engines.iterate import Progress, iterate, stop_threshold
from engines.linear.confirmation import AutomaticSweeps, never
from engines.linear.doubling import Doubling, rises_from_zero
from engines.result import SolveResult, Status
from engines.solve import judged, unsafe_remark
from engines.steady_state import AUTOMATIC_OMEGA
from engines.system import Scaling, SweepSystem, rows_of_states

if TYPE_CHECKING:
    from engines.cuda.diagram_rows import DiagramSystem
    from engines.cuda.diagram_sweeps import DiagramSweeper
    from engines.cuda.rows import DeviceRows

FORMATS = (Format.AUTO, Format.PATTERNS, Format.HYBRID)
"""What rows can be laid out in without their matrix; of our choice patterns, if they are few."""

REACHABILITY_METHODS = (Method.POWER, Method.JACOBI, Method.JOR)
STEADY_STATE_METHODS = (Method.JACOBI, Method.JOR)
"""The methods whose iteration matrix is that of the model, scaled by rows."""

TABLE_BYTES = 96
"""Bytes of device memory that finding a pattern takes at most: four slots, each with a hash, a row
and a code, and its place."""

JOB_BUILDING_BYTES = 8
"""Bytes a job that building the representation takes beside it."""

Made = TypeVar("Made")


def solve_reachability_without_matrix(
    diagram: Diagram,
    numbering: StateNumbering,
    unknown: MaskArray,
    start: FloatArray,
    environment: SolverEnvironment,
    *,
    rewards: FloatArray | None = None,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute until probabilities or expected reachability rewards of a Markov chain on a GPU.

    As `engines.reachability.solve_reachability`, but the matrix is never expanded: memory is needed
    for vectors, and for what the diagram shares.

    Parameters
    ----------
    diagram
        The transition probabilities of a DTMC, or of a CTMC's embedded chain.
    numbering
        The states.
    unknown
        States to solve for, shape (states,).
    start
        Known values, and the first iterate of the unknown states, shape (states,).
    environment
        Method, termination, limits, device; the format: patterns, hybrid or auto.
    rewards
        None for probabilities. Else shape (states,): the reward of a step.
    progress
        Called after each batch of sweeps.

    Returns
    -------
    The result, whose status the caller must look at. No direct method takes over where sweeps
    contract slowly.

    Raises
    ------
    DeviceMemoryError
        When the GPU cannot hold vectors and rows, naming the bytes wanted and free.
    MemoryError
        When the host cannot hold what the diagram shares.
    UnsupportedError
        For a method or a format that needs the matrix, and where no GPU can be used.
    """
    if not np.any(unknown):
        raise ValueError("no state is unknown: nothing to solve")
    size = numbering.num_states
    for name, vector in (("unknown", unknown), ("start", start), ("rewards", rewards)):
        if vector is not None and len(vector) != size:
            raise ValueError(f"{name} has {len(vector)} values for {size} states")
    _require_possible(environment, size, REACHABILITY_METHODS)
    from engines.cuda.diagram_rows import DiagramSystem

    began = time.perf_counter()
    states = rows_of_states(unknown)
    offset = None if rewards is None else (rewards if states is None else rewards[states])
    if offset is not None and environment.convention is Convention.SPARSE:
        # As in `solve_reachability`: PRISM's sparse engine starts from b itself.
        start = np.array(start, dtype=np.float64)
        start[unknown] = offset
    method = Method.JACOBI if environment.automatic else environment.method
    system = DiagramSystem(
        _hybrid(diagram, numbering),
        start,
        offset,
        states,
        scaling=Scaling.NONE if method is Method.POWER else Scaling.DIAGONAL,
        omega=relaxation(method, environment.omega),
    )
    return _solve(system, environment, method, began, progress)


def solve_steady_state_without_matrix(
    diagram: Diagram,
    numbering: StateNumbering,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the steady-state probabilities of a Markov chain all of whose states communicate.

    As `engines.steady_state.solve_steady_state`, but the matrix is never expanded.

    Parameters
    ----------
    diagram
        The rates of a CTMC, or the transition probabilities of a DTMC.
    numbering
        The states; the caller has made sure that they are one recurrent class.
    environment
        Method, termination, limits, device; the format: patterns, hybrid or auto.
    progress
        Called after each batch of sweeps.

    Returns
    -------
    The result; its values, of shape (states,), sum to 1 unless the sweeps diverged.

    Raises
    ------
    DeviceMemoryError, MemoryError, UnsupportedError
        As in `solve_reachability_without_matrix`; the power method needs the matrix as well.
    """
    method = environment.method
    size = numbering.num_states
    if environment.convention is Convention.EXPLICIT and not environment.automatic:
        raise UnsupportedError(
            f"{method} by the convention of PRISM's explicit engine is its power method, which is "
            "built from an expanded matrix"
        )
    _require_possible(environment, size, STEADY_STATE_METHODS)
    if size == 1:
        return SolveResult.exact(np.ones(1), method)
    from engines.cuda.diagram_rows import DiagramSystem

    began = time.perf_counter()
    if method is Method.AUTO:
        method = Method.JOR
        environment = replace(environment, omega=AUTOMATIC_OMEGA)
    system = DiagramSystem(
        _hybrid(diagram, numbering.transposed()),
        np.full(size, 1.0 / size),
        scaling=Scaling.BALANCE,
        omega=relaxation(method, environment.omega),
        rates=_hybrid(diagram, numbering),
    )
    result = _solve(system, environment, method, began, progress)
    total = float(result.values.sum())
    if result.status is Status.DIVERGED or not np.isfinite(total) or total == 0.0:
        return result
    # The residual is linear in π, like all else here.
    result = replace(result, residual=result.residual / abs(total))
    return result.with_values(result.values / total)


def _require_possible(
    environment: SolverEnvironment, size: int, methods: tuple[Method, ...]
) -> None:
    """Raise with the reason if what was asked for cannot be done without a matrix, or a GPU."""
    from engines.cuda.diagram_upload import MOST_STATES

    method, matrix_format = environment.method, environment.matrix_format
    if not (environment.automatic or method in methods):
        raise UnsupportedError(
            f"{method} needs an expanded matrix here; without one, a Markov chain is solved by "
            f"{' or '.join(methods)}"
        )
    if size > MOST_STATES:
        raise UnsupportedError(f"{size} states: the GPU engine numbers them in 32 bits")
    if environment.topological:
        raise UnsupportedError(
            "one strongly connected component after the other needs an expanded matrix"
        )
    if matrix_format not in FORMATS:
        raise UnsupportedError(
            f"the format {matrix_format} needs an expanded matrix; without one, rows are laid out "
            f"as {Format.PATTERNS} or {Format.HYBRID}"
        )
    refusal: str | None = "the CPU was asked for"
    if environment.device is not DeviceChoice.CPU:
        refusal = gpu_refusal(environment.device_number)
    if refusal is not None:
        raise UnsupportedError(f"a solve without a matrix needs a GPU: {refusal}")


def _hybrid(diagram: Diagram, numbering: StateNumbering) -> HybridMatrix:
    """Return what the diagram shares, if the host can hold it."""
    surveyed = survey(diagram, numbering)
    level = surveyed.best_level()
    need = int(surveyed.nbytes()[level] + JOB_BUILDING_BYTES * surveyed.jobs()[level])
    available = available_host_bytes()
    if available is not None and need > available:
        raise MemoryError(
            f"the blocks and jobs of a diagram with {numbering.num_states} states and "
            f"{surveyed.num_entries} entries take {need} bytes on the host, and {available} bytes "
            "are free"
        )
    return build(surveyed, level)


def _solve(
    system: DiagramSystem,
    environment: SolverEnvironment,
    method: str,
    began: float,
    progress: Progress | None,
) -> SolveResult:
    """Sweep and judge as `engines.solve.solve_system` does, without its other engines."""
    in_double = environment.double_instead(
        "rows without a matrix are not swept in single precision"
    )
    environment = replace(environment, precision=Precision.DOUBLE)
    engine = DiagramEngine(system, environment)
    outline = _outline(system, engine, environment.automatic)
    sweeper = engine.sweeper(outline, stop_threshold(environment), environment.absolute)
    setup = time.perf_counter() - began
    if environment.automatic:
        doubling = Doubling(environment.absolute) if rises_from_zero(outline) else None
        sweeps = AutomaticSweeps(sweeper, engine, outline, environment, doubling, progress)
        outcome = sweeps.run(never)
    else:
        outcome = iterate(sweeper, environment, progress=progress)
    remarks = [sweeper.cost.remark, in_double, engine.refusal]
    result = SolveResult(
        values=sweeper.values(),
        status=outcome.status,
        method=method,
        iterations=outcome.iterations,
        change=outcome.change,
        residual=sweeper.residual(),
        error_estimate=outcome.error_estimate,
        seconds=time.perf_counter() - began,
        setup_seconds=setup,
        sweeping_seconds=sweeper.seconds,
        cost=sweeper.cost,
    )
    if not environment.automatic:
        remarks.append(unsafe_remark(result, environment))
    return judged(replace(result, note="; ".join(filter(None, remarks))))


def _outline(system: DiagramSystem, engine: DiagramEngine, automatic: bool) -> SweepSystem:
    """Return what termination looks at. Its matrix is not the system's, and must not be swept.

    Whether sweeps rise from 0 is asked of all values of the matrix, which are those of the blocks;
    whether a steady state has mixed, of the sums of its rows.
    """
    size = system.num_states
    if system.scaling is Scaling.BALANCE and automatic:
        dtype = index_dtype(size)
        offsets = np.arange(size + 1, dtype=dtype)
        elsewhere = np.append(offsets[1:-1], offsets[:1])
        matrix = CsrMatrix(offsets, elsewhere, engine.exit_rates(), size)
    else:
        nothing = np.zeros(0, dtype=np.int32)
        matrix = CsrMatrix(np.zeros(1, np.int32), nothing, system.matrix.local_values, size)
    return SweepSystem(
        matrix, system.start, system.offset, system.states, system.scaling, system.omega
    )


class DiagramEngine:
    """Sweeps one diagram's rows on a GPU, from any start; see `engines.system.Engine`.

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

    name = "GPU"

    def __init__(self, system: DiagramSystem, environment: SolverEnvironment) -> None:
        self._system = system
        self._device = environment.device_number
        self._memory = environment.device_memory
        # What is wrong with the system is said before its bytes are counted.
        system.check()
        vectors, need = self._vector_bytes(), self._need()
        self._require("vectors and rows", need, self._memory)
        self._rows = self._on_device(lambda: self._laid_out(environment))
        self._taken = need - vectors
        self.refusal = ""
        """Why sweeps from another start, by which a result is confirmed, were not possible."""

    def sweeper(self, system: SweepSystem, stop_below: float, absolute: bool) -> DiagramSweeper:
        """Prepare a solve from another start.

        Parameters
        ----------
        system
            Its start is taken; everything else is that of the engine's own system.
        stop_below, absolute
            As in `engines.system.Engine.sweeper`.

        Raises
        ------
        DeviceMemoryError
            When the device cannot hold more vectors.
        """
        from engines.cuda.diagram_sweeps import DiagramSweeper

        vectors = self._vector_bytes()
        left = None if self._memory is None else self._memory - self._taken
        of_start = replace(self._system, start=system.start)
        where = (stop_below, absolute, self._device)
        try:
            self._require("vectors", vectors, left)
            sweeper = self._on_device(lambda: DiagramSweeper(self._rows, of_start, *where))
        except DeviceMemoryError as error:
            self.refusal = f"the error is estimated from the last sweeps alone: {error}"
            raise
        self._taken += vectors
        return sweeper

    def exit_rates(self) -> FloatArray:
        """Return the rates out of each state, self-loops left out, shape (states,)."""
        from engines.cuda.diagram_rows import _exit_rates
        from engines.cuda.modules import Launcher, stream

        rates = self._system.rates
        assert rates is not None, "only balance equations have exit rates"

        def found() -> FloatArray:
            with stream(self._device):
                exits: FloatArray = _exit_rates(rates, Launcher("int")).get()
            return exits

        return self._on_device(found)

    def _laid_out(self, environment: SolverEnvironment) -> DeviceRows:
        from engines.cuda.diagram_sweeps import laid_out
        from engines.cuda.formats.patterns import FEW_PATTERNS
        from engines.cuda.modules import stream

        remarks = []
        if environment.num_devices != 1:
            remarks.append(f"without a matrix, GPU {self._device} sweeps alone")
        rows, wanted = None, environment.matrix_format
        with stream(self._device):
            if wanted is Format.AUTO:
                try:
                    rows = laid_out(self._system, Format.PATTERNS, FEW_PATTERNS)
                except UnsupportedError as error:
                    remarks.append(f"not swept as {Format.PATTERNS}: {error}")
                    wanted = Format.HYBRID
            if rows is None:
                most = max(FEW_PATTERNS, self._most_patterns())
                rows = laid_out(self._system, wanted, most)
        return replace(rows, remark="; ".join(remarks))

    def _most_patterns(self) -> int:
        """Return how many patterns the device has room for."""
        from engines.cuda.diagrams import available_bytes

        matrix = self._system.matrix
        row_bytes = PAIR_BYTES * (matrix.num_entries // self._system.num_states + 1)
        # Many patterns have codes of four bytes, of which two are counted.
        taken = self._need() + 2 * self._system.num_updates
        return max(available_bytes(self._memory) - taken, 0) // (TABLE_BYTES + row_bytes)

    def _vector_bytes(self) -> int:
        from engines.cuda.engine import HISTORY

        return 16 * self._system.num_states + 16 * HISTORY

    def _need(self) -> int:
        """Return the bytes of rows and vectors."""
        from engines.cuda.engine import HISTORY

        return self._system.bytes_on_device() + 16 * HISTORY

    def _require(self, what: str, need: int, memory: int | None) -> None:
        from engines.cuda.diagrams import available_bytes

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
