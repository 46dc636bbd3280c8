"""The files between worker and comparison: values by state, states, labels.

PRISM writes them as text, state by state; a worker keeps the values as ``.npy``. States are matched
by the values of their variables: engines may number them differently.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.errors import InvalidModelError

_LABEL = re.compile(r'(\d+)="([^"]*)"')
_TRUTH = {"true": 1.0, "false": 0.0}


def value_of(text: str) -> float:
    """Return a value as PRISM prints it: a number, a fraction, an infinity or a truth value.

    Parameters
    ----------
    text
        Such as "1/3", "Infinity" or "true".

    Raises
    ------
    ValueError
        For any other text.
    """
    text = text.strip()
    if text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    if "/" in text:
        # One rounding, of fractions whose parts may be too long for a float.
        return float(Fraction(text))
    return float(text)


def read_values(text: str) -> FloatArray:
    """Return the values of a text of one value a line, shape (states,).

    Parameters
    ----------
    text
        What `StateVector.print` writes without states and indices.

    Raises
    ------
    ValueError
        When a line is no value.
    """
    words = text.split()
    if words and words[0].lower() in _TRUTH:
        return np.array([_TRUTH[word] for word in words], dtype=np.float64)
    return np.array(words, dtype=np.float64)


def read_exact(text: str, num_states: int) -> FloatArray:
    """Return the values that an exact check printed, shape (states,), rounded once.

    Parameters
    ----------
    text
        The log of a check of ``filter(printall, …, true)``, with lines such as
        ``3:(1,0)=1/3   (0.3333…)``.
    num_states
        How many states there are.

    Raises
    ------
    InvalidModelError
        When a state has no value in it.
    """
    values = np.full(num_states, np.nan)
    seen: MaskArray = np.zeros(num_states, dtype=np.bool_)
    for line in text.splitlines():
        head, colon, rest = line.partition(":")
        if not (colon and head.isdecimal() and "=" in rest):
            continue
        value = rest.rpartition("=")[2].partition("   (")[0]
        values[int(head)] = value_of(value)
        seen[int(head)] = True
    if not seen.all():
        raise InvalidModelError(
            f"the exact engine printed no value of state {int(np.argmin(seen))} of {num_states}"
        )
    return values


@dataclass(frozen=True)
class States:
    """The states of a model.

    Parameters
    ----------
    variables
        The text that names the variables, such as "(x,y)".
    lines
        The values of each state, such as "(0,1)", in the order of their numbers.
    """

    variables: str
    lines: tuple[str, ...]

    def describe(self, number: int) -> str:
        """Return a state's variables with their values."""
        names = self.variables.strip("()").split(",")
        values = self.lines[number].strip("()").split(",")
        return ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def read_states(path: Path) -> States:
    """Read the states that PRISM exported.

    Parameters
    ----------
    path
        A ``.sta`` file.

    Raises
    ------
    InvalidModelError
        When the numbers do not run from 0 on.
    """
    lines = [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    states = []
    for number, line in enumerate(lines[1:]):
        head, _, rest = line.partition(":")
        if head != str(number):
            raise InvalidModelError(f"{path}: state {number} is expected, found {line[:60]!r}")
        states.append(rest)
    return States(lines[0] if lines else "()", tuple(states))


def read_labels(path: Path, num_states: int) -> dict[str, MaskArray]:
    """Read the labels that PRISM exported, as masks of shape (states,) by name.

    Parameters
    ----------
    path
        A ``.lab`` file.
    num_states
        How many states there are.
    """
    lines = [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    names = {int(number): name for number, name in _LABEL.findall(lines[0] if lines else "")}
    masks: dict[str, MaskArray] = {
        name: np.zeros(num_states, dtype=np.bool_) for name in names.values()
    }
    for line in lines[1:]:
        state, _, labels = line.partition(":")
        for label in labels.split():
            masks[names[int(label)]][int(state)] = True
    return masks


def order_of(states: States, like: States) -> IndexArray | None:
    """Return where each state of `like` is in `states`, shape (states,).

    Parameters
    ----------
    states, like
        Two builds of a model.

    Returns
    -------
    Numbers in `states`, in the order of `like`; None if the states are not the same.
    """
    if states.variables != like.variables or len(states.lines) != len(like.lines):
        return None
    if states.lines == like.lines:
        return np.arange(len(like.lines), dtype=np.int64)
    numbers = {line: number for number, line in enumerate(states.lines)}
    if len(numbers) < len(states.lines) or any(line not in numbers for line in like.lines):
        return None
    return np.array([numbers[line] for line in like.lines], dtype=np.int64)
