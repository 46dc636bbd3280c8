"""What an engine answered: of a model, and of a property."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any


class Kind(StrEnum):
    """How a question ended.

    A refusal is an error that PRISM's code raised; NOTHING is an end without any answer: out of
    time, out of memory, a crash, or iterations that did not converge.
    """

    VALUES = "values"
    REFUSED = "refused"
    NOTHING = "no answer"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Cell:
    """One question: a property of a model, all constants defined.

    Parameters
    ----------
    number
        Its place among the questions of a case; by it engines' answers are matched, since the exact
        engine prints constants as fractions.
    model
        Which of the case's models it is about, from 0 on.
    model_constants, property_constants
        As PRISM prints them, such as "N=3,k=2"; empty for none.
    index
        The property's place among those that are checked, from 0 on.
    text
        The property, as PRISM prints it.
    """

    number: int
    model: int = field(compare=False, default=0)
    model_constants: str = field(compare=False, default="")
    index: int = field(compare=False, default=0)
    property_constants: str = field(compare=False, default="")
    text: str = field(compare=False, default="")

    @property
    def name(self) -> str:
        """The property with its constants, for people."""
        constants = ",".join(filter(None, (self.model_constants, self.property_constants)))
        return f"{self.text} [{constants}]" if constants else self.text


WHOLE = Cell(-1, text="the command line")
"""Stands for all questions of a command line that could not be read."""


@dataclass(frozen=True)
class Claim:
    """What a result says of its own error.

    Parameters
    ----------
    level
        PRISM's word: EXACT, EXACT_FLOATING_POINT, BOUNDED, ESTIMATED_BOUNDED; empty for nothing.
    error
        The largest error.
    absolute
        Whether that is absolute; else it is relative to each value.
    """

    level: str = ""
    error: float = 0.0
    absolute: bool = True


@dataclass(frozen=True)
class Answer:
    """What one engine answered to one question.

    Parameters
    ----------
    cell
        The question.
    kind
        How it ended.
    message
        The error, or why there is no answer.
    value
        The result as PRISM prints it.
    vector
        File with the values of all states; None where there are none.
    boolean
        Whether the values are truth values.
    claim
        What the result says of its error.
    epsilon, absolute
        The settings of the run: convergence threshold, and whether it is absolute.
    seconds
        Time of the check, with that of a model that had to be built for it.
    by_prism
        Ours: what PRISM's own code did instead, by its reason.
    """

    cell: Cell
    kind: Kind
    message: str = ""
    value: str = ""
    vector: Path | None = None
    boolean: bool = False
    claim: Claim = field(default_factory=Claim)
    epsilon: float = 1e-6
    absolute: bool = False
    seconds: float = 0.0
    by_prism: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelFacts:
    """What an engine built from one choice of constants.

    Parameters
    ----------
    number
        Which of the case's models it is.
    constants
        Its constants.
    message
        Why it could not be built; empty if it was.
    type
        Such as "DTMC".
    num_states, num_transitions
        Its size.
    states
        File of the states; see `bridge.regress.vectors`.
    labels
        File of the labels' states.
    seconds
        Time of the building, and of writing the files.
    """

    number: int
    constants: str
    message: str = ""
    type: str = ""
    num_states: int = 0
    num_transitions: int = 0
    states: Path | None = None
    labels: Path | None = None
    seconds: float = 0.0


@dataclass
class Record:
    """All that one engine told of one case.

    Attributes
    ----------
    models : dict
        What was built, by the model's number.
    answers : dict
        By question.
    """

    models: dict[int, ModelFacts] = field(default_factory=dict)
    answers: dict[Cell, Answer] = field(default_factory=dict)


def plain(item: Answer | ModelFacts) -> dict[str, Any]:
    """Return an item as JSON can hold it; files by their names alone."""
    values = asdict(item)
    return {
        name: value.name if isinstance(value, Path) else value for name, value in values.items()
    }


def answer_from(values: dict[str, Any], folder: Path) -> Answer:
    """Return the answer that `plain` made; its files lie in the folder."""
    changed = {
        "cell": Cell(**values["cell"]),
        "kind": Kind(values["kind"]),
        "claim": Claim(**values["claim"]),
        "vector": folder / values["vector"] if values["vector"] else None,
        "by_prism": tuple(values["by_prism"]),
    }
    return Answer(**{**values, **changed})


def facts_from(values: dict[str, Any], folder: Path) -> ModelFacts:
    """Return the facts that `plain` made; their files lie in the folder."""
    files = {name: folder / values[name] if values[name] else None for name in ("states", "labels")}
    return ModelFacts(**{**values, **files})
