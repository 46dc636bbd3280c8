"""JUnit XML for continuous integration: a test case for each question and engine.

The elements, their order and their attributes are those of the schema that Jenkins' xUnit plug-in
checks (junit-10.xsd).
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from bridge.files.atomic import write_text
from bridge.regress.run import CaseResult
from bridge.regress.verdicts import Finding, Outcome, Standing, Verdict

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_TEST = (Standing.NOTHING, Standing.LEFT_OUT)


def write_junit(results: list[CaseResult], path: Path) -> None:
    """Write the verdicts as JUnit XML; a file that is there is replaced at once or not at all.

    A wrong value of ours and a difference that nobody decided are failures, an answer of ours that
    is missing is an error. What PRISM gets wrong, what is off by no more than its engine claims,
    and what was not compared, is skipped, with the reason.

    Parameters
    ----------
    results
        The cases that were run.
    path
        The file.

    Raises
    ------
    OSError
        When it cannot be written.
    """
    root = ElementTree.Element("testsuites", {"name": "prism-gpu regress"})
    totals = {"tests": 0, "failures": 0, "errors": 0}
    spent = 0.0
    for place, result in enumerate(results):
        suite = ElementTree.SubElement(root, "testsuite")
        counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
        seconds = 0.0
        if result.case.left_out:
            case = _test(suite, result.case.name, "case", 0.0)
            _add(case, "skipped", result.case.left_out)
            counts["tests"] += 1
            counts["skipped"] += 1
        for verdict in result.verdicts:
            for item in verdict.findings:
                counts["tests"] += 1
                seconds += item.seconds
                kind = _write_finding(suite, result.case.name, verdict, item)
                if kind:
                    counts[kind] += 1
        suite.attrib.update(
            {
                "name": _clean(result.case.name),
                **{name: str(count) for name, count in counts.items()},
                "time": f"{seconds:.3f}",
                "id": str(place),
            }
        )
        spent += seconds
        totals = {name: count + counts[name] for name, count in totals.items()}
    root.attrib.update({name: str(count) for name, count in totals.items()})
    root.set("time", f"{spent:.3f}")
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    write_text(path, f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n')


def _write_finding(
    suite: ElementTree.Element, case_name: str, verdict: Verdict, item: Finding
) -> str:
    """Write one test case; return which of the counts it is to raise, if any."""
    case = _test(suite, verdict.question, f"{case_name}.{item.engine}", item.seconds)
    message = item.message or str(item.standing)
    decided = f" (decided by {verdict.judge})" if verdict.judge else ""
    if item.standing is Standing.MISSING:
        _add(case, "error", message, "missing")
        return "errors"
    if item.standing is Standing.DIFFERS or (item.ours and item.standing is Standing.WRONG):
        _add(case, "failure", message + decided, str(item.standing))
        return "failures"
    if item.standing is Standing.WITHIN:
        _add(case, "skipped", f"within the claimed error: {message}{decided}")
        return "skipped"
    if item.standing is Standing.WRONG:
        _add(case, "skipped", f"PRISM is wrong: {message}{decided}")
        return "skipped"
    if item.standing in _NO_TEST or verdict.outcome is Outcome.NOT_COMPARED:
        _add(case, "skipped", message)
        return "skipped"
    return ""


def _test(
    suite: ElementTree.Element, name: str, class_name: str, seconds: float
) -> ElementTree.Element:
    attributes = {"name": _clean(name), "classname": _clean(class_name), "time": f"{seconds:.3f}"}
    return ElementTree.SubElement(suite, "testcase", attributes)


def _add(case: ElementTree.Element, tag: str, message: str, kind: str = "") -> None:
    attributes = {"message": _clean(message)}
    if kind:
        attributes = {"type": kind, **attributes}
    ElementTree.SubElement(case, tag, attributes)


def _clean(text: str) -> str:
    """Return a text without the characters that XML cannot hold."""
    return _FORBIDDEN.sub("\ufffd", text)
