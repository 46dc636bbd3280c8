"""Fixtures for the whole suite: the installed PRISM, and runs of our command and PRISM's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from bridge.install import PrismInstall, find_java, find_prism, require_compiler
from engines.errors import BridgeError

# Machines with other work to do are no reason to fail: the whole suite has a time limit. Usually
# examples are few and the same each time; CONTRIBUTING.md says how to look for others.
settings.register_profile("ours", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("long", deadline=None, max_examples=2_000)
settings.load_profile("ours")

# Who runs the suite may have a server, which would make the runs of the tests.
os.environ["PRISM_GPU_SERVER"] = "off"

# Who runs the suite in the background may ignore these, and so would what the tests start.
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, usual)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Make the cases that a sample of a test's leaves out slow ones."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("slow"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for every in cases.values():
        (number,) = every[0].get_closest_marker("sampled").args
        taken = {place * len(every) // number for place in range(number)}
        for place, item in enumerate(every):
            if place not in taken:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def prism_install() -> PrismInstall:
    """Return the installed PRISM; without one, or without a JDK, the test is skipped."""
    try:
        install = find_prism()
        require_compiler(find_java())
    except BridgeError as error:
        pytest.skip(f"needs PRISM and a JDK: {str(error).splitlines()[0]}")
    return install


@pytest.fixture(scope="session")
def prism_examples(prism_install: PrismInstall) -> Path:
    """Return PRISM's own folder of examples, beside or inside its installation."""
    folder = prism_install.beside("prism-examples")
    if folder is None:
        pytest.skip(f"needs PRISM's examples: there is no prism-examples by {prism_install.root}")
    return folder


@dataclass(frozen=True)
class Run:
    """What a finished command printed."""

    code: int
    output: str
    errors: str

    def results(self) -> list[str]:
        """Return the values of PRISM's `Result:` lines."""
        lines = [line for line in self.output.splitlines() if line.startswith("Result")]
        return [line.partition(": ")[2].split(" (")[0] for line in lines]

    def numbers(self) -> list[float]:
        """Return the numeric results."""
        return [float(value) for value in self.results()]


def run_command(command: list[str], *, timeout: float, **environment: str) -> Run:
    """Run a command to its end, without standard input."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    return Run(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def served(prism_install: PrismInstall, tmp_path_factory: pytest.TempPathFactory):
    """Start a server of the tests' own; return the environment of commands that ask it.

    With `PRISM_GPU_TEST_SERVER=off` each command makes its own run, which takes twice as long.
    """
    alone = os.environ.get("PRISM_GPU_TEST_SERVER") == "off"
    folder = tmp_path_factory.mktemp("server")
    folder.chmod(0o700)
    environment = {
        "PRISM_DIR": str(prism_install.root),
        "PRISM_GPU_SERVER": "off" if alone else "on",
        "XDG_RUNTIME_DIR": str(folder),
    }
    if alone:
        yield environment
        return
    server = [sys.executable, "-m", "bridge", "server"]
    run_command([*server, "--background"], timeout=120, **environment)
    yield environment
    run_command([*server, "--stop"], timeout=120, **environment)


@pytest.fixture(scope="session")
def prism_gpu(served: dict[str, str]):
    """Return a function that runs `prism-gpu`, by the server where that makes such runs.

    `PRISM_GPU_TEST_SWITCHES` names switches for every run: with `-gpu`, the whole suite is solved
    on the GPU.
    """
    switches = os.environ.get("PRISM_GPU_TEST_SWITCHES", "").split()

    def run(*words: object, timeout: float = 300, **environment: str) -> Run:
        command = [sys.executable, "-m", "bridge", *map(str, words), *switches]
        return run_command(command, timeout=timeout, **{**served, **environment})

    return run


@pytest.fixture(scope="session")
def prism(prism_install: PrismInstall):
    """Return a function that runs PRISM's own command."""

    def run(*words: object, timeout: float = 300, **environment: str) -> Run:
        script = str(prism_install.root / "bin" / "prism")
        return run_command([script, *map(str, words)], timeout=timeout, **environment)

    return run
