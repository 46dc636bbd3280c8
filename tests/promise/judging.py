"""Whether what is printed holds: the value, and the error behind it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from tests.promise.models import Case
from tests.promise.oracle import INFINITY, Value
from tests.promise.questions import Question

EXACT_ULPS = 4
"""How far from the exact value a number may be that is called exact."""
FAILURES = re.compile(r"unexpected|Traceback|Exception in|please report|NaN|Internal", re.I)
_RESULT = re.compile(r"^Result[^:\n]*: (\S+)(?: \((.*)\))?$", re.MULTILINE)
_ERROR = re.compile(r"^(?:Error: .*|Exception .*|Traceback .*)", re.MULTILINE)
_BOUND = re.compile(r"\+/- (\S+?)( estimated)?; rel err (\S+)")


@dataclass(frozen=True)
class Printed:
    """What was printed about a property.

    Parameters
    ----------
    value
        The result; None where there is none.
    claim
        What stood in brackets behind it.
    error
        The error's text; empty where there is a result.
    """

    value: float | None
    claim: str = ""
    error: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return self.error or "nothing"
        return f"{self.value!r} ({self.claim})" if self.claim else repr(self.value)


def printed_answers(log: str) -> list[Printed]:
    """Return what a log says of each property, in their order.

    Parameters
    ----------
    log
        Of a run of any route; it may be cut short.
    """
    found = []
    for block in re.split(r"^Model checking: ", log, flags=re.MULTILINE)[1:]:
        results = _RESULT.findall(block)
        if results:
            value, claim = results[-1]
            found.append(Printed(float(value.replace("Infinity", "inf")), claim))
        else:
            error = _ERROR.search(block)
            found.append(Printed(None, error=error[0] if error else ""))
    return found


def fault(question: Question, text: Case | None, exact: Value | None, printed: Printed) -> str:
    """Return what is wrong with an answer; empty where nothing is.

    Parameters
    ----------
    question
        What was asked.
    text
        The model as it is written, where its numbers were rounded when they were read; None where
        they were doubles before.
    exact
        The question's value; None where there is no answer to compare with it.
    printed
        The answer.
    """
    value = printed.value
    if value is None or exact is None:
        return "failed unexpectedly" if FAILURES.search(printed.error) else ""
    if math.isnan(value):
        return "NaN"
    if value < 0.0 or (question.probability and value > 1.0):
        return "out of range"
    if INFINITY in (value, exact):
        return "" if value == exact else "infinite"
    distance = abs(Fraction(value) - exact)
    allowed, kind = _allowed(question, value, printed.claim)
    if allowed is None or distance <= allowed:
        return ""
    if text is None:
        return kind
    # Rounded numbers may have another value: that of the model which was read.
    read = question.exact(text.read())
    if read != INFINITY:
        allowed += abs(Fraction(read) - exact)
    return kind if distance > allowed else ""


def vague(printed: Printed, largest: float) -> bool:
    """Return whether an error is claimed that says little, though nothing is wrong.

    Parameters
    ----------
    printed
        The answer.
    largest
        The largest error that says something, as a part of the value, or of 1e-6.
    """
    bound = _BOUND.search(printed.claim)
    if bound is None or printed.value in (None, INFINITY):
        return False
    size = max(abs(printed.value or 0.0), 1e-6)
    return not float(bound[1].replace("Infinity", "inf")) <= largest * size


def _allowed(question: Question, value: float, claim: str) -> tuple[Fraction | None, str]:
    """Return how far the exact value may be, None for anywhere, and what a larger distance is."""
    ulp = Fraction(math.ulp(value))
    if claim == "exact floating point":
        # A step rounds a sum of a few products.
        return (EXACT_ULPS + 2 * question.steps) * ulp, "not exact"
    bound = _BOUND.search(claim)
    if bound is None:
        return None, "no claim"
    if bound[1] in ("Infinity", "NaN"):
        return (None, "") if bound[1] == "Infinity" else (Fraction(-1), "NaN claimed")
    kind = "outside the estimate" if bound[2] else "outside the proven error"
    return Fraction(float(bound[1])) + (ulp / 2 if bound[2] else 0), kind
