"""The compiled library under the compiler's sanitizers: no call leaves its arrays or races.

A run of the library's tests is recorded, and its calls are made again by a driver in C++: a
sanitizer under Python takes several times as long, and would need a Python that was built with it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from engines.host.build import SOURCES, compiled, compiler
from engines.host.compiled.library import library
from tests.engines.host_calls import CALLS, FOLDER_VARIABLE, FUNCTIONS

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent
OTHERS = (
    "diagrams/test_expand.py",
    "../bridge/reproduce/test_textbook.py",
    "test_automaton_product.py",
    "test_automatic.py::test_elimination_agrees_with_dense_algebra",
    "test_cpu_formats.py",
    "test_long_run.py::test_many_small_classes_are_eliminated_together",
    "test_policy_iteration.py::test_probabilities_are_those_of_the_best_strategy",
    *("test_products.py", "test_rounds.py", "test_scaling.py", "test_substitution.py"),
    "test_symmetric.py",
    *("test_termination.py::test_the_change_of_a_sweep_is_the_references", "test_topological.py"),
    "test_topological_intervals.py",
)
"""Tests of the library besides those that are named after it."""

OPTIONS = ("-std=gnu++20", "-O0", "-g1", "-ffp-contract=off", "-fno-omit-frame-pointer", "-pthread")
"""Without optimization, which would double the time that compiling takes."""


@dataclass(frozen=True)
class Sanitizer:
    """How the library is compiled for a sanitizer.

    Parameters
    ----------
    options
        Of the compiler.
    sources
        The files that it concerns.
    """

    options: tuple[str, ...]
    sources: list[Path]


SANITIZERS = {
    "address": Sanitizer(
        # The others take half of the compiler's time; null pointers end the process anyway, and
        # what is beyond an array is noticed when it is read or written.
        (
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
            "-fno-sanitize=null,alignment,object-size,vptr,pointer-overflow",
        ),
        SOURCES,
    ),
    "thread": Sanitizer(
        ("-fsanitize=thread",),
        [source for source in SOURCES if '"team.hpp"' in source.read_text()],
    ),
}


def require(name, folder):
    """Skip the tests unless what a sanitizer makes runs here."""
    source, made = folder / "nothing.cpp", folder / "nothing"
    source.write_text("int main() {}")
    command = [*compiler(), *OPTIONS, *SANITIZERS[name].options, "-o", str(made), str(source)]
    for step in (command, [str(made)]):
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{command[0]} has no {name} sanitizer that runs here: {done.stderr[:200]}")


def united(sources, folder):
    """Return files with the text of the sources, most in one: headers are then compiled once."""
    alone, text = [], []
    for source in sources:
        lines = source.read_text().splitlines()
        if "namespace prism_gpu {" in lines:
            alone.append(source)
            continue
        included = [line.startswith("#include") for line in lines]
        text += [line for line, there in zip(lines, included, strict=True) if there]
        # Files give the same names to other things.
        text += [f"namespace of_{source.stem} {{", "using namespace ::prism_gpu;"]
        text += [f'#line 1 "{source}"']
        text += ["" if there else line for line, there in zip(lines, included, strict=True)]
        text += ["}"]
    folder.joinpath("united.cpp").write_text("\n".join([*text, ""]))
    return [folder / "united.cpp", *alone]


def recording(folder):
    """Start the tests whose calls are recorded; return their process."""
    named = [*FOLDER.glob("test_host_*.py"), *FOLDER.glob("diagrams/test_host_*.py")]
    files = [str(path) for path in named if path.name != Path(__file__).name]
    chosen = ("-m", "not gpu and not slow and not prism", *files)
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-p", "tests.engines.host_calls", *chosen, *(f"{FOLDER}/{name}" for name in OTHERS)),
        ],
        env={
            **{name: os.environ[name] for name in os.environ if not name.startswith("PYTEST_")},
            FOLDER_VARIABLE: str(folder),
        },
        cwd=FOLDER.parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The folder with the calls of the tests, and with what they are made again by."""
    folder = tmp_path_factory.mktemp("recorded")
    try:
        for name in SANITIZERS:
            require(name, folder)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    with recording(folder) as tests:
        objects = {}
        for name, sanitizer in SANITIZERS.items():
            folder.joinpath(name).mkdir()
            options = (*OPTIONS, *sanitizer.options, f"-I{SOURCES[0].parent}")
            objects[name] = compiled(
                united(sanitizer.sources, folder / name), options, folder / name
            )
        output, _ = tests.communicate()
    assert tests.returncode == 0, output[-10_000:]
    for name, sanitizer in SANITIZERS.items():
        command = [*compiler(), *OPTIONS, *sanitizer.options, f"-I{folder}", "-O1", "-o"]
        command += [str(folder / name / "replay"), str(FOLDER / "host_driver" / "replay.cpp")]
        subprocess.run([*command, *map(str, objects[name])], check=True)
    return folder


def replayed(folder, name, *wrong):
    """Make the calls again under a sanitizer; return how that ended."""
    command = [str(folder / name / "replay"), str(folder / CALLS), *wrong]
    environment = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


EXPLORING = "pg_explore_"
"""How far a search comes in a call depends on the time that it takes, so that its calls cannot be
compared: these functions are not replayed."""


def test_every_function_of_the_library_is_called(recorded):
    command = ["nm", "-D", "--defined-only", library()._name]
    symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    called = re.findall(r"^FUNCTION\((\w+)", recorded.joinpath(FUNCTIONS).read_text(), re.MULTILINE)
    there = re.findall(r" T (pg_\w+)$", symbols, re.MULTILINE)
    assert sorted(called) == sorted(name for name in there if not name.startswith(EXPLORING))


@pytest.mark.parametrize(("name", "least"), [("address", 70), ("thread", 30)])
def test_no_call_of_a_test_leaves_its_arrays_or_races(recorded, name, least):
    done = replayed(recorded, name)
    assert done.returncode == 0, done.stdout + done.stderr[-10_000:]
    calls, functions, different = map(int, re.findall(r"\d+", done.stdout))
    assert calls > 1000
    assert functions >= least
    assert not different


def test_what_leaves_its_arrays_is_noticed(recorded):
    done = replayed(recorded, "address", "short")
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
    assert "in pg_" in done.stderr


def test_a_race_is_noticed(recorded):
    done = replayed(recorded, "thread", "twice")
    assert done.returncode != 0
    assert "data race" in done.stderr
    assert "src/" in done.stderr
