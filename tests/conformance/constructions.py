"""Building all models of PRISM's suites by the engines and by PRISM's explicit engine.

    PRISM_DIR=… python -m tests.conformance.constructions [PATTERN] [--states N] [--seconds S]
        [--json FILE]

The arrays must be the same: states, choices, actions, targets, values to one unit in the last
place, labels, rewards, deadlocks. Larger models, and those that PRISM does not build in time, are
named as such. Constants have the values that lists beside a model name, and a few small ones.
"""

from __future__ import annotations

import json
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from bridge.install import PrismInstall, find_prism
from tests.conformance.construction_cases import SUITES, Case, cases
from tests.conformance.construction_worker import DIFFERENT, END, Outcome, Question


class Worker:
    """A process that builds and compares models, begun anew when it takes too long.

    Parameters
    ----------
    seconds
        That a model may take.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()

    def answers(self, file: str, switches: list[str], most_states: int) -> list[Outcome]:
        """Return what comes of a model for each of some values of its constants."""
        found: dict[str, Outcome] = {}
        while True:
            question = Question(file, switches, list(found), most_states)
            before = len(found)
            for outcome in self._asked(question):
                found[outcome.constants] = outcome
            if self._process is not None:
                return list(found.values())
            if len(found) == before:
                return [*found.values(), Outcome(file, "", "failed", "no answer")]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _asked(self, question: Question) -> Iterator[Outcome]:
        """Yield the outcomes of a question; the process is gone if it has not answered all."""
        process = self._process or self._started()
        assert process.stdin is not None
        print(json.dumps(asdict(question)), file=process.stdin, flush=True)
        while True:
            try:
                line = self._lines.get(timeout=self._seconds)
            except queue.Empty:
                line = ""
            if not line:
                return self.close()
            if line.strip() == END:
                return
            yield Outcome(**json.loads(line))

    def _started(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.conformance.construction_worker"]
        pipe = subprocess.PIPE
        self._process = process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self._lines = lines = queue.Queue()

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                lines.put(line)
            lines.put("")

        threading.Thread(target=read, daemon=True).start()
        # How long Java takes to start is not a model's time.
        lines.get()
        return process


def compared(
    install: PrismInstall, chosen: list[Case], most_states: int, seconds: float
) -> Iterator[Outcome]:
    """Build models by both, and yield what came of each.

    Parameters
    ----------
    install
        PRISM.
    chosen
        The models.
    most_states
        Larger models are passed over.
    seconds
        That a model may take.
    """
    by_file: dict[str, list[str]] = {}
    for case in chosen:
        root = install.beside(case.suite)
        by_file.setdefault(f"{root}/{case.file}", []).append(case.constants)
    worker = Worker(seconds)
    try:
        for file, switches in by_file.items():
            yield from worker.answers(file, switches, most_states)
    finally:
        worker.close()


def table(outcomes: Sequence[Outcome]) -> str:
    """Return what came of the models of each suite, as a table of Markdown."""
    lines = ["| suite | outcome | models | largest | states in all |", "|---|---|--:|--:|--:|"]
    found: dict[tuple[str, str], list[int]] = {}
    for outcome in outcomes:
        suite = next(part for part in Path(outcome.file).parts if part in SUITES)
        found.setdefault((suite, outcome.outcome), []).append(outcome.states)
    for (suite, what), states in sorted(found.items()):
        numbers = f"{len(states)} | {max(states):,} | {sum(states):,}"
        lines.append(f"| {suite} | {what} | {numbers} |")
    return "\n".join(lines)


@click.command()
@click.argument("pattern", default="")
@click.option("--states", default=2_000_000, help="The most of a model that is compared.")
@click.option("--seconds", default=150.0, help="That a model may take.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Gets all outcomes.")
def main(pattern: str, states: int, seconds: float, file: Path | None) -> None:
    """Build all models whose file has PATTERN in it; exit with 1 if some are different."""
    install = find_prism()
    chosen = [case for case in cases(install) if re.search(pattern, f"{case.suite}/{case.file}")]
    outcomes = []
    for outcome in compared(install, chosen, states, seconds):
        outcomes.append(outcome)
        print(
            f"{outcome.outcome}: {outcome.file} {outcome.constants} {outcome.states} states, "
            f"{outcome.our_seconds:.2f} s, PRISM {outcome.prism_seconds:.2f} s {outcome.detail}",
            flush=True,
        )
        if file is not None:
            file.write_text(json.dumps([asdict(x) for x in outcomes], indent=1), encoding="utf-8")
    print(table(outcomes))
    sys.exit(any(outcome.outcome in (DIFFERENT, "failed") for outcome in outcomes))


if __name__ == "__main__":
    main()
