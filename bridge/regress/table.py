"""What a person reads: a line a difference, and the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from textwrap import wrap

from bridge.regress.run import CaseResult
from bridge.regress.verdicts import Outcome, Standing, Verdict

_TOLD_WHOLLY = (Outcome.NOT_COMPARED, Outcome.REFUSED)
_TOLD = (
    Standing.WRONG,
    Standing.WITHIN,
    Standing.DIFFERS,
    Standing.MISSING,
    Standing.BEYOND,
)
RULE = (
    "Values agree if they differ by no more than the tolerance and both engines' errors; an "
    "estimate of PRISM's counts up to -epsilon. A value further from the judge's is within its "
    "claim if the error that its engine claims explains it, else wrong."
)
"""By what a value is called right or wrong, for the foot of the table and the reports."""


def case_lines(result: CaseResult) -> Iterator[str]:
    """Yield a case's title with its counts, then what does not agree.

    Parameters
    ----------
    result
        The case.
    """
    case = result.case
    if case.left_out:
        yield f"{case.name}\n  left out: {case.left_out}"
        return
    counts = Counter(verdict.outcome for verdict in result.verdicts)
    parts = [f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome]]
    times = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in result.seconds.items())
    cut = "; interrupted" if result.interrupted else ""
    yield f"{case.name}\n  {', '.join(parts) or 'nothing was compared'}{cut} ({times})"
    for verdict in result.verdicts:
        yield from _verdict_lines(verdict)


def _verdict_lines(verdict: Verdict) -> Iterator[str]:
    if verdict.outcome is Outcome.AGREES:
        return
    decided = f", decided by {verdict.judge}" if verdict.judge else ""
    yield f"  {verdict.outcome}: {verdict.question}{decided}"
    seen = set()
    for item in verdict.findings:
        told = item.standing in _TOLD or verdict.outcome in _TOLD_WHOLLY
        if told and (item.engine, item.message) not in seen:
            seen.add((item.engine, item.message))
            yield f"    {item.engine}: {item.message or item.standing}"


def summary_lines(results: list[CaseResult]) -> Iterator[str]:
    """Yield the table of all cases: a row an engine, then the counts of the questions.

    Parameters
    ----------
    results
        The cases that were run.
    """
    verdicts = [verdict for result in results for verdict in result.verdicts]
    engines: dict[str, Counter[Standing]] = {}
    times: dict[str, float] = {}
    largest: dict[str, float] = {}
    for verdict in verdicts:
        for item in verdict.findings:
            engines.setdefault(item.engine, Counter())[item.standing] += 1
            times[item.engine] = times.get(item.engine, 0.0) + item.seconds
            if item.distance is not None:
                worst = max(largest.get(item.engine, 0.0), item.distance.relative)
                largest[item.engine] = worst
    rows = [["engine", *(str(standing) for standing in Standing), "largest relative", "time (s)"]]
    for name, counts in engines.items():
        cells = [str(counts[standing]) for standing in Standing]
        rows.append([name, *cells, f"{largest.get(name, 0.0):.1e}", f"{times[name]:.1f}"])
    yield ""
    yield from _aligned(rows)
    yield from wrap(RULE, 100)
    yield from _handed_back(verdicts)
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    left_out = sum(bool(result.case.left_out) for result in results)
    yield ""
    yield (
        f"{_counted(len(verdicts), 'question')} of {_counted(len(results), 'case')}: "
        + ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in Outcome if outcomes[outcome])
        + (f"; {_counted(left_out, 'case')} left out" if left_out else "")
    )
    prism_wrong = outcomes[Outcome.PRISM_WRONG]
    if prism_wrong and not any(outcomes[outcome] for outcome in Outcome if outcome.fails):
        yield f"PRISM alone is wrong, in {prism_wrong}: ours are right, so this is no failure."


def _handed_back(verdicts: list[Verdict]) -> Iterator[str]:
    """Yield how many answers of ours come of PRISM's own code, and why."""
    ours = [item for verdict in verdicts for item in verdict.findings if item.ours]
    reasons = Counter(reason for item in ours for reason in item.by_prism)
    if reasons:
        count = sum(bool(item.by_prism) for item in ours)
        yield ""
        yield f"PRISM's own code had a part in {_counted(count, 'answer')} of ours:"
        for reason, number in reasons.most_common():
            yield f"  {number}  {reason}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _aligned(rows: list[list[str]]) -> Iterator[str]:
    """Yield rows of a table, with its columns but the first to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        first = row[0].ljust(widths[0])
        rest = (text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))
        yield "  ".join([first, *rest])
