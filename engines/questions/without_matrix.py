"""Solves of models whose matrix is never expanded: what their diagrams stand for is swept."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.diagrams.diagram import Diagram, StateNumbering
from engines.diagrams.hybrid import HybridMatrix
from engines.diagrams.run_blocks import hybrid_of_runs
from engines.diagrams.survey import survey
from engines.diagrams.system import DiagramSystem
from engines.errors import UnsupportedError
from engines.host.expansion.build import build
from engines.host.expansion.room import available_host_bytes
from engines.host.watched import METHODS as COLOURED
from engines.host.watched import relaxation
from engines.methods.afterwards import measured
from engines.model.choice import Format
from engines.model.environment import Convention, Method, SolverEnvironment
from engines.model.progress import Progress
from engines.model.result import SolveResult, Status
from engines.model.row_runs import RowRuns
from engines.solve.system import solve_system
from engines.systems.flows import FlowRuns, flows_of_runs
from engines.systems.one_sided import RELAXED_OMEGA, Scaling, rows_of_states

FORMATS = (Format.AUTO, Format.PATTERNS, Format.HYBRID)
"""What rows can be laid out in without their matrix; of our choice patterns, if they are few."""

REACHABILITY_METHODS = (Method.POWER, Method.JACOBI, Method.JOR, *COLOURED)
STEADY_STATE_METHODS = (Method.JACOBI, Method.JOR, *COLOURED)
"""The methods whose iteration matrix is that of the model, scaled by rows."""

MOST_STATES = 2**32 - 2
"""The most states that 32 bits number, one number standing for none; a GPU takes half as many."""


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
    """Compute until probabilities or expected reachability rewards of a Markov chain.

    As `engines.questions.reachability.solve_reachability`, but the matrix is never expanded: memory
    is needed for vectors, and for what the diagram shares.

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
        For a method or a format that needs the matrix, and where a GPU was asked for and none can
        be used.
    """
    if not np.any(unknown):
        raise ValueError("no state is unknown: nothing to solve")
    size = numbering.num_states
    for name, vector in (("unknown", unknown), ("start", start), ("rewards", rewards)):
        if vector is not None and len(vector) != size:
            raise ValueError(f"{name} has {len(vector)} values for {size} states")
    _require_possible(environment, size, REACHABILITY_METHODS)
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
    built = time.perf_counter() - began
    result = solve_system(system, environment, method, progress=progress)
    seconds, setup = built + result.seconds, built + result.setup_seconds
    result = replace(result, seconds=seconds, setup_seconds=setup)
    # Without the matrix there is no other solution that tells the error of a named method.
    return measured(result, environment, None)


def solve_steady_state_without_matrix(
    diagram: Diagram,
    numbering: StateNumbering,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the steady-state probabilities of a Markov chain all of whose states communicate.

    As `engines.questions.steady_state.solve_steady_state`, but the matrix is never expanded.

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
    size = numbering.num_states
    require_steady_state(environment, size)
    if size == 1:
        return SolveResult.exact(np.ones(1), environment.method)
    matrices = balance_matrices(diagram, numbering)
    return steady_state_of_matrices(matrices, None, environment, progress=progress)


@dataclass(frozen=True)
class BalanceMatrices:
    """What the balance equations of a Markov chain are made of.

    Parameters
    ----------
    rates, into
        The rates (of a DTMC the probabilities) out of each state, and those into each.
    flows
        The same, where the rows are kept as runs; else None.
    """

    rates: HybridMatrix
    into: HybridMatrix
    flows: FlowRuns | None = None


def balance_matrices(diagram: Diagram, numbering: StateNumbering) -> BalanceMatrices:
    """Return the balance equations of a chain, whose rows the hybrid representation shares.

    Parameters
    ----------
    diagram
        The rates of a CTMC, or the transition probabilities of a DTMC.
    numbering
        The states.

    Raises
    ------
    MemoryError
        When the host cannot hold what the diagram shares.
    """
    return BalanceMatrices(_hybrid(diagram, numbering), _hybrid(diagram, numbering.transposed()))


def balance_of_runs(runs: RowRuns) -> BalanceMatrices:
    """Return the balance equations of a chain whose rows are kept as runs.

    Parameters
    ----------
    runs
        The rates of a CTMC, or the transition probabilities of a DTMC.

    Raises
    ------
    UnsupportedError
        If the transposed runs, or the blocks of either, become too many.
    """
    into = runs.transposed()
    return BalanceMatrices(hybrid_of_runs(runs), hybrid_of_runs(into), flows_of_runs(runs, into))


def steady_state_of_matrices(
    matrices: BalanceMatrices,
    members: MaskArray | None,
    environment: SolverEnvironment,
    *,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the steady-state probabilities of a recurrent class.

    Parameters
    ----------
    matrices
        Of the chain.
    members
        The states of the class, shape (states,); None for all. No path leads out of it.
    environment, progress
        As in `solve_steady_state_without_matrix`.

    Returns
    -------
    The result; its values, of shape (states,), sum to 1 over the class and are 0 elsewhere.

    Raises
    ------
    DeviceMemoryError, MemoryError, UnsupportedError
        As in `solve_steady_state_without_matrix`.

    Notes
    -----
    States outside the class are swept as all others: what flows into them comes from outside the
    class too, so that they stay at the 0 that they start from.
    """
    rates, whole = matrices.rates, members is None
    require_steady_state(environment, rates.num_states)
    size, method = rates.num_states, environment.method
    if method is Method.AUTO:
        method = Method.JOR
        environment = replace(environment, omega=RELAXED_OMEGA)
    start = np.full(size, 1.0 / size)
    if members is not None:
        start = np.where(members, 1.0 / np.count_nonzero(members), 0.0)
    system = DiagramSystem(
        matrices.into,
        start,
        scaling=Scaling.BALANCE,
        omega=relaxation(method, environment.omega),
        rates=rates,
        flows=matrices.flows if whole else None,
    )
    result = solve_system(system, environment, method, by_levels=whole, progress=progress)
    result = measured(result, environment, None)
    total = float(result.values.sum())
    if result.status is Status.DIVERGED or not np.isfinite(total) or total == 0.0:
        return result
    # The residual is linear in π, like all else here.
    result = replace(result, residual=result.residual / abs(total))
    return result.with_values(result.values / total)


