"""Where the seconds of a run go: at each moment it is at one part of its work.

A part within another counts for itself alone, so that the parts add up to the whole run. What a
thread does beside the run is no part of that, and is told apart.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

STARTING, PRISM, CHECKING, LEAVING = "starting", "PRISM's own work", "checking", "leaving"
STARTING_JAVA, PARSING, BUILDING = "starting Java", "parsing", "building the model"
READING, SEARCHING, ANSWERING = "reading the model", "searching the graph", "answering"
OPENING, LOADING = "opening the GPU", "loading kernels"
SOLVING, SAMPLING = "solving", "sampling paths"
BESIDE = "beside it"


class Timeline:
    """The parts of a run, from the start of its process on.

    Parameters
    ----------
    begun
        When it began, on the clock of `time.perf_counter`.
    """

    def __init__(self, begun: float) -> None:
        self._thread = threading.local()
        self.restart(begun)

    def restart(self, begun: float) -> None:
        """Begin with another run of this process.

        Parameters
        ----------
        begun
            When it began.
        """
        self.begun = self._last = begun
        self._seconds: dict[str, float] = {}
        self._beside: dict[str, float] = {}
        self._parts = [STARTING]

    def turn_to(self, name: str) -> None:
        """Have what is in no part count under another name from now on."""
        self._count()
        self._parts[0] = name

    def begin(self, name: str) -> None:
        """Begin a part, which `end` ends."""
        if not self._is_beside:
            self._count()
            self._parts.append(name)

    def end(self) -> None:
        """End the part that was begun last."""
        if not self._is_beside and len(self._parts) > 1:
            self._count()
            self._parts.pop()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the body as a part."""
        self.begin(name)
        try:
            yield
        finally:
            self.end()

    def counted(self, name: str) -> Callable[[Function], Function]:
        """Return a decorator that counts each call of a function as a part."""

        def decorate(function: Function) -> Function:
            @functools.wraps(function)
            def within(*given: Any, **named: Any) -> Any:
                with self.part(name):
                    return function(*given, **named)

            return cast(Function, within)

        return decorate

    @contextmanager
    def beside(self, name: str) -> Iterator[None]:
        """Count the body, of a thread of its own, as what was done beside the run."""
        self._thread.beside = True
        started = time.perf_counter()
        try:
            yield
        finally:
            self._beside[name] = self._beside.get(name, 0.0) + time.perf_counter() - started

    def told(self) -> str:
        """Return a line that tells the seconds of all parts up to now, in the order they came."""
        self._count()
        whole = self._last - self.begun
        parts = [f"{seconds:.3f} {name}" for name, seconds in self._seconds.items()]
        aside = [f"{seconds:.3f} {name} {BESIDE}" for name, seconds in self._beside.items()]
        return f"{whole:.3f} s in all: " + ", ".join(parts + aside)

    @property
    def _is_beside(self) -> bool:
        return getattr(self._thread, "beside", False)

    def _count(self) -> None:
        now = time.perf_counter()
        name = self._parts[-1]
        self._seconds[name] = self._seconds.get(name, 0.0) + now - self._last
        self._last = now


def _process_start() -> float:
    """Return when this process started, on the clock of `time.perf_counter`; off Linux, now."""
    now = time.perf_counter()
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return now
    return now - age


TIMELINE = Timeline(_process_start())
"""That of this process."""
