"""Products of PRISM's models with its automata, built by the engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engines.arrays import IndexArray
from engines.errors import UnsupportedError
from engines.host.automaton_product import Int32Array, ProductNodes, automaton_product
from engines.model.explicit import ExplicitModel
from prism_hooks.construction import describe
from prism_hooks.crossing import java_array, numpy_array
from prism_hooks.extract import mask
from prism_hooks.failure import unexpected
from prism_hooks.held import HeldArrays, java_type
from prism_hooks.memory import is_full_heap


class _Steps:
    """Those of an automaton of PRISM's, all of which are there."""

    def __init__(self, table: Int32Array) -> None:
        self.table = table

    def make(self, state: int, letter: int) -> None:
        """Refuse a step that is none of the automaton's."""
        raise UnsupportedError(f"the automaton has no step from state {state} by letter {letter}")


def product_for_java(
    construction: Any, model_of: Callable[[Any, bool], ExplicitModel]
) -> HeldArrays | None:
    """Build the product of a `prismgpu.ProductConstruction`; fill it in, a refusal or an error.

    Parameters
    ----------
    construction
        The Java object.
    model_of
        Returns the model that such an object is about, or if wanted its embedded chain.

    Returns
    -------
    The product as the engines take it from PRISM; None where there is none.
    """
    try:
        model = model_of(construction, False)
        found = _found(construction, model)
        product = ExplicitModel(model.kind, found.matrix, found.group_offsets)
        describe(product, construction)
        size = len(construction.steps) // int(construction.numLetters)
        construction.pairs = java_array(found.states * np.int32(size) + found.automaton_states)
        held: HeldArrays = java_type(HeldArrays)(int(construction.id), product)
        construction.held = held
        return held
    except (UnsupportedError, MemoryError) as error:
        construction.refusal = f"the product of a model and an automaton ({error})"
    except Exception as error:
        if is_full_heap(error):
            construction.refusal = "the product of a model and an automaton (Java's heap is full)"
        else:
            construction.error = unexpected(error)
    return None


def _found(construction: Any, model: ExplicitModel) -> ProductNodes:
    """Return the nodes that are reachable, numbered as PRISM numbers them."""
    matrix, groups, states = model.matrix, model.row_group_offsets, model.num_states
    _require_rows(model)
    letters = np.zeros(states, dtype=np.int32)
    for bit, atom in enumerate(construction.atoms):
        letters |= mask(atom, states).astype(np.int32) << bit
    width = int(construction.numLetters)
    table = numpy_array(construction.steps, np.int32).reshape(-1, width)
    if table.shape[0] * states > np.iinfo(np.int32).max:
        raise UnsupportedError(f"{states} states times {table.shape[0]} of the automaton")
    given = construction.firstStates
    first: IndexArray = np.arange(states) if given is None else np.flatnonzero(mask(given, states))
    start = table[int(construction.start), letters[first]]
    steps = _Steps(table)
    if (start < 0).any():
        steps.make(int(construction.start), int(letters[first[start < 0][0]]))
    return automaton_product(matrix, groups, letters, steps, (first, start), reads_ahead=True)


def _require_rows(model: ExplicitModel) -> None:
    """Refuse a model with a deadlock, of which PRISM tells in the product."""
    matrix, groups = model.matrix, model.row_group_offsets
    if not np.diff(matrix.row_offsets).all() or (groups is not None and not np.diff(groups).all()):
        raise UnsupportedError("the model has deadlocks")
