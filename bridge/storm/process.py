"""Running Storm, and what it says."""

from __future__ import annotations

import importlib.metadata
import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bridge.language.ast import Value
from engines.errors import BridgeError, DeviceMemoryError, InvalidModelError

INSTALL = 'pip install "prism-gpu[storm]"'
_OLDEST = 2
_WORKER = Path(__file__).with_name("worker.py")
_WARNING = re.compile(r"WARN *\([^)]*\): (?P<text>.*)")
_NAMELESS = "std::exception"
# Storm's advice on its own dialect; what PRISM means by these commands is what is built.
_BESIDE_THE_POINT = (
    "uses probabilistic commands like they are used in PRISM",
    "uses synchronizing Markovian commands",
)
_EXCEPTION = re.compile(r"^(?:\w+Exception: )+")
_FILE_AND_LINE = re.compile(r"^Error in (?P<file>.*?), line (?P<line>\d+): (?P<text>.*)", re.DOTALL)
_LINE_AND_COLUMN = re.compile(
    r"^Parsing error at (?P<line>\d+):(?P<column>\d+): *(?P<text>.*)", re.DOTALL
)


def unavailable() -> str | None:
    """Return why Storm cannot be used, with the command that helps; None where it can be."""
    version = storm_version()
    if version is None:
        return f"The embedded front end needs stormpy, which is not installed: {INSTALL}"
    if int(re.match(r"\d*", version)[0] or 0) < _OLDEST:  # type: ignore[index]
        return f"The embedded front end needs stormpy {_OLDEST}, not {version}: {INSTALL}"
    return None


def storm_version() -> str | None:
    """Return the version of the installed stormpy, or None."""
    try:
        return importlib.metadata.version("stormpy")
    except importlib.metadata.PackageNotFoundError:
        return None


def import_failure() -> str | None:
    """Import Storm in a process of its own; return what goes wrong, with the command that helps.

    It takes most of a second, and finds what `unavailable` cannot see: a library that is missing.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", "import stormpy"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return None
    last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
    return f"{last}{_missing_library(last)}"


def run_storm(model: Path, constants: Mapping[str, Value], umb: Path, *, source: str) -> list[str]:
    """Let Storm build a model and write it as UMB.

    Parameters
    ----------
    model
        The model's text as Storm's parser takes it.
    constants
        The values of the constants that it does not define.
    umb
        The file to write.
    source
        What error messages call the model.

    Returns
    -------
    Storm's warnings, each once.

    Raises
    ------
    InvalidModelError
        With Storm's message, for what its parser or builder refuses.
    DeviceMemoryError
        When the memory did not suffice.
    BridgeError
        When Storm crashed.
    """
    request = {"model": str(model), "constants": dict(constants), "umb": str(umb)}
    done = subprocess.run(
        [sys.executable, "-P", str(_WORKER)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode == -signal.SIGKILL:
        raise _out_of_memory(source, "the system ended its process")
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise BridgeError(
            f"{source}: Storm crashed ({name}); a division by zero in the model is one cause"
        )
    if done.returncode > 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BridgeError(f"{source}: Storm cannot run: {last}{_missing_library(last)}")
    answer = json.loads(done.stdout)
    if "error" in answer:
        if answer["memory"]:
            raise _out_of_memory(source, answer["error"])
        raise InvalidModelError(error_text(answer["error"], source))
    return _warnings(done.stderr)


def error_text(message: str, source: str) -> str:
    """Return Storm's message with the model's name and the line in front.

    Parameters
    ----------
    message
        What Storm raised.
    source
        What to call the model.
    """
    text = _EXCEPTION.sub("", message).strip()
    if text == _NAMELESS:
        return f"{source}: Storm refuses the model without a reason; is every name in it declared?"
    if found := _FILE_AND_LINE.match(text):
        return f"{source}, line {found['line']}: {found['text']}"
    if found := _LINE_AND_COLUMN.match(text):
        return f"{source}, line {found['line']}, column {found['column']}: {found['text']}"
    return f"{source}: {text}"


def _missing_library(message: str) -> str:
    """Return what installs a library that the system lacks; stormpy's wheel counts on this one."""
    if "libatomic" in message:
        return " (on Debian and its kin: apt-get install libatomic1)"
    return ""


def _out_of_memory(source: str, why: str) -> DeviceMemoryError:
    return DeviceMemoryError(
        f"{source}: this machine's memory does not suffice to build the model with Storm ({why})"
    )


def _warnings(log: str) -> list[str]:
    found = (_WARNING.match(line) for line in log.splitlines())
    texts = (match["text"].strip() for match in found if match is not None)
    kept = (text for text in texts if not any(idle in text for idle in _BESIDE_THE_POINT))
    return list(dict.fromkeys(kept))
