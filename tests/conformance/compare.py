"""What prism-gpu fails and plain PRISM does not."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.verdicts import DIGITS, FAILED, PASSED, SKIPPED, Call, Verdict

RELATIVE_TOLERANCE = 1e-5
"""The tolerance of PRISM's own test mode."""
_NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
_BOUND = re.compile(r"\(\+/- ([^ ]+) estimated; rel err|\(\+/- ([^ ;)]+)")


@dataclass(frozen=True)
class NewFailure:
    """One verdict of prism-gpu that is worse than plain PRISM's.

    Attributes
    ----------
    test, about, message : str
        The command line, the property, and what prism-auto printed, or how the results differ.
    """

    test: str
    about: str
    message: str


@dataclass
class Summary:
    """The counts of one suite under one set of switches.

    Attributes
    ----------
    finished, units : int
        Calls of prism-auto that are finished, and how many the whole suite has.
    tests, without_peer : int
        Calls of PRISM; those of them that lack a run of plain PRISM that is needed.
    outcomes : Counter
        Verdicts by outcome; a time-out is a failure.
    fails_too : int
        Failures that plain PRISM has as well.
    new_failures : list of NewFailure
        Failures that it has not.
    solved, handed_back : Counter
        Solves of ours by engine, and what PRISM's own code did by reason.
    compared, inexact : int
        Results, not tested by PRISM, that were compared with plain PRISM's; and those of them that
        differ, but agree with plain PRISM's at the referee's epsilon.
    """

    suite: str
    switches: str
    finished: int = 0
    units: int = 0
    tests: int = 0
    without_peer: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    fails_too: int = 0
    new_failures: list[NewFailure] = field(default_factory=list)
    solved: Counter[str] = field(default_factory=Counter)
    handed_back: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    inexact: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return plain dictionaries and lists."""
        return {**vars(self), "new_failures": [vars(failure) for failure in self.new_failures]}

    def add(self, ours: Call, peer: Call | None, referee: Call | None = None) -> None:
        """Count a test of prism-gpu.

        Parameters
        ----------
        ours
            The test.
        peer
            The same test by plain PRISM.
        referee
            The same test by plain PRISM at a smaller epsilon.
        """
        self.tests += 1
        self.outcomes.update(verdict.outcome for verdict in ours.verdicts)
        self.solved += ours.solved
        self.handed_back += ours.handed_back
        if peer is None:
            self.without_peer += needs_peer(ours)
            return
        new = [_failure(ours, verdict) for verdict in ours.verdicts if _is_new(verdict, peer)]
        failed = sum(verdict.outcome == FAILED for verdict in ours.verdicts)
        new_failed = sum(
            verdict.outcome == FAILED and _is_new(verdict, peer) for verdict in ours.verdicts
        )
        self.fails_too += failed - new_failed
        if any(verdict.outcome == SKIPPED for verdict in ours.verdicts):
            self.compared += min(len(ours.results), len(peer.results))
            found = differences(ours, peer)
            wrong = found if referee is None else found & differences(ours, referee)
            self.inexact += len(found - wrong)
            new += [_difference(ours, peer, place) for place in sorted(wrong)]
        self.new_failures += new


def needs_peer(test: Call) -> bool:
    """Return whether PRISM's verdicts alone do not settle a test."""
    settled = (PASSED, DIGITS)
    return not test.verdicts or any(verdict.outcome not in settled for verdict in test.verdicts)


def _failure(test: Call, verdict: Verdict) -> NewFailure:
    return NewFailure(test.command, verdict.about, verdict.message)


def _is_new(verdict: Verdict, peer: Call) -> bool:
    """Return whether a verdict is worse than the peer's; exports must fail with the same file."""
    same = {other.name: other for other in peer.verdicts}.get(verdict.name)
    if verdict.outcome == FAILED:
        if same is None or same.outcome != FAILED:
            return True
        return verdict.name.startswith("export ") and verdict.message != same.message
    return verdict.outcome not in (PASSED, DIGITS) and same is not None and same.outcome == PASSED


def differences(ours: Call, peer: Call) -> set[int]:
    """Return which results differ from the peer's by more than tolerance and printed bounds."""
    if any(verdict.name == "time-out" for verdict in ours.verdicts + peer.verdicts):
        count = min(len(ours.results), len(peer.results))
    else:
        count = max(len(ours.results), len(peer.results))
    return {
        place
        for place in range(count)
        if not same_result(_result(ours, place), _result(peer, place))
    }


def _result(test: Call, place: int) -> str:
    return test.results[place] if place < len(test.results) else "none"


def _difference(ours: Call, peer: Call, place: int) -> NewFailure:
    message = f"result {place + 1}: {_result(ours, place)}; PRISM's: {_result(peer, place)}"
    return NewFailure(ours.command, "", message)


def same_result(mine: str, other: str) -> bool:
    """Return whether two results as PRISM prints them agree, given the errors that they admit."""
    words = [text.split(" (")[0].strip() for text in (mine, other)]
    if words[0] == words[1]:
        return True
    try:
        x, y = map(float, words)
    except ValueError:
        return False
    return math.isclose(
        x, y, rel_tol=RELATIVE_TOLERANCE, abs_tol=_printed_bound(mine) + _printed_bound(other)
    )


def _printed_bound(text: str) -> float:
    found = _BOUND.search(text)
    return float(found[1] or found[2]) if found else 0.0


def same_but_for_digits(mine: str, expected: str) -> bool:
    """Return whether two texts are equal but for numbers that agree to the tolerance."""
    if _NUMBER.sub("#", mine) != _NUMBER.sub("#", expected):
        return False
    pairs = zip(_NUMBER.findall(mine), _NUMBER.findall(expected), strict=True)
    return all(
        x == y or ("." in x + y and math.isclose(float(x), float(y), rel_tol=RELATIVE_TOLERANCE))
        for x, y in pairs
    )
