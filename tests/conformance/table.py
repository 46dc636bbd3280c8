"""The table of a conformance run, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.conformance.compare import Summary

_COLUMNS = (
    *(
        "suite",
        "switches",
        "of its models",
        "tests",
        "passed",
        "failed",
        "of these PRISM fails too",
    ),
    *("other digits", "not supported", "no verdict", "compared", "PRISM inexact"),
    *("new failures", "solves of ours", "handed back"),
)


def markdown(summaries: list[Summary]) -> str:
    """Return counts, reasons for handing back, and failures that plain PRISM does not have."""
    rows = [_row(summary) for summary in summaries]
    return "\n\n".join((_table(_COLUMNS, rows), _reasons(summaries), _failures(summaries))) + "\n"


def _row(summary: Summary) -> list[object]:
    outcomes = summary.outcomes
    return [
        summary.suite,
        _code(summary.switches),
        f"{summary.finished} of {summary.units}" if summary.finished < summary.units else "all",
        summary.tests,
        outcomes["passed"],
        outcomes["failed"],
        f"{summary.fails_too}{f' ({summary.without_peer} unknown)' * bool(summary.without_peer)}",
        outcomes["digits"],
        outcomes["unsupported"],
        outcomes["skipped"],
        summary.compared,
        summary.inexact,
        len(summary.new_failures),
        summary.solved.total(),
        summary.handed_back.total(),
    ]


def _reasons(summaries: list[Summary]) -> str:
    total: Counter[str] = sum((summary.handed_back for summary in summaries), Counter())
    heads = ["handed back: reason", *(f"{s.suite} {_code(s.switches)}" for s in summaries)]
    rows = [
        [reason, *(summary.handed_back[reason] for summary in summaries)]
        for reason, _ in total.most_common()
    ]
    return _table(heads, rows)


def _failures(summaries: list[Summary]) -> str:
    rows = [
        [_code(f"{f.test} {summary.switches}"), _code(f.about), f.message]
        for summary in summaries
        for f in summary.new_failures
    ]
    if not rows:
        unknown = sum(summary.without_peer for summary in summaries)
        left = f" so far; {unknown} tests wait for plain PRISM's run" if unknown else ""
        return f"No failure that plain PRISM does not have{left}."
    return _table(("failures that plain PRISM does not have", "property", "message"), rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def _code(text: str) -> str:
    return f"`{text}`" if text else "–"
