"""Build the compiled library beside its sources, without a network: `python -m engines.host.build`.

Installing prism-gpu builds it too, by CMake. This is for machines that have a compiler and no
package index, and for work on the sources.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from engines.host.library import FILE_NAME

OPTIONS = ("-std=gnu++20", "-O3", "-ffp-contract=off", "-Wall", "-Wextra", "-shared", "-fPIC")
"""Those of CMakeLists.txt. No contraction: digits must not differ between machines."""

COMPILERS = ("g++", "clang++", "c++")


def compiler() -> list[str]:
    """Return the command of the C++ compiler: the one that `CXX` names, else a usual one.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    named = shlex.split(os.environ.get("CXX", ""))
    if named:
        return named
    for name in COMPILERS:
        found = shutil.which(name)
        if found is not None:
            return [found]
    raise FileNotFoundError(
        "no C++ compiler was found: install one (apt install g++; dnf install gcc-c++; "
        "xcode-select --install), or name it in the environment variable CXX"
    )


def build(folder: Path) -> Path:
    """Compile the library.

    Parameters
    ----------
    folder
        Where to put it.

    Returns
    -------
    The library's path. A running process keeps the one it has loaded.

    Raises
    ------
    FileNotFoundError
        If there is no compiler.
    subprocess.CalledProcessError
        If it fails; its messages are on standard error.
    """
    sources = sorted(Path(__file__).with_name("src").glob("*.cpp"))
    made = folder / FILE_NAME
    made.parent.mkdir(parents=True, exist_ok=True)
    part = made.with_name(f"{made.name}.{os.getpid()}")
    try:
        subprocess.run([*compiler(), *OPTIONS, "-o", str(part), *map(str, sources)], check=True)
        part.replace(made)
    finally:
        part.unlink(missing_ok=True)
    return made


def main() -> None:
    """Build the library, and say where it lies."""
    try:
        print(build(Path(__file__).parent))
    except FileNotFoundError as error:
        sys.exit(f"prism-gpu: {error}")


if __name__ == "__main__":
    main()
