"""Progress on a terminal: shown for a long solve, gone at its end and at an interrupt."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

LIMIT_SECONDS = 200
# Some seconds of sweeps on one core.
TANDEM = Path(__file__).parents[2] / "examples" / "models" / "tandem.sm"
LONG = (
    *(str(TANDEM), "-pf", 'R{"customers"}=? [ S ]', "-const", "c=700"),
    *("-jacobi", "-maxiters", "1000000", "-nogpu"),
)
pytestmark = [pytest.mark.prism, pytest.mark.slow]


def watched(*words: str, interrupt_at: str = "") -> str:
    """Return all that a run writes to a terminal; a text in it may bring an interrupt.

    Parameters
    ----------
    words
        Of the command line.
    interrupt_at
        What is waited for before Ctrl-C is typed.
    """
    import fcntl
    import struct
    import termios

    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-m", "bridge", *words])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    seen, begun, typed = b"", time.monotonic(), False
    while time.monotonic() - begun < LIMIT_SECONDS:
        ready, _, _ = select.select([terminal], [], [], 1.0)
        try:
            part = os.read(terminal, 65536) if ready else b""
        except OSError:
            break
        if ready and not part:
            break
        seen += part
        if interrupt_at and not typed and interrupt_at.encode() in seen:
            typed = True
            os.write(terminal, b"\x03")
    os.waitpid(child, 0)
    return seen.decode()


def last_of_lines(text: str) -> list[str]:
    """Return what is left of each line on the screen once all was written."""
    return [line.split("\r")[-1] for line in text.replace("\r\n", "\n").split("\n")]


@pytest.mark.parametrize("front_end", ["prism", "builtin"])
def test_a_long_solve_is_shown_and_the_line_is_gone_in_the_end(prism_install, front_end):
    assert prism_install is not None
    screen = watched(*LONG, "-frontend", front_end)
    assert "sweeps/s, relative change" in screen
    assert any(line.startswith("Result: 700.8") for line in last_of_lines(screen))
    assert not any("sweeps/s" in line for line in last_of_lines(screen))


def test_progress_that_is_switched_off_is_not_shown(prism_install):
    assert prism_install is not None
    assert "sweeps/s" not in watched(*LONG, "-gpuprogress", "off")


def test_an_interrupt_takes_the_line_off(prism_install):
    assert prism_install is not None
    screen = watched(*LONG, interrupt_at="sweeps/s, relative change")
    assert "\x1b[Kprism-gpu: interrupted during long-run average computation" in screen
    assert "Result" not in screen
    assert "Exception" not in screen


def test_into_a_pipe_no_progress_goes(prism_install, tmp_path):
    assert prism_install is not None
    command = [sys.executable, "-m", "bridge", *LONG]
    with (tmp_path / "errors").open("w") as errors:
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=errors, check=True)
    assert (tmp_path / "errors").read_text() == ""
