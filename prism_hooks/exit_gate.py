"""A gate that the JVM passes before it ends the process.

PRISM ends the process from within Java, whatever our threads are doing. One that is inside CUDA, or
inside its compiler, would find the libraries torn down below it. So the JVM waits, at most for
some seconds, until such a thread has left; the threads stop by themselves once the end has begun.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

WARM_UP, SOLVE, ENDING, CLOSING = range(4)
"""Bytes of the memory that Java shares: who is busy, whether the end has begun, and whether
something is to be closed then."""
LOOK_S = 0.02
"""How often who closes something looks whether the end has begun."""


class ExitGate:
    """The gate of a process; one is enough."""

    def __init__(self) -> None:
        self._flags = bytearray(4)
        self._closers: list[Callable[[], None]] = []

    def install(self) -> None:
        """Make the running JVM wait at the gate when it ends."""
        import jpype
        import jpype.nio

        # Shared memory, because nobody may call into a JVM that is ending.
        buffer = jpype.nio.convertToDirectBuffer(self._flags)
        jpype.JClass("prismgpu.Launcher").awaitAtExit(buffer)

    @contextmanager
    def busy(self, who: int) -> Iterator[None]:
        """Keep the JVM from ending while the body runs; a body that comes too late never does.

        Nor does one return to Java that comes to its end too late, with an error or without: JPype
        would be gone, and the process would crash.

        Parameters
        ----------
        who
            `WARM_UP` or `SOLVE`.
        """
        self._flags[who] = 1
        self.stop_if_ending(who)
        try:
            yield
        finally:
            self._flags[who] = 0
            if who == SOLVE:
                self.stop_if_ending(who)

    @contextmanager
    def away(self, who: int) -> Iterator[None]:
        """Let the JVM end while the body runs, within `busy`, and calls neither Java nor CUDA.

        Parameters
        ----------
        who
            `WARM_UP` or `SOLVE`.
        """
        self._flags[who] = 0
        try:
            yield
        finally:
            self._flags[who] = 1
            self.stop_if_ending(who)

    @contextmanager
    def imports_unwound(self) -> Iterator[None]:
        """Leave the body with the next module that this thread imports once the end has begun.

        However the body is left, the JVM forgets the thread. One in which Python gave up a Java
        object is known to it, and it waits 0.3 s for such a thread when it ends, even where the
        thread itself has ended.
        """
        import jpype

        watcher = _Imports(self, threading.get_ident())
        sys.meta_path.insert(0, watcher)
        try:
            yield
        except _Ending:
            pass
        finally:
            sys.meta_path.remove(watcher)
            jpype.detachThreadFromJVM()

    def close_at_end(self, close: Callable[[], None]) -> None:
        """Have something closed once the end has begun, which waits for that.

        Parameters
        ----------
        close
            Closes it, in a thread of its own, after what was named before; calls neither Java nor
            CUDA.
        """
        self._closers.append(close)
        if len(self._closers) > 1:
            return
        self._flags[CLOSING] = 1

        def wait() -> None:
            while not self.ending:
                time.sleep(LOOK_S)
            with ExitStack() as first_to_last:
                first_to_last.callback(self._closed)
                for each in reversed(self._closers):
                    first_to_last.callback(each)

        threading.Thread(target=wait, name="close-at-end", daemon=True).start()

    def _closed(self) -> None:
        self._flags[CLOSING] = 0

    def begin_end(self) -> None:
        """Have the threads stop, and what is to be closed closed, though the JVM is not ending."""
        self._flags[ENDING] = 1

    def await_closed(self) -> None:
        """Wait until what is to be closed is."""
        while self._flags[CLOSING]:
            time.sleep(LOOK_S)

    @property
    def ending(self) -> bool:
        """Whether the end has begun."""
        return bool(self._flags[ENDING])

    def stop_if_ending(self, who: int) -> None:
        """Stop the calling thread for good once the end has begun.

        Parameters
        ----------
        who
            `WARM_UP` or `SOLVE`.
        """
        if self.ending:
            self._flags[who] = 0
            threading.Event().wait()


class _Ending(BaseException):
    """Unwinds a thread, past all that handles errors of imports."""


class _Imports:
    """Finds no module, but looks at each whether the end has begun.

    Packages like CuPy take a third of a second, and a thread that stopped for good within one
    would hold what others wait for.
    """

    def __init__(self, gate: ExitGate, thread: int) -> None:
        self._gate, self._thread = gate, thread

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """Find nothing; see `importlib.abc.MetaPathFinder.find_spec`."""
        del name, path, target
        if self._gate.ending and threading.get_ident() == self._thread:
            raise _Ending


GATE = ExitGate()
