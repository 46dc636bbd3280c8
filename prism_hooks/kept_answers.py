"""Answers kept for a question that is asked again, as by several filters over one operator."""

from __future__ import annotations

import weakref
from collections import deque
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel
from engines.model.result import SolveResult
from prism_hooks.questions import Answer, Question


@dataclass(frozen=True, eq=False)
class _Kept:
    model: weakref.ref[ExplicitModel]
    answer: Answer
    asked: Question
    environment: SolverEnvironment
    result: SolveResult


class KeptAnswers:
    """The answers of a run that were used last, each with all that it follows from.

    Parameters
    ----------
    answers
        How many are kept: such as the probabilities and the expectation that a file of filters asks
        for in turn.
    answer_bytes
        What one answer and its question may take: values of ten million states, say.
    """

    def __init__(self, answers: int = 2, answer_bytes: int = 1 << 28) -> None:
        self._kept: deque[_Kept] = deque(maxlen=answers)
        self._answer_bytes = answer_bytes

    def find(
        self,
        model: ExplicitModel,
        answer: Answer,
        asked: Question,
        environment: SolverEnvironment,
    ) -> SolveResult | None:
        """Return the answer to the same question, or None if it is new or no longer kept.

        It took no time, and is otherwise as it was.

        Parameters
        ----------
        model
            The model; the same object, not an equal one.
        answer
            What puts the question to the engines.
        asked
            The question; each value counts.
        environment
            What the user asked for.
        """
        for kept in tuple(self._kept):
            if (
                kept.model() is model
                and kept.answer is answer
                and kept.environment == environment
                and _same(kept.asked, asked)
            ):
                self._kept.remove(kept)
                self._kept.append(kept)
                return replace(kept.result, seconds=0.0, setup_seconds=0.0, sweeping_seconds=0.0)
        return None

    def keep(
        self,
        model: ExplicitModel,
        answer: Answer,
        asked: Question,
        environment: SolverEnvironment,
        result: SolveResult,
    ) -> None:
        """Keep an answer, unless it is large, or the graph gave it.

        Parameters
        ----------
        model, answer, asked, environment
            As for `find`.
        result
            The answer.
        """
        held = [*_arrays(asked), *_arrays(result), *(result.bounds or ())]
        solved = result.iterations or result.finished_by
        if solved and sum(array.nbytes for array in held) <= self._answer_bytes:
            self._kept.append(_Kept(weakref.ref(model), answer, asked, environment, result))


def _arrays(record: Any) -> list[np.ndarray[Any, Any]]:
    values = (getattr(record, field.name) for field in fields(record))
    return [value for value in values if isinstance(value, np.ndarray)]


def _same(first: Question, second: Question) -> bool:
    for field in fields(Question):
        ours, theirs = getattr(first, field.name), getattr(second, field.name)
        arrays = isinstance(ours, np.ndarray), isinstance(theirs, np.ndarray)
        same = np.array_equal(ours, theirs) if all(arrays) else not any(arrays) and ours == theirs
        if not same:
            return False
    return True
