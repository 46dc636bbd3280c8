"""The file `questions.json`: what an export asks, of which model, and where it came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from engines.environment import (
    BoundMethod,
    Convention,
    IntervalOptions,
    Method,
    Precision,
    SolverEnvironment,
)
from engines.errors import InvalidModelError
from engines.formats.choice import Format

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
        The command line that the report repeats.
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
        text = json.dumps({**plain, _DIGEST: _digest(plain)}, indent=1, ensure_ascii=False)
        (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")

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
        plain = json.loads(path.read_bytes())
        digest = plain.pop(_DIGEST)
        version = plain.pop("format")
    except OSError as error:
        raise InvalidModelError(
            f"{folder} holds no export: {path} cannot be read ({error.strerror})"
        ) from error
    except (ValueError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidModelError(f"{path} is damaged: export again") from error
    if version != FORMAT:
        raise InvalidModelError(
            f"{path} has format {version}, and this prism-gpu reads {FORMAT}: use the same version "
            "of prism-gpu everywhere"
        )
    if digest != _digest({"format": version, **plain}):
        raise InvalidModelError(f"{path} was changed after the export: export again")
    try:
        return Manifest(
            plain["provenance"],
            tuple(plain["command"]),
            read_settings(plain["settings"]),
            plain["content"],
            plain["sets"],
            plain["files"],
            tuple(Question(**question) for question in plain["questions"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidModelError(f"{path} is damaged ({error}): export again") from error


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
        The settings; a fault raises a KeyError, TypeError or ValueError.
    """
    method, convention = Method[plain["method"]], Convention[plain["convention"]]
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


def timestamp() -> str:
    """Return this machine's date and time, to the second and with its zone, in ISO 8601."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(plain: Mapping[str, Any]) -> str:
    text = json.dumps(plain, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
