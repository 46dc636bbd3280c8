"""Lines that the log of PRISM's sparse and hybrid engines has around a solve.

Those of the hybrid engine are without what it stores, which ours does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, sums_by_row
from engines.model.environment import Method
from engines.model.events import Kind
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.result import SolveResult, Status
from engines.questions.steady_state import POWER_STEP
from engines.systems.one_sided import Direction
from prism_hooks.questions import Question
from prism_hooks.report import Ending, iterations_line
from prism_hooks.told_solve import (
    CONFIGURED,
    COUNTED,
    LONG_RUN,
    STEADY_STATE,
    Asked,
    EngineLines,
    entries_of,
    summed,
    width_line,
)

NO_METHOD = "Iterative method"
"""What the sparse engine calls sweeps whose number the question sets."""

STARTING = "\nStarting iterations..."


ONE_VECTOR = {
    *(Method.GAUSS_SEIDEL, Method.BACKWARDS_GAUSS_SEIDEL),
    *(Method.SOR, Method.BACKWARDS_SOR),
}
"""The methods that write over the values they read."""


@dataclass
class _Storage:
    """Lines on what PRISM's sparse engine stores, and their sum in KB; none of them untold."""

    told: bool
    lines: list[str] = field(default_factory=list)
    total: float = 0.0

    def add(self, what: str, kilobytes: float, details: str = "") -> None:
        """Add a line on one array."""
        self.total += kilobytes
        details = f"[{details}] " if details else ""
        self.lines.append(f"{what}... {details}[{_memory(kilobytes)}]")

    def vector(self, what: str, values: FloatArray | None, size: int) -> None:
        """Add a line on a vector; without values for one that is not looked through."""
        most = 1 << 16  # PRISM's vectors of more distinct values are not compact.
        distinct = most + 1 if values is None else len(np.unique(values))
        if distinct > most:
            self.add(f"Creating vector for {what}", size * 8 / 1024)
        else:
            kilobytes = (distinct * 8 + size * 2) / 1024
            self.add(f"Creating vector for {what}", kilobytes, f"dist={distinct}, compact")

    def plain_vector(self, what: str, size: int) -> None:
        """Add a line on a vector that PRISM never makes compact."""
        self.add(f"Creating vector for {what}", size * 8 / 1024)

    def text(self, vectors: int, size: int, begun: str = "") -> str:
        """Return all lines, those of the vectors of iterates last, and that the sweeps begin."""
        if not self.told:
            return begun
        each = size * 8 / 1024
        self.total += vectors * each
        several = f"s... [{vectors} x {_memory(each)}]"
        lines = [
            *self.lines,
            "Allocating iteration vector" + (several if vectors > 1 else f"... [{_memory(each)}]"),
            f"TOTAL: [{_memory(self.total)}]",
        ]
        if begun:
            lines.append(begun)
        return "\n" + "\n".join(lines)


def _memory(kilobytes: float) -> str:
    """Return an amount of memory as PRISM's native code prints it."""
    if kilobytes > 1 << 20:
        return f"{kilobytes / (1 << 20):.1f} GB"
    if kilobytes > 1 << 10:
        return f"{kilobytes / (1 << 10):.1f} MB"
    return f"{kilobytes:.1f} KB"


def sparse_lines(problem: Any, asked: Asked, *, hybrid: bool) -> EngineLines | None:
    """Return the lines of the sparse or hybrid engine around a solve; None where ours are printed.

    Parameters
    ----------
    problem
        The `prismgpu.Problem`.
    asked
        What is solved.
    hybrid
        Whether the engine is the hybrid one.
    """
    storage = _Storage(told=not hybrid)
    if asked.model.kind is ModelKind.MDP:
        return _sparse_choices(problem, asked, storage)
    if asked.ending is Ending.TIME:
        return _sparse_time(asked, storage)
    if asked.ending is Ending.STEPS:
        return _sparse_steps(asked, storage)
    if asked.task == STEADY_STATE:
        return _sparse_steady(problem, asked, asked.question.states, storage)
    if asked.task in LONG_RUN:
        return _long_run(problem, asked, storage)
    return _sparse_until(asked, storage) if asked.is_until else None


