"""Models whose construction is compared with PRISM's: all that its suites hold, with constants."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bridge.install import PrismInstall
from tests.conformance.auto_lists import command_lines

SUITES = ("prism-examples", "prism-tests", "prism-benchmarks")
_MODEL = re.compile(r".+\.(?:prism|nm|pm|sm)$")
_LISTS = re.compile(r".+\.(?:args|auto)$")


@dataclass(frozen=True, order=True)
class Case:
    """A model of a suite.

    Parameters
    ----------
    suite, file
        Its folder's name, and the file below it.
    constants
        As the switch -const has them; more may be named than the model has, ranges as well.
    """

    suite: str
    file: str
    constants: str


def cases(install: PrismInstall) -> list[Case]:
    """Return the models of all suites beside PRISM's folder, each with all constants named for it.

    Parameters
    ----------
    install
        PRISM.
    """
    found = set()
    for suite in SUITES:
        root = install.beside(suite)
        if root is None:
            continue
        for path in sorted(root.rglob("*")):
            if _MODEL.match(path.name) and path.is_file():
                file = path.relative_to(root).as_posix()
                found.add(Case(suite, file, ""))
                found |= {Case(suite, file, constants) for constants in _constants(path)}
    return sorted(found)


def _constants(model: Path) -> Iterator[str]:
    """Yield what the lists beside a model name as its constants."""
    for path in model.parent.iterdir():
        if path.name == "auto":
            calls = command_lines(path.read_text(encoding="utf-8"))
        elif path.name == "models" or _is_list_of(path, model):
            lines = path.read_text(encoding="utf-8").splitlines()
            calls = [shlex.split(line, comments=True) for line in lines]
        else:
            continue
        for words in calls:
            if path.name in ("auto", "models") and words[:1] != [model.name]:
                continue
            switches = [b for a, b in pairwise(words) if a == "-const"]
            if switches:
                yield ",".join(switches)


def _is_list_of(path: Path, model: Path) -> bool:
    return path.name.startswith(model.name) and _LISTS.match(path.name) is not None
