"""The tar archive around a UMB file: plain, or a gz or xz stream.

Python's `tarfile` is not used: it allocates what a header claims before it looks at the file, and
it offers no way to refuse a member before its bytes are read.
"""

from __future__ import annotations

import gzip
import lzma
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from bridge.files.names import printable
from bridge.files.source import GZIP_MAGIC, XZ_MAGIC, open_regular
from engines.errors import InvalidModelError, UnsupportedError

Bytes: TypeAlias = NDArray[np.uint8]

INDEX_NAME = "index.json"
BLOCK = 512
# The formats' own bounds: no deflate stream grows more than 1,032 times, no LZMA stream more than
# 7,100 times (a repeated match of 273 bytes costs 14 decisions of at least 0.022 bits).
GROWTH_LIMIT = {"gz": 1032, "xz": 7100}

_MAGIC = {GZIP_MAGIC: "gz", XZ_MAGIC: "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
_FILE_TYPES = (b"0", b"\0", b"7")
_TYPE_NAMES = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a FIFO",
    b"S": "a sparse file",
}


@dataclass(frozen=True)
class Promise:
    """The bytes that `index.json` promises for a member: exactly so many, or at most."""

    size: int
    exact: bool = True


class _Source:
    """Where an archive's bytes come from, front to back: a file, or what decompresses it.

    Parameters
    ----------
    stream
        The bytes.
    where
        How messages name the file.
    limit
        The most bytes that it can hold.
    streamed
        Whether it is decompressed: only then must all be read that is skipped.
    """

    def __init__(self, stream: BinaryIO, where: str, limit: int, *, streamed: bool) -> None:
        self.streamed = streamed
        self._stream = stream
        self._where = where
        self._limit = self._left = limit

    def restart(self) -> None:
        """Go back to the first byte; only where nothing is decompressed."""
        self._stream.seek(0)
        self._left = self._limit

    def take(self, size: int, what: str) -> Bytes:
        """Return the next bytes, in an array of their own that no change of the file alters."""
        self._count(size, what)
        try:
            taken: Bytes = np.empty(size, np.uint8)
        except MemoryError:
            raise InvalidModelError(
                f"{self._where}: {what} claims {size} bytes, more than the memory holds"
            ) from None
        rest = memoryview(cast("bytearray", taken))
        while rest:
            got = self._read_into(rest[: 2**24])
            if got == 0:
                raise InvalidModelError(
                    f"{self._where}: {what} needs {size} bytes, but the data ends after "
                    f"{size - len(rest)}: it is truncated, or the size is wrong"
                )
            rest = rest[got:]
        return taken

    def skip(self, size: int, what: str) -> None:
        """Leave out the next bytes."""
        if not self.streamed:
            self._count(size, what)
            self._stream.seek(size, os.SEEK_CUR)
            return
        while size > 0:
            size -= len(self.take(min(size, 2**20), what))

    def finish(self) -> None:
        """Read a stream to its end, where its checksum is."""
        if not self.streamed:
            return
        most = 2**20
        trailer = bytearray(most + 1)
        read = 0
        while read <= most and (got := self._read_into(memoryview(trailer)[read:])):
            read += got
        if read > most:
            raise InvalidModelError(f"{self._where}: the stream goes on after the archive's end")

    def _count(self, size: int, what: str) -> None:
        if size > self._left:
            if self.streamed:
                raise InvalidModelError(
                    f"{self._where}: {what} claims {size} bytes, more than the compressed file can "
                    "hold"
                )
            raise InvalidModelError(
                f"{self._where}: {what} needs {size} bytes, but the file ends after {self._left}: "
                "it is truncated, or the size is wrong"
            )
        self._left -= size

    def _read_into(self, buffer: memoryview) -> int:
        try:
            return self._stream.readinto(buffer)  # type: ignore[attr-defined, no-any-return]
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise InvalidModelError(f"{self._where}: damaged compressed file: {error}") from None
        except MemoryError:
            raise InvalidModelError(
                f"{self._where}: the memory does not hold what decompressing it needs"
            ) from None


