"""Hosts of a network on one machine: network namespaces behind a bridge, with a dask worker each.

The scheduler listens at this end of the bridge. All speak over TLS with a certificate that is made
for the run. Needs root and the command `ip`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import bridge

START_S = 120.0
LOOK_S = 0.02


class NoHosts(Exception):  # noqa: N818 - it is no fault of the program
    """This machine, or this user, cannot have network namespaces."""


@contextlib.contextmanager
def hosts(number: int) -> Iterator[str]:
    """Have so many hosts with a worker each; yield the scheduler's address.

    Dask's settings name the certificate meanwhile.

    Parameters
    ----------
    number
        How many, up to 200.

    Raises
    ------
    NoHosts
        If they cannot be made here.
    """
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise NoHosts("network namespaces need root and the command ip")
    from dask import config

    _remove_left_over()
    name = f"{_NAME}{os.getpid()}"
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prism-gpu-hosts-")))
        files = _certificate(folder)
        names = [f"{name}s", *(f"{name}h{i}" for i in range(number))]
        for namespace in names:
            _ip("netns", "add", namespace)
            stack.callback(_ip, "netns", "del", namespace)
        _connect(name, names)
        settings = {f"distributed.comm.tls.{key}": str(path) for key, path in files.items()}
        stack.enter_context(config.set(settings))
        switches = [word for switch, key in _SWITCHES.items() for word in (switch, str(files[key]))]
        address = _scheduler(folder, switches, stack)
        for namespace in names[1:]:
            worker = [*_dask("worker"), address, "--nthreads", "1", "--no-nanny", *_QUIET]
            inside = ["ip", "netns", "exec", namespace, *worker, *switches]
            _process(inside, folder, stack)
        yield address


def _remove_left_over() -> None:
    """Remove the hosts of processes that were killed."""
    found = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False)
    for line in found.stdout.splitlines():
        name = re.match(rf"{_NAME}(\d+)[sh]", line)
        if name is not None and not Path(f"/proc/{name[1]}").exists():
            _ip("netns", "del", line.split()[0])


_NAME = "pgh"
_SWITCHES = {
    "--tls-ca-file": "ca-file",
    "--tls-cert": "client.cert",
    "--tls-key": "client.key",
}
_QUIET = ("--no-dashboard",)


def _certificate(folder: Path) -> dict[str, Path]:
    distributed: Any = import_module("distributed")
    made = distributed.Security.temporary()
    texts = {
        "ca-file": made.tls_ca_file,
        "client.cert": made.tls_client_cert,
        "client.key": made.tls_client_key,
    }
    files = {}
    for key, text in texts.items():
        files[key] = folder / key
        files[key].touch(mode=0o600)
        files[key].write_text(text, encoding="ascii")
    return files


def _subnet() -> str:
    """Return the first three bytes of this process's addresses, which others leave alone.

    They are of those that are kept for measurements (RFC 2544).
    """
    number = os.getpid()
    return f"198.{18 + number // 256 % 2}.{number % 256}"


def _connect(name: str, names: list[str]) -> None:
    """Connect this end and each host with a bridge, which has a namespace of its own."""
    switch, *ends = names
    _inside(switch, "link", "add", "bridge", "type", "bridge")
    _inside(switch, "link", "set", "bridge", "up")
    for i, end in enumerate(["", *ends]):
        here, there = f"{name}{i}"[:15], f"port{i}"
        _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", switch)
        _inside(switch, "link", "set", there, "master", "bridge", "up")
        address = f"{_subnet()}.{i + 1}/24"
        if end:
            _ip("link", "set", here, "netns", end)
            _inside(end, "addr", "add", address, "dev", here)
            _inside(end, "link", "set", here, "up")
            _inside(end, "link", "set", "lo", "up")
        else:
            _ip("addr", "add", address, "dev", here)
            _ip("link", "set", here, "up")


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoHosts(f"ip {' '.join(words)}: {done.stderr.strip()}")


def _inside(namespace: str, *words: str) -> None:
    _ip("-n", namespace, *words)


def _dask(what: str) -> list[str]:
    return [sys.executable, "-P", "-m", f"distributed.cli.dask_{what}"]


def _scheduler(folder: Path, switches: list[str], stack: contextlib.ExitStack) -> str:
    file = folder / "scheduler.json"
    where = ["--host", f"tls://{_subnet()}.1", "--port", "0", "--protocol", "tls"]
    told = ["--scheduler-file", str(file), *_QUIET]
    process = _process([*_dask("scheduler"), *where, *told, *switches], folder, stack)
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError, ValueError):
            return str(json.loads(file.read_text(encoding="utf-8"))["address"])
        time.sleep(LOOK_S)
    raise NoHosts("dask's scheduler did not start")


def _process(
    command: list[str], folder: Path, stack: contextlib.ExitStack
) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, _import_paths()))},
    )
    stack.callback(_end, process)
    return process


def _import_paths() -> list[str]:
    """Where the processes look for our packages, which a worker has to have."""
    return [str(Path(bridge.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
