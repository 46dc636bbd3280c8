"""Models that have proved to be large: for them the GPU is opened before they are built again.

Opening it takes half a second, in which PRISM starts and parses. For a small model that would be in
vain, and how large one is shows only as it is built. So an empty file in the cache stands for each
model that was large, with its constants, by a digest. Results do not depend on it.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from engines.process.cache import private_folder

if TYPE_CHECKING:
    from bridge.arguments import Arguments

FOLDER = "large-models"

MOST_KEPT = 1_000
"""Files; with more all are dropped."""


def is_known(arguments: Arguments) -> bool:
    """Return whether a command's model was large the last time that it was built.

    Parameters
    ----------
    arguments
        The command line.
    """
    place = _place(arguments)
    return place is not None and place.exists()


def note(arguments: Arguments) -> None:
    """Note that a command's model is large.

    Parameters
    ----------
    arguments
        The command line.
    """
    place = _place(arguments)
    # Where the disk is full, the GPU is opened later the next time as well.
    with suppress(OSError):
        if place is None or place.exists():
            return
        kept = list(place.parent.iterdir())
        if len(kept) >= MOST_KEPT:
            for file in kept:
                file.unlink(missing_ok=True)
        place.touch(mode=0o600)


def _place(arguments: Arguments) -> Path | None:
    """Return the file that stands for a model; None for no model or no cache."""
    folder = private_folder(FOLDER) if arguments.files else None
    if folder is None:
        return None
    import hashlib

    try:
        model = Path(arguments.files[0]).resolve(strict=True)
        status = model.stat()
    except OSError:
        return None
    words = (str(model), status.st_size, status.st_mtime_ns, *_constants(arguments.prism))
    return folder / hashlib.sha256(repr(words).encode()).hexdigest()


def _constants(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return what follows each `-const`."""
    return tuple(value for word, value in pairwise(words) if word.lstrip("-") == "const")
