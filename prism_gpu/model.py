"""A model: its arrays, and the properties that it is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property, partial
from numbers import Real
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridge.known import path_of
from bridge.language.lexer import PropertySyntaxError
from bridge.views import Labels, keys_of_rewards, rate_matrix, rewards_by_name, transition_matrix
from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.errors import InvalidModelError
from engines.model.explicit import ModelKind, RewardStructure
from prism_gpu.backing import Backing
from prism_gpu.result import Constant, Result, Results, data_frame
from prism_gpu.settings import Settings, read_settings

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from prism_gpu.paths import Paths


class Model:
    """A Markov model; made by `dtmc`, `ctmc`, `mdp`, `from_networkx` and `open`.

    As a context manager it closes itself at the end, which matters where PRISM holds it.

    Parameters
    ----------
    backing
        Who holds it; users make models by the functions above.
    settings
        Settings of all its checks; see `Settings`.
    """

    def __init__(self, backing: Backing, settings: Mapping[str, Any]) -> None:
        self._backing = backing
        self._settings = dict(settings)
        read_settings(self._settings, ModelKind(self.kind))

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forget the model, where PRISM holds it; arrays that were read stay."""
        self._backing.close()

    @property
    def kind(self) -> str:
        """The kind of model: "DTMC", "CTMC" or "MDP"."""
        return self._backing.explicit.kind

    @property
    def num_states(self) -> int:
        """Number of states."""
        return self._backing.explicit.num_states

    @property
    def num_choices(self) -> int:
        """Number of choices of all states (MDPs); of chains, of states."""
        return self._backing.explicit.matrix.num_rows

    @property
    def num_transitions(self) -> int:
        """Number of transitions: entries of the matrix."""
        return self._backing.explicit.matrix.num_entries

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the model as it was read, such as loops given to deadlocks."""
        return self._backing.notes

    @property
    def initial_states(self) -> MaskArray:
        """The initial states, bool, shape (states,)."""
        initial = self._backing.explicit.initial_states
        return np.zeros(self.num_states, dtype=bool) if initial is None else initial.copy()

    @cached_property
    def labels(self) -> Labels:
        """Copies of the labels by name, "init" and "deadlock" among them: bool, shape (states,)."""
        return Labels(self._backing.label_names, partial(_copy_of_label, self._backing))

    @cached_property
    def rewards(self) -> dict[str, RewardStructure]:
        """The reward structures by name; one without a name goes by its number, from "1" on.

        `state_rewards` has shape (states,): earned a step (DTMC, MDP) or a unit of time (CTMC).
        `choice_rewards` has shape (choices,), or is None: earned by taking the choice (MDP).

        Raises
        ------
        InvalidModelError
            For rewards that no property can use: negative, infinite, or no numbers.
        """
        return rewards_by_name(deepcopy(self._backing.rewards))

    @cached_property
    def transition_matrix(self) -> csr_array:
        """The transition probabilities, SciPy sparse: shape (states, states).

        Of an MDP shape (choices, states), the choices of a state one after the other; see
        `state_of_choice`. Of a CTMC those of its jumps; see `rate_matrix`.
        """
        # A copy: what users change in theirs changes no model.
        return transition_matrix(self._backing.explicit, copy=True)

    @cached_property
    def rate_matrix(self) -> csr_array:
        """The rates of a CTMC, SciPy sparse, shape (states, states).

        Raises
        ------
        InvalidModelError
            For a DTMC or an MDP, which have no rates.
        """
        return rate_matrix(self._backing.explicit, copy=True)

    @property
    def state_of_choice(self) -> IndexArray:
        """The state of each row of `transition_matrix`, shape (choices,)."""
        return self._backing.explicit.states_of_rows()

    @property
    def actions(self) -> NDArray[np.str_] | None:
        """MDPs: the action's name of each choice, empty for none, shape (choices,); else None."""
        actions = self._backing.actions
        if actions is None or self.kind != ModelKind.MDP:
            return None
        names, indices = actions
        return np.array(names)[indices]

    @property
    def states(self) -> NDArray[np.void]:
        """The states as a structured array, shape (states,), with a field for each variable.

        A model without variables of its own has one, "x", the number of the state.

        Raises
        ------
        UnsupportedError
            For a model that PRISM holds.
        """
        columns = self._backing.variables
        dtype = [(name, column.dtype) for name, column in columns.items()]
        states = np.empty(self.num_states, dtype=dtype)
        for name, column in columns.items():
            states[name] = column
        return states

    def states_frame(self) -> Any:
        """Return the states as a pandas DataFrame, a column for each variable.

        Raises
        ------
        ModuleNotFoundError
            Where pandas is not installed.
        UnsupportedError
            For a model that PRISM holds.
        """
        return data_frame(dict(self._backing.variables))

    def check(
        self,
        property: str,
        constants: Mapping[str, Constant] | None = None,
        **settings: Unpack[Settings],
    ) -> Result:
        """Check a property of the model.

        Parameters
        ----------
        property
            One property in PRISM's language: ``P=? [ F "goal" ]``, ``S>0.9 [ "up" ]``,
            ``R{"cost"}min=? [ F x=3 ]``, ``filter(max, P=? [ X "goal" ], "init")``.
        constants
            Values of names in the property, which need no declaration: ``P=? [ F<=T "goal" ]``.
        **settings
            How to check, such as ``epsilon=1e-8``, ``bounds=True``, ``strategy=True``; see
            `Settings`.

        Returns
        -------
        Result
            The value in the initial state and in every state, its error, and what it took.

        Raises
        ------
        InvalidModelError
            For a property that cannot be parsed, an unknown label or reward structure, a constant
            without a value.
        ValueError
            For a text with no property or several, and for settings out of range.
        TypeError
            For an unknown setting.
        UnsupportedError
            For what is not checked here, such as multi-objective properties.
        ConvergenceError
            When iterations do not converge, or a value is too near to a bound to tell.
        """
        results = self._checked(property, "", constants, settings)
        if len(results) != 1:
            raise ValueError(
                f"check takes one property, but the text holds {len(results)}; see check_all"
            )
        return replace(results[0], property=property)

    def check_all(
        self,
        properties: str | PathLike[str] | Sequence[str],
        constants: Mapping[str, Constant] | None = None,
        **settings: Unpack[Settings],
    ) -> Results:
        """Check several properties of the model.

        Parameters
        ----------
        properties
            A file in PRISM's language (`pathlib.Path`, or a text that ends in .props, .pctl, .csl
            or .prop); or the text of such a file; or a sequence of properties.
        constants
            Values of constants that they leave open.
        **settings
            How to check; see `Settings`.

        Returns
        -------
        Results
            In the order of the properties.

        Raises
        ------
        FileNotFoundError
            When there is no such file.
        InvalidModelError
            For a file that PRISM's grammar does not allow.
        Exception
            As `check`.
        """
        if isinstance(properties, str) and not _is_name_of_file(properties):
            return self._checked(properties, "", constants, settings)
        if isinstance(properties, str | PathLike):
            path = Path(properties)
            text = path.read_text(encoding="utf-8")
            try:
                return self._checked(text, str(path), constants, settings)
            except PropertySyntaxError as error:
                # PRISM's words leave the file's name to the lines around them.
                raise InvalidModelError(f"{path}: {error}") from error
        if not isinstance(properties, Iterable):
            raise TypeError(f"properties must be a text, a path or a sequence, not {properties!r}")
        return Results(self.check(text, constants, **settings) for text in properties)

    def _checked(
        self,
        text: str,
        source: str,
        constants: Mapping[str, Constant] | None,
        settings: Mapping[str, Any],
    ) -> Results:
        if not isinstance(text, str):
            raise TypeError(f"a property is a text, not {text!r}")
        asked = read_settings({**self._settings, **settings}, ModelKind(self.kind))
        return self._backing.check(text, source, plain_constants(constants), asked)

    def induced(self, strategy: ArrayLike) -> Model:
        """Return the DTMC that an MDP becomes under a strategy.

        Parameters
        ----------
        strategy
            Shape (states,), int: the row of `transition_matrix` that each state chooses, as in
            `Result.strategy`; −1 for the first choice of the state.

        Returns
        -------
        Model
            A DTMC with the same states, labels and variables, and settings but the method; its
            rewards are those of the states and of the chosen choices, added.

        Raises
        ------
        InvalidModelError
            For a model that is no MDP, a strategy of another length, and a row that is no choice
            of its state.
        UnsupportedError
            For a model that PRISM holds.
        """
        from prism_gpu.strategies import induced

        variables = self._backing.variables
        model = replace(self._backing.explicit, rewards=self._backing.rewards)
        chain = induced(model, strategy, dict(self.labels), variables)
        # Of the settings only these are for MDPs alone.
        others = ("strategy", "method")
        kept = {name: value for name, value in self._settings.items() if name not in others}
        return Model(chain, kept)

    def steady_state(
        self, initial: ArrayLike | None = None, **settings: Unpack[Settings]
    ) -> FloatArray:
        """Return the distribution over the states in the long run.

        Parameters
        ----------
        initial
            Shape (states,): the distribution that the chain begins with; by default that of the
            initial states, all alike.
        **settings
            How to solve; see `Settings`.

        Returns
        -------
        FloatArray
            Probabilities, shape (states,), which sum to 1.

        Raises
        ------
        InvalidModelError
            For an MDP, which needs a strategy first (see `induced`), and for what is no
            distribution.
        ConvergenceError
            When iterations do not converge.
        TypeError, ValueError
            For settings that are unknown or out of range.
        """
        from prism_gpu.distributions import distribution

        asked = read_settings({**self._settings, **settings}, ModelKind(self.kind))
        return distribution(self._backing.explicit, initial, None, asked)

    def transient(
        self, time: float, initial: ArrayLike | None = None, **settings: Unpack[Settings]
    ) -> FloatArray:
        """Return the distribution over the states at a time.

        Parameters
        ----------
        time
            The number of steps (DTMC), or the time in the unit of the rates (CTMC).
        initial, **settings
            As in `steady_state`.

        Returns
        -------
        FloatArray
            Probabilities, shape (states,), which sum to 1.

        Raises
        ------
        InvalidModelError
            As `steady_state`.
        ValueError
            For a time that is negative, or no whole number of steps, or more than 2³¹ - 1 of them;
            and as `steady_state`.
        TypeError
            For a time that is no number, and for an unknown setting.
        """
        from prism_gpu.distributions import distribution

        given: object = time
        if not isinstance(given, Real):
            raise TypeError(f"time must be a number, not {given!r}")
        asked = read_settings({**self._settings, **settings}, ModelKind(self.kind))
        return distribution(self._backing.explicit, initial, time, asked)

    def simulate(
        self,
        steps: int,
        *,
        paths: int = 1,
        start: int | None = None,
        seed: int | None = None,
    ) -> Paths:
        """Sample paths of a chain.

        Parameters
        ----------
        steps
            Transitions of each path.
        paths
            How many paths.
        start
            The state that they begin in; the first initial state by default.
        seed
            Of NumPy's generator: equal seeds give equal paths. None for other paths each time.

        Returns
        -------
        Paths
            `states` has shape (paths, steps + 1), and so has `times` of a CTMC.

        Raises
        ------
        InvalidModelError
            For an MDP, which needs a strategy first: see `induced`.
        ValueError
            For a negative number, and a state that does not exist.
        """
        from prism_gpu.paths import sampled

        return sampled(self._backing.explicit, steps, paths, start, seed)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, which `open` and the command `prism-gpu` read.

        Parameters
        ----------
        path
            A ``.umb``, which is compressed and keeps all; a ``.tra``, which gets its companions
            ``.lab``, ``.sta``, ``.srew``, ``.trew`` beside it; or a ``.pexp``.

        Raises
        ------
        ValueError
            For another ending.
        UnsupportedError
            For a model that PRISM holds, and for variables that the format does not hold.
        OSError
            If the file cannot be written.
        """
        self._backing.save(path_of(path, "path"))

    def _repr_html_(self) -> str:
        from prism_gpu.html import table

        initial = np.flatnonzero(self.initial_states)
        cells = {
            "model": str(self.kind),
            "states": f"{self.num_states:,} ({len(initial):,} initial)",
            "choices": f"{self.num_choices:,}" if self.kind == ModelKind.MDP else "",
            "transitions": f"{self.num_transitions:,}",
            "labels": ", ".join(self.labels),
            "rewards": ", ".join(keys_of_rewards(self._backing.reward_names)),
            "notes": "; ".join(self.notes),
        }
        return table({name: text for name, text in cells.items() if text})

    def __repr__(self) -> str:
        return f"<{self.kind} with {self.num_states:,} states>"


FILES_OF_PROPERTIES = (".props", ".pctl", ".csl", ".prop", ".ltl")


def _copy_of_label(backing: Backing, name: str) -> MaskArray:
    # What users change in theirs changes no model.
    return backing.label(name).copy()


def _is_name_of_file(properties: str) -> bool:
    # The last line of a text may be a comment that names a file.
    return properties.endswith(FILES_OF_PROPERTIES) and "\n" not in properties


def plain_constants(constants: Mapping[str, Any] | None) -> dict[str, Constant]:
    """Return values of constants as Python's own numbers.

    Parameters
    ----------
    constants
        Numbers or bools, NumPy's among them, by name; None for none.

    Raises
    ------
    TypeError
        For any other value, and for constants without names.
    """
    if not isinstance(constants, Mapping | None):
        raise TypeError(f"constants must be given by name, not as {constants!r}")
    found: dict[str, Constant] = {}
    for name, value in (constants or {}).items():
        plain = value.item() if isinstance(value, np.generic) else value
        if not isinstance(plain, bool | int | float):
            raise TypeError(f"constant {name} must be a number or a bool, not {value!r}")
        found[name] = plain
    return found
