"""Models and questions that PRISM's symbolic engines hand over as decision diagrams."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX, FloatArray, MaskArray
from engines.cuda.driver import gpu_refusal, note_use
from engines.diagrams.choices import choice_roots
from engines.diagrams.diagram import TERMINAL, Diagram, StateNumbering
from engines.diagrams.survey import Survey
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.host.expansion.build import build
from engines.host.expansion.expand import (
    Choices,
    expand_choice_vector,
    expand_surveyed,
    expand_surveyed_choices,
)
from engines.host.expansion.room import fits_expanded
from engines.host.expansion.walks import Walked, surveyed_or_walked
from engines.host.paths import expand_set, expand_vector
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.model.step_rewards import checked_state_rewards
from engines.questions.diagram_long_run import LongRun
from engines.systems.one_sided import Direction
from prism_hooks.crossing import numpy_array
from prism_hooks.extract import finite_rewards
from prism_hooks.graph import DECOMPOSITIONS_OF_DIAGRAMS
from prism_hooks.questions import Question, given, initial_distribution
from prism_hooks.sets import SETS, words_of
from prism_hooks.told_solve import LONG_RUN, STEADY_STATE

DEVICE_ENTRIES = 2_000_000
"""From so many entries on, a GPU expands a matrix and copies it back sooner than a CPU would."""


class SymbolicModel:
    """A model of PRISM's symbolic engines: its diagrams, and its matrix once that is wanted.

    Parameters
    ----------
    source
        A `prismgpu.SymbolicModel`, its diagrams read; they are copied, and it gives them up.
    """

    def __init__(self, source: Any) -> None:
        numbers = source.numbering
        self.kind = ModelKind(str(source.kind))
        self.numbering = StateNumbering(
            numpy_array(numbers.low, np.int32),
            numpy_array(numbers.high, np.int32),
            numpy_array(numbers.lowCounts, np.int64),
            numpy_array(numbers.counts, np.int64),
            int(numbers.root),
            numpy_array(source.rows, np.int32),
            numpy_array(source.columns, np.int32),
        )
        self.transitions = diagram(source.transitions)
        has_choices = source.choices is not None
        variables = source.choices if has_choices else ()
        self._choice_variables = numpy_array(variables, np.int32)
        self._roots = choice_roots(self.transitions, variables) if has_choices else None
        self._choices: Choices | None = None
        self.refusal = ""
        """Why no GPU has made the matrix, although it was to; else empty."""
        source.forget()
        self._source = source

    @cached_property
    def long_run(self) -> LongRun:
        """The long run of a chain, without a matrix."""
        return LongRun.of_diagram(self.transitions, self.numbering)

    @property
    def wants_device(self) -> bool:
        """Whether a GPU would make the matrix sooner than the CPU."""
        surveyed = self.surveyed
        # What hardly shares anything is no smaller in blocks: no GPU could make it faster.
        return not isinstance(surveyed, Walked) and surveyed.num_entries >= DEVICE_ENTRIES

    @property
    def num_states(self) -> int:
        """Number of states."""
        return self.numbering.num_states

    @cached_property
    def surveyed(self) -> Survey | Walked:
        """What is known of the matrix before it is made."""
        roots = None if self._roots is None else self._roots[0]
        return surveyed_or_walked(self.transitions, self.numbering, roots)

    def expanded(
        self, device_number: int | None = None, device_memory: int | None = None
    ) -> ExplicitModel:
        """Return the model as the engines take it.

        Parameters
        ----------
        device_number
            A GPU that may expand a large matrix; None for the CPU alone.
        device_memory
            Bytes of its memory that may be taken; None for what is free.

        Raises
        ------
        MemoryError
            When the host cannot hold the matrix.
        UnsupportedError
            For more states than a matrix here can have.
        """
        surveyed = self.surveyed
        if device_number is not None and self.wants_device and not isinstance(surveyed, Walked):
            try:
                return self._expanded_on_device(surveyed, device_number, device_memory)
            except DeviceMemoryError as error:
                self.refusal = str(error)
        if self._roots is None:
            return ExplicitModel(self.kind, expand_surveyed(surveyed))
        choices = expand_surveyed_choices(surveyed, *self._roots)
        self._choices = choices
        return ExplicitModel(self.kind, choices.matrix, choices.row_group_offsets)

    def _expanded_on_device(
        self, surveyed: Survey, device_number: int, memory: int | None
    ) -> ExplicitModel:
        from engines.cuda.diagrams import expand_in_pieces

        note_use()
        host = expand_in_pieces(build(surveyed), device_number, memory)
        if self._roots is not None:
            assert host.row_group_offsets is not None, "a matrix without choices"
            numbers = np.asarray(host.choice_numbers, dtype=np.int32)
            self._choices = Choices(host.matrix, host.row_group_offsets, numbers, *self._roots)
        return ExplicitModel(self.kind, host.matrix, host.row_group_offsets)

    def of_states(self, source: Any) -> FloatArray:
        """Return a value for each state, shape (states,).

        Parameters
        ----------
        source
            A `prismgpu.Diagram` over states.
        """
        found = self._by_paths(source)
        return expand_vector(diagram(source), self.numbering) if found is None else found

    def members(self, source: Any) -> MaskArray:
        """Return a set of states, shape (states,).

        Parameters
        ----------
        source
            A `prismgpu.Diagram` over states.
        """
        found = self._by_paths(source)
        return expand_set(diagram(source), self.numbering) if found is None else found != 0.0

    def _by_paths(self, source: Any) -> FloatArray | None:
        """Return what Java finds path by path, the sooner way for a small model; else None."""
        found = source.ofStates(self._source)
        return None if found is None else numpy_array(found, np.float64)

    def of_choices(self, source: Any) -> FloatArray:
        """Return a value for each row of an MDP that has been expanded, shape (rows,).

        Parameters
        ----------
        source
            A `prismgpu.Diagram` over choices and states.
        """
        choices = self.choices
        return expand_choice_vector(
            diagram(source), self.numbering, self._choice_variables, choices
        )

    @property
    def choices(self) -> Choices:
        """The choices of an MDP that has been expanded."""
        assert self._choices is not None, "no choices have been expanded"
        return self._choices


def diagram(source: Any) -> Diagram:
    """Return a diagram as arrays of NumPy's, a bulk copy an array.

    Parameters
    ----------
    source
        A `prismgpu.Diagram`.
    """
    variables = numpy_array(source.variables, np.int32)
    values = np.zeros(len(variables))
    values[variables == TERMINAL] = numpy_array(source.values, np.float64)
    return Diagram(
        variables,
        numpy_array(source.low, np.int32),
        numpy_array(source.high, np.int32),
        values,
        int(source.root),
    )


def read_question(problem: Any, model: SymbolicModel) -> Question:
    """Read a problem whose parts are diagrams.

    Parameters
    ----------
    problem
        The `prismgpu.Problem`.
    model
        Its model.
    """
    parts = problem.parts
    size = model.num_states
    start = None if parts.start is None else model.of_states(parts.start)
    if parts.startAddress:
        start = doubles_at(int(parts.startAddress), size).copy()
    rewards, owner = None, "state"
    if parts.stateRewards is not None:
        rewards = model.of_states(parts.stateRewards)
    if rewards is not None and parts.choiceRewards is not None:
        rewards = np.repeat(rewards, np.diff(model.choices.row_group_offsets))
        rewards += model.of_choices(parts.choiceRewards)
        owner = "choice"
    return Question(
        states=np.zeros(size, dtype=np.bool_)
        if parts.states is None
        else model.members(parts.states),
        remain=np.ones(size, dtype=np.bool_)
        if parts.remain is None
        else model.members(parts.remain),
        start=start,
        rewards=None if rewards is None else finite_rewards(rewards, owner),
        direction=None if problem.direction is None else Direction(str(problem.direction)),
        lower=float(problem.lower),
        upper=float(problem.upper),
    )


WITHOUT_MATRIX = ("reachability", STEADY_STATE, *LONG_RUN)
"""The tasks of Markov chains that need no matrix."""
MOST_EXPANDED = INT32_MAX
"""Entries of the largest matrix that is expanded where a GPU can do without: copying it to and fro
would take far longer than finding the patterns of its rows."""
GRAPH_TASKS = (*SETS, *DECOMPOSITIONS_OF_DIAGRAMS)
"""Tasks that need one, and that PRISM's own code does on the diagram."""


