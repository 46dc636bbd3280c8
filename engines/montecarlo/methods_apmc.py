"""APMC: a number of paths, fixed beforehand, from the Chernoff–Hoeffding bound.

With n paths the mean is within ε of the probability except with probability 2 exp(−2 n ε²) ≤ δ,
whatever the model. Two of ε, δ and n are given and the third follows before sampling. Rewards have
no bound that the inequality could use, and are refused, as PRISM refuses them.

Source: T. Hérault, R. Lassaigne, F. Magniette, S. Peyronnet, "Approximate probabilistic model
checking", VMCAI 2004; the classes `APMC…` of PRISM's package `simulator.method`.
"""

from __future__ import annotations

import math

from engines.montecarlo.intervals import (
    hoeffding_approximation,
    hoeffding_confidence,
    hoeffding_paths,
)
from engines.montecarlo.methods import (
    Bound,
    Counted,
    Judgement,
    MethodError,
    NumberText,
    require_decided,
)
from engines.montecarlo.tally import BooleanOutcomes, Outcomes

MOST_PATHS = 2**31 - 1


class ApproximateChecking(Counted):
    """APMC with one of its three parameters computed.

    Parameters
    ----------
    approximation
        ε > 0, or None to compute it.
    confidence
        δ between 0 and 1, or None to compute it.
    samples
        The number of paths n ≥ 1, or None to compute it.
    bound
        What the question compares with, or None.

    Raises
    ------
    MethodError
        If not exactly one is None, one is out of its range, or PRISM refuses the combination.
    """

    name = "APMC"
    full_name = "Approximate Probabilistic Model Checking"

    def __init__(
        self,
        approximation: float | None = None,
        confidence: float | None = None,
        samples: int | None = None,
        *,
        bound: Bound | None = None,
    ) -> None:
        self._given = (approximation, confidence, samples)
        if [approximation, confidence, samples].count(None) != 1:
            raise MethodError(
                "give two of approximation, confidence and samples to APMC; the third follows"
            )
        if approximation is not None and not 0.0 < approximation < math.inf:
            raise MethodError(f"the approximation of APMC must be positive, not {approximation}")
        if confidence is not None and not 0.0 < confidence < 1.0:
            raise MethodError(f"the confidence of APMC must be between 0 and 1, not {confidence}")
        if samples is None:
            assert approximation is not None
            assert confidence is not None
            paths = hoeffding_paths(approximation, confidence)
            if not paths < MOST_PATHS:
                raise MethodError(
                    "Overflow in APMC method: required number of iterations is too high"
                )
            samples = int(paths)
        super().__init__(samples, bound)
        if approximation is None:
            assert confidence is not None
            approximation = hoeffding_approximation(samples, confidence)
        elif confidence is None:
            if approximation * approximation * samples < math.log(2.0) / 2.0:
                raise MethodError(
                    "For APMC, samples (N) and approximation (eps) must satisfy "
                    "N*eps^2 >= ln(2)/2. Increase samples and/or approximation"
                )
            confidence = hoeffding_confidence(approximation, samples)
        assert confidence is not None
        self.approximation = approximation
        self.confidence = confidence
        self._num_true = 0

    def fresh(self) -> ApproximateChecking:
        """Return a method of the same parameters that has seen no path."""
        return ApproximateChecking(*self._given, bound=self.bound)

    def feed(self, outcomes: Outcomes) -> None:
        """Take the answers of the next paths; those after the stop are dropped."""
        if not isinstance(outcomes, BooleanOutcomes):
            raise MethodError("Cannot use the APMC method on reward properties; try CI instead")
        first_path = self.num_paths
        used = self._used(outcomes)
        require_decided(used, first_path)
        assert isinstance(used, BooleanOutcomes)
        self._num_true += used.num_true

    def result(self) -> Judgement:
        """Return the judgement; only once finished."""
        self._require_end()
        estimate = self._num_true / self.num_paths
        return Judgement(
            estimate=estimate,
            interval=(
                max(0.0, estimate - self.approximation),
                min(1.0, estimate + self.approximation),
            ),
            half_width=self.approximation,
            confidence=self.confidence,
            num_paths=self.num_paths,
            bound=self.bound,
            decision=self._decided(estimate, self.approximation),
        )

    def parameters(self) -> tuple[tuple[str, float | int | None], ...]:
        """Return the parameters by PRISM's names, None for unknown ones."""
        return (
            ("approximation", self.approximation),
            ("confidence", self.confidence),
            ("number of samples", self.samples),
        )

    def explanation(self, text: NumberText) -> str:
        """Return what the result means, in words; only once finished."""
        judgement = self.result()
        return (
            f"Pr(|ans - {text(judgement.estimate)}| < {text(self.approximation)}) > "
            f"{text(1.0 - self.confidence)}"
        )
