"""What is kept from run to run: built once, checked before each use, never needed.

What is kept is executed: Java classes, compiled samplers, the kernels of JIT compilers. So it
lies in a folder of the user's own, where nobody else can write or swap a folder for another. An
entry is a folder with a list of its files, their SHA-256 digests, sizes and times of change. It is
built in another folder and renamed into place, whole or not at all. An entry with a file too few or
too many, of another owner or with another digest is built again; a file that nobody has written
since is not read for its digest, as the kernel, and nobody else, sets the time of a change. Where
the cache folder cannot be used (somebody else's, read-only, on a full disk), the same is kept in
the user's own folder below one for temporary files.

Every run imports this module, most only to look: what takes time to load is loaded when it is used.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path
from typing import TypeVar

from engines.errors import CacheError
from engines.process.leftovers import is_in_use, temporary_folder

CACHE_VARIABLE = "PRISM_GPU_CACHE"
"""Names another folder than the platform's for caches."""
MANIFEST = "manifest.json"
"""In each entry: the digest of each file and what the kernel said of it, by its path."""
SETTLED_NS = 1_000_000_000
"""Age from which a later write to a file shows in its time of change, whose steps are coarse."""
STALE_S = 5.0
"""Age from which a folder that nobody works in is removed."""
STALE_WITHOUT_LOCKS_S = 86_400.0
"""Age from which a folder is removed where files cannot be locked to show that it is in use."""

_LEAST_ROOM = 1 << 20
"""Bytes that must be free on a disk that is not full."""
_BUILDING = "building-"
_LEFTOVERS = (_BUILDING, "writing-")
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH

Use = TypeVar("Use")

_told: set[str] = set()
_swept: set[Path] = set()


def kept(name: str, make: Callable[[Path], None], use: Callable[[Path], Use]) -> Use:
    """Use an entry of the cache; it is built if it is missing or damaged.

    Parameters
    ----------
    name
        Of the entry; it stands for the contents and all that they depend on.
    make
        Writes the files of the entry into an empty folder.
    use
        Given the folder of the entry; what it returns is returned. An OSError says that the entry
        cannot be used in this place.

    Raises
    ------
    CacheError
        When no folder can be used, with the reason for each.
    Exception
        What `make` raises where the folder is not to blame.
    """
    there = found(name)
    if there is not None:
        with contextlib.suppress(OSError):
            return use(there)
    refused: dict[Path, str] = {}
    for place in _usable_places(refused):
        try:
            if not _is_whole(place / name):
                _build(place, name, make)
            value = use(place / name)
        except OSError as error:
            refused[place] = f"cannot be used: {error.strerror or error}"
            continue
        _note(refused, place)
        return value
    raise _none_usable(refused)


def found(name: str) -> Path | None:
    """Return the folder of a whole entry of the cache, or None where it would have to be built.

    What was kept below a folder for temporary files is looked at only where nothing can be written
    into the cache folder.

    Parameters
    ----------
    name
        Of the entry.
    """
    refused: dict[Path, str] = {}
    for place in _places():
        reason = _distrust(place)
        if reason is not None:
            refused[place] = reason
        elif _is_whole(place / name):
            _note(refused, place)
            return place / name
        elif _takes_files(place):
            return None
        else:
            refused[place] = "cannot be written"
    return None


def cache_folder() -> Path:
    """Return the folder that is looked in first, made if need be.

    Raises
    ------
    CacheError
        When no folder can be used, with the reason for each.
    """
    refused: dict[Path, str] = {}
    for place in _usable_places(refused):
        if os.access(place, os.W_OK | os.X_OK):
            _note(refused, place)
            return place
        refused[place] = "cannot be written"
    raise _none_usable(refused)


def private_folder(name: str, named: str | None = None) -> Path | None:
    """Return a folder of mode 700 that another library may use as its cache, or None.

    Parameters
    ----------
    name
        Of the folder in the cache.
    named
        A folder that the user named for this library: it is taken if it is there and has mode 700.
    """
    if named and _is_secret(Path(named).absolute()):
        return Path(named).absolute()
    for place in _usable_places({}):
        folder = place / name
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            if refusal(folder) is None:
                folder.chmod(0o700)
            if _is_secret(folder):
                return folder
    return None


def _is_secret(folder: Path) -> bool:
    """Return whether the user, and nobody else, can read and write in a folder."""
    try:
        mode = folder.lstat().st_mode
        return refusal(folder) is None and not mode & 0o077 and os.access(folder, os.W_OK)
    except OSError:
        return False


