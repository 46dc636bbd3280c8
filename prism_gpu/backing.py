"""Who holds a model, as `prism_gpu.model.Model` sees it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from bridge.model import StateVector
from engines.arrays import IndexArray, MaskArray
from engines.model.explicit import ExplicitModel, RewardStructure
from prism_gpu.result import Constant, Results
from prism_gpu.settings import Asked


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
    def reward_names(self) -> list[str]:
        """The names of the reward structures, empty for one without."""

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
