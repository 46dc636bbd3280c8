"""Writing a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a text under its final name only once all of it is written.

    Parameters
    ----------
    path
        The file.
    text
        What is to be in it.

    Raises
    ------
    OSError
        If it cannot be written; an old file is then left as it was.
    """
    if path.exists() and not path.is_file():
        # A pipe or a device: there is nothing to replace.
        path.write_text(text, encoding="utf-8")
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
