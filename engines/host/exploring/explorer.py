"""The compiled library's search for the states of a program, and the rows of its matrix."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import POINTER, c_double, c_int32, c_int64, c_void_p
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from engines.arrays import INT32_MAX, FloatArray, IndexArray, MaskArray
from engines.errors import DeviceMemoryError, amount_text
from engines.host.compiled.library import (
    DOUBLES,
    INDICES,
    MASKS,
    NUMBERS,
    Array,
    Function,
    Structure,
)
from engines.host.compiled.shares import threads_for
from engines.host.exploring.compiled import CompiledExpansion
from engines.host.exploring.tables import HostCode, HostExpression, HostProgram
from engines.process.cores import num_cores
from engines.program.expressions import Expression, Type
from engines.program.packing import Packing, Words
from engines.program.program import ModelKind, Program

WORDS = Array(np.uint64)


class HostRows(Structure):
    """`PgRows` of src/explore_matrix.cpp."""

    _fields_ = (
        ("rows", c_int64),
        ("entries", c_int64),
        *((name, c_void_p) for name in ("row_offsets", "group_offsets", "columns", "values")),
        *((name, c_void_p) for name in ("actions", "deadlocks")),
    )


_EVALUATE = Function(
    "pg_explore_evaluate",
    c_int64,
    *(HostCode, c_int32, c_int32, c_int32, WORDS, c_int64, DOUBLES, c_int32),
)
_START = Function(
    "pg_explore_start",
    c_int32,
    *(HostProgram, WORDS, c_int64, c_int64, c_int32, POINTER(c_void_p)),
)
_USE = Function("pg_explore_use", None, c_void_p, c_void_p, c_int32)
_SEARCH = Function("pg_explore_search", c_int32, c_void_p, c_double, c_int64, INDICES, WORDS)
_STATES = Function("pg_explore_states", c_int32, c_void_p, WORDS)
_ROWS = Function(
    "pg_explore_rows", c_int32, *(c_void_p, WORDS, MASKS, c_int64, c_int64, c_int64, HostRows)
)
_RELEASE = Function("pg_explore_release", None, c_void_p)


class Status(IntEnum):
    """`Status` of src/explore_space.hpp."""

    DONE = 0
    MORE = 1
    FAULT = 2
    NO_MEMORY = 3


@dataclass(frozen=True)
class SearchReport:
    """How far a search is.

    Parameters
    ----------
    done
        Whether all states are found.
    found, waiting
        States, and how many of them are still to be looked at.
    transitions, choices
        Of the states that were looked at, at the most.
    crowding
        Transitions beyond 64 a state (`CROWD` of src/explore_space.hpp), by blocks of states. 0 in
        a search for likely states.
    fault
        The packed state with a fault that ended the search, or None.
    """

    done: bool
    found: int
    waiting: int
    transitions: int
    choices: int
    crowding: int
    fault: Words | None

    @classmethod
    def of(cls, status: int, numbers: NDArray[np.int64], fault: Words) -> SearchReport:
        """Return the report of a search from what the library says of it.

        Parameters
        ----------
        status
            One of `Status`.
        numbers
            States, how many of them wait, bytes that are lacking, transitions, choices, crowding.
        fault
            The packed state with a fault, where that is the status.
        """
        found, waiting, _, transitions, choices, crowding = numbers.tolist()
        done = status == Status.DONE
        at_fault = fault if status == Status.FAULT else None
        return cls(done, found, waiting, transitions, choices, crowding, at_fault)


@dataclass
class Rows:
    """Rows of a matrix in arrays with room for more.

    Parameters
    ----------
    row_offsets
        Shape (most rows + 1,): int64, or int32 where that holds the entries.
    group_offsets
        Shape (states + 1,), of such a type for the rows; None for a chain.
    columns, values
        Shape (most entries,), int32 and float64.
    actions
        Int32: of each row of an MDP, of each entry of a chain; -1 for none. None where the model
        has no actions.
    deadlocks
        Shape (states,).
    rows, entries
        How many there are.
    """

    row_offsets: IndexArray
    group_offsets: IndexArray | None
    columns: NDArray[np.int32]
    values: FloatArray
    actions: NDArray[np.int32] | None
    deadlocks: MaskArray
    rows: int = 0
    entries: int = 0


class HostExplorer:
    """The states of a program, as they are found.

    Parameters
    ----------
    program
        The model.
    packing
        Of its states.
    initial
        Packed states where the search begins.
    memory_bytes
        What the tables of states may take.
    threads
        How many; None for one a core that the process may use.

    Raises
    ------
    DeviceMemoryError
        If the first tables do not fit.
    """

    def __init__(
        self,
        program: Program,
        packing: Packing,
        initial: Words,
        memory_bytes: int,
        threads: int | None = None,
    ) -> None:
        self._kind, self._words = program.kind, packing.words
        self._has_actions = any(command.action is not None for _, _, command in program.commands())
        self._tables = HostProgram.of(program, packing)
        self._memory_bytes = memory_bytes
        self._handle = c_void_p()
        status = _START(
            *(self._tables, np.ascontiguousarray(initial), len(initial), memory_bytes),
            *(threads or num_cores(), ctypes.byref(self._handle)),
        )
        self._check(status, 0, 0)
        self._release = weakref.finalize(self, _RELEASE, self._handle)

    def use(self, compiled: CompiledExpansion) -> None:
        """Find transitions by a compiled function from now on, of the search and of rows.

        Parameters
        ----------
        compiled
            Of the same program.
        """
        self._compiled = compiled
        _USE(self._handle, ctypes.cast(compiled.function, c_void_p), compiled.at_once)

    def search(self, seconds: float, most_states: int = INT32_MAX) -> SearchReport:
        """Go on searching.

        Parameters
        ----------
        seconds
            About how long.
        most_states
            It pauses as soon as more are found.

        Raises
        ------
        DeviceMemoryError
            If the tables of states outgrow the memory.
        """
        numbers = np.zeros(6, dtype=np.int64)
        fault = np.zeros(self._words, dtype=np.uint64)
        status = _SEARCH(self._handle, seconds, most_states, numbers, fault)
        self._check(status, numbers[0], numbers[2])
        return SearchReport.of(status, numbers, fault)

    def states(self, count: int) -> Words:
        """Return all states in PRISM's order; the search ends, its memory is given back.

        Parameters
        ----------
        count
            How many were found.

        Raises
        ------
        DeviceMemoryError
            If there is no memory for them.
        """
        states = np.empty((count, self._words), dtype=np.uint64)
        self._check(_STATES(self._handle, states), count, 0)
        return states

    def empty_rows(self, report: SearchReport) -> Rows:
        """Return arrays with room for the matrix.

        Parameters
        ----------
        report
            Of the finished search.
        """
        states = report.found
        is_mdp = self._kind is ModelKind.MDP
        # A deadlock is given a choice and a transition.
        rows = report.choices + states if is_mdp else states
        entries = report.transitions + states
        offsets = np.empty(rows + 1, dtype=np.int64)
        groups = np.empty(states + 1, dtype=np.int64) if is_mdp else None
        for array in (offsets, *([] if groups is None else [groups])):
            array[0] = 0
        return Rows(
            *(offsets, groups, np.empty(entries, dtype=np.int32), np.empty(entries)),
            np.empty(rows if is_mdp else entries, dtype=np.int32) if self._has_actions else None,
            np.empty(states, dtype=bool),
        )

    def room_for_rows(self, report: SearchReport) -> int:
        """Return the bytes that the matrix may take.

        Parameters
        ----------
        report
            Of the finished search.
        """
        is_mdp = self._kind is ModelKind.MDP
        rows = report.choices + report.found if is_mdp else report.found
        entries = report.transitions + report.found
        of_actions = (rows if is_mdp else entries) if self._has_actions else 0
        return 12 * entries + 8 * rows + 4 * of_actions + (9 if is_mdp else 1) * report.found

    def rows(
        self,
        states: Words,
        first: int,
        last: int,
        rows: Rows,
        unexplored: MaskArray | None = None,
    ) -> None:
        """Append the rows of some states.

        Parameters
        ----------
        states
            All of them, in order.
        first, last
            Which: from `first` to before `last`; those before `first` have theirs.
        rows
            Where to.
        unexplored
            Shape (states,): the states that get a transition to themselves alone; None for none.

        Raises
        ------
        DeviceMemoryError
            If there is no memory for them.
        """
        made = HostRows(
            *(rows.rows, rows.entries, INDICES.pointer(rows.row_offsets)),
            *(INDICES.pointer(rows.group_offsets), NUMBERS.pointer(rows.columns)),
            *(DOUBLES.pointer(rows.values), NUMBERS.pointer(rows.actions)),
            MASKS.pointer(rows.deadlocks),
        )
        where = (states, unexplored, len(states), first, last)
        self._check(_ROWS(self._handle, *where, made), len(states), 0)
        rows.rows, rows.entries = made.rows, made.entries

    def close(self) -> None:
        """Give the memory of the tables back."""
        self._release()

    def _check(self, status: int, found: int, lacking: int) -> None:
        if status != Status.NO_MEMORY:
            return
        wanted = f"{amount_text(lacking)} more" if lacking else "more"
        raise DeviceMemoryError(
            f"the states of the model do not fit into memory: {found} were found, and their table "
            f"needs {wanted}; it may take {amount_text(self._memory_bytes)}"
        )


@dataclass(frozen=True)
class Evaluated:
    """The values of an expression in many states.

    Parameters
    ----------
    values
        Shape (states,): bool or float64.
    failing
        The first state in which it has none, or None.
    """

    values: FloatArray | MaskArray
    failing: int | None


def evaluate_in(expression: Expression, packing: Packing, states: Words) -> Evaluated:
    """Evaluate an expression in many states.

    Parameters
    ----------
    expression
        Over the variables of the states.
    packing
        Of the states.
    states
        Packed.

    Raises
    ------
    DeviceMemoryError
        If there is no memory for it.
    """
    code = HostExpression.of(expression, packing)
    values = np.empty(len(states))
    failing = _EVALUATE(
        *(code.code, code.end, code.register, code.kind),
        *(np.ascontiguousarray(states), len(states), values),
        threads_for(len(states) * code.end),
    )
    if failing == -2:
        raise DeviceMemoryError("evaluating an expression in all states: out of memory")
    found = values != 0.0 if expression.type is Type.BOOL else values
    return Evaluated(found, None if failing < 0 else failing)
