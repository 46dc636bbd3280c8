"""Command lines of `export` and `report`: switch by switch, each with its values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bridge.arguments import WITH_TWO_VALUES, WITH_VALUE, UsageError
from engines.errors import UnsupportedError

OURS_WITH_VALUE = {
    *("gpudevice", "gpudevices", "gpuengine", "gpuformat", "gpumaxmem", "gpumethod"),
    *("gpuslice", "gpucolours", "gpuprecision", "gpuplot", "gpuprogress"),
    *("frontend", "prism-dir", "javamaxmem", "javastack"),
}
# What PRISM does with results once they are there; the report does it, the export must not.
OUTPUT = {"exportresults", "exportvector", "test", "testall"}
# What may be added to a report, beside what exports something.
ADDED = OUTPUT | {"mainlog", "verbose", "v", "prism-dir", "javamaxmem", "javastack", "javaparams"}
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
    if any(part.name == "dir" for part in parts):
        return parts
    return [
        part if part.name is not None else Group(None, (str(Path(part.words[0]).absolute()),))
        for part in parts
    ]


def require_output_only(parts: list[Group]) -> None:
    """Refuse what a report may not add to the command line of its export.

    Raises
    ------
    UsageError
        Naming the first such word.
    """
    for part in parts:
        exports = part.name is not None and part.name.startswith("export")
        if part.name in REFUSED or not (part.name in ADDED or exports):
            raise UsageError(
                f"{part.words[0]} cannot be added to a report, which repeats the export's command "
                "line: only switches that write something out can"
            )
