"""Reading `.sta`: the values of the model's variables in each state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.files.labels import read_declaration
from bridge.files.names import printable
from bridge.files.rows import allocate
from bridge.files.source import Section, TextReader, line_start
from engines.arrays import MaskArray
from engines.host.compiled.text import LineStatus, scan_states


@dataclass(frozen=True)
class StateVariables:
    """The variables of a model and their values.

    Parameters
    ----------
    names
        Names of the variables.
    values
        Shape (states, variables), int32; 0 and 1 for false and true.
    booleans
        Which variables are true or false, one each.
    """

    names: tuple[str, ...]
    values: NDArray[np.int32]
    booleans: tuple[bool, ...]


def read_states(section: Section, num_states: int) -> StateVariables:
    """Read the values of the variables.

    Parameters
    ----------
    section
        The text.
    num_states
        States of the model; each must have one line.

    Raises
    ------
    InvalidModelError
        Naming the file, and the line where there is one.
    """
    with section.open() as reader:
        names = _read_names(reader)
        if not section.holds(2 * num_states * len(names)):
            reader.fail(f"too short for {len(names)} variables in {num_states} states")
        shape = (num_states, len(names))
        values = allocate(section, shape, np.int32, "the variables' values")
        kinds = np.zeros(len(names), dtype=np.int8)
        seen: MaskArray = np.zeros(num_states, dtype=np.bool_)
        for text, first_line in reader.blocks():
            status, line = scan_states(text, values, kinds, seen)
            if status != LineStatus.OK:
                reason = {
                    LineStatus.BAD_SHAPE: "expected `state:(value,…)`",
                    LineStatus.BAD_STATE: f"the states are 0 to {num_states - 1}",
                    LineStatus.BAD_VALUE: "a value is no 32-bit integer, true or false",
                    LineStatus.REPEATED: "this state has had a line already",
                    LineStatus.OTHER_TYPE: "a variable is an integer in one state, and not in "
                    "another",
                    LineStatus.TOO_FEW: f"fewer than {len(names)} values",
                    LineStatus.TOO_MANY: f"more than {len(names)} values",
                }[status]
                section.fail(first_line + line, f"{reason}, found {line_start(text, line)!r}")
    if not seen.all():
        section.fail(None, f"state {int(np.argmin(seen))} of {num_states} has no line")
    return StateVariables(tuple(names), values, tuple((kinds == 2).tolist()))


def _read_names(reader: TextReader) -> list[str]:
    text = read_declaration(reader, "states", "the variables' names, such as `(x,y)`")
    names = [printable(name.strip()) for name in text[1:-1].split(",")]
    if not (text.startswith("(") and text.endswith(")")) or not all(names):
        reader.fail(f"expected the variables' names, such as `(x,y)`, found {text[:60]!r}")
    if len(set(names)) < len(names):
        reader.fail(f"a variable is named twice in {text[:60]!r}")
    return names
