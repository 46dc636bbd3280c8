"""The `auto` files of PRISM's examples: C-shell scripts that call `prism` in nested loops."""

from __future__ import annotations

import re

_COMMENT = re.compile(r"(?:^|\s)#.*")
_LOOP = re.compile(r"foreach\s+(\w+)\s*\((.*)\)$")
_VARIABLE = re.compile(r'"?\$(?:\{(\w+)\}|(\w+))"?')


def command_lines(script: str) -> list[list[str]]:
    """Return the arguments of every call of `prism` that the script makes, in its order.

    Parameters
    ----------
    script
        The text of the file. Known are comments, `foreach` loops and calls of `prism`.

    Raises
    ------
    ValueError
        On any other line.
    """
    lines = []
    for number, raw in enumerate(script.splitlines(), start=1):
        line = _COMMENT.sub("", raw).strip()
        if line:
            lines.append((number, line))
    calls, rest = _block(lines, {})
    if rest:
        raise ValueError(f"line {rest[0][0]}: an end without its foreach")
    return calls


_Lines = list[tuple[int, str]]


def _block(lines: _Lines, values: dict[str, str]) -> tuple[list[list[str]], _Lines]:
    """Run lines up to the end of their loop; return the calls, and the lines from that `end` on."""
    calls: list[list[str]] = []
    while lines and lines[0][1] != "end":
        number, line = lines[0]
        loop = _LOOP.match(line)
        if loop:
            after = _block_end(lines)
            for value in loop[2].split():
                calls += _block(lines[1:], {**values, loop[1]: value})[0]
            lines = lines[after:]
        elif line.split()[0] == "prism":
            calls.append(_substitute(line, values, number).split()[1:])
            lines = lines[1:]
        else:
            raise ValueError(f"line {number}: not a comment, a loop or a call of prism: {line!r}")
    return calls, lines


def _block_end(lines: _Lines) -> int:
    """Return the place behind the `end` of the loop that begins at the first line."""
    depth = 0
    for place, (_, line) in enumerate(lines):
        depth += 1 if _LOOP.match(line) else -1 if line == "end" else 0
        if depth == 0:
            return place + 1
    raise ValueError(f"line {lines[0][0]}: a foreach without its end")


def _substitute(line: str, values: dict[str, str], number: int) -> str:
    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name not in values:
            raise ValueError(f"line {number}: {name} has no value")
        return values[name]

    return _VARIABLE.sub(value, line)
