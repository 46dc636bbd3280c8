"""`prism-gpu solve`: an export's questions answered, without PRISM and without Java."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge import ending
from bridge.exchange.content import mask_digest
from bridge.exchange.manifest import (
    MANIFEST,
    Manifest,
    Question,
    file_digest,
    is_file_of_model,
    load_manifest,
    plain_settings,
    questions_of,
    timestamp,
)
from bridge.exchange.results import (
    RESULTS,
    Answer,
    Results,
    impossible,
    load_results,
    require_possible,
)
from bridge.exchange.schema import require_plain_file
from bridge.files.checkable import read_checkable
from bridge.files.names import is_text_model, is_umb_file, printable
from bridge.language.ast import Expression
from bridge.model import CheckableModel
from bridge.refusals import error_line, fault_text
from bridge.versions import OWN_VERSION
from engines.errors import ConvergenceError, InvalidModelError, UnsupportedError
from engines.model.environment import SolverEnvironment
from engines.model.result import SolveResult
from prism_hooks.own_lines import OwnLines
from prism_hooks.sweep_bar import SweepBar, sweep_bar

if TYPE_CHECKING:
    from bridge.check.accuracy import Accuracy
    from bridge.check.checker import Checker

Log = Callable[[str], None]
FAULTS = (InvalidModelError, UnsupportedError, ConvergenceError, MemoryError)
"""What a question may fail with: the others are solved all the same."""


@dataclass
class Solver:
    """Solves the questions of an export.

    Parameters
    ----------
    folder
        The export.
    changed
        Returns the settings to solve with, from those of the export.
    log
        Where the report goes.
    show_solves
        Whether a line a solve is printed.
    show_progress
        Whether long solves show their progress on a terminal.
    make_checker
        Makes what evaluates operators, from model, settings and a function to call a solve.
    """

    folder: Path
    changed: Callable[[SolverEnvironment], SolverEnvironment] = lambda given: given
    log: Log = print
    show_solves: bool = False
    show_progress: bool = True
    make_checker: Callable[..., Checker] | None = None
    _bar: SweepBar | None = None
    _lines: OwnLines = field(init=False)
    _unsaved: bool = False
    _saved_at: float = field(default_factory=time.monotonic)
    _solves: list[SolveResult] = field(default_factory=list)

    def run(self) -> int:
        """Solve what is not solved yet, and return the exit code: 1 if a question has no answer.

        Results that are there already are kept, and so are those found before an interruption.

        Raises
        ------
        InvalidModelError
            When the export is damaged, or a file of it is not the one exported.
        OSError
            When the results cannot be written.
        """
        manifest = load_manifest(self.folder)
        for line in ("model", "constants", "date"):
            self.log(f"{line.capitalize()}: {manifest.provenance.get(line, '')}")
        questions = questions_of(self.folder, manifest)
        source = self._verify(manifest)
        environment = self.changed(manifest.settings)
        self._bar = sweep_bar(wanted=self.show_progress)
        self._lines = OwnLines(self.log, self.show_solves, environment.device_number)
        model = read_checkable(source)
        self._verify_model(manifest, model)
        results = self._known(manifest, questions, model.model.num_states)
        checker = self._checker(model, environment)
        with ending.first(lambda: self._save(results)):
            try:
                self._solve_all(manifest, questions, checker, environment, results)
            finally:
                if self._bar is not None:
                    self._bar.close()
                self._save(results)
        failed = [q.key for q in manifest.questions if results.answers[q.text].error]
        done = len(manifest.questions) - len(failed)
        self.log(
            f"\n{done} of {len(manifest.questions)} operators solved: {self.folder / RESULTS}"
            f"\nBack on PRISM's machine: prism-gpu report {self.folder}"
        )
        return 1 if failed else 0

    def _solve_all(
        self,
        manifest: Manifest,
        questions: Mapping[str, Expression],
        checker: Checker,
        environment: SolverEnvironment,
        results: Results,
    ) -> None:
        for number, question in enumerate(manifest.questions, start=1):
            self.log(f"\nSolving ({number} of {len(manifest.questions)}): {question.key}")
            self._one(question, questions[question.text], checker, environment, results)
            # What took long is written before the next question.
            if time.monotonic() - self._saved_at > 10.0:
                self._save(results)

    def _save(self, results: Results) -> None:
        """Write the results, unless the file has them already."""
        if not self._unsaved:
            return
        results.save(self.folder)
        self._unsaved, self._saved_at = False, time.monotonic()

    def _verify(self, manifest: Manifest) -> Path:
        """Check the files of the export, and return the model's path."""
        for name, digest in manifest.files.items():
            path = self.folder / name
            try:
                require_plain_file(path)
                found = file_digest(path)
            except OSError as error:
                raise InvalidModelError(
                    f"{path} of the export cannot be read ({error.strerror}): copy the whole folder"
                ) from error
            if found != digest:
                raise InvalidModelError(
                    f"{path} is not the file that was exported (its SHA-256 differs): copy the "
                    "folder again, or export again"
                )
        models = [name for name in manifest.files if is_umb_file(Path(name))]
        models = models or [name for name in manifest.files if is_text_model(Path(name))]
        if len(models) != 1:
            raise InvalidModelError(
                f"{self.folder / MANIFEST}: files: one model is due, not {len(models)}: export "
                "again"
            )
        # The reader of text would take companions that were not exported.
        start = models[0].partition(".")[0]
        for path in sorted(self.folder.iterdir()):
            if is_file_of_model(path.name, start) and path.name not in manifest.files:
                raise InvalidModelError(f"{path} is not of the export: remove it")
        return self.folder / models[0]

    def _verify_model(self, manifest: Manifest, model: CheckableModel) -> None:
        """Check that the reader gives the states and the questions' sets as PRISM had them."""
        due, found = manifest.content["number of states"], model.model.num_states
        if int(due) != found:
            raise InvalidModelError(
                f"{self.folder / MANIFEST}: content.number of states: {due}, and the model has "
                f"{found}: export again"
            )
        for name, digest in manifest.sets.items():
            states = model.model.labels.get(name)
            if states is None or mask_digest(states) != digest:
                raise InvalidModelError(
                    f'{self.folder}: the label "{name}" is not the one that was exported'
                )

    def _known(
        self, manifest: Manifest, questions: Mapping[str, Expression], num_states: int
    ) -> Results:
        """Return the results that are there, as far as they are of this export and were solved."""
        results = load_results(self.folder, num_states)
        if results is not None and results.export != manifest.digest:
            self.log(f"{self.folder / RESULTS} is of another export; it will be replaced")
            results = None
        if results is None:
            results = Results(manifest.digest)
        require_possible(self.folder, questions, results)
        results.provenance = {
            "date": timestamp(),
            "machine": printable(platform.node()),
            "prism-gpu": OWN_VERSION,
        }
        results.answers = {
            text: answer for text, answer in results.answers.items() if answer.values is not None
        }
        return results

    def _checker(self, model: CheckableModel, environment: SolverEnvironment) -> Checker:
        make = self.make_checker
        if make is None:
            from bridge.check.checker import Checker

            make = Checker
        return make(model, environment, log=self.log, on_solve=self._solved, progress=self._bar)

    def _solved(self, result: SolveResult) -> None:
        if self._bar is not None:
            self._bar.close()
        self._solves.append(result)
        self._lines.report(result)

    def _one(
        self,
        question: Question,
        tree: Expression,
        checker: Checker,
        environment: SolverEnvironment,
        results: Results,
    ) -> None:
        settings = plain_settings(environment)
        known = results.answers.get(question.text)
        if known is not None and known.record.get("settings") == settings:
            self.log(f"Solved already on {known.record.get('date')}")
            return
        self._solves.clear()
        record: dict[str, Any] = {"error": None, "settings": settings, "date": timestamp()}
        values = None
        try:
            outcome = checker.outcome(tree)
            record["accuracy"] = _plain_accuracy(outcome.accuracy)
            error_bound = 0.0 if outcome.accuracy is None else outcome.accuracy.error
            if fault := impossible(tree, outcome.numbers, error_bound):
                raise ConvergenceError(f"the solve ended with {fault}")
            values = outcome.numbers
        except FAULTS as error:
            if self._bar is not None:
                self._bar.close()
            record["error"] = printable(fault_text(error))
            self.log(error_line(error))
        record["solves"] = [_plain_solve(solve) for solve in self._solves]
        results.answers[question.text] = Answer(question.text, record, values)
        self._unsaved = True


def _plain_accuracy(accuracy: Accuracy | None) -> dict[str, Any] | None:
    if accuracy is None or not math.isfinite(accuracy.error):
        return None
    return {
        "error": float(accuracy.error),
        "absolute": bool(accuracy.absolute),
        "guaranteed": bool(accuracy.guaranteed),
        # As texts, since JSON has no infinity.
        "decided": [str(float(value)) for value in accuracy.decided],
    }


def _plain_solve(result: SolveResult) -> dict[str, Any]:
    return {
        "method": str(result.method),
        "status": str(result.status),
        "iterations": int(result.iterations),
        "residual": _finite(result.residual),
        "error estimate": _finite(result.error_estimate),
        "two-sided": bool(result.two_sided),
        "seconds": float(result.seconds),
        "engine": result.cost.engine,
        "finished by": result.finished_by,
    }


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
