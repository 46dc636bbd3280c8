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
from engines.host.compiled.shares import num_cores

OPTIONS = ("-std=gnu++20", "-O3", "-ffp-contract=off", "-Wall", "-Wextra", "-fPIC")
"""Those of CMakeLists.txt. No contraction: digits must not differ between machines."""

SANITIZED = (
    *("-std=gnu++20", "-O0", "-g1", "-ffp-contract=off", "-fno-omit-frame-pointer", "-fPIC"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    # Half of the time to compile. The first sanitizer finds these itself, but for the last.
    "-fno-sanitize=null,object-size,vptr,alignment",
)
"""For a library that ends the process where it reads what is not its own, or overflows."""

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


def build(folder: Path, options: Sequence[str] = OPTIONS) -> Path:
    """Compile the library, as many files at once as there are cores.

    Parameters
    ----------
    folder
        Where to put it.
    options
        Of the compiler, for each file and for the library.

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
    command = [*compiler(), *options]
    with TemporaryDirectory(dir=made.parent) as name:
        objects = [Path(name, f"{source.stem}.o") for source in sources]

        def compile_one(source: Path, made: Path) -> None:
            subprocess.run([*command, "-c", "-o", str(made), str(source)], check=True)

        with ThreadPoolExecutor(num_cores()) as pool:
            list(pool.map(compile_one, sources, objects))
        part = Path(name, made.name)
        subprocess.run([*command, "-shared", "-o", str(part), *map(str, objects)], check=True)
        part.replace(made)
    return made


def main() -> None:
    """Build the library, and say where it lies."""
    parser = argparse.ArgumentParser(prog="python -m engines.host.build", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    parser.add_argument(
        "--sanitize",
        action="store_true",
        help="end the process at errors in memory; needs LD_PRELOAD of the compiler's libasan",
    )
    given = parser.parse_args()
    try:
        print(build(given.folder, SANITIZED if given.sanitize else OPTIONS))
    except FileNotFoundError as error:
        sys.exit(f"prism-gpu: {error}")


if __name__ == "__main__":
    main()
