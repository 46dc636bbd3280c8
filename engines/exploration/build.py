"""From a program to a model: the arrays of PRISM's explicit engine.

The states are searched breadth-first, sorted, and their choices evaluated once more for the matrix.
The arrays are those that `explicit.ConstructModel` and `explicit.rewards.ConstructRewards` of PRISM
make: states in the order of their variables' values; in an MDP the choices in PRISM's order, each
sorted by target; in a chain a state's transitions as they come up, those under different actions to
the same state apart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.arrays import INT32_MAX, FloatArray, MaskArray, index_dtype
from engines.devices.exploring import explored_on_gpu
from engines.errors import (
    DeviceMemoryError,
    InvalidModelError,
    ModelSizeError,
    UnsupportedError,
)
from engines.exploration.initial import initial_states
from engines.exploration.rewards import EarnedRewards, earned_rewards
from engines.exploration.run_matrix import RunMatrix
from engines.host.expansion.room import SHARE_OF_HOST, available_host_bytes, require_host_bytes
from engines.host.exploring.compiled import compiled_expansion
from engines.host.exploring.explorer import HostExplorer, Rows, SearchReport, evaluate_in
from engines.host.exploring.likely import LikelyExplorer
from engines.model.csr import CsrMatrix
from engines.model.events import Event, Events, Kind
from engines.model.explicit import ExplicitModel, RewardStructure
from engines.model.explicit import ModelKind as ExplicitKind
from engines.model.row_runs import RowRuns, RowsInRuns, RunCollector
from engines.program.faults import command_fault, expression_fault
from engines.program.packing import Packing, Words
from engines.program.program import Label, ModelKind, Program

_T = TypeVar("_T", bound=np.generic)

UNEXPLORED = "unexplored"
"""The label of states that are not likely enough to be explored."""

Progress = Callable[[int], None]
"""Called with the number of states found so far."""


@dataclass(frozen=True)
class ExplorationTuning:
    """How the work is cut up.

    Parameters
    ----------
    seconds_of_a_part
        Of searching, between two moments at which it can be interrupted.
    states_of_a_part
        Whose rows are made in one go, between two such moments.
    memory_share
        Of the host's free memory that states and matrix may take.
    most_likely_states
        That are explored where only likely ones are and no other number is given: a model where
        something is certain to go on for ever has no end of them.
    states_before_compiling
        With more, a search goes on by C compiled from the program, where there is a compiler:
        that saves some 0.1 microseconds a state, and compiling takes half a second.
    states_before_gpu
        With more, a search begins anew on a GPU, if one may be used: for fewer, the second that
        compiling a program for it takes, the first time, is longer than the CPU needs.
    most_entries
        Of a chain with more transitions, the rows are kept as runs, where that is wanted and they
        repeat often.
    """

    seconds_of_a_part: float = 0.1
    states_of_a_part: int = 2**15
    memory_share: float = SHARE_OF_HOST
    most_likely_states: int = 10_000_000
    states_before_compiling: int = 4_000_000
    states_before_gpu: int = 500_000
    most_entries: int | None = INT32_MAX


@dataclass(frozen=True)
class Limits:
    """How much of something a model may have; None for any number.

    Parameters
    ----------
    states
        States.
    transitions
        Transitions, as far as the CPU searches.
    crowding
        Transitions beyond 64 a state, as far as the CPU searches. Models that have many, such as
        rings of processes that all move at once, are often small as diagrams.
    """

    states: int | None = None
    transitions: int | None = None
    crowding: int | None = None

    def watched(self, progress: Progress | None) -> Progress:
        """Return what is told of the states found, and raises where they are too many."""

        def tell(found: int) -> None:
            if progress is not None:
                progress(found)
            self._require(found, self.states, "states")

        return tell

    def require(self, report: SearchReport) -> None:
        """Raise where a search has found too many transitions."""
        self._require(report.transitions, self.transitions, "transitions")
        self._require(report.crowding, self.crowding, "transitions beyond 64 a state")

    @staticmethod
    def _require(found: int, most: int | None, what: str) -> None:
        if most is not None and found > most:
            raise ModelSizeError(most, what)


@dataclass(frozen=True)
class ExploredModel:
    """A model that was built from its program.

    Parameters
    ----------
    model
        Matrix, initial states, rewards, and labels, "init" and "deadlock" first.
    packing, states
        The states in order, packed, shape (states, words).
    state_rewards
        Of each reward structure, the rewards of the states alone, shape (states,).
    actions
        Shape (choices,) of an MDP, (entries,) of a chain: indices into `Program.actions`, -1 for
        none; None where the model has no actions.
    deadlocks
        Shape (states,): the states that were given a transition to themselves.
    events
        Where it was built, and why not elsewhere.
    unexplored
        Shape (states,): the states whose choices were not looked at; they have a transition to
        themselves. None where all were.
    """

    model: ExplicitModel
    packing: Packing
    states: Words
    state_rewards: tuple[FloatArray, ...]
    actions: NDArray[np.int32] | None
    deadlocks: MaskArray
    events: Events = ()
    unexplored: MaskArray | None = None

    def earned(self, program: Program) -> tuple[EarnedRewards, ...]:
        """Return the rewards of a program's structures; raises as `earned_rewards` does.

        Parameters
        ----------
        program
            The program that the model was built from, with any reward structures.
        """
        # In a transition that no command has made, nothing is earned.
        added = self.deadlocks if self.unexplored is None else self.deadlocks | self.unexplored
        return earned_rewards(program, self.packing, self.states, self.model, self.actions, added)


def build(
    program: Program,
    *,
    fix_deadlocks: bool = True,
    gpu: int | None = None,
    gpu_memory: int | None = None,
    threads: int | None = None,
    limits: Limits = Limits(),
    likely: float | None = None,
    in_runs: bool = False,
    tuning: ExplorationTuning | None = None,
    progress: Progress | None = None,
) -> ExploredModel:
    """Build the model of a program.

    Parameters
    ----------
    program
        The model.
    fix_deadlocks
        Whether states without a choice get a transition to themselves; else they are an error.
    gpu
        Which GPU takes large models over; None for the CPU alone. The result does not depend on it.
    gpu_memory
        Bytes of it that may be taken; None for all.
    threads
        Of the CPU: how many; None for one a core that the process may use. The result does not
        depend on it.
    limits
        How much of something the model may have.
    likely
        Explore only states that are reached with at least this estimated probability, on the CPU
        and at most `limits.states` of them; the others that they lead to get a transition to
        themselves and the label "unexplored". None for all states.
    in_runs
        Whether the matrix of a chain with very many transitions may be an
        `engines.exploration.run_matrix.RunMatrix`, which knows of no actions.
    tuning
        How the work is cut up; None for the default.
    progress
        Told how many states there are.

    Raises
    ------
    InvalidModelError
        For commands, labels and rewards with a fault in a reachable state, in PRISM's words, for
        deadlocks that are not to be fixed, and if there is no initial state.
    ModelSizeError
        For more of something than it may have, as soon as they are found.
    UnsupportedError
        For more states than 32-bit numbers have, and for what cannot be evaluated.
    DeviceMemoryError
        If memory does not suffice, before it is taken.
    """
    chosen = tuning or ExplorationTuning()
    packing = Packing.of(program)
    initial = initial_states(program, packing)
    if not len(initial):
        raise InvalidModelError('No initial states: "init" construct evaluates to false')
    rows: Rows | RowsInRuns
    unexplored, events = None, Events()
    if likely is not None:
        how = (likely, limits.states, threads, chosen, progress)
        states, rows, unexplored = _likely(program, packing, initial, *how)
    else:
        told = limits.watched(progress)
        if not in_runs or program.kind is ModelKind.MDP:
            chosen = replace(chosen, most_entries=None)
        where = (gpu, gpu_memory, threads, chosen, told, limits)
        states, rows, events = _explored(program, packing, initial, *where)
        told(len(states))
    if isinstance(rows, RowsInRuns):
        events += (_kept_in_runs(rows.runs),)
    fixed = int(np.count_nonzero(rows.deadlocks))
    if fixed and not fix_deadlocks:
        raise InvalidModelError(f"Model contains {fixed} deadlock states")
    matrix, groups, actions = _matrix(rows, len(states))
    plain = ExplicitModel(ExplicitKind(program.kind.upper()), matrix, groups)
    built = ExploredModel(plain, packing, states, (), actions, rows.deadlocks, events, unexplored)
    earned = built.earned(program)
    labels = {"init": _members(states, initial), "deadlock": rows.deadlocks}
    for label in program.labels:
        labels[label.name] = _holding(program, packing, states, label)
    if unexplored is not None:
        labels[UNEXPLORED] = unexplored
    origin = int(np.argmax(labels["init"])) if len(initial) == 1 else None
    return replace(
        built,
        model=ExplicitModel(
            *(plain.kind, matrix, groups, labels["init"], labels, _structures(earned)), origin
        ),
        state_rewards=tuple(rewards.of_states for rewards in earned),
    )


def _explored(
    program: Program,
    packing: Packing,
    initial: Words,
    gpu: int | None,
    gpu_memory: int | None,
    threads: int | None,
    tuning: ExplorationTuning,
    progress: Progress,
    limits: Limits,
) -> tuple[Words, Rows | RowsInRuns, Events]:
    """Search on the CPU, for many states on a GPU; return them, their rows, and what happened.

    The number of states alone decides, so that the same model is built in the same place each time.
    """
    available = available_host_bytes()
    events: Events = ()
    memory = 2**62 if available is None else int(tuning.memory_share * available)
    explorer = HostExplorer(program, packing, initial, memory, threads)
    how = (program, packing, tuning, progress, limits)
    if gpu is not None:
        report = _searched(explorer, *how, tuning.states_before_gpu)
        if report.found > tuning.states_before_gpu:
            try:
                found = explored_on_gpu(
                    *(program, packing, initial, gpu, gpu_memory),
                    progress=progress,
                    most_entries=tuning.most_entries,
                )
                explorer.close()
                return *found, (Kind.BUILT_ON_GPU(gpu=gpu),)
            except (DeviceMemoryError, UnsupportedError) as error:
                events = (Kind.BUILT_ON_CPU(reason=str(error)),)
    report = _searched(explorer, *how, tuning.states_before_compiling)
    if not report.done:
        events += _compiled(explorer, program, packing)
        report = _searched(explorer, *how, None)
    require_host_bytes(
        8 * packing.words * report.found, f"a list of {report.found} states", tuning.memory_share
    )
    states = explorer.states(report.found)
    rows = _rows_or_runs(explorer, states, report, tuning)
    explorer.close()
    return states, rows, events


def _likely(
    program: Program,
    packing: Packing,
    initial: Words,
    threshold: float,
    most_states: int | None,
    threads: int | None,
    tuning: ExplorationTuning,
    progress: Progress | None,
) -> tuple[Words, Rows, MaskArray]:
    """Search for likely states; return all that were met, their rows, and the unexplored ones."""
    if any(label.name == UNEXPLORED for label in program.labels):
        raise InvalidModelError(f'The label "{UNEXPLORED}" is that of states that are left out')
    available = available_host_bytes()
    memory = 2**62 if available is None else int(tuning.memory_share * available)
    search = LikelyExplorer(program, packing, initial, threshold, memory)
    report = None
    while report is None or not report.done:
        most = most_states or tuning.most_likely_states
        report = search.search(tuning.seconds_of_a_part, most)
        _require_sound(program, packing, report)
        if progress is not None:
            progress(report.found)
    states, unexplored = search.states(report.found)
    search.close()
    explorer = HostExplorer(program, packing, initial, memory, threads)
    rows = _rows(explorer, states, report, tuning, unexplored)
    explorer.close()
    return states, rows, unexplored


def _compiled(explorer: HostExplorer, program: Program, packing: Packing) -> Events:
    """Have the search go on by compiled code; return why it goes on by byte code if it does."""
    try:
        explorer.use(compiled_expansion(program, packing))
    except UnsupportedError as error:
        return (Kind.BUILT_BY_BYTE_CODE(reason=str(error)),)
    return ()


def _searched(
    explorer: HostExplorer,
    program: Program,
    packing: Packing,
    tuning: ExplorationTuning,
    progress: Progress,
    limits: Limits,
    most: int | None,
) -> SearchReport:
    """Search to the end, or until more than `most` states are found."""
    limit = INT32_MAX if most is None else most
    while True:
        report = explorer.search(tuning.seconds_of_a_part, limit)
        _require_sound(program, packing, report)
        progress(report.found)
        limits.require(report)
        if report.done or report.found > limit:
            return report


def _require_sound(program: Program, packing: Packing, report: SearchReport) -> None:
    """Refuse a state with a fault, and more states than there are numbers."""
    if report.fault is not None:
        state = packing.state(report.fault)
        raise command_fault(program, state) or AssertionError(f"no fault found in {state}")
    if report.found > INT32_MAX:
        raise UnsupportedError(f"more than {INT32_MAX} states")


def _rows(
    explorer: HostExplorer,
    states: Words,
    report: SearchReport,
    tuning: ExplorationTuning,
    unexplored: MaskArray | None = None,
) -> Rows:
    what = f"the matrix of {report.found} states and up to {report.transitions} transitions"
    require_host_bytes(explorer.room_for_rows(report), what, tuning.memory_share)
    rows = explorer.empty_rows(report)
    for first in range(0, report.found, tuning.states_of_a_part):
        last = min(report.found, first + tuning.states_of_a_part)
        explorer.rows(states, first, last, rows, unexplored)
    return rows


def _rows_or_runs(
    explorer: HostExplorer, states: Words, report: SearchReport, tuning: ExplorationTuning
) -> Rows | RowsInRuns:
    """Return the rows; as runs where there are very many transitions and rows repeat often."""
    if tuning.most_entries is not None and report.transitions > tuning.most_entries:
        with contextlib.suppress(UnsupportedError):
            return _rows_in_runs(explorer, states, report, tuning)
    return _rows(explorer, states, report, tuning)


def _rows_in_runs(
    explorer: HostExplorer, states: Words, report: SearchReport, tuning: ExplorationTuning
) -> RowsInRuns:
    """Return the rows of a chain as runs; raises `UnsupportedError` if they repeat too seldom."""
    collector = RunCollector()
    # Of the entries no more is touched than the rows of a part have.
    room = explorer.empty_rows(replace(report, found=tuning.states_of_a_part))
    room.deadlocks = np.empty(len(states), dtype=bool)
    for first in range(0, len(states), tuning.states_of_a_part):
        last = min(len(states), first + tuning.states_of_a_part)
        room.rows = room.entries = 0
        explorer.rows(states, first, last, room)
        collector.add(
            room.row_offsets[: room.rows + 1],
            *(room.columns[: room.entries], room.values[: room.entries]),
        )
    return RowsInRuns(collector.runs(), room.deadlocks)


def _kept_in_runs(runs: RowRuns) -> Event:
    # Of a list: columns, values, and where rows start, which takes 8 bytes beyond 2³¹ entries.
    states, entries = runs.num_rows, runs.num_entries
    listed = (12 * entries + np.dtype(index_dtype(entries)).itemsize * states) / states
    return Kind.KEPT_IN_RUNS(
        transitions=entries,
        runs=runs.num_runs,
        kinds=len(runs.pair_starts) - 1,
        bytes=runs.nbytes / states,
        listed=listed,
    )


def _matrix(
    rows: Rows | RowsInRuns, states: int
) -> tuple[CsrMatrix, NDArray[np.signedinteger] | None, NDArray[np.int32] | None]:
    """Return the matrix, where the choices of each state begin, and the actions."""
    if isinstance(rows, RowsInRuns):
        return RunMatrix.of(rows.runs), None, None
    is_mdp = rows.group_offsets is not None
    actions = rows.actions
    if actions is not None:
        actions = _shrunk(actions, rows.rows if is_mdp else rows.entries)
    offsets = rows.row_offsets[: rows.rows + 1].astype(index_dtype(rows.entries), copy=False)
    columns = _shrunk(rows.columns, rows.entries)
    values = _shrunk(rows.values, rows.entries)
    groups = None
    if rows.group_offsets is not None:
        groups = rows.group_offsets.astype(index_dtype(rows.rows), copy=False)
    return CsrMatrix(offsets, columns, values, states), groups, actions


def _shrunk(array: NDArray[_T], size: int) -> NDArray[_T]:
    """Return the first items of an array, which gives the rest of its memory back."""
    array.resize(size, refcheck=False)
    return array


def _members(states: Words, chosen: Words) -> MaskArray:
    """Return which states are among some of them, both in order."""
    mask: MaskArray = np.zeros(len(states), dtype=bool)
    if states.shape[1] == 1:
        mask[np.searchsorted(states[:, 0], chosen[:, 0])] = True
        return mask
    wanted = {row.tobytes() for row in chosen}
    # A row at a time only where the first word is that of a chosen state.
    places = np.flatnonzero(np.isin(states[:, 0], chosen[:, 0]))
    mask[places] = [states[place].tobytes() in wanted for place in places]
    return mask


def _holding(program: Program, packing: Packing, states: Words, label: Label) -> MaskArray:
    found = evaluate_in(label.expression, packing, states)
    if found.failing is not None:
        state = packing.state(states[found.failing])
        fault = expression_fault(program, label.expression, state, f'label "{label.name}"')
        raise fault or AssertionError(f"no fault found in {state}")
    return found.values.astype(bool)


def _structures(earned: tuple[EarnedRewards, ...]) -> tuple[RewardStructure, ...]:
    return tuple(RewardStructure(x.name, x.expected, x.of_choices) for x in earned)
