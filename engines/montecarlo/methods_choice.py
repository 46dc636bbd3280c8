"""From the switches of ``-sim`` to a method: PRISM's defaults, refusals and warnings."""

from __future__ import annotations

from dataclasses import dataclass

from engines.montecarlo.methods import Bound, MethodError, SamplingMethod
from engines.montecarlo.methods_adaptive import AdaptiveProbability, AdaptiveReward
from engines.montecarlo.methods_apmc import ApproximateChecking
from engines.montecarlo.methods_confidence import (
    FixedSampleInterval,
    Quantile,
    SequentialInterval,
)
from engines.montecarlo.methods_exact import ExactInterval
from engines.montecarlo.methods_sprt import SequentialTest

METHOD_NAMES = ("ci", "aci", "apmc", "sprt", "clopper-pearson", "adaptive")
"""What ``-simmethod`` takes; the last two are not PRISM's."""


@dataclass(frozen=True)
class SamplingSwitches:
    """The switches that choose a method and its parameters; None for one that was not given.

    Parameters
    ----------
    method
        ``-simmethod``: one of `METHOD_NAMES`. By default ci for ``=?`` and sprt for bounds.
    width, confidence, approximation, samples
        ``-simwidth``, ``-simconf``, ``-simapprox``, ``-simsamples``.
    manual, least_paths
        ``-simmanual`` and ``-simvar``: how many equal answers make the variance 0.
    max_reward
        ``-simmaxrwd``.
    """

    method: str | None = None
    width: float | None = None
    confidence: float | None = None
    approximation: float | None = None
    samples: int | None = None
    manual: bool = False
    least_paths: int | None = None
    max_reward: float | None = None


class Defaults:
    """PRISM's settings of these names."""

    width = 0.05
    confidence = 0.01
    samples = 1000
    least_paths = 10_000
    max_reward = 1000.0


@dataclass(frozen=True)
class MethodChoice:
    """A method, and the warnings that PRISM prints about switches without use."""

    method: SamplingMethod
    warnings: tuple[str, ...] = ()


def choose_method(switches: SamplingSwitches, bound: Bound | None, *, reward: bool) -> MethodChoice:
    """Return the method that the switches ask for.

    Parameters
    ----------
    switches
        What was given on the command line.
    bound
        What the question compares with, or None for ``=?``.
    reward
        Whether it is an R operator.

    Raises
    ------
    MethodError
        If the switches contradict each other or the question; the texts are PRISM's where PRISM
        refuses the same.
    """
    name = switches.method or ("sprt" if bound else "ci")
    if name not in METHOD_NAMES:
        raise MethodError(f'Unknown simulation method "{name}"')
    confidence = Defaults.confidence if switches.confidence is None else switches.confidence
    warnings = []

    def ignored(switch: str, value: float | None) -> None:
        if value is not None:
            warnings.append(
                f"Option -{switch} is not used for the {name.upper()} method and is being ignored"
            )

    method: SamplingMethod
    match name:
        case "ci" | "aci":
            method = _confidence_interval(name, switches, confidence, bound, reward)
            ignored("simapprox", switches.approximation)
        case "apmc":
            method = _apmc(switches, confidence, bound, reward)
            ignored("simwidth", switches.width)
        case "sprt":
            width = Defaults.width if switches.width is None else switches.width
            method = SequentialTest(
                bound, type_one=confidence, type_two=confidence, indifference=width, reward=reward
            )
            ignored("simapprox", switches.approximation)
            ignored("simsamples", switches.samples)
        case "clopper-pearson":
            method = _clopper_pearson(switches, confidence, bound, reward)
            ignored("simapprox", switches.approximation)
        case _:
            method = _adaptive(switches, confidence, bound, reward)
            ignored("simapprox", switches.approximation)
            ignored("simsamples", switches.samples)
    return MethodChoice(method, tuple(warnings))


def _refuse_all_three(name: str, parameters: str, *values: float | None) -> None:
    if None not in values:
        raise MethodError(f"Cannot specify all three parameters ({parameters}) for {name} method")


def _samples(switches: SamplingSwitches) -> int:
    return Defaults.samples if switches.samples is None else switches.samples


def _confidence_interval(
    name: str, switches: SamplingSwitches, confidence: float, bound: Bound | None, reward: bool
) -> SamplingMethod:
    _refuse_all_three(
        name.upper(),
        "width/confidence/samples",
        switches.width,
        switches.confidence,
        switches.samples,
    )
    quantile = Quantile.STUDENT if name == "ci" else Quantile.NORMAL
    if switches.width is None:
        return FixedSampleInterval(quantile, _samples(switches), confidence=confidence, bound=bound)
    if switches.samples is not None:
        return FixedSampleInterval(quantile, switches.samples, width=switches.width, bound=bound)
    least_paths = None
    if switches.manual:
        least_paths = switches.least_paths or Defaults.least_paths
    elif not reward:
        # PRISM takes CI for ACI here, which asks for a few paths more.
        quantile = Quantile.STUDENT
    max_reward = 1.0
    if reward:
        max_reward = Defaults.max_reward if switches.max_reward is None else switches.max_reward
    return SequentialInterval(
        quantile,
        switches.width,
        confidence,
        max_reward=max_reward,
        least_paths=least_paths,
        bound=bound,
    )


def _apmc(
    switches: SamplingSwitches, confidence: float, bound: Bound | None, reward: bool
) -> SamplingMethod:
    if reward:
        raise MethodError(
            "Cannot use the APMC method on reward properties; try CI (switch -simci) instead"
        )
    _refuse_all_three(
        "APMC",
        "approximation/confidence/samples",
        switches.approximation,
        switches.confidence,
        switches.samples,
    )
    if switches.approximation is None:
        return ApproximateChecking(confidence=confidence, samples=_samples(switches), bound=bound)
    if switches.samples is None:
        return ApproximateChecking(
            confidence=confidence, approximation=switches.approximation, bound=bound
        )
    return ApproximateChecking(
        approximation=switches.approximation, samples=switches.samples, bound=bound
    )


def _clopper_pearson(
    switches: SamplingSwitches, confidence: float, bound: Bound | None, reward: bool
) -> SamplingMethod:
    if reward:
        raise MethodError(
            "Cannot use the Clopper-Pearson method on reward properties; try adaptive instead"
        )
    if switches.width is not None and switches.samples is not None:
        raise MethodError("Cannot specify both width and samples for Clopper-Pearson method")
    if switches.width is not None:
        return ExactInterval(confidence, width=switches.width, bound=bound)
    return ExactInterval(confidence, samples=_samples(switches), bound=bound)


def _adaptive(
    switches: SamplingSwitches, confidence: float, bound: Bound | None, reward: bool
) -> SamplingMethod:
    width = Defaults.width if switches.width is None else switches.width
    if not reward:
        return AdaptiveProbability(width, confidence, bound)
    if switches.max_reward is None:
        raise MethodError(
            "adaptive stopping for rewards rests on the largest reward that a path can have: give "
            "it with -simmaxrwd"
        )
    return AdaptiveReward(width, confidence, switches.max_reward, bound)
