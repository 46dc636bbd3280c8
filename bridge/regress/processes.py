"""The processes that workers run in: started, given work, kept for more of it, ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from engines.process import child

SERVE = "--serve"
_ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Worker:
    """A process that a task was given to.

    Attributes
    ----------
    process : subprocess.Popen
        The process.
    kind : object
        What all its tasks have in common: engine and JVM.
    tasks : int
        How many it was given.
    """

    process: subprocess.Popen[bytes]
    kind: object
    tasks: int = 1

    @property
    def used(self) -> bool:
        """Whether it had tasks before."""
        return self.tasks > 1


class Processes:
    """Workers' processes.

    Parameters
    ----------
    command
        What starts a worker, before its folder.
    reuse
        Whether a process serves task after task; else each task has one of its own.
    """

    def __init__(
        self,
        command: tuple[str, ...] = child.module("bridge.regress.worker"),
        *,
        reuse: bool = False,
    ) -> None:
        self.reuse = reuse
        self._command = command
        self._running: list[Worker] = []
        self._idle: list[Worker] = []
        self._lock = threading.Lock()
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """Whether no task is taken any more."""
        return self._stopped

    def start(self, folder: Path, place: Path, log: Path, kind: object) -> Worker | None:
        """Give a task to a process; None when no task is taken any more.

        Parameters
        ----------
        folder
            Where the task lies.
        place
            Where it is to run.
        log
            Where the process's output goes.
        kind
            Tasks of one kind may share a process.

        Raises
        ------
        OSError
            When no process can be started.
        """
        log.touch()
        with self._lock:
            if self._stopped:
                return None
            worker = self._again(folder, log, kind) or self._new(folder, place, log, kind)
            self._running.append(worker)
        return worker

    def _again(self, folder: Path, log: Path, kind: object) -> Worker | None:
        for worker in [item for item in self._idle if item.kind == kind]:
            self._idle.remove(worker)
            pipe = worker.process.stdin
            if worker.process.poll() is None and pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.write(f"{folder}\t{log}\n".encode())
                    pipe.flush()
                    worker.tasks += 1
                    return worker
            kill(worker.process)
        return None

    def _new(self, folder: Path, place: Path, log: Path, kind: object) -> Worker:
        path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*self._command, str(folder), *([SERVE] if self.reuse else [])],
                cwd=place,
                stdin=subprocess.PIPE if self.reuse else subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": path},
                # Ctrl-C is for the run as a whole, which then ends its workers.
                start_new_session=True,
            )
        return Worker(process, kind)

    def release(self, worker: Worker, *, whole: bool) -> None:
        """Take a process back.

        Parameters
        ----------
        worker
            The process.
        whole
            Whether it has done its task, and so may be given another.
        """
        with self._lock:
            self._running.remove(worker)
            # After so many tasks, what PRISM leaves behind would pile up.
            kept = whole and self.reuse and not self._stopped and worker.tasks < 25
            if kept:
                self._idle.append(worker)
        if not kept:
            kill(worker.process)

    def stop(self) -> None:
        """End all processes, and start no more."""
        with self._lock:
            self._stopped = True
            workers = [*self._running, *self._idle]
            self._idle.clear()
        for worker in workers:
            kill(worker.process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it started, and wait for its end.

    Parameters
    ----------
    process
        A process that leads a group of its own.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    process.wait()