def refusal(folder: Path) -> str | None:
    """Return why what lies in a folder may not be executed, or None if it may.

    Parameters
    ----------
    folder
        Which must be there.

    Raises
    ------
    OSError
        If it, or a folder above it, cannot be looked at.
    """
    if os.pathsep in str(folder):
        return f"has a {os.pathsep!r} in its name, which cannot be on a class path"
    user = os.geteuid()
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return "is not a folder of its own"
    if found.st_uid != user:
        return f"belongs to another user (number {found.st_uid}); what lies in it would be executed"
    if found.st_mode & _WRITABLE_BY_OTHERS:
        return (
            "is writable by others; what lies in it would be executed; if it is yours, "
            f"run chmod 700 {folder}"
        )
    # Who may write a folder above may put another one in its place between check and use.
    for above in folder.resolve().parents:
        found = above.stat()
        if found.st_uid not in (0, user):
            return f"lies below {above}, which belongs to another user (number {found.st_uid})"
        if _is_swappable(found):
            return f"lies below {above}, where others may rename what is in it"
    return None


def _is_swappable(found: os.stat_result) -> bool:
    """Return whether others may rename the user's files in a folder."""
    if found.st_mode & stat.S_ISVTX or not found.st_mode & _WRITABLE_BY_OTHERS:
        return False
    return bool(found.st_mode & stat.S_IWOTH) or not _is_own_group(found.st_gid)


def _is_own_group(group: int) -> bool:
    """Return whether a group is that of the user alone, as most Linux systems make one."""
    import grp
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid())
        found = grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and user.pw_name == found.gr_name and not found.gr_mem


def _places() -> Iterator[Path]:
    """Yield the folders where entries may lie, the best first."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        yield Path(named).absolute()
    else:
        # The engines run from their sources too, on a machine that has NumPy alone.
        with contextlib.suppress(ModuleNotFoundError):
            from platformdirs import user_cache_path

            usual = user_cache_path("prism-gpu", appauthor=False)
            if usual.is_absolute():  # it is not where the user has no home
                yield usual
    for above in dict.fromkeys((os.environ.get("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm")):
        if above and os.path.isabs(above):
            yield Path(above, f"prism-gpu-{os.geteuid()}")


def _usable_places(refused: dict[Path, str]) -> Iterator[Path]:
    """Yield the folders that may be used, each made in its turn; note why others may not."""
    for place in _places():
        reason = _prepared(place)
        if reason is None:
            _sweep(place)
            yield place
        else:
            refused[place] = reason


def _prepared(place: Path) -> str | None:
    """Make a folder if need be; return why it cannot be used, or None."""
    try:
        str(place).encode()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return refusal(place)
    except FileExistsError:
        return "is not a folder of its own"
    except OSError as error:
        return f"cannot be made ({error.strerror})"
    except ValueError as error:  # bytes that are no text
        return f"cannot be used ({error})"


def _distrust(place: Path) -> str | None:
    """Return why a folder may not be used that may not be there, or None."""
    try:
        return refusal(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return f"cannot be looked at ({error.strerror})"


def _takes_files(place: Path) -> bool:
    """Return whether entries can be written into a folder that may not be there yet."""
    import shutil

    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    try:
        room = shutil.disk_usage(place).free
    except OSError:
        return False
    return os.access(place, os.W_OK | os.X_OK) and room >= _LEAST_ROOM


def is_as_named() -> bool:
    """Return whether no other folder than the cache's own had to be used by this process."""
    return not _told


def _note(refused: dict[Path, str], used: Path) -> None:
    """Say on the standard error, once, why the cache folder is another than expected."""
    for place, reason in refused.items():
        line = f"prism-gpu: the cache folder {place} {reason}; {used} is used instead"
        if line not in _told and sys.stderr is not None:
            _told.add(line)
            with contextlib.suppress(OSError, ValueError):
                print(line, file=sys.stderr, flush=True)


def _none_usable(refused: dict[Path, str]) -> CacheError:
    return CacheError(
        "; ".join(f"the cache folder {place} {reason}" for place, reason in refused.items())
        + f"; name a folder of your own with {CACHE_VARIABLE}"
    )


