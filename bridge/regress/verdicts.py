"""Verdicts: of each engine on a question, and of the question as a whole."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from bridge.regress.compare import Distance


class Standing(StrEnum):
    """How an engine stands on one question.

    WITHIN is a difference from the truth of more than the convergence threshold that the engine's
    own claimed error explains; WRONG one that it does not. DIFFERS is a difference of which nobody
    knows who is wrong; MISSING is no answer of ours where PRISM's engine has one; BEYOND is an
    answer of ours to what PRISM's engine says it lacks.
    """

    AGREES = "agrees"
    WITHIN = "within claim"
    WRONG = "wrong"
    DIFFERS = "undecided"
    REFUSED = "refused"
    MISSING = "missing"
    BEYOND = "ours alone"
    NOTHING = "no answer"
    LEFT_OUT = "left out"


class Outcome(StrEnum):
    """What became of one question."""

    AGREES = "agree"
    WITHIN = "within the claimed error"
    REFUSED = "refused by all"
    BEYOND = "ours alone"
    PRISM_WRONG = "PRISM wrong"
    OURS_WRONG = "ours wrong"
    UNDECIDED = "undecided"
    NOT_COMPARED = "not compared"

    @property
    def fails(self) -> bool:
        """Whether a run with this outcome ends with exit code 1."""
        return self in (Outcome.OURS_WRONG, Outcome.UNDECIDED)


@dataclass(frozen=True)
class Finding:
    """How one engine did on one question.

    Parameters
    ----------
    engine
        Its name.
    ours
        Whether it is ours.
    standing
        How it stands.
    message
        Why, where it does not agree; the worst state among it.
    distance
        How far it is from what it was compared with; None where nothing was compared.
    seconds
        Time of its check.
    by_prism
        Ours: what PRISM's own code did instead.
    """

    engine: str
    ours: bool
    standing: Standing
    message: str = ""
    distance: Distance | None = None
    seconds: float = 0.0
    by_prism: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What became of one question.

    Parameters
    ----------
    case
        The case's name.
    question
        The property with its constants; "model" with its constants for the model itself.
    findings
        How each engine did.
    judge
        What decided: an engine's name, or empty where nothing had to be decided.
    num_states
        How many states were compared.
    """

    case: str
    question: str
    findings: tuple[Finding, ...]
    judge: str = ""
    num_states: int = 0

    @property
    def outcome(self) -> Outcome:
        """The outcome, from the engines' standings."""
        ours = [item.standing for item in self.findings if item.ours]
        prisms = [item.standing for item in self.findings if not item.ours]
        if Standing.WRONG in ours or Standing.MISSING in ours:
            return Outcome.OURS_WRONG
        if Standing.DIFFERS in ours or Standing.DIFFERS in prisms:
            return Outcome.UNDECIDED
        good = {Standing.AGREES, Standing.WITHIN, Standing.REFUSED, Standing.BEYOND}
        if not good & set(ours):
            return Outcome.NOT_COMPARED
        if Standing.WRONG in prisms:
            return Outcome.PRISM_WRONG
        if Standing.WITHIN in {*ours, *prisms}:
            return Outcome.WITHIN if good & set(prisms) else Outcome.NOT_COMPARED
        if Standing.BEYOND in ours and Standing.AGREES not in prisms:
            return Outcome.BEYOND
        if Standing.AGREES not in {*ours, *prisms}:
            return Outcome.REFUSED
        return Outcome.AGREES if good & set(prisms) else Outcome.NOT_COMPARED

    @property
    def largest(self) -> tuple[float, float]:
        """The largest absolute and relative difference that any engine has."""
        found = [item.distance for item in self.findings if item.distance is not None]
        return (
            max((item.absolute for item in found), default=0.0),
            max((item.relative for item in found), default=0.0),
        )

    def as_json(self) -> dict[str, Any]:
        """Return plain dictionaries and lists; infinities and NaN as texts."""
        values = asdict(self)
        values["outcome"] = self.outcome
        return _plain(values)  # type: ignore[no-any-return]


def _plain(item: Any) -> Any:
    if isinstance(item, dict):
        return {name: _plain(value) for name, value in item.items()}
    if isinstance(item, list | tuple):
        return [_plain(value) for value in item]
    if isinstance(item, float) and not (abs(item) < float("inf")):
        return str(item)
    return item
