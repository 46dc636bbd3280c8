"""Models and questions that PRISM's symbolic engines hand over as decision diagrams."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.diagrams.build import build
from engines.diagrams.choices import choice_roots
from engines.diagrams.diagram import Diagram, StateNumbering
from engines.diagrams.expand import (
    Choices,
    expand_choice_vector,
    expand_choices,
    expand_matrix,
    expand_set,
    expand_vector,
)
from engines.diagrams.survey import survey
from engines.formats.csr import CsrMatrix, FloatArray
from engines.model import ExplicitModel, ModelKind
from engines.system import Direction
from prism_hooks.questions import Question


@dataclass(frozen=True)
class SymbolicForm:
    """What the diagrams of one model have in common.

    Parameters
    ----------
    numbering
        The numbers of its states.
    choice_variables
        Shape (variables,): the diagrams' variables that stand for choices; empty for a chain.
    choices
        The choices of an MDP; None for a Markov chain.
    """

    numbering: StateNumbering
    choice_variables: NDArray[np.int32]
    choices: Choices | None = None

    def of_choices(self, source: Any) -> FloatArray:
        """Return a value for each row of an MDP, shape (rows,).

        Parameters
        ----------
        source
            A `prismgpu.Diagram` over choices and states.
        """
        assert self.choices is not None, "a Markov chain has no choices"
        return expand_choice_vector(
            diagram(source), self.numbering, self.choice_variables, self.choices
        )


def diagram(source: Any) -> Diagram:
    """Return a diagram as arrays of NumPy's, a bulk copy an array.

    Parameters
    ----------
    source
        A `prismgpu.Diagram`.
    """
    return Diagram(
        np.array(source.variables, dtype=np.int32),
        np.array(source.low, dtype=np.int32),
        np.array(source.high, dtype=np.int32),
        np.array(source.values, dtype=np.float64),
        int(source.root),
    )


DEVICE_ENTRIES = 2_000_000
"""From so many entries on, a GPU expands a matrix and copies it back sooner than a CPU would."""


def expanded_model(
    source: Any, device_number: int | None = None
) -> tuple[ExplicitModel, SymbolicForm]:
    """Return the model that a `prismgpu.SymbolicModel` stands for.

    Parameters
    ----------
    source
        The Java object, its diagrams read.
    device_number
        A GPU that may expand it; None for the CPU alone.

    Raises
    ------
    UnsupportedError
        For more states than a matrix here can have.
    """
    numbers = source.numbering
    numbering = StateNumbering(
        np.array(numbers.low, dtype=np.int32),
        np.array(numbers.high, dtype=np.int32),
        np.array(numbers.lowCounts, dtype=np.int64),
        np.array(numbers.counts, dtype=np.int64),
        int(numbers.root),
        np.array(source.rows, dtype=np.int32),
        np.array(source.columns, dtype=np.int32),
    )
    kind = ModelKind(str(source.kind))
    transitions = diagram(source.transitions)
    if source.choices is None:
        matrix = _chain(transitions, numbering, device_number)
        return ExplicitModel(kind, matrix), SymbolicForm(numbering, np.zeros(0, dtype=np.int32))
    variables = np.array(source.choices, dtype=np.int32)
    choices = _choices(transitions, numbering, variables, device_number)
    model = ExplicitModel(kind, choices.matrix, choices.row_group_offsets)
    return model, SymbolicForm(numbering, variables, choices)


def _chain(transitions: Diagram, numbering: StateNumbering, device_number: int | None) -> CsrMatrix:
    if device_number is not None:
        surveyed = survey(transitions, numbering)
        if surveyed.num_entries >= DEVICE_ENTRIES:
            from engines.cuda.diagrams import expand_in_pieces

            return expand_in_pieces(build(surveyed), device_number).matrix
    return expand_matrix(transitions, numbering)


def _choices(
    transitions: Diagram,
    numbering: StateNumbering,
    variables: NDArray[np.int32],
    device_number: int | None,
) -> Choices:
    if device_number is not None:
        roots, assignments = choice_roots(transitions, variables)
        surveyed = survey(transitions, numbering, roots)
        if surveyed.num_entries >= DEVICE_ENTRIES:
            from engines.cuda.diagrams import expand_in_pieces

            host = expand_in_pieces(build(surveyed), device_number)
            assert host.row_group_offsets is not None, "a matrix without choices"
            numbers = np.asarray(host.choice_numbers, dtype=np.int32)
            return Choices(host.matrix, host.row_group_offsets, numbers, roots, assignments)
    return expand_choices(transitions, numbering, variables)


def read_question(problem: Any, form: SymbolicForm) -> Question:
    """Read a problem whose parts are diagrams.

    Parameters
    ----------
    problem
        The `prismgpu.Problem`.
    form
        What its diagrams have in common with its model's.
    """
    parts = problem.parts
    size = form.numbering.num_states

    def of_states(part: Any) -> FloatArray | None:
        return None if part is None else expand_vector(diagram(part), form.numbering)

    def members(part: Any, otherwise: bool) -> NDArray[np.bool_]:
        if part is None:
            return np.full(size, otherwise)
        return expand_set(diagram(part), form.numbering)

    start = of_states(parts.start)
    if parts.startAddress:
        start = doubles_at(int(parts.startAddress), size).copy()
    rewards = of_states(parts.stateRewards)
    if parts.choiceRewards is not None and form.choices is not None and rewards is not None:
        rewards = np.repeat(rewards, np.diff(form.choices.row_group_offsets))
        rewards += form.of_choices(parts.choiceRewards)
    return Question(
        states=members(parts.states, False),
        remain=members(parts.remain, True),
        start=start,
        rewards=rewards,
        direction=None if problem.direction is None else Direction(str(problem.direction)),
        lower=float(problem.lower),
        upper=float(problem.upper),
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
