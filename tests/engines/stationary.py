"""The steady state of one recurrent class by dense elimination: an oracle of a few lines."""

from __future__ import annotations

import numpy as np


def eliminated_class(rates):
    """π of a class whose rates or probabilities are given as a square sparse matrix.

    Grassmann, Taksar, Heyman (1985): nothing is subtracted, so each probability is right to a few
    roundings.
    """
    size = rates.num_rows
    dense = np.zeros((size, size))
    np.add.at(dense, (rates.row_of_entry(), rates.columns), rates.values)
    for last in range(size - 1, 0, -1):
        dense[:last, last] /= dense[last, :last].sum()
        dense[:last, :last] += np.outer(dense[:last, last], dense[last, :last])
    values = np.ones(size)
    for state in range(1, size):
        values[state] = values[:state] @ dense[:state, state]
    return values / values.sum()
