"""The folder of the socket, and who may be at the other end."""

from __future__ import annotations

import contextlib
import os
import resource
import socket

import pytest

from bridge.server import place, wire
from bridge.server.listening import listening, require_fixed_surroundings
from engines.errors import BridgeError

OTHER_USER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "prism-gpu" / f"server-{os.uname().nodename}"


def test_the_folder_for_sockets_comes_first(monkeypatch, folder, tmp_path):
    monkeypatch.setenv("PRISM_GPU_CACHE", str(tmp_path / "cache"))
    assert place.folder_path() == str(folder)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert place.folder_path() == str(tmp_path / "cache" / folder.name)
    for name in ("PRISM_GPU_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert place.folder_path() is None


def test_a_server_listens_in_a_folder_of_its_user_alone(folder):
    with listening():
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / place.SOCKET).exists()
    assert not (folder / place.SOCKET).exists()


def test_there_is_one_server_a_user(folder):
    with listening():
        with (
            pytest.raises(BridgeError, match=f"a server already: process {os.getpid()}"),
            listening(),
        ):
            pass
        assert (folder / place.SOCKET).exists()


def test_a_socket_that_a_killed_server_left_is_replaced(folder):
    folder.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(str(folder / place.SOCKET))
    with listening(), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(str(folder / place.SOCKET))
        assert wire.peer(client) == os.getpid()


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o755])
def test_a_folder_that_is_open_to_others_is_refused(folder, mode):
    folder.mkdir(parents=True)
    folder.chmod(mode)
    with pytest.raises(BridgeError, match="cannot be used"), listening():
        pass
    with pytest.raises(PermissionError):
        place.open_folder(str(folder))


def test_a_link_to_a_folder_is_refused(folder, tmp_path):
    folder.parent.mkdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BridgeError, match="cannot be used"), listening():
        pass


@as_root
def test_a_folder_of_another_user_is_refused(folder):
    folder.mkdir(parents=True, mode=0o700)
    os.chown(folder, OTHER_USER, OTHER_USER)
    with pytest.raises(BridgeError, match="cannot be used"), listening():
        pass


@as_root
@pytest.mark.parametrize("side", ["client", "server"])
def test_another_user_at_the_other_end_is_told_apart(side):
    # An abstract address: whoever knows it can connect.
    address = f"\0prism-gpu-test-{os.urandom(8).hex()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ours:
        if side == "client":
            ours.bind(address)
            ours.listen()
        bound, done = os.pipe(), os.pipe()
        other = os.fork()
        if other == 0:
            with contextlib.suppress(BaseException):
                be_another(side, address, bound[1], done[0])
            os._exit(0)
        if side == "client":
            connection, _ = ours.accept()
        else:
            os.read(bound[0], 1)
            ours.connect(address)
            connection = ours
        with connection:
            assert wire.peer(connection) is None
        os.write(done[1], b"1")
        os.waitpid(other, 0)
        for number in (*bound, *done):
            os.close(number)


def be_another(side: str, address: str, bound: int, done: int) -> None:
    """Be a client or a server of another user, in a process that was forked for it."""
    os.setuid(OTHER_USER)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as theirs:
        if side == "client":
            theirs.connect(address)
        else:
            theirs.bind(address)
            theirs.listen()
        os.write(bound, b"1")
        os.read(done, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [("PRISM_DIR", "prism"), ("PATH", "/usr/bin:"), ("PATH", "bin:/usr/bin"), ("TMPDIR", "here")],
)
def test_no_server_where_a_folder_depends_on_that_of_a_run(name, value, monkeypatch):
    require_fixed_surroundings()
    monkeypatch.setenv(name, value)
    with pytest.raises(BridgeError, match=f"whole paths? in {name}"):
        require_fixed_surroundings()


def test_no_server_where_a_process_may_not_grow(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 30, 1 << 30))
    with pytest.raises(BridgeError, match="address space"):
        require_fixed_surroundings()