def bounded_lines(asked: Asked) -> EngineLines | None:
    """Return the lines of the sparse engine around an interval iteration of probabilities.

    Parameters
    ----------
    asked
        What is solved; none are returned for a maximum, of whose quotient PRISM's lines tell.
    """
    storage, size = _Storage(told=True), asked.model.num_states
    before, begun, name = "", STARTING, str(asked.method)
    if asked.model.kind is not ModelKind.MDP:
        _store_until(asked, storage)
    elif asked.question.direction is Direction.MINIMISE:
        interval, name = asked.environment.interval, NO_METHOD
        if not interval.monotonic_above:
            before += f"{CONFIGURED} not enforce monotonicity from above.\n"
        if interval.monotonic_below:
            before += f"{CONFIGURED} enforce monotonicity from below.\n"
        _choices(storage, asked.model, asked.question.states, "Building sparse matrix")
        storage.plain_vector("yes", size)
        storage.plain_vector("maybe", size)
        begun = "\nStarting iterations (interval iteration)..."
    else:
        return None

    def after(result: SolveResult) -> str:
        line = iterations_line(result, f"{name} (interval iteration)")
        if result.status is Status.CONVERGED:
            return f"{width_line(asked, result, 'G')}\n{line}"
        return f"\n{line}\n{width_line(asked, result, 'G', 'remaining')}"

    text = storage.text(4, size, begun)
    return EngineLines(before + text, _at_least_one(after))


def _named(result: SolveResult) -> str:
    return f"\n{iterations_line(result)}"


def _unnamed(result: SolveResult) -> str:
    return f"\n{iterations_line(result, NO_METHOD)}"


def _ended(result: SolveResult) -> str:
    """Return the lines at the end of sweeps, which PRISM may end before the last."""
    steady = any(event.kind is Kind.STEADY for event in result.events)
    line = f"\nSteady state detected at iteration {result.iterations}\n" if steady else ""
    return line + _unnamed(result)


def _at_least_one(lines: Callable[[SolveResult], str]) -> Callable[[SolveResult], str]:
    """Return lines that count a sweep where none was made, as PRISM does: it changes nothing."""

    def after(result: SolveResult) -> str:
        return lines(replace(result, iterations=max(1, result.iterations)))

    return after


def _sparse_until(asked: Asked, storage: _Storage) -> EngineLines:
    _store_until(asked, storage)
    size = asked.model.num_states
    return EngineLines(storage.text(_vectors(asked), size, STARTING), _at_least_one(_named))


def _store_until(asked: Asked, storage: _Storage) -> None:
    """Add the lines on the arrays of a chain's probabilities or expected rewards."""
    question, size = asked.question, asked.model.num_states
    power = asked.method is Method.POWER
    rows = question.states
    _matrix(storage, asked, rows, without_diagonal=not power)
    if not power:
        diagonal = None
        if asked.counted:
            diagonal = 1.0 - np.where(rows, _diagonal(asked.model), 0.0)
            # PRISM divides by 1 where a state is never left.
            diagonal[diagonal == 0.0] = 1.0
        storage.vector("diagonals", diagonal, size)
    storage.vector("RHS", _right_hand_side(question) if asked.counted else None, size)


def _vectors(asked: Asked) -> int:
    """Return how many vectors of iterates PRISM has for a method."""
    return 1 if asked.method in ONE_VECTOR else 2


def _right_hand_side(question: Question) -> FloatArray:
    known = np.zeros(len(question.states)) if question.start is None else question.start
    if question.rewards is None:
        return np.where(question.states, 0.0, known)
    # What is infinite is put in after the solve.
    return np.where(question.states, question.rewards, 0.0)


def _sparse_steady(problem: Any, asked: Asked, rows: MaskArray, storage: _Storage) -> EngineLines:
    before, size = "", asked.model.num_states
    if asked.method is Method.POWER:
        # Of a larger model no diagram is made for the log.
        nodes = int(problem.parts.stepNodes) or asked.nodes
        before = (
            "\nBuilding power method iteration matrix MTBDD... "
            f"[nodes={nodes}] [{nodes * 20 / 1024:.1f} Kb]"
        )
        _power_matrix(storage, asked, rows)
    else:
        _matrix(storage, asked, rows, without_diagonal=True)
        exits = None
        if asked.counted:
            # PRISM has them with their sign, and 1 where there are none.
            exits = np.where(rows, -_exits(asked.model), 0.0)
            exits[exits == 0.0] = 1.0
        storage.vector("diagonals", exits, size)
    return EngineLines(before + storage.text(_vectors(asked), size, STARTING), _named)


def _power_matrix(storage: _Storage, asked: Asked, rows: MaskArray) -> None:
    """Add the line on the matrix that PRISM multiplies with: a step of the uniformised chain."""
    matrix, size = asked.model.matrix, asked.model.num_states
    distinct: int | None = None
    lengths = np.where(rows, matrix.row_lengths(), 0)
    inside = int(np.count_nonzero(rows))
    entries, longest = int(lengths.sum()) + inside, int(lengths.max(initial=0)) + 1
    if asked.counted:
        row = matrix.row_of_entry()
        others = (matrix.columns != row) & rows[row]
        entries = int(np.count_nonzero(others)) + inside
        step = POWER_STEP / (float(matrix.row_sums()[rows].max(initial=0.0)) or 1.0)
        values = (matrix.values[others] * step, 1.0 - _exits(asked.model)[rows] * step)
        distinct = _terminals(np.concatenate(values))
    _add_matrix(storage, size, entries, longest, distinct)