def why_without_matrix(
    problem: Any,
    model: SymbolicModel,
    environment: SolverEnvironment,
    *,
    held: bool,
    say: Callable[[str], None],
) -> str | None:
    """Return why a problem is to be solved on the diagram alone, or None if it is not.

    Parameters
    ----------
    problem
        The `prismgpu.Problem`.
    model
        Its model.
    environment
        What the user asked for.
    held
        Whether the matrix has been made: it needs no more room then.
    say
        Takes a line for the log, where the format was named and the long run needs a matrix.
    """
    room = None if held else fits_expanded(model.surveyed)
    if room is not None and not room.fits:
        return (
            f"the matrix takes {room.needed / 1e9:.1f} GB of memory, and "
            f"{(room.available or 0) / 1e9:.1f} GB are free"
        )
    reason = "-gpuformat hybrid"
    if environment.matrix_format is not Format.HYBRID:
        entries = model.surveyed.num_entries
        if held or entries <= MOST_EXPANDED or not _sweeps_on_gpu(problem, environment):
            return None
        reason = f"it would have {entries} entries"
    if not _has_answer(problem) and str(problem.task) not in GRAPH_TASKS:
        return None
    if str(problem.task) in LONG_RUN:
        refusal = model.long_run.refusal(environment)
        if refusal:
            say(f"{reason}: the long run is computed with a matrix: {refusal}")
            return None
    return reason


