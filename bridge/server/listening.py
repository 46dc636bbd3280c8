"""The socket of the only server of a user, and what a server needs around it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bridge import ending
from bridge.server import place
from engines.errors import BridgeError
from engines.process import cache

_READS_PATHS = ("PRISM_DIR", "JAVA_HOME", "PRISM_GPU_CACHE", "XDG_RUNTIME_DIR", "TMPDIR")


def require_fixed_surroundings() -> None:
    """Refuse to serve where a run depends on more than what a client can be compared in.

    Raises
    ------
    BridgeError
        Saying in what.
    """
    for name in _READS_PATHS:
        if not os.path.isabs(os.environ.get(name) or "/"):
            raise BridgeError(f"a server needs a whole path in {name}: runs have folders of theirs")
    if any(not os.path.isabs(part) for part in os.environ.get("PATH", "/").split(os.pathsep)):
        raise BridgeError("a server needs whole paths in PATH: runs have folders of their own")
    for kind, name in (
        (resource.RLIMIT_AS, "address space (ulimit -v)"),
        (resource.RLIMIT_DATA, "data (ulimit -d)"),
        (resource.RLIMIT_CPU, "CPU time (ulimit -t)"),
    ):
        if resource.getrlimit(kind)[0] != resource.RLIM_INFINITY:
            raise BridgeError(f"no server where the {name} of a process is limited: runs share one")


@contextmanager
def listening() -> Iterator[socket.socket]:
    """Yield the socket of this user's only server; it is gone afterwards.

    Raises
    ------
    BridgeError
        If there is a server already, or no safe folder for a socket.
    """
    path = place.folder_path()
    if path is None:
        raise BridgeError("there is no folder for the server's socket: name one in PRISM_GPU_CACHE")
    try:
        Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
        refused = cache.refusal(Path(path))
        folder = place.open_folder(path)
    except OSError as error:
        raise BridgeError(f"{path} cannot be used for a socket: {error.strerror}") from error
    if refused is not None:
        os.close(folder)
        raise BridgeError(f"{path} cannot be used for a socket: it {refused}")
    try:
        with _locked(folder), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            socket_path = place.inside(folder, place.SOCKET)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(socket_path)  # of a server that was killed
            listener.bind(socket_path)
            listener.listen()
            listener.setblocking(False)

            def remove() -> None:
                with contextlib.suppress(OSError):
                    os.unlink(socket_path)

            try:
                with ending.first(remove):
                    yield listener
            finally:
                remove()
    finally:
        os.close(folder)


@contextmanager
def _locked(folder: int) -> Iterator[None]:
    """Hold the lock of the only server while the body runs.

    Raises
    ------
    BridgeError
        If another holds it.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(place.inside(folder, place.LOCK), flags, 0o600), "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read().strip() or "unknown"
            raise BridgeError(f"there is a server already: process {holder}") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
