"""Sweeps that are queued as a whole: no wait of the host between two of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from engines.arrays import FloatArray
from engines.cuda.driver import cupy
from engines.cuda.transfer import to_device

STRETCH = 64
"""Sweeps captured in one CUDA graph; even, so that a replay ends in the vector it began with."""

HISTORY = 4096
"""The most sweeps between two looks of the host."""


class QueuedSweeps(ABC):
    """Two vectors that change places after each sweep, and CUDA graphs of stretches of sweeps.

    Each sweep notes its change, and perhaps more, on the device. One that finds the change of its
    predecessor below the threshold does nothing: the last iterate is that of the first such sweep.
    """

    stretches: tuple[int, ...]
    """The numbers of sweeps that are queued as a whole, even, the largest first; a small one is for
    what is left of a batch: to queue a sweep by itself takes longer than a small sweep. None where
    sweeps are not captured; then a batch is of at most `STRETCH`."""

    seconds: float
    """Wall-clock seconds that the sweeps have taken, by the device's own events."""

    _device: int
    _stream: Any
    _stop_below: float

    def _make_room(self, width: int = 0) -> None:
        """Make room for what sweeps note, on the current device; nothing has been swept yet.

        Parameters
        ----------
        width
            How many numbers a sweep notes, its change the first; 0 for its change alone.
        """
        cp, noted = cupy(), (width,) if width else ()
        # Slot 0 holds the change before a stretch of sweeps; before the first, infinity.
        slots = np.zeros((max(self.stretches, default=STRETCH) + 1, *noted))
        slots.flat[0] = np.inf
        self._slots = to_device(slots, np.float64)
        self._history = cp.empty((HISTORY, *noted))
        self._length = cp.empty(1, dtype=cp.int32)
        self._events = (cp.cuda.Event(), cp.cuda.Event())
        self._graphs: dict[tuple[int, int], Any] = {}
        self._last: FloatArray | None = None
        self._current = 0
        self.seconds = 0.0

    @abstractmethod
    def _stretch(self, sweeps: int) -> None:
        """Queue sweeps from the present vector on, and what keeps their notes."""

    def _graph(self, sweeps: int) -> Any:
        """Return the graph of an even number of sweeps from the present vector."""
        which = (sweeps, self._current)
        if which not in self._graphs:
            self._stream.begin_capture()
            self._stretch(sweeps)
            self._graphs[which] = self._stream.end_capture()
        return self._graphs[which]

    def _batch(self, sweeps: int) -> FloatArray:
        """Make sweeps, to the first below the threshold; return what each has noted.

        Where the last one was below it, none is made, and that one's notes are returned.
        """
        if self._last is not None and self._last.flat[0] < self._stop_below:
            return self._last
        sweeps = min(sweeps, HISTORY)
        with cupy().cuda.Device(self._device), self._stream:
            began, ended = self._events
            self._length.data.memset_async(0, self._length.nbytes, self._stream)
            rest, graphs = sweeps, []
            for stretch in self.stretches:
                replays, rest = divmod(rest, stretch)
                if replays:
                    graphs += replays * [self._graph(stretch)]
            began.record(self._stream)
            for graph in graphs:
                graph.launch(self._stream)
            if rest:
                self._stretch(rest)
            ended.record(self._stream)
            noted: FloatArray = self._history[:sweeps].get()
            self.seconds += cupy().cuda.get_elapsed_time(began, ended) / 1e3
        met = noted.reshape(sweeps, -1)[:, 0] < self._stop_below
        done = int(met.argmax()) + 1 if met.any() else sweeps
        self._current = (self._current + done) % 2
        self._last = noted[done - 1 : done]
        return noted[:done]
