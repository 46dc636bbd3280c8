"""The file `results.zip`: the values that were found for an export's questions.

A ZIP archive without compression: `results.json`, and for each solved question a member with its
values as little-endian doubles. The archive's own check sums tell damage.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bridge.files.atomic import replacing
from engines.errors import InvalidModelError
from engines.formats.csr import FloatArray

FORMAT = 1
RESULTS = "results.zip"
_INDEX = "results.json"
_INDEX_LIMIT = 1 << 28


@dataclass(frozen=True)
class Answer:
    """What is known of a question.

    Parameters
    ----------
    text
        The question.
    record
        Everything but the values, as JSON holds it: "error" (a text, or None for a solved
        question), "accuracy", "settings", "solves", "date", "engine", "seconds".
    values
        Shape (states,); None for a question that could not be solved.
    """

    text: str
    record: Mapping[str, Any]
    values: FloatArray | None

    @property
    def error(self) -> str | None:
        """Why the question could not be solved."""
        return self.record.get("error")


@dataclass
class Results:
    """The answers to one export's questions.

    Parameters
    ----------
    export
        The digest of the export's manifest.
    provenance
        Where and with what they were solved.
    answers
        The answers by the questions' texts.
    """

    export: str
    provenance: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write the results into a folder, whole or not at all.

        Parameters
        ----------
        folder
            That of the export.

        Raises
        ------
        OSError
            If the file cannot be written; an old one is then left as it was.
        """
        with (
            replacing(folder / RESULTS) as draft,
            zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive,
        ):
            archive.writestr(_INDEX, self._index())
            for number, answer in enumerate(self.answers.values()):
                if answer.values is not None:
                    archive.writestr(_member(number), answer.values.astype("<f8").tobytes())

    def _index(self) -> str:
        plain = {
            "format": FORMAT,
            "export": self.export,
            "provenance": self.provenance,
            "answers": [
                {"text": answer.text, "solved": answer.values is not None, **answer.record}
                for answer in self.answers.values()
            ],
        }
        return json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False)


def load_results(folder: Path, num_states: int) -> Results | None:
    """Read the results in a folder; None where there are none.

    Parameters
    ----------
    folder
        That of the export.
    num_states
        Number of states of the exported model.

    Raises
    ------
    InvalidModelError
        When the file is damaged or does not fit the model.
    """
    path = folder / RESULTS
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, num_states)
    except FileNotFoundError:
        return None
    except (
        *(zipfile.BadZipFile, KeyError, TypeError, ValueError, AttributeError, EOFError),
        *(NotImplementedError, RuntimeError, RecursionError, OSError),
    ) as error:
        raise InvalidModelError(
            f"{path} is damaged ({error}): remove it, and run prism-gpu solve {folder} again"
        ) from error


def _read(archive: zipfile.ZipFile, num_states: int) -> Results:
    plain = json.loads(_member_bytes(archive, _INDEX, None))
    if plain["format"] != FORMAT:
        raise ValueError(f"format {plain['format']}, where this prism-gpu reads {FORMAT}")
    results = Results(str(plain["export"]), dict(plain["provenance"]))
    for number, record in enumerate(plain["answers"]):
        text, solved = str(record.pop("text")), bool(record.pop("solved"))
        values = None
        if solved:
            raw = _member_bytes(archive, _member(number), 8 * num_states)
            values = np.frombuffer(raw, "<f8").astype(np.float64)
        elif not record.get("error"):
            raise ValueError(f"neither values nor an error for {text}")
        results.answers[text] = Answer(text, record, values)
    return results


def _member_bytes(archive: zipfile.ZipFile, name: str, size: int | None) -> bytes:
    found = archive.getinfo(name).file_size
    if size is not None and found != size:
        raise ValueError(f"{name} has {found} bytes where {size} are due")
    if found > _INDEX_LIMIT and size is None:
        raise ValueError(f"{name} has {found} bytes")
    return archive.read(name)


def _member(number: int) -> str:
    return f"values/{number}.f8"
