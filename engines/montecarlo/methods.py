"""Stopping rules: how many paths are sampled, and what their answers say.

A method is fed the answers to one question in the order of the path numbers, says when it has
enough, and then gives its judgement. It drops what comes after the path at which it stopped, so the
judgement depends on neither the size of the batches nor on who sampled them:

    while not method.finished:
        num_paths = method.paths_wanted_next(most=65536)
        method.feed(outcomes of the next num_paths paths)
    judgement = method.result()

A method whose `needs_order` is set judges path by path and takes every single outcome; the others
take counts and sums. The texts of parameters and results are PRISM's; numbers become text by a
function that the caller gives, since Java and Python write them differently.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engines.montecarlo.tally import BooleanOutcomes, Outcomes, PathBatch, RewardOutcomes

NumberText = Callable[[float], str]

NOT_PRECISE = "Approximation is not precise enough to get a result"
"""What PRISM reports for a bounded question whose bound is within the error of the estimate."""

PATH_LIMIT = (
    "One or more of the properties being sampled could not be checked on a sample. "
    "Consider increasing the maximum path length"
)
"""What PRISM reports when a path met the path limit before its answer was known."""


class UndecidedPathError(RuntimeError):
    """A path met the path limit first, and the method has no use for an unknown answer."""


class MethodError(ValueError):
    """Parameters that a method cannot work with; the message says which and why."""


@dataclass(frozen=True)
class Bound:
    """What an operator like P>=0.9 or R<5 compares with; strictness changes no method.

    Parameters
    ----------
    at_least
        Whether the operator is ``>=`` or ``>``.
    threshold
        The probability or the expected reward.
    """

    at_least: bool
    threshold: float


@dataclass(frozen=True)
class Judgement:
    """What a method says at its end.

    Parameters
    ----------
    estimate
        The mean of the answers; of undecided ones counted as half.
    interval
        The lower and the upper end of the confidence interval.
    half_width
        The error bound that PRISM prints after ``+/-``; of an asymmetric interval the longer side.
    confidence
        δ: the probability with which the interval, or the decision, may be wrong.
    num_paths
        How many paths the judgement rests on.
    bound
        What the question compares with, or None for a ``=?`` question.
    decision
        Whether the bound holds; None for a ``=?`` question, and where the interval cannot tell.
    remarks
        What a reader must know about the numbers, one sentence each.
    """

    estimate: float
    interval: tuple[float, float]
    half_width: float
    confidence: float
    num_paths: int
    bound: Bound | None = None
    decision: bool | None = None
    remarks: tuple[str, ...] = ()

    @property
    def problem(self) -> str | None:
        """Return `NOT_PRECISE` where a bounded question has no decision."""
        return NOT_PRECISE if self.bound is not None and self.decision is None else None

    def accuracy_text(self, text: NumberText) -> str:
        """Return what PRISM prints in brackets after the result.

        Parameters
        ----------
        text
            From a double to its text; PRISM's is Java's `Double.toString`.
        """
        certainty = f"with probability {text(1.0 - self.confidence)}"
        if self.bound is not None:
            return certainty
        relative = 0.0
        if self.half_width != 0.0 and not math.isinf(self.estimate):
            size = abs(self.estimate)
            relative = self.half_width / size if size else math.inf
        return f"+/- {text(self.half_width)} {certainty}; rel err {text(relative)}"


class SamplingMethod(ABC):
    """A stopping rule for the answers to one question.

    Parameters
    ----------
    bound
        What the question compares with, or None for a ``=?`` question.
    """

    name: str
    """The short name, as PRISM's log gives it."""
    full_name: str
    needs_order: bool
    """Whether `feed` takes every outcome in path order, not the counts alone."""

    def __init__(self, bound: Bound | None = None) -> None:
        self.bound = bound
        self.num_paths = 0

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether the method has enough paths."""

    @abstractmethod
    def paths_wanted_next(self, most: int) -> int:
        """Return how many paths to sample next: at least 1 unless finished, at most `most`.

        A method that stops at a path it cannot foresee may use fewer of them.
        """

    @abstractmethod
    def feed(self, outcomes: Outcomes) -> None:
        """Take the answers of the next paths; those after the stop are dropped.

        Parameters
        ----------
        outcomes
            The answers of the paths num_paths, num_paths + 1, …

        Raises
        ------
        UndecidedPathError
            If a path before the stop met the path limit first, unless the method bounds those too.
        ValueError
            If single outcomes are missing and counts do not do.
        """

    @abstractmethod
    def result(self) -> Judgement:
        """Return the judgement; only once finished."""

    @abstractmethod
    def fresh(self) -> SamplingMethod:
        """Return a method of the same parameters that has seen no path."""

    @abstractmethod
    def parameters(self) -> tuple[tuple[str, float | int | None], ...]:
        """Return the parameters by PRISM's names and in PRISM's order, None for unknown ones."""

    @abstractmethod
    def explanation(self, text: NumberText) -> str:
        """Return what the result means, in PRISM's words; only once finished."""

    @abstractmethod
    def progress(self) -> int:
        """Return how much is done, in per cent, a multiple of 10; PRISM's log prints it."""

    def parameters_text(self, text: NumberText) -> str:
        """Return the parameters as PRISM's log prints them.

        Parameters
        ----------
        text
            From a double to its text; PRISM's is Java's `Double.toString`.
        """

        def shown(value: float | int | None) -> str:
            if value is None:
                return "unknown"
            return str(value) if isinstance(value, int) else text(value)

        return ", ".join(f"{name}={shown(value)}" for name, value in self.parameters())

    def _require_end(self) -> None:
        if not self.finished:
            raise ValueError(f"{self.name} has not seen enough paths: {self.num_paths} so far")

    def _decided(self, estimate: float, half_width: float) -> bool | None:
        """Compare an estimate with the bound, undecided closer to it than the half-width."""
        if self.bound is None:
            return None
        if estimate >= self.bound.threshold + half_width:
            return self.bound.at_least
        if estimate <= self.bound.threshold - half_width:
            return not self.bound.at_least
        return None


