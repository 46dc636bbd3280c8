"""The classes that plug the engines into PRISM: relinked, compiled once, cached.

What lies in the cache is executed, so the folder must belong to the user alone; a set of classes
is built aside and renamed into place, so that it is there whole or not at all, and two first runs
at once both end with one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path

from engines.errors import BridgeError
from engines.leftovers import temporary_folder
from prism_hooks.relink import iter_class_files, relink

MANIFEST = "manifest.json"
CACHE_VARIABLE = "PRISM_GPU_CACHE"
COMPILER_MODULE = "jdk.compiler/com.sun.tools.javac.Main"


def cache_folder() -> Path:
    """Return the cache folder, made if need be.

    It is `PRISM_GPU_CACHE` if that is set, else the platform's folder for caches.

    Raises
    ------
    BridgeError
        When the folder cannot be made, or is not the user's alone.
    """
    from platformdirs import user_cache_path

    named = os.environ.get(CACHE_VARIABLE)
    folder = Path(named) if named else user_cache_path("prism-gpu", appauthor=False)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BridgeError(
            f"the cache folder {folder} cannot be made ({error.strerror}); "
            f"name another with {CACHE_VARIABLE}"
        ) from error
    _require_private(folder)
    return folder


def _require_private(folder: Path) -> None:
    """Raise unless the folder is a real one, the user's own, and writable by nobody else."""
    if not hasattr(os, "geteuid"):
        return
    found = folder.lstat()
    advice = f"remove it, or name another folder with {CACHE_VARIABLE}"
    if not stat.S_ISDIR(found.st_mode):
        raise BridgeError(f"the cache folder {folder} is not a folder of its own; {advice}")
    if found.st_uid != os.geteuid():
        raise BridgeError(
            f"the cache folder {folder} belongs to another user (number {found.st_uid}); what lies "
            f"in it would be executed; {advice}"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BridgeError(
            f"the cache folder {folder} is writable by others; what lies in it would be executed; "
            f"run chmod 700 {folder}, or {advice}"
        )


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
) -> Path:
    """Return the folder of relinked and compiled classes, built now or found in the cache.

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
    cache = cache_folder()
    sources = hook_sources(hooks)
    recipe = hashlib.sha256(
        json.dumps(
            [java_version, hooks, sorted(constructors.items()), sorted(statics.items())]
        ).encode()
    )
    for name in sorted(sources):
        recipe.update(name.encode() + b"\0" + sources[name] + b"\0")
    recipe_key = recipe.hexdigest()[:16]
    content = _content_key(class_location, cache)
    folder = cache / f"hooks-{content[:16]}-{recipe_key}"
    if not _is_whole(folder):
        shutil.rmtree(folder, ignore_errors=True)
        changed = relink(class_location, constructors, statics)
        _build(cache, folder, changed, sources, hooks, list(classpath), java_home)
    return folder


def _content_key(location: Path, cache: Path) -> str:
    """Return a hash of PRISM's classes.

    Reading two thousand files takes longer than starting PRISM, so the hash is remembered under
    their names, sizes and times of change.
    """
    stamp_file = cache / f"content-{_stamp(location)}"
    try:
        key = stamp_file.read_text(encoding="ascii")
    except OSError:
        key = ""
    if len(key) == 64:
        return key
    content = hashlib.sha256()
    for name, data in iter_class_files(location):
        content.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
    key = content.hexdigest()
    _write_whole(stamp_file, key.encode("ascii"))
    return key


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


def _is_whole(folder: Path) -> bool:
    """Return whether every file of the manifest is there as it was written."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        _require_private(folder)
        return all(
            hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
            for name, digest in manifest.items()
        )
    except (OSError, ValueError, AttributeError):
        return False


def _build(
    cache: Path,
    folder: Path,
    relinked: Mapping[str, bytes],
    sources: Mapping[str, bytes],
    hooks: str,
    classpath: list[Path],
    java_home: Path,
) -> None:
    with temporary_folder(cache, prefix="building-") as building:
        classes = building / "classes"
        classes.mkdir(mode=0o700)
        source_folder = building / "sources" / hooks
        source_folder.mkdir(parents=True)
        for name, text in sources.items():
            (source_folder / name).write_bytes(text)
        _compile(sorted(source_folder.iterdir()), classes, classpath, java_home)
        for name, data in relinked.items():
            target = classes / f"{name}.class"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        manifest = {
            str(path.relative_to(classes)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(classes.rglob("*.class"))
        }
        (classes / MANIFEST).write_text(json.dumps(manifest, indent=0), encoding="utf-8")
        try:
            classes.rename(folder)
        except OSError:
            # Another run was faster; what it built is the same.
            if not _is_whole(folder):
                raise


def _compile(
    source_files: list[Path], target: Path, classpath: list[Path], java_home: Path
) -> None:
    command = [
        str(java_home / "bin" / "java"),
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
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
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


def _write_whole(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix="writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
