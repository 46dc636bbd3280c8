"""The growing-k procedure: a bound on an unbounded monotone formula from paths of growing length.

For a monotone and positive formula φ, the probability P_k that the first k states of a path satisfy
it grows with k and never exceeds P(φ). So the procedure estimates P_k by A/N for k, 2k, 4k, … and
decides P(φ) ≥ b by the papers' rule: true at the first length with A/N > b − ε; false if there is
none up to the longest. It also ends, with false, at a length where each path was decided before its
end, because longer paths would give the same answers.

The papers give every length the whole δ. Here each of R lengths has δ / R, so that all estimates
are within ε of their P_k except with probability δ:

    true    P(φ) ≥ P_k > b − 2ε
    false   P_K < b for the longest K, and P(φ) < b where longer paths give the same answers.

Source: T. Hérault, R. Lassaigne, F. Magniette, S. Peyronnet, "Approximate probabilistic model
checking", VMCAI 2004; G. Guirado and others, "Distribution, approximation and probabilistic model
checking", PDMC 2005, sections 3.1.1 and 3.1.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engines.montecarlo.intervals import (
    hoeffding_approximation,
    hoeffding_confidence,
    hoeffding_paths,
)
from engines.montecarlo.methods import MethodError
from engines.montecarlo.methods_apmc import MOST_PATHS
from engines.montecarlo.monitor import Monitor
from engines.montecarlo.tally import BooleanOutcomes, PathBatch

SampleLength = Callable[[int, int, int], PathBatch]
"""From k, the first path and the number of paths to the verdicts after k states."""


@dataclass(frozen=True)
class GrowingParameters:
    """The numbers of a procedure, which belong together by the Chernoff–Hoeffding bound.

    Parameters
    ----------
    lengths
        The numbers of states k, ascending.
    approximation, confidence
        ε and δ: each estimate is within ε of its P_k, except with probability δ for all together.
    num_paths
        Paths for each length.
    """

    lengths: tuple[int, ...]
    approximation: float
    confidence: float
    num_paths: int


@dataclass(frozen=True)
class LengthRound:
    """What one length gave.

    Parameters
    ----------
    length
        The number of states k.
    estimate
        A/N, the share of paths that satisfy the formula.
    ended
        Whether each path was decided before its end, so that longer ones would tell the same.
    """

    length: int
    estimate: float
    ended: bool


@dataclass(frozen=True)
class GrowingResult:
    """Whether the probability of the formula is at least the threshold.

    Parameters
    ----------
    holds
        By the rule A/N > b − ε.
    threshold
        b.
    parameters
        ε and δ, and the lengths that might have been looked at.
    rounds
        One for each length that was.
    """

    holds: bool
    threshold: float
    parameters: GrowingParameters
    rounds: tuple[LengthRound, ...]

    @property
    def explanation(self) -> str:
        """What was found and what it promises, as one sentence."""
        last, margin = self.rounds[-1], self.parameters.approximation
        found = (
            f"of paths of {last.length} states {last.estimate:.6g} satisfy the formula, "
            f"{'more' if self.holds else 'not more'} than {self.threshold:g} - {margin:.3g}"
        )
        unless = f"except with probability {self.parameters.confidence:g}"
        if self.holds:
            least = max(0.0, last.estimate - margin)
            return f"{found}: its probability is at least {least:.6g}, {unless}"
        most = min(1.0, last.estimate + margin)
        if last.ended:
            return f"{found}: its probability is at most {most:.6g}, {unless}; each path ended"
        return (
            f"{found}: that of so many states is at most {most:.6g}, {unless}; longer paths, by "
            "-simpathlen, may give more"
        )


def growing_lengths(first: int, longest: int) -> tuple[int, ...]:
    """Return the lengths k, 2k, 4k, … up to the longest, which is the last.

    Parameters
    ----------
    first, longest
        In states, at least 1.

    Raises
    ------
    MethodError
        If there is no such length.
    """
    if not 1 <= first <= longest:
        raise MethodError(f"the path lengths {first} to {longest} are none")
    lengths = [first]
    while lengths[-1] < longest:
        lengths.append(min(longest, 2 * lengths[-1]))
    return tuple(lengths)


def growing_parameters(
    lengths: tuple[int, ...],
    approximation: float | None,
    confidence: float | None,
    samples: int | None,
    default_confidence: float,
) -> GrowingParameters:
    """Return the parameters of a procedure, of which the user gave some.

    Parameters
    ----------
    lengths
        The numbers of states.
    approximation, confidence, samples
        ε, δ and the number of paths for each length, or None; the third follows from two.
    default_confidence
        δ where it neither is given nor follows.

    Raises
    ------
    MethodError
        If all three are given, one is out of its range, or too many paths would be needed.
    """
    if None not in (approximation, confidence, samples):
        raise MethodError(
            "Cannot specify all three parameters (approximation/confidence/samples) for GROWING "
            "method"
        )
    rounds = len(lengths)
    if approximation is not None and samples is not None:
        confidence = rounds * hoeffding_confidence(approximation, samples)
        if not confidence < 1.0:
            raise MethodError(
                f"For GROWING, {samples} samples for each of {rounds} lengths leave no confidence "
                "in the approximation. Increase samples and/or approximation"
            )
        return GrowingParameters(lengths, approximation, confidence, samples)
    confidence = default_confidence if confidence is None else confidence
    if samples is not None:
        approximation = hoeffding_approximation(samples, confidence / rounds)
        return GrowingParameters(lengths, approximation, confidence, samples)
    # The papers measure with 0.01.
    approximation = 0.01 if approximation is None else approximation
    paths = hoeffding_paths(approximation, confidence / rounds)
    if not paths < MOST_PATHS:
        raise MethodError("Overflow in GROWING method: required number of iterations is too high")
    return GrowingParameters(lengths, approximation, confidence, int(paths))


def require_decidable(threshold: float, parameters: GrowingParameters) -> None:
    """Raise unless paths can decide whether a probability is at least a threshold.

    Raises
    ------
    MethodError
        If the threshold is no probability above ε: below that the rule is true of no path at all.
    """
    if not 0.0 < threshold <= 1.0:
        raise MethodError(f"the bound {threshold} is not above 0 and at most 1")
    if threshold <= parameters.approximation:
        raise MethodError(
            f"the bound {threshold:g} is not above the approximation "
            f"{parameters.approximation:.3g}, so that any estimate would do: give a smaller "
            "-simapprox"
        )


def check_growing_lengths(
    monitor: Monitor,
    threshold: float,
    sample: SampleLength,
    parameters: GrowingParameters,
    *,
    batch_paths: int = 65_536,
) -> GrowingResult:
    """Decide whether a monotone formula has at least a given probability.

    Parameters
    ----------
    monitor
        The monitor of a formula that is positive: `bounded_ltl.is_positive`.
    threshold
        The probability b, above 0 and at most 1.
    sample
        Samples paths of a given length; a path that was decided before its end is shorter. Rounds
        may share paths: the bound needs no independence between them.
    parameters
        The lengths, ε, δ and the number of paths. A formula that is decided after fewer states than
        the last length ends there.
    batch_paths
        Paths to sample at a time, at most.

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
    require_decidable(threshold, parameters)
    decided = monitor.decided_after
    # A path that is absorbed is read on as far as the monitor moves, a step a state of it at most.
    delay = len(monitor.transitions)
    rounds: list[LengthRound] = []
    holds = False
    for length in parameters.lengths:
        num_true = first = longest = 0
        while first < parameters.num_paths:
            batch = sample(length, first, min(batch_paths, parameters.num_paths - first))
            (outcomes,) = batch.outcomes
            assert isinstance(outcomes, BooleanOutcomes)
            num_true += outcomes.num_true
            longest = max(longest, batch.lengths.longest)
            first += batch.num_paths
        ended = longest + delay < length or (decided is not None and decided <= length)
        rounds.append(LengthRound(length, num_true / parameters.num_paths, ended))
        holds = rounds[-1].estimate > threshold - parameters.approximation
        if holds or ended:
            break
    return GrowingResult(holds, threshold, parameters, tuple(rounds))
