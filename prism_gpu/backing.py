"""Who holds a model, as `prism_gpu.model.Model` sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from bridge.model import StateVector
from engines.arrays import IndexArray, MaskArray
from engines.model.explicit import ExplicitModel, RewardStructure
from prism_gpu.result import Constant, Results
from prism_gpu.settings import Asked, require_known


class Backing(Protocol):
    """Who holds a model and checks it: prism-gpu itself, or PRISM."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the model as it was read, a line each."""

    @property
    def explicit(self) -> ExplicitModel:
        """The model as the engines take it."""

    @property
    def rewards(self) -> tuple[RewardStructure, ...]:
        """The reward structures, checked."""

    @property
    def label_names(self) -> list[str]:
        """The names of the labels."""

    def label(self, name: str) -> MaskArray:
        """Return the states that have a label, shape (states,)."""

    @property
    def variables(self) -> Mapping[str, StateVector]:
        """The values of the variables in every state, shape (states,) each."""

    @property
    def actions(self) -> tuple[tuple[str, ...], IndexArray] | None:
        """The names of actions, and the name's index for each row of the matrix (MDPs)."""

    def check(
        self, text: str, source: str, constants: Mapping[str, Constant], asked: Asked
    ) -> Results:
        """Check properties; see `Model.check_all`."""

    def save(self, path: Path) -> None:
        """Write the model to a file; see `Model.save`."""

    def close(self) -> None:
        """Forget the model."""


class Labels(Mapping[str, MaskArray]):
    """The labels of a model: masks over the states, bool, shape (states,), by name.

    It is a mapping that cannot be changed; ``dict(model.labels)`` makes one that can. Masks
    are made when they are first asked for, and are copies.

    Parameters
    ----------
    backing
        Who holds the model; users get labels from `Model.labels`.

    Raises
    ------
    KeyError
        For a label that the model has not; the message suggests one that it has.
    """

    def __init__(self, backing: Backing) -> None:
        self._backing = backing
        self._names = backing.label_names
        self._masks: dict[str, MaskArray] = {}

    def __getitem__(self, name: str) -> MaskArray:
        if name not in self._masks:
            require_known(name, self._names, "label", KeyError)
            # A copy: what users change in theirs changes no model.
            self._masks[name] = self._backing.label(name).copy()
        return self._masks[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Labels({', '.join(self._names)})"
