"""What paths answered, merged in the order of their numbers.

A sampler answers questions about paths first, first + 1, …; path i of a seed is the same wherever
it is sampled. So a run is a function of the seed and of the stopping rule alone, provided that the
answers reach the rule in the order of the path numbers and that no sum depends on how the paths
were cut into batches. This module provides both: batches are put in order and counted once, and
sums of rewards are kept exactly.
"""

from __future__ import annotations

import bisect
import enum
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

OutcomeArray = NDArray[np.uint8]
ValueArray = NDArray[np.float64]

FALSE, TRUE, UNDECIDED = 0, 1, 2
"""Outcomes of a path for a Boolean question; undecided when the path limit came first."""

_LOWEST_EXPONENT = -1126
"""Every double is a multiple of two to this power when its significand has 53 bits."""


class InconsistentBatchError(RuntimeError):
    """A batch contradicts itself, or another batch of the same paths: one of them is wrong."""


@dataclass(frozen=True)
class BooleanOutcomes:
    """Answers to a Boolean question on consecutive paths.

    Parameters
    ----------
    num_paths, num_true, num_undecided
        How many paths there are, satisfy it, and met the path limit first.
    outcomes
        One of `FALSE`, `TRUE` and `UNDECIDED` a path, in path order, of shape (paths,). A method
        whose `needs_order` is set asks for them, the others take the counts alone.
    """

    num_paths: int
    num_true: int
    num_undecided: int = 0
    outcomes: OutcomeArray | None = None

    @classmethod
    def of(cls, outcomes: OutcomeArray) -> BooleanOutcomes:
        """Count outcomes that are in path order, of shape (paths,)."""
        kept = np.ascontiguousarray(outcomes, dtype=np.uint8)
        num_true, num_undecided = (int(np.count_nonzero(kept == x)) for x in (TRUE, UNDECIDED))
        return cls(kept.size, num_true, num_undecided, kept)

    def problem(self) -> str | None:
        """Return what is contradictory, if anything."""
        counts = (self.num_true, self.num_undecided)
        if min(counts) < 0 or sum(counts) > self.num_paths:
            return f"{counts[0]} true and {counts[1]} undecided of {self.num_paths} paths"
        if self.outcomes is None:
            return None
        if self.outcomes.shape != (self.num_paths,) or np.any(self.outcomes > UNDECIDED):
            return "outcomes of a wrong shape or kind"
        counted = BooleanOutcomes.of(self.outcomes)
        if (counted.num_true, counted.num_undecided) != counts:
            return "counts that differ from the outcomes"
        return None


@dataclass(frozen=True)
class ExactMoments:
    """The sum of rewards and of their squares without rounding, so that any grouping agrees.

    Parameters
    ----------
    num_paths
        How many rewards were added.
    total, squares
        Their sum in units of 2⁻¹¹²⁶, and that of their squares in units of 2⁻²²⁵².
    num_infinite
        How many were infinite, as the reward of a path that never reaches its target is; these are
        in neither sum.
    """

    num_paths: int = 0
    total: int = 0
    squares: int = 0
    num_infinite: int = 0

    @classmethod
    def of(cls, values: ValueArray) -> ExactMoments:
        """Add up rewards of shape (paths,).

        Raises
        ------
        ValueError
            If one is not a number, or minus infinity.
        """
        if np.any(np.isnan(values) | (values == -np.inf)):
            raise ValueError("a path's reward is not a number, or minus infinity")
        finite = values[np.isfinite(values)]
        fractions, exponents = np.frexp(finite)
        significands = np.abs(np.ldexp(fractions, 53)).astype(np.int64)
        total = squares = 0
        for exponent in np.unique(exponents):
            here = exponents == exponent
            positive, parts = finite[here] > 0.0, significands[here]
            shift = int(exponent) - 53 - _LOWEST_EXPONENT
            total += (_sum(parts[positive]) - _sum(parts[~positive])) << shift
            high, low = parts >> 27, parts & (2**27 - 1)
            square = (_sum(high * high) << 54) + (_sum(high * low) << 28) + _sum(low * low)
            squares += square << 2 * shift
        return cls(values.size, total, squares, values.size - finite.size)

    def __add__(self, other: ExactMoments) -> ExactMoments:
        return ExactMoments(
            self.num_paths + other.num_paths,
            self.total + other.total,
            self.squares + other.squares,
            self.num_infinite + other.num_infinite,
        )

    @property
    def mean(self) -> float:
        """The mean, correctly rounded; infinite if one reward is, not a number for no paths."""
        if self.num_paths == 0:
            return math.nan
        if self.num_infinite:
            return math.inf
        return _rounded(Fraction(self.total, self.num_paths << -_LOWEST_EXPONENT))

    @property
    def variance(self) -> float:
        """The unbiased estimate of the variance, correctly rounded; 0 for fewer than two paths."""
        count = self.num_paths
        if count <= 1:
            return 0.0
        if self.num_infinite:
            return math.nan
        spread = count * self.squares - self.total**2
        return _rounded(Fraction(spread, count * (count - 1) << -2 * _LOWEST_EXPONENT))


