"""Components as SciPy finds them, and the comparison of an engine's with them."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from engines.model.explicit import ModelKind
from tests.engines import graph_oracles


def strong_components(model, restrict, rows=None):
    """SciPy's strong components of the edges that are no zeros, numbered by smallest states.

    Parameters
    ----------
    rows
        Boolean mask, shape (rows,): the rows whose edges count; None for all.
    """
    matrix, size = model.matrix, model.num_states
    row = matrix.row_of_entry()
    sources, targets = model.states_of_rows()[row], matrix.columns
    kept = (matrix.values != 0) & restrict[sources] & restrict[targets]
    if rows is not None:
        kept &= rows[row]
    edges = (sources[kept], targets[kept])
    if size == 0:
        return np.zeros(0, dtype=np.int32), 0
    square = csr_array((np.ones(kept.sum()), edges), shape=(size, size))
    return numbered(connected_components(square, connection="strong")[1], restrict)


def numbered(labels, members):
    """Number labels by their smallest states; −1 for states that are no members."""
    found, first, place = np.unique(labels[members], return_index=True, return_inverse=True)
    names = np.empty(len(found), dtype=np.int32)
    names[np.argsort(first)] = np.arange(len(found))
    result = np.full(len(labels), -1, dtype=np.int32)
    result[members] = names[place.ravel()]
    return result, len(found)


def end_components(model, restrict, choices):
    """Maximal end components by the definition's fixpoint: split, drop what leaves, again.

    Returns
    -------
    Labels, their number, and the choices that stay, as `engines.graph.mec.EndComponents` has them.
    """
    matrix = model.matrix
    entries = matrix.values != 0
    row, targets = matrix.row_of_entry()[entries], matrix.columns[entries]
    state_of = model.states_of_rows()
    kept, states = choices.copy(), restrict.copy()
    kept[np.bincount(row, minlength=len(kept)) == 0] = False
    while True:
        labels, _ = strong_components(model, states, kept)
        here = labels[state_of[row]]
        leaving = np.bincount(row[(labels[targets] != here) | (here < 0)], minlength=len(kept)) > 0
        staying = kept & ~leaving & states[state_of]
        able = states & (np.bincount(state_of[staying], minlength=len(states)) > 0)
        if (staying == kept).all() and (able == states).all():
            return *numbered(labels, states), kept
        kept, states = staying, able


def expect_components(graph, drawn, *, plain=False):
    """Compare all that a graph says about components with SciPy's, and small ones with the oracles.

    Parameters
    ----------
    graph
        The operations of an engine on the graph of the drawn model.
    plain
        Whether to ask the plain-loop oracles as well.
    """
    model, restrict, choices = drawn.model, drawn.restrict, drawn.choices
    labels, count = graph.strong_components(restrict)
    expected, number = strong_components(model, restrict)
    assert count == number, drawn.name
    np.testing.assert_array_equal(labels, expected, drawn.name)
    left = graph.components_left(labels, count)
    np.testing.assert_array_equal(left, components_left(model, expected, number), drawn.name)
    if plain:
        sets = graph_oracles.sets_of(labels, count)
        assert sets == graph_oracles.sccs(model, restrict), drawn.name
    if model.kind is not ModelKind.MDP:
        return
    labels, count, kept = graph.end_components(restrict, choices)
    expected, number, staying = end_components(model, restrict, choices)
    assert count == number, drawn.name
    np.testing.assert_array_equal(labels, expected, drawn.name)
    np.testing.assert_array_equal(kept, staying, drawn.name)
    labels, count = graph.end_component_states(restrict, choices)
    assert count == number, drawn.name
    np.testing.assert_array_equal(labels, expected, drawn.name)
    if plain:
        sets = graph_oracles.sets_of(labels, count)
        assert sets == graph_oracles.refined_components(model, restrict, choices), drawn.name


def components_left(model, labels, count):
    """Which components an edge leaves, shape (count,)."""
    matrix = model.matrix
    sources = labels[model.states_of_rows()[matrix.row_of_entry()]]
    leaving = (matrix.values != 0) & (sources >= 0) & (labels[matrix.columns] != sources)
    return np.bincount(sources[leaving], minlength=count) > 0
