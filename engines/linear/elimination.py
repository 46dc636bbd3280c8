"""Steady states of many small recurrent classes at once, by elimination without subtraction."""

from __future__ import annotations

import numpy as np

from engines.formats.csr import CsrMatrix, FloatArray, IndexArray, MaskArray

LARGEST_CLASS = 16
"""Beyond this many states, sweeps over a sparse matrix are worth their preparation."""

LARGEST_DENSE_CLASS = 1_000
"""Up to this many states, elimination in a full matrix takes a second at most."""

ROUNDING_OF_ELIMINATION = 2.0**-50
"""Relative error that each state to eliminate may add (O'Cinneide 1993)."""

CHUNK_CELLS = 1 << 22
"""Cells of dense matrices that are worked on at a time, 32 MiB of them."""


def small_steady_states(
    rates: CsrMatrix, labels: IndexArray, wanted: MaskArray
) -> tuple[FloatArray, MaskArray]:
    """Compute the steady states of those wanted classes that are small.

    Parameters
    ----------
    rates
        Rates or probabilities, square; self-loops do not matter.
    labels
        The recurrent class of each state, -1 for none, shape (states,).
    wanted
        Which classes to solve, shape (classes,).

    Returns
    -------
    Probabilities, shape (states,), zero outside the classes that were solved; and which those
    were, shape (classes,).

    Notes
    -----
    Grassmann, Taksar, Heyman: Regenerative analysis and steady state distributions for Markov
    chains (1985). Nothing is subtracted, so each probability, however small, is right to a few
    roundings (O'Cinneide 1993). All classes of one size are eliminated together.
    """
    values = np.zeros(rates.num_rows)
    recurrent = np.flatnonzero(labels >= 0)
    sizes = np.bincount(labels[recurrent], minlength=len(wanted))
    small = wanted & (sizes <= LARGEST_CLASS)
    if not small.any():
        return values, small
    ordered = recurrent[np.argsort(labels[recurrent], kind="stable")]
    firsts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[small]):
        of_size = np.flatnonzero(small & (sizes == size))
        chunk = max(1, CHUNK_CELLS // int(size) ** 2)
        for start in range(0, len(of_size), chunk):
            chosen = of_size[start : start + chunk]
            states = ordered[firsts[chosen, None] + np.arange(size)]
            values[states] = _eliminated(_dense_classes(rates, states))
    return values, small


def _dense_classes(rates: CsrMatrix, states: IndexArray) -> FloatArray:
    """Return the matrices of classes of one size, given their states, shape (classes, size)."""
    count, size = states.shape
    rows = rates.select_rows(states.ravel())
    row = rows.row_of_entry().astype(np.int64)
    position = np.zeros(rates.num_columns, dtype=np.int64)
    position[states] = np.arange(size)
    # An entry of value 0 may lead out of the class; at any position it adds nothing.
    cells = row * size + position[rows.columns]
    dense = np.bincount(cells, weights=rows.values, minlength=count * size * size)
    return dense.astype(np.float64, copy=False).reshape((count, size, size))


def _eliminated(dense: FloatArray) -> FloatArray:
    """Return π of each class, shape (classes, size); the matrices are overwritten."""
    count, size, _ = dense.shape
    for last in range(size - 1, 0, -1):
        out = dense[:, last, :last].sum(axis=1)
        dense[:, :last, last] /= out[:, None]
        dense[:, :last, :last] += dense[:, :last, last, None] * dense[:, last, None, :last]
    values: FloatArray = np.ones((count, size))
    for state in range(1, size):
        values[:, state] = (values[:, :state] * dense[:, :state, state]).sum(axis=1)
    values /= values.sum(axis=1, keepdims=True)
    return values


def eliminated_class(rates: CsrMatrix) -> FloatArray:
    """Return the steady state of one recurrent class, by dense elimination; shape (states,).

    Parameters
    ----------
    rates
        Rates or probabilities of the class, square and not large; self-loops do not matter.

    Raises
    ------
    RuntimeError
        If the quotient of two probabilities overflows.

    Notes
    -----
    As in `small_steady_states`: each probability is right to a few roundings, however rarely the
    parts of the class exchange.
    """
    everyone = np.arange(rates.num_rows)[None, :]
    with np.errstate(all="ignore"):
        values: FloatArray = _eliminated(_dense_classes(rates, everyone))[0]
    if not np.isfinite(values).all():
        raise RuntimeError("the probabilities are further apart than floating point reaches")
    return values


def eliminated_chain(dense: FloatArray, leaving: FloatArray, earned: FloatArray) -> FloatArray:
    """Return x = earned + P x of the transient states of a chain, shape (states,).

    Parameters
    ----------
    dense
        Probabilities P between the states, shape (states, states); overwritten.
    leaving
        Probability of leaving the states from each, shape (states,): with P it adds up to 1.
    earned
        Not negative, shape (states,).

    Raises
    ------
    RuntimeError
        If some state cannot leave, or a value overflows.

    Notes
    -----
    As in `small_steady_states`: a diagonal entry 1 − p_kk is the sum of what leads elsewhere. So
    however rarely the states are left, each value is right to a few roundings.
    """
    out, worth = leaving.copy(), earned.copy()
    size = len(out)
    pivots = np.empty(size)
    with np.errstate(all="ignore"):
        for last in range(size - 1, -1, -1):
            pivots[last] = dense[last, :last].sum() + out[last]
            share = dense[:last, last] / pivots[last]
            dense[:last, :last] += share[:, None] * dense[last, :last]
            out[:last] += share * out[last]
            worth[:last] += share * worth[last]
        values: FloatArray = np.empty(size)
        for state in range(size):
            inside = dense[state, :state] @ values[:state]
            values[state] = (worth[state] + inside) / pivots[state]
    if not np.isfinite(values).all():
        raise RuntimeError("the chain is not left, or its values overflow")
    return values
