"""Models that PRISM builds and checks, with prism-gpu's engines inside."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from bridge.language.types import type_of_value
from bridge.model import StateVector
from bridge.session import Session
from engines.arrays import IndexArray, MaskArray
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.explicit import ExplicitModel, RewardStructure
from prism_gpu.built import summary
from prism_gpu.result import Constant, Result, Results
from prism_gpu.settings import Asked

OF_A_CHECK = frozenset({"epsilon"})
OF_A_MODEL = OF_A_CHECK | {"device", "device_number", "max_iterations"}
"""The settings that PRISM's sessions have."""


class HeldByPrism:
    """A model that PRISM holds; see `prism_gpu.backing.Backing`.

    Parameters
    ----------
    session
        The model, open.
    of_the_model
        The settings that it was opened with; a check changes those of `OF_A_CHECK` alone.
    """

    def __init__(self, session: Session, of_the_model: Asked) -> None:
        self._session, self._of_the_model = session, of_the_model
        self._lock = threading.Lock()

    def __getstate__(self) -> object:
        raise TypeError(
            'a model that PRISM holds cannot be pickled; open it with front_end="builtin"'
        )

    def save(self, path: Path) -> None:
        """Raise `UnsupportedError`: PRISM's actions and states are not read.

        Parameters
        ----------
        path
            Where the model was to go.
        """
        raise UnsupportedError(
            f'{path}: a model that PRISM holds is not written; open it with front_end="builtin"'
        )

    def close(self) -> None:
        """Have PRISM forget the model."""
        self._session.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing: PRISM's log is not read."""
        return ()

    @property
    def explicit(self) -> ExplicitModel:
        """The model as the engines take it."""
        return self._session.model

    @property
    def rewards(self) -> tuple[RewardStructure, ...]:
        """The reward structures."""
        return self._session.model.rewards

    @property
    def reward_names(self) -> list[str]:
        """The names of the reward structures."""
        return [item.name for item in self.rewards]

    @property
    def label_names(self) -> list[str]:
        """The names of the labels."""
        return self._session.label_names

    def label(self, name: str) -> MaskArray:
        """Return the states that have a label, shape (states,).

        Parameters
        ----------
        name
            One of `label_names`.
        """
        return self._session.label_mask(name)

    @property
    def variables(self) -> Mapping[str, StateVector]:
        """Raise `UnsupportedError`: PRISM's states are not read."""
        raise UnsupportedError(
            "the variables of a model that PRISM holds are not read; open it with "
            'front_end="builtin"'
        )

    @property
    def actions(self) -> tuple[tuple[str, ...], IndexArray] | None:
        """None: PRISM's actions are not read."""
        return None

    def check(
        self, text: str, source: str, constants: Mapping[str, Constant], asked: Asked
    ) -> Results:
        """Check a property; see `prism_gpu.model.Model.check_all`.

        Parameters
        ----------
        text
            One property.
        source
            Must be empty: files are not read here.
        constants
            Values of constants that it leaves open.
        asked
            How to check.
        """
        if source:
            raise UnsupportedError(
                "files of properties are not read for a model that PRISM holds; pass the "
                'properties one by one, or open the model with front_end="builtin"'
            )
        kept, wanted = self._of_the_model.environment, asked.environment
        refused = asked.named - OF_A_CHECK
        refused -= {name for name in OF_A_MODEL if getattr(wanted, name) == getattr(kept, name)}
        if refused:
            raise UnsupportedError(
                f"{', '.join(sorted(refused))}: not for a check by PRISM, which takes "
                f'{", ".join(sorted(OF_A_CHECK))}; open the model with front_end="builtin"'
            )
        started = time.perf_counter()
        with self._lock:
            self._session.set_termination(epsilon=asked.environment.epsilon)
            found = self._session.check(_declaring(text, constants), constants)
        value = found.value
        return Results(
            [
                Result(
                    property=text,
                    value=tuple(json.loads(value)) if isinstance(value, str) else value,
                    vector=found.vector,
                    error=found.error,
                    proven=found.proven,
                    seconds=time.perf_counter() - started,
                    constants=dict(constants),
                    **summary(found.solves),
                )
            ]
        )


def _declaring(text: str, constants: Mapping[str, Constant]) -> str:
    """Return a property with a declaration of each constant that has a value and none."""
    words = set(re.findall(r"\w+", text))
    for name in constants:
        if name not in words:
            raise InvalidModelError(f"no property speaks of the constant {name}")
    declared = set(re.findall(r"\bconst\s+(?:int\s+|double\s+|bool\s+)?(\w+)", text))
    lines = (
        f"const {type_of_value(value)} {name}; "
        for name, value in constants.items()
        if name not in declared
    )
    return "".join(lines) + text
