"""Lines that the log of PRISM's explicit and sparse engines has around a solve, in PRISM's form.

They are printed where the user named the engine, and the method too unless the question has none:
who names both reads the log of PRISM with the numbers of our solve. What PRISM's lines have no
place for is behind `-gpuinfo`. The numbers come from arrays that are at hand, in the units of
PRISM's storage; nothing is looked through for a line of the log alone beyond `COUNTED` entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.model.environment import Method
from engines.model.events import Event, Kind
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.result import SolveResult
from prism_hooks.options import HookOptions
from prism_hooks.questions import Question
from prism_hooks.report import Ending, iterations_line

COUNTED = 1 << 18
"""Entries of the largest matrix, and states of the largest vector, whose distinct values and
diagonal are counted: in a few milliseconds. Larger ones have PRISM's lines of storage that is not
compact, the diagonal among the entries."""

MOST_DISTINCT = 1 << 16
"""PRISM's vectors of more distinct values are not compact."""

UNTIL = ("reachability", "until", "least reward")
STEADY_STATE = "steady state"

SWEEPS = {
    Method.POWER: "Power method",
    Method.JACOBI: "Jacobi",
    Method.GAUSS_SEIDEL: "Gauss-Seidel",
    Method.BACKWARDS_GAUSS_SEIDEL: "Backwards Gauss-Seidel",
    # The explicit engine's word for the sweeps of an MDP.
    Method.VALUE_ITERATION: "Power method",
}
"""What PRISM's explicit engine calls the sweeps of its value iteration."""

SPARSE_NAMES = {
    *SWEEPS,
    *(Method.JOR, Method.SOR, Method.BACKWARDS_SOR),
}
"""Methods of the sparse engine."""

NO_METHOD = "Iterative method"
"""What the sparse engine calls sweeps whose number the question sets."""


@dataclass(frozen=True)
class Asked:
    """A solve, as far as PRISM's lines tell of it.

    Parameters
    ----------
    task
        The name that `prismgpu.Problem` gives it.
    model
        Its model, an embedded chain where that is solved.
    question
        What is asked.
    ending
        What ends its sweeps.
    method
        The method that the user named; ours to choose where none was.
    """

    task: str
    model: ExplicitModel
    question: Question
    ending: Ending
    method: Method

    @property
    def counted(self) -> bool:
        """Whether the arrays are small enough to be looked through."""
        return max(self.model.matrix.num_entries, self.model.num_states) <= COUNTED


@dataclass(frozen=True)
class EngineLines:
    """The lines of one solve.

    Parameters
    ----------
    before
        Printed before it; empty for nothing.
    after
        Returns what is printed after it; empty for nothing.
    """

    before: str
    after: Callable[[SolveResult], str]


def engine_lines(problem: Any, asked: Asked, options: HookOptions) -> EngineLines | None:
    """Return the lines of PRISM's engine around a solve; None where ours are printed.

    Parameters
    ----------
    problem
        The `prismgpu.Problem`.
    asked
        What is solved.
    options
        What the user named.
    """
    if not options.engine_named or problem.intervals is not None or problem.topological:
        return None
    if options.method is not None:
        return None
    swept = asked.ending is Ending.CONVERGENCE
    if problem.parts is None:
        return _explicit(asked) if not swept or asked.method in SWEEPS else None
    if options.symbolic_engine != "sparse" or (swept and asked.method not in SPARSE_NAMES):
        return None
    return _sparse(asked)


# The explicit engine.


def _explicit(asked: Asked) -> EngineLines | None:
    if asked.ending is Ending.STEPS:
        return EngineLines("", lambda _: "")
    if asked.ending is Ending.TIME:
        return EngineLines("", _fox_glynn_explicit)
    if asked.task == STEADY_STATE:
        return EngineLines(
            "Starting value iteration...",
            lambda result: (
                f"{result.method}: {result.iterations} iterations in {_java(result)} seconds."
            ),
        )
    return _value_iteration(asked) if asked.task in UNTIL else None