def _long_run(problem: Any, asked: Asked, storage: _Storage) -> EngineLines | None:
    """Return the lines of a chain that is one component, which alone is not put together."""
    what, size = problem.sought, asked.model.num_states
    if what is None:
        return None
    steady = _sparse_steady(problem, asked, np.ones(size, dtype=np.bool_), storage)
    of_average = asked.task == LONG_RUN[0]
    heading = (
        "Computing steady state probabilities for BSCC 1"
        if of_average
        else "Initial states all in one BSCC (so no reachability probabilities computed)"
    )
    before = (
        f"\nSCCs: 1, BSCCs: 1, non-BSCC states: 0\nBSCC sizes: 1:{size}\n"
        f"Time for BSCC computation: {round(asked.bottom_seconds, 3)} seconds, found 1 BSCCs.\n\n"
        f"{heading}"
    )
    # Of a single state there is nothing to compute.
    swept = steady.after if size > 1 else lambda _: ""
    if size > 1:
        engine = "Sparse" if storage.told else "Hybrid"
        before += f"\n\nComputing probabilities...\nEngine: {engine}\n{steady.before}"

    def after(result: SolveResult) -> str:
        if not of_average or result.status in (Status.NOT_CONVERGED, Status.DIVERGED):
            return swept(result)
        return (
            f"{swept(result)}\n\nBSCC 1 {what}: {float(result.values[0])}\n\n"
            "All states are in BSCCs (so no reachability probabilities computed)"
        )

    return EngineLines(before, after)


def _sparse_steps(asked: Asked, storage: _Storage) -> EngineLines | None:
    question, size = asked.question, asked.model.num_states
    if asked.task == "step-bounded until":
        # The states that stay are those not decided; `states` are worth 1 and go no further.
        _matrix(storage, asked, question.remain)
        storage.vector("yes", question.states.astype(float) if asked.counted else None, size)
    elif asked.task == "cumulative reward":
        _matrix(storage, asked, None)
        storage.vector("rewards", question.rewards if asked.counted else None, size)
    elif asked.task in ("instantaneous reward", "transient distribution"):
        _matrix(storage, asked, None)
    else:
        return None
    return EngineLines(storage.text(2, size, STARTING), _ended)


def _sparse_time(asked: Asked, storage: _Storage) -> EngineLines:
    question, size = asked.question, asked.model.num_states
    rows = question.remain if asked.task == "time-bounded until" else None
    _matrix(storage, asked, rows)
    exits = None
    if asked.counted:
        # PRISM has self-loops among them here.
        exits = asked.model.matrix.row_sums()
        exits = exits if rows is None else np.where(rows, exits, 0.0)
    storage.vector("diagonals", exits, size)
    before = storage.text(3, size)
    if rows is not None:
        moving = int(np.count_nonzero(rows))
        share = 100.0 * moving / size
        before = f"\nNumber of non-absorbing states: {moving} of {size} ({share:.1f}%)\n{before}"

    def after(result: SolveResult) -> str:
        found = summed(result)
        if found is None:
            return _unnamed(result)
        return (
            f"\nUniformisation: q.t = {found['rate']:f} x {found['time']:f} = "
            f"{found['product']:f}\nFox-Glynn: left = {found['left']}, right = {found['right']}\n"
            f"{STARTING}\n{_ended(result)}"
        )

    return EngineLines(before, after)


def _sparse_choices(problem: Any, asked: Asked, storage: _Storage) -> EngineLines | None:
    question, model, size = asked.question, asked.model, asked.model.num_states
    if asked.task == "step-bounded until":
        _choices(storage, model, question.remain, "Building sparse matrix")
        storage.plain_vector("yes", size)
    elif asked.is_until and question.rewards is None:
        most = storage.told and question.direction is Direction.MAXIMISE
        staying = _staying(model, question.states) if most else None
        _choices(storage, model, question.states, "Building sparse matrix", staying=staying)
        storage.plain_vector("yes", size)
    elif asked.is_until or asked.task == "cumulative reward":
        rows = question.states if asked.is_until else None
        _choices(storage, model, rows, "Building sparse matrix (transitions)")
        earning = int(problem.parts.earningEntries)
        _choices(storage, model, rows, "Building sparse matrix (transition rewards)", earning)
        storage.plain_vector("state rewards", size)
        if asked.is_until:
            storage.plain_vector("inf", size)
    elif asked.task == "instantaneous reward":
        _choices(storage, model, None, "Building sparse matrix (transitions)")
    else:
        return None
    after = _at_least_one(_unnamed) if asked.is_until else _unnamed
    return EngineLines(storage.text(2, size, STARTING), after)


