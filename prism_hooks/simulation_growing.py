"""`-simmethod growing`: path prefixes of growing length decide a lower bound of a probability.

The paths of each length are asked by a program of their own, since the length is compiled in. The
longest has as many steps as PRISM's path limit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engines.errors import UnsupportedError
from engines.montecarlo import bounded_ltl as ltl
from engines.montecarlo.methods import MethodError, NumberText
from engines.montecarlo.methods_choice import Defaults, SamplingSwitches
from engines.montecarlo.methods_growing import (
    GrowingParameters,
    GrowingResult,
    check_growing_lengths,
    growing_lengths,
    growing_parameters,
    require_decidable,
)
from engines.montecarlo.questions import Monitor
from engines.montecarlo.tally import PathBatch, merged_lengths
from engines.program.program import Program
from prism_hooks.path_questions import PrefixQuestion, prefix_question, property_reader
from prism_hooks.simulation_device import DeviceSampler
from prism_hooks.simulation_progress import SamplingProgress

NAME = "growing"
FULL_NAME = "Growing Path Lengths"

OpenSampler = Callable[[Monitor], DeviceSampler]
"""From what is asked of each path to what samples paths."""


def read_prefix_questions(text: str, program: Program) -> tuple[PrefixQuestion, ...]:
    """Return what a list of `prismgpu.QuestionText` asks of path prefixes.

    Parameters
    ----------
    text
        The list.
    program
        The model.

    Raises
    ------
    UnsupportedError
        If a question is no formula that a longer path can only come to satisfy.
    """
    reader = property_reader(program)
    questions = []
    for found in json.loads(text):
        if found["kind"] != "ltl" and not (found["kind"] == "until" and not found["bounded"]):
            raise UnsupportedError(
                "growing path lengths are for formulas without bounds, as P>=0.9 [ F x=1 ]; "
                "take clopper-pearson or adaptive"
            )
        question = prefix_question(found, reader)
        if not ltl.is_positive(question.formula):
            raise UnsupportedError(
                "a longer path may violate the formula, so that its probability on path prefixes "
                "is no lower bound: growing path lengths are for F, U, X, & and | of each other, "
                "without G, W, R and negations"
            )
        questions.append(question)
    return tuple(questions)


class GrowingLengths:
    """Judges the questions of one simulation.

    Parameters
    ----------
    questions
        One a method of the `prismgpu.Sampling`.
    open_sampler
        Compiles a question.
    switches
        Gives two of ε, δ and the number of paths of each length.
    path_limit
        Steps of the longest prefixes.

    Raises
    ------
    MethodError
        If the switches contradict each other.
    """

    def __init__(
        self,
        questions: tuple[PrefixQuestion, ...],
        open_sampler: OpenSampler,
        switches: SamplingSwitches,
        path_limit: int,
    ) -> None:
        self._questions, self._open_sampler = questions, open_sampler
        self._switches = switches
        shortest, longest = 16, path_limit + 1
        self._parameters: GrowingParameters = growing_parameters(
            growing_lengths(min(shortest, longest), longest),
            switches.approximation,
            switches.confidence,
            switches.samples,
            Defaults.confidence,
        )
        self._batches: list[PathBatch] = []
        self._remarks: dict[int, str] = {}

    def introduce(self, sampling: Any) -> None:
        """Tell a `prismgpu.Sampling` the method's name and parameters.

        Raises
        ------
        MethodError
            If a property does not ask for a lower bound.
        """
        text: NumberText = sampling.text
        for asked in sampling.methods:
            if not (asked.bounded and asked.atLeast and asked.bound > 0):
                raise MethodError(
                    "growing path lengths show lower bounds above 0, as in P>=0.9 [ F x=1 ], and "
                    "nothing else"
                )
            require_decidable(float(asked.bound), self._parameters)
        for switch, value in (
            ("simwidth", self._switches.width),
            ("simmaxrwd", self._switches.max_reward),
        ):
            if value is not None:
                sampling.warn(
                    f"Option -{switch} is not used for the {NAME.upper()} method and is being "
                    "ignored"
                )
        numbers = self._parameters
        for asked in sampling.methods:
            asked.name, asked.fullName = NAME, FULL_NAME
            asked.parameters = (
                f"approximation={text(numbers.approximation)}, "
                f"confidence={text(numbers.confidence)}, number of samples={numbers.num_paths} for "
                f"each length, lengths={numbers.lengths[0]}..{numbers.lengths[-1]} states"
            )

    @property
    def first_questions(self) -> tuple[Monitor, ...]:
        """What the shortest prefixes are asked: to see whether it can be compiled."""
        length = self._parameters.lengths[0]
        return tuple(question.of_length(length) for question in self._questions)

    @property
    def remark(self) -> str:
        """Where paths were sampled, if it changed on the way; else empty."""
        return "; ".join(self._remarks.values())

    def judge(self, sampling: Any, progress: SamplingProgress) -> None:
        """Sample until each bound is decided.

        Parameters
        ----------
        sampling
            The `prismgpu.Sampling`; its methods are filled in.
        progress
            The display.

        Raises
        ------
        PathFailure
            If a path met an error.
        """
        sampling.failure = sampling.failedIn = None
        sampling.numGood = 0
        self._batches.clear()
        self._remarks.clear()
        for asked, question in zip(sampling.methods, self._questions, strict=True):
            self._hand_over(self._checked(asked, question, sampling, progress), asked)
        lengths = merged_lengths(self._batches)
        sampling.setLengths(lengths.total, lengths.shortest, lengths.longest)

    def _checked(
        self, asked: Any, question: PrefixQuestion, sampling: Any, progress: SamplingProgress
    ) -> GrowingResult:
        opened: dict[int, DeviceSampler] = {}

        def sample(length: int, first_path: int, num_paths: int) -> PathBatch:
            if length not in opened:
                opened.clear()
                opened[length] = self._open_sampler(question.of_length(length))
            sampler = opened[length]
            with progress.batch(first_path):
                batch = sampler.run(first_path, num_paths, progress)
            if sampler.remark:
                self._remarks[length] = f"of {length} states, {sampler.remark}"
            self._batches.append(replace(batch, outcomes=()))
            sampling.numGood += batch.num_paths
            return batch

        return check_growing_lengths(
            question.automaton, float(asked.bound), sample, self._parameters
        )

    def _hand_over(self, result: GrowingResult, asked: Any) -> None:
        asked.estimate, asked.halfWidth = result.rounds[-1].estimate, 0.0
        asked.confidence = self._parameters.confidence
        asked.decision = int(result.holds)
        asked.explanation = asked.remark = result.explanation
