"""The results of a folder as one file, which takes them to another machine and back."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from datetime import datetime
from pathlib import Path
from typing import Any

from bridge.files.atomic import replacing, write_text
from engines.errors import BridgeError

ARCHIVE = "rows.zip"
"""The archive's name in the folder of the report."""

_MEMBER = re.compile(r"rows/([a-z0-9-]{1,120}\.json)")
_MOST_BYTES = 16 << 20
"""Of a result; the largest, pictures of matrices, have a few hundred kilobytes."""

_NEEDS_PASSWORD = 1
"""Among the flags of a member."""
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError)
"""What reading a damaged archive raises."""


def pack(folder: Path) -> Path | None:
    """Write all results of a folder into one archive; return it, or None where there are none.

    Parameters
    ----------
    folder
        The folder of the report.
    """
    files = sorted((folder / "rows").glob("*.json"))
    if not files:
        return None
    target = folder / ARCHIVE
    with (
        replacing(target) as draft,
        zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for file in files:
            archive.write(file, f"rows/{file.name}")
    return target


def take_in(folder: Path) -> int:
    """Add the results of the archive in a folder to its own; return how many were taken.

    Of two results of one job a whole one counts more than one that was stopped or failed, and else
    the later one.

    Parameters
    ----------
    folder
        The folder of the report.

    Raises
    ------
    BridgeError
        Where the archive is none, or holds anything else.
    """
    source, taken = folder / ARCHIVE, 0
    if not source.is_file():
        return 0
    rows = folder / "rows"
    rows.mkdir(exist_ok=True)
    try:
        with zipfile.ZipFile(source) as archive:
            for info in archive.infolist():
                name = _MEMBER.fullmatch(info.filename)
                if name is None or info.file_size > _MOST_BYTES or not _is_plain(info):
                    raise BridgeError(f"{source} holds {info.filename!r}, which is no result")
                text = archive.read(info).decode("utf-8")
                here = rows / name[1]
                kept = here.read_text(encoding="utf-8") if here.is_file() else ""
                if _rank(text) > _rank(kept):
                    write_text(here, text, follow=False)
                    taken += 1
    except _DAMAGED as error:
        raise BridgeError(f"{source} is no archive of results: {error}") from error
    return taken


def _is_plain(member: zipfile.ZipInfo) -> bool:
    packed = member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    return packed and not member.flag_bits & _NEEDS_PASSWORD


def _rank(text: str) -> tuple[bool, bool, float]:
    """Return what orders results of one job; what is no whole result comes before all."""
    try:
        record: Any = json.loads(text)
        measured = datetime.strptime(record["measured"], "%Y-%m-%d %H:%M:%S %z")
        return True, record["status"] in ("done", "wrong"), measured.timestamp()
    except (ValueError, KeyError, TypeError, RecursionError):
        return False, False, 0.0
