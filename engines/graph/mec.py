"""Maximal end components of MDPs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.arrays import IndexArray, MaskArray
from engines.devices.graph import operations_of
from engines.errors import UnsupportedError
from engines.graph.components import Components
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.process.timeline import SEARCHING, TIMELINE


@dataclass(frozen=True)
class EndComponents:
    """Disjoint end components: sets of states and choices that can be kept to for ever.

    Parameters
    ----------
    labels
        Shape (states,): the component of each state, −1 for none. Components are numbered by their
        smallest states.
    count
        Number of components.
    choices
        Boolean mask, shape (choices,): the choices that stay inside their state's component.
    """

    labels: IndexArray
    count: int
    choices: MaskArray


@TIMELINE.counted(SEARCHING)
def maximal_end_components(
    model: ExplicitModel,
    restrict: MaskArray | None = None,
    choices: MaskArray | None = None,
    environment: SolverEnvironment | None = None,
) -> EndComponents:
    """Return the maximal end components; single states with a sure self-loop are among them.

    Parameters
    ----------
    model
        An MDP.
    restrict
        Boolean mask, shape (states,): components lie within these states; None for all.
    choices
        Boolean mask, shape (choices,): components use these choices only; None for all.
    environment
        Which device to use; None for the CPU.

    Raises
    ------
    UnsupportedError
        If the model is a chain, whose end components are its bottom components; or when the GPU
        was asked for and cannot be used.

    Notes
    -----
    de Alfaro (1997), Formal Verification of Probabilistic Systems, section 3.4, working on changed
    components only; see `engines/host/src/end_components.cpp` and `engines.cuda.end_components`.
    """
    _check_kind(model)
    if restrict is None:
        restrict = np.ones(model.num_states, dtype=np.bool_)
    if choices is None:
        choices = np.ones(model.matrix.num_rows, dtype=np.bool_)
    return EndComponents(*operations_of(model, environment).end_components(restrict, choices))


@TIMELINE.counted(SEARCHING)
def end_component_states(
    model: ExplicitModel,
    restrict: MaskArray | None = None,
    choices: MaskArray | None = None,
    environment: SolverEnvironment | None = None,
) -> Components:
    """Return the states of the maximal end components; see `maximal_end_components`.

    On a GPU this is up to three times faster than to be told their choices too, of which there are
    many more than states, and a mask takes a byte of each.

    Raises
    ------
    UnsupportedError
        As `maximal_end_components` does.
    """
    _check_kind(model)
    if restrict is None:
        restrict = np.ones(model.num_states, dtype=np.bool_)
    return Components(*operations_of(model, environment).end_component_states(restrict, choices))


def _check_kind(model: ExplicitModel) -> None:
    if model.kind is not ModelKind.MDP:
        raise UnsupportedError(f"end components of a {model.kind}: use its bottom components")
