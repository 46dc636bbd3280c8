"""What a model that PRISM built consists of, and digests that tell two of them apart."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.model import NamedRewards
from engines.arrays import MaskArray
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure

_CHUNK = 1 << 20


@dataclass(frozen=True)
class BuiltContent:
    """A model that PRISM built.

    Parameters
    ----------
    model
        Transitions, initial states, labels and expected rewards.
    rewards
        The reward structures, in the model's order.
    constants
        The values of the model's constants, as PRISM prints them.
    """

    model: ExplicitModel
    rewards: tuple[NamedRewards, ...]
    constants: str


def read_built(built: Any) -> BuiltContent:
    """Read a model out of PRISM, a bulk copy an array.

    Parameters
    ----------
    built
        The `prismgpu.BuiltModel`.

    Raises
    ------
    InvalidModelError
        When the model breaks a rule of its kind.
    """
    import jpype

    from prism_hooks.extract import extracted_model, mask

    plain = extracted_model(built.transitions())
    names = [str(name) for name in built.labelNames()]
    labels = {name: mask(built.label(jpype.JString(name)), plain.num_states) for name in names}
    rewards = tuple(
        _read_rewards(built, number, str(name), plain.kind)
        for number, name in enumerate(built.rewardNames())
    )
    model = replace(
        plain,
        initial_states=mask(built.initialStates(), plain.num_states),
        labels=labels,
        rewards=tuple(reward.expected for reward in rewards),
    )
    return BuiltContent(model.check(), rewards, str(built.constants()))


def _read_rewards(built: Any, number: int, name: str, kind: ModelKind) -> NamedRewards:
    from prism_hooks.extract import vector

    states = vector(built.stateRewards(number))
    if kind is ModelKind.MDP:
        expected = RewardStructure(name, states, vector(built.choiceRewards(number)))
    else:
        expected = RewardStructure(name, vector(built.expectedStateRewards(number)))
    return NamedRewards(name, expected, states)


def digests(content: BuiltContent) -> dict[str, str]:
    """Return what identifies each part of a model, by the part's name.

    Parameters
    ----------
    content
        The model. Large parts are given by their SHA-256.
    """
    model = content.model
    matrix = model.matrix
    groups = () if model.row_group_offsets is None else (model.row_group_offsets,)
    parts = {
        "type": str(model.kind),
        "constants": content.constants,
        "number of states": str(model.num_states),
        "transitions": _digest(matrix.row_offsets, matrix.columns, matrix.values, *groups),
    }
    assert model.initial_states is not None
    parts["initial states"] = mask_digest(model.initial_states)
    for name, states in model.labels.items():
        parts[f'label "{name}"'] = mask_digest(states)
    for number, reward in enumerate(content.rewards, start=1):
        expected = reward.expected
        choices = () if expected.choice_rewards is None else (expected.choice_rewards,)
        what = f"reward structure {number}" + (f' "{reward.name}"' if reward.name else "")
        parts[what] = _digest(reward.instantaneous, expected.state_rewards, *choices)
    return parts


def mask_digest(states: MaskArray) -> str:
    """Return the SHA-256 of a set of states.

    Parameters
    ----------
    states
        Shape (states,), bool.
    """
    return hashlib.sha256(np.packbits(states, bitorder="little").tobytes()).hexdigest()


def _digest(*arrays: NDArray[Any]) -> str:
    found = hashlib.sha256()
    for array in arrays:
        # The same digest whatever the width of the indices.
        wide = "<f8" if array.dtype.kind == "f" else "<i8"
        found.update(len(array).to_bytes(8, "little"))
        for start in range(0, len(array), _CHUNK):
            found.update(array[start : start + _CHUNK].astype(wide).tobytes())
    return found.hexdigest()


def differences(exported: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    """Yield in words how a model differs from the one that was exported.

    Parameters
    ----------
    exported, found
        What `digests` returned for the two.
    """
    for name, value in exported.items():
        other = found.get(name)
        if other is None:
            yield f"there is no {name} any more"
        elif other != value:
            shown = name in ("type", "constants", "number of states")
            yield f"{name}: {value} then, {other} now" if shown else f"other {_plural(name)}"
    for name in found:
        if name not in exported:
            yield f"there was no {name}"


def _plural(name: str) -> str:
    return name if name.endswith("s") else f"values of {name}"
