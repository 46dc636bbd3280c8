"""PRISM's CI and ACI: an interval from the sample variance, by Student's or the normal quantile.

Three quantities depend on each other: the half-width w, the confidence δ and the number of samples
n. Two are given and the third is computed, always after sampling:

    w = q(δ, n) √(S² / n),

with S² the unbiased sample variance and q Student's quantile with n − 1 degrees of freedom (CI) or
the normal one (ACI). Where n is unknown, sampling stops at the first path where w is small enough.

Both rest on the central limit theorem. They promise nothing for a finite sample, and are plainly
wrong where no path, or every path, satisfies the formula: then S² = 0 and the interval is a point.
The remarks of a judgement say so; the methods `clopper-pearson` and `adaptive` have no such gap.

Source: the classes `CIMethod` and `ACI…` of PRISM's package `simulator.method`; V. Nimal,
"Statistical approaches for probabilistic model checking", MSc thesis, Oxford 2010.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.montecarlo.intervals import (
    LARGEST_STUDENT,
    clopper_pearson,
    normal_probability,
    normal_quantile,
    student_probability,
    student_quantile,
)
from engines.montecarlo.methods import (
    Bound,
    Counted,
    Judgement,
    MethodError,
    NumberText,
    SamplingMethod,
    first_of,
    require_decided,
)
from engines.montecarlo.methods_moments import RunningMoments
from engines.montecarlo.tally import BooleanOutcomes, ExactMoments, Outcomes

LEAST_BATCH = 1024


class Quantile(Enum):
    """Which distribution the interval is made with."""

    STUDENT = auto()
    NORMAL = auto()

    def value_for(self, confidence: float, num_paths: int) -> float:
        """Return the quantile for a confidence δ and so many paths, at least 2."""
        if self is Quantile.STUDENT:
            return student_quantile(confidence, num_paths - 1)
        return normal_quantile(1.0 - confidence / 2.0)


@dataclass(frozen=True)
class _Sample:
    """Mean and variance of the answers, and their counts where they are Boolean."""

    mean: float
    variance: float
    num_paths: int
    num_true: int | None


class _Interval(SamplingMethod):
    """What CI and ACI share, whichever parameter is unknown."""

    def __init__(
        self,
        quantile: Quantile,
        width: float | None,
        confidence: float | None,
        bound: Bound | None,
    ) -> None:
        self.quantile = quantile
        student = quantile is Quantile.STUDENT
        self.name = "CI" if student else "ACI"
        self.full_name = "Confidence Interval" if student else "Asymptotic Confidence Interval"
        SamplingMethod.__init__(self, bound)
        _require_positive(self.name, "width", width)
        _require_below_one(self.name, confidence)
        self.width = width
        self.confidence = confidence

    def _judged(self, sample: _Sample, width: float, confidence: float) -> Judgement:
        remarks = []
        if sample.variance == 0.0:
            remark = (
                f"All {sample.num_paths} samples agree, so that {self.name} has no estimate of "
                "the variance and its interval means nothing"
            )
            if sample.num_true is not None and 0.0 < confidence < 1.0:
                lower, upper = clopper_pearson(sample.num_true, sample.num_paths, confidence)
                remark += f"; Clopper-Pearson gives [{lower:.6g}, {upper:.6g}]"
            remarks.append(remark)
        return Judgement(
            estimate=sample.mean,
            interval=(sample.mean - width, sample.mean + width),
            half_width=width,
            confidence=confidence,
            num_paths=sample.num_paths,
            bound=self.bound,
            decision=self._decided(sample.mean, width),
            remarks=tuple(remarks),
        )

    def explanation(self, text: NumberText) -> str:
        """Return what the result means, in words; only once finished."""
        judgement = self.result()
        level = text(100.0 * (1.0 - judgement.confidence))
        return (
            f"confidence interval is {text(judgement.estimate)} +/- {text(judgement.half_width)}, "
            f"based on {level}% confidence level"
        )


class FixedSampleInterval(_Interval, Counted):
    """CI or ACI with the number of samples given, and either the width or the confidence.

    With the width given, CI computes δ from Student's distribution with n − 1 degrees of freedom.
    PRISM hands the two arguments to its library in the wrong order there, the statistic as degrees
    of freedom, and prints a far too small δ; that is not repeated.

    Parameters
    ----------
    quantile
        Student's for CI, the normal one for ACI.
    samples
        The number of paths n.
    width, confidence
        The half-width w > 0 and δ between 0 and 1; exactly one is None and is computed.
    bound
        What the question compares with, or None.

    Raises
    ------
    MethodError
        If a parameter is out of its range.
    """

    def __init__(
        self,
        quantile: Quantile,
        samples: int,
        *,
        width: float | None = None,
        confidence: float | None = None,
        bound: Bound | None = None,
    ) -> None:
        if (width is None) == (confidence is None):
            raise MethodError("give either the width or the confidence, and the other is computed")
        _Interval.__init__(self, quantile, width, confidence, bound)
        Counted.__init__(self, samples, bound)
        self._num_true: int | None = None
        self._moments = ExactMoments()

    def fresh(self) -> FixedSampleInterval:
        """Return a method of the same parameters that has seen no path."""
        return FixedSampleInterval(
            self.quantile,
            self.samples,
            width=self.width,
            confidence=self.confidence,
            bound=self.bound,
        )

    def feed(self, outcomes: Outcomes) -> None:
        """Take the answers of the next paths; those after the stop are dropped."""
        first_path = self.num_paths
        used = self._used(outcomes)
        require_decided(used, first_path)
        if isinstance(used, BooleanOutcomes):
            self._num_true = (self._num_true or 0) + used.num_true
        else:
            self._moments += used.moments

    def _sample(self) -> _Sample:
        n = self.num_paths
        if self._num_true is None:
            return _Sample(self._moments.mean, self._moments.variance, n, None)
        true = self._num_true
        variance = true * (float(n) - true) / (n * (n - 1.0)) if n > 1 else 0.0
        return _Sample(true / n, variance, n, true)

    def _missing(self, sample: _Sample) -> tuple[float, float] | None:
        """Return width and confidence, or None where one sample is too few for Student's."""
        n, variance = sample.num_paths, sample.variance
        student = self.quantile is Quantile.STUDENT
        if n == 1 and student:
            return None
        if self.width is None:
            assert self.confidence is not None
            quantile = self.quantile.value_for(self.confidence, n)
            return quantile * math.sqrt(variance / n), self.confidence
        ratio = n / variance if variance else math.inf
        statistic = self.width * math.sqrt(ratio)
        below = student_probability(statistic, n - 1) if student else normal_probability(statistic)
        return self.width, 2 * (1.0 - below)

    def result(self) -> Judgement:
        """Return the judgement; only once finished."""
        self._require_end()
        sample = self._sample()
        missing = self._missing(sample)
        if missing is None:
            # PRISM leaves the unknown parameter at 0, which would promise everything.
            width = math.inf if self.width is None else self.width
            missing = (width, 1.0 if self.confidence is None else self.confidence)
        return self._judged(sample, *missing)

    def parameters(self) -> tuple[tuple[str, float | int | None], ...]:
        """Return the parameters by PRISM's names, None for unknown ones."""
        width, confidence = self.width, self.confidence
        if self.finished:
            width, confidence = self._missing(self._sample()) or (width, confidence)
        return (("width", width), ("confidence", confidence), ("number of samples", self.samples))


