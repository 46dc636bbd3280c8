"""Comparing a run's output or a file with PRISM's own, line by line, numbers to a tolerance."""

from __future__ import annotations

import math
import re
from pathlib import Path

NUMBERS_TOLERANCE = 1e-5
_METHOD = "(?:Jacobi|JOR|Power method|Iterative method|(?:Symmetric )?Gauss-Seidel)"
_REMOVED = (
    r"^(?:Date|Hostname|Memory limits|Command line): .*\n",
    # Our worklists need no relation of predecessors, and have no iterations.
    r"^Calculating predecessor relation .*\n",
    r"(?<=^Prob[01] \(m[ai][nx]\) took) \d+ iterations and",
    # The explicit engine's way of telling a solve, then the sparse engine's and ours.
    r"\nStarting value iteration.*(?:\nIteration .*)*(?:\nValue iteration .* took .*)?",
    rf"\n\n?{_METHOD}: \d+ iterations.*",
    r"\n\nprism-gpu: \d+ solves? on .*",
    r"\nprism-gpu: .*",
    r" \((?:\+/- .*|exact floating point)\)$",
)
_ALWAYS_THERE = re.compile(r"prism-gpu: (?:version \S+ on |\d+ solves? on )")
_SECONDS = re.compile(r"\d+(?:\.\d+)?(?:E-?\d+)? (secs|seconds|sec)\b")
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\bInfinity\b)")


def comparable(output: str) -> list[str]:
    """Return a log's lines without what differs from run to run and from engine to engine."""
    for pattern in _REMOVED:
        output = re.sub(pattern, "", output, flags=re.MULTILINE)
    return _SECONDS.sub(r"0 \1", output).splitlines()


def remarks(output: str) -> list[str]:
    """Return our lines of a log, but for the header and the one that counts solves."""
    lines = [line for line in output.splitlines() if line.startswith("prism-gpu: ")]
    return [line for line in lines if not _ALWAYS_THERE.match(line)]


def assert_same_lines(
    ours: list[str], theirs: list[str], tolerance: float = NUMBERS_TOLERANCE
) -> None:
    """Assert that lines are equal but for the last digits of their numbers."""
    for mine, other in zip(ours, theirs, strict=False):
        assert _NUMBER.sub("#", mine) == _NUMBER.sub("#", other)
        for x, y in zip(_NUMBER.findall(mine), _NUMBER.findall(other), strict=True):
            assert math.isclose(float(x), float(y), rel_tol=tolerance, abs_tol=1e-10), (
                mine,
                other,
            )
    assert len(ours) == len(theirs)


def assert_same_files(ours: Path, theirs: Path, tolerance: float = NUMBERS_TOLERANCE) -> None:
    """Assert that two files are equal but for the last digits of their numbers."""
    assert_same_lines(
        ours.read_text(encoding="utf-8").splitlines(),
        theirs.read_text(encoding="utf-8").splitlines(),
        tolerance,
    )
