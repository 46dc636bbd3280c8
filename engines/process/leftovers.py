"""What a process that a signal ends must not leave behind: drafts, temporary folders, children.

`bridge.ending` calls `remove_all` before the process ends. What is removed is registered before it
is created, so that no moment is left in which it is unknown.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_registered: dict[Path, int] = {}


@contextmanager
def removed_at_end(path: Path) -> Iterator[None]:
    """Have a file or a folder removed if a signal ends the process while the body runs.

    Parameters
    ----------
    path
        What need not exist yet.
    """
    path = path.absolute()
    _registered[path] = _registered.get(path, 0) + 1
    try:
        yield
    finally:
        _registered[path] -= 1
        if not _registered[path]:
            del _registered[path]


@contextmanager
def temporary_folder(
    parent: Path | None = None, *, prefix: str = "prism-gpu-", suffix: str = ""
) -> Iterator[Path]:
    """Yield a new folder, which is removed with all that is in it, however the body ends.

    Parameters
    ----------
    parent
        Where it is made; where the system keeps temporary files by default.
    prefix, suffix
        Of its name.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    name = f"{prefix}{os.urandom(8).hex()}{suffix}"
    folder = (Path(tempfile.gettempdir()) if parent is None else parent) / name
    with removed_at_end(folder):
        folder.mkdir(mode=0o700)
        try:
            with in_use(folder):
                yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def in_use(path: Path) -> Iterator[None]:
    """Show other processes that a draft is being written, while the body runs.

    Parameters
    ----------
    path
        A file or a folder.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def is_in_use(path: Path, *, unknown: bool) -> bool:
    """Return whether a process shows that it writes a draft; see `in_use`.

    Parameters
    ----------
    path
        A file or a folder; a link is not followed.
    unknown
        What is returned where files cannot be locked.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return unknown
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return unknown
    finally:
        os.close(handle)
    return False


def remove_abandoned(path: Path) -> None:
    """Remove the drafts of a file or a folder whose processes were killed.

    Parameters
    ----------
    path
        What the drafts were of: they lie beside it as `.NAME.….part`.
    """
    for draft in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with contextlib.suppress(OSError):
            # What was written to in the last minute is in use, whatever its lock says.
            if time.time() - draft.stat().st_mtime < 60.0:
                continue
            if not is_in_use(draft, unknown=True):
                _remove(draft)


def remove_all() -> None:
    """End the children of this process and remove all that is registered.

    Takes no lock and imports nothing: any thread may be stopped anywhere.
    """
    _kill_children()
    for path in list(_registered):
        _remove(path)


def _remove(path: Path) -> None:
    # A thread may still be writing into a folder.
    for attempt in range(20):
        if attempt:
            time.sleep(0.02)
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        if not os.path.lexists(path):
            return


def _kill_children() -> None:
    for child in _descendants(os.getpid()):
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)


def _descendants(process: int) -> list[int]:
    """Return the processes that a process started, and those that they did; none off Linux."""
    if sys.platform != "linux":
        return []
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            with contextlib.suppress(OSError, ValueError):
                # As bytes: the codec of a text might yet have to be imported.
                children = Path(f"/proc/{process}/task/{thread}/children").read_bytes()
                for child in map(int, children.split()):
                    found += [child, *_descendants(child)]
    return found
