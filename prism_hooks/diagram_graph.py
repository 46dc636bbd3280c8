"""Components of graphs that come as diagrams, numbered state by state."""

from __future__ import annotations

from typing import Any

import numpy as np

from engines.errors import UnsupportedError
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel
from prism_hooks.graph import (
    BOTTOM_COMPONENTS,
    END_COMPONENT_STATES,
    END_COMPONENTS,
    Decomposition,
    bottom_components,
    end_components,
)
from prism_hooks.symbolic import SymbolicModel, hand_over, hand_over_set


def decomposed_diagram(
    problem: Any, symbolic: SymbolicModel, graph: ExplicitModel, environment: SolverEnvironment
) -> Decomposition:
    """Return the components that a `prismgpu.Problem` asks for, and count them there.

    Parameters
    ----------
    problem
        The problem, whose parts are diagrams.
    symbolic, graph
        Its graph, as a diagram and written out.
    environment
        Which device to use.

    Raises
    ------
    UnsupportedError
        For end components where a choice leads nowhere, and for another task.
    """
    parts = problem.parts
    if str(problem.task) == BOTTOM_COMPONENTS:
        found, problem.numStrong = bottom_components(graph, environment)
    elif str(problem.task) in (END_COMPONENTS, END_COMPONENT_STATES):
        within = None if parts.remain is None else symbolic.members(parts.remain)
        accept = None if parts.states is None else symbolic.members(parts.states)
        found = end_components(graph, within, environment, accept=accept)
    else:
        raise UnsupportedError(f"{problem.task} of a diagram")
    problem.numComponents = len(found.ends)
    return found


def hand_over_components(problem: Any, found: Decomposition, num_states: int) -> None:
    """Write components where a `prismgpu.Problem` that its diagrams ask for takes them.

    Parameters
    ----------
    problem
        One of `DECOMPOSITIONS_OF_DIAGRAMS`: it takes the number of each state's component from 1
        on, or 0; or the states of all components alone.
    found
        The components.
    num_states
        Number of states.
    """
    if str(problem.task) == END_COMPONENT_STATES:
        states = np.zeros(num_states, dtype=np.bool_)
        states[found.members] = True
        hand_over_set(problem, states)
        return
    numbers = np.zeros(num_states)
    sizes = np.diff(found.ends, prepend=0)
    numbers[found.members] = np.repeat(np.arange(1.0, len(sizes) + 1.0), sizes)
    hand_over(problem, numbers)
