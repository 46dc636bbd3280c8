"""How several GPUs meet after each sweep: what others read is sent, and the changes become one.

By flags, a kernel of each device writes into the memory of the others, raises a number there and
waits for theirs: between two sweeps nothing depends on the host or on another device's queue. Where
that cannot be, copies go from memory to memory, and events hold back what comes after them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from engines.arrays import FloatArray
from engines.cuda.driver import cupy
from engines.cuda.modules import BLOCK_THREADS, WARP, Launcher
from engines.cuda.transfer import to_device, to_host
from engines.errors import UnsupportedError


@dataclass(frozen=True)
class MeetingTuning:
    """How devices meet after each sweep.

    Parameters
    ----------
    most_stored_bytes
        Up to so many bytes from one device to another a kernel's stores send them; what is longer
        takes longer than events, and is copied, which leaves the processors alone.
    states_a_thread
        About so many states of those that are sent are a thread's.
    patience_s
        How long a device waits for the others: some hundred times the longest sweep.
    """

    most_stored_bytes: int = 4 << 20
    states_a_thread: int = 4
    patience_s: float = 20.0


class Launched(Protocol):
    """Rows that kernels sweep."""

    @property
    def launcher(self) -> Launcher:
        """What launches kernels on their device."""


Rows = TypeVar("Rows", bound=Launched)


@dataclass(frozen=True)
class Part(Generic[Rows]):
    """A device's share of a solve.

    Parameters
    ----------
    device
        Its number.
    stream
        Where it works.
    rows
        Its block.
    vectors
        The iterate, twice, each of shape (states,).
    windows
        The same from the state on that the block's columns count from.
    states
        The first of the states that the block computes, and the one behind the last.
    done
        Events: its sweep is over and sent, for even and odd sweeps.
    changes, merged
        The largest change of each sweep of a stretch, or whether there was any, shape (longest
        stretch + 1,): of this block, and of all; the first is that of the sweep before the stretch.
    sends
        By the place of each other part, the range of states that is sent to it.
    """

    device: int
    stream: Any
    rows: Rows
    vectors: tuple[Any, Any]
    windows: tuple[Any, Any]
    states: tuple[int, int]
    done: tuple[Any, Any]
    changes: Any
    merged: Any
    sends: dict[int, tuple[int, int]] = field(default_factory=dict)


class Meeting(Protocol):
    """What comes between the sweeps of several devices."""

    def queue(self, sweep: int, written: int) -> None:
        """Queue what comes behind a sweep of all parts.

        Others get what they read of each part, none goes on before all are here, and each finds
        the largest change of all.

        Parameters
        ----------
        sweep
            Number of the sweep in its stretch, from 1 on.
        written
            Which of the two vectors the sweep has written.
        """


class ByEvents:
    """Copies from memory to memory, and events between all streams.

    Parameters
    ----------
    parts
        All shares, in their order.
    """

    def __init__(self, parts: Sequence[Part[Any]]) -> None:
        cp = cupy()
        self._parts = parts
        self._turn = 0
        self._addresses = []
        addresses = np.array([part.changes.data.ptr for part in parts])
        for part in parts:
            with cp.cuda.Device(part.device), part.stream:
                self._addresses.append(to_device(addresses, np.int64))
                part.stream.synchronize()

    def queue(self, sweep: int, written: int) -> None:
        """Queue what comes behind a sweep of all parts; see `Meeting.queue`."""
        cp = cupy()
        self._turn = 1 - self._turn
        for part in self._parts:
            with cp.cuda.Device(part.device), part.stream:
                for reader, (begin, end) in part.sends.items():
                    source = part.vectors[written].data.ptr + 8 * begin
                    target = self._parts[reader].vectors[written].data.ptr + 8 * begin
                    copy_between(target, source, 8 * (end - begin), part.stream)
                part.done[self._turn].record(part.stream)
        for part in self._parts:
            for other in self._parts:
                if other is not part:
                    part.stream.wait_event(other.done[self._turn])
        for part, addresses in zip(self._parts, self._addresses, strict=True):
            with cp.cuda.Device(part.device), part.stream:
                part.rows.launcher.launch(
                    "merge_slots",
                    1,
                    *(addresses, cp.int32(len(self._parts)), cp.int32(sweep), part.merged),
                    module="several",
                    block=1,
                )


class ByFlags:
    """One kernel a device and sweep, which sends, and waits for the others' flags.

    All kernels of a meeting must be able to run at a time, and be queued together whatever happens
    to the host: in one CUDA graph, each device once.

    Parameters
    ----------
    parts
        All shares, in their order.
    tuning
        How long a device waits, among others.

    Notes
    -----
    Numbers of meetings are kept on the devices and never fall, so that nothing has to be cleared
    between two stretches.
    """

    def __init__(self, parts: Sequence[Part[Any]], tuning: MeetingTuning = MeetingTuning()) -> None:
        from cupyx import zeros_pinned

        cp = cupy()
        self._parts, self._tuning = parts, tuning
        count = len(parts)
        # In the host's memory: where nobody is missing, nobody reads or writes it.
        self._missing = zeros_pinned(count, dtype=np.int32)
        self._inboxes, self._own, self._addresses, self._sends = [], [], [], []
        for part in parts:
            with cp.cuda.Device(part.device), part.stream:
                self._inboxes.append(cp.zeros((3, count), dtype=cp.uint64))
                self._own.append(cp.zeros(3, dtype=cp.uint64))
        addresses = np.array([inbox.data.ptr for inbox in self._inboxes])
        for part in parts:
            with cp.cuda.Device(part.device), part.stream:
                self._addresses.append(to_device(addresses, np.int64))
                self._sends.append(tuple(self._sent(part, vector) for vector in (0, 1)))
                # Others write to what has been cleared.
                part.stream.synchronize()

    def _sent(self, part: Part[Any], vector: int) -> Any:
        table = [
            (begin, end, self._parts[reader].vectors[vector].data.ptr)
            for reader, (begin, end) in part.sends.items()
        ]
        return to_device(np.array(table, dtype=np.int64).reshape(-1, 3), np.int64)

    def queue(self, sweep: int, written: int) -> None:
        """Queue what comes behind a sweep of all parts; see `Meeting.queue`."""
        for place in range(len(self._parts)):
            self._come(place, sweep, written)

    def _come(self, place: int, sweep: int, written: int) -> None:
        """Queue what one of the devices does."""
        cp, part = cupy(), self._parts[place]
        launcher, sends = part.rows.launcher, self._sends[place][written]
        states = sum(end - begin for begin, end in part.sends.values())
        blocks = -(-states // (self._tuning.states_a_thread * BLOCK_THREADS))
        blocks = max(1, min(blocks, launcher.processors))
        patience = cp.uint64(self._tuning.patience_s * 1e9)
        with cp.cuda.Device(part.device), part.stream:
            launcher.launch(
                "send_and_meet",
                blocks * BLOCK_THREADS,
                *(part.vectors[written], sends, cp.int32(len(sends))),
                *(self._addresses[place], cp.int32(len(self._parts)), cp.int32(place)),
                *(cp.int32(sweep), self._own[place], part.changes, part.merged),
                *(patience, cp.uintp(self._missing[place:].ctypes.data)),
                module="several",
            )

    def require_all(self) -> None:
        """Raise `UnsupportedError` if a device has waited for another in vain.

        What has been swept since then is of no use.
        """
        for part, missing in zip(self._parts, self._missing, strict=True):
            if missing:
                late = self._parts[missing - 1].device
                raise UnsupportedError(
                    f"GPU {part.device} has waited {self._tuning.patience_s:g} s for GPU {late} "
                    "between two sweeps: another program may hold it up; -gpudevices 1 does with "
                    "one GPU"
                )


class Meetings:
    """How the parts of a solve meet: by flags where these serve, else by events.

    Parameters
    ----------
    parts
        All shares, in their order.
    tuning
        When flags serve, and how long they are waited for.
    """

    def __init__(self, parts: Sequence[Part[Any]], tuning: MeetingTuning = MeetingTuning()) -> None:
        self._by_events = ByEvents(parts)
        self.by_flags = ByFlags(parts, tuning) if flags_serve(parts, tuning) else None
        self._present: Meeting = self._by_events

    @property
    def way(self) -> str:
        """How they meet in what is queued as a whole, for the log."""
        return "events" if self.by_flags is None else "flags"

    @contextmanager
    def queued_as_a_whole(self) -> Iterator[None]:
        """Let what is queued meanwhile be one CUDA graph: only that may wait for flags.

        Where the host queues one thing after the other, it may be stopped in between.
        """
        self._present = self.by_flags or self._by_events
        try:
            yield
        finally:
            self._present = self._by_events

    def queue(self, sweep: int, written: int) -> None:
        """Queue what comes behind a sweep of all parts; see `Meeting.queue`."""
        self._present.queue(sweep, written)

    def require_all(self) -> None:
        """Raise `UnsupportedError` if a device has waited in vain; see `ByFlags.require_all`."""
        if self.by_flags is not None:
            self.by_flags.require_all()


def begin_stretch(parts: Sequence[Part[Any]], fork: Any) -> None:
    """Let all parts begin a stretch of sweeps behind what the first has queued.

    Parameters
    ----------
    parts
        All shares, in their order.
    fork
        An event of the first device's.
    """
    cp = cupy()
    fork.record(parts[0].stream)
    for part in parts:
        with cp.cuda.Device(part.device), part.stream:
            part.stream.wait_event(fork)
            part.changes.data.memset_async(0, part.changes.nbytes, part.stream)


def end_stretch(parts: Sequence[Part[Any]]) -> None:
    """Let what the first part queues next wait for what all others have queued.

    Parameters
    ----------
    parts
        All shares, in their order.
    """
    cp, first = cupy(), parts[0]
    for part in parts[1:]:
        with cp.cuda.Device(part.device), part.stream:
            part.done[0].record(part.stream)
        first.stream.wait_event(part.done[0])


def gather(parts: Sequence[Part[Any]], vector: int, values: FloatArray) -> FloatArray:
    """Copy what each part but the first has computed over the first one's iterate; return that.

    Parameters
    ----------
    parts
        All shares, in their order.
    vector
        Which of the two vectors.
    values
        Shape (states,), on the host.
    """
    cp = cupy()
    for part in parts[1:]:
        first, end = part.states
        with cp.cuda.Device(part.device), part.stream:
            values[first:end] = to_host(part.vectors[vector][first:end])
    return values


def flags_serve(parts: Sequence[Part[Any]], tuning: MeetingTuning = MeetingTuning()) -> bool:
    """Return whether devices may wait for each other by flags.

    Parameters
    ----------
    parts
        All shares. A device that stands for two might run the kernels of one behind those of the
        other.
    tuning
        How much may be sent.
    """
    sent = [8 * (end - begin) for part in parts for begin, end in part.sends.values()]
    once = len({part.device for part in parts}) == len(parts)
    # Each flag is watched by a thread of one warp.
    few = len(parts) <= WARP
    return once and few and max(sent, default=0) <= tuning.most_stored_bytes


def copy_between(target: int, source: int, size: int, stream: Any) -> None:
    """Queue a copy from one device to another, by addresses, such as a CUDA graph can hold.

    Parameters
    ----------
    target, source
        Addresses of device memory.
    size
        Bytes.
    stream
        Where it is queued.
    """
    # Copies that name both devices cannot be captured in a graph; these can.
    runtime = cupy().cuda.runtime
    runtime.memcpyAsync(target, source, size, runtime.memcpyDefault, stream.ptr)
