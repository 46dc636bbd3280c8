"""Reading what prism-auto and PRISM printed: verdicts, solves of ours, and what was handed back."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

PASSED, FAILED, SKIPPED, UNSUPPORTED = "passed", "failed", "skipped", "unsupported"
DIGITS = "digits"

_HANDED_BACK = re.compile(
    r"^prism-gpu: (.+) is not done by our engines; PRISM's own code runs it$", re.MULTILINE
)
_SOLVED = re.compile(r"^prism-gpu: ((?:CPU|GPU)[^,]*), kernel ", re.MULTILINE)
_LOG_START = re.compile(r"^PRISM\n=====\n", re.MULTILINE)
_COMMAND_LINE = re.compile(r"^Command line: \S+ (.*)$", re.MULTILINE)
_CHECKING = re.compile(r"^(?:Model checking|Simulating|Parametric model checking): (.*)$")
_EXPORT = re.compile(r"Testing export (.*): (?:PASS|FAIL|SKIPPED)")
_RERUN = "To re-run failing test:"
_UNTESTED = "Did not find a RESULT specification"
"""PRISM and prism-auto call it a failure that a property states no expected result."""
_TOTALS = {PASSED: "Success", FAILED: "Failure", UNSUPPORTED: "Unsupported"}


@dataclass(frozen=True)
class Verdict:
    """One line of judgement by prism-auto.

    Attributes
    ----------
    name : str
        "result 3", "export a.tra", "error 1", "end", unique within a test.
    outcome : str
        "passed", "failed", "skipped" (by PRISM; or it has no expected result), "unsupported", or
        "digits": an exported file whose numbers differ from the expected in late digits alone.
    message : str
        The line.
    about : str
        The property that was checked, where the log tells.
    """

    name: str
    outcome: str
    message: str
    about: str = ""


@dataclass
class Call:
    """One call of PRISM by prism-auto.

    Attributes
    ----------
    command : str
        The arguments without the switches that all tests of the run have.
    verdicts : list of Verdict
        In the order of the run.
    results : list of str
        The values of PRISM's `Result:` lines.
    solved, handed_back : Counter
        Solves of ours by engine, and what PRISM's own code did by reason.
    """

    command: str
    verdicts: list[Verdict] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    solved: Counter[str] = field(default_factory=Counter)
    handed_back: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        """Return plain dictionaries and lists."""
        return {
            "command": self.command,
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "results": self.results,
            "solved": dict(self.solved),
            "handed_back": dict(self.handed_back),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Call:
        """Return what `as_json` wrote."""
        return cls(
            command=values["command"],
            verdicts=[Verdict(**verdict) for verdict in values["verdicts"]],
            results=values["results"],
            solved=Counter(values["solved"]),
            handed_back=Counter(values["handed_back"]),
        )


def read_tests(output: str, log: str, program: str, common: list[str]) -> list[Call]:
    """Return the tests of one call of prism-auto in test mode.

    Parameters
    ----------
    output
        What prism-auto printed.
    log
        Its single log, with PRISM's output of all runs.
    program
        The program that it ran, as prism-auto prints it.
    common
        The switches that every test of the run has, which are left out of the commands.

    Raises
    ------
    ValueError
        When the verdicts do not add up to prism-auto's own totals.
    """
    blocks = _blocks(output, program)
    logs = _logs(log)
    tests = []
    for words, lines in blocks:
        test = Call(" ".join(_own_words(words, common)))
        key = _key(words)
        text = ""
        if logs and logs[0][0] == key:
            text = logs.pop(0)[1]
        test.verdicts = _judge(lines, _properties(text))
        test.results = re.findall(r"^Result[^:\n]*: (.*)$", text, re.MULTILINE)
        test.solved = Counter(_SOLVED.findall(text))
        test.handed_back = Counter(_HANDED_BACK.findall(text))
        tests.append(test)
    _require_totals(tests, output)
    _drop_exports_of_skipped_runs(tests)
    return tests


def _drop_exports_of_skipped_runs(tests: list[Call]) -> None:
    """Drop verdicts on exports of a run that prism-auto skipped: it looks for them all the same."""
    seen: set[str] = set()
    for test in tests:
        kept = []
        for verdict in test.verdicts:
            if verdict.name.startswith("export "):
                if verdict.name in seen and "to compare to)" in verdict.message:
                    continue
                seen.add(verdict.name)
            kept.append(verdict)
        test.verdicts = kept


def _blocks(output: str, program: str) -> list[tuple[list[str], list[str]]]:
    """Split prism-auto's output at the command lines of its tests."""
    blocks: list[tuple[list[str], list[str]]] = []
    before = ""
    for line in output.partition("\nTest results:\n")[0].splitlines():
        if line.startswith(program + " ") and before != _RERUN:
            blocks.append((line.split()[1:], []))
        elif blocks:
            blocks[-1][1].append(line)
        before = line
    return blocks


