"""Names that users give: of files, and where only some are known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from os import PathLike
from pathlib import Path


def require_known(
    name: str, known: Iterable[str], what: str, error: type[Exception] = ValueError
) -> None:
    """Refuse a name that is not known, and suggest one that is.

    Parameters
    ----------
    name
        The name.
    known
        All that are known.
    what
        What it is the name of, for the message.
    error
        The class of the error.

    Raises
    ------
    Exception
        Of the class `error`, with the nearest of the known names.
    """
    names = list(known)
    if name in names:
        return
    near = get_close_matches(name, names, 1) if isinstance(name, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(map(repr, filter(None, names))) or "none"
    raise error(f"unknown {what} {name!r}{hint} (known: {listed})")


def path_of(path: str | PathLike[str], name: str) -> Path:
    """Return a path that a user has given.

    Parameters
    ----------
    path
        The path.
    name
        What the argument is called.

    Raises
    ------
    TypeError
        For what names no file.
    """
    if not isinstance(path, str | PathLike):
        raise TypeError(f"{name} must be a text or a pathlib.Path, not {path!r}")
    return Path(path)
