"""Whether what a warm process has loaded is still what lies on the disk.

To look at each file takes 10 ms and more, a fifth of a small run. So the system tells of changes
(Linux's inotify), and the files are looked at after one. It tells nothing of what other hosts write
into a network's file system: now and then they are looked at without it.
"""

from __future__ import annotations

import ctypes
import os
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

from bridge.install import find_java, find_prism
from bridge.jvm import Runtime
from engines.errors import BridgeError

_PROGRAM = Path(__file__).parents[2]
_PACKAGES = ("bridge", "engines", "prism_hooks")
_CHANGES = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
"""Of inotify: written to, attributes, closed after that, renamed, created, removed."""

_Stamp = tuple[tuple[str, int, int], ...]
"""Path, size and time of change of each file."""


class Installation:
    """The files of prism-gpu, PRISM and Java, and the folders of Python packages.

    Parameters
    ----------
    runtime
        The PRISM and the Java.
    longest_s
        Seconds after which files are looked at though nothing was told.
    """

    def __init__(self, runtime: Runtime, longest_s: float = 2.0) -> None:
        files = [runtime.java.jvm_library, runtime.java.home / "release", *runtime.classpath]
        # Who installs a package makes a folder for it here.
        files += [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
        folders = [_PROGRAM / name for name in _PACKAGES]
        folders += [runtime.prism.class_location, runtime.prism.library_path]
        self._files = [file for file in files if file.exists()]
        self._folders = folders
        self._longest_s = longest_s
        self._runtime = runtime
        self._told = _watched({*self._files, *(each for root in folders for each in _walk(root))})
        self._first = self._stamp()
        self._looked = time.monotonic()

    def has_changed(self) -> bool:
        """Return whether anything is not as it was when this object was made."""
        late = time.monotonic() - self._looked > self._longest_s
        try:
            if not late and self._told is not None and not _read(self._told):
                return False
            self._looked = time.monotonic()
            found = find_prism(), find_java()
            return (
                found != (self._runtime.prism, self._runtime.java) or self._stamp() != self._first
            )
        except (OSError, BridgeError):
            return True

    def _stamp(self) -> _Stamp:
        found = []
        for file in self._files:
            state = file.stat()
            found.append((str(file), 0, state.st_mtime_ns))
        for folder in self._folders:
            found.extend(_below(str(folder)))
        return tuple(sorted(found))


def _walk(root: Path) -> Iterator[Path]:
    """Yield a folder and those below it; a file as it is."""
    yield root
    for folder, names, _ in os.walk(root):
        names[:] = [name for name in names if name != "__pycache__"]
        yield from (Path(folder, name) for name in names)


def _watched(paths: set[Path]) -> int | None:
    """Return a descriptor that tells of changes in folders and files; None where there is none."""
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        return None
    for path in paths:
        if library.inotify_add_watch(descriptor, os.fsencode(path), _CHANGES) < 0:
            os.close(descriptor)
            return None
    return int(descriptor)


def _read(descriptor: int) -> bool:
    """Return whether anything was told, and take it off."""
    told = False
    try:
        while os.read(descriptor, 1 << 16):
            told = True
    except BlockingIOError:
        pass
    return told


def _below(folder: str) -> Iterator[tuple[str, int, int]]:
    if not os.path.isdir(folder):
        state = os.stat(folder)
        yield folder, state.st_size, state.st_mtime_ns
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _below(entry.path)
            else:
                state = entry.stat()
                yield entry.path, state.st_size, state.st_mtime_ns
