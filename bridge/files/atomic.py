"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engines.process.leftovers import in_use, remove_abandoned, removed_at_end


@contextmanager
def replacing(path: Path, *, follow: bool = True) -> Iterator[Path]:
    """Yield the path to write to, of a draft that takes a file's place once it is whole.

    A pipe or a device that the user names has no place to be taken: it is yielded itself.

    Parameters
    ----------
    path
        The file.
    follow
        Whether a link is followed, as where the user names the file; else whatever is there is
        replaced, as in a folder that others may have filled.

    Yields
    ------
    An empty file beside the one to be replaced. What writes it must have closed it at the end of
    the block.

    Raises
    ------
    OSError
        If it cannot be written. After any exception an old file is as it was, and no draft is left.
    """
    if follow and path.exists() and not path.is_file():
        with _naming(path, path):
            yield path
        return
    target = Path(os.path.realpath(path)) if follow else path
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    remove_abandoned(target)
    try:
        with _naming(draft, path), removed_at_end(draft):
            draft.touch(exist_ok=False)
            with in_use(draft):
                yield draft
            with draft.open("rb+") as written:
                os.fsync(written.fileno())
            os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _naming(written: Path, path: Path) -> Iterator[None]:
    """Have errors name the file that was asked for; that of a full disk names none."""
    try:
        yield
    except OSError as error:
        nameless = error.filename is None and error.errno is not None
        if nameless or str(error.filename) == str(written):
            error.filename = str(path)
        raise


def write_text(path: Path, text: str, *, follow: bool = True) -> None:
    """Write a text under its final name only once all of it is written.

    Parameters
    ----------
    path
        The file.
    text
        What is to be in it.
    follow
        As for `replacing`.

    Raises
    ------
    OSError
        If it cannot be written; an old file is then left as it was.
    """
    write_parts(path, [text], follow=follow)


def write_parts(path: Path, parts: Iterable[str], *, follow: bool = True) -> None:
    """Write a text as it is made, under its final name only once all of it is written.

    Parameters
    ----------
    path, follow
        As for `write_text`.
    parts
        What is to be in it, one after the other.

    Raises
    ------
    OSError
        As for `write_text`.
    """
    with replacing(path, follow=follow) as draft, draft.open("w", encoding="utf-8") as stream:
        stream.writelines(parts)
