"""Exploring a program on a GPU: a search for its states, and the rows of its matrix.

The source is written for the program (`engines.program.successors`) and compiled by NVRTC. The
states are in PRISM's order, the rows as the CPU's `engines.host.exploring` makes them, to the last
bit; nothing depends on the order in which threads find states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX
from engines.cuda.driver import cupy
from engines.cuda.memory import require_bytes
from engines.cuda.transfer import to_device
from engines.errors import UnsupportedError
from engines.program.expressions import Expression
from engines.program.packing import Packing, Words
from engines.program.program import ModelKind, Program
from engines.program.source import arithmetic_constants, kernel
from engines.program.successors import SuccessorSource

OPTIONS = ("-std=c++17", "--fmad=false", "-diag-suppress=177,550")
"""Contraction of multiplications and additions would change the last bits of weights. No warnings
of functions that a model has no use for."""

EMPTY = 2**64 - 1
"""What stands for no state."""

SEARCH = np.dtype(
    [
        *((name, np.uint64) for name in ("found", "begin", "end", "levels", "holes")),
        *((name, np.uint64) for name in ("transitions", "choices")),
        *((name, np.uint64) for name in ("level_transitions", "level_choices")),
        *((name, np.uint32) for name in ("arrived", "phase", "goes_on", "full")),
        *((name, np.uint32) for name in ("faulty", "unused")),
    ]
)
"""`Search` of src/exploring.cuh."""


@dataclass(frozen=True)
class DeviceExplorationTuning:
    """How a search is cut up, and what it takes.

    Parameters
    ----------
    first_states
        For which there is room at first.
    growth
        How many times as many there is room for when they are full.
    levels_of_a_part
        Made in one launch, between two moments at which it can be interrupted.
    block_threads
        Of the kernels.
    most_transitions
        That a state may have: those to the same state are found by one thread, one after the other.
    """

    first_states: int = 2**24
    growth: int = 4
    levels_of_a_part: int = 4096
    block_threads: int = 256
    most_transitions: int = 8192


@dataclass
class DeviceRows:
    """The rows of a matrix on a device.

    Parameters
    ----------
    row_offsets
        Shape (rows + 1,), int64.
    group_offsets
        Shape (states + 1,), int64; None for a chain.
    columns, values
        Shape (entries,), int32 and float64.
    actions
        Int32: of each row of an MDP, of each entry of a chain; -1 for none; None where the model
        has no actions.
    deadlocks
        Shape (states,), uint8.
    """

    row_offsets: Any
    group_offsets: Any | None
    columns: Any
    values: Any
    actions: Any | None
    deadlocks: Any


def source_of(
    program: Program, packing: Packing, expressions: Sequence[Expression]
) -> tuple[str, list[float]]:
    """Return the source of a program's kernels, and the doubles of the model that they read.

    Parameters
    ----------
    program
        The model.
    packing
        Of its states.
    expressions
        Which `CudaExplorer.evaluate` can evaluate.

    Raises
    ------
    UnsupportedError
        As `SuccessorSource`.
    """
    writer = SuccessorSource(program, packing)
    text = kernel("exploring")
    for purpose in ("search", "count", "rows"):
        function = writer.expansion(f"{purpose}_from", f"{purpose}_take")
        text = text.replace(f"\n{purpose.upper()}_FROM\n", f"\n{function}\n")
    text = text.replace("\nEVALUATION\n", f"\n{writer.evaluation('value_of', expressions)}\n")
    constants = "\n".join(arithmetic_constants())
    whole = "\n".join([constants, kernel("montecarlo"), writer.declarations(), text])
    return whole, writer.numbers.values()


class CudaExplorer:
    """The states of a program on the current device.

    Parameters
    ----------
    program
        The model.
    packing
        Of its states.
    initial
        Packed states where the search begins.
    expressions
        Which `evaluate` can evaluate.
    most_memory
        Bytes of the device that may be taken; None for all.
    tuning
        None for the default.

    Raises
    ------
    DeviceMemoryError
        If the first tables do not fit.
    UnsupportedError
        As `source_of`, and if NVRTC refuses the source.
    """

    def __init__(
        self,
        program: Program,
        packing: Packing,
        initial: Words,
        expressions: Sequence[Expression] = (),
        most_memory: int | None = None,
        tuning: DeviceExplorationTuning | None = None,
    ) -> None:
        self._cp = cp = cupy()
        self._kind, self._most_memory = program.kind, most_memory
        self._words = packing.words
        self._device = int(cp.cuda.Device().id)
        self._has_actions = any(command.action is not None for _, _, command in program.commands())
        self._tuning = tuning or DeviceExplorationTuning()
        text, numbers = source_of(program, packing, expressions)
        self._numbers = to_device(np.array(numbers), np.float64)
        try:
            self._module = cp.RawModule(code=text, options=OPTIONS)
            self._module.compile()
        except cp.cuda.compiler.CompileException as error:
            raise UnsupportedError(f"NVRTC did not compile the model: {error}"[:2000]) from error
        search = np.zeros(1, dtype=SEARCH)
        search["found"] = search["end"] = len(initial)
        self._search = cp.asarray(search.view(np.uint8))
        self._states = cp.asarray(np.ascontiguousarray(initial))
        self._allot(max(self._tuning.first_states, 2 * len(initial)))
        self._sorted: Any = None
        self._ranks: Any = None

    def search(self) -> np.void:
        """Go on searching; return how far the search is, as `SEARCH` has it.

        Raises
        ------
        DeviceMemoryError
            If the states outgrow the device.
        UnsupportedError
            For more states than 32-bit numbers have.
        """
        cp = self._cp
        search = self._state_of_search()
        if search["full"] or search["found"] > self._capacity:
            self._grow(search)
        search["levels"] = self._tuning.levels_of_a_part
        self._search.set(search.reshape(1).view(np.uint8))
        levels, threads = self._kernel("search_levels"), self._tuning.block_threads
        mask, capacity = cp.uint64(self._mask), cp.uint64(self._capacity)
        arguments = (self._table, mask, self._states, capacity, self._search, self._numbers)
        levels(
            (self._resident_blocks(levels),),
            (threads,),
            arguments,
        )
        search = self._state_of_search()
        if search["end"] > INT32_MAX:
            raise UnsupportedError(f"more than {INT32_MAX} states")
        return search

    def faults(self) -> Words:
        """Return the states with a fault among those that were expanded last, packed."""
        cp, search = self._cp, self._state_of_search()
        expanded = self._states[int(search["begin"]) : int(search["end"])]
        faulty = cp.empty(len(expanded), dtype=cp.uint8)
        arguments = (expanded, faulty, self._numbers)
        self._launch("find_faults", len(expanded), *arguments, counted_at=1)
        found: Words = expanded[faulty.view(cp.bool_)].get()
        return found

    def states(self) -> Any:
        """Return all states in PRISM's order, packed, shape (states, words); note their numbers.

        Raises
        ------
        DeviceMemoryError
            If there is no room for them.
        """
        cp, search = self._cp, self._state_of_search()
        taken = int(search["found"])
        count = taken - int(search["holes"])
        # Sorting takes another copy, and as much again for a while.
        one_word = self._words == 1
        ranked = self._mask + 1 if one_word else taken
        needed = (24 if one_word else 16 * self._words + 32) * taken + 4 * ranked
        self._require(needed, "states in order")
        found = self._states[:taken]
        if one_word:
            self._sorted = cp.sort(found[:, 0]).reshape(-1, 1)
        else:
            # Places without a state have the greatest of first words.
            order = cp.lexsort(cp.ascontiguousarray(found.T[::-1]))
            self._sorted = found[order[:count]]
        self._ranks = cp.empty(ranked, dtype=cp.int32)
        self._launch("rank_states", count, *self._known(), self._ranks, self._sorted)
        if one_word:
            self._states = None
        return self._sorted

    def rows(self, first: int = 0, last: int | None = None) -> DeviceRows:
        """Return the rows of some states.

        Parameters
        ----------
        first, last
            Which: from `first` to before `last`, by default all of them.

        Raises
        ------
        DeviceMemoryError
            If there is no room for them.
        UnsupportedError
            If a state has too many transitions.
        """
        cp, states = self._cp, self._sorted[first:last]
        count, is_mdp = len(states), self._kind is ModelKind.MDP
        transitions = cp.empty(count, dtype=cp.int32)
        choices = cp.empty(count, dtype=cp.int32) if is_mdp else None
        deadlocks = cp.empty(count, dtype=cp.uint8)
        arguments = (states, transitions, choices, deadlocks, self._numbers)
        self._launch("count_rows", count, *arguments, counted_at=1)
        longest, most = int(transitions.max()), self._tuning.most_transitions
        if longest > most:
            raise UnsupportedError(f"a state has {longest} transitions, more than {most}")
        places = self._offsets(transitions)
        entries = int(places[-1])
        starts = self._offsets(choices) if is_mdp else None
        rows = 0 if starts is None else int(starts[-1])
        by_entry = self._has_actions and not is_mdp
        self._require(16 * entries + 8 * rows, "the matrix")
        columns, values = cp.empty(entries, dtype=cp.int32), cp.empty(entries, dtype=cp.float64)
        actions = cp.empty(entries, dtype=cp.int32) if by_entry else None
        lengths = cp.empty(rows, dtype=cp.int32) if is_mdp else None
        row_actions = cp.empty(rows, dtype=cp.int32) if is_mdp and self._has_actions else None
        scaled = cp.int32(self._kind is ModelKind.DTMC)
        self._launch(
            *("write_rows", count, *self._known(), self._ranks, states),
            *(cp.uint64(first), scaled, places, starts),
            *(columns, values, actions, lengths, row_actions),
            *(transitions, choices, self._numbers),
            counted_at=5,
        )
        kept = self._offsets(transitions)
        if int(kept[-1]) < entries:
            moved = (places, kept, columns, values, actions)
            columns, values, actions = self._compacted(*moved)
        if not is_mdp:
            return DeviceRows(kept, None, columns, values, actions, deadlocks)
        groups = self._offsets(choices)
        if int(groups[-1]) < rows:
            lengths = self._compacted(starts, groups, None, None, lengths)[2]
            if row_actions is not None:
                row_actions = self._compacted(starts, groups, None, None, row_actions)[2]
        return DeviceRows(self._offsets(lengths), groups, columns, values, row_actions, deadlocks)

    def evaluate(self, which: int, *, as_truths: bool) -> tuple[Any, int | None]:
        """Return the values of an expression in all states, and the first in which it has none.

        Parameters
        ----------
        which
            Which of the expressions.
        as_truths
            Whether values are Boolean, uint8; else float64.
        """
        cp = self._cp
        count = len(self._sorted)
        values = cp.empty(count, dtype=cp.uint8 if as_truths else cp.float64)
        failing = cp.full(1, EMPTY, dtype=cp.uint64)
        places = (None, values) if as_truths else (values, None)
        self._launch(
            *("evaluate_states", count, self._sorted, cp.int32(which), *places, failing),
            self._numbers,
            counted_at=1,
        )
        first = int(failing[0])
        return values, None if first == EMPTY else first

    def _require(self, needed: int, what: str) -> None:
        """Raise unless the device has room for so many bytes more."""
        left = self._most_memory
        if left is not None:
            left = max(0, left - int(self._cp.get_default_memory_pool().used_bytes()))
        require_bytes(self._device, needed, what, left)

    def _known(self) -> tuple[Any, ...]:
        """Return the table, its mask and the list, which kernels look states up in."""
        return self._table, self._cp.uint64(self._mask), self._states

    def _state_of_search(self) -> np.void:
        found: np.void = self._search.get().view(SEARCH)[0].copy()
        return found

    def _allot(self, capacity: int) -> None:
        """Make room for so many states in the list and the table; those of the list stay."""
        cp = self._cp
        size = 1
        while size < 2 * capacity:
            size *= 2
        self._table = None
        # No slot of a table without states has a bit that is 0.
        slot: type[np.unsignedinteger] = np.uint64 if self._words == 1 else np.uint32
        free = slot(np.iinfo(slot).max)
        needed = 8 * self._words * capacity + free.nbytes * size
        self._require(needed, f"{capacity} states")
        states = cp.empty((capacity, self._words), dtype=cp.uint64)
        count = len(self._states)
        states[:count] = self._states
        self._states = states
        self._table, self._mask = cp.full(size, free, dtype=slot), size - 1
        self._capacity = capacity
        self._launch(
            *("begin_search", count, self._table, cp.uint64(self._mask), self._states),
            counted_at=3,
        )

    def _grow(self, search: np.void) -> None:
        """Make more room; the level that has filled the list is expanded again."""
        search["found"], search["full"] = min(int(search["found"]), self._capacity), 0
        search["end"] = min(int(search["end"]), self._capacity)
        self._allot(self._tuning.growth * self._capacity)

    def _compacted(
        self, places: Any, kept: Any, columns: Any, values: Any, numbers: Any
    ) -> tuple[Any, Any, Any]:
        cp, entries = self._cp, int(kept[-1])
        made = [
            None if array is None else cp.empty(entries, dtype=array.dtype)
            for array in (columns, values, numbers)
        ]
        arrays = (places, kept, columns, values, numbers, *made)
        self._launch("compact_rows", len(places) - 1, *arrays, counted_at=0)
        return made[0], made[1], made[2]

    def _offsets(self, counts: Any) -> Any:
        cp = self._cp
        offsets = cp.zeros(len(counts) + 1, dtype=cp.int64)
        cp.cumsum(counts, dtype=cp.int64, out=offsets[1:])
        return offsets

    def _kernel(self, name: str) -> Any:
        return self._module.get_function(name)

    def _launch(self, name: str, count: int, *arguments: Any, counted_at: int = -1) -> None:
        """Launch a thread for each state; their number stands at a place among the arguments."""
        cp, threads = self._cp, self._tuning.block_threads
        place = len(arguments) if counted_at < 0 else counted_at
        given = [*arguments[:place], cp.uint64(count), *arguments[place:]]
        null = cp.uintp(0)
        blocks = -(-count // threads)
        if blocks:
            self._kernel(name)(
                (blocks,), (threads,), tuple(null if x is None else x for x in given)
            )

    def _resident_blocks(self, kernel: Any) -> int:
        """Return how many blocks of a kernel the whole device runs at a time."""
        properties = self._cp.cuda.runtime.getDeviceProperties(self._cp.cuda.Device().id)
        registers = (int(kernel.num_regs) + 7) // 8 * 8 * self._tuning.block_threads
        by_registers = int(properties["regsPerMultiprocessor"]) // registers
        by_threads = int(properties["maxThreadsPerMultiProcessor"]) // self._tuning.block_threads
        return int(properties["multiProcessorCount"]) * max(1, min(by_registers, by_threads))
