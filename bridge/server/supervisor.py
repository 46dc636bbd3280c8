"""The process that owns the socket: takes runs, and has a worker make one after the other.

It has no JVM. A worker that died, or that may not be used again, is followed by a new one, which
warms up before it is needed. A run that comes while there is none that waits is refused; its
command then makes it itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bridge import ending
from bridge.jvm import Runtime, find_runtime
from bridge.server import wire
from bridge.server.circumstances import circumstances, difference
from bridge.server.installation import Installation
from bridge.server.listening import listening, require_fixed_surroundings
from engines.errors import BridgeError
from engines.process import child


@dataclass(frozen=True)
class ServerOptions:
    """When a server and its workers end.

    Parameters
    ----------
    idle_minutes
        Without a run, after which the server ends.
    most_runs
        Of one worker: nothing that runs leave behind grows for ever.
    most_growth_mib
        What a worker may hold after a run beyond what it held before its first.
    most_failed_starts
        Of workers, one after the other, after which the server ends.
    patience_s
        Seconds in which a run must have ended whose client is gone.
    """

    idle_minutes: float = 30.0
    most_runs: int = 200
    most_growth_mib: int = 512
    most_failed_starts: int = 3
    patience_s: float = 15.0


@dataclass
class _Worker:
    """A process that makes runs, and the run that it makes."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    is_ready: bool = False
    client: socket.socket | None = None
    deadline: float | None = None

    @property
    def waits(self) -> bool:
        return self.is_ready and self.client is None


@dataclass
class _Counts:
    """What `--status` tells."""

    served: int = 0
    refused: int = 0
    last_reason: str = ""
    workers: int = 0
    started: float = field(default_factory=time.monotonic)


def serve(options: ServerOptions, announce: Callable[[str], None]) -> None:
    """Take runs until the server is stopped, is idle for too long, or what it runs has changed.

    Parameters
    ----------
    options
        When it ends.
    announce
        Told once that runs are taken.

    Raises
    ------
    BridgeError
        If a run needs something that is missing, no safe folder is there, there is a server
        already, workers do not start, or this is not Linux.
    """
    if sys.platform != "linux":
        raise BridgeError("a server needs Linux, which tells who is at the other end of a socket")
    require_fixed_surroundings()
    runtime = find_runtime()
    with listening() as listener:
        Supervisor(options, runtime, listener, announce).run()


