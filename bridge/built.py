"""A built model as arrays: one of PRISM's comes from its explicit engine, or from its diagrams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.errors import BridgeError, InvalidModelError
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from prism_hooks.crossing import numpy_array
from prism_hooks.extract import extracted_model, mask, vector
from prism_hooks.symbolic import SymbolicModel, doubles_at

StateVector = FloatArray | IndexArray | MaskArray


def prism_call(function: Any, *arguments: Any) -> Any:
    """Call into PRISM; its exceptions become ours, with their messages.

    Parameters
    ----------
    function
        A method of a Java object.
    *arguments
        What it is called with.

    Raises
    ------
    InvalidModelError
        PRISM found fault with a model or a property.
    BridgeError
        PRISM failed.
    """
    import jpype

    try:
        return function(*arguments)
    except jpype.JException as error:
        ours = _own_error(error)
    # Raised here, it does not keep Java's objects alive for as long as somebody keeps it.
    raise ours


def _own_error(error: Any) -> Exception:
    name = type(error).__name__
    message = str(error.getMessage() or name)
    if name.startswith(("prism.", "parser.")):
        return InvalidModelError(message)
    return BridgeError(f"PRISM failed: {name}: {message}")


class Built(Protocol):
    """A built model."""

    @property
    def num_states(self) -> int:
        """Number of states."""

    def model(self) -> ExplicitModel:
        """Return its arrays, checked; each is copied from PRISM once."""

    def label_names(self) -> list[str]:
        """Return the names of its labels, "init" and "deadlock" first."""

    def label(self, name: str) -> MaskArray:
        """Return the states that have a label, shape (states,).

        Parameters
        ----------
        name
            One of `label_names`.
        """


class BuiltByPrism(Built, Protocol):
    """A model that PRISM holds."""

    def vector(self, result: Any, kind: str) -> StateVector:
        """Return a property's value in every state, shape (states,): float64, int64 or bool.

        Parameters
        ----------
        result
            What PRISM holds of a result for all states.
        kind
            PRISM's name of the property's type: bool, int or double.
        """


class BuiltExplicitly:
    """A model of PRISM's explicit engine; see `Built`.

    Parameters
    ----------
    built
        A `prismgpu.BuiltModel`.
    """

    def __init__(self, built: Any) -> None:
        self._built = built
        self._num_states = int(built.numStates())

    @property
    def num_states(self) -> int:
        """Number of states."""
        return self._num_states

    def model(self) -> ExplicitModel:
        """Return its arrays; see `Built.model`."""
        built = self._built
        plain = extracted_model(prism_call(built.transitions))
        initial = mask(built.initialStates(), plain.num_states)

        def read(method: Any, number: int) -> FloatArray:
            return vector(prism_call(method, number))

        rewards = _rewards(built, plain.kind, read, read)
        return replace(plain, initial_states=initial, rewards=rewards).check()

    def label_names(self) -> list[str]:
        """Return the names of its labels; see `Built.label_names`."""
        return [str(name) for name in prism_call(self._built.labelNames)]

    def label(self, name: str) -> MaskArray:
        """Return the states that have a label; see `Built.label`."""
        return mask(prism_call(self._built.label, _java_string(name)), self._num_states)

    def vector(self, result: Any, kind: str) -> StateVector:
        """Return a property's value in every state; see `BuiltByPrism.vector`."""
        if kind == "bool":
            return mask(result.getBitSet().toLongArray(), self._num_states)
        if kind == "int":
            return numpy_array(self._built.integers(result), np.int32).astype(np.int64)
        return vector(result.getDoubleArray())


class BuiltAsDiagrams:
    """A model of PRISM's symbolic engines; see `Built`.

    The states have the same numbers as the explicit engine's; an MDP's choices may not.

    Parameters
    ----------
    built
        A `prismgpu.BuiltDiagrams`.
    """

    def __init__(self, built: Any) -> None:
        self._built = built
        self._model = SymbolicModel(prism_call(built.transitions))

    @property
    def num_states(self) -> int:
        """Number of states."""
        return self._model.num_states

    def model(self) -> ExplicitModel:
        """Return its arrays; see `Built.model`."""
        built, model = self._built, self._model
        plain = model.expanded()
        initial = model.members(built.initialStates())

        def of_states(method: Any, number: int) -> FloatArray:
            return model.of_states(prism_call(method, number))

        def of_choices(method: Any, number: int) -> FloatArray:
            return model.of_choices(prism_call(method, number))

        rewards = _rewards(built, plain.kind, of_states, of_choices)
        return replace(plain, initial_states=initial, rewards=rewards).check()

    def label_names(self) -> list[str]:
        """Return the names of its labels; see `Built.label_names`."""
        return [str(name) for name in prism_call(self._built.labelNames)]

    def label(self, name: str) -> MaskArray:
        """Return the states that have a label; see `Built.label`."""
        return self._model.members(prism_call(self._built.label, _java_string(name)))

    def vector(self, result: Any, kind: str) -> StateVector:
        """Return a property's value in every state; see `BuiltByPrism.vector`."""
        values = self._doubles(result, kind)
        result.clear()
        return values.astype(np.int64) if kind == "int" else values

    def _doubles(self, result: Any, kind: str) -> FloatArray | MaskArray:
        address = int(self._built.addressOf(result))
        if address:
            return doubles_at(address, self._model.num_states).copy()
        values = self._built.diagramOf(result)
        return self._model.members(values) if kind == "bool" else self._model.of_states(values)


def _rewards(
    built: Any,
    kind: ModelKind,
    of_states: Callable[[Any, int], FloatArray],
    of_choices: Callable[[Any, int], FloatArray],
) -> tuple[RewardStructure, ...]:
    structures = []
    for number, name in enumerate(prism_call(built.rewardNames)):
        if kind is ModelKind.MDP:
            states = of_states(built.stateRewards, number)
            choices = of_choices(built.choiceRewards, number)
            structures.append(RewardStructure(str(name), states, choices))
        else:
            states = of_states(built.expectedStateRewards, number)
            structures.append(RewardStructure(str(name), states))
    return tuple(structures)


def _java_string(text: str) -> Any:
    import jpype

    return jpype.JString(text)
