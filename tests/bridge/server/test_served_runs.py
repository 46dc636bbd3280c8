"""Runs that a server makes: the same bytes as without it, and a right end whatever is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.server import wire
from bridge.server.client import connected

pytestmark = pytest.mark.prism

ROOT = Path(__file__).parents[3]
DICE = "simple/dice/dice.pm"
COIN = "mdps/consensus/coin2.nm"
RESULT = b"Result: 0.16666666666666666 "
QUICK = (DICE, "-pctl", "P=? [ F d=1 ]")
ENDLESS = (
    *(str(ROOT / "examples/models/tandem.sm"), "-const", "c=255", "-pctl", "R=? [ S ]", "-nogpu"),
    *("-maxiters", "2000000000", "-epsilon", "1e-300", "-power", "-absolute"),
)
RUNS = [
    (DICE, "simple/dice/dice.pctl", "-const", "x=1:3", "-gpuinfo"),
    (DICE, "-pctl", "P=? [ F d=x ]", "-const", "x=1:2", "-exportresults", "results.csv:csv"),
    (COIN, "-const", "K=2", "-pctl", 'Pmax=? [ G F "finished" ]; multi(Pmax=? [ F "agree" ])'),
    (DICE, "-hybrid", "-exporttrans", "stdout", "-exportstates", "states.sta", "-ss", "-tr", "2"),
    (DICE, "-sim", "-simsamples", "90", "-gpusimseed", "4", "-pctl", "P=? [ F d=1 ]", "-explicit"),
    (DICE, "-help"),
    (DICE, "-pctl", "P=? [ F d=1 "),
    (DICE, "-pctl", "R{3}=? [ F d=1 ]", "-exact"),
    (DICE, "-pctl", "P=? [ F d=1 ]", "-mtbdd"),
]
"""Different engines and exports, some with an error, one after the other."""


def timeless(printed: bytes) -> bytes:
    """Return what was printed, without what differs between two runs of one command."""
    printed = re.sub(rb"^Date: .*", b"Date", printed, flags=re.MULTILINE)
    # One that serves has no Java to start.
    printed = re.sub(rb"prism-gpu: [\d.]+ s in all: .*", b"Timeline", printed)
    printed = re.sub(rb"[\d.]+(?:E-?\d+)? (s\b|sec|us|ms|GB/s|% of)", rb"- \1", printed)
    return re.sub(rb"average [\d.e-]+(, setup [\d.]+)?", b"average", printed)


@dataclass(frozen=True)
class Served:
    """A server of the tests' own, and commands that ask it."""

    environment: dict[str, str]
    examples: Path

    def start(self, *options: str) -> subprocess.CompletedProcess[bytes]:
        return self.run("server", "--background", *options)

    def popen(self, *words: str, **how) -> subprocess.Popen[bytes]:
        words = tuple(
            str(self.examples / word) if word.startswith(("simple/", "mdps/")) else word
            for word in words
        )
        environment = {**self.environment, **how.pop("variables", {})}
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **how}
        return subprocess.Popen(
            [sys.executable, "-m", "bridge", *words],
            stderr=subprocess.PIPE,
            env=environment,
            # Whoever runs the tests in the background may have it ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            **how,
        )

    def run(self, *words: str, **how) -> subprocess.CompletedProcess[bytes]:
        with self.popen(*words, **how) as process:
            output, errors = process.communicate(timeout=60)
        return subprocess.CompletedProcess(words, process.returncode, output, errors)

    def status(self, pattern: str) -> str:
        """Return what the status says, by a pattern with one group; nothing where it says none."""
        folder = Path(self.environment["XDG_RUNTIME_DIR"], "prism-gpu")
        try:
            connection = connected(str(folder / f"server-{os.uname().nodename}"), 10.0)
        except OSError:
            return ""
        assert connection is not None
        try:
            wire.send(connection, [wire.STATUS])
            fields, _ = wire.receive(connection)
        finally:
            connection.close()
        found = re.search(pattern, fields[0].decode())
        return found[1] if found else ""

    def await_status(self, text: str) -> None:
        deadline = time.monotonic() + 30
        while not self.status(f"({text})"):
            assert time.monotonic() < deadline, self.status("(?s)(.*)")
            time.sleep(0.02)

    def served(self) -> int:
        return int(self.status(r"(\d+) served"))

    def process(self) -> int:
        return int(self.status(r"process (\d+)"))

    def worker(self) -> int:
        (number,) = (
            Path(f"/proc/{self.process()}/task/{self.process()}/children").read_text().split()
        )
        return int(number)


