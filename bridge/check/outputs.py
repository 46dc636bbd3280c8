"""Files that the user names for what is exported."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bridge.files.atomic import write_parts
from engines.errors import BridgeError


def write_output(path: Path, parts: Iterable[str], shown: str | None = None) -> None:
    """Write a file whole or not at all.

    Parameters
    ----------
    path
        The file.
    parts
        Its text, part by part.
    shown
        What an error calls it; None for its name without folders, as PRISM does for most.

    Raises
    ------
    BridgeError
        If the file cannot be opened, in PRISM's words.
    OSError
        If it cannot be written, on a full disk say.
    """
    try:
        write_parts(path, parts)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        name = path.name if shown is None else shown
        raise BridgeError(f'Could not open file "{name}" for output') from error