def _sweeps_on_gpu(problem: Any, environment: SolverEnvironment) -> bool:
    """Return whether a GPU sweeps what a diagram stands for, in a format that it finds itself."""
    formats = (Format.AUTO, Format.PATTERNS)
    if environment.matrix_format not in formats or not _has_answer(problem):
        return False
    return environment.device is not DeviceChoice.CPU and gpu_refusal() is None


def _has_answer(problem: Any) -> bool:
    simple = problem.direction is None and problem.intervals is None
    return simple and str(problem.task) in WITHOUT_MATRIX


def solve_without_matrix(
    problem: Any,
    model: SymbolicModel,
    reason: str,
    environment: SolverEnvironment,
    progress: Progress,
) -> SolveResult:
    """Solve a problem on its model's diagram alone.

    Parameters
    ----------
    problem
        The `prismgpu.Problem`.
    model
        Its model.
    reason
        Why there is no matrix, for the log.
    environment
        Method, termination, limits, device.
    progress
        Called after each batch of sweeps.

    Raises
    ------
    UnsupportedError
        For what only a matrix can answer.
    """
    try:
        return _solved(problem, model, environment, progress)
    except UnsupportedError as error:
        why = f": {error}" if str(error) else ""
        raise UnsupportedError(f"without a matrix: {reason}{why}") from error


def _solved(
    problem: Any, model: SymbolicModel, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    from engines.questions.without_matrix import (
        solve_reachability_without_matrix,
        solve_steady_state_without_matrix,
    )

    if not _has_answer(problem):
        raise UnsupportedError
    asked = read_question(problem, model)
    if str(problem.task) == STEADY_STATE:
        if not asked.states.all():
            raise UnsupportedError("the steady state is that of some of the states")
        return solve_steady_state_without_matrix(
            model.transitions, model.numbering, environment, progress=progress
        )
    if str(problem.task) in LONG_RUN:
        if str(problem.task) == "long-run distribution":
            initial = initial_distribution(asked)
            return model.long_run.distribution(initial, environment, progress)
        earned = checked_state_rewards("", given(asked.rewards, "rewards"), model.num_states)
        return model.long_run.average(earned, environment, progress)
    transitions = diagram(problem.parts.own()) if problem.embedded else model.transitions
    return solve_reachability_without_matrix(
        transitions,
        model.numbering,
        asked.states,
        given(asked.start, "values to start from"),
        environment,
        rewards=asked.rewards,
        progress=progress,
    )


def hand_over(problem: Any, values: FloatArray) -> None:
    """Write a solution into PRISM's native vector, in one bulk copy.

    Parameters
    ----------
    problem
        The `prismgpu.Problem`.
    values
        Shape (states,).
    """
    doubles_at(int(problem.parts.solutionAddress), len(values))[:] = values


def hand_over_set(problem: Any, states: MaskArray) -> None:
    """Write a set of states where a question about the graph of diagrams takes it.

    Parameters
    ----------
    problem
        The `prismgpu.Problem`: it takes a bit a state; or, of a large model, a double.
    states
        Shape (states,).
    """
    if int(problem.parts.solutionAddress):
        hand_over(problem, states.astype(np.float64))
    else:
        problem.found = words_of(states)


def doubles_at(address: int, size: int) -> FloatArray:
    """Return a native vector of PRISM's as an array that shares its memory.

    Parameters
    ----------
    address
        Where it lies.
    size
        Number of doubles.
    """
    return np.ctypeslib.as_array((ctypes.c_double * size).from_address(address))
