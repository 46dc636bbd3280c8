"""Compiled sources on the CPU: the C compiler, its cache, and threads.

A library is compiled once: it is kept in the user's cache under a hash of the source, the
compiler's version and its options, and put there by renaming, so that two runs at once cannot meet
half of one. What lies in the cache is executed, so its folder must belong to the user alone.
Options are such that results do not depend on the compiler: no contraction of multiplications and
additions, no reordering.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import stat
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from engines.errors import UnsupportedError
from engines.leftovers import temporary_folder
from engines.montecarlo.results import PathArrays

OPTIONS = ("-O2", "-std=c11", "-ffp-contract=off", "-fno-fast-math", "-shared", "-fPIC")
_COMPILERS = ("cc", "gcc", "clang")
CACHE_VARIABLE = "PRISM_GPU_CACHE"
"""Names another folder than the platform's for caches."""
_SHARE = 1024
"""Paths that a thread takes at a time, at the most."""

_HOW_TO_GET_ONE = (
    "paths are sampled by compiled code, and no C compiler was found: install one (apt install gcc;"
    " dnf install gcc; xcode-select --install; conda install c-compiler), or name it in the "
    "environment variable CC"
)


@functools.cache
def compiler() -> tuple[str, ...]:
    """Return the command of the C compiler: the one that `CC` names, else cc, gcc or clang.

    Raises
    ------
    UnsupportedError
        If there is none, saying how to get one.
    """
    named = os.environ.get("CC", "").split()
    if named and shutil.which(named[0]):
        return tuple(named)
    for name in _COMPILERS:
        path = shutil.which(name)
        if path is not None:
            return (path,)
    raise UnsupportedError(_HOW_TO_GET_ONE)


@functools.cache
def _identity() -> str:
    """Return what a compiled library depends on beside its source."""
    version = subprocess.run(
        [*compiler(), "--version"], capture_output=True, text=True, check=False, timeout=60
    )
    return repr((compiler(), version.stdout, OPTIONS, platform.machine(), platform.system()))


def cache_folder() -> Path:
    """Return the folder of compiled sources, made if need be.

    It is in the folder that `PRISM_GPU_CACHE` names, else in the platform's one for caches.

    Raises
    ------
    UnsupportedError
        If it cannot be made, or others than the user may write there.
    """
    from platformdirs import user_cache_path

    named = os.environ.get(CACHE_VARIABLE)
    above = Path(named) if named else user_cache_path("prism-gpu", appauthor=False)
    folder = above / "paths"
    try:
        above.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise UnsupportedError(
            f"the compiled model cannot be kept in {folder} ({error.strerror}): make that "
            f"writable, or name another folder in {CACHE_VARIABLE}"
        ) from error
    for place in (above, folder):
        _require_private(place)
    return folder


def _require_private(folder: Path) -> None:
    """Raise unless the folder is a real one, the user's own, and writable by nobody else."""
    if not hasattr(os, "geteuid"):
        return
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        problem = "is not a folder of its own"
    elif found.st_uid != os.geteuid():
        problem = f"belongs to another user (number {found.st_uid})"
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = "is writable by others"
    else:
        return
    raise UnsupportedError(
        f"the cache folder {folder} {problem}, and compiled models in it would be executed: "
        f"run chmod 700 on it if it is yours, or name another folder in {CACHE_VARIABLE}"
    )


def library_path(text: str) -> Path:
    """Return where the library of a source is, or will be, in the cache; raises as that does."""
    key = hashlib.blake2b(f"{_identity()}\n{text}".encode(), digest_size=16).hexdigest()
    return cache_folder() / f"{key}.so"


def build(text: str) -> Path:
    """Compile a source, unless that has been done, and return the library's path.

    Raises
    ------
    UnsupportedError
        If there is no C compiler, it refuses the source, or the cache cannot be written or is not
        the user's alone.
    """
    target = library_path(text)
    if target.is_file():
        return target
    try:
        return _compile(text, target)
    except OSError as error:
        raise UnsupportedError(
            f"the compiled model cannot be kept in {target.parent} ({error.strerror}): make that "
            f"writable, or name another folder in {CACHE_VARIABLE}"
        ) from error


def _compile(text: str, target: Path) -> Path:
    with temporary_folder(target.parent) as folder:
        source, library = folder / "paths.c", folder / "paths.so"
        source.write_text(text, encoding="ascii")
        command = [*compiler(), *OPTIONS, "-o", str(library), str(source)]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            raise UnsupportedError(
                f"{command[0]} did not compile the model: {outcome.stderr.strip()[:2000]}"
            )
        library.replace(target)
    return target


@functools.lru_cache(maxsize=64)
def _load(path: Path) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise UnsupportedError(
            f"the compiled model {path} cannot be loaded ({error}): delete it, or name a folder "
            f"from which libraries may be loaded in {CACHE_VARIABLE}"
        ) from error
    whole, pointer = ctypes.c_uint64, ctypes.c_void_p
    library.sample_paths.restype = None
    library.sample_paths.argtypes = [
        *(whole, whole, whole, whole, ctypes.c_int64),
        *(pointer, pointer, pointer, whole),
    ]
    return library


class NativePaths:
    """Paths sampled by threads of this process, which hold no lock meanwhile.

    Parameters
    ----------
    text
        The source.
    threads
        How many; None for one a core that the process may use.
    """

    def __init__(self, text: str, threads: int | None = None) -> None:
        self._entry = _load(build(text)).sample_paths
        self.threads = threads or _cores()

    def sample(
        self,
        arrays: PathArrays,
        seed: int,
        path_limit: int,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Sample the paths that the arrays are for, into them.

        Parameters
        ----------
        arrays
            Where the answers go.
        seed, path_limit
            As `engines.montecarlo.sampler.Sampler` has them.
        progress
            Called with numbers of paths as they are done.
        """
        count = arrays.num_paths
        share = max(1, min(_SHARE, -(-count // (4 * self.threads))))

        def work(begin: int) -> int:
            end = min(begin + share, count)
            self._entry(
                *(seed, arrays.first_path, begin, end, path_limit),
                *(array.ctypes.data for array in (arrays.booleans, arrays.rewards, arrays.lengths)),
                count,
            )
            return end - begin

        begins = range(0, count, share)
        if self.threads == 1 or len(begins) == 1:
            done = map(work, begins)
            for number in done:
                if progress is not None:
                    progress(number)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            for number in pool.map(work, begins):
                if progress is not None:
                    progress(number)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