def _matrix(
    storage: _Storage, asked: Asked, rows: MaskArray | None, *, without_diagonal: bool = False
) -> None:
    """Add the line on the matrix of a chain, of some rows alone."""
    matrix = asked.model.matrix
    lengths = matrix.row_lengths()
    if rows is not None:
        lengths = np.where(rows, lengths, 0)
    size = len(lengths)
    if not asked.counted:
        _add_matrix(storage, size, int(lengths.sum()), int(lengths.max(initial=0)), None)
        return
    row = matrix.row_of_entry()
    kept = matrix.values != 0.0
    if rows is not None:
        kept &= rows[row]
    if without_diagonal:
        kept &= matrix.columns != row
    entries = int(np.count_nonzero(kept))
    longest = int(np.bincount(row[kept], minlength=1).max(initial=0))
    _add_matrix(storage, size, entries, longest, _terminals(matrix.values[kept]))


def _terminals(values: FloatArray) -> int:
    """Return how many terminal nodes a diagram of some values has."""
    distinct = np.unique(values)
    # Values no farther apart are one terminal node, as PRISM sets its diagrams' library.
    return len(distinct) and 1 + int(np.count_nonzero(np.diff(distinct) > 1e-15))


def _add_matrix(
    storage: _Storage, size: int, entries: int, longest: int, distinct: int | None
) -> None:
    """Add the line on a matrix of some distinct values, none where they are not counted."""
    # What the number of a value, 0 among them, leaves of 32 bits must hold a state's.
    bits = max(1, int(np.ceil(np.log2((distinct or 0) + 1))))
    compact = distinct is not None and size <= 1 << (32 - bits)
    each = 4 if compact else 12
    table = 8 * distinct if distinct is not None and compact else 0
    kilobytes = (table + entries * each + size * _width(longest)) / 1024
    details = f"n={size}, nnz={entries}" + (", compact" if compact else "")
    storage.add("Building sparse matrix", kilobytes, details)


def _choices(
    storage: _Storage,
    model: ExplicitModel,
    states: MaskArray | None,
    what: str,
    earning: int | None = None,
    *,
    staying: IndexArray | None = None,
) -> None:
    """Add the line on the matrix of an MDP's choices, or on what their transitions earn.

    Each state has so many choices fewer, of one transition each, as `staying` says.
    """
    groups = model.row_group_offsets
    assert groups is not None, "an MDP has choices"
    choices = np.diff(groups)
    if staying is not None:
        choices = choices - staying
    if states is not None:
        choices = np.where(states, choices, 0)
    else:
        states = np.ones(len(choices), dtype=np.bool_)
    size, number, most = len(choices), int(choices.sum()), int(choices.max(initial=0))
    counted = max(model.matrix.num_entries, model.matrix.num_rows) <= COUNTED
    longest = int(model.matrix.row_lengths().max(initial=0)) if counted else 0
    entries = entries_of(model, states) if earning is None else earning
    if staying is not None:
        entries -= int(staying.sum())
    # PRISM counts the bytes of matrices with rewards otherwise.
    width = 4 if what != "Building sparse matrix" else _width(max(most, longest))
    kilobytes = (entries * 12 + (size + number) * width) / 1024
    storage.add(what, kilobytes, f"n={size}, nc={number}, nnz={entries}, k={most}")


def _staying(model: ExplicitModel, states: MaskArray) -> IndexArray:
    """Return how many choices each of some states has to stay where it is, shape (states,).

    For a maximum PRISM leaves them out.
    """
    matrix, state = model.matrix, model.states_of_rows()
    alone = np.flatnonzero((matrix.row_lengths() == 1) & model.rows_of(states))
    only = matrix.row_offsets[alone]
    stays = (matrix.columns[only] == state[alone]) & (matrix.values[only] == 1.0)
    return np.bincount(state[alone[stays]], minlength=len(states))


def _width(longest: int) -> int:
    """Return the bytes of PRISM's number of entries in a row."""
    return 1 if longest < 1 << 8 else 4


def _exits(model: ExplicitModel) -> FloatArray:
    """Return what each row has off the diagonal, shape (states,)."""
    row = model.matrix.row_of_entry()
    others = model.matrix.columns != row
    return sums_by_row(row[others], model.matrix.values[others], model.num_states)


def _diagonal(model: ExplicitModel) -> FloatArray:
    matrix = model.matrix
    row = matrix.row_of_entry()
    own = matrix.columns == row
    diagonal = np.zeros(model.num_states)
    diagonal[row[own]] = matrix.values[own]
    return diagonal