def _own_words(words: list[str], common: list[str]) -> list[str]:
    words = [word for word in words if word != "-testall"]
    return words[: len(words) - len(common)] if common else words


def _key(words: list[str]) -> list[str]:
    return [word for word in words if not word.startswith(("-gpu", "-nogpu"))]


def _logs(log: str) -> list[tuple[list[str], str]]:
    """Split a log of several runs; return the arguments and the text of each."""
    found = []
    for text in _LOG_START.split(log)[1:]:
        line = _COMMAND_LINE.search(text)
        words = shlex.split(line[1]) if line else []
        if "-mainlog" in words:
            words = words[: words.index("-mainlog")]
        found.append((_key(words), text))
    return found


def _properties(text: str) -> list[str]:
    """Return the property, with its constants, of each result that was tested."""
    found, about = [], ""
    for line in text.splitlines():
        checking = _CHECKING.match(line)
        if checking:
            about = checking[1]
        elif line.startswith("Property constants: "):
            about += f" [{line.partition(': ')[2]}]"
        elif line.startswith("Testing result:"):
            found.append(about)
    return found


def _judge(lines: list[str], properties: list[str]) -> list[Verdict]:
    """Return the verdicts of one test, in prism-auto's own way of telling."""
    verdicts = []
    counts: Counter[str] = Counter()
    for line in lines:
        if line.startswith("Testing result:"):
            name, about = "result", properties[counts["result"] :][:1]
        elif line.startswith("Testing export "):
            found = _EXPORT.match(line)
            name, about = f"export {found[1] if found else line}", []
        elif line.startswith("Error:"):
            name, about = "error", []
        elif line.startswith("Timeout ("):
            verdicts.append(Verdict("time-out", FAILED, line))
            continue
        else:
            continue
        counts[name] += 1
        numbered = name if name.startswith("export") else f"{name} {counts[name]}"
        verdicts.append(Verdict(numbered, _outcome(line), line, "".join(about)))
    if _RERUN in lines and not any(_counts_as_failure(verdict.message) for verdict in verdicts):
        # prism-auto shows an exit code other than 0, but counts no failure.
        verdicts.append(Verdict("end", FAILED, "an exit code other than 0, without a message"))
    return verdicts


def _counts_as_failure(line: str) -> bool:
    return "Error:" in line or "FAIL" in line


def _outcome(line: str) -> str:
    if _UNTESTED in line:
        return SKIPPED
    if _counts_as_failure(line):
        return FAILED
    if "PASS" in line:
        return PASSED
    if "SKIPPED" in line or "NOT TESTED" in line:
        return SKIPPED
    return UNSUPPORTED


def _require_totals(tests: list[Call], output: str) -> None:
    totals = dict(re.findall(r"^ (\w+): +(\d+)", output.partition("\nTest results:\n")[2], re.M))
    if not totals:
        raise ValueError(f"prism-auto ended without its totals; its output ends: {output[-2000:]}")
    for outcome, word in _TOTALS.items():
        ours = sum(
            (FAILED if _counts_as_failure(verdict.message) else verdict.outcome) == outcome
            for test in tests
            for verdict in test.verdicts
            if verdict.name not in ("time-out", "end")
        )
        if ours != int(totals[word]):
            raise ValueError(
                f"prism-auto counted {totals[word]} {outcome}, its lines make {ours}: {output}"
            )
