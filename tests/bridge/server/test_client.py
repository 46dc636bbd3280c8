"""The client, against a server that is made up."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.server import place, wire
from bridge.server.listening import listening

ROOT = Path(__file__).parents[3]
HERE = 99
"""The exit code of a client that is told to make its run itself."""
CLIENT = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from bridge.server.client import served
code = served(sys.argv[1:])
sys.exit({HERE} if code is None else code)
"""
LOADED = """
import sys
# How a project is installed may take modules to find the first of its own.
import bridge
before = set(sys.modules)
from bridge.server.client import served
assert served(["model.pm"]) is None
loaded = sorted(set(sys.modules) - before)
import json
print(json.dumps(loaded))
"""


@pytest.fixture
def run_with(tmp_path, monkeypatch):
    """Return a function that runs a client against what a made-up server does with it."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PRISM_GPU_SERVER", "on")

    def run(serve: Callable[[socket.socket], None], *words: str) -> subprocess.CompletedProcess:
        with listening() as listener:
            listener.setblocking(True)
            process = subprocess.Popen(
                [sys.executable, "-c", CLIENT, *words], stdout=subprocess.PIPE, text=True
            )
            connection, _ = listener.accept()
            with connection:
                serve(connection)
            output, _ = process.communicate(timeout=20)
        return subprocess.CompletedProcess(words, process.returncode, output)

    return run


def asked(connection: socket.socket) -> list[bytes]:
    """Return what is asked for, without the files."""
    fields, descriptors = wire.receive(connection)
    for number in descriptors:
        os.close(number)
    return fields


def offer(connection: socket.socket) -> list[int]:
    """Take a run; return the files that came with it."""
    _, descriptors = wire.receive(connection)
    wire.send(connection, [wire.OFFERED, b"%d" % os.getpid()])
    assert wire.receive(connection)[0] == [wire.GO]
    return descriptors


def test_where_no_server_is_nothing_is_loaded(tmp_path):
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "PRISM_GPU_SERVER": "on"}
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, check=True, env=environment
    )
    ours = {"bridge.server", "bridge.server.client", "bridge.server.place"}
    assert set(json.loads(done.stdout)) - {"__future__"} == ours


def test_a_run_ends_with_the_code_that_the_server_tells(run_with):
    def serve(connection):
        descriptors = offer(connection)
        assert len(descriptors) == 4
        os.write(descriptors[1], b"printed")
        assert os.path.samestat(os.fstat(descriptors[3]), os.stat("."))
        for number in descriptors:
            os.close(number)
        wire.send(connection, [wire.ENDED, b"7"])

    done = run_with(serve, "model.pm")
    assert (done.returncode, done.stdout) == (7, "printed")


def test_arguments_arrive_as_they_are(run_with):
    words = ("model\udcff.pm", "", "-pctl", "P=? [ F x=1\n]")

    def serve(connection):
        fields = asked(connection)
        counts = [int(each) for each in fields[2:4]]
        assert fields[4 + sum(counts) :] == [os.fsencode(word) for word in words]
        wire.send(connection, [wire.REFUSED, b"this is a test"])

    assert run_with(serve, *words).returncode == HERE


@pytest.mark.parametrize("moment", ["at once", "before the offer", "no answer"])
def test_a_server_that_dies_before_it_takes_a_run_leaves_it_to_the_command(run_with, moment):
    waiting = threading.Event()

    def serve(connection):
        if moment != "at once":
            asked(connection)
        if moment == "no answer":
            waiting.wait(3.0)

    done = run_with(serve, "model.pm")
    assert (done.returncode, done.stdout) == (HERE, "")


def test_a_server_that_dies_later_is_an_error_in_one_line(run_with):
    def serve(connection):
        descriptors = offer(connection)
        os.write(descriptors[1], b"so far\n")
        for number in descriptors:
            os.close(number)

    done = run_with(serve, "model.pm")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        *("so far", "", "Error: the server of prism-gpu died during this run.")
    ]


@pytest.mark.parametrize("word", ["doctor", "export", "regress", "report", "server", "solve"])
def test_own_commands_do_not_ask(word, tmp_path, monkeypatch):
    from bridge.server.client import served

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PRISM_GPU_SERVER", "on")
    with listening() as listener:
        assert served([word]) is None
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_message_that_is_too_long_leaves_the_run_to_the_command(run_with):
    def serve(connection):
        assert wire.receive(connection) == ([], [])

    assert run_with(serve, *(["x" * 100_000] * 15)).returncode == HERE


def test_a_message_that_is_cut_off_is_none():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, open(os.devnull) as file:
        wire.send(ours, [b"x"] * 9, [file.fileno()] * 9)
        before = os.listdir("/proc/self/fd")
        with pytest.raises(OSError, match="too long"):
            wire.receive(theirs)
        assert os.listdir("/proc/self/fd") == before


def test_the_socket_is_named_in_one_place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = place.folder_path()
    assert path is not None
    with listening():
        assert sorted(os.listdir(path)) == [place.LOCK, place.SOCKET]
