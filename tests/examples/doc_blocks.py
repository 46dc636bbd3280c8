"""The examples in the documentation: fenced blocks, and the marks that say how each is run.

A mark is an HTML comment on the line before the block:

    <!-- run: prism; slow; N=64 as N=4 -->
    <!-- not run: why -->

`prism` needs an installed PRISM, `gpu` a GPU, `plots` matplotlib; `slow` takes more
than a few seconds; `A as B` runs the block with every A replaced by B. Without a mark a block is
run as it stands. A block of `console` has commands behind `$` and, below each, lines that its
output must hold in their order, `…` for what differs from run to run; other shell blocks must end
with success and print no error. Blocks of `text` and `prism` (models, properties) are no examples.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (
    ROOT / "README.md",
    *sorted(DOCS.glob("*.md")),
    *sorted((DOCS / "measurements").glob("*.md")),
)
FENCE = re.compile(r"^( *)```(\w*)\s*$")
MARK = re.compile(r"^\s*<!-- (run|not run): (.+?) -->\s*$")
NEEDS = ("prism", "gpu", "plots", "slow")
SHELL = ("", "sh", "console")
NO_EXAMPLES = ("text", "prism")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Parameters
    ----------
    page
        Its file.
    line
        The number of its first line, from 1 on.
    language
        What follows the fence.
    text
        As it stands.
    needs
        Words of its mark.
    shrunk
        Pairs of texts: what is replaced, and by what.
    not_run
        Why it is not run; empty where it is.
    """

    page: Path
    line: int
    language: str
    text: str
    needs: tuple[str, ...] = ()
    shrunk: tuple[tuple[str, str], ...] = ()
    not_run: str = ""

    @property
    def name(self) -> str:
        """Page and line."""
        return f"{self.page.name}:{self.line}"

    @property
    def runnable(self) -> str:
        """The text with what is shrunk replaced.

        Raises
        ------
        ValueError
            If a mark replaces what is not there.
        """
        text = self.text
        for old, new in self.shrunk:
            if old not in text:
                raise ValueError(f"{self.name}: the mark shrinks {old!r}, which is not there")
            text = text.replace(old, new)
        return text


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page, in their order.

    Parameters
    ----------
    page
        A Markdown file.

    Raises
    ------
    ValueError
        For a block without an end, an unknown language or a mark that is none.
    """
    lines = page.read_text(encoding="utf-8").splitlines()
    found: list[Block] = []
    number = 0
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if fence is None:
            number += 1
            continue
        first = number + 1
        indent, language = fence.groups()
        end = first
        while end < len(lines) and lines[end] != f"{indent}```":
            end += 1
        if end == len(lines):
            raise ValueError(f"{page.name}:{first}: a block without an end")
        text = "\n".join(line[len(indent) :] for line in lines[first:end]) + "\n"
        mark = MARK.match(lines[number - 1]) if number else None
        found.append(_block(page, first + 1, language, text, mark))
        number = end + 1
    return found


def _block(page: Path, line: int, language: str, text: str, mark: re.Match[str] | None) -> Block:
    if language not in (*SHELL, "python", *NO_EXAMPLES):
        raise ValueError(f"{page.name}:{line}: blocks of {language} are not known")
    if language in NO_EXAMPLES:
        if re.search(r"^(\$ )?(prism-gpu|python|sh|pip) ", text, re.MULTILINE):
            raise ValueError(f"{page.name}:{line}: commands in a block of {language} are not run")
        return Block(page, line, language, text)
    if mark is None:
        return Block(page, line, language, text)
    if mark[1] == "not run":
        return Block(page, line, language, text, not_run=mark[2])
    needs, shrunk = [], []
    for word in mark[2].split("; "):
        old, found, new = word.partition(" as ")
        if found:
            shrunk.append((old, new))
        elif word in NEEDS:
            needs.append(word)
        else:
            raise ValueError(f"{page.name}:{line}: the mark {word!r} is not known")
    return Block(page, line, language, text, tuple(needs), tuple(shrunk))


def commands_of(text: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a `console` block, each with the lines expected of it.

    Parameters
    ----------
    text
        The block.
    """
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (found[-1][0][:-1] + line.strip(), found[-1][1])
        elif line.strip():
            found[-1][1].append(line)
    return found


def missing_line(expected: list[str], output: str) -> str | None:
    """Return the first expected line that an output does not hold in its place, or None.

    Parameters
    ----------
    expected
        Lines, in their order; `…` stands for any text.
    output
        What was printed.
    """
    lines = iter(output.splitlines())
    for line in expected:
        pattern = re.compile(".*?".join(map(re.escape, line.strip().split("…"))))
        if not any(pattern.fullmatch(printed.strip()) for printed in lines):
            return line
    return None
