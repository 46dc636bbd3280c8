"""One run that is sent a signal, and all that is wrong with how it ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ENDING_S = 20.0
"""Seconds in which a run must have ended."""
GONE_S = 2.0
"""Seconds in which what it started must have ended after it."""
NEVER = ("Traceback", "Exception", "fatal error", "SIGSEGV", "KeyboardInterrupt", "rror:")
PYTHON_STARTING = "Fatal Python error: init_import_site"
RUNPY_STARTING = "Could not import runpy module"
"""How Python ends on Ctrl-C in the first hundredths of a second, whatever it is to run."""


@dataclass(frozen=True)
class Scenario:
    """A command and the moments at which it is sent a signal.

    Parameters
    ----------
    name
        What the moments have in common.
    words
        The command line; "FOLDER" in it is replaced by the run's folder.
    sign
        The start of the line of the log from which the time counts; from the start if empty.
    seconds
        The latest moment.
    prepare
        Puts what the command needs into the run's folder, and returns nothing.
    faults
        Returns what is wrong with the files that the command left in its folder.
    """

    name: str
    words: tuple[str, ...]
    sign: str = ""
    seconds: float = 2.0
    prepare: Callable[[Path], None] = lambda _: None
    faults: Callable[[Path], list[str]] = lambda _: []
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Parameters
    ----------
    code
        The exit code; negative if the signal's own action ended the process.
    seconds
        From the signal to the end.
    faults
        What is wrong with it.
    output
        What it printed, errors included.
    """

    code: int
    seconds: float
    faults: list[str]
    output: str


def send(scenario: Scenario, number: signal.Signals, delay: float) -> Outcome:
    """Start a command, send it a signal and look at what is left.

    Parameters
    ----------
    scenario
        The command.
    number
        The signal.
    delay
        Seconds from the scenario's sign to the signal.
    """
    folder = Path(tempfile.mkdtemp(prefix="signals-"))
    try:
        return _send(scenario, number, delay, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _send(scenario: Scenario, number: signal.Signals, delay: float, folder: Path) -> Outcome:
    work, temporary = folder / "work", folder / "temporary"
    work.mkdir()
    temporary.mkdir()
    scenario.prepare(work)
    there = {path.name for path in work.iterdir()}
    words = [word.replace("FOLDER", str(work)) for word in scenario.words]
    log = folder / "log"
    environment = {
        **os.environ,
        "TMPDIR": str(temporary),
        "PYTHONPATH": str(ROOT),
        **{key: text.replace("FOLDER", str(work)) for key, text in scenario.environment.items()},
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "bridge", *words],
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # Whoever runs this in the background may have it ignore the signals.
            preexec_fn=_default_actions,
            env=environment,
        )
    _await_sign(process, log, scenario.sign)
    time.sleep(delay)
    process.send_signal(number)
    sent = time.monotonic()
    faults = []
    try:
        code = process.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        faults.append("did not end")
        os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    seconds = time.monotonic() - sent
    text = log.read_text(encoding="utf-8", errors="replace")
    if _python_starts(text):
        return Outcome(-number, seconds, [], text)
    if code not in (0, 128 + number, -number):
        faults.append(f"exit code {code}")
    faults += [f"printed {word}" for word in NEVER if code != 0 and word in text]
    faults += [f"left the process {name}" for name in _left(process.pid)]
    faults += [f"left {path}" for path in sorted(temporary.rglob("*")) if path.is_file()]
    faults += [
        f"left {path.name}"
        for path in sorted(work.rglob("*"))
        if path.name.startswith("hs_err") or ".part" in path.name or "building-" in path.name
    ]
    if Path(f"/tmp/hsperfdata_{_user()}/{process.pid}").exists():
        faults.append("left hsperfdata")
    if {path.name for path in work.iterdir()} != there or not scenario.sign:
        faults += scenario.faults(work)
    return Outcome(code, seconds, faults, text)


def _python_starts(text: str) -> bool:
    """Return whether Ctrl-C came before any code of ours has run."""
    ended = text.startswith((PYTHON_STARTING, RUNPY_STARTING, "Traceback"))
    return ended and not any(f"/{name}/" in text for name in ("bridge", "engines", "prism_hooks"))


def _default_actions() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _user() -> str:
    return os.environ.get("USER") or "root"


def _await_sign(process: subprocess.Popen[bytes], log: Path, sign: str) -> None:
    deadline = time.monotonic() + 60
    while sign and process.poll() is None and time.monotonic() < deadline:
        if any(line.startswith(sign) for line in log.read_text("utf-8", "replace").splitlines()):
            return
        time.sleep(0.01)


def _left(session: int) -> list[str]:
    """Return the processes of a session that do not end in a moment; ends them."""
    deadline = time.monotonic() + GONE_S
    while (running := _members(session)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process, _ in running:
        os.kill(process, signal.SIGKILL)
    return [name for _, name in running]


def _members(session: int) -> list[tuple[int, str]]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        name, _, rest = stat.rpartition(")")
        fields = rest.split()
        if int(fields[3]) == session and fields[0] != "Z":
            found.append((int(entry.name), name.partition("(")[2]))
    return found
