"""An archive of the classes that a run loads, which Java maps instead of reading and checking them.

It takes a third off the CPU seconds of a small run. The first run that checks a property makes it
as it ends: Java writes down what is loaded then. It holds for one Java and one list of jars, so it
is kept in the cache under these; where Java finds it unfit nonetheless, it reads the classes.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import resource
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bridge.install import JavaInstall
from engines.errors import CacheError
from engines.process.cache import cache_folder, found, kept
from engines.process.leftovers import temporary_folder
from prism_hooks.exit_gate import GATE

OLDEST_JAVA = 13
"""The first Java that writes such archives."""
ARCHIVE = "classes.jsa"
ROOM = 64 << 20
"""Bytes: an archive has about 10 million, and others write to the same disk."""
QUIET = "-Xlog:cds*=off"
"""Else the standard output has lines on classes left out, or on an archive that is unfit."""


class ClassArchive:
    """The archive of a Java and a class path, in the cache or to be made.

    Parameters
    ----------
    java
        The Java that is started.
    classpath
        Its jars, then its folders, of whose classes there is no archive.

    Attributes
    ----------
    jars
        What may be on the class path where the archive is made and used.
    """

    def __init__(self, java: JavaInstall, classpath: Sequence[Path]) -> None:
        self.jars = tuple(path for path in classpath if path.is_file())
        self._name: str | None = None
        self._making = ExitStack()
        self._written: Path | None = None
        if java.major >= OLDEST_JAVA:
            with contextlib.suppress(OSError):
                self._name = f"archive-{_key(java, self.jars)}"

    def options(self, *, make: bool) -> list[str]:
        """Return Java's options, by which it uses the archive, or writes it.

        Parameters
        ----------
        make
            Whether one is to be made where there is none; see `keep`.
        """
        folder = None if self._name is None else found(self._name)
        if folder is not None:
            return [f"-XX:SharedArchiveFile={folder / ARCHIVE}", QUIET]
        if self._name is None or not make or not _has_room():
            return []
        with contextlib.suppress(CacheError, OSError):
            # One that a killed run leaves is removed from there by a later run.
            making = temporary_folder(cache_folder(), prefix="writing-")
            self._written = self._making.enter_context(making) / ARCHIVE
            return [f"-XX:ArchiveClassesAtExit={self._written}", QUIET]
        return []

    def keep(self) -> None:
        """End the JVM, for it to write the archive if one is to be made, and keep that.

        Nothing can be said of it that matters to who runs a model: a next run tries again.
        """
        if self._name is None or self._written is None:
            return
        import jpype

        # The JVM ends with the last of its threads; PRISM may leave some waiting for work.
        if int(jpype.JClass("prismgpu.Launcher").threads()) > 1:
            return
        GATE.begin_end()
        jpype.shutdownJVM()
        written = self._written
        with self._making, contextlib.suppress(CacheError, OSError):
            kept(self._name, lambda folder: _move(written, folder / ARCHIVE), lambda _: None)


def _has_room() -> bool:
    """Return whether an archive can be written whole: where it cannot, Java ends with an error."""
    largest = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if largest != resource.RLIM_INFINITY and largest < ROOM:
        return False
    with contextlib.suppress(CacheError, OSError):
        return shutil.disk_usage(cache_folder()).free >= ROOM
    return False


def _move(source: Path, target: Path) -> None:
    shutil.move(source, target)


def _key(java: JavaInstall, jars: Sequence[Path]) -> str:
    """Return a hash of what Java compares, the times of change of jars among it."""
    support = importlib.util.find_spec("_jpype")
    origin = Path(support.origin) if support is not None and support.origin else Path()
    parts = [java.version]
    # The jar of JPype, which it adds by itself, changes with its library.
    for path in [java.jvm_library, origin, *jars]:
        stat = path.stat()
        parts.append(f"{path} {stat.st_size} {stat.st_mtime_ns}")
    return hashlib.sha256(os.pathsep.join(parts).encode()).hexdigest()[:32]
