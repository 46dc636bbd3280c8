"""Where a model to be checked without PRISM comes from: its text, or explicit files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from bridge.check.meaning import Declared
from bridge.check.texts import read_text
from bridge.files.checkable import read_checkable
from bridge.files.names import is_model_file
from bridge.language.ast import Value
from bridge.language.evaluate import type_of_array
from bridge.language.model_check import CHECKED, checked_outline
from bridge.language.model_outline import ModelOutline
from bridge.language.properties_file import ConstantDeclaration
from bridge.language.types import type_of_value
from bridge.model import CheckableModel
from engines.errors import BridgeError, UnsupportedError
from engines.exploration.build import UNEXPLORED
from engines.model.environment import BuildingPlace
from engines.model.explicit import ModelKind

Log = Callable[[str], None]


class ModelSource(Protocol):
    """Something that models are built from."""

    @property
    def name(self) -> str:
        """What the log calls the way that models are built."""

    @property
    def constants(self) -> tuple[ConstantDeclaration, ...]:
        """The model's constants."""

    @property
    def names(self) -> Mapping[str, str]:
        """The names that properties cannot declare; see `parse_properties`."""

    @property
    def declared(self) -> Declared:
        """What properties may name."""

    def describe(self, log: Log) -> None:
        """Print what is known before the model is built."""

    def build(self, constants: Mapping[str, Value], log: Log) -> CheckableModel:
        """Build the model for some values of its open constants."""

    def text(self) -> str:
        """Return the model in PRISM's language; raises where it is not."""


def model_source(
    path: Path,
    *,
    kind: ModelKind | None,
    fix_deadlocks: bool,
    sums_checked: bool = True,
    place: BuildingPlace = BuildingPlace(),
    most_states: int | None = None,
    likely: float | None = None,
) -> ModelSource:
    """Return the source that a model's path stands for.

    Parameters
    ----------
    path
        A model in the PRISM language, or explicit files.
    kind
        For explicit text files: what they are, whatever their header says.
    fix_deadlocks
        Whether states without a transition get a self-loop.
    sums_checked
        Whether probabilities that do not sum to 1 are an error.
    place
        Where a model in the PRISM language may be built.
    most_states
        That a model in the PRISM language may have; None for any number.
    likely
        Of a model in the PRISM language, explore only states that are reached with at least this
        estimated probability, and at most `most_states` of them; None for all.

    Raises
    ------
    BridgeError
        When there is no such file.
    UnsupportedError
        For explicit files with `likely`. When a model in the PRISM language is looked at: if it
        is of another kind.
    """
    if not path.exists():
        raise BridgeError(f'File "{path}" not found')
    if is_model_file(path):
        if not (path.is_file() or path.is_dir()):
            raise BridgeError(
                f'"{path}" is no regular file; explicit files are read several times, and cannot '
                "come out of a pipe"
            )
        if likely is not None:
            raise UnsupportedError(
                f"{path}: -gputruncate explores models in PRISM's language; these are all states"
            )
        return FileSource(path, kind)
    return TextSource(path, fix_deadlocks, sums_checked, place, most_states, likely, asked=kind)


@dataclass(frozen=True)
class FileSource:
    """A model in explicit files."""

    path: Path
    kind: ModelKind | None
    name: str = "files"
    constants: tuple[ConstantDeclaration, ...] = ()

    @cached_property
    def _model(self) -> CheckableModel:
        return read_checkable(self.path, self.kind)

    @property
    def names(self) -> Mapping[str, str]:
        """The names of variables and labels; PRISM does not tell them apart here."""
        return names_of(self._model)

    @property
    def declared(self) -> Declared:
        """What properties may name."""
        return declared_by(self._model)

    def describe(self, log: Log) -> None:
        """Read the model, and print what the files say of it."""
        log(f'\nImporting model from "{self.path}"...')
        model = self._model
        labels = [name for name in model.model.labels if name not in ("init", "deadlock")]
        _describe(
            log,
            str(model.model.kind),
            (),
            tuple(model.variables),
            tuple(labels),
            tuple(item.name for item in model.rewards),
        )

    def build(self, constants: Mapping[str, Value], log: Log) -> CheckableModel:
        """Return the model that was read."""
        del constants, log
        return self._model

    def text(self) -> str:
        """Refuse: there are no commands to sample paths of."""
        raise UnsupportedError(
            "-sim samples paths of a model in PRISM's language, and not of explicit files"
        )