class Archive:
    """The members of a UMB file: first the index, then the arrays that it promises.

    Use it in a `with` statement; the arrays are copies, and outlive the file.

    Parameters
    ----------
    path
        The file: a tar archive, plain or compressed with gzip or xz.

    Raises
    ------
    InvalidModelError
        The file is no archive, is damaged, or holds what UMB files do not: links, devices, two
        members of one name, or a name that leaves the archive.
    UnsupportedError
        It is compressed otherwise.
    """

    def __init__(self, path: Path) -> None:
        self._where = printable(str(path))
        self._files: list[BinaryIO] = [open_regular(path)]
        self._version = self._file_version()
        self._names: set[str] = set()
        self._source: _Source
        try:
            self._source = self._open_source(self._files[0])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        while self._files:
            self._files.pop().close()

    def _open_source(self, file: BinaryIO) -> _Source:
        head = file.read(8)
        size = file.seek(0, 2)
        file.seek(0)
        kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
        if kind is None:
            if size < BLOCK:
                raise InvalidModelError(f"{self._where}: {size} bytes are no UMB file")
            return _Source(file, self._where, size, streamed=False)
        if kind not in GROWTH_LIMIT:
            raise UnsupportedError(
                f"{self._where}: compressed with {kind}; UMB files are plain, gz or xz"
            )
        opener = gzip.open if kind == "gz" else lzma.open
        stream = cast("BinaryIO", opener(file, "rb"))
        self._files.append(stream)
        limit = size * GROWTH_LIMIT[kind] + 2**16
        return _Source(stream, self._where, limit, streamed=True)

    def read_index(self) -> bytes:
        """Return the text of `index.json`."""
        while (member := self._next()) is not None:
            name, size = member
            if name == INDEX_NAME:
                if size > 64 * 2**20:
                    raise InvalidModelError(f"{self._where}: {INDEX_NAME} claims {size} bytes")
                return bytes(self._content(name, size))
            if self._source.streamed:
                # What comes before the index could not be held against its promises.
                raise InvalidModelError(
                    f"{self._where}: {name} comes before {INDEX_NAME}, which must be a compressed "
                    "file's first member; decompress the file"
                )
            self._skip_content(name, size)
        raise InvalidModelError(f"{self._where}: no {INDEX_NAME} in it: not a UMB file")

    def load(self, promises: Mapping[str, Promise], other_bytes: int) -> dict[str, Bytes]:
        """Return the promised members that are there, each an array of its own.

        Parameters
        ----------
        promises
            The members of interest, and their sizes by the index.
        other_bytes
            How many bytes of other members a compressed file may hold.
        """
        found: dict[str, Bytes] = {}
        if not self._source.streamed:
            # Some members may come before the index.
            self._source.restart()
            self._names.clear()
        while (member := self._next()) is not None:
            name, size = member
            if name in promises:
                self._check_size(name, size, promises[name])
                found[name] = self._content(name, size)
                continue
            other_bytes -= size
            if self._source.streamed and other_bytes < 0:
                raise InvalidModelError(
                    f"{self._where}: {name} of {size} bytes: {INDEX_NAME} promises no such bytes"
                )
            self._skip_content(name, size)
        self._source.finish()
        if self._file_version() != self._version:
            raise InvalidModelError(f"{self._where}: the file was changed while it was read")
        return found

    def _file_version(self) -> tuple[int, int]:
        status = os.fstat(self._files[0].fileno())
        return status.st_size, status.st_mtime_ns

    def _check_size(self, name: str, size: int, promise: Promise) -> None:
        if size == promise.size or (size < promise.size and not promise.exact):
            return
        bound = "" if promise.exact else "at most "
        raise InvalidModelError(
            f"{self._where}: {name} has {size} bytes, but by {INDEX_NAME} it has "
            f"{bound}{promise.size}"
        )

    def _content(self, name: str, size: int) -> Bytes:
        content = self._source.take(size, name)
        self._source.skip(-size % BLOCK, f"the padding of {name}")
        return content

    def _skip_content(self, name: str, size: int) -> None:
        self._source.skip(size + -size % BLOCK, name)

    def _next(self) -> tuple[str, int] | None:
        """Return the next member's name and size, or None at the end of the archive."""
        overrides: dict[str, str] = {}
        while True:
            header = bytes(self._source.take(BLOCK, "the next tar header"))
            if not any(header):
                return None
            self._check_checksum(header)
            name, size, kind = self._parse_header(header)
            if kind in (b"x", b"g", b"L"):
                if size > 2**20:
                    raise InvalidModelError(
                        f"{self._where}: an extended tar header claims {size} bytes"
                    )
                content = bytes(self._content("an extended tar header", size))
                if kind == b"x":
                    overrides |= self._parse_pax(content)
                elif kind == b"L":
                    overrides["path"] = self._text(content.rstrip(b"\0"))
                continue
            name = overrides.get("path", name)
            if "size" in overrides:
                size = self._decimal(overrides["size"], name)
            if kind == b"5":
                overrides = {}
                continue
            return self._checked_name(name, kind, overrides), size

    def _checked_name(self, name: str, kind: bytes, overrides: Mapping[str, str]) -> str:
        if kind not in _FILE_TYPES or any(key.startswith("GNU.sparse") for key in overrides):
            what = _TYPE_NAMES.get(kind, "not a plain file")
            raise InvalidModelError(f"{self._where}: member {name!r} is {what}")
        if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
            raise InvalidModelError(
                f"{self._where}: the path of member {name!r} leaves the archive"
            )
        name = printable(name.removeprefix("./"))
        if name in self._names:
            raise InvalidModelError(f"{self._where}: member {name!r} is there twice")
        most = 100_000
        if len(self._names) >= most:
            raise InvalidModelError(f"{self._where}: more than {most} members")
        self._names.add(name)
        return name

    def _check_checksum(self, header: bytes) -> None:
        unsigned = sum(header) - sum(header[148:156]) + 8 * ord(" ")
        if self._number(header[148:156]) != unsigned:
            raise InvalidModelError(f"{self._where}: not a tar archive, or a damaged tar header")

    def _parse_header(self, header: bytes) -> tuple[str, int, bytes]:
        name = header[:100].split(b"\0")[0]
        prefix = header[345:500].split(b"\0")[0]
        if prefix and header[257:263] == b"ustar\0":
            name = prefix + b"/" + name
        return self._text(name), self._number(header[124:136]), header[156:157]

    def _number(self, field: bytes) -> int:
        if field[0] == 0x80:
            return int.from_bytes(field[1:], "big")
        digits = field.strip(b" \0")
        if not re.fullmatch(rb"[0-7]*", digits):
            raise InvalidModelError(f"{self._where}: not a tar archive, or a damaged tar header")
        return int(digits or b"0", 8)

    def _text(self, name: bytes) -> str:
        try:
            return name.decode()
        except UnicodeDecodeError:
            raise InvalidModelError(f"{self._where}: member name {name!r} is not UTF-8") from None

    def _decimal(self, digits: str, name: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", digits, re.ASCII):
            raise InvalidModelError(f"{self._where}: member {name!r} claims {digits[:40]!r} bytes")
        return int(digits)

    def _parse_pax(self, content: bytes) -> dict[str, str]:
        """Return a PAX header's records, each written as `length key=value` and a line feed."""
        records: dict[str, str] = {}
        while content.strip(b"\0"):
            length_text, space, _ = content.partition(b" ")
            length = int(length_text) if re.fullmatch(rb"[0-9]{1,7}", length_text) else 0
            key, equals, value = content[len(length_text) + 1 : length].partition(b"=")
            if not (space and equals and value.endswith(b"\n") and length <= len(content)):
                raise InvalidModelError(f"{self._where}: damaged extended tar header")
            records[self._text(key)] = self._text(value[:-1])
            content = content[length:]
        return records
