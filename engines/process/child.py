"""Processes that this one starts: what they may import, and that they end with it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

# It reads a pipe whose other end is in our process alone: the end of the pipe is our own end. All
# that it starts is in its group of processes.
_SUPERVISOR = """
import os, signal, sys, threading
def watch():
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)
threading.Thread(target=watch, daemon=True).start()
nothing = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=nothing)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)
"""


def end_with_parent() -> None:
    """Ask the system to end this process when the one that started it ends."""
    if sys.platform == "linux":
        set_death_signal = 1
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def module(name: str) -> tuple[str, ...]:
    """Return the command that runs a module of ours in a Python of its own.

    Nothing is imported from the working folder, where ``python -m`` and ``python -c`` look first:
    it may be somebody else's.

    Parameters
    ----------
    name
        Such as `bridge`.
    """
    start = (
        "import runpy, sys; "
        f"root = {str(Path(__file__).parents[2])!r}; "
        "root in sys.path or sys.path.insert(0, root); "
        f"runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"
    )
    return (sys.executable, "-P", "-c", start)


def run(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, or to ours: nothing that it started outlives this process.

    Parameters
    ----------
    command
        The path of a program, and its arguments.
    environment
        Variables beside those of this process.

    Returns
    -------
    The exit code, and what was written to the standard output and error.

    Raises
    ------
    OSError
        If it cannot be run.
    """
    variables = {**os.environ, **(environment or {})}
    if not sys.executable:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
            env=variables,
        )
    if not os.access(command[0], os.X_OK):
        os.stat(command[0])
        raise PermissionError(13, os.strerror(13), command[0])
    supervised = [sys.executable, "-I", "-S", "-c", _SUPERVISOR, *command]
    their_end, our_end = os.pipe()
    try:
        process = subprocess.Popen(
            supervised,
            stdin=their_end,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=variables,
            start_new_session=True,
        )
        try:
            output, errors = process.communicate()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    finally:
        os.close(their_end)
        os.close(our_end)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
