"""The classes that plug the engines into PRISM: relinked, compiled once, kept in the cache.

They lie in a jar, and PRISM's own in a copy of theirs: of classes in folders Java keeps no archive.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path

from engines.errors import BridgeError
from engines.process import child
from engines.process.cache import kept
from prism_hooks.relink import iter_class_files, relink

COMPILER_MODULE = "jdk.compiler/com.sun.tools.javac.Main"
HOOKS_JAR, PRISM_JAR = "hooks.jar", "prism.jar"


def hook_sources(name: str) -> dict[str, bytes]:
    """Return the Java sources of a set of hooks, by file name.

    Parameters
    ----------
    name
        The folder below `prism_hooks/java`.
    """
    folder = files("prism_hooks.java").joinpath(name)
    sources = {
        entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name.endswith(".java")
    }
    if not sources:
        raise BridgeError(f"prism-gpu is incomplete: it has no Java sources {name!r}")
    return sources


def hook_classes(
    class_location: Path,
    classpath: Iterable[Path],
    java_home: Path,
    java_version: str,
    hooks: str,
    constructors: Mapping[str, str],
    statics: Mapping[str, str],
) -> tuple[Path, Path]:
    """Return the jar of relinked and compiled classes, and one of PRISM's own.

    Both are built now or found in the cache; a jar of PRISM's stays where it is.

    Parameters
    ----------
    class_location
        PRISM's classes: a folder or a jar.
    classpath
        PRISM's whole class path, for the compiler.
    java_home, java_version
        The Java whose compiler is used, and its version.
    hooks
        The set of our Java sources.
    constructors, statics
        What is relinked to what, as `prism_hooks.relink.relink` takes them.

    Raises
    ------
    BridgeError
        When the cache cannot be used, PRISM's classes cannot be read, or the compiler fails.
    """
    sources = hook_sources(hooks)
    recipe = hashlib.sha256(
        json.dumps(
            [java_version, hooks, sorted(constructors.items()), sorted(statics.items())]
        ).encode()
    )
    for name in sorted(sources):
        recipe.update(name.encode() + b"\0" + sources[name] + b"\0")

    def make(folder: Path) -> None:
        changed = relink(class_location, constructors, statics)
        _build(folder, changed, sources, hooks, list(classpath), java_home)

    prism = _prism_classes(class_location)
    content = (prism / "key").read_text("ascii")
    name = f"hooks-{content[:16]}-{recipe.hexdigest()[:16]}"
    hooks_jar = kept(name, make, lambda folder: folder / HOOKS_JAR)
    return hooks_jar, prism / PRISM_JAR if class_location.is_dir() else class_location


def _prism_classes(location: Path) -> Path:
    """Return the folder with a hash of PRISM's classes, as `key`, and with their jar.

    Reading two thousand files takes longer than starting PRISM, so the hash is remembered under
    their names, sizes and times of change.
    """

    def make(folder: Path) -> None:
        content = hashlib.sha256()
        classes = dict(iter_class_files(location))
        for name, data in classes.items():
            content.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
        (folder / "key").write_text(content.hexdigest(), encoding="ascii")
        if location.is_dir():
            _write_jar(folder / PRISM_JAR, classes)

    try:
        stamp = _stamp(location)
    except OSError as error:
        raise BridgeError(f"cannot read the Java classes in {location}: {error}") from error
    return kept(f"prism-{stamp}", make, lambda folder: folder)


def _write_jar(jar: Path, classes: Mapping[str, bytes]) -> None:
    """Write class files, by their internal names, into a new jar."""
    with zipfile.ZipFile(jar, "w") as archive:
        for name, data in classes.items():
            archive.writestr(f"{name}.class", data)


def _stamp(location: Path) -> str:
    stamp = hashlib.sha256(str(location.resolve()).encode())
    if location.is_file():
        found = location.stat()
        stamp.update(f"{found.st_size} {found.st_mtime_ns}".encode())
    else:
        _stamp_folder(location, stamp)
    return stamp.hexdigest()[:32]


def _stamp_folder(folder: Path | str, stamp: hashlib._Hash) -> None:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir():
                _stamp_folder(entry.path, stamp)
            else:
                found = entry.stat()
                stamp.update(f"{entry.path} {found.st_size} {found.st_mtime_ns}\n".encode())


def _build(
    folder: Path,
    relinked: Mapping[str, bytes],
    sources: Mapping[str, bytes],
    hooks: str,
    classpath: list[Path],
    java_home: Path,
) -> None:
    """Write the jar of the compiled classes and the relinked ones."""
    # Beside the entry, so that these go with what is left of its making.
    source_folder, compiled = folder.parent / "sources" / hooks, folder.parent / "compiled"
    source_folder.mkdir(parents=True)
    compiled.mkdir()
    for name, text in sources.items():
        (source_folder / name).write_bytes(text)
    _compile(sorted(source_folder.iterdir()), compiled, classpath, java_home)
    _write_jar(folder / HOOKS_JAR, {**dict(iter_class_files(compiled)), **relinked})


def _compile(
    source_files: list[Path], target: Path, classpath: list[Path], java_home: Path
) -> None:
    command = [
        str(java_home / "bin" / "java"),
        # Else it writes into a folder for temporary files, which need not be there.
        "-XX:-UsePerfData",
        # It runs once, too short to repay a second compiler or several threads of collection.
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-m",
        COMPILER_MODULE,
        "-nowarn",
        "-proc:none",
        "-encoding",
        "UTF-8",
        "-classpath",
        os.pathsep.join(map(str, classpath)),
        "-d",
        str(target),
        *map(str, source_files),
    ]
    try:
        done = child.run(command)
    except OSError as error:
        raise BridgeError(f"{command[0]} could not be run: {error.strerror}") from error
    if done.returncode != 0:
        output = (done.stderr + done.stdout).strip()
        if "jdk.compiler" in output and "not found" in output:
            raise BridgeError(
                f"the Java in {java_home} has no compiler (it is a JRE): install a JDK, "
                "on Debian with apt-get install default-jdk-headless"
            )
        raise BridgeError(f"the Java compiler failed on our hooks:\n{output}")
