"""The worker: a process that does tasks one after the other, and can be ended at any time.

It keeps PRISM and what is compiled, so that a task costs no start. What native code prints goes
nowhere: answers have a pipe of their own.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TextIO

from bridge.reproduce.execute import Failed, Stopped, end_group
from bridge.reproduce.jobs import RUNS, Kind
from engines.process import child

Record = dict[str, Any]
Partial = Callable[[Record], None]
"""Takes what is known so far, and is kept where a task takes longer than it may."""

Task = Callable[[Mapping[str, Any], Partial], Record]


def task_of(kind: Kind) -> Task:
    """Return the function that does a kind of job.

    Parameters
    ----------
    kind
        No run of a program.
    """
    if kind in RUNS:
        raise ValueError(f"{kind} is no task")
    # Each loads much that the others do without.
    task: Task = import_module(f"bridge.reproduce.tasks.{kind}").measure
    return task


class Worker:
    """The other end: gives tasks to a process, which it starts, and ends when they take too long.

    Parameters
    ----------
    device
        "gpu" or "cpu".
    front_end
        "prism" or "builtin".
    prism_dir
        PRISM's folder; empty without PRISM.
    examples
        PRISM's folder of examples; empty where there is none.
    """

    def __init__(self, device: str, front_end: str, prism_dir: str, examples: str = "") -> None:
        self._settings = {"device": device, "front_end": front_end, "examples": examples}
        self._environment = {"PRISM_DIR": prism_dir} if prism_dir else {}
        self._process: subprocess.Popen[str] | None = None
        self._unread = b""

    def _started(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._unread = b""
        self._process = subprocess.Popen(
            child.module("bridge.reproduce.worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **self._environment},
            start_new_session=True,
        )
        return self._process

    def do(self, kind: Kind, parameters: Mapping[str, Any], limit: float) -> Record:
        """Return the result of a task; "status" is "stopped" where only a part of it is there.

        Parameters
        ----------
        kind, parameters
            The task.
        limit
            Seconds that it may take.

        Raises
        ------
        Stopped
            When it takes longer, and nothing is known.
        Failed
            When it ends with an error.
        """
        process = self._started()
        request = {"kind": kind, "parameters": {**self._settings, **parameters}}
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            self.close()
            raise Failed("the worker has ended") from None
        known: Record = {}
        deadline = time.monotonic() + limit
        try:
            while True:
                answer = self._answer(process, deadline - time.monotonic())
                if "error" in answer:
                    raise Failed(answer["error"])
                if "result" in answer:
                    return {"status": "done", **answer["result"]}
                known |= answer["partial"]
        except Stopped:
            self.close()
            if known:
                # A wrong answer stays one, whatever else would have come.
                return {"status": "stopped", **known}
            raise
        except BaseException:
            # What it was at is no longer wanted; a failed task may have left anything.
            self.close()
            raise

    def _answer(self, process: subprocess.Popen[str], seconds: float) -> Record:
        assert process.stdout is not None
        handle = process.stdout.fileno()
        deadline = time.monotonic() + seconds
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([handle], [], [], left)[0]:
                raise Stopped
            data = os.read(handle, 1 << 16)
            if not data:
                code = process.wait()
                why = signal.Signals(-code).name if code < 0 else f"exit code {code}"
                raise Failed(f"the worker ended: {why}")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        answer: Record = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        end_group(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None


def serve(requests: TextIO, answers: TextIO) -> None:
    """Do tasks until there are no more.

    Parameters
    ----------
    requests
        A task a line.
    answers
        Gets a line of JSON with a "result" or an "error" for each, and "partial" ones before.
    """

    def say(**answer: Any) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    for line in requests:
        request = json.loads(line)
        try:
            task = task_of(Kind(request["kind"]))
            say(result=task(request["parameters"], lambda record: say(partial=record)))
        except Exception as error:  # the task's own, of any kind: it is the other end that tells
            say(error=f"{type(error).__name__}: {error}")


def main() -> None:
    """Serve the process that started this one."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    serve(sys.stdin, answers)
    answers.flush()
    # A JVM in the process may have threads that do not end.
    os._exit(0)


if __name__ == "__main__":
    main()
