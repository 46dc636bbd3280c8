"""The growing-k procedure: a bound on an unbounded monotone formula from paths of growing length.

For a monotone and positive formula φ, the probability P_k that the first k states of a path satisfy
it grows with k and never exceeds P(φ). So P_k ≥ b for one k shows P(φ) ≥ b. The procedure estimates
P_k for k, 2k, 4k, … and stops at the first length whose lower confidence bound reaches b.

The paper compares the estimate itself, less ε, with b at every length, each time with the whole δ.
Here round j = 1, 2, … has the share δ / (j (j + 1)), which add up to δ: so the positive answer is
wrong with probability at most δ over all rounds together, whatever their number. A negative answer
needs a bound on the chain's mixing time, which nobody gives; so the procedure ends undecided, and
says so.

Source: T. Hérault, R. Lassaigne, F. Magniette, S. Peyronnet, "Approximate probabilistic model
checking", VMCAI 2004; G. Guirado and others, "Distribution, approximation and probabilistic model
checking", PDMC 2005, section 3.1.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engines.montecarlo.methods import MethodError
from engines.montecarlo.methods_exact import ExactInterval
from engines.montecarlo.monitor import Monitor
from engines.montecarlo.tally import BooleanOutcomes

SampleLength = Callable[[int, int, int], BooleanOutcomes]
"""From k, the first path and the number of paths to the verdicts after k states."""


@dataclass(frozen=True)
class LengthRound:
    """What one length gave.

    Parameters
    ----------
    length
        The number of states k.
    estimate
        The share of paths that satisfy the formula.
    lower
        A lower bound of P_k, wrong with probability at most `confidence`.
    confidence
        The round's share of δ.
    """

    length: int
    estimate: float
    lower: float
    confidence: float


@dataclass(frozen=True)
class GrowingResult:
    """Whether the probability of the formula is at least the threshold, as far as it was shown.

    Parameters
    ----------
    shown
        True where it is, with confidence 1 − δ; False where the longest paths did not show it,
        which does not mean that it is smaller.
    rounds
        One for each length.
    """

    shown: bool
    rounds: tuple[LengthRound, ...]

    @property
    def lower(self) -> float:
        """The best lower bound of the probability, wrong with probability at most δ."""
        return max((entry.lower for entry in self.rounds), default=0.0)

    @property
    def explanation(self) -> str:
        """What was found, as one sentence."""
        last = self.rounds[-1]
        if self.shown:
            return f"paths of {last.length} states show that the bound holds"
        return (
            f"paths of up to {last.length} states do not show that the bound holds: longer ones "
            "may, as the probability grows with the length"
        )


def check_growing_lengths(
    monitor: Monitor,
    threshold: float,
    sample: SampleLength,
    *,
    confidence: float,
    num_paths: int,
    first_length: int,
    longest: int,
    batch_paths: int = 65_536,
) -> GrowingResult:
    """Try to show that a monotone formula has at least a given probability.

    Parameters
    ----------
    monitor
        The monitor of a formula that is positive: `bounded_ltl.is_positive`.
    threshold
        The probability b, above 0 and at most 1.
    sample
        Samples paths of a given length. Rounds may share paths: the bound needs no independence
        between them.
    confidence
        δ between 0 and 1.
    num_paths
        Paths for each length.
    first_length, longest
        The first k, at least 1, and the last, in states. A formula that is decided after fewer
        states ends there.

    Raises
    ------
    MethodError
        If the formula is not monotone, or a number is out of its range.
    """
    if not monitor.is_monotone:
        raise MethodError(
            "the formula is not monotone: a longer path may violate it, so that its probability "
            "on path prefixes bounds nothing; give a path length, or step bounds"
        )
    if not 1 <= first_length <= longest:
        raise MethodError(f"the path lengths {first_length} to {longest} are none")
    if not 0.0 < threshold <= 1.0:
        raise MethodError(f"the bound {threshold} is not above 0 and at most 1")
    decided = monitor.decided_after
    last = longest if decided is None else min(longest, max(1, decided))
    rounds: list[LengthRound] = []
    length = min(first_length, last)
    while True:
        number = len(rounds) + 1
        share = confidence / (number * (number + 1))
        # The interval has two sides with half of its confidence each, and one is used.
        method = ExactInterval(2 * share, samples=num_paths)
        while not method.finished:
            paths = method.paths_wanted_next(batch_paths)
            method.feed(sample(length, method.num_paths, paths))
        judgement = method.result()
        rounds.append(LengthRound(length, judgement.estimate, judgement.interval[0], share))
        if judgement.interval[0] >= threshold or length == last:
            return GrowingResult(judgement.interval[0] >= threshold, tuple(rounds))
        length = min(last, 2 * length)
