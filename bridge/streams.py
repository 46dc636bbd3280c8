"""The standard streams of a command: closed ones, pipes that nobody reads, and full disks."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

STANDARD_ERROR = 2


class _Outlet(io.FileIO):
    """Where a standard stream goes; nowhere, once it can no longer be written.

    As in PRISM, a reader that went away does not end the run. Standard output that cannot be
    written for another reason does, as any file does.
    """

    def write(self, data: Any, /) -> int:
        """Write bytes.

        Raises
        ------
        SystemExit
            With exit code 1, when standard output cannot be written.
        """
        try:
            return super().write(data)
        except OSError as error:
            self._close_off()
            if self.fileno() == STANDARD_ERROR or isinstance(error, BrokenPipeError):
                return memoryview(data).nbytes
            print(f"\nError: {error.strerror}: standard output.", file=sys.stderr)
            raise SystemExit(1) from None

    def _close_off(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


def secure_streams() -> None:
    """Make the standard streams of this process such that none of them can end it by a traceback.

    A closed one leads nowhere; else the next file that is opened would be taken for it, and PRISM
    would print its log into that.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= STANDARD_ERROR:
        pass
    os.close(opened)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - it stays open
    sys.stdout = _secured(sys.stdout, sys.__stdout__, 1)
    sys.stderr = _secured(sys.stderr, sys.__stderr__, STANDARD_ERROR)
    for stream in (sys.stdout, sys.stderr):
        # A name out of a file may be no text that can be encoded.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _secured(stream: TextIO | None, original: TextIO | None, number: int) -> TextIO:
    if stream is None:
        return open(number, "w", closefd=False)
    if stream is not original:
        return stream  # Somebody, such as a test, has put it there.
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Outlet(number, "w", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        # A line that cannot be written ends the run while it still can be ended.
        line_buffering=True,
    )