def _value_iteration(asked: Asked) -> EngineLines:
    question = asked.question
    how = f"with {SWEEPS[asked.method]}"
    if question.direction is not None:
        how = f"{question.direction}, {how}"
    # PRISM has a space there, for rewards of a chain.
    space = " " if question.direction is None and question.rewards is not None else ""
    entries = entries_of(asked.model, question.states)

    def after(result: SolveResult) -> str:
        return (
            f"Value iteration ({how}) took {result.iterations} iterations, "
            f"{result.iterations * entries} multiplications and {_java(result)} seconds."
        )

    return EngineLines(f"Starting value iteration ({how}){space}...", after)


def _java(result: SolveResult) -> str:
    """Return the seconds as Java prints milliseconds."""
    return str(round(result.seconds, 3))


def _fox_glynn_explicit(result: SolveResult) -> str:
    found = _summed(result)
    if found is None:
        return ""
    rate, time, product = (found[name] for name in ("rate", "time", "product"))
    return (
        f"\nUniformisation: q.t = {rate} x {time} = {product}\n"
        f"Fox-Glynn ({found['truncation']:.3g}): left = {found['left']}, right = {found['right']}"
    )


def _summed(result: SolveResult) -> dict[str, Any] | None:
    """Return the details of a sum of powers; None where there was nothing to sum."""
    kinds = (Kind.POWERS_SUMMED, Kind.POWERS_SQUARED)
    for event in result.events:
        if event.kind in kinds:
            return dict(event.details)
    return None


# The sparse engine.


