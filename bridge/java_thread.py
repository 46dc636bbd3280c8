"""The one thread of the Python API that calls Java.

PRISM keeps much of a check in static fields and in one native library, so that two checks at once
would disturb each other; and the JVM never forgets a Python thread that has called it. Hence all
work of all sessions is done by one thread, one piece of work after the other, and whoever asks
waits for the answer, where Ctrl-C still reaches them.
"""

from __future__ import annotations

import atexit
import importlib
import os
import sys
import threading
import traceback
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from engines.errors import BridgeError

T = TypeVar("T")

FORKED = (
    "this process was forked from one in which prism-gpu had started a JVM, which does not survive "
    'that: start processes by the method "spawn" or "forkserver" (multiprocessing.get_context), or '
    "open models in the new processes alone"
)
ENDING = "Python is ending: no model can be opened or checked any more"


def jvm_runs() -> bool:
    """Return whether this process has a JVM, or the copy of one that it was forked with."""
    jpype = sys.modules.get("jpype")
    return jpype is not None and bool(jpype.isJVMStarted())


def _jpype() -> Any:
    return importlib.import_module("_jpype")


class Abandoned(Exception):  # noqa: N818 - no error: nobody waits for the outcome
    """Nobody waits for the work any more."""


class _Job(Generic[T]):
    """A piece of work, and its outcome once it is done."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._result: T | None = None
        self.abandoned = False

    def do(self) -> None:
        """Do the work, unless nobody waits for it; keep no Java object alive in another thread."""
        work, self._work = self._work, None
        if work is not None and not self.abandoned:
            try:
                self._result = work()
            except BaseException as error:
                traceback.clear_frames(error.__traceback__)
                self._error = error
        if self.abandoned:
            self._result = None
        self._done.set()

    def outcome(self) -> T:
        """Wait for the work and return its result, or raise its error."""
        try:
            self._done.wait()
        except BaseException:
            self.abandoned = True
            raise
        if self._error is not None:
            error, self._error = self._error, None
            try:
                raise error
            finally:
                del error
        return self._result  # type: ignore[return-value]


class JavaThread:
    """Does work in one thread; one is enough for a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._current: _Job[Any] | None = None
        self._forked = False
        self._ended = False
        self.starts_jvm = False
        """Whether the thread starts the JVM, which cannot be ended while it starts."""
        self._attached = False
        os.register_at_fork(
            before=self._prepare_fork,
            after_in_parent=self._forget_fork,
            after_in_child=self._leave,
        )

    def run(self, work: Callable[[], T]) -> T:
        """Return what some work gives, done in the thread.

        An exception such as KeyboardInterrupt that comes while the caller waits is raised at once;
        the work then ends as soon as it asks, and work that comes later waits for that.

        Parameters
        ----------
        work
            Calls Java.

        Raises
        ------
        BridgeError
            In a process that was forked after the thread had been started, or that ends.
        """
        if threading.current_thread() is self._thread:
            return work()
        self._require_usable()
        job = _Job(work)
        self._started_queue().put(job)
        return job.outcome()

    def later(self, work: Callable[[], object]) -> None:
        """Have work done when its turn comes, and wait for nothing; without effect after a fork.

        Parameters
        ----------
        work
            Calls Java; its errors are nobody's.
        """
        if self.usable:
            self._jobs.put(_Job(work))

    @property
    def usable(self) -> bool:
        """Whether work is still done in this process."""
        return not (self._forked or self._ended)

    def stop_if_abandoned(self) -> None:
        """Raise where nobody waits for the work that the thread does.

        Raises
        ------
        Abandoned
            To leave the work.
        """
        if self._current is not None and self._current.abandoned:
            raise Abandoned("interrupted")

    def _require_usable(self) -> None:
        if self._forked:
            raise BridgeError(FORKED)
        if self._ended:
            raise BridgeError(ENDING)

    def _started_queue(self) -> SimpleQueue[_Job[Any] | None]:
        with self._lock:
            if self._thread is None:
                import jpype  # noqa: F401 - what it does at the end of Python is to come after ours

                atexit.register(self._end)
                thread = threading.Thread(target=self._work, name="prism-gpu", daemon=True)
                # PRISM descends into diagrams and expressions by recursion.
                before = threading.stack_size(64 << 20)
                try:
                    thread.start()
                finally:
                    threading.stack_size(before)
                self._thread = thread
        return self._jobs

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._current = job
            job.do()
            self._current = job = None

    def _prepare_fork(self) -> None:
        """Have the JVM know the thread that forks.

        In the new process JPype goes on to ask Java whether a class is a sequence, say. A thread
        that the JVM does not know would ask to be let in, and wait for threads that are not there.
        """
        if jvm_runs() and not _jpype().isThreadAttachedToJVM():
            _jpype().attachThreadAsDaemon()
            self._attached = True

    def _forget_fork(self) -> None:
        if self._attached:
            self._attached = False
            _jpype().detachThreadFromJVM()

    def _leave(self) -> None:
        """Forget the thread in a forked process; JPype is not to end a JVM that is not there."""
        if jvm_runs():
            self._forked = True
            vars(importlib.import_module("jpype.config"))["onexit"] = False

    def _end(self) -> None:
        """Let the thread end before the JVM does, unless it still does what nobody waits for."""
        self._ended = True
        if self._thread is not None and not self._forked:
            self._jobs.put(None)
            # A JVM that starts is waited for longer than work that nobody waits for.
            self._thread.join(10.0 if self.starts_jvm else 1.0)
            if self._thread.is_alive():
                # The JVM is not to be taken down around it.
                vars(importlib.import_module("jpype.config"))["onexit"] = False


JAVA = JavaThread()
