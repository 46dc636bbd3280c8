"""Build the compiled library beside its sources, without a network: `python -m engines.host.build`.

Installing prism-gpu builds it too, by CMake. This is for machines that have a compiler and no
package index, and for work on the sources.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from engines.host.compiled.library import FILE_NAME
from engines.process.cores import num_cores

OPTIONS = ("-std=gnu++20", "-O3", "-ffp-contract=off", "-Wall", "-Wextra", "-fPIC")
"""Those of CMakeLists.txt. No contraction: digits must not differ between machines."""

SOURCES = sorted(Path(__file__).with_name("src").glob("*.cpp"))
"""All files of the library."""

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


def compiled(sources: Sequence[Path], options: Sequence[str], folder: Path) -> list[Path]:
    """Compile source files, as many at once as there are cores.

    Parameters
    ----------
    sources
        The files.
    options
        Of the compiler.
    folder
        Where to put what comes of them; it must be there.

    Returns
    -------
    What came of each file.

    Raises
    ------
    FileNotFoundError
        If there is no compiler.
    subprocess.CalledProcessError
        If it fails; its messages are on standard error.
    """
    command = [*compiler(), *options, "-c", "-o"]
    objects = [folder / f"{source.stem}.o" for source in sources]

    def compile_one(source: Path, made: Path) -> None:
        subprocess.run([*command, str(made), str(source)], check=True)

    with ThreadPoolExecutor(num_cores()) as pool:
        list(pool.map(compile_one, sources, objects))
    return objects


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
    made = folder / FILE_NAME
    made.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=made.parent) as name:
        objects = compiled(SOURCES, OPTIONS, Path(name))
        part = Path(name, made.name)
        command = [*compiler(), *OPTIONS, "-shared", "-o", str(part), *map(str, objects)]
        subprocess.run(command, check=True)
        part.replace(made)
    return made


def main() -> None:
    """Build the library, and say where it lies."""
    parser = argparse.ArgumentParser(prog="python -m engines.host.build", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    given = parser.parse_args()
    try:
        print(build(given.folder))
    except FileNotFoundError as error:
        sys.exit(f"prism-gpu: {error}")


if __name__ == "__main__":
    main()
