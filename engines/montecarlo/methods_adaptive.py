"""Adaptive stopping: as few paths as the answers allow, with a guarantee that holds all the same.

Intervals that are valid for one fixed number of paths lose their guarantee when one stops at the
first narrow one. Confidence sequences do not: with probability at least 1 − δ *all* their intervals
cover the true value, so the one at which sampling stopped does. Sampling stops when the half-width
is small enough, or the bound of a P>=θ or R>=θ question lies outside the interval.

Answers that are true or false: the sequence of `mixture_interval` at δ/2 for each side, so that
paths that met the path limit count as false for the lower bound and as true for the upper.

Rewards between 0 and a maximum b that the user vouches for (a reward beyond it is an error): the
empirical Bernstein sequence. With X_i = reward / b in [0, 1], and m_i in [0, 1] and λ_i in [0, 1)
depending on earlier paths only, Fan's inequality exp(λξ + (ln(1 − λ) + λ) ξ²) ≤ 1 + λξ for ξ ≥ −1
gives, with ξ = X_i − m_i and expectations taken,

    E exp(λ_i (X_i − μ) − (−ln(1 − λ_i) − λ_i) (X_i − m_i)²) ≤ (1 + λ_i (μ − m_i)) e^(λ_i (m_i − μ))
                                                            ≤ 1,

so the product of these factors is a supermartingale that starts at 1, and likewise for ξ = m_i −
X_i. By Ville's inequality each reaches 2/δ at any time with probability at most δ/2. Else μ is
within

    (Σ λ_i X_i ± (ln(2/δ) + Σ (−ln(1 − λ_i) − λ_i) (X_i − m_i)²)) / Σ λ_i   for every n.

Source: I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting",
Journal of the Royal Statistical Society B 86, 2024, theorem 2 and its choice of m_i and λ_i; X.
Fan, I. Grama, Q. Liu, "Exponential inequalities for martingales with applications", Electronic
Journal of Probability 20, 2015. The idea of stopping by empirical Bernstein bounds is from V. Mnih,
C. Szepesvári, J.-Y. Audibert, "Empirical Bernstein stopping", ICML 2008.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from engines.arrays import FloatArray
from engines.montecarlo.intervals import mixture_interval
from engines.montecarlo.methods import (
    Bound,
    Judgement,
    MethodError,
    NumberText,
    SamplingMethod,
    part_of,
    require_decided,
)
from engines.montecarlo.methods_exact import bounded_judgement, interval_text
from engines.montecarlo.tally import BooleanOutcomes, Outcomes

FIRST_LOOK = 64


def next_look(num_paths: int) -> int:
    """Return after how many paths the interval is looked at next: 2 % more, at least 64 more.

    The looks are at fixed numbers of paths, so that the stop depends on no batch.
    """
    look = FIRST_LOOK
    while look <= num_paths:
        look += max(FIRST_LOOK, look // 50)
    return look


class AdaptiveInterval(SamplingMethod):
    """Sampling until a confidence sequence is narrow enough, or excludes the bound.

    Parameters
    ----------
    width
        The half-width w > 0 at which to stop.
    confidence
        δ between 0 and 1.
    bound
        What the question compares with, or None.

    Raises
    ------
    MethodError
        If a parameter is out of its range.
    """

    name = "Adaptive"
    full_name = "Adaptive Stopping with a Confidence Sequence"
    needs_order = True

    def __init__(self, width: float, confidence: float, bound: Bound | None = None) -> None:
        super().__init__(bound)
        if not 0.0 < width < math.inf:
            raise MethodError(f"the width of adaptive stopping must be positive, not {width}")
        if not 0.0 < confidence < 1.0:
            raise MethodError(f"the confidence must be between 0 and 1, not {confidence}")
        self.width = width
        self.confidence = confidence
        self._next_look = FIRST_LOOK
        self._judgement: Judgement | None = None
        self._half_width = math.inf

    @property
    def finished(self) -> bool:
        """Whether the method has enough paths."""
        return self._judgement is not None

    def paths_wanted_next(self, most: int) -> int:
        """Return how many paths to sample next, at most `most`."""
        missing = self._next_look - self.num_paths
        if math.isfinite(self._half_width):
            # The half-width falls as one over the root of the paths; go most of the way.
            ratio = self._half_width / self.width
            missing = max(missing, int(0.5 * self.num_paths * min(ratio * ratio - 1.0, 2.0)))
        return int(max(1, min(most, max(FIRST_LOOK, missing))))

    def feed(self, outcomes: Outcomes) -> None:
        """Take the answers of the next paths; those after the stop are dropped."""
        place = 0
        while place < outcomes.num_paths and not self.finished:
            stop = min(outcomes.num_paths, place + self._next_look - self.num_paths)
            self._take(part_of(outcomes, place, stop))
            self.num_paths += stop - place
            place = stop
            if self.num_paths == self._next_look:
                self._look()

    def _look(self) -> None:
        self._next_look = next_look(self.num_paths)
        judgement = self._judged()
        self._half_width = judgement.half_width
        if judgement.half_width <= self.width or judgement.decision is not None:
            self._judgement = judgement

    @abstractmethod
    def _take(self, outcomes: Outcomes) -> None:
        """Add the answers of the next paths."""

    @abstractmethod
    def _judged(self) -> Judgement:
        """Return what the paths so far allow to say."""

    def result(self) -> Judgement:
        """Return the judgement; only once finished."""
        self._require_end()
        assert self._judgement is not None
        return self._judgement

    def parameters(self) -> tuple[tuple[str, float | int | None], ...]:
        """Return the parameters by PRISM's names, None for unknown ones."""
        samples = self.num_paths if self.finished else None
        return (
            ("width", self.width),
            ("confidence", self.confidence),
            ("number of samples", samples),
        )

    def explanation(self, text: NumberText) -> str:
        """Return what the result means, in words; only once finished."""
        return interval_text(self.result(), text)

    def progress(self) -> int:
        """Return how much is done, in per cent, a multiple of 10."""
        if self.finished:
            return 100
        return 10 * int(min(9.0, 10.0 * (self.width / self._half_width) ** 2))