def require_decided(outcomes: Outcomes, first_path: int) -> None:
    """Refuse undecided paths, as PRISM does.

    Parameters
    ----------
    outcomes
        Answers of consecutive paths.
    first_path
        The number of the first, for the message.

    Raises
    ------
    UndecidedPathError
        If any path is undecided.
    """
    if outcomes.num_undecided:
        last = first_path + outcomes.num_paths - 1
        raise UndecidedPathError(
            f"{PATH_LIMIT} ({outcomes.num_undecided} of the paths {first_path} to {last} met it)"
        )


class SeveralMethods:
    """One method a question, all on the same paths.

    Each method stops at its own path and keeps its judgement, while PRISM's go on until all would
    stop at the same path; so a question's answer here does not depend on the other questions.

    Parameters
    ----------
    methods
        One a question, in the order of a batch's `outcomes`.
    """

    def __init__(self, methods: Sequence[SamplingMethod]) -> None:
        self.methods = tuple(methods)

    @property
    def finished(self) -> bool:
        """Whether every method has enough paths."""
        return all(method.finished for method in self.methods)

    @property
    def needs_order(self) -> bool:
        """Whether any method judges path by path."""
        return any(method.needs_order for method in self.methods)

    @property
    def num_paths(self) -> int:
        """The number of the first path that no method has used."""
        return max((method.num_paths for method in self.methods), default=0)

    @property
    def num_questions(self) -> int:
        """How many answers a path has."""
        return len(self.methods)

    @property
    def stops(self) -> list[int]:
        """Where unfinished methods stop as far as they know: numbers of first paths not wanted."""
        return [x.num_paths + x.paths_wanted_next(2**62) for x in self.methods if not x.finished]

    def paths_wanted_next(self, most: int) -> int:
        """Return how many paths to sample next, 0 when finished.

        A method that takes counts alone is never given a path more than it asked for.
        """
        wanted = [x.paths_wanted_next(most) for x in self.methods if not x.finished]
        exact = [
            x.paths_wanted_next(most) for x in self.methods if not (x.finished or x.needs_order)
        ]
        return min([max(wanted), *exact]) if wanted else 0

    def feed(self, batch: PathBatch) -> None:
        """Give each unfinished method its answers.

        Parameters
        ----------
        batch
            The paths from `num_paths` on.
        """
        for method, outcomes in zip(self.methods, batch.outcomes, strict=True):
            if not method.finished:
                method.feed(outcomes)

    def start_over(self) -> None:
        """Replace each method by one of the same parameters that has seen no path."""
        self.methods = tuple(method.fresh() for method in self.methods)


class Counted(SamplingMethod):
    """What methods share whose number of paths is fixed beforehand.

    Parameters
    ----------
    samples
        How many paths to sample, at least 1.
    bound
        What the question compares with, or None.
    """

    needs_order = False

    def __init__(self, samples: int, bound: Bound | None) -> None:
        super().__init__(bound)
        if samples < 1:
            raise MethodError(f"{self.name} needs at least one sample, not {samples}")
        self.samples = samples

    @property
    def finished(self) -> bool:
        """Whether the method has enough paths."""
        return self.num_paths >= self.samples

    def paths_wanted_next(self, most: int) -> int:
        """Return how many paths to sample next, at most `most`."""
        return min(most, self.samples - self.num_paths)

    def progress(self) -> int:
        """Return how much is done, in per cent, a multiple of 10."""
        return 10 * self.num_paths // self.samples * 10

    def _used(self, outcomes: Outcomes) -> Outcomes:
        """Return the answers up to the stop, and count their paths."""
        room = self.samples - self.num_paths
        if outcomes.num_paths > room:
            outcomes = first_of(outcomes, room)
        self.num_paths += outcomes.num_paths
        return outcomes


def first_of(outcomes: Outcomes, num_paths: int) -> Outcomes:
    """Return the answers of the first paths only; raises as `part_of` does."""
    return part_of(outcomes, 0, num_paths)


def part_of(outcomes: Outcomes, start: int, stop: int) -> Outcomes:
    """Return the answers of some consecutive paths.

    Parameters
    ----------
    outcomes
        Answers of consecutive paths.
    start, stop
        The places of the first path wanted, and of the one after the last.

    Raises
    ------
    ValueError
        If not all are wanted, and single outcomes are missing.
    """
    if (start, stop) == (0, outcomes.num_paths):
        return outcomes
    if isinstance(outcomes, BooleanOutcomes):
        if outcomes.outcomes is not None:
            return BooleanOutcomes.of(outcomes.outcomes[start:stop])
    elif outcomes.values is not None:
        return RewardOutcomes.of(outcomes.values[start:stop])
    raise ValueError(
        f"{outcomes.num_paths} paths were given where {stop - start} are wanted, without single "
        "outcomes: sample no more than paths_wanted_next says, or with outcomes in path order"
    )
