"""The command in processes forked where its modules are loaded; a start from nothing takes 0.6 s.

What a start itself does, such as what it loads, is tested on real ones.
"""

from __future__ import annotations

import functools
import importlib.util
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import Run

LOADED = [
    __name__,
    *(
        "bridge.check.run",
        "bridge.check.checker",
        "bridge.check.distributions",
        "bridge.check.explored",
    ),
    *("bridge.files.umb_writer", "engines.host.engine", "engines.solve.ladder"),
    *("engines.questions.until", "engines.questions.reachability_rewards"),
    *("engines.questions.steady_state", "engines.questions.time_bounded"),
]
"""What most runs load."""


@functools.cache
def _forking() -> multiprocessing.context.ForkServerContext:
    # What cannot be loaded is passed over, and each process would load the rest itself.
    assert all(map(importlib.util.find_spec, LOADED))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    return context


def _become(words: list[str], environment: dict[str, str], folder: str, printed: Path) -> None:
    """Be the command in this process, which has just been forked."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, (name, flags) in enumerate(
        [
            (os.devnull, os.O_RDONLY),
            (printed / "output", os.O_WRONLY | os.O_CREAT),
            (printed / "errors", os.O_WRONLY | os.O_CREAT),
        ]
    ):
        opened = os.open(name, flags)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = ["prism-gpu", *words]
    from bridge.cli import main

    main(words)


def run_warm(
    words: list[str], *, timeout: float, folder: Path | None = None, **environment: str
) -> Run:
    """Run `prism-gpu` to its end, without standard input."""
    with tempfile.TemporaryDirectory() as made:
        printed = Path(made)
        process = _forking().Process(
            target=_become,
            args=(words, {**os.environ, **environment}, str(folder or Path.cwd()), printed),
        )
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(["prism-gpu", *words], timeout)
        output, errors = (
            (printed / name).read_text(encoding="utf-8") for name in ("output", "errors")
        )
        return Run(process.exitcode, output, errors)