def _is_whole(entry: Path) -> bool:
    """Return whether an entry holds the files of its manifest, as they were written, and no more.

    Each must be the user's own: others may have written into the folder before it was private.
    """
    import json

    try:
        with _own(entry / MANIFEST) as file:
            manifest = json.load(file)
        if refusal(entry) is not None or not isinstance(manifest, dict):
            return False
        names = {MANIFEST}
        for folder, folders, files in os.walk(entry, onerror=_raise):
            if any(not _is_own_folder(Path(folder, each)) for each in folders):
                return False
            names.update(Path(folder, each).relative_to(entry).as_posix() for each in files)
        return names == {MANIFEST, *manifest} and all(
            _is_as_written(entry / name, record) for name, record in manifest.items()
        )
    except (OSError, ValueError, RecursionError):
        return False


def _is_as_written(path: Path, record: object) -> bool:
    """Return whether a file of the user's own is what a manifest says.

    Parameters
    ----------
    path
        Of the file.
    record
        Its digest, then what `_written` gave; read from a file that may be damaged.
    """
    if not isinstance(record, list):
        return False
    with _own(path) as file:
        found = os.fstat(file.fileno())
        settled = time.time_ns() - found.st_ctime_ns > SETTLED_NS
        return (settled and record[1:] == _written(found)) or record[:1] == [_digest(file)]


def _written(found: os.stat_result) -> list[int]:
    """Return what differs once a file was written again."""
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _raise(error: OSError) -> None:
    raise error


def _is_own_folder(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and _is_own(found)


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & _WRITABLE_BY_OTHERS


def _digest(file: FileIO) -> str:
    """Return the SHA-256 digest of a file, read in parts: some are large."""
    import hashlib

    return hashlib.file_digest(file, "sha256").hexdigest()


def _own(path: Path) -> FileIO:
    """Open a file of the user's own; a link or a pipe is none."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    file = os.fdopen(os.open(path, flags), "rb", buffering=0)
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode) or not _is_own(found):
        file.close()
        raise PermissionError(errno.EPERM, "is not a file of the user's own", str(path))
    return file


def _build(place: Path, name: str, make: Callable[[Path], None]) -> None:
    with temporary_folder(place, prefix=_BUILDING) as building:
        content = building / "content"
        content.mkdir(mode=0o700)
        try:
            make(content)
        except OSError:
            raise
        except Exception:
            _require_room(building)
            raise
        _seal(content)
        _put(content, place / name, building / "old")


def _require_room(folder: Path) -> None:
    """Raise OSError where the disk is full: compilers only say that they failed."""
    import tempfile

    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(_LEAST_ROOM))


def _seal(content: Path) -> None:
    """Write the list of an entry's files, all of which are made the user's alone."""
    import json

    manifest = {}
    for path in sorted(content.rglob("*")):
        if path.is_dir():
            path.chmod(0o700)
        else:
            path.chmod(0o600)
            with _own(path) as file:
                record = [_digest(file), *_written(os.fstat(file.fileno()))]
            manifest[path.relative_to(content).as_posix()] = record
    target = content / MANIFEST
    target.write_text(json.dumps(manifest, indent=0), encoding="utf-8")
    target.chmod(0o600)


def _put(content: Path, entry: Path, old: Path) -> None:
    """Rename an entry into place, where a damaged one, a file or a link may be in the way."""
    if _is_whole(entry):
        return  # another run was faster; what it built is the same
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(entry.lstat().st_mode):
            entry.chmod(0o700)
        entry.rename(old)
    try:
        content.rename(entry)
    except OSError:
        if not _is_whole(entry):
            raise


def _sweep(place: Path) -> None:
    """Remove what interrupted runs left behind; once a process."""
    if place in _swept:
        return
    _swept.add(place)
    with contextlib.suppress(OSError):
        for path in list(place.iterdir()):
            if path.name.startswith(_LEFTOVERS) and _is_stale(path):
                _remove(path)


def _is_stale(path: Path) -> bool:
    """Whether nobody works in this folder any more; one that is gone leaves nothing to remove."""
    try:
        age = time.time() - path.lstat().st_mtime
    except OSError:  # another run has finished with it meanwhile
        return False
    if age < STALE_S:
        return False
    # Who works in it holds its lock; see `engines.process.leftovers.in_use`.
    return not is_in_use(path, unknown=age < STALE_WITHOUT_LOCKS_S)


def _remove(path: Path) -> None:
    """Remove a file or a folder, as far as that is possible."""
    import shutil

    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return
        for folder, _, _ in os.walk(path):
            os.chmod(folder, 0o700)
        shutil.rmtree(path)
