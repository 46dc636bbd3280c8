"""How a command ends on SIGINT, SIGTERM and SIGHUP: silently, with the exit code of PRISM.

A handler in Python runs in the main thread alone, which may be inside Java or a long solve; and an
exception out of one may come in the middle of an import, where others take it for a failure. So the
handler only stops the main thread, and a thread of its own, which the interpreter wakes through a
pipe, cleans up and ends the process.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from engines.process import leftovers

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SIGNALLED = 128
"""Added to a signal's number gives the exit code, as for the JVM and for shells."""
PATIENCE_S = 10.0
"""Seconds for what is to be done first, such as the writing of results."""
FLUSH_S = 0.2
"""Seconds for what was printed: who reads it may have stopped reading."""
_ERASE_LINE = b"\r\x1b[K"

_first: list[Callable[[], None]] = []
_caught: list[int] = []
_stopped: list[int] = []


def watch() -> None:
    """End the process on a signal from now on. A signal that is ignored stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is _stop:
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        threading.Thread(target=_serve, args=(reader,), name="signals", daemon=True).start()
    except RuntimeError:
        return  # No thread can be started: the signals' own actions have to do.
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    _handle(_stop)


def do_first(work: Callable[[], None]) -> None:
    """Have something done before a signal ends the process.

    Parameters
    ----------
    work
        Runs in a thread of its own, while the main thread stands still wherever it is: it imports
        nothing and takes no lock that the main thread may hold.
    """
    _first.append(work)


@contextmanager
def first(work: Callable[[], None]) -> Iterator[None]:
    """Have something done before a signal ends the process, if it comes while the body runs.

    Parameters
    ----------
    work
        As for `do_first`.
    """
    do_first(work)
    try:
        yield
    finally:
        _first.remove(work)


def within(seconds: float, work: Callable[[], None]) -> None:
    """Do something in a thread of its own, and wait for it for a while.

    Parameters
    ----------
    seconds
        The longest time to wait.
    work
        What is done. An exception is its end.
    """
    # What `threading` starts a thread with, without its locks: another thread, stopped for good,
    # may hold them.
    done = _thread.allocate_lock()

    def attempt() -> None:
        with contextlib.suppress(Exception):
            work()
        done.release()

    done.acquire()
    with contextlib.suppress(RuntimeError):
        _thread.start_new_thread(attempt, ())
        done.acquire(timeout=seconds)


@contextmanager
def interrupting() -> Iterator[None]:
    """Have each of the signals raise KeyboardInterrupt in the main thread while the body runs.

    For work of many parts that reports what it has done so far; see `exit_code`.
    """

    def interrupt(number: int, _: FrameType | None) -> None:
        _caught.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pipe = signal.set_wakeup_fd(-1)
    before = _handle(interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(pipe, warn_on_full_buffer=False)


def exit_code() -> int:
    """Return the exit code of a command that a signal interrupted."""
    return SIGNALLED + (_caught[0] if _caught else signal.SIGINT)


def _handle(handler: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, Any]:
    """Set the handler of all signals that are not ignored; return those they had."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    kept = {number: old for number, old in before.items() if old not in (signal.SIG_IGN, None)}
    for number in kept:
        signal.signal(number, handler)
    return kept


def _stop(number: int, _: FrameType | None) -> None:
    """Stop the main thread for good. A second signal ends the process at once."""
    if not (_stopped or sys.is_finalizing()):
        _stopped.append(number)
        # Far longer than the other thread takes.
        time.sleep(PATIENCE_S * (len(_first) + 2))
    os._exit(SIGNALLED + number)


def _serve(reader: int) -> None:
    while True:
        for number in os.read(reader, 1):
            if number in SIGNALS:
                _end(SIGNALLED + number)


def _end(code: int) -> None:
    try:
        within(FLUSH_S, _flush)
        for work in reversed(_first):
            within(PATIENCE_S, work)
        if os.isatty(2):
            os.write(2, _ERASE_LINE)
        within(PATIENCE_S, leftovers.remove_all)
    finally:
        os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