@dataclass
class _Storage:
    """Lines on what PRISM's sparse engine stores, and their sum in KB."""

    lines: list[str] = field(default_factory=list)
    total: float = 0.0

    def add(self, what: str, kilobytes: float, details: str = "") -> None:
        """Add a line on one array."""
        self.total += kilobytes
        details = f"[{details}] " if details else ""
        self.lines.append(f"{what}... {details}[{_memory(kilobytes)}]")

    def vector(self, what: str, values: FloatArray | None, size: int) -> None:
        """Add a line on a vector; without values for one that is not looked through."""
        distinct = MOST_DISTINCT + 1 if values is None else len(np.unique(values))
        if distinct > MOST_DISTINCT:
            self.add(f"Creating vector for {what}", size * 8 / 1024)
        else:
            kilobytes = (distinct * 8 + size * 2) / 1024
            self.add(f"Creating vector for {what}", kilobytes, f"dist={distinct}, compact")

    def plain_vector(self, what: str, size: int) -> None:
        """Add a line on a vector that PRISM never makes compact."""
        self.add(f"Creating vector for {what}", size * 8 / 1024)

    def text(self, vectors: int, size: int, begun: str = "") -> str:
        """Return all lines, those of the vectors of iterates last, and that the sweeps begin."""
        each = size * 8 / 1024
        self.total += vectors * each
        lines = [
            *self.lines,
            f"Allocating iteration vectors... [{vectors} x {_memory(each)}]",
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


STARTING = "\nStarting iterations..."


def _sparse(asked: Asked) -> EngineLines | None:
    if asked.model.kind is ModelKind.MDP:
        return _sparse_choices(asked)
    if asked.ending is Ending.TIME:
        return _sparse_time(asked)
    storage = _Storage()
    if asked.ending is Ending.STEPS:
        return _sparse_steps(asked, storage)
    if asked.task == STEADY_STATE:
        return _sparse_steady(asked, storage)
    return _sparse_until(asked, storage) if asked.task in UNTIL else None


def _named(result: SolveResult) -> str:
    return f"\n{iterations_line(result)}"


def _unnamed(result: SolveResult) -> str:
    return f"\n{iterations_line(result, NO_METHOD)}"


def _sparse_until(asked: Asked, storage: _Storage) -> EngineLines:
    question, size = asked.question, asked.model.num_states
    power = asked.method is Method.POWER
    rows = question.states
    _matrix(storage, asked, rows, without_diagonal=not power)
    if not power:
        diagonal = None
        if asked.counted:
            diagonal = 1.0 - np.where(rows, _diagonal(asked.model), 0.0)
        storage.vector("diagonals", diagonal, size)
    storage.vector("RHS", _right_hand_side(question) if asked.counted else None, size)
    return EngineLines(storage.text(2, size, STARTING), _named)


def _right_hand_side(question: Question) -> FloatArray:
    known = np.zeros(len(question.states)) if question.start is None else question.start
    earned = 0.0 if question.rewards is None else question.rewards
    return np.where(question.states, earned, known)


def _sparse_steady(asked: Asked, storage: _Storage) -> EngineLines | None:
    if asked.method is Method.POWER:
        # PRISM makes a diagram of its own there.
        return None
    size, rows = asked.model.num_states, asked.question.states
    _matrix(storage, asked, rows, without_diagonal=True)
    exits = None
    if asked.counted:
        exits = np.where(rows, asked.model.matrix.row_sums() - _diagonal(asked.model), 0.0)
        exits[exits == 0.0] = 1.0
    storage.vector("diagonals", exits, size)
    return EngineLines(storage.text(2, size, STARTING), _named)


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
    return EngineLines(storage.text(2, size, STARTING), _unnamed)


def _sparse_time(asked: Asked) -> EngineLines:
    question, size = asked.question, asked.model.num_states
    storage = _Storage()
    rows = question.remain if asked.task == "time-bounded until" else None
    _matrix(storage, asked, rows)
    exits = None
    if asked.counted:
        exits = asked.model.matrix.row_sums() - _diagonal(asked.model)
        exits = exits if rows is None else np.where(rows, exits, 0.0)
    storage.vector("diagonals", exits, size)
    before = storage.text(3, size)
    if rows is not None:
        moving = int(np.count_nonzero(rows))
        share = 100.0 * moving / size
        before = f"\nNumber of non-absorbing states: {moving} of {size} ({share:.1f}%)\n{before}"

    def after(result: SolveResult) -> str:
        found = _summed(result)
        if found is None:
            return _unnamed(result)
        return (
            f"\nUniformisation: q.t = {found['rate']:f} x {found['time']:f} = "
            f"{found['product']:f}\nFox-Glynn: left = {found['left']}, right = {found['right']}\n"
            f"{STARTING}\n{_unnamed(result)}"
        )

    return EngineLines(before, after)


def _sparse_choices(asked: Asked) -> EngineLines | None:
    question, model, size = asked.question, asked.model, asked.model.num_states
    storage = _Storage()
    if asked.task == "step-bounded until":
        _choices(storage, model, question.remain, "Building sparse matrix")
        storage.plain_vector("yes", size)
    elif asked.task in UNTIL and question.rewards is None:
        _choices(storage, model, question.states, "Building sparse matrix")
        storage.plain_vector("yes", size)
    elif asked.task in UNTIL or asked.task == "cumulative reward":
        rows = question.states if asked.task in UNTIL else None
        _choices(storage, model, rows, "Building sparse matrix (transitions)")
        _choices(storage, model, rows, "Building sparse matrix (transition rewards)", question)
        storage.plain_vector("state rewards", size)
        if asked.task in UNTIL:
            storage.plain_vector("inf", size)
    elif asked.task == "instantaneous reward":
        _choices(storage, model, None, "Building sparse matrix (transitions)")
    else:
        return None
    return EngineLines(storage.text(2, size, STARTING), _unnamed)


def entries_of(model: ExplicitModel, states: MaskArray) -> int:
    """Return how many entries the rows of some states have.

    Parameters
    ----------
    model
        A model of any kind.
    states
        Shape (states,).
    """
    offsets = model.matrix.row_offsets
    if model.row_group_offsets is not None:
        offsets = offsets[model.row_group_offsets]
    return int(np.diff(offsets)[states].sum())


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
        entries, longest = int(lengths.sum()), int(lengths.max(initial=0))
        kilobytes = (entries * 12 + size * _width(longest)) / 1024
        storage.add("Building sparse matrix", kilobytes, f"n={size}, nnz={entries}")
        return
    row = matrix.row_of_entry()
    kept = matrix.values != 0.0
    if rows is not None:
        kept &= rows[row]
    if without_diagonal:
        kept &= matrix.columns != row
    entries = int(np.count_nonzero(kept))
    longest = int(np.bincount(row[kept], minlength=1).max(initial=0))
    distinct = len(np.unique(matrix.values[kept]))
    # What the number of a value leaves of 32 bits must hold a state's.
    compact = size <= 1 << (32 - max(1, int(np.ceil(np.log2(distinct + 1)))))
    each = 4 if compact else 12
    kilobytes = (distinct * 8 * compact + entries * each + size * _width(longest)) / 1024
    details = f"n={size}, nnz={entries}" + (", compact" if compact else "")
    storage.add("Building sparse matrix", kilobytes, details)


def _choices(
    storage: _Storage,
    model: ExplicitModel,
    states: MaskArray | None,
    what: str,
    earning: Question | None = None,
) -> None:
    """Add the line on the matrix of an MDP's choices, or on what these earn."""
    groups = model.row_group_offsets
    assert groups is not None, "an MDP has choices"
    choices = np.diff(groups)
    rows = model.matrix.row_lengths()
    if states is not None:
        rows = np.where(np.repeat(states, choices), rows, 0)
        choices = np.where(states, choices, 0)
    size, number, most = len(choices), int(choices.sum()), int(choices.max(initial=0))
    if earning is not None:
        # Each choice's rewards are one number here, its state's in there.
        rewards = earning.rewards
        entries = 0 if rewards is None else int(np.count_nonzero((rows > 0) & (rewards != 0.0)))
        longest = 1
    else:
        entries, longest = int(rows.sum()), int(rows.max(initial=0))
    kilobytes = (entries * 12 + (size + number) * _width(max(most, longest))) / 1024
    storage.add(what, kilobytes, f"n={size}, nc={number}, nnz={entries}, k={most}")


def _width(longest: int) -> int:
    """Return the bytes of PRISM's number of entries in a row."""
    return 1 if longest < 1 << 8 else 4


def _diagonal(model: ExplicitModel) -> FloatArray:
    matrix = model.matrix
    row = matrix.row_of_entry()
    own = matrix.columns == row
    diagonal = np.zeros(model.num_states)
    diagonal[row[own]] = matrix.values[own]
    return diagonal


# What is not in PRISM's lines.


ANSWERS_TO_SWITCHES = (
    *(Kind.GPU_REFUSED, Kind.MOVED_TO_CPU, Kind.NOT_SHARED_OUT, Kind.FORMAT_REFUSED),
    *(Kind.SINGLE_AS_CSR, Kind.DOUBLE_INSTEAD, Kind.SINGLE_STALLED, Kind.SINGLE_THEN_DOUBLE),
    *(Kind.SINGLE, Kind.SINGLE_BUT, Kind.SINGLE_UNKNOWN, Kind.SINGLE_AT_END),
)
"""What is said whoever reads: that a switch of ours was not followed, or what it has cost."""

PERHAPS_WRONG = (
    *(Kind.FAILED, Kind.FAILED_BY_ROUNDING, Kind.CERTIFIED_APART, Kind.BOUNDS_AT_REST),
    Kind.UNCONFIRMED,
)

PRISMS_CLAIM = 10.0
"""PRISM takes a result for as good as so many times epsilon."""


def warning_of(event: Event) -> bool:
    """Return whether an event says that a result may be farther off than PRISM would claim.

    Parameters
    ----------
    event
        What happened in a solve.
    """
    if event.kind is Kind.CHANGE_MISLEADS:
        details = dict(event.details)
        return not float(details["error"]) <= PRISMS_CLAIM * float(details["epsilon"])
    return event.kind in PERHAPS_WRONG
