"""Command lines of `export` and `report`: switch by switch, each with its values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bridge.arguments import LINEAR_METHODS, WITH_TWO_VALUES, WITH_VALUE
from bridge.own_switches import UsageError
from engines.errors import UnsupportedError

OURS_WITH_VALUE = {
    *("gpudevice", "gpudevices", "gpuengine", "gpuformat", "gpumaxmem", "gpumethod"),
    *("gpuslice", "gpucolours", "gpuprecision", "gpuplot", "gpuprogress"),
    *("gpusimseed", "gpusimsource", "gpusimstates", "gpusimsync", "simcluster"),
    *("frontend", "prism-dir", "javamaxmem", "javastack", "javaparams"),
}
# Switches that decide the model and the answers: what a report repeats of an export's command
# line. None names a file, a log, a program or anything of Java.
REPLAYED = {
    *("explicit", "ex", "dtmc", "ctmc", "mdp", "importpepa", "const", "pf", "pctl", "csl"),
    *("property", "prop", "fixdl", "nofixdl", "noprobchecks", "sumroundoff", "nopre", "noprob0"),
    *("noprob1", "noprerel", "fair", "nofair", "zerorewardcheck", "nossdetect", "sccmethod"),
    *("pathviaautomata", "nodasimplify", "ltl2dasyntax", "pmaxquotient", "ptamethod"),
    *("transientmethod", "valiter", "topological", "intervaliter", "ii", "omega", "epsilon", "e"),
    *("maxiters", "relative", "rel", "absolute", "abs", *LINEAR_METHODS),
}
WITH_OPTIONS = {"intervaliter", "ii"}
# What PRISM does with results once they are there; the report does it, the export must not.
OUTPUT = {"exportresults", "exportvector", "test", "testall"}
# What decides the model too, but names a file or a program: the report takes it from its own
# command line, never from the folder.
FILES_READ = {
    *("importmodel", "importtrans", "importstates", "importobs", "importlabels"),
    *("importstaterewards", "importtransrewards", "importinitdist", "settings", "ltl2datool"),
}
PLACES = {"dir", "prism-dir", "javamaxmem", "javastack", "javaparams"}
# What may be added to a report, beside what exports something.
ADDED = {
    *OUTPUT,
    *FILES_READ,
    *("mainlog", "verbose", "v", "noexportheaders", "timeout", "cuddmaxmem", "nocompact"),
    *PLACES,
}
REFUSED = {
    **dict.fromkeys(("ss", "steadystate", "exportss", "exportsteadystate"), "steady states"),
    **dict.fromkeys(("tr", "transient", "exporttr", "exporttransient"), "transient distributions"),
    **dict.fromkeys(("exportadv", "exportadvmdp", "exportstrat"), "strategies"),
    **dict.fromkeys(
        ("exportprodtrans", "exportprodstates", "exportprodvector", "exporttarget"), "products"
    ),
    **dict.fromkeys(("politer", "modpoliter", "linprog", "lp"), "policies and linear programs"),
    "bisim": "quotients of the model",
    "importresults": "imported results",
    "simpath": "random paths",
    "gui": "PRISM's window",
    "ng": "a server",
}


@dataclass(frozen=True)
class Group:
    """A switch with its values, or a word that is no switch (`name` None)."""

    name: str | None
    words: tuple[str, ...]

    @property
    def value(self) -> str:
        """The switch's value; empty where none was given."""
        return self.words[1] if len(self.words) > 1 else ""


def groups(words: list[str] | tuple[str, ...], with_value: set[str]) -> Iterator[Group]:
    """Yield a command line's switches and other words, in their order.

    Parameters
    ----------
    words
        The command line.
    with_value
        Switches that a value follows, beside those of PRISM and of prism-gpu.
    """
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word in ("-", "--"):
            yield Group(None, (word,))
            continue
        name, equals, _ = word.lstrip("-").partition(":")[0].partition("=")
        values = 0 if equals else int(name in WITH_VALUE | OURS_WITH_VALUE | with_value)
        values = 2 if name in WITH_TWO_VALUES else values
        yield Group(name, (word, *islice(rest, values)))


def replay_fault(part: Group) -> str:
    """Return why a report does not repeat a part of a command line; empty where it does.

    Parameters
    ----------
    part
        A switch with its values, or the name of a file.
    """
    if part.name is None:
        return f"{part.words[0]!r:.60} names no file" if part.words[0].startswith("-") else ""
    sign, colon, _ = part.words[0].partition(":")
    # Written otherwise, the command line's other readers may take it for something else.
    as_due = sign in (f"-{part.name}", f"--{part.name}")
    if part.name not in REPLAYED or not as_due or (colon and part.name not in WITH_OPTIONS):
        return f"{part.words[0]!r:.60} is no switch that a report repeats"
    if len(part.words) <= int(part.name in WITH_VALUE):
        return f"no value for {part.words[0]!r:.60}"
    return ""


def taken_apart(parts: list[Group]) -> tuple[list[Group], list[Group]]:
    """Return what a report repeats of an export's command line, and what must be said to it again.

    Parameters
    ----------
    parts
        The command line, files by their whole paths.
    """
    replayed = [part for part in parts if part.name is None or part.name in REPLAYED]
    again = [part for part in parts if part.name in OUTPUT | FILES_READ | PLACES]
    return replayed, again


def _may_be_added(name: str) -> bool:
    return name not in REFUSED and (name in ADDED or name.startswith("export"))


def joined(parts: list[Group]) -> tuple[str, ...]:
    """Return the command line that groups were made of."""
    return tuple(word for part in parts for word in part.words)


def require_exportable(parts: list[Group]) -> None:
    """Refuse switches whose work cannot be done on another machine, and experiments.

    Parameters
    ----------
    parts
        The command line.

    Raises
    ------
    UnsupportedError
        Naming the switch.
    """
    for part in parts:
        if part.name in REFUSED:
            raise UnsupportedError(
                f"{part.words[0]} cannot be exported: {REFUSED[part.name]} are PRISM's own work"
            )
        if part.name == "const" and ":" in part.value:
            raise UnsupportedError(
                f"-const {part.value} is an experiment over a range of values: export one folder "
                "for each value"
            )


def with_absolute_files(parts: list[Group]) -> list[Group]:
    """Return the command line with the model's and the properties' file by absolute paths.

    The report may then run in any folder.
    """
    folder = Path(*(part.value for part in parts if part.name == "dir")).absolute()
    return [
        part if part.name is not None else Group(None, (str(folder / part.words[0]),))
        for part in parts
    ]


def require_texts(words: tuple[str, ...]) -> None:
    """Refuse names of files that are no text: a manifest cannot hold them.

    Raises
    ------
    UsageError
        Naming the first.
    """
    for word in words:
        if any("\ud800" <= sign <= "\udfff" for sign in word):
            raise UsageError(f"{word!a} is not UTF-8: give the file another name to export it")


def require_output_only(parts: list[Group]) -> None:
    """Refuse what a report may not add to the command line of its export.

    Raises
    ------
    UsageError
        Naming the first such word.
    """
    for part in parts:
        if part.name is None or not _may_be_added(part.name):
            raise UsageError(
                f"{part.words[0]} cannot be added to a report, which repeats the export's command "
                "line: only switches that read or write a file can, and those of Java"
            )
