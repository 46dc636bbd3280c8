"""The file `questions.json`: what an export asks, of which model, and where it came from."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bridge.exchange.schema import (
    LARGEST_JSON,
    WrongFieldError,
    each,
    flag,
    line,
    mapping,
    number,
    or_null,
    parsed,
    record,
    require_plain_file,
    text,
    whole,
    word,
)
from bridge.exchange.words import groups, replay_fault
from bridge.language.ast import Expression, Probability, Reward, SteadyState
from bridge.language.parser import parse_property
from bridge.refusals import fault_text
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.choice import Format
from engines.model.environment import (
    BoundMethod,
    Convention,
    IntervalOptions,
    Method,
    Precision,
    SolverEnvironment,
)

FORMAT = 1
MANIFEST = "questions.json"
_DIGEST = "sha256 of the rest"


@dataclass(frozen=True)
class Question:
    """A P, R or S operator.

    Parameters
    ----------
    key
        The operator as PRISM writes it, with the constants' values.
    text
        The same without its bound, over labels of the exported model.
    """

    key: str
    text: str


@dataclass(frozen=True)
class Manifest:
    """What was exported.

    Parameters
    ----------
    provenance
        Date, versions, folder and model, for people to read.
    command
        The command line that the report repeats: the model, the properties, and switches that
        decide the model and the answers.
    settings
        How to solve, as far as it does not depend on the machine.
    content
        What identifies each part of the model that PRISM built; see `bridge.exchange.content`.
    sets
        The digest of each label in the exported model.
    files
        The SHA-256 of each file beside the manifest.
    questions
        What is asked.
    """

    provenance: Mapping[str, str]
    command: tuple[str, ...]
    settings: SolverEnvironment
    content: Mapping[str, str]
    sets: Mapping[str, str]
    files: Mapping[str, str]
    questions: tuple[Question, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of all that the manifest says."""
        return _digest(self._plain())

    def save(self, folder: Path) -> None:
        """Write the manifest into a folder."""
        plain = self._plain()
        written = json.dumps({**plain, _DIGEST: _digest(plain)}, indent=1, ensure_ascii=False)
        (folder / MANIFEST).write_text(written + "\n", encoding="utf-8")

    def _plain(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "provenance": dict(self.provenance),
            "command": list(self.command),
            "settings": plain_settings(self.settings),
            "content": dict(self.content),
            "sets": dict(self.sets),
            "files": dict(self.files),
            "questions": [asdict(question) for question in self.questions],
        }


def load_manifest(folder: Path) -> Manifest:
    """Read the manifest of an export.

    Parameters
    ----------
    folder
        Where the export was written to.

    Raises
    ------
    InvalidModelError
        When there is none, when it was changed after the export, or when another version of
        prism-gpu wrote it.
    """
    path = folder / MANIFEST
    try:
        if require_plain_file(path) > LARGEST_JSON:
            raise InvalidModelError(f"{path} is too large for the questions of an export")
        plain = parsed(path.read_bytes())
    except OSError as error:
        raise InvalidModelError(
            f"{folder} holds no export: {path} cannot be read ({error.strerror})"
        ) from error
    except InvalidModelError:
        raise
    except ValueError as error:
        raise InvalidModelError(f"{path} is damaged ({error}): export again") from error
    try:
        return _checked(plain, path)
    except WrongFieldError as error:
        raise InvalidModelError(f"{path} is damaged: {error}: export again") from error


def _checked(plain: Any, path: Path) -> Manifest:
    if isinstance(plain, dict) and plain.get("format", FORMAT) != FORMAT:
        raise InvalidModelError(
            f"{path} has format {plain['format']!r:.20}, and this prism-gpu reads {FORMAT}: use "
            "the same version of prism-gpu everywhere"
        )
    if not isinstance(plain, dict):
        SCHEMA(plain, "")
    digest = plain.pop(_DIGEST, None)
    line(digest, _DIGEST)
    if digest != _digest(plain):
        raise InvalidModelError(f"{path} was changed after the export: export again")
    SCHEMA(plain, "")
    _require_replayed(plain["command"])
    try:
        settings = read_settings(plain["settings"])
    except (ValueError, TypeError) as error:
        raise WrongFieldError(f"settings: {error}") from error
    return Manifest(
        plain["provenance"],
        tuple(plain["command"]),
        settings,
        plain["content"],
        plain["sets"],
        plain["files"],
        tuple(Question(**question) for question in plain["questions"]),
    )


def _require_replayed(command: list[str]) -> None:
    """Refuse what a report does not repeat: another may have written the manifest."""
    place = 0
    for part in groups(command, set()):
        fault = replay_fault(part)
        if fault:
            raise WrongFieldError(f"command[{place}]: {fault}")
        place += len(part.words)


def _file_name(value: Any, field: str) -> None:
    line(value, field)
    if value != Path(value).name:
        raise WrongFieldError(f"{field}: {value!r:.60} is not the name of a file in the folder")