@dataclass(frozen=True)
class TextSource:
    """A model in the PRISM language, parsed and built by prism-gpu itself."""

    path: Path
    fix_deadlocks: bool
    sums_checked: bool = True
    place: BuildingPlace = field(default_factory=BuildingPlace)
    most_states: int | None = None
    likely: float | None = None
    name: str = "prism-gpu"
    asked: ModelKind | None = None

    @cached_property
    def _outline(self) -> ModelOutline:
        found = checked_outline(self.text(), str(self.path))
        kind = (found.kind or "mdp").upper()
        if self.asked is not None and self.asked.value != kind:
            raise UnsupportedError(
                f"-{self.asked.value.lower()}: {self.path} is of type {kind}, and only PRISM takes "
                "it as another: change its first word, or install PRISM"
            )
        return found

    @property
    def constants(self) -> tuple[ConstantDeclaration, ...]:
        """The model's constants."""
        return self._outline.constants

    @property
    def names(self) -> Mapping[str, str]:
        """The declared names, and as what they are declared."""
        found = self._outline
        return {
            **{item.name: "constant" for item in found.constants},
            **dict.fromkeys(found.formulas, "formula"),
            **dict.fromkeys(found.variables, "variable"),
            **dict.fromkeys(_quoted(found.labels), "label"),
        }

    @property
    def declared(self) -> Declared:
        """What properties may name.

        Raises
        ------
        UnsupportedError
            If the model is of a kind that cannot be built.
        """
        found = self._outline
        if found.kind not in CHECKED:
            raise UnsupportedError(
                f"{self.path}: a {str(found.kind).upper()}; without PRISM only DTMCs, CTMCs and "
                "MDPs are built"
            )
        types = {item.name: item.type for item in found.constants}
        types |= {item.name.name: item.type for item in found.declared_variables}
        labels = found.labels if self.likely is None else (*found.labels, UNEXPLORED)
        return Declared(types, found.variables, labels, found.reward_names, found.formulas)

    def describe(self, log: Log) -> None:
        """Print what the model's text says."""
        log(f'\nParsing PRISM model file "{self.path}"...')
        found = self._outline
        kind = (found.kind or "mdp").upper()
        _describe(
            log, kind, found.modules, found.variables, tuple(found.labels), found.reward_names
        )

    def text(self) -> str:
        """Return the file's text, which is read once: it may come out of a pipe."""
        return self._text

    @cached_property
    def _text(self) -> str:
        return read_text(self.path)

    def build(self, constants: Mapping[str, Value], log: Log) -> CheckableModel:
        """Build the model."""
        from bridge.check.explored import explored_model
        from engines.devices.exploring import gpu_for_building

        return explored_model(
            self.text(),
            str(self.path),
            constants,
            fix_deadlocks=self.fix_deadlocks,
            sums_checked=self.sums_checked,
            gpu=gpu_for_building(self.place.device, self.place.number),
            gpu_memory=self.place.most_memory,
            most_states=self.most_states,
            likely=self.likely,
            log=log,
        )


def names_of(model: CheckableModel) -> Mapping[str, str]:
    """Return the names that properties of a built model cannot declare.

    Parameters
    ----------
    model
        A model without a text of its own.
    """
    return dict.fromkeys((*model.variables, *_quoted(model.model.labels)), "")


def declared_by(model: CheckableModel) -> Declared:
    """Return what properties of a built model may name.

    Parameters
    ----------
    model
        A model without a text of its own.
    """
    types = {name: type_of_value(value) for name, value in model.constants.items()}
    types |= {name: type_of_array(values) for name, values in model.variables.items()}
    labels = (*model.model.labels, *model.labels)
    rewards = [item.name for item in model.rewards]
    return Declared(types, tuple(model.variables), labels, rewards, model.formulas)


def _quoted(labels: Iterable[str]) -> Iterator[str]:
    """Return the names of labels as declarations have them, without those of every model."""
    return (f'"{name}"' for name in labels if name not in ("init", "deadlock"))


def _describe(
    log: Log,
    kind: str,
    modules: tuple[str, ...],
    variables: tuple[str, ...],
    labels: tuple[str, ...],
    rewards: tuple[str, ...],
) -> None:
    lines = [f"Type:        {kind}"]
    if modules:
        lines.append(f"Modules:     {' '.join(modules)}")
    if variables:
        lines.append(f"Variables:   {' '.join(variables)}")
    if labels:
        lines.append("Labels:      " + " ".join(f'"{name}"' for name in labels))
    if rewards:
        shown = (f'"{name}"' if name else str(i) for i, name in enumerate(rewards, start=1))
        lines.append(f"Rewards:     {' '.join(shown)}")
    log("\n" + "\n".join(lines))
