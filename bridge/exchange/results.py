"""The file `results.zip`: the values that were found for an export's questions.

A ZIP archive without compression: `results.json`, and for each solved question a member with its
values as little-endian doubles. The archive's own check sums tell damage; a digest binds each
answer to its export, its question and its values.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bridge.check.accuracy import TESTING_ERROR
from bridge.exchange.manifest import SETTINGS
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
    whole,
)
from bridge.files.atomic import replacing
from bridge.language.ast import Expression, Probability, SteadyState
from bridge.refusals import fault_text
from engines.arrays import FloatArray
from engines.errors import InvalidModelError
from prism_hooks.claims import ROUNDING_OF_STEPS

FORMAT = 2
RESULTS = "results.zip"
_INDEX = "results.json"
_DIGEST = "sha256 of question and values"


@dataclass(frozen=True)
class Answer:
    """What is known of a question.

    Parameters
    ----------
    text
        The question.
    record
        Everything but the values, as JSON holds it: "error" (a text, or None for a solved
        question), "accuracy", "settings", "solves", "date".
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
            replacing(folder / RESULTS, follow=False) as draft,
            zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive,
        ):
            archive.writestr(_INDEX, self._index())
            for place, answer in enumerate(self.answers.values()):
                if answer.values is not None:
                    archive.writestr(_member(place), _raw(answer.values))

    def _index(self) -> str:
        plain = {
            "format": FORMAT,
            "export": self.export,
            "provenance": self.provenance,
            "answers": [
                {
                    "text": answer.text,
                    "solved": answer.values is not None,
                    **answer.record,
                    _DIGEST: _digest(self.export, answer),
                }
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
        size = require_plain_file(path)
        with zipfile.ZipFile(path) as archive:
            return _read(archive, num_states, size)
    except FileNotFoundError:
        return None
    except (
        *(zipfile.BadZipFile, KeyError, TypeError, ValueError, AttributeError, EOFError),
        *(NotImplementedError, RuntimeError, RecursionError, OSError, OverflowError, struct.error),
    ) as error:
        raise InvalidModelError(
            f"{path} is damaged ({fault_text(error)}): remove it, and run prism-gpu solve {folder} "
            "again"
        ) from error


def _read(archive: zipfile.ZipFile, num_states: int, size: int) -> Results:
    plain = parsed(_member_bytes(archive, _INDEX, min(size, LARGEST_JSON)))
    if isinstance(plain, dict) and plain.get("format", FORMAT) != FORMAT:
        raise ValueError(f"format {plain['format']!r:.20}, where this prism-gpu reads {FORMAT}")
    SCHEMA(plain, "")
    results = Results(plain["export"], plain["provenance"])
    for place, fields in enumerate(plain["answers"]):
        field = f"{_INDEX}: answers[{place}]"
        text, solved, digest = fields.pop("text"), fields.pop("solved"), fields.pop(_DIGEST)
        values = None
        if solved:
            try:
                raw = _member_bytes(archive, _member(place), size, 8 * num_states)
            except KeyError:
                raise ValueError(f"{field}: its values, {_member(place)}, are missing") from None
            values = np.frombuffer(raw, "<f8").astype(np.float64)
        elif not fields["error"]:
            raise ValueError(f"{field}.error: neither values nor an error for {text}")
        if text in results.answers:
            raise ValueError(f"{field}.text: {text} is answered twice")
        answer = Answer(text, fields, values)
        if digest != _digest(results.export, answer):
            raise ValueError(f"{field}: not what was solved (its SHA-256 differs)")
        results.answers[text] = answer
    return results


def require_possible(folder: Path, questions: Mapping[str, Expression], results: Results) -> None:
    """Refuse answers to what was not asked, and values that no answer has.

    Parameters
    ----------
    folder
        The export.
    questions
        What it asks, by the questions' texts.
    results
        Its results.

    Raises
    ------
    InvalidModelError
        Naming the answer.
    """
    for place, (text, answer) in enumerate(results.answers.items()):
        fault = "this is not asked" if text not in questions else ""
        if not fault and answer.values is not None:
            accuracy = answer.record.get("accuracy") or {"error": 0.0}
            fault = impossible(questions[text], answer.values, float(accuracy["error"]))
        if fault:
            raise InvalidModelError(
                f"{folder / RESULTS} is damaged (answers[{place}], {text}: {fault}): remove it, "
                f"and run prism-gpu solve {folder} again"
            )


def impossible(question: Expression, values: FloatArray, error: float) -> str:
    """Return what no answer to a question can have; empty for an answer that can be.

    Parameters
    ----------
    question
        The operator.
    values
        The values in all states.
    error
        How far from the truth they may be, by their own account.
    """
    wrong = np.isnan(values)
    if isinstance(question, Probability | SteadyState):
        slack = min(max(error, ROUNDING_OF_STEPS), TESTING_ERROR)
        wrong |= (values < -slack) | (values > 1.0 + slack)
        what = "a probability"
    else:
        wrong |= values == -np.inf
        what = "a reward"
    return f"{what} of {values[np.argmax(wrong)]}" if wrong.any() else ""


def _member_bytes(
    archive: zipfile.ZipFile, name: str, largest: int, due: int | None = None
) -> bytes:
    member = archive.getinfo(name)
    if member.compress_type != zipfile.ZIP_STORED or member.file_size > largest:
        raise ValueError(f"{name} is compressed, or larger than the archive")
    if due is not None and member.file_size != due:
        raise ValueError(f"{name} has {member.file_size} bytes where {due} are due")
    return archive.read(name)


def _raw(values: FloatArray) -> bytes:
    return values.astype("<f8").tobytes()


def _digest(export: str, answer: Answer) -> str:
    plain = json.dumps(
        [export, answer.text, answer.record], sort_keys=True, ensure_ascii=True, allow_nan=False
    )
    found = hashlib.sha256(plain.encode())
    if answer.values is not None:
        found.update(_raw(answer.values))
    return found.hexdigest()


def _member(place: int) -> str:
    return f"values/{place}.f8"


def _decided(value: Any, field: str) -> None:
    line(value, field)
    try:
        found = float(value)
    except ValueError as error:
        raise WrongFieldError(f"{field}: a number is due, not {value!r:.60}") from error
    if math.isnan(found):
        raise WrongFieldError(f"{field}: {value!r:.60} is not a number that it can be")


_ACCURACY = record(
    {"error": number(0.0), "absolute": flag, "guaranteed": flag}, {"decided": each(_decided)}
)
_SOLVE = record(
    {},
    {
        **dict.fromkeys(("method", "status"), line),
        **dict.fromkeys(("engine", "finished by"), or_null(line)),
        "iterations": whole(),
        **dict.fromkeys(("residual", "error estimate"), or_null(number())),
        "two-sided": flag,
        "seconds": number(0.0),
    },
)
SCHEMA = record(
    {
        "format": whole(FORMAT, FORMAT),
        "export": line,
        "provenance": mapping(line, line),
        "answers": each(
            record(
                {"text": line, "solved": flag, "error": or_null(line), _DIGEST: line},
                {
                    "settings": SETTINGS,
                    "date": line,
                    "solves": each(_SOLVE),
                    "accuracy": or_null(_ACCURACY),
                },
            )
        ),
    }
)