class AdaptiveProbability(AdaptiveInterval):
    """Adaptive stopping for answers that are true, false or undecided.

    With many undecided paths the interval cannot get narrower than their share. Sampling stops with
    an error as soon as it is certain that the width is out of reach.
    """

    def __init__(self, width: float, confidence: float, bound: Bound | None = None) -> None:
        super().__init__(width, confidence, bound)
        self._num_true = 0
        self._num_undecided = 0

    def fresh(self) -> AdaptiveProbability:
        """Return a method of the same parameters that has seen no path."""
        return AdaptiveProbability(self.width, self.confidence, self.bound)

    def _take(self, outcomes: Outcomes) -> None:
        if not isinstance(outcomes, BooleanOutcomes):
            raise MethodError("rewards were given to the adaptive method of probabilities")
        self._num_true += outcomes.num_true
        self._num_undecided += outcomes.num_undecided

    def _judged(self) -> Judgement:
        true, undecided = self._num_true, self._num_undecided
        n = self.num_paths
        half = self.confidence / 2
        lower = mixture_interval(true, n, half)[0]
        upper = mixture_interval(true + undecided, n, half)[1]
        judgement = bounded_judgement(
            (true + 0.5 * undecided) / n, (lower, upper), self.confidence, n, self.bound, undecided
        )
        share = mixture_interval(undecided, n, half)[0]
        if judgement.decision is None and share > 2 * self.width:
            raise MethodError(
                f"{undecided} of {n} paths met the path limit before their answer was known, so "
                f"that no number of paths gives a half-width of {self.width}: raise the path "
                "limit, or allow a larger width"
            )
        return judgement


@dataclass(frozen=True)
class _Sums:
    """Sums over the rewards so far, each divided by the largest possible reward."""

    num_paths: int = 0
    values: float = 0.0
    deviations: float = 0.0
    """Squares of the distances from the running means, each with its own reward included."""
    bets: float = 0.0
    bet_values: float = 0.0
    penalties: float = 0.0


class AdaptiveReward(AdaptiveInterval):
    """Adaptive stopping for rewards between 0 and a known maximum.

    Parameters
    ----------
    width
        The half-width, in units of the reward.
    confidence
        δ between 0 and 1.
    largest
        The largest reward that a path can have; a larger one is an error when it is met.
    bound
        What the question compares with, or None.
    """

    def __init__(
        self, width: float, confidence: float, largest: float, bound: Bound | None = None
    ) -> None:
        super().__init__(width, confidence, bound)
        if not 0.0 < largest < math.inf:
            raise MethodError(f"the largest reward must be positive and finite, not {largest}")
        self.largest = largest
        self._sums = _Sums()

    def fresh(self) -> AdaptiveReward:
        """Return a method of the same parameters that has seen no path."""
        return AdaptiveReward(self.width, self.confidence, self.largest, self.bound)

    def _take(self, outcomes: Outcomes) -> None:
        require_decided(outcomes, self.num_paths)
        if isinstance(outcomes, BooleanOutcomes) or outcomes.values is None:
            raise ValueError("the adaptive method of rewards takes every reward in path order")
        rewards = outcomes.values
        beyond = np.flatnonzero((rewards < 0.0) | (rewards > self.largest))
        if beyond.size:
            place = int(beyond[0])
            raise MethodError(
                f"path {self.num_paths + place} has reward {rewards[place]}, outside of "
                f"[0, {self.largest}] for which adaptive stopping is sound: give a larger "
                "maximum with -simmaxrwd"
            )
        self._sums = self._added(self._sums, rewards / self.largest)

    def _added(self, sums: _Sums, x: FloatArray) -> _Sums:
        """Return the sums after further paths; every sum is continued from left to right."""
        n = np.arange(sums.num_paths + 1, sums.num_paths + x.size + 1, dtype=np.float64)
        totals = np.cumsum(np.concatenate(([sums.values], x)))
        earlier = (0.5 + totals[:-1]) / n
        deviations = (x - (0.5 + totals[1:]) / (n + 1)) ** 2
        summed = np.cumsum(np.concatenate(([sums.deviations], deviations)))
        variances = (0.25 + summed[:-1]) / n
        bets = np.sqrt(2 * math.log(2 / self.confidence) / (variances * n * np.log1p(n)))
        # Any number below 1 is sound.
        bets = np.minimum(0.5, bets)
        penalties = (-np.log1p(-bets) - bets) * (x - earlier) ** 2

        def total(start: float, parts: FloatArray) -> float:
            return float(np.cumsum(np.concatenate(([start], parts)))[-1])

        return _Sums(
            sums.num_paths + x.size,
            float(totals[-1]),
            float(summed[-1]),
            total(sums.bets, bets),
            total(sums.bet_values, bets * x),
            total(sums.penalties, penalties),
        )

    def _judged(self) -> Judgement:
        sums = self._sums
        middle = sums.bet_values / sums.bets
        reach = (math.log(2 / self.confidence) + sums.penalties) / sums.bets
        # More than the sums of positive terms can be off by, whatever their order.
        reach += 4e-16 * (sums.num_paths + 8) * (middle + reach)
        lower, upper = max(0.0, middle - reach), min(1.0, middle + reach)
        return bounded_judgement(
            self.largest * min(max(middle, lower), upper),
            (self.largest * lower, self.largest * upper),
            self.confidence,
            sums.num_paths,
            self.bound,
        )
