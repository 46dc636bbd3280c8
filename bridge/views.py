"""What users read of a model: its matrices as SciPy has them, its rewards by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from engines.arrays import FloatArray
from engines.errors import InvalidModelError
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def rate_matrix(model: ExplicitModel, *, copy: bool) -> csr_array:
    """Return the rates of a CTMC, shape (states, states).

    Parameters
    ----------
    model
        The model.
    copy
        Whether the arrays are copied; else they are the model's.

    Raises
    ------
    InvalidModelError
        For a DTMC or an MDP, which have no rates.
    """
    if model.kind is not ModelKind.CTMC:
        raise InvalidModelError(f"a {model.kind} has no rates; see transition_matrix")
    return _sparse(model, model.matrix.values, copy=copy)


def transition_matrix(model: ExplicitModel, *, copy: bool) -> csr_array:
    """Return the transition probabilities, shape (states, states), of MDPs (choices, states).

    Parameters
    ----------
    model
        The model; of a CTMC they are those of its jumps, and absorbing states have empty rows.
    copy
        As for `rate_matrix`.
    """
    matrix = model.matrix
    if model.kind is ModelKind.CTMC:
        rates = model.exit_rates
        matrix = matrix.divide_rows(np.where(rates > 0.0, rates, 1.0))
    return _sparse(model, matrix.values, copy=copy)


def rewards_by_name(structures: Iterable[RewardStructure]) -> dict[str, RewardStructure]:
    """Return reward structures by name; one without a name goes by its number, from "1" on.

    Parameters
    ----------
    structures
        All of a model's, in order.
    """
    return {item.name or str(number): item for number, item in enumerate(structures, start=1)}


def _sparse(model: ExplicitModel, values: FloatArray, *, copy: bool) -> csr_array:
    from scipy.sparse import csr_array

    matrix = model.matrix
    shape = (matrix.num_rows, matrix.num_columns)
    return csr_array((values, matrix.columns, matrix.row_offsets), shape=shape, copy=copy)
