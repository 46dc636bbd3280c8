"""An MDP's choices: the assignments of the variables that stand for nondeterminism."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engines.arrays import IndexArray
from engines.diagrams.diagram import ZERO, Diagram
from engines.errors import InvalidModelError, UnsupportedError


def choice_roots(
    diagram: Diagram, choice_variables: Sequence[int] | IndexArray
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the nodes below an MDP's choices, in the order that PRISM's engines number them in.

    The order is that of the assignments, the first variable counting most (`split_mdp_rec` in
    PRISM's `sparse.cc`). An assignment without any entry is left out; one that differs from another
    in a variable that does not matter is a choice of its own.

    Parameters
    ----------
    diagram
        A function of choice, row and column variables.
    choice_variables
        Shape (variables,), ascending: the diagram's variables that stand for nondeterminism.

    Returns
    -------
    The node of each choice, shape (choices,), and its assignment, shape (choices, variables).

    Raises
    ------
    InvalidModelError
        The choice variables do not ascend.
    UnsupportedError
        The diagram tests another variable above one of them.
    """
    variables = _ascending(choice_variables)
    nodes = np.array([diagram.root] if diagram.root != ZERO else [], dtype=np.int32)
    assignments = np.zeros((len(nodes), len(variables)), dtype=np.bool_)
    for place, variable in enumerate(variables):
        tests = _tests(diagram, nodes, int(variable))
        below = np.stack(
            (
                np.where(tests, diagram.low[nodes], nodes),
                np.where(tests, diagram.high[nodes], nodes),
            ),
            axis=1,
        ).ravel()
        assignments = np.repeat(assignments, 2, axis=0)
        assignments[1::2, place] = True
        present = below != ZERO
        nodes, assignments = below[present], assignments[present]
    return nodes.astype(np.int32), assignments


def roots_of(
    diagram: Diagram,
    choice_variables: Sequence[int] | IndexArray,
    assignments: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """Return the nodes below given choices, of rewards or actions, `ZERO` where there is none.

    Parameters
    ----------
    diagram
        A function of choice and other variables.
    choice_variables
        Shape (variables,), ascending.
    assignments
        Shape (choices, variables), as `choice_roots` returns them.

    Returns
    -------
    Shape (choices,).

    Raises
    ------
    InvalidModelError
        The choice variables do not ascend.
    UnsupportedError
        The diagram tests another variable above one of them.
    """
    nodes = np.full(len(assignments), diagram.root, dtype=np.int32)
    for place, variable in enumerate(_ascending(choice_variables)):
        tests = _tests(diagram, nodes, int(variable))
        below = np.where(assignments[:, place], diagram.high[nodes], diagram.low[nodes])
        nodes = np.where(tests, below, nodes).astype(np.int32)
    return nodes


def _ascending(choice_variables: Sequence[int] | IndexArray) -> NDArray[np.int64]:
    variables = np.asarray(choice_variables, dtype=np.int64)
    if np.any(np.diff(variables) <= 0):
        raise InvalidModelError(f"the choice variables {variables.tolist()} do not ascend")
    return variables


def _tests(diagram: Diagram, nodes: NDArray[np.int32], variable: int) -> NDArray[np.bool_]:
    tested = diagram.variables[nodes]
    above = tested < variable
    if above.any():
        raise UnsupportedError(
            f"the diagram of an MDP tests variable {int(tested[above.argmax()])} above the choice "
            f"variable {variable}; choices must come first"
        )
    found: NDArray[np.bool_] = tested == variable
    return found
