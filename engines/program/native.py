"""Compiled sources on the CPU: the C compiler, and what is kept of it.

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
from pathlib import Path

from engines.errors import UnsupportedError
from engines.process import child
from engines.process.cache import kept

OPTIONS = ("-O2", "-std=c11", "-ffp-contract=off", "-fno-fast-math", "-shared", "-fPIC")
_COMPILERS = ("cc", "gcc", "clang")
LIBRARY = "model.so"
"""Of an entry of the cache."""

_HOW_TO_GET_ONE = (
    "no C compiler was found: install one (apt install gcc; dnf install gcc; xcode-select "
    "--install; conda install c-compiler), or name it in the environment variable CC"
)


class NoCompilerError(UnsupportedError):
    """There is no C compiler."""


@functools.cache
def compiler() -> tuple[str, ...]:
    """Return the command of the C compiler: the one that `CC` names, else cc, gcc or clang.

    Raises
    ------
    NoCompilerError
        If there is none, saying how to get one.
    """
    named = os.environ.get("CC", "").split()
    if named and (path := shutil.which(named[0])):
        return (path, *named[1:])
    for name in _COMPILERS:
        path = shutil.which(name)
        if path is not None:
            return (path,)
    raise NoCompilerError(_HOW_TO_GET_ONE)


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
    NoCompilerError
        If there is no C compiler.
    UnsupportedError
        If it refuses the source.
    CacheError
        If no folder can be used.
    """
    key = hashlib.blake2b(f"{_identity()}\n{text}".encode(), digest_size=16).hexdigest()
    return kept(f"native-{key}", lambda folder: _compile(text, folder / LIBRARY), _opened)


def _opened(folder: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(folder / LIBRARY))


def _compile(text: str, library: Path) -> None:
    # Beside the entry, so that the source goes with what is left of its making.
    aside = library.parent.parent
    source = aside / "model.c"
    source.write_text(text, encoding="ascii")
    command = [*compiler(), *OPTIONS, "-o", str(library), str(source)]
    outcome = child.run(command, {"TMPDIR": str(aside)})
    if outcome.returncode != 0:
        raise UnsupportedError(
            f"{command[0]} did not compile the model: {outcome.stderr.strip()[:2000]}"
        )
