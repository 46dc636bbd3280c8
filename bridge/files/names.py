"""What the name of a file says of what is in it; imports nothing that takes time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

COMPRESSIONS = (".gz", ".gzip", ".xz")
UMB_ENDING = ".umb"
TEXT_ENDINGS = (".tra", ".pexp")


def printable(text: str) -> str:
    """Return a text with a backslash escape for each character that is not printable.

    Names come out of files that others may have written: a line feed in one would begin a line of
    the report, a control character move the terminal's cursor, and half a surrogate pair cannot
    be written at all.

    Parameters
    ----------
    text
        Any text.
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that has been there before, or None.

    Parameters
    ----------
    names
        Any names.
    """
    met: set[str] = set()
    for name in names:
        if name in met:
            return name
        met.add(name)
    return None


def plain_name(path: Path) -> str:
    """Return the name of a file without the ending of its compression.

    Parameters
    ----------
    path
        Any path.
    """
    return path.name.removesuffix(path.suffix) if path.suffix in COMPRESSIONS else path.name


def is_umb_file(path: Path) -> bool:
    """Return whether a path has the ending `.umb`.

    Parameters
    ----------
    path
        Any path; an ending of `COMPRESSIONS` may follow.
    """
    return plain_name(path).endswith(UMB_ENDING)


def is_text_model(path: Path) -> bool:
    """Return whether a path has the ending of explicit text files: `.tra` or `.pexp`.

    Parameters
    ----------
    path
        Any path; an ending of `COMPRESSIONS` may follow.
    """
    return plain_name(path).endswith(TEXT_ENDINGS)


def is_model_file(path: Path) -> bool:
    """Return whether a path is that of explicit files: `.umb`, `.tra`, `.pexp`, or a folder.

    Parameters
    ----------
    path
        Any path; an ending of `COMPRESSIONS` may follow.
    """
    return path.is_dir() or is_umb_file(path) or is_text_model(path)


def with_suffix(name: str, suffix: str) -> str:
    """Return a file's name with something before its ending, as PRISM names several files.

    Parameters
    ----------
    name
        The name, with folders; PRISM takes the last dot of the whole path.
    suffix
        What comes before that dot, or at the end.
    """
    stem, dot, ending = name.rpartition(".")
    return f"{stem}{suffix}.{ending}" if dot else f"{name}{suffix}"
