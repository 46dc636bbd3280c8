"""Texts of models and properties, as they are read."""

from __future__ import annotations

from pathlib import Path

from engines.errors import InvalidModelError

LONGEST = 64_000_000
"""Characters. A device such as /dev/zero has no end, and the parts of a longer text fill memory."""


def read_text(path: Path) -> str:
    """Return what a file says; bytes that are no UTF-8 are replaced.

    Parameters
    ----------
    path
        The file, or a pipe.

    Raises
    ------
    InvalidModelError
        If it is longer than any text of a model.
    OSError
        If it cannot be read.
    """
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(LONGEST + 1)
    if len(text) > LONGEST:
        raise InvalidModelError(f"{path} has more than {LONGEST // 1_000_000} million characters")
    return text
