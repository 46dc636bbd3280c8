"""`prism-gpu report`: PRISM's own pipeline, its operators answered from a file of results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bridge.exchange.content import differences, digests, mask_digest, read_built
from bridge.exchange.manifest import Manifest, questions_of, set_names
from bridge.exchange.prism_run import Exchange, masks, with_labels
from bridge.exchange.results import RESULTS, Answer, Results, load_results, require_possible
from engines.errors import InvalidModelError


def matching_results(folder: Path, manifest: Manifest) -> Results:
    """Return the results in a folder.

    Parameters
    ----------
    folder
        The export, with the results that were brought back.
    manifest
        The export's manifest.

    Raises
    ------
    InvalidModelError
        When there are no results, or they are damaged or of another export.
    """
    results = load_results(folder, int(manifest.content["number of states"]))
    if results is None:
        raise InvalidModelError(
            f"{folder} has no {RESULTS} yet: run prism-gpu solve {folder}, on the machine with the "
            "GPU, and bring the file back"
        )
    if results.export != manifest.digest:
        raise InvalidModelError(
            f"{folder / RESULTS} is of another export: run prism-gpu solve {folder} again"
        )
    require_possible(folder, questions_of(folder, manifest), results)
    return results


class Answers(Exchange):
    """Answers the operators of a run's properties.

    Parameters
    ----------
    folder
        The export.
    manifest
        Its manifest.
    results
        Its results.
    """

    def __init__(self, folder: Path, manifest: Manifest, results: Results) -> None:
        self._folder = folder
        self._manifest = manifest
        self._results = results
        self._names = set_names(manifest.sets)
        self._texts = {question.text for question in manifest.questions}
        self._num_states = int(manifest.content["number of states"])
        self._verified: set[int] = set()
        self.incomplete = False
        """Whether an operator had no answer."""

    def collects(self) -> bool:
        """Return False: operators are answered."""
        return False

    def take_model(self, problem: Any, built: Any) -> None:
        """Compare the model with the one that was exported, once a model."""
        if int(problem.modelId) in self._verified:
            return
        found = list(differences(self._manifest.content, digests(read_built(built))))
        if found:
            raise InvalidModelError(
                f"the model is not the one that was exported to {self._folder} "
                f"({'; '.join(found)}): export again"
            )
        self._verified.add(int(problem.modelId))
        machine = self._results.provenance.get("machine", "another machine")
        problem.say(f"prism-gpu: results come from {self._folder}, solved on {machine}")

    def take_operator(self, operator: Any) -> None:
        """Fill in the answer to an operator; one without an answer is an error of its property."""
        key = str(operator.key)
        digests_of_sets = [mask_digest(states) for states in masks(operator, self._num_states)]
        unknown = [digest for digest in digests_of_sets if digest not in self._names]
        names = [self._names.get(digest, "") for digest in digests_of_sets]
        text = with_labels(operator, names)
        if unknown or text not in self._texts:
            raise InvalidModelError(
                f"{key} is not among the operators exported to {self._folder}, or the states that "
                "it is about have changed: export again"
            )
        answer = self._results.answers.get(text)
        if answer is None or answer.values is None:
            self.incomplete = True
            why = f"there: {answer.error}" if answer is not None else "yet"
            operator.error = (
                f"{key} has no result in {self._folder / RESULTS}: it was not solved {why}"
            )
            return
        operator.values = answer.values
        accuracy = answer.record.get("accuracy")
        if accuracy is not None:
            operator.errorBound = float(accuracy["error"])
            operator.absolute = bool(accuracy["absolute"])
            operator.guaranteed = bool(accuracy["guaranteed"])
            operator.decided = np.array([float(value) for value in accuracy.get("decided", ())])
        operator.remark = f"\nprism-gpu: {key}: {_remark(answer)}"


def _remark(answer: Answer) -> str:
    records: list[Mapping[str, Any]] = answer.record.get("solves", [])
    solves = [r for r in records if r.get("iterations") or r.get("finished by")]
    date = answer.record.get("date", "an unknown date")
    if not solves:
        return f"found on {date}, without a numerical solve"
    last = solves[-1]
    more = f", the last of {len(solves)} solves" if len(solves) > 1 else ""
    sweeps = last.get("iterations")
    how = f"{last.get('method')}, {sweeps} iterations" if sweeps else last.get("finished by")
    return (
        f"solved on {date} by {last.get('engine')}, {how}, "
        f"residual {_shown(last.get('residual'))}, "
        f"{float(last.get('seconds', 0.0)):.3f} seconds{more}"
    )


def _shown(number: float | None) -> str:
    return "unknown" if number is None else f"{number:.2e}"