class SequentialInterval(_Interval):
    """CI or ACI that samples until the half-width is small enough.

    After path n ≥ 2 it stops when n ≥ S² q² / w² (CI) or n + 1 ≥ S² q² / w² (ACI). While S² = 0 it
    goes on until max_reward / w paths, or `least_paths` where that is given. Looking at the width
    after every path and stopping at the first small one covers less often than δ promises, above
    all for probabilities near 0 and 1; PRISM does the same.

    Parameters
    ----------
    quantile
        Student's for CI, the normal one for ACI.
    width, confidence
        The half-width w > 0 and δ between 0 and 1.
    max_reward
        The largest reward expected, 1 for probabilities.
    least_paths
        How many equal answers to take for a variance of 0, if said.
    bound
        What the question compares with, or None.

    Raises
    ------
    MethodError
        If a parameter is out of its range.
    """

    needs_order = True

    def __init__(
        self,
        quantile: Quantile,
        width: float,
        confidence: float,
        *,
        max_reward: float = 1.0,
        least_paths: int | None = None,
        bound: Bound | None = None,
    ) -> None:
        super().__init__(quantile, width, confidence, bound)
        self._given = (width, confidence)
        self.max_reward = max_reward
        self.least_paths = least_paths
        self._moments = RunningMoments()
        self._stopped = False

    def fresh(self) -> SequentialInterval:
        """Return a method of the same parameters that has seen no path."""
        return SequentialInterval(
            self.quantile,
            *self._given,
            max_reward=self.max_reward,
            least_paths=self.least_paths,
            bound=self.bound,
        )

    @property
    def finished(self) -> bool:
        """Whether the method has enough paths."""
        return self._stopped

    def _wanted(self, num_paths: int, variance: float) -> float:
        """Return the number of paths that a variance asks for, of so many paths."""
        width, confidence = self._given
        quantile = self.quantile.value_for(confidence, max(2, num_paths))
        wanted = variance * (quantile * quantile) / (width * width)
        return wanted if self.quantile is Quantile.STUDENT else wanted - 1.0

    def paths_wanted_next(self, most: int) -> int:
        """Return how many paths to sample next, at most `most`."""
        width, _ = self._given
        variance = self._moments.variance
        if variance > 0.0:
            missing = self._wanted(self.num_paths, variance) - self.num_paths
        else:
            least = self.max_reward / width if self.least_paths is None else self.least_paths
            missing = least - self.num_paths
        # A little more than the present variance asks for: it will not be quite the same then.
        return int(max(1, min(most, max(LEAST_BATCH, 1.02 * missing))))

    def feed(self, outcomes: Outcomes) -> None:
        """Take the answers of the next paths; those after the stop are dropped."""
        trial = self._moments.extended(outcomes)
        stop = _first(self._enough(trial.counts, trial.variances))
        used = outcomes if stop is None else first_of(outcomes, stop + 1)
        require_decided(used, self.num_paths)
        self._moments = trial.moments_at(used.num_paths)
        self.num_paths += used.num_paths
        self._stopped = stop is not None

    def _enough(self, counts: IndexArray, variances: FloatArray) -> MaskArray:
        width, confidence = self._given
        quantiles = np.full(counts.shape, self.quantile.value_for(confidence, 2**30))
        if self.quantile is Quantile.STUDENT:
            for i in np.flatnonzero((counts >= 2) & (counts - 1 <= LARGEST_STUDENT)):
                quantiles[i] = student_quantile(confidence, int(counts[i]) - 1)
        ahead = 0 if self.quantile is Quantile.STUDENT else 1
        wanted = variances * (quantiles * quantiles) / (width * width)
        narrow = counts + ahead >= wanted
        if self.least_paths is None:
            settled = counts >= self.max_reward / width
        else:
            settled = counts >= self.least_paths
        # A variance that is not a number, of infinite rewards, stops PRISM: no comparison holds.
        broken = np.isnan(variances)
        enough: MaskArray = (counts >= 2) & (broken | np.where(variances > 0.0, narrow, settled))
        return enough

    def result(self) -> Judgement:
        """Return the judgement; only once finished."""
        self._require_end()
        moments = self._moments
        sample = _Sample(moments.mean, moments.variance, self.num_paths, moments.num_true)
        return self._judged(sample, *self._given)

    def parameters(self) -> tuple[tuple[str, float | int | None], ...]:
        """Return the parameters by PRISM's names, None for unknown ones."""
        samples = self.num_paths if self._stopped else None
        return (
            ("width", self.width),
            ("confidence", self.confidence),
            ("number of samples", samples),
        )

    def progress(self) -> int:
        """Return how much is done, in per cent, a multiple of 10."""
        variance = self._moments.variance
        if not variance > 0.0 or self.num_paths < 2:
            return 100 if self._stopped else 0
        wanted = max(1.0, self._wanted(self.num_paths, variance))
        return 10 * int(min(10.0, 10.0 * (self.num_paths + 1) / wanted))


def _first(stops: MaskArray) -> int | None:
    found = np.flatnonzero(stops)
    return int(found[0]) if found.size else None


def _require_positive(name: str, parameter: str, value: float | None) -> None:
    if value is not None and not 0.0 < value < math.inf:
        raise MethodError(f"the {parameter} of {name} must be positive, not {value}")


def _require_below_one(name: str, confidence: float | None) -> None:
    if confidence is not None and not 0.0 < confidence < 1.0:
        raise MethodError(f"the confidence of {name} must be between 0 and 1, not {confidence}")