def _sum(parts: NDArray[np.int64]) -> int:
    """Return the sum of non-negative integers, of which there may be 2³¹."""
    return (int((parts >> 32).sum()) << 32) + int((parts & (2**32 - 1)).sum())


def _rounded(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


@dataclass(frozen=True)
class RewardOutcomes:
    """Rewards of consecutive paths.

    Parameters
    ----------
    moments
        Their number, sum and sum of squares.
    num_undecided
        How many paths met the path limit first; their rewards are in no sum that is of use.
    values
        The rewards in path order, of shape (paths,), for methods whose `needs_order` is set;
        not-a-number where undecided.
    """

    moments: ExactMoments
    num_undecided: int = 0
    values: ValueArray | None = None

    @classmethod
    def of(cls, values: ValueArray) -> RewardOutcomes:
        """Add up rewards that are in path order, not-a-number where undecided."""
        kept = np.ascontiguousarray(values, dtype=np.float64)
        undecided = np.isnan(kept)
        if undecided.any():
            # A GPU's not-a-number has other bits than the CPU's, and checksums would differ.
            kept = np.where(undecided, np.nan, kept)
        moments = ExactMoments.of(kept[~undecided])
        return cls(moments, int(np.count_nonzero(undecided)), kept)

    @property
    def num_paths(self) -> int:
        """How many paths were sampled."""
        return self.moments.num_paths + self.num_undecided

    def problem(self) -> str | None:
        """Return what is contradictory, if anything."""
        moments = self.moments
        if min(moments.num_paths, moments.num_infinite, moments.squares, self.num_undecided) < 0:
            return "a negative count or sum of squares"
        if self.values is None:
            return None
        try:
            same = RewardOutcomes.of(self.values).moments == moments
        except ValueError as error:
            return str(error)
        return None if same else "sums that differ from the rewards"


Outcomes = BooleanOutcomes | RewardOutcomes


@dataclass(frozen=True)
class PathLengths:
    """Lengths of paths in steps: their sum, the shortest and the longest."""

    total: int = 0
    shortest: int = 0
    longest: int = 0


@dataclass(frozen=True)
class PathBatch:
    """What consecutive paths answered.

    Parameters
    ----------
    first_path, num_paths
        The paths first_path, …, first_path + num_paths − 1; there is at least one.
    outcomes
        One entry a question.
    lengths
        The lengths of the paths.
    """

    first_path: int
    num_paths: int
    outcomes: tuple[Outcomes, ...]
    lengths: PathLengths = field(default_factory=PathLengths)

    @property
    def end(self) -> int:
        """The number of the path after the last."""
        return self.first_path + self.num_paths

    def problem(self, questions: int) -> str | None:
        """Return what is contradictory, if anything, in answers to so many questions."""
        if len(self.outcomes) != questions:
            return f"{len(self.outcomes)} answers to {questions} questions"
        if any(outcome.num_paths != self.num_paths for outcome in self.outcomes):
            return "answers of a wrong number of paths"
        lengths = self.lengths
        longest = lengths.longest * self.num_paths
        if not 0 <= lengths.shortest * self.num_paths <= lengths.total <= longest:
            return "path lengths that contradict each other"
        problems = (outcome.problem() for outcome in self.outcomes)
        return next((problem for problem in problems if problem), None)

    def digest(self) -> str:
        """Return a checksum: equal for batches that say the same of the same paths."""
        known = hashlib.blake2b(digest_size=16)
        known.update(repr((self.first_path, self.num_paths, self.lengths)).encode())
        for outcome in self.outcomes:
            if isinstance(outcome, BooleanOutcomes):
                counts: tuple[int, ...] = (outcome.num_true, outcome.num_undecided)
                details: NDArray[np.generic] | None = outcome.outcomes
            else:
                moments = outcome.moments
                counts = (moments.total, moments.squares, moments.num_infinite)
                counts += (moments.num_paths, outcome.num_undecided)
                details = outcome.values
            known.update(repr((type(outcome).__name__, counts)).encode())
            known.update(b"counts" if details is None else b"each" + details.tobytes())
        return known.hexdigest()


class Arrival(enum.Enum):
    """What became of a batch that was put into a tally."""

    NEW = enum.auto()
    DUPLICATE = enum.auto()


class Tally:
    """Batches in the order of their paths, each counted once.

    Adding a batch twice, in any order and however often, changes nothing. Ready are the batches
    before which none is missing.
    """

    def __init__(self) -> None:
        self._batches: dict[int, PathBatch] = {}
        self._starts: list[int] = []

    def add(self, batch: PathBatch) -> Arrival:
        """Put a batch in its place.

        Raises
        ------
        InconsistentBatchError
            If the same paths were answered differently before, or part of them is there already.
        """
        known = self._batches.get(batch.first_path)
        if known is not None and known.num_paths == batch.num_paths:
            if known.digest() != batch.digest():
                raise InconsistentBatchError(
                    f"paths {batch.first_path} to {batch.end - 1} were sampled twice and answer "
                    "differently: sample them once more to find which is right"
                )
            return Arrival.DUPLICATE
        place = bisect.bisect_left(self._starts, batch.first_path)
        beside = (self._batches[start] for start in self._starts[max(0, place - 1) : place + 1])
        if any(batch.first_path < x.end and x.first_path < batch.end for x in beside):
            raise InconsistentBatchError(
                f"paths {batch.first_path} to {batch.end - 1} overlap a batch of other paths: "
                "cut the path numbers into batches once, and keep to that"
            )
        self._batches[batch.first_path] = batch
        self._starts.insert(place, batch.first_path)
        return Arrival.NEW

    def withdraw(self, first_path: int) -> None:
        """Take the batch out that begins with this path, if it is there."""
        if self._batches.pop(first_path, None) is not None:
            self._starts.remove(first_path)

    def __contains__(self, first_path: int) -> bool:
        return first_path in self._batches

    def ready(self, first_path: int = 0) -> Iterator[PathBatch]:
        """Return the batches from this path on, in order, up to the first that is missing."""
        while (batch := self._batches.get(first_path)) is not None:
            yield batch
            first_path = batch.end


def merged_lengths(batches: Sequence[PathBatch]) -> PathLengths:
    """Return the lengths of the paths of all batches together."""
    if not batches:
        return PathLengths()
    return PathLengths(
        sum(batch.lengths.total for batch in batches),
        min(batch.lengths.shortest for batch in batches),
        max(batch.lengths.longest for batch in batches),
    )