def require_steady_state(environment: SolverEnvironment, size: int) -> None:
    """Raise unless a steady state can be computed as asked without a matrix.

    Parameters
    ----------
    environment
        Method, format, device.
    size
        Number of states.

    Raises
    ------
    UnsupportedError
        With the reason.
    """
    if environment.convention is Convention.EXPLICIT and not environment.automatic:
        raise UnsupportedError(
            f"{environment.method} by the convention of PRISM's explicit engine is its power "
            "method, which is built from an expanded matrix"
        )
    _require_possible(environment, size, STEADY_STATE_METHODS)


def _require_possible(
    environment: SolverEnvironment, size: int, methods: tuple[Method, ...]
) -> None:
    """Raise with the reason if what was asked for cannot be done without a matrix."""
    method, matrix_format = environment.method, environment.matrix_format
    if not (environment.automatic or method in methods):
        raise UnsupportedError(
            f"{method} needs an expanded matrix here; without one, a Markov chain is solved by "
            f"{' or '.join(methods)}"
        )
    if size > MOST_STATES:
        raise UnsupportedError(f"{size} states: without a matrix they are numbered in 32 bits")
    if environment.topological:
        raise UnsupportedError(
            "one strongly connected component after the other needs an expanded matrix"
        )
    if matrix_format not in FORMATS:
        raise UnsupportedError(
            f"the format {matrix_format} needs an expanded matrix; without one, rows are laid out "
            f"as {Format.PATTERNS} or {Format.HYBRID}"
        )


def _hybrid(diagram: Diagram, numbering: StateNumbering) -> HybridMatrix:
    """Return what the diagram shares, if the host can hold it."""
    surveyed = survey(diagram, numbering)
    level = surveyed.best_level()
    # Building the representation takes so much beside it.
    bytes_a_job = 8
    need = int(surveyed.nbytes()[level] + bytes_a_job * surveyed.jobs()[level])
    available = available_host_bytes()
    if available is not None and need > available:
        raise MemoryError(
            f"the blocks and jobs of a diagram with {numbering.num_states} states and "
            f"{surveyed.num_entries} entries take {need} bytes on the host, and {available} bytes "
            "are free"
        )
    return build(surveyed, level)
