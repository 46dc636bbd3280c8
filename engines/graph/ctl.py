"""CTL's existential operators, by reachability and strong components."""

from __future__ import annotations

import numpy as np

from engines.arrays import IndexArray, MaskArray
from engines.graph.components import sccs
from engines.graph.prob01 import prob0
from engines.model.explicit import ExplicitModel, ModelKind
from engines.systems.one_sided import Direction


def exists_next(model: ExplicitModel, target: MaskArray) -> MaskArray:
    """Return the states that have a transition into a set.

    Parameters
    ----------
    model
        A model of any kind. A state of a CTMC without transitions stays where it is.
    target
        The set, shape (states,).
    """
    matrix = model.matrix
    reaching = (matrix.values > 0) & target[matrix.columns]
    found: MaskArray = np.zeros(model.num_states, dtype=bool)
    found[_source_of_entry(model)[reaching]] = True
    return found | (_stuck(model) & target)


def exists_until(model: ExplicitModel, remain: MaskArray, target: MaskArray) -> MaskArray:
    """Return the states from which some path satisfies ``remain U target``.

    Parameters
    ----------
    model
        A model of any kind.
    remain, target
        Shape (states,).
    """
    direction = Direction.MAXIMISE if model.kind is ModelKind.MDP else None
    return ~prob0(model, remain, target, direction)


def exists_never_until(model: ExplicitModel, remain: MaskArray, target: MaskArray) -> MaskArray:
    """Return the states from which some infinite path violates ``remain U target``.

    Such a path avoids the target for ever, or up to a state outside both.

    Parameters
    ----------
    model
        A model of any kind.
    remain, target
        Shape (states,).
    """
    return exists_until(model, ~target, ~target & ~remain | exists_always(model, ~target))


def exists_always(model: ExplicitModel, states: MaskArray) -> MaskArray:
    """Return the states from which some infinite path stays in a set for ever.

    It does so by reaching, inside the set, a component with a cycle (Clarke, Emerson and Sistla
    1986).

    Parameters
    ----------
    model
        A model of any kind.
    states
        The set, shape (states,).
    """
    inside = sccs(model, states).labels
    source, target = _source_of_entry(model), model.matrix.columns
    # A transition within a component lies on a cycle.
    cyclic = (model.matrix.values > 0) & (inside[source] >= 0) & (inside[source] == inside[target])
    found = _stuck(model) & states
    found[source[cyclic]] = True
    return exists_until(model, states, found)


def _source_of_entry(model: ExplicitModel) -> IndexArray:
    return model.states_of_rows()[model.matrix.row_of_entry()]


def _stuck(model: ExplicitModel) -> MaskArray:
    """Return the states without a transition, which only a CTMC has."""
    stuck: MaskArray = np.ones(model.num_states, dtype=bool)
    stuck[_source_of_entry(model)[model.matrix.values > 0]] = False
    return stuck
