"""Has a server make this run, where there is one that would make it the same way."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
"""As in `typing`, which is not loaded: every command comes by here."""

if TYPE_CHECKING:
    import _socket
    from collections.abc import Sequence
    from types import FrameType

SWITCH = "PRISM_GPU_SERVER"
"""The variable that keeps a command from asking: "off"."""
OWN_COMMANDS = ("doctor", "export", "regress", "report", "reproduce", "server", "solve")
_SIGNALLED = 128


def served(words: Sequence[str], patience_s: float = 2.0) -> int | None:
    """Return the exit code of a run that the server has made; None where it is to be made here.

    Where it is to be made here nothing has been printed yet, and nothing was opened.

    Parameters
    ----------
    words
        The arguments, without the program's name.
    patience_s
        Seconds in which the server must take the run.
    """
    if sys.platform != "linux" or os.environ.get(SWITCH) == "off" or not words:
        return None
    if words[0] in OWN_COMMANDS:
        return None
    from bridge.server import place

    path = place.folder_path()
    if path is None or not os.path.exists(os.path.join(path, place.SOCKET)):
        return None
    try:
        connection = connected(path, patience_s)
        worker = None if connection is None else _taker(connection, words)
    except OSError:
        return None
    # From here on it has begun there, and is not made here, too.
    return None if connection is None or worker is None else _exit_code(connection, worker)


def connected(path: str, patience_s: float) -> _socket.socket | None:
    """Return a connection to the server of this user; None where there is none.

    Parameters
    ----------
    path
        The folder of the server.
    patience_s
        Seconds to wait for it, now and later.

    Raises
    ------
    OSError
        If there is no server, or the folder is not this user's alone.
    """
    import _socket

    from bridge.server import place

    # What is opened must not take the place of a standard stream that is closed.
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(opened)
    folder = place.open_folder(path)
    try:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        connection.settimeout(patience_s)
        connection.connect(place.inside(folder, place.SOCKET))
    finally:
        os.close(folder)
    from bridge.server import wire

    return None if wire.peer(connection) is None else connection


def _taker(connection: _socket.socket, words: Sequence[str]) -> int | None:
    """Have the server begin the run; return the process that makes it, None where it is refused."""
    from bridge.server import wire
    from bridge.server.circumstances import circumstances, decides

    os.getcwd()  # Java does not start in a folder that was removed.
    folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    ours = circumstances()
    others = [b"=".join(each) for each in os.environb.items() if not decides(each[0])]
    counts = b"%d" % len(ours), b"%d" % len(others)
    fields = [wire.RUN, wire.VERSION, *counts, *ours, *others, *map(os.fsencode, words)]
    try:
        wire.send(connection, fields, (0, 1, 2, folder))
    finally:
        os.close(folder)
    answer, _ = wire.receive(connection)
    if not answer or answer[0] != wire.OFFERED:
        return None
    wire.send(connection, [wire.GO])
    return int(answer[1])


def _exit_code(connection: _socket.socket, worker: int) -> int:
    """Wait for the end of the run; return its exit code."""
    from bridge.server import wire

    caught = _pass_signals_on(connection, worker)
    connection.settimeout(None)
    try:
        answer, _ = wire.receive(connection)
    except OSError:
        answer = []
    if answer and answer[0] == wire.ENDED:
        return int(answer[1])
    return _SIGNALLED + caught[0] if caught else _told_of_end(answer)


def _pass_signals_on(connection: _socket.socket, worker: int) -> list[int]:
    """Pass on the signals that end a run, and those that suspend it; return those that came."""
    import _signal  # type: ignore[import-not-found]  # What `signal` is made of has no stub.

    from bridge.server import wire

    caught: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        if caught:
            os._exit(_SIGNALLED + number)
        caught.append(number)
        _send(wire.SIGNAL, b"%d" % number)

    def suspend(_: int, __: FrameType | None) -> None:
        _send(wire.SUSPEND)
        os.kill(os.getpid(), _signal.SIGSTOP)
        # Here again: the user has it go on.
        try:
            os.kill(worker, _signal.SIGCONT)
        except OSError:
            return

    def _send(*fields: bytes) -> None:
        try:
            wire.send(connection, fields)
        except OSError:
            return  # The run is over.

    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
        if _signal.getsignal(number) is not _signal.SIG_IGN:
            _signal.signal(number, end)
    if _signal.getsignal(_signal.SIGTSTP) == _signal.SIG_DFL:
        _signal.signal(_signal.SIGTSTP, suspend)
    return caught


def _told_of_end(answer: list[bytes]) -> int:
    """Say that the run did not come to its end; return the exit code."""
    from bridge.refusals import error_line
    from bridge.server import wire
    from engines.errors import BridgeError

    how = f" of signal {answer[1].decode()}" if answer and answer[0] == wire.DIED else ""
    text = f"the server of prism-gpu died{how} during this run"
    try:
        print(error_line(BridgeError(text)), flush=True)
    except OSError:
        return 1
    return 1
