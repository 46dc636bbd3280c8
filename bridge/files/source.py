"""Text files, plain or compressed, as blocks of whole lines; and the errors that name a line."""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bridge.files.names import COMPRESSIONS, printable
from engines.errors import InvalidModelError
from engines.host.compiled.text import count_lines

Stream: TypeAlias = BinaryIO | gzip.GzipFile | lzma.LZMAFile

BLOCK_BYTES = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"
XZ_MAGIC = b"\xfd7zXZ\x00"
STATES_FOR_FREE = 1 << 20
"""A file may declare this many more states than it has bytes: deadlocks need no line."""


def fail(path: Path, line: int | None, message: str) -> NoReturn:
    """Raise an error that names the file, and the line where there is one.

    Raises
    ------
    InvalidModelError
        Always.
    """
    where = printable(str(path)) + ("" if line is None else f", line {line}")
    raise InvalidModelError(f"{where}: {message}")


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading in binary mode.

    Parameters
    ----------
    path
        The file. A pipe would be waited on, and a device need never end.

    Raises
    ------
    InvalidModelError
        If it is no regular file.
    OSError
        If it cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        fail(path, None, "not a regular file; a model is not read from a pipe or a device")
    return os.fdopen(descriptor, "rb")


@dataclass(frozen=True)
class Section:
    """A text file, or a range of its (decompressed) bytes.

    Parameters
    ----------
    path
        The file; gzip and xz are recognised by content.
    start, stop
        First byte, and the byte after the last one; None for the end of the file.
    first_line
        The number of the first line, for messages.
    """

    path: Path
    start: int = 0
    stop: int | None = None
    first_line: int = 1

    def open(self) -> TextReader:
        """Return a reader at the first line."""
        return TextReader(self)

    def holds(self, claimed: int) -> bool:
        """Tell whether the section has at least `claimed` bytes of text."""
        if self.stop is not None:
            return claimed <= self.stop - self.start
        stored = self.path.stat().st_size
        with open_regular(self.path) as file:
            compressed = _compression(file) is not None
        if not compressed:
            return claimed <= stored - self.start
        # A claim of so little more is believed without measuring.
        if claimed <= 8 * stored:
            return True
        with self.open() as reader:
            return any(reader.consumed >= claimed for _ in reader.blocks())

    def fail(self, line: int | None, message: str) -> NoReturn:
        """Raise an error that names the file and the line; see `fail`."""
        fail(self.path, line, message)


class TextReader:
    """Reads a section once, line by line, then in blocks of whole lines.

    Attributes
    ----------
    line
        Number of the next line.
    consumed
        Bytes handed out so far.
    """

    def __init__(self, section: Section) -> None:
        self.section = section
        self.line = section.first_line
        self.consumed = 0
        self._rest = b""
        self._left = None if section.stop is None else section.stop - section.start
        self._file = open_regular(section.path)
        try:
            self._stream = _decompressed(self._file, section.path)
            self._skip(section.start)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> TextReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()
        self._file.close()

    def readline(self) -> bytes | None:
        """Return the next line without its end, or None at the end of the section."""
        while (end := self._rest.find(b"\n")) < 0:
            more = self._read()
            if not more:
                if not self._rest:
                    return None
                end = len(self._rest)
                break
            self._rest += more
            self._refuse_endless_line(self._rest)
        line, self._rest = self._rest[:end], self._rest[end + 1 :]
        self.line += 1
        self.consumed += end + 1
        return line.rstrip(b"\r")

    def blocks(self) -> Iterator[tuple[NDArray[np.uint8], int]]:
        """Yield the rest in blocks of whole lines: bytes, and number of the first line.

        Every block ends with a line feed.
        """
        ended = False
        while not ended:
            more = self._read()
            ended = not more
            if ended:
                if not self._rest:
                    return
                block, self._rest = self._rest + b"\n", b""
            else:
                end = more.rfind(b"\n") + 1
                if end == 0:
                    self._rest += more
                    self._refuse_endless_line(self._rest)
                    continue
                block, self._rest = self._rest + more[:end], more[end:]
            first = self.line
            text = np.frombuffer(block, dtype=np.uint8)
            self.line += count_lines(text)
            self.consumed += len(block)
            yield text, first

    def fail(self, message: str) -> NoReturn:
        """Raise an error that names the line read last."""
        self.section.fail(max(self.line - 1, self.section.first_line), message)

    def _refuse_endless_line(self, text: bytes) -> None:
        if len(text) > 1 << 24:
            self.section.fail(self.line, "a line of more than 16 MiB; this is no explicit file")

    def _skip(self, bytes_to_skip: int) -> None:
        if bytes_to_skip == 0:
            return
        try:
            self._stream.seek(bytes_to_skip)
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            self._damaged(error)

    def _read(self) -> bytes:
        wanted = BLOCK_BYTES if self._left is None else min(BLOCK_BYTES, self._left)
        if wanted == 0:
            return b""
        try:
            text = self._stream.read(wanted)
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            self._damaged(error)
        if self._left is not None:
            self._left -= len(text)
        return text

    def _damaged(self, error: Exception) -> NoReturn:
        raise InvalidModelError(
            f"{self.section.path}: the compressed file is damaged or cut short, from about line "
            f"{self.line} on ({error}); copy or export it again"
        ) from error


def decoded(section: Section, line: int, text: bytes) -> str:
    """Return the text of a line.

    Raises
    ------
    InvalidModelError
        If it is not UTF-8.
    """
    try:
        return text.decode()
    except UnicodeDecodeError:
        section.fail(line, f"{text[:40]!r} is not UTF-8 text")


def line_start(block: NDArray[np.uint8], line: int) -> bytes:
    """Return the first 60 characters of a line of a block, for messages."""
    return bytes(block).split(b"\n", line + 1)[line].strip()[:60]


def _compression(file: BinaryIO) -> Literal["gz", "xz"] | None:
    """Tell how a file at its first byte is compressed, and leave it there."""
    start = file.read(len(XZ_MAGIC))
    file.seek(0)
    if start.startswith(GZIP_MAGIC):
        return "gz"
    return "xz" if start == XZ_MAGIC else None


def _decompressed(file: BinaryIO, path: Path) -> Stream:
    compression = _compression(file)
    if compression == "gz":
        return gzip.GzipFile(fileobj=file)
    if compression == "xz":
        return lzma.LZMAFile(file)
    if path.suffix in COMPRESSIONS:
        fail(path, None, f"the name says {path.suffix}, but the content is not compressed so")
    return file
