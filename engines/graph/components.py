"""Strongly connected components of a model's graph, and those that are never left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.arrays import IndexArray, MaskArray
from engines.devices.graph import operations_of
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel


@dataclass(frozen=True)
class Components:
    """Disjoint sets of states.

    Parameters
    ----------
    labels
        Shape (states,): the component of each state, −1 for none. Components are numbered by their
        smallest states.
    count
        Number of components.
    """

    labels: IndexArray
    count: int


def sccs(
    model: ExplicitModel,
    restrict: MaskArray | None = None,
    environment: SolverEnvironment | None = None,
) -> Components:
    """Return the strongly connected components, single states without a loop included.

    Parameters
    ----------
    model
        A model of any kind; in an MDP, the edges are those of all choices.
    restrict
        Boolean mask, shape (states,): the states to look at, and no edges but among them; None for
        all.
    environment
        Which device to use; None for the CPU.
    """
    if restrict is None:
        restrict = np.ones(model.num_states, dtype=np.bool_)
    return Components(*operations_of(model, environment).strong_components(restrict))


def condensation_order(
    model: ExplicitModel, components: Components, environment: SolverEnvironment | None = None
) -> IndexArray:
    """Return the components in an order in which each comes after all that it may enter.

    Parameters
    ----------
    model
        A model of any kind; in an MDP, the edges are those of all choices.
    components
        Its strongly connected components, or those of a set of its states.
    environment
        Which device to use; None for the CPU.

    Returns
    -------
    The numbers of the components, shape (count,): by the number of components on the longest path
    that begins in each, bottom components first, and by number where that is the same.
    """
    operations = operations_of(model, environment)
    return operations.condensation_order(components.labels, components.count)


def bsccs(model: ExplicitModel, environment: SolverEnvironment | None = None) -> Components:
    """Return the bottom strongly connected components: those that no edge leaves.

    Parameters
    ----------
    model
        A model of any kind; in an MDP, the edges are those of all choices. An absorbing state of a
        CTMC is a component of its own.
    environment
        Which device to use; None for the CPU.
    """
    all_components = sccs(model, environment=environment)
    if all_components.count == 1:
        return all_components
    left = operations_of(model, environment).components_left(
        all_components.labels, all_components.count
    )
    # Leaving out components keeps the order of the others.
    names = np.where(left, -1, np.cumsum(~left) - 1).astype(all_components.labels.dtype)
    return Components(names[all_components.labels], int(np.count_nonzero(~left)))
