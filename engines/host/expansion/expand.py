"""A diagram's matrix, or an MDP's choices and their values, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.arrays import INT32_MAX, FloatArray, IndexArray, index_dtype
from engines.diagrams.choices import roots_of
from engines.diagrams.diagram import Diagram, StateNumbering
from engines.diagrams.survey import Survey
from engines.errors import UnsupportedError
from engines.host.blocks import copy_choices, copy_rows
from engines.host.expansion.build import build
from engines.host.expansion.walks import Walked
from engines.host.paths import read_points
from engines.model.csr import CsrMatrix

STATES_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class Choices:
    """An MDP's transitions, one choice a row.

    Parameters
    ----------
    matrix
        Shape (rows, states).
    row_group_offsets
        Shape (states + 1,): where the rows of each state start.
    choice_numbers
        Shape (rows,), int32: which choice a row is. The rows of a state ascend.
    roots
        Shape (choices,), int32: the diagram's node below each choice.
    assignments
        Shape (choices, variables): the choice variables of each choice.
    """

    matrix: CsrMatrix
    row_group_offsets: IndexArray
    choice_numbers: NDArray[np.int32]
    roots: NDArray[np.int32]
    assignments: NDArray[np.bool_]


def expand_surveyed(surveyed: Survey | Walked) -> CsrMatrix:
    """Return a matrix without choices by rows, columns ascending in each.

    Parameters
    ----------
    surveyed
        The survey, of which `expanded_bytes` tells what this will take, or what stands for it where
        the matrix is small, or little is shared.

    Raises
    ------
    UnsupportedError
        There are more states than columns of 32 bits hold.
    """
    _check_columns(surveyed)
    if surveyed.with_choices:
        raise ValueError("a matrix with choices is expanded by expand_surveyed_choices")
    return surveyed.expanded() if isinstance(surveyed, Walked) else copy_rows(build(surveyed))


def expanded_bytes(surveyed: Survey | Walked) -> int:
    """Return the most bytes that the expansion of a large matrix takes at once, result included.

    Parameters
    ----------
    surveyed
        The survey. With choices, the number of rows is only bounded by that of the entries.
    """
    if isinstance(surveyed, Walked):
        return surveyed.expanded_bytes
    states, entries = surveyed.numbering.num_states, surveyed.num_entries
    level = surveyed.best_level()
    result = 12 * entries + np.dtype(index_dtype(entries)).itemsize * (states + 1)
    if surveyed.with_choices:
        rows = min(entries, len(surveyed.roots) * states)
        result += 8 * (states + 1) + 12 * rows
    return result + int(surveyed.nbytes()[level]) + 8 * int(surveyed.jobs()[level])


def expand_surveyed_choices(
    surveyed: Survey | Walked, roots: NDArray[np.int32], assignments: NDArray[np.bool_]
) -> Choices:
    """Return an MDP's choices by rows, in the order of PRISM's engines.

    Parameters
    ----------
    surveyed
        What `engines.host.expansion.walks.surveyed_or_walked` found of `roots`; `expanded_bytes`
        tells what this will take.
    roots, assignments
        As `engines.diagrams.choices.choice_roots` returns them.

    Raises
    ------
    UnsupportedError
        There are more states than columns of 32 bits hold.
    """
    _check_columns(surveyed)
    if isinstance(surveyed, Walked):
        found = surveyed.expanded_choices()
    else:
        found = copy_choices(build(surveyed))
    return Choices(*found, roots, assignments)


def expand_choice_vector(
    diagram: Diagram,
    numbering: StateNumbering,
    choice_variables: Sequence[int] | IndexArray,
    choices: Choices,
) -> FloatArray:
    """Return the value of each choice of each state: its reward, or its action's number.

    Parameters
    ----------
    diagram
        A function of choice and row variables.
    numbering
        The states.
    choice_variables
        Shape (variables,), ascending: the diagram's variables that stand for nondeterminism.
    choices
        The choices of the states.

    Returns
    -------
    Shape (rows,).

    Raises
    ------
    InvalidModelError
        The function depends on another variable.
    UnsupportedError
        Choice variables are not above all others.
    """
    roots = roots_of(diagram, choice_variables, choices.assignments)
    rows = len(choices.choice_numbers)
    result = np.zeros(rows)
    groups = choices.row_group_offsets
    for first in range(0, rows, STATES_AT_ONCE):
        part = np.arange(first, min(rows, first + STATES_AT_ONCE))
        states = np.searchsorted(groups, part, side="right") - 1
        result[part] = read_points(diagram, numbering, states, roots[choices.choice_numbers[part]])
    return result


def _check_columns(surveyed: Survey | Walked) -> None:
    columns = surveyed.numbering.num_states
    if columns > INT32_MAX:
        raise UnsupportedError(
            f"a matrix of {columns} states is too large for columns of 32 bits; the most are "
            f"{INT32_MAX}"
        )
