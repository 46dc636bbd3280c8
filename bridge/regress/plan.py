"""What is to be compared: one case for each command line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bridge.arguments import EXPLICIT, SPARSE_OR_HYBRID
from bridge.exchange.words import Group, groups, joined
from bridge.own_switches import UsageError
from bridge.regress.lists import runs_of
from bridge.regress.solvers import Solver
from engines.errors import InvalidModelError, UnsupportedError

_ENGINES = EXPLICIT | set(SPARSE_OR_HYBRID) | {"mtbdd", "m", "exact", "heuristic"}
_OUTPUT = {"mainlog", "test", "testall", "timeout", "extraddinfo", "extrareachinfo", "verbose", "v"}
_REFUSED = {
    "sim": "simulation, whose results are random",
    "param": "parametric model checking, which has no engine of ours",
    **dict.fromkeys(("ss", "steadystate", "tr", "transient"), "a distribution, not a property"),
    **dict.fromkeys(("gui", "ng", "simpath", "nobuild", "importresults"), "no model checking"),
    "gpuengine": "the choice of an engine, which --engines and --ours make",
    "frontend": "a model built without PRISM",
}
_LISTS = {".auto", ".list", ".txt"}
_CHOOSING_TEXT = {"pf", "csl", "pctl"}
_CHOOSING = _CHOOSING_TEXT | {"prop", "property"}
_IMPORTED = {"importmodel", "importtrans"}
_MODEL = re.compile(r".+\.(?:prism|nm|pm|sm)$")
_PROPERTIES = (".props", ".pctl", ".csl", ".ltl")


@dataclass(frozen=True)
class Case:
    """A command line whose properties every engine is to check.

    Parameters
    ----------
    name
        What is shown.
    folder
        Where it is run.
    words
        The model, the properties and PRISM's switches, without any engine's.
    own
        Switches of ours, such as ``-gpuformat``.
    left_out
        Why it cannot be compared; empty if it can.
    """

    name: str
    folder: Path
    words: tuple[str, ...]
    own: tuple[str, ...] = ()
    left_out: str = ""

    def words_for(self, solver: Solver) -> tuple[str, ...]:
        """Return the command line of one engine."""
        parts = groups(self.words, set())
        kept = [part for part in parts if part.name not in solver.replaced]
        return (*joined(kept), *(self.own if solver.ours else ()), *solver.words)


def cases_of(words: list[str], only: str = "", *, first: bool = False) -> list[Case]:
    """Return the cases that a command line asks for.

    Parameters
    ----------
    words
        A model with its properties, or a folder, or a list; and switches for all of them.
    only
        A regular expression that is to be found in a case's name.
    first
        Whether, of a list's runs of one model and the same properties, only the first is wanted.

    Raises
    ------
    UsageError
        When nothing is named, or what is named is not there.
    UnsupportedError
        When the one command line asks for what cannot be compared.
    InvalidModelError
        When a list cannot be read.
    """
    parts = list(groups(words, set()))
    files = [part.words[0] for part in parts if part.name is None]
    if not files:
        raise UsageError("Name a model and its properties, or a folder, or a list")
    switches = [part for part in parts if part.name is not None]
    where = Path(files[0])
    if not where.exists():
        raise UsageError(f'File "{where}" not found')
    if not where.is_dir() and not is_list(where):
        case = _case(parts, Path.cwd(), " ".join(words))
        if case.left_out:
            raise UnsupportedError(f"this cannot be compared: {case.left_out}")
        return [case]
    if len(files) > 1:
        raise UsageError(f"{where} is a {'folder' if where.is_dir() else 'list'}: it stands alone")
    found = _in_folder(where, switches) if where.is_dir() else _in_list(where, switches, where.name)
    try:
        cases = [case for case in found if re.search(only, case.name)]
    except re.error as error:
        raise UsageError(f'--only: "{only}" is no regular expression: {error}') from error
    if not cases:
        raise UsageError(f"{where} holds nothing to compare" + (f" called {only}" if only else ""))
    named: dict[object, Case] = {}
    for case in cases:
        named.setdefault(_subject(case) if first else case.name, case)
    return list(named.values())


def _subject(case: Case) -> tuple[object, ...]:
    """Return what a case is about: its files and which properties, whatever the constants."""
    parts = list(groups(case.words, set()))
    chosen = [part.value for part in parts if part.name in _CHOOSING]
    files = [part for part in parts if part.name is None]
    return (case.folder, case.left_out, *joined(files), *chosen)


def with_absolute_files(words: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Return a command line whose files are found from any folder.

    Parameters
    ----------
    words
        The command line.
    folder
        Where its relative files are.
    """
    return tuple(
        str(folder / word) if place == len(part.words) - 1 and _names_file(part) else word
        for part in groups(words, set())
        for place, word in enumerate(part.words)
    )


def _names_file(part: Group) -> bool:
    return part.name is None or (part.name.startswith("import") and len(part.words) > 1)


def is_list(path: Path) -> bool:
    """Return whether a file is a list of runs, by its name."""
    return path.name == "auto" or path.suffix in _LISTS


def _in_list(path: Path, switches: list[Group], title: str) -> Iterator[Case]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidModelError(f"{path} cannot be read as a list: {error}") from error
    for words in runs_of(text, str(path)):
        parts = list(groups(words, set()))
        yield _case([*parts, *switches], path.parent.absolute(), f"{title}: {' '.join(words)}")


def _in_folder(root: Path, switches: list[Group]) -> Iterator[Case]:
    """Yield the cases of the lists below a folder, and of models beside their properties."""
    for place, folders, files in os.walk(root):
        folders.sort()
        folder = Path(place)
        title = str(folder.relative_to(root))
        lists = [name for name in sorted(files) if name == "auto" or name.endswith(".auto")]
        for name in lists:
            yield from _in_list(folder / name, switches, title)
        listed = {name.removesuffix(".auto") for name in lists}
        if "auto" in lists:
            continue
        for name in sorted(files):
            if _MODEL.match(name) and name not in listed:
                stems = (name, name.rpartition(".")[0])
                for other in (stem + end for end in _PROPERTIES for stem in stems):
                    if other in files:
                        words = [Group(None, (name,)), Group(None, (other,)), *switches]
                        yield _case(words, folder.absolute(), f"{title}: {name} {other}")


def _case(parts: list[Group], folder: Path, name: str) -> Case:
    kept: list[Group] = []
    own: list[Group] = []
    reason = ""
    for part in parts:
        switch = part.name or ""
        if switch in _REFUSED:
            reason = reason or f"{part.words[0]} asks for {_REFUSED[switch]}"
        if switch in _ENGINES or switch in _OUTPUT or switch.startswith("export"):
            continue
        if switch in ("gpu", "nogpu", "prism-dir"):
            continue
        (own if switch.startswith("gpu") else kept).append(part)
    named = {part.name for part in kept}
    files = sum(part.name is None for part in kept) + bool(named & _IMPORTED)
    if files < 2 and not named & _CHOOSING_TEXT:
        reason = reason or "it names no properties"
    return Case(name, folder, joined(kept), joined(own), reason)