def _model_size(value: Any, field: str) -> None:
    line(value, field)
    if not (value.isascii() and value.isdecimal() and len(value) <= 18):
        raise WrongFieldError(f"{field}: a number is due, not {value!r:.60}")


_INTERVAL = {
    "bound_method": word(list(BoundMethod)),
    "lower": or_null(number(0.0)),
    "upper": or_null(number(0.0)),
    "select_midpoint": flag,
    "monotonic_below": flag,
    "monotonic_above": flag,
    "check_monotonic": flag,
}
SETTINGS = record(
    {"method": word([item.name for item in Method])},
    {
        "convention": word([item.name for item in Convention]),
        "epsilon": number(0.0),
        "absolute": flag,
        "max_iterations": whole(),
        "max_iterations_named": flag,
        "omega": number(),
        "matrix_format": word(list(Format)),
        "device_memory": or_null(whole()),
        "num_devices": whole(),
        "bounds": flag,
        "interval": record({}, _INTERVAL),
        "topological": flag,
        "slice_size": or_null(whole(1)),
        "colours": or_null(whole(1)),
        "precision": word(list(Precision)),
        "repeats_prism": flag,
        "notes_steady_state": flag,
    },
)
_PRINTED = ("model", "constants", "date")


def _provenance(value: Any, field: str) -> None:
    mapping(text, text)(value, field)
    for name in _PRINTED:
        line(value.get(name, ""), f"{field}.{name}")


def _content(value: Any, field: str) -> None:
    mapping(line, line)(value, field)
    name = "number of states"
    _model_size(value.get(name), f"{field}.{name}")


SCHEMA = record(
    {
        "format": whole(FORMAT, FORMAT),
        "provenance": _provenance,
        "command": each(text),
        "settings": SETTINGS,
        "content": _content,
        "sets": mapping(line, line),
        "files": mapping(_file_name, line),
        "questions": each(record({"key": line, "text": line})),
    }
)


def plain_settings(environment: SolverEnvironment) -> dict[str, Any]:
    """Return the settings of a solve as JSON holds them, device left out.

    Parameters
    ----------
    environment
        The settings.
    """
    plain = asdict(environment)
    del plain["device"], plain["device_number"]
    return {**plain, "method": environment.method.name, "convention": environment.convention.name}


def read_settings(plain: Mapping[str, Any]) -> SolverEnvironment:
    """Return the settings that `plain_settings` wrote.

    Parameters
    ----------
    plain
        The settings, as `SETTINGS` has them; a ValueError tells what no solve can have.
    """
    method = Method[plain["method"]]
    convention = Convention[plain.get("convention", Convention.SPARSE.name)]
    interval = plain.get("interval", {})
    bound_method = BoundMethod(interval.get("bound_method", BoundMethod.DEFAULT))
    return SolverEnvironment(
        **{
            **plain,
            "method": method,
            "convention": convention,
            "matrix_format": Format(plain.get("matrix_format", Format.AUTO)),
            "precision": Precision(plain.get("precision", Precision.DOUBLE)),
            "interval": IntervalOptions(**{**interval, "bound_method": bound_method}),
        }
    )


def questions_of(folder: Path, manifest: Manifest) -> dict[str, Expression]:
    """Return the trees of the questions, by their texts.

    Parameters
    ----------
    folder
        The export, for messages.
    manifest
        Its manifest.

    Raises
    ------
    InvalidModelError
        When a question is no operator that asks for values.
    """
    found: dict[str, Expression] = {}
    for place, question in enumerate(manifest.questions):
        field = f"{folder / MANIFEST}: questions[{place}].text"
        try:
            tree = parse_property(question.text, "the question")
        except (InvalidModelError, UnsupportedError, RecursionError) as error:
            raise InvalidModelError(f"{field}: {fault_text(error)}: export again") from error
        if not isinstance(tree, Probability | SteadyState | Reward) or (
            tree.threshold.bound is not None
        ):
            raise InvalidModelError(
                f"{field}: {question.text:.60} is no operator that asks for values: export again"
            )
        found[question.text] = tree
    return found


def set_names(sets: Mapping[str, str]) -> dict[str, str]:
    """Return the name that texts have for each set of states, by its digest.

    Parameters
    ----------
    sets
        The digests by the names; several names may have the same states.
    """
    return {digest: name for name, digest in sorted(sets.items(), reverse=True)}


def is_file_of_model(name: str, model: str) -> bool:
    """Return whether a reader may take a file for a part of a model, as `model2.srew` of `model`.

    Parameters
    ----------
    name
        Of the file.
    model
        The model's name, without an ending.
    """
    return re.fullmatch(rf"{re.escape(model)}[0-9]*\..*", name) is not None


def timestamp() -> str:
    """Return this machine's date and time, to the second and with its zone, in ISO 8601."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(plain: Mapping[str, Any]) -> str:
    written = json.dumps(plain, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()
