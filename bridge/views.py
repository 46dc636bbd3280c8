"""What users read of a model: matrices as SciPy has them, labels and rewards by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bridge.known import require_known
from engines.arrays import FloatArray, MaskArray
from engines.errors import InvalidModelError
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Labels(Mapping[str, MaskArray]):
    """The labels of a model: masks over the states, bool, shape (states,), by name.

    It is a mapping that cannot be changed; ``dict(model.labels)`` makes one that can. Masks
    are made when they are first asked for.

    Parameters
    ----------
    names
        The names of the labels.
    mask
        Returns the mask of a label. Users get labels from the `labels` of a model.

    Raises
    ------
    KeyError
        For a label that the model has not; the message suggests one that it has.
    """

    def __init__(self, names: Sequence[str], mask: Callable[[str], MaskArray]) -> None:
        self._names, self._mask = names, mask
        self._masks: dict[str, MaskArray] = {}

    def __getitem__(self, name: str) -> MaskArray:
        if name not in self._masks:
            require_known(name, self._names, "label", KeyError)
            self._masks[name] = self._mask(name)
        return self._masks[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Labels({', '.join(self._names)})"


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


class Rewards(dict[str, RewardStructure]):
    """The reward structures of a model by name.

    Raises
    ------
    KeyError
        For one that the model has not; the message suggests one that it has.
    """

    def __missing__(self, name: str) -> RewardStructure:
        require_known(name, self, "reward structure", KeyError)
        raise KeyError(name)


def rewards_by_name(structures: Iterable[RewardStructure]) -> Rewards:
    """Return reward structures by name; one without a name goes by its number, from "1" on.

    Parameters
    ----------
    structures
        All of a model's, in order.
    """
    listed = list(structures)
    return Rewards(zip(keys_of_rewards(item.name for item in listed), listed, strict=True))


def keys_of_rewards(names: Iterable[str]) -> list[str]:
    """Return what reward structures go by; see `rewards_by_name`.

    Parameters
    ----------
    names
        The names of all of a model's, in order.
    """
    return [name or str(number) for number, name in enumerate(names, start=1)]


def _sparse(model: ExplicitModel, values: FloatArray, *, copy: bool) -> csr_array:
    from scipy.sparse import csr_array

    matrix = model.matrix
    shape = (matrix.num_rows, matrix.num_columns)
    return csr_array((values, matrix.columns, matrix.row_offsets), shape=shape, copy=copy)
