"""What a JSON document must look like; a fault is told by the path of its field."""

from __future__ import annotations

import json
import math
import stat
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from engines.errors import InvalidModelError

Check = Callable[[Any, str], None]
"""Takes a value and the path of its field, and raises a `WrongFieldError`."""
LARGEST_JSON = 1 << 28
_NAMES = {
    dict: "a map",
    list: "a list",
    str: "a text",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    type(None): "null",
}


class WrongFieldError(ValueError):
    """A field of a document is not what it must be; the text says which, and why."""


def _fault(field: str, due: str, found: Any) -> WrongFieldError:
    shown = f", {found!r:.60}" if isinstance(found, str | int | float) else ""
    return WrongFieldError(f"{field}: {due} is due, not {_NAMES[type(found)]}{shown}")


def line(value: Any, field: str) -> None:
    """Check for a text without line ends and other signs that steer a terminal."""
    if not isinstance(value, str):
        raise _fault(field, "a text", value)
    if not value.isprintable():
        raise WrongFieldError(f"{field}: a sign that cannot be printed: {value!a:.60}")


def text(value: Any, field: str) -> None:
    """Check for a text that a command line or a file's name can hold."""
    if not isinstance(value, str):
        raise _fault(field, "a text", value)
    if "\0" in value or any("\ud800" <= sign <= "\udfff" for sign in value):
        raise WrongFieldError(f"{field}: a sign that no file holds: {value!a:.60}")


def flag(value: Any, field: str) -> None:
    """Check for true or false."""
    if not isinstance(value, bool):
        raise _fault(field, "true or false", value)


def number(least: float = -math.inf, most: float = math.inf) -> Check:
    """Return a check for a finite number in a range."""

    def check(value: Any, field: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _fault(field, "a number", value)
        if not (least <= value <= most and abs(value) <= sys.float_info.max):
            raise WrongFieldError(f"{field}: {value!r:.60} is not a number that it can be")

    return check


def whole(least: int = 0, most: int = 2**63 - 1) -> Check:
    """Return a check for a whole number in a range."""

    def check(value: Any, field: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _fault(field, "a whole number", value)
        if not least <= value <= most:
            raise WrongFieldError(f"{field}: the number is not from {least} to {most}")

    return check


def word(known: Collection[str]) -> Check:
    """Return a check for one of some words."""

    def check(value: Any, field: str) -> None:
        line(value, field)
        if value not in known:
            raise WrongFieldError(f"{field}: one of {', '.join(known)} is due, not {value!r:.60}")

    return check


def or_null(inner: Check) -> Check:
    """Return a check that lets null through."""
    return lambda value, field: None if value is None else inner(value, field)


def each(inner: Check) -> Check:
    """Return a check for a list."""

    def check(value: Any, field: str) -> None:
        if not isinstance(value, list):
            raise _fault(field, "a list", value)
        for place, item in enumerate(value):
            inner(item, f"{field}[{place}]")

    return check


def mapping(keys: Check, values: Check) -> Check:
    """Return a check for a map with names of any number."""

    def check(value: Any, field: str) -> None:
        if not isinstance(value, dict):
            raise _fault(field, "a map", value)
        for key, item in value.items():
            keys(key, f"a name in {field}")
            values(item, _below(field, key))

    return check


def record(due: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Return a check for a map with names that are known.

    Parameters
    ----------
    due
        The fields that must be there.
    optional
        Those that may.
    """
    known = {**due, **(optional or {})}

    def check(value: Any, field: str) -> None:
        if not isinstance(value, dict):
            raise _fault(field or "all of it", "a map", value)
        for name in due:
            if name not in value:
                raise WrongFieldError(f"{_below(field, name)}: missing")
        for name, item in value.items():
            if name not in known:
                raise WrongFieldError(f"{_below(field, ascii(name)[1:-1][:60])}: unknown")
            known[name](item, _below(field, name))

    return check


def _below(field: str, name: str) -> str:
    shown = name if name.isprintable() else ascii(name)[1:-1]
    return f"{field}.{shown}" if field else shown


def parsed(raw: bytes) -> Any:
    """Return what a JSON document says.

    Raises
    ------
    ValueError
        When it is none: also for the words NaN and Infinity, which JSON does not have.
    """

    def refuse(found: str) -> None:
        raise ValueError(f"{found} is no number")

    try:
        return json.loads(raw, parse_constant=refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def require_plain_file(path: Path) -> int:
    """Return a file's size; refuse a folder, a pipe or a device, which could be read for ever.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    InvalidModelError
        When it is something else than a plain file.
    OSError
        When there is none.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise InvalidModelError(f"{path} is not a plain file")
    return found.st_size
