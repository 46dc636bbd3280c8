"""Running workers: one process for a case and an engine, watched, and begun again where it died."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bridge.arguments import parse
from bridge.regress.answers import (
    WHOLE,
    Answer,
    Cell,
    Kind,
    ModelFacts,
    Record,
    answer_from,
    facts_from,
)
from bridge.regress.plan import Case, with_absolute_files
from bridge.regress.processes import Processes
from bridge.regress.solvers import Solver
from bridge.regress.worker import EVENTS, Task, log_of

MOST_DEATHS = 3
"""After so many ends of a worker in one case, the rest of its questions is not asked."""
_ERROR = re.compile(r"^Error: (.*)\.$", re.MULTILINE)


@dataclass(frozen=True)
class Limits:
    """What a worker may take.

    Parameters
    ----------
    seconds
        For one question, and for the building of one model.
    """

    seconds: float


class Interrupted(Exception):  # noqa: N818 (it is no error)
    """The run was stopped.

    Parameters
    ----------
    record
        What the engine had told until then.
    """

    def __init__(self, record: Record) -> None:
        super().__init__("the run was stopped")
        self.record = record


class Runner:
    """Runs workers.

    Parameters
    ----------
    folder
        Where their files go.
    limits
        What they may take.
    prism_dir
        PRISM's folder, if named.
    keep
        Whether the files of a case stay once it has been judged.
    processes
        Where the workers run; each in a process of its own by default.
    """

    def __init__(
        self,
        folder: Path,
        limits: Limits,
        prism_dir: str | None = None,
        *,
        keep: bool = False,
        processes: Processes | None = None,
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._prism_dir = prism_dir
        self._keep = keep
        self._processes = processes or Processes()

    def stop(self) -> None:
        """End all workers; whoever waits for one gets `Interrupted`."""
        self._processes.stop()

    def forget(self, number: int) -> None:
        """Remove the files of a case, unless they are to be kept.

        Parameters
        ----------
        number
            Its place among all.
        """
        if not self._keep:
            shutil.rmtree(self._folder / f"{number:04d}", ignore_errors=True)

    def ask(
        self,
        case: Case,
        number: int,
        solver: Solver,
        *,
        left_out: frozenset[int] = frozenset(),
        done: frozenset[int] = frozenset(),
        told: Callable[[Answer], None] = lambda _: None,
    ) -> Record:
        """Have an engine answer the questions of a case.

        Parameters
        ----------
        case, number
            The case, and its place among all.
        solver
            The engine.
        left_out
            Numbers of the models that it is not asked about.
        done
            Numbers of the questions that it is not asked.
        told
            Called with each answer.

        Raises
        ------
        Interrupted
            When the run was stopped.
        """
        folder = self._folder / f"{number:04d}" / solver.name.replace(":", "-")
        folder.mkdir(parents=True, exist_ok=True)
        watch = _Watch(folder, left_out, done, told)
        words = case.words_for(solver)
        if self._processes.reuse:
            # A process that serves several cases stays in the folder of its first.
            words = with_absolute_files(words, case.folder)
        task = Task(words, solver.ours, self._prism_dir)
        kind = (solver.name, parse(list(words), os.environ).jvm)
        for part in range(MOST_DEATHS + 1):
            if part == MOST_DEATHS:
                watch.close("not asked, after so many ends of the process")
                break
            answered = {cell.number for cell in watch.record.answers}
            task = replace(task, done=done | answered, left_out=watch.left_out, part=part)
            task.write(folder)
            if self._run(case, watch, folder, part, kind):
                break
        return watch.record

    def _run(self, case: Case, watch: _Watch, folder: Path, part: int, kind: object) -> bool:
        """Have a process do the task; return whether nothing is left to ask."""
        log = log_of(folder, part)
        worker = self._processes.start(folder, case.folder, log, kind)
        if worker is None:
            raise Interrupted(watch.record)
        # Java, PRISM and our engines take some time to start.
        deadline = time.monotonic() + 60.0 + self._limits.seconds
        why = ""
        try:
            while True:
                dead = worker.process.poll() is not None
                if watch.read():
                    deadline = time.monotonic() + self._limits.seconds
                if self._processes.stopped:
                    raise Interrupted(watch.record)
                if dead or watch.over:
                    break
                if time.monotonic() > deadline:
                    why = f"time-out after {self._limits.seconds:g} s"
                    break
                time.sleep(0.05)
        finally:
            self._processes.release(worker, whole=watch.over)
        if watch.ended:
            return True
        if not why:
            why, refused = _why_ended(worker.process.returncode, watch, log)
            if worker.used and not watch.cells and not refused:
                return False  # It may have died of an earlier task.
            if refused or not watch.cells:
                watch.fail(why, Kind.REFUSED if refused else Kind.NOTHING)
                return True
        watch.lose(why)
        return not watch.open_cells()


class _Watch:
    """The events of the workers of one case and engine."""

    def __init__(
        self,
        folder: Path,
        left_out: frozenset[int],
        done: frozenset[int],
        told: Callable[[Answer], None],
    ) -> None:
        self.record = Record()
        self.cells: frozenset[Cell] = frozenset()
        self.left_out = left_out
        self._done = done
        self.failed: str | None = None
        self.ended = False
        self._folder = folder
        self._told = told
        self._place = 0
        self._asked: Cell | None = None
        self._building: int | None = None
        (folder / EVENTS).unlink(missing_ok=True)

    @property
    def over(self) -> bool:
        """Whether the worker has said that it will tell no more."""
        return self.ended or self.failed is not None

    def read(self) -> bool:
        """Take in what is new; return whether anything was."""
        path = self._folder / EVENTS
        if not path.is_file():
            return False
        with path.open("rb") as events:
            events.seek(self._place)
            data = events.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._place += len(whole)
        for line in whole.decode("utf-8").splitlines():
            self._take(json.loads(line))
        return bool(whole)

    def _take(self, event: dict[str, Any]) -> None:
        name = event["event"]
        if name == "cells":
            self.cells = frozenset(Cell(**cell) for cell in event["cells"])
        elif name == "building":
            self._building = event["model"]
        elif name == "model":
            facts = facts_from(event["model"], self._folder)
            self.record.models[facts.number] = facts
            self._building = None
        elif name == "asked":
            self._asked = Cell(**event["cell"])
        elif name == "answer":
            self._asked = None
            self._keep(answer_from(event["answer"], self._folder))
        elif name == "failed":
            self.failed = event["message"]
        elif name == "end":
            self.ended = True

    def _keep(self, answer: Answer) -> None:
        self.record.answers[answer.cell] = answer
        self._told(answer)

    def open_cells(self) -> set[Cell]:
        """Return the questions that are still to be asked."""
        return {
            cell
            for cell in self.cells
            if cell not in self.record.answers
            and cell.number not in self._done
            and cell.model not in self.left_out
        }

    def lose(self, why: str) -> None:
        """Note that the process ended in the middle of something."""
        if self._building is not None:
            number, self._building = self._building, None
            for cell in [cell for cell in self.open_cells() if cell.model == number]:
                self.record.models[number] = ModelFacts(number, cell.model_constants, why)
                self._keep(Answer(cell, Kind.NOTHING, f"{why}, building the model"))
            self.left_out |= {number}
        elif self._asked is not None:
            cell, self._asked = self._asked, None
            self._keep(Answer(cell, Kind.NOTHING, why))
        elif not self.cells:
            self.fail(why, Kind.NOTHING)

    def fail(self, why: str, kind: Kind) -> None:
        """Note that no question could be asked, or none any more."""
        if not self.record.models:
            self.record.models[0] = ModelFacts(0, "", why)
        for cell in self.open_cells() or ({WHOLE} if not self.cells else set()):
            self._keep(Answer(cell, kind, why))

    def close(self, why: str) -> None:
        """Note that the questions that are left are not asked."""
        for cell in self.open_cells():
            self._keep(Answer(cell, Kind.NOTHING, why))


def _why_ended(code: int | None, watch: _Watch, log: Path) -> tuple[str, bool]:
    """Return why a process ended before its work, and whether PRISM refused the command line."""
    if watch.failed is not None:
        return watch.failed, True
    text = log.read_text(encoding="utf-8", errors="replace")
    errors = _ERROR.findall(text)
    if code == 1 and errors and not watch.cells:
        return errors[-1], True
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"crash: {signal.Signals(-code).name}", False
    last = text.strip().rpartition("\n")[2][:200]
    return f"the process ended with code {code}" + (f": {last}" if last else ""), False
