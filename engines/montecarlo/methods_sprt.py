"""SPRT: Wald's sequential probability ratio test of a bound, path by path.

To decide P ≥ θ, the hypotheses H0: p ≥ θ + δ and H1: p ≤ θ − δ are tested by the likelihood ratio

    (p1 / p0)^true ((1 − p1) / (1 − p0))^false,   p0 = θ + δ, p1 = θ − δ,

after each path from the second on: at most B / (1 − A) accepts H0, at least (1 − B) / A accepts H1.
For P ≤ θ the two values change places. The probabilities of wrong decisions outside the
indifference region θ ± δ are at most A / (1 − B) and B / (1 − A), and their sum at most A + B, up
to what skipping the look after the first path changes; inside it nothing is promised. For rewards
the ratio is that of normal distributions whose variance is estimated from the sample, and the error
probabilities hold only as far as rewards are normal.

The ratio is computed as PRISM computes it. Where its powers overflow or underflow, PRISM compares
with a number that is none and may never stop; there the test goes on in logarithms.

Source: A. Wald, "Sequential tests of statistical hypotheses", Annals of Mathematical Statistics 16,
1945; H. Younes, R. Simmons, "Probabilistic verification of discrete event systems using acceptance
sampling", CAV 2002; `SPRTMethod` of PRISM's package `simulator.method`.
"""

from __future__ import annotations

import math

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.montecarlo.methods import (
    Bound,
    Judgement,
    MethodError,
    NumberText,
    SamplingMethod,
    first_of,
    require_decided,
)
from engines.montecarlo.methods_confidence import LEAST_BATCH
from engines.montecarlo.methods_moments import Prefixes, RunningMoments
from engines.montecarlo.tally import Outcomes


class SequentialTest(SamplingMethod):
    """SPRT of a bounded question.

    Parameters
    ----------
    bound
        What the question compares with.
    type_one, type_two
        A and B: probabilities of accepting H1, or H0, wrongly; each between 0 and 1.
    indifference
        δ: half the width of the indifference region.
    reward
        Whether the answers are rewards; for probabilities the region must be within [0, 1].

    Raises
    ------
    MethodError
        If there is no bound or a parameter is out of its range, with PRISM's text.
    """

    name = "SPRT"
    full_name = "Sequential Probability Ratio Test"
    needs_order = True

    def __init__(
        self,
        bound: Bound | None,
        *,
        type_one: float,
        type_two: float,
        indifference: float,
        reward: bool = False,
    ) -> None:
        super().__init__(bound)
        if bound is None:
            raise MethodError("Cannot use SPRT on a quantitative (=?) property")
        if not (0.0 < type_one < 1.0 and 0.0 < type_two < 1.0):
            raise MethodError("the error probabilities of SPRT must be between 0 and 1")
        theta = bound.threshold
        problem = f"Indifference for SPRT method ({indifference}) is too wide"
        if theta - indifference <= 0:
            raise MethodError(f"{problem} (bound {theta} is too close to 0)")
        if theta + indifference > 1 and not reward:
            raise MethodError(f"{problem} (bound {theta} is too close to 1)")
        self.type_one, self.type_two = type_one, type_two
        self.indifference = indifference
        self.reward = reward
        side = indifference if bound.at_least else -indifference
        self._p0, self._p1 = theta + side, theta - side
        self._moments = RunningMoments()
        self._accepted: bool | None = None

    def fresh(self) -> SequentialTest:
        """Return a method of the same parameters that has seen no path."""
        return SequentialTest(
            self.bound,
            type_one=self.type_one,
            type_two=self.type_two,
            indifference=self.indifference,
            reward=self.reward,
        )

    @property
    def finished(self) -> bool:
        """Whether the method has enough paths."""
        return self._accepted is not None

    def paths_wanted_next(self, most: int) -> int:
        """Return how many paths to sample next, at most `most`."""
        # As many again as there were: at most half are sampled in vain.
        return int(max(1, min(most, max(LEAST_BATCH, self.num_paths))))

    def feed(self, outcomes: Outcomes) -> None:
        """Take the answers of the next paths; those after the stop are dropped."""
        trial = self._moments.extended(outcomes)
        accept, reject = self._decisions(trial)
        stops = np.flatnonzero(accept | reject)
        used = first_of(outcomes, int(stops[0]) + 1) if stops.size else outcomes
        require_decided(used, self.num_paths)
        self._moments = trial.moments_at(used.num_paths)
        self.num_paths += used.num_paths
        if stops.size:
            self._accepted = bool(accept[stops[0]])

    def _decisions(self, trial: Prefixes) -> tuple[MaskArray, MaskArray]:
        """Return after which paths H0 is accepted, and after which H1."""
        to_accept = self.type_two / (1 - self.type_one)
        to_reject = (1 - self.type_two) / self.type_one
        ratios, logarithms = self._ratios(trial)
        with np.errstate(invalid="ignore"):
            usable = np.isfinite(ratios) & (ratios > 0.0)
            accept = np.where(usable, ratios <= to_accept, logarithms <= math.log(to_accept))
            reject = np.where(usable, ratios >= to_reject, logarithms >= math.log(to_reject))
        late = trial.counts >= 2
        return accept & late, reject & ~accept & late

    def _ratios(self, trial: Prefixes) -> tuple[FloatArray, FloatArray]:
        """Return the likelihood ratio after each path, and its logarithm."""
        p0, p1 = self._p0, self._p1
        counts = trial.counts.astype(np.float64)
        if trial.start.num_true is None:
            with np.errstate(all="ignore"):
                spread = trial.shifted_squares / counts - (trial.shifted**2) / counts / counts
                difference = counts * (p1 * p1 - p0 * p0) - 2 * trial.sums * (p1 - p0)
                logarithms = (-1 / (2 * spread)) * difference
                # Without spread there is no normal distribution, and no decision.
                logarithms = np.where(spread > 0.0, logarithms, np.nan)
                return np.exp(logarithms), logarithms
        true = trial.sums
        false = counts - true
        up, down = p1 / p0, (math.inf if p0 == 1.0 else (1 - p1) / (1 - p0))
        with np.errstate(all="ignore"):
            ratios = np.power(up, true) * np.power(down, false)
            # No failure leaves the factor of failures at 1 even where that is infinite or 0.
            of_false = np.where(false > 0, false * np.log(down), 0.0)
            return ratios, true * math.log(up) + of_false

    def result(self) -> Judgement:
        """Return the judgement; only once finished."""
        self._require_end()
        assert self._accepted is not None
        return Judgement(
            estimate=self._moments.mean,
            interval=(-math.inf, math.inf),
            half_width=0.0,
            confidence=self.type_one,
            num_paths=self.num_paths,
            bound=self.bound,
            decision=self._accepted,
        )

    def parameters(self) -> tuple[tuple[str, float | int | None], ...]:
        """Return the parameters by PRISM's names, None for unknown ones."""
        return (
            ("type I error", self.type_one),
            ("type II error", self.type_two),
            ("delta", self.indifference),
            ("iterations", self.num_paths if self.finished else None),
        )

    def explanation(self, text: NumberText) -> str:  # noqa: ARG002 - it has whole numbers only
        """Return what the result means, in words; only once finished."""
        self._require_end()
        decision = "true" if self._accepted else "false"
        return f"{self.num_paths} samples needed to decide property {decision}"

    def progress(self) -> int:
        """Return how much is done, in per cent, a multiple of 10."""
        return 100 if self.finished else 0
