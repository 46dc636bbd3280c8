"""What is to be run: one call of prism-auto for each model of a suite, or line of an auto list."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from bridge.install import PrismInstall
from tests.conformance.auto_lists import command_lines

_MODEL = re.compile(r".+\.(?:prism|nm|pm|sm)$")
_FOLDERS = {"tests": "prism-tests", "examples": "prism-examples"}
SUITES = tuple(_FOLDERS)


@dataclass(frozen=True)
class Unit:
    """One call of prism-auto.

    Attributes
    ----------
    suite : str
        "tests" or "examples".
    name : str
        What is shown and matched by `--only`.
    folder : str
        Folder to run in, relative to the suite.
    target : str
        File to hand to prism-auto, relative to that folder.
    line : str
        For the examples, the command line that the target file is to hold.
    """

    suite: str
    name: str
    folder: str
    target: str
    line: str = ""


def suite_folder(install: PrismInstall, suite: str) -> Path:
    """Return where a suite lies: beside PRISM's folder, or in it.

    Raises
    ------
    FileNotFoundError
        When it is in neither place.
    """
    name = _FOLDERS[suite]
    folder = install.beside(name)
    if folder is None:
        raise FileNotFoundError(
            f"there is no {name} in {install.root} nor beside it; it comes with PRISM's source "
            "repository"
        )
    return folder


def units(folder: Path, suite: str, pattern: str = "") -> list[Unit]:
    """Return a suite's units in the order in which prism-auto visits them.

    Parameters
    ----------
    folder
        Where the suite lies.
    suite
        "tests" or "examples".
    pattern
        A regular expression to be found in a unit's name.
    """
    found = _tests(folder) if suite == "tests" else _examples(folder)
    return [unit for unit in found if re.search(pattern, unit.name)]


def _tests(root: Path) -> list[Unit]:
    found = []
    for folder, subfolders, files in os.walk(root):
        subfolders.sort()
        models = sorted(file for file in files if _MODEL.match(file))
        orphans = [
            file
            for file in sorted(files)
            if file.endswith(".auto") and not any(file.startswith(model) for model in models)
        ]
        for file in models + orphans:
            name = os.path.relpath(os.path.join(folder, file), root)
            found.append(Unit("tests", name, ".", name))
    return found


def _examples(root: Path) -> list[Unit]:
    found = []
    for script in sorted(root.rglob("auto")):
        folder = str(script.parent.relative_to(root))
        seen = set()
        for number, words in enumerate(command_lines(script.read_text(encoding="utf-8")), start=1):
            line = " ".join(words)
            if line not in seen:
                seen.add(line)
                target = f"conformance{number}.auto"
                found.append(Unit("examples", f"{folder}: {line}", folder, target, line))
    return found


def copy_suite(folder: Path, destination: Path) -> None:
    """Copy a suite, because tests of exports write beside its files; a finished copy is kept."""
    if destination.is_dir():
        return
    partial = destination.with_name(destination.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(folder, partial)
    partial.rename(destination)
