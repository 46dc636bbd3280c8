"""Reading `.lab`: named sets of states."""

from __future__ import annotations

import re

import numpy as np

from bridge.files.names import first_repeated, printable
from bridge.files.rows import allocate
from bridge.files.source import Section, TextReader, decoded, line_start
from engines.arrays import MaskArray
from engines.host.compiled.text import LineStatus, scan_labels

DECLARATION = re.compile(r'\s*(\d{1,9})\s*=\s*"([^"]+)"\s*')
OTHER_TITLE = re.compile(
    r"# (?:States|Transitions.*|Observations|State rewards|Transition rewards"
    r"|Reward structure.*)\s*"
)


def read_labels(section: Section, num_states: int) -> dict[str, MaskArray]:
    """Read the labels of a model.

    Parameters
    ----------
    section
        The text.
    num_states
        States of the model.

    Returns
    -------
    Masks of shape (num_states,) by name, in the file's order.

    Raises
    ------
    InvalidModelError
        Naming the file, and the line where there is one.
    """
    with section.open() as reader:
        names = _read_names(reader)
        masks: MaskArray = allocate(
            section, (len(names), num_states), np.bool_, "the masks of the labels"
        )
        for text, first_line in reader.blocks():
            status, line = scan_labels(text, masks)
            if status != LineStatus.OK:
                reason = {
                    LineStatus.BAD_SHAPE: "expected `state: label label …`",
                    LineStatus.BAD_STATE: f"the states are 0 to {num_states - 1}",
                    LineStatus.BAD_LABEL: f"the labels are 0 to {len(names) - 1}",
                }[status]
                section.fail(first_line + line, f"{reason}, found {line_start(text, line)!r}")
    return {name: masks[number] for number, name in enumerate(names)}


def read_declaration(reader: TextReader, kind: str, expected: str) -> str:
    """Return the first line that is no comment, which declares the names in a file.

    Parameters
    ----------
    reader
        At the head of the file.
    kind
        "labels" or "states": what the file is to hold.
    expected
        What the line is to look like, for the message.

    Raises
    ------
    InvalidModelError
        If there is no such line, or a comment says that this is another kind of file.
    """
    section = reader.section
    while (raw := reader.readline()) is not None:
        text = decoded(section, reader.line - 1, raw).strip()
        if OTHER_TITLE.fullmatch(text) and text != f"# {kind.capitalize()}":
            reader.fail(f"is no {kind} file: it says {text!r}")
        if text and not text.startswith("#"):
            return text
    section.fail(None, f"is empty; expected {expected}")


def _read_names(reader: TextReader) -> list[str]:
    text = read_declaration(reader, "labels", 'label names, such as `0="init"`')
    names: list[str] = []
    position = 0
    while position < len(text):
        match = DECLARATION.match(text, position)
        if not match:
            reader.fail(f'expected label names, such as `0="init"`, found {text[position:][:60]!r}')
        if int(match[1]) != len(names):
            reader.fail(f"label {match[1]} is declared where label {len(names)} should be")
        names.append(printable(match[2]))
        position = match.end()
    if (twice := first_repeated(names)) is not None:
        reader.fail(f'label "{twice}" is declared twice')
    return names
