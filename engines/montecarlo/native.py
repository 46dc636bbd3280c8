"""Compiled sources on the CPU: the C compiler, what is kept of it, and threads.

A library is compiled once: it is kept in the cache under a hash of the source, the compiler's
version and its options. Options are such that results do not depend on the compiler: no
contraction of multiplications and additions, no reordering.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from engines.errors import UnsupportedError
from engines.montecarlo.results import PathArrays
from engines.process import child
from engines.process.cache import kept

OPTIONS = ("-O2", "-std=c11", "-ffp-contract=off", "-fno-fast-math", "-shared", "-fPIC")
_COMPILERS = ("cc", "gcc", "clang")
LIBRARY = "paths.so"
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
    if named and (path := shutil.which(named[0])):
        return (path, *named[1:])
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


def load(text: str) -> ctypes.CDLL:
    """Compile a source, unless that has been done, and load the library.

    Parameters
    ----------
    text
        The source.

    Raises
    ------
    UnsupportedError
        If there is no C compiler, it refuses the source, or no folder can be used.
    """
    key = hashlib.blake2b(f"{_identity()}\n{text}".encode(), digest_size=16).hexdigest()
    return kept(f"paths-{key}", lambda folder: _compile(text, folder / LIBRARY), _opened)


def _opened(folder: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(folder / LIBRARY))


def _compile(text: str, library: Path) -> None:
    # Beside the entry, so that the source goes with what is left of its making.
    aside = library.parent.parent
    source = aside / "paths.c"
    source.write_text(text, encoding="ascii")
    command = [*compiler(), *OPTIONS, "-o", str(library), str(source)]
    outcome = child.run(command, {"TMPDIR": str(aside)})
    if outcome.returncode != 0:
        raise UnsupportedError(
            f"{command[0]} did not compile the model: {outcome.stderr.strip()[:2000]}"
        )


@functools.lru_cache(maxsize=64)
def _entry(text: str) -> Any:
    """Return the entry of a source's library."""
    entry = load(text).sample_paths
    whole, pointer = ctypes.c_uint64, ctypes.c_void_p
    entry.restype = None
    entry.argtypes = [
        *(whole, whole, whole, whole, ctypes.c_int64),
        *(pointer, pointer, pointer, whole),
    ]
    return entry


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
        self._entry = _entry(text)
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