class Supervisor:
    """Takes runs from clients and hands them to a worker.

    Parameters
    ----------
    options
        When it ends.
    runtime
        The PRISM and the Java that runs need.
    listener
        The socket that clients connect to.
    announce
        Told once that runs are taken.
    """

    def __init__(
        self,
        options: ServerOptions,
        runtime: Runtime,
        listener: socket.socket,
        announce: Callable[[str], None],
    ) -> None:
        self._options = options
        self._runtime = runtime
        self._listener = listener
        self._announce: Callable[[str], None] | None = announce
        self._circumstances = circumstances()
        self._installation = Installation(runtime)
        self._poll = select.poll()
        self._asking: dict[int, socket.socket] = {}
        self._stopping: list[socket.socket] = []
        self._counts = _Counts()
        self._failed_starts = 0
        self._ending = False
        self._last_run = time.monotonic()
        self._worker: _Worker | None = None

    def run(self) -> None:
        """Take runs until the end.

        Raises
        ------
        BridgeError
            If workers do not start.
        """
        self._poll.register(self._listener, select.POLLIN)
        with ending.first(self._end_worker):
            try:
                self._start_worker()
                while not self._is_over():
                    self._wait()
            finally:
                self._end_worker()
                for connection in (*self._stopping, *self._asking.values()):
                    connection.close()

    def _is_over(self) -> bool:
        busy = self._worker is not None and self._worker.client is not None
        return self._ending and not busy

    def _wait(self) -> None:
        now = time.monotonic()
        idle_end = self._last_run + 60.0 * self._options.idle_minutes
        worker = self._worker
        busy = self._announce is not None or (worker is not None and worker.client is not None)
        if not busy and now >= idle_end:
            self._ending = True
            return
        ends = [idle_end] if not busy else []
        if worker is not None and worker.deadline is not None:
            ends.append(worker.deadline)
            if now >= worker.deadline:
                worker.process.kill()
                worker.deadline = None
        timeout = max(0.0, min(ends) - now) * 1000 + 1 if ends else None
        for number, events in self._poll.poll(timeout):
            if number == self._listener.fileno():
                self._accept()
            elif number in self._asking:
                self._hear(self._asking[number])
            elif self._worker is not None and number == self._worker.control.fileno():
                self._hear_worker(self._worker)
            elif events & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
                self._client_gone(number)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self._listener.accept()
            if wire.peer(connection) is None:
                connection.close()
                return
            connection.setblocking(False)
            self._asking[connection.fileno()] = connection
            self._poll.register(connection, select.POLLIN)

    def _hear(self, connection: socket.socket) -> None:
        """Read what a client asks for, its first and only message to this process."""
        try:
            fields, descriptors = wire.receive(connection)
        except BlockingIOError:
            return
        except OSError:
            fields, descriptors = [], []
        self._poll.unregister(connection)
        del self._asking[connection.fileno()]
        try:
            if fields[:1] == [wire.RUN]:
                self._take(connection, fields, descriptors)
            elif fields == [wire.STOP]:
                # It is closed with this process, which tells the client.
                self._stopping.append(connection)
                self._ending = True
            else:
                if fields == [wire.STATUS]:
                    _reply(connection, [self.status().encode()])
                connection.close()
        except (ValueError, IndexError):  # no message of ours
            connection.close()
        finally:
            for number in descriptors:
                os.close(number)

    def _take(self, connection: socket.socket, fields: list[bytes], descriptors: list[int]) -> None:
        reason = self._refusal(fields, descriptors)
        worker = self._worker
        if reason is None and worker is not None:
            # The number of its variables, these, and its arguments.
            rest = [fields[3], *fields[4 + int(fields[2]) :]]
            try:
                wire.send(worker.control, rest, [connection.fileno(), *descriptors])
            except OSError as error:
                reason = f"the worker does not answer ({error})"
            else:
                worker.client = connection
                self._poll.register(connection, 0)
                return
        self._refuse(connection, reason or "there is no worker")

    def _refusal(self, fields: list[bytes], descriptors: list[int]) -> str | None:
        """Return why a run is not made here, or None."""
        if self._ending:
            return "the server is ending"
        if self._installation.has_changed():
            self._ending = True
            return "prism-gpu, PRISM or Java has changed"
        if fields[1:2] != [wire.VERSION] or len(descriptors) != 4:
            return "another version of prism-gpu"
        differs = difference(self._circumstances, fields[4 : 4 + int(fields[2])])
        if differs is not None:
            return f"{differs} differs"
        worker = self._worker
        if worker is None or not worker.waits:
            busy = worker is not None and worker.client is not None
            return "busy with another run" if busy else "the worker is starting"
        return None

    def _refuse(self, connection: socket.socket, reason: str) -> None:
        self._counts.refused += 1
        self._counts.last_reason = reason
        _reply(connection, [wire.REFUSED, reason.encode()])
        connection.close()

    def _hear_worker(self, worker: _Worker) -> None:
        try:
            fields, _ = wire.receive(worker.control)
        except OSError:
            fields = []
        if not fields:
            self._bury(worker)
        elif fields[0] == wire.READY:
            worker.is_ready = True
            self._failed_starts = 0
            if self._announce is not None:
                self._last_run = time.monotonic()
                self._announce(f"prism-gpu: server {os.getpid()} takes runs")
                self._announce = None
        elif fields[0] == wire.FAILED:
            raise BridgeError(f"a worker cannot start: {fields[1].decode(errors='replace')}")
        elif fields[0] == wire.REFUSED:
            client = self._release(worker)
            if client is not None:
                self._refuse(client, fields[1].decode(errors="replace"))
        elif fields[0] == wire.ENDED:
            self._run_ended(worker, fields[1], goes_on=fields[2] == b"1")

    def _run_ended(self, worker: _Worker, code: bytes, *, goes_on: bool) -> None:
        client = self._release(worker)
        self._counts.served += 1
        self._last_run = time.monotonic()
        if client is not None:
            _reply(client, [wire.ENDED, code])
            client.close()
        if not goes_on:
            self._replace(worker)

    def _release(self, worker: _Worker) -> socket.socket | None:
        """Return the client of a worker, who waits for another from now on."""
        client, worker.client, worker.deadline = worker.client, None, None
        if client is not None:
            with contextlib.suppress(KeyError):  # it is gone
                self._poll.unregister(client)
        return client

    def _client_gone(self, number: int) -> None:
        """End the run of a client that is gone; the worker may be suspended, or stuck."""
        worker = self._worker
        if worker is None or worker.client is None or worker.client.fileno() != number:
            return
        self._poll.unregister(number)
        worker.deadline = time.monotonic() + self._options.patience_s
        worker.process.send_signal(signal.SIGCONT)

    def _bury(self, worker: _Worker) -> None:
        """Tell the client of a worker that has died, and start another."""
        code = self._wait_for(worker.process)
        client = self._release(worker)
        if client is not None:
            # Some runs end their process, such as those that a signal ends.
            _reply(client, [wire.DIED, b"%d" % -code] if code < 0 else [wire.ENDED, b"%d" % code])
            client.close()
        if not worker.is_ready:
            self._failed_starts += 1
            if self._failed_starts >= self._options.most_failed_starts:
                raise BridgeError(f"workers do not start: they end with exit code {code}")
        self._replace(worker)

    def _wait_for(self, process: subprocess.Popen[bytes]) -> int:
        """Return the exit code of a process that is ending, negative for that of a signal."""
        try:
            return process.wait(self._options.patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _replace(self, worker: _Worker) -> None:
        self._poll.unregister(worker.control)
        worker.control.close()
        self._worker = None
        if not self._ending:
            self._start_worker()
        # It has begun to end.
        self._wait_for(worker.process)

    def _start_worker(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        options = self._options
        numbers = (theirs.fileno(), options.most_runs, options.most_growth_mib)
        with theirs:
            process = subprocess.Popen(
                [*child.module("bridge.server.worker"), *map(str, numbers)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd="/",
                # Ctrl-C at the server's terminal is not for it.
                start_new_session=True,
            )
        self._counts.workers += 1
        self._worker = _Worker(process, ours)
        self._poll.register(ours, select.POLLIN)

    def _end_worker(self) -> None:
        """End the worker, in whose end what it began is cleaned up."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        with contextlib.suppress(OSError):
            worker.process.terminate()
            worker.process.send_signal(signal.SIGCONT)
        self._wait_for(worker.process)

    def status(self) -> str:
        """Return what the server is and does, in lines."""
        counts, worker = self._counts, self._worker
        state = "starting"
        if worker is not None and worker.is_ready:
            state = "waiting for a run" if worker.waits else "busy with a run"
        lines = [
            f"server:  process {os.getpid()}, for {time.monotonic() - counts.started:.0f} s",
            f"PRISM:   {self._runtime.prism.version} in {self._runtime.prism.root}",
            f"worker:  {state}; the {counts.workers}. so far",
            f"runs:    {counts.served} served, {counts.refused} left to their commands",
        ]
        if counts.last_reason:
            lines.append(f"         last because: {counts.last_reason}")
        return "\n".join(lines)


def _reply(connection: socket.socket, fields: list[bytes]) -> None:
    with contextlib.suppress(OSError):
        wire.send(connection, fields)
