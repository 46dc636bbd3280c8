"""Where the server of a user listens: a folder of mode 700 that is the user's own.

Everything is reached through a descriptor of that folder, so that nobody can put another in its
place between check and use, and the length of its path does not matter.
"""

from __future__ import annotations

import os
import stat

SOCKET = "socket"
LOCK = "lock"
"""Held by the server: a socket without it is what a killed one has left."""


def folder_path() -> str | None:
    """Return where the folder is, or would be; None where the user has no such place.

    It is in the folder that the system has for a user's sockets; else in that for caches, which
    `PRISM_GPU_CACHE` may name.
    """
    # Several hosts may share a cache.
    name = f"server-{os.uname().nodename}"
    for variable, below in (
        ("XDG_RUNTIME_DIR", ("prism-gpu",)),
        ("PRISM_GPU_CACHE", ()),
        ("XDG_CACHE_HOME", ("prism-gpu",)),
        ("HOME", (".cache", "prism-gpu")),
    ):
        named = os.environ.get(variable)
        if named and os.path.isabs(named):
            return os.path.join(named, *below, name)
    return None


def open_folder(path: str) -> int:
    """Return a descriptor of the folder.

    Parameters
    ----------
    path
        Where it is.

    Raises
    ------
    OSError
        If it is not there, is not a folder, or cannot be opened.
    PermissionError
        If it is another user's, or others may do anything in it.
    """
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(folder)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        os.close(folder)
        raise PermissionError(1, "is not a folder of mode 700 of the user's own", path)
    return folder


def inside(folder: int, name: str) -> str:
    """Return a path to what lies in an open folder.

    Parameters
    ----------
    folder
        Its descriptor.
    name
        Of what lies in it.
    """
    return f"/proc/self/fd/{folder}/{name}"
