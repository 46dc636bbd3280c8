"""PRISM's models and sets of states as NumPy's arrays, a bulk copy an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engines.arrays import FloatArray, MaskArray, extremes
from engines.errors import InvalidModelError
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind
from prism_hooks.crossing import numpy_array

if TYPE_CHECKING:
    from prism_hooks.held import HeldRewards


def mask(words: Any, size: int) -> MaskArray:
    """Return a Java BitSet's words as a mask.

    Parameters
    ----------
    words
        ``BitSet.toLongArray()``, which leaves out trailing zero words; None for no states.
    size
        Number of states.
    """
    states = np.zeros(size, dtype=bool)
    if words is None:
        return states
    bits = np.unpackbits(np.asarray(words, dtype=np.int64).view(np.uint8), bitorder="little")
    used = min(size, len(bits))
    states[:used] = bits[:used]
    return states


def vector(array: Any) -> FloatArray:
    """Return a Java double[] as a NumPy array, by one bulk copy."""
    return numpy_array(array, np.float64)


def start_of(problem: Any, size: int) -> FloatArray | None:
    """Return the values that a `prismgpu.Problem` brings, or says of sets of states; None for none.

    Parameters
    ----------
    problem
        The problem.
    size
        Number of states.
    """
    if problem.start is not None or problem.startSets is None:
        return None if problem.start is None else vector(problem.start)
    start = np.full(size, float(problem.startOfOthers))
    for words, value in zip(problem.startSets, problem.startValues, strict=True):
        start[mask(words, size)] = float(value)
    return start


def rewards_of(problem: Any) -> FloatArray | None:
    """Return the rewards that a `prismgpu.Problem` names or brings, or None for probabilities.

    Those that it names are shared, and not to be changed.

    Raises
    ------
    InvalidModelError
        For rewards that are not finite.
    """
    held: HeldRewards | None = problem.held
    if held is not None:
        return held.by_choices if problem.byChoices else held.of_states
    if problem.rewards is None:
        return None
    return finite_rewards(vector(problem.rewards), "state or choice")


def finite_rewards(rewards: FloatArray, owner: str) -> FloatArray:
    """Return rewards of states or choices; raise `InvalidModelError` unless all are finite.

    PRISM's diagrams may hold others, such as what overflows, and its symbolic engines take them.
    """
    least, greatest = extremes(rewards)
    if len(rewards) and not -np.inf < least <= greatest < np.inf:
        first = int(np.argmin(np.isfinite(rewards)))
        raise InvalidModelError(
            f"rewards: {owner} {first} has reward {rewards[first]}; rewards must be finite"
        )
    return rewards


def extracted_model(extract: Any) -> ExplicitModel:
    """Return the model that a `prismgpu.Extract` holds, a bulk copy an array.

    Parameters
    ----------
    extract
        The Java object, its arrays filled.

    Raises
    ------
    InvalidModelError
        For numbers that are negative, infinite or none, which PRISM takes from files, and for exit
        rates that overflow.
    """
    groups = extract.groupOffsets
    matrix = CsrMatrix(
        numpy_array(extract.rowOffsets, np.int32),
        numpy_array(extract.columns, np.int32),
        numpy_array(extract.values, np.float64),
        int(extract.numStates),
    )
    model = ExplicitModel(
        ModelKind(str(extract.kind)),
        matrix,
        None if groups is None else numpy_array(groups, np.int32),
    )
    model.require_numbers()
    if model.kind is ModelKind.CTMC:
        model.require_finite_exit_rates()
    return model


def embedded_chain(ctmc: ExplicitModel) -> ExplicitModel:
    """Return the embedded DTMC of a CTMC; absorbing states keep their empty rows.

    Parameters
    ----------
    ctmc
        A model with rates.
    """
    return ExplicitModel(ModelKind.DTMC, ctmc.matrix.divide_rows(ctmc.exit_rates))
