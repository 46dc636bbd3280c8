"""How a run ends, whichever thread ends it and whatever the others are doing.

PRISM ends the process from within Java, a signal from within Python. Nothing is taken down: what
was printed is flushed, what is to be closed is closed, and the process is gone. Taking down the JVM
and CUDA takes a tenth of a second and more, and would crash threads that are still inside.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from engines.process import leftovers


class ExitGate:
    """The gate that threads pass before they tell Java anything; one is enough for a process."""

    def __init__(self) -> None:
        self._closers: list[Callable[[], None]] = []
        self._closing = threading.Lock()
        self._ending = threading.Event()

    def close_at_end(self, close: Callable[[], None]) -> None:
        """Have something closed when the process ends, after what was named before.

        Parameters
        ----------
        close
            Closes it; calls neither Java nor CUDA.
        """
        self._closers.append(close)

    def begin_end(self) -> None:
        """Have threads stop at the gate: the process is about to end."""
        self._ending.set()

    @property
    def ending(self) -> bool:
        """Whether the end has begun."""
        return self._ending.is_set()

    def close(self) -> None:
        """Close what is to be closed, once; what fails keeps nothing else from it."""
        with self._closing:
            while self._closers:
                with contextlib.suppress(Exception):
                    self._closers.pop(0)()

    def end(self, code: int) -> NoReturn:
        """End the process; returns never.

        Parameters
        ----------
        code
            Its exit code.
        """
        self.begin_end()
        try:
            self.close()
            for stream in (sys.stdout, sys.stderr):
                # Who reads them may be gone.
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            # Some of PRISM's libraries print by C's own streams.
            ctypes.CDLL(None).fflush(None)
            leftovers.remove_all()
        finally:
            os._exit(code)

    def stop_if_ending(self) -> None:
        """Stop the calling thread for good once the end has begun: it would print more."""
        if self.ending:
            threading.Event().wait()


GATE = ExitGate()
