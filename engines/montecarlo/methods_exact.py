"""Clopper–Pearson: a fixed number of paths, and an interval that never promises too much.

The interval covers the probability with at least the stated confidence for every model and every
number of paths (see `clopper_pearson` for the proof). Paths that met the path limit before their
answer was known are bounded, not refused: they count as false for the lower bound and as true for
the upper, each of which misses with probability at most δ/2. So an unbounded formula gets a sound
interval from bounded paths.
"""

from __future__ import annotations

from engines.montecarlo.intervals import clopper_pearson, clopper_pearson_paths
from engines.montecarlo.methods import Bound, Counted, Judgement, MethodError, NumberText
from engines.montecarlo.tally import BooleanOutcomes, Outcomes


class ExactInterval(Counted):
    """A Clopper–Pearson interval from a fixed number of paths.

    Parameters
    ----------
    confidence
        δ between 0 and 1.
    samples
        The number of paths, or None to take as many as a half-width needs.
    width
        The half-width wanted; only where `samples` is None.
    bound
        What the question compares with, or None.

    Raises
    ------
    MethodError
        If a parameter is out of its range, or not exactly one of samples and width is given.
    """

    name = "Clopper-Pearson"
    full_name = "Exact Confidence Interval"

    def __init__(
        self,
        confidence: float,
        *,
        samples: int | None = None,
        width: float | None = None,
        bound: Bound | None = None,
    ) -> None:
        if (samples is None) == (width is None):
            raise MethodError("give either the samples or the width to Clopper-Pearson")
        if not 0.0 < confidence < 1.0:
            raise MethodError(f"the confidence must be between 0 and 1, not {confidence}")
        if samples is None:
            assert width is not None
            try:
                samples = clopper_pearson_paths(width, confidence)
            except ValueError as error:
                raise MethodError(str(error)) from None
        super().__init__(samples, bound)
        self.confidence = confidence
        self._num_true = 0
        self._num_undecided = 0

    def fresh(self) -> ExactInterval:
        """Return a method of the same parameters that has seen no path."""
        return ExactInterval(self.confidence, samples=self.samples, bound=self.bound)

    def feed(self, outcomes: Outcomes) -> None:
        """Take the answers of the next paths; those after the stop are dropped."""
        if not isinstance(outcomes, BooleanOutcomes):
            raise MethodError(
                "Cannot use the Clopper-Pearson method on reward properties; try adaptive instead"
            )
        used = self._used(outcomes)
        assert isinstance(used, BooleanOutcomes)
        self._num_true += used.num_true
        self._num_undecided += used.num_undecided

    def result(self) -> Judgement:
        """Return the judgement; only once finished."""
        self._require_end()
        true, undecided, n = self._num_true, self._num_undecided, self.num_paths
        lower = clopper_pearson(true, n, self.confidence)[0]
        upper = clopper_pearson(true + undecided, n, self.confidence)[1]
        return bounded_judgement(
            (true + 0.5 * undecided) / n, (lower, upper), self.confidence, n, self.bound, undecided
        )

    def parameters(self) -> tuple[tuple[str, float | int | None], ...]:
        """Return the parameters by PRISM's names, None for unknown ones."""
        width = self.result().half_width if self.finished else None
        return (
            ("width", width),
            ("confidence", self.confidence),
            ("number of samples", self.samples),
        )

    def explanation(self, text: NumberText) -> str:
        """Return what the result means, in words; only once finished."""
        return interval_text(self.result(), text)


def interval_text(judgement: Judgement, text: NumberText) -> str:
    """Return what an interval with two different sides means, in words like PRISM's for CI."""
    lower, upper = judgement.interval
    level = text(100.0 * (1.0 - judgement.confidence))
    return (
        f"confidence interval is [{text(lower)},{text(upper)}], based on {level}% confidence level"
    )


def bounded_judgement(
    estimate: float,
    interval: tuple[float, float],
    confidence: float,
    num_paths: int,
    bound: Bound | None,
    num_undecided: int = 0,
) -> Judgement:
    """Return the judgement that an interval allows: a bound is decided where it lies outside.

    Parameters
    ----------
    estimate, interval, confidence, num_paths, bound
        As of `Judgement`.
    num_undecided
        How many paths met the path limit first; the interval must allow for them.
    """
    lower, upper = interval
    decision: bool | None = None
    if bound is not None:
        if lower > bound.threshold:
            decision = bound.at_least
        elif upper < bound.threshold:
            decision = not bound.at_least
    remarks: tuple[str, ...] = ()
    if num_undecided:
        remarks = (
            f"{num_undecided} of {num_paths} paths met the path limit before their answer was "
            "known; the interval counts them as false below and as true above",
        )
    return Judgement(
        estimate=estimate,
        interval=interval,
        half_width=max(estimate - lower, upper - estimate),
        confidence=confidence,
        num_paths=num_paths,
        bound=bound,
        decision=decision,
        remarks=remarks,
    )
