"""What the name of a file says of what is in it; imports nothing that takes time."""

from __future__ import annotations

from pathlib import Path

COMPRESSIONS = (".gz", ".gzip", ".xz")
UMB_ENDING = ".umb"
TEXT_ENDINGS = (".tra", ".pexp")


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
