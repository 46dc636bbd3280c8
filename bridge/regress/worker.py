"""A process that has one engine answer all questions of one case, and notes each at once.

It is given a folder with ``task.json`` and writes there ``events.jsonl``, a line an event, and the
files that the lines name. Whatever ends it, what it has noted stays.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from bridge import jvm
from bridge.arguments import parse
from bridge.regress.answers import Answer, Cell, Claim, Kind, ModelFacts, plain
from bridge.regress.driving import Driver
from bridge.regress.processes import SERVE
from bridge.regress.vectors import read_exact, read_values
from engines.errors import BridgeError, InvalidModelError

TASK, EVENTS = "task.json", "events.jsonl"
ENGINE_FAILED = 3
"""Exit code for a fault that is told in the last event."""
NOT_CONVERGED = re.compile(r"did not converge|could not be reached|not enough to compare", re.I)
NO_MEMORY = re.compile(r"out of memory|OutOfMemory|heap space|StackOverflow", re.I)
_BY_PRISM = re.compile(r"^prism-gpu: (.*) is not done by our engines", re.MULTILINE)


@dataclass(frozen=True)
class Task:
    """What a worker is to do.

    Parameters
    ----------
    words
        The command line, with the engine's switches.
    engines
        Whether our engines take part.
    prism_dir
        PRISM's folder, if named.
    done
        Numbers of questions that are not to be asked.
    left_out
        Numbers of models that are not to be built.
    part
        How many workers had this task before; it keeps their files apart.
    """

    words: tuple[str, ...]
    engines: bool
    prism_dir: str | None = None
    done: frozenset[int] = frozenset()
    left_out: frozenset[int] = frozenset()
    part: int = 0

    def write(self, folder: Path) -> None:
        """Write the task to its folder."""
        values = {
            "words": self.words,
            "engines": self.engines,
            "prism_dir": self.prism_dir,
            "done": sorted(self.done),
            "left_out": sorted(self.left_out),
            "part": self.part,
        }
        (folder / TASK).write_text(json.dumps(values), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Task:
        """Return the task of a folder."""
        values = json.loads((folder / TASK).read_text(encoding="utf-8"))
        return cls(
            tuple(values["words"]),
            values["engines"],
            values["prism_dir"],
            frozenset(values["done"]),
            frozenset(values["left_out"]),
            values["part"],
        )


class Worker:
    """The work of one process.

    Parameters
    ----------
    folder
        Where the task lies and the events go.
    events
        The file of events.
    """

    def __init__(self, folder: Path, events: TextIO) -> None:
        self._folder = folder
        self._events = events
        self._task = Task.read(folder)
        self._log_read = 0

    def note(self, event: str, **values: Any) -> None:
        """Write an event.

        Parameters
        ----------
        event
            What happened.
        **values
            What goes with it, as JSON can hold it.
        """
        self._events.write(json.dumps({"event": event, **values}) + "\n")
        self._events.flush()

    def run(self) -> None:
        """Answer all questions.

        Raises
        ------
        BridgeError
            When PRISM cannot be started or driven.
        InvalidModelError
            When its constants cannot be defined.
        """
        task = self._task
        arguments = parse(list(task.words), os.environ)
        if not _jvm_runs():
            runtime = jvm.find_runtime(task.prism_dir, with_engines=task.engines)
            jvm.start(runtime, arguments.jvm)
        if task.engines:
            jvm.install_engines(arguments.hooks)
        driver = Driver(list(arguments.prism))
        cells = list(driver.cells())
        self.note("cells", cells=[vars(cell) for cell, _, _ in cells])
        facts: ModelFacts | None = None
        for cell, of_model, of_property in cells:
            if cell.number in task.done or cell.model in task.left_out:
                continue
            if facts is None or facts.number != cell.model:
                facts = self._build(driver, cell, of_model)
            self.note("asked", cell=vars(cell))
            if facts.message:
                answer = Answer(cell, _kind_of(facts.message), facts.message)
            else:
                answer = self._check(driver, cell, of_property, facts)
            self.note("answer", answer=plain(answer))
        driver.prism.closeDown(False)
        jvm.java_class("java.lang.System").gc()
        self.note("end")

    def _build(self, driver: Driver, cell: Cell, constants: Any) -> ModelFacts:
        self.note("building", model=cell.model)
        begun = time.perf_counter()
        told: dict[str, Any] = {}
        try:
            told = driver.build(constants, self._folder, f"model{cell.model}")
        except (InvalidModelError, BridgeError) as error:
            told = {"message": str(error)}
        seconds = time.perf_counter() - begun
        facts = ModelFacts(cell.model, cell.model_constants, seconds=seconds, **told)
        self.note("model", model=plain(facts))
        return facts

    def _check(self, driver: Driver, cell: Cell, constants: Any, facts: ModelFacts) -> Answer:
        begun = time.perf_counter()
        stem = f"values{cell.number}"
        text = self._folder / f"{stem}.txt"
        epsilon, absolute = driver.settings()
        try:
            result = driver.check(cell, constants, text)
        except (InvalidModelError, BridgeError) as error:
            return Answer(
                cell,
                _kind_of(str(error)),
                str(error),
                seconds=time.perf_counter() - begun,
                by_prism=self._by_prism(),
            )
        seconds = time.perf_counter() - begun
        boolean = driver.is_boolean(cell)
        vector = None
        if text.is_file():
            written = text.read_text(encoding="utf-8")
            size = facts.num_states
            values = read_exact(written, size) if driver.exact else read_values(written)
            vector = self._folder / f"{stem}.npy"
            np.save(vector, values)
            text.unlink()
        return Answer(
            cell,
            Kind.VALUES,
            value=str(result.getResult()),
            vector=vector,
            boolean=boolean,
            claim=_claim(result.getAccuracy()),
            epsilon=epsilon,
            absolute=absolute,
            seconds=seconds,
            by_prism=self._by_prism(),
        )

    def _by_prism(self) -> tuple[str, ...]:
        """Return what our engines handed back since the last question, from the log."""
        if not self._task.engines:
            return ()
        jvm.java_class("java.lang.System").out.flush()
        sys.stdout.flush()
        with log_of(self._folder, self._task.part).open(encoding="utf-8", errors="replace") as log:
            log.seek(self._log_read)
            text = log.read()
            self._log_read = log.tell()
        return tuple(dict.fromkeys(_BY_PRISM.findall(text)))


def _jvm_runs() -> bool:
    import jpype

    return bool(jpype.isJVMStarted())


def log_of(folder: Path, part: int) -> Path:
    """Return where the output of a worker goes: it is for those who start it to send it there."""
    return folder / f"log{part}.txt"


def _kind_of(message: str) -> Kind:
    nothing = NOT_CONVERGED.search(message) or NO_MEMORY.search(message)
    return Kind.NOTHING if nothing else Kind.REFUSED


def _claim(accuracy: Any) -> Claim:
    if accuracy is None:
        return Claim()
    level, kind = str(accuracy.getLevel()), str(accuracy.getType())
    return Claim(level, float(accuracy.getErrorBound()), kind == "ABSOLUTE")


def main(folder: Path) -> int:
    """Run the task of a folder; return the process's exit code.

    Parameters
    ----------
    folder
        Where the task is.
    """
    with (folder / EVENTS).open("a", encoding="utf-8") as events:
        worker = Worker(folder, events)
        try:
            worker.run()
        except (BridgeError, InvalidModelError) as error:
            worker.note("failed", message=str(error))
            return ENGINE_FAILED
    return 0


def serve() -> int:
    """Run one task after the other, as standard input names their folders and logs.

    Returns
    -------
    The process's exit code, after the end of the input or a task that failed.
    """
    for line in sys.stdin:
        folder, log = line.rstrip("\n").split("\t")
        with open(log, "wb") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        code = main(Path(folder))
        if code != 0:
            return code
    return 0


if __name__ == "__main__":
    from bridge.exchange.prism_run import end
    from engines.process.child import end_with_parent

    end_with_parent()
    code = main(Path(sys.argv[1]))
    end(serve() if code == 0 and SERVE in sys.argv else code)