@pytest.fixture(scope="module")
def server(prism_install, prism_examples, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sockets")
    environment = {
        **os.environ,
        "PRISM_DIR": str(prism_install.root),
        "PYTHONPATH": str(ROOT),
        "XDG_RUNTIME_DIR": str(folder),
        "PRISM_GPU_SERVER": "on",
    }
    found = Served(environment, prism_examples)
    started = found.start()
    assert started.returncode == 0, started
    yield found
    found.run("server", "--stop")


@pytest.fixture
def ready(server):
    """Return the server, when it waits for a run."""
    if not server.status("(process)"):
        assert server.start().returncode == 0
    server.await_status("waiting")
    return server


@pytest.fixture
def busy(ready):
    """Return the server, and the process of a run that it makes, whose log has begun."""
    with ready.popen(*ENDLESS) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(b"Building reward structure"):
                break
        ready.await_status("busy")
        yield ready, process
        if process.poll() is None:
            process.kill()


@pytest.mark.parametrize("words", RUNS, ids=lambda words: " ".join(words[1:])[:40])
def test_a_run_prints_and_writes_the_same_bytes(ready, words, tmp_path):
    folders = {"on": tmp_path / "on", "off": tmp_path / "off"}
    before = ready.served()
    runs = {}
    for switch, folder in folders.items():
        folder.mkdir()
        runs[switch] = ready.run(*words, cwd=folder, variables={"PRISM_GPU_SERVER": switch})
    assert ready.served() == before + 1
    on, off = runs["on"], runs["off"]
    assert timeless(on.stdout) == timeless(off.stdout)
    assert timeless(on.stderr) == timeless(off.stderr)
    assert on.returncode == off.returncode
    files = {
        switch: {path.name: path.read_bytes() for path in folder.iterdir()}
        for switch, folder in folders.items()
    }
    assert files["on"] == files["off"]


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "> out <&- 2>&-", "| head -1", "> /dev/full"])
def test_streams_may_be_closed(ready, closed, tmp_path):
    before = ready.served()
    model = ready.examples / DICE
    line = f"{sys.executable} -m bridge {model} -pctl 'P=? [ F d=1 ]' {closed}"
    done = subprocess.run(
        ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"],
        cwd=tmp_path,
        env=ready.environment,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    printed = (tmp_path / "out").read_bytes() if "> out" in closed else done.stdout
    assert (RESULT in printed) == (closed not in ("| head -1", "> /dev/full"))
    assert ready.served() == before + 1


def test_folders_and_names_are_those_of_the_command(ready, tmp_path):
    before = ready.served()
    folder = tmp_path.joinpath(*["a" * 200] * 8)
    folder.mkdir(parents=True)
    name = "würfel .pm"
    (folder / name).write_bytes((ready.examples / DICE).read_bytes())
    done = ready.run(name, *QUICK[1:], "-exportstates", "-exported", cwd=folder)
    assert RESULT in done.stdout
    assert (folder / "-exported").exists()
    assert ready.served() == before + 1


def test_a_run_in_other_circumstances_is_left_to_its_command(ready):
    before = ready.served()
    done = ready.run(*QUICK, variables={"PRISM_JAVASTACKSIZE": "5m"})
    assert RESULT in done.stdout
    assert ready.status("because: (.*)") == "the variable PRISM_JAVASTACKSIZE differs"
    done = ready.run(*QUICK, "-javastack", "5m")
    assert RESULT in done.stdout
    assert ready.status("because: (.*)") == "other options of the JVM"
    assert ready.served() == before


def test_a_run_that_comes_during_another_is_left_to_its_command(busy):
    server, _ = busy
    assert RESULT in server.run(*QUICK).stdout
    assert server.status("because: (.*)") == "busy with another run"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_a_run_as_without_a_server(busy, number):
    server, process = busy
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    # Nothing, where no solve has begun yet.
    assert re.fullmatch(rb"(\nprism-gpu: interrupted during .*\n)?", errors)
    assert RESULT in server.run(*QUICK).stdout


def test_a_run_that_is_suspended_goes_on_with_its_command(busy):
    server, process = busy
    worker = server.worker()
    process.send_signal(signal.SIGTSTP)
    await_state(worker, "T")
    await_state(process.pid, "T")
    process.send_signal(signal.SIGCONT)
    await_state(worker, "RS")
    process.send_signal(signal.SIGTSTP)
    await_state(worker, "T")
    # A command that is killed then ends its run, too.
    process.kill()
    await_gone(worker)
    assert RESULT in server.run(*QUICK).stdout


def test_a_worker_that_is_killed_is_an_error_in_one_line(busy):
    server, process = busy
    os.kill(server.worker(), signal.SIGKILL)
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (1, b"")
    assert output.endswith(b"\nError: the server of prism-gpu died of signal 9 during this run.\n")
    assert RESULT in server.run(*QUICK).stdout


def test_a_run_goes_on_whose_supervisor_is_killed(busy):
    server, process = busy
    worker = server.worker()
    os.kill(server.process(), signal.SIGKILL)
    assert RESULT in server.run(*QUICK).stdout
    assert server.start().returncode == 0
    server.await_status("waiting")
    assert RESULT in server.run(*QUICK).stdout
    assert process.poll() is None
    process.terminate()
    process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM
    await_gone(worker)


def test_a_second_server_says_so(ready):
    number = ready.process()
    done = ready.run("server")
    assert done.returncode == 1
    assert done.stdout == f"\nError: there is a server already: process {number}.\n".encode()


def test_a_server_ends_by_itself_and_by_a_word(ready):
    worker = ready.worker()
    assert ready.run("server", "--stop").stdout == b"prism-gpu: the server has ended\n"
    await_gone(worker)
    assert ready.run("server", "--status").returncode == 1
    assert ready.start("--idle", "0.01").returncode == 0
    worker = ready.worker()
    await_gone(worker)
    done = ready.run("server", "--status")
    assert (done.returncode, done.stdout) == (1, b"prism-gpu: no server is there\n")


@pytest.mark.slow
def test_fifty_small_runs_take_seconds(ready):
    ready.run(*QUICK)
    before = ready.served()
    started = time.monotonic()
    for _ in range(50):
        assert RESULT in ready.run(*QUICK).stdout
    seconds = time.monotonic() - started
    assert ready.served() == before + 50
    assert seconds < 25.0


def state_of(process: int) -> str:
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]


def await_state(process: int, states: str) -> None:
    deadline = time.monotonic() + 20
    while state_of(process) not in states:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def await_gone(process: int) -> None:
    deadline = time.monotonic() + 20
    while state_of(process) not in ("", "Z"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
