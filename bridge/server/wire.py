"""Messages between client, server and worker: fields of bytes, and descriptors of open files.

Each is one packet, so that it arrives as a whole or not at all. No field has a zero byte: they are
arguments, variables and numbers.
"""

from __future__ import annotations

import _socket
import errno
import os
import sys
from collections.abc import Iterable, Sequence

VERSION = b"1"
"""Of what is said here and in `circumstances`."""

# From the client.
RUN, STOP, STATUS = b"run", b"stop", b"status"
GO, SIGNAL, SUSPEND = b"go", b"signal", b"suspend"
# To the client: refused with a reason, offered by a process, ended with an exit code, died of a
# signal.
REFUSED, OFFERED, ENDED, DIED = b"refused", b"offered", b"ended", b"died"
# From the worker: ready, refused with a reason, ended with an exit code and whether it goes on.
READY, FAILED = b"ready", b"failed"

_MOST_BYTES = 1 << 20
_MOST_DESCRIPTORS = 8
_INT = 4


def send(
    connection: _socket.socket, fields: Iterable[bytes], descriptors: Sequence[int] = ()
) -> None:
    """Send a message.

    Parameters
    ----------
    connection
        A connection of packets.
    fields
        What is said.
    descriptors
        Of files that the other end is to have open.

    Raises
    ------
    OSError
        If nobody is there, or the message is too long.
    """
    rights = b"".join(number.to_bytes(_INT, sys.byteorder) for number in descriptors)
    ancillary = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)] if rights else []
    connection.sendmsg([b"\0".join(fields)], ancillary, _socket.MSG_NOSIGNAL)


def receive(connection: _socket.socket) -> tuple[list[bytes], list[int]]:
    """Return the next message: its fields, none at the end, and the descriptors in it.

    Parameters
    ----------
    connection
        A connection of packets.

    Raises
    ------
    OSError
        If none comes in time, it is too long, or the connection is broken.
    """
    data, ancillary, flags, _ = connection.recvmsg(
        _MOST_BYTES, _socket.CMSG_SPACE(_MOST_DESCRIPTORS * _INT), _socket.MSG_CMSG_CLOEXEC
    )
    descriptors = []
    for level, kind, rights in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            descriptors += [
                int.from_bytes(rights[at : at + _INT], sys.byteorder)
                for at in range(0, len(rights) - _INT + 1, _INT)
            ]
    if flags & (_socket.MSG_TRUNC | _socket.MSG_CTRUNC):
        for number in descriptors:
            os.close(number)
        raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
    return data.split(b"\0") if data else [], descriptors


def peer(connection: _socket.socket) -> int | None:
    """Return the process at the other end, or None where it is another user's.

    Parameters
    ----------
    connection
        A connection of this machine.
    """
    credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 3 * _INT)
    process, user = (int.from_bytes(credentials[at : at + _INT], sys.byteorder) for at in (0, _INT))
    return process if user == os.geteuid() else None
