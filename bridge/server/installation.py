"""Whether what a warm process has loaded is still what lies on the disk."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from bridge.jvm import Runtime

_PROGRAM = Path(__file__).parents[2]
_PACKAGES = ("bridge", "engines", "prism_hooks")

Stamp = tuple[tuple[str, int, int], ...]
"""Path, size and time of change of each file."""


def stamp(runtime: Runtime) -> Stamp:
    """Return what shows a change of prism-gpu, PRISM, Java or the Python packages.

    Parameters
    ----------
    runtime
        The PRISM and the Java.
    """
    files = [runtime.java.jvm_library, runtime.java.home / "release", *runtime.classpath]
    # Who installs a package makes a folder for it here.
    files += [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
    folders = [_PROGRAM / name for name in _PACKAGES]
    folders += [runtime.prism.class_location, runtime.prism.library_path]
    found = []
    for file in files:
        if file.exists():
            found.append((str(file), 0, file.stat().st_mtime_ns))
    for folder in folders:
        found.extend(_below(str(folder)))
    return tuple(sorted(found))


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
