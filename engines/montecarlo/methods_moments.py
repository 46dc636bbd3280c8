"""Sums after every single path, for methods that judge path by path.

The sums are added from left to right, and an extension begins with the sums so far, so that they
are the same to the last bit wherever the paths were cut into batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.montecarlo.tally import TRUE, BooleanOutcomes, Outcomes


@dataclass(frozen=True)
class RunningMoments:
    """Sums of the answers of the paths so far.

    Rewards are summed as they are, and, for the variance, less the first of them.

    Parameters
    ----------
    num_paths
        How many paths there are.
    num_true
        How many of them satisfy a Boolean question; None for rewards.
    total
        The sum of the answers.
    shift
        The first reward.
    shifted, shifted_squares
        The sum of rewards less the shift, and of the squares of that.

    Notes
    -----
    Source of the shift: T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for computing the
    sample variance", The American Statistician 37, 1983; PRISM's `SamplerDouble` does the same.
    """

    num_paths: int = 0
    num_true: int | None = None
    total: float = 0.0
    shift: float = 0.0
    shifted: float = 0.0
    shifted_squares: float = 0.0

    @property
    def mean(self) -> float:
        """The mean of the answers; not a number for no paths."""
        return self.total / self.num_paths if self.num_paths else float("nan")

    @property
    def variance(self) -> float:
        """The unbiased estimate of the variance; 0 for fewer than two paths."""
        n = self.num_paths
        if n <= 1:
            return 0.0
        if self.num_true is not None:
            return self.num_true * (float(n) - self.num_true) / (n * (n - 1.0))
        mean = self.shifted / n
        return (self.shifted_squares - n * mean * mean) / (n - 1.0)

    def extended(self, outcomes: Outcomes) -> Prefixes:
        """Return the sums after each of the next paths.

        Parameters
        ----------
        outcomes
            Their answers, with the single outcomes in path order.

        Raises
        ------
        ValueError
            If the single outcomes are missing.
        """
        details = outcomes.outcomes if isinstance(outcomes, BooleanOutcomes) else outcomes.values
        if details is None:
            raise ValueError(
                "a method that judges path by path was given counts alone: sample with single "
                "outcomes in path order"
            )
        counts = np.arange(self.num_paths + 1, self.num_paths + details.size + 1)
        with np.errstate(invalid="ignore", over="ignore"):
            if isinstance(outcomes, BooleanOutcomes):
                true = (self.num_true or 0) + np.cumsum(details == TRUE, dtype=np.int64)
                n = counts.astype(np.float64)
                variances = true * (n - true) / np.maximum(1.0, n * (n - 1.0))
                sums = true.astype(np.float64)
                start = replace(self, num_true=self.num_true or 0)
                return Prefixes(start, counts, variances, sums, sums, sums)
            values = details.astype(np.float64)
            shift = self.shift if self.num_paths or not values.size else float(values[0])
            start = replace(self, shift=shift)
            sums = _continued(self.total, values)
            shifted = _continued(self.shifted, values - shift)
            squares = _continued(self.shifted_squares, (values - shift) ** 2)
            means = shifted / counts
            variances = (squares - counts * means * means) / np.maximum(1.0, counts - 1.0)
            return Prefixes(start, counts, variances, sums, shifted, squares)


def _continued(start: float, values: FloatArray) -> FloatArray:
    return np.cumsum(np.concatenate(([start], values)))[1:]


@dataclass(frozen=True)
class Prefixes:
    """Sums after each of some further paths, each array of shape (further paths,).

    Parameters
    ----------
    start
        The sums before them.
    counts
        Numbers of paths.
    variances
        Unbiased estimates of the variance.
    sums, shifted, shifted_squares
        As of `RunningMoments`; of Boolean answers all are the number of true ones.
    """

    start: RunningMoments
    counts: IndexArray
    variances: FloatArray
    sums: FloatArray
    shifted: FloatArray
    shifted_squares: FloatArray

    def moments_at(self, further: int) -> RunningMoments:
        """Return the sums after so many of the further paths."""
        if further == 0:
            return self.start
        last = further - 1
        total = float(self.sums[last])
        count = int(self.counts[last])
        if self.start.num_true is not None:
            return RunningMoments(count, int(total), total)
        return replace(
            self.start,
            num_paths=count,
            total=total,
            shifted=float(self.shifted[last]),
            shifted_squares=float(self.shifted_squares[last]),
        )
