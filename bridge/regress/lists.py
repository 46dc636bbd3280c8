"""Lists of runs: a line a run, in the C-shell form of the `auto` files of PRISM's examples.

A line names a model, its properties and switches, after the word ``prism`` or without it; lines may
stand in nested ``foreach`` loops, whose variables they use.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace

from engines.errors import InvalidModelError

_COMMENT = re.compile(r"(?:^|\s)#.*")
_FOREACH = re.compile(r"foreach\s+(\w+)\s*\(\s*(.*?)\s*\)")
_VARIABLE = re.compile(r'"\$(\w+)"|\$\{(\w+)\}|\$(\w+)')
_PROGRAMS = ("prism", "prism-gpu")


@dataclass(frozen=True)
class _Line:
    number: int
    text: str

    def with_value(self, variable: str, value: str) -> _Line:
        def filled(found: re.Match[str]) -> str:
            return value if variable in found.groups() else found[0]

        return replace(self, text=_VARIABLE.sub(filled, self.text))


@dataclass
class _Loop:
    """A `foreach` that is being read."""

    number: int
    variable: str
    values: list[str]
    body: list[_Line] = field(default_factory=list)

    def unrolled(self) -> list[_Line]:
        return [
            line.with_value(self.variable, value) for value in self.values for line in self.body
        ]


def runs_of(text: str, name: str) -> list[list[str]]:
    """Return the words of each run in a list, without the program, in the list's order.

    Parameters
    ----------
    text
        The list.
    name
        The list's file, for messages.

    Raises
    ------
    InvalidModelError
        Naming the line of a loop that does not end, of an end without a loop, of a variable that
        has no value, or of a quotation that does not end.
    """
    lines: list[_Line] = []
    loops: list[_Loop] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _COMMENT.sub("", raw).strip()
        loop = _FOREACH.fullmatch(line)
        if loop:
            loops.append(_Loop(number, loop[1], loop[2].split()))
        elif line == "end":
            if not loops:
                raise InvalidModelError(f"{name}, line {number}: an end without its foreach")
            done = loops.pop()
            (loops[-1].body if loops else lines).extend(done.unrolled())
        elif line:
            (loops[-1].body if loops else lines).append(_Line(number, line))
    if loops:
        raise InvalidModelError(f"{name}, line {loops[-1].number}: a foreach without its end")
    return [words for line in lines if (words := _words(line, name))]


def _words(line: _Line, name: str) -> list[str]:
    unknown = _VARIABLE.search(line.text)
    if unknown:
        raise InvalidModelError(f"{name}, line {line.number}: {unknown[0]} has no value")
    try:
        words = shlex.split(line.text)
    except ValueError as error:
        raise InvalidModelError(f"{name}, line {line.number}: {error}") from error
    return words[1:] if words[0] in _PROGRAMS else words
