"""Methods that PRISM does not have: they sample and judge here, and PRISM prints the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from engines.errors import InvalidModelError
from engines.montecarlo.failure import PathFailure
from engines.montecarlo.methods import (
    Bound,
    MethodError,
    NumberText,
    SamplingMethod,
    SeveralMethods,
)
from engines.montecarlo.methods_choice import SamplingSwitches, choose_method
from engines.montecarlo.tally import PathBatch, PathLengths, merged_lengths
from prism_hooks.simulation_device import DeviceSampler
from prism_hooks.simulation_progress import SamplingProgress

_WORDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "simmethod": ("method", str),
    "simwidth": ("width", float),
    "simconf": ("confidence", float),
    "simsamples": ("samples", int),
    "simmaxrwd": ("max_reward", float),
    "simapprox": ("approximation", float),
    "simmanual": ("manual", bool),
    "simvar": ("least_paths", int),
}


def switches_of(words: Mapping[str, str]) -> SamplingSwitches:
    """Return the switches of a simulation from their values on the command line.

    Parameters
    ----------
    words
        The last value of each switch that was given.

    Raises
    ------
    InvalidModelError
        If a value is no number.
    """
    found: dict[str, Any] = {}
    for switch, word in words.items():
        name, kind = _WORDS.get(switch, ("", str))
        try:
            if name:
                found[name] = kind(word)
        except ValueError:
            raise InvalidModelError(f'invalid value "{word}" for -{switch} switch') from None
    return SamplingSwitches(**found)


def methods_of(sampling: Any, switches: SamplingSwitches) -> SeveralMethods:
    """Return the methods of a `prismgpu.Sampling`, and tell it their names and parameters.

    Parameters
    ----------
    sampling
        The Java object, its `methods` set.
    switches
        The method and its parameters.

    Raises
    ------
    InvalidModelError
        If the method cannot be used so.
    """
    methods = []
    for asked in sampling.methods:
        bound = Bound(bool(asked.atLeast), float(asked.bound)) if asked.bounded else None
        try:
            choice = choose_method(switches, bound, reward=bool(asked.ofRewards))
        except MethodError as error:
            raise InvalidModelError(str(error)) from error
        for warning in choice.warnings:
            sampling.warn(warning)
        asked.name, asked.fullName = choice.method.name, choice.method.full_name
        asked.parameters = choice.method.parameters_text(_number_text(sampling))
        methods.append(choice.method)
    return SeveralMethods(methods)


def judge(
    methods: SeveralMethods, sampler: DeviceSampler, progress: SamplingProgress, sampling: Any
) -> None:
    """Sample until the methods have enough paths, and fill in what they make of them.

    Parameters
    ----------
    methods
        One a question, without any path.
    sampler
        Samples the paths.
    progress
        The display.
    sampling
        The `prismgpu.Sampling`.

    Raises
    ------
    PathFailure
        If a path that is needed met an error.
    UndecidedPathError
        If one met the path limit, and its method has no use for that.
    """
    lengths: list[PathBatch] = []
    percent = 0
    sampling.failure = sampling.failedIn = None
    while not methods.finished:
        sampling.numGood = first = methods.num_paths
        with progress.batch(first):
            batch = _feed(methods, sampler, progress)
        used = methods.num_paths - first
        if used < batch.num_paths:
            batch = sampler.run(first, used)
        lengths.append(replace(batch, outcomes=()))
        reached = min(method.progress() for method in methods.methods)
        if percent < reached < 100:
            percent = reached
            sampling.showProgress(percent)
    hand_over(methods, merged_lengths(lengths), sampling)


def hand_over(methods: SeveralMethods, lengths: PathLengths, sampling: Any) -> None:
    """Fill in what methods make of their paths.

    Parameters
    ----------
    methods
        One a question, finished.
    lengths
        Of the paths that they used.
    sampling
        The `prismgpu.Sampling`.
    """
    sampling.numGood = methods.num_paths
    sampling.setLengths(lengths.total, lengths.shortest, lengths.longest)
    for asked, method in zip(sampling.methods, methods.methods, strict=True):
        _hand_over(method, asked, _number_text(sampling))


def _feed(methods: SeveralMethods, sampler: DeviceSampler, progress: SamplingProgress) -> PathBatch:
    """Sample the next paths and show them to the methods; those before a failure may be enough."""
    first = methods.num_paths
    try:
        wanted = methods.paths_wanted_next(1 << 20)
        batch = sampler.run(first, wanted, progress)
        methods.feed(batch)
    except PathFailure as error:
        if error.failure.path == first:
            raise
        batch = sampler.run(first, error.failure.path - first)
        methods.feed(batch)
        if not methods.finished:
            raise
    return batch


def _number_text(sampling: Any) -> NumberText:
    return lambda number: str(sampling.text(float(number)))


def _hand_over(method: SamplingMethod, asked: Any, text: NumberText) -> None:
    judgement = method.result()
    asked.estimate, asked.halfWidth = judgement.estimate, judgement.half_width
    asked.confidence = judgement.confidence
    asked.decision = -1 if judgement.decision is None else int(judgement.decision)
    explanation = method.explanation(text)
    asked.explanation = explanation
    asked.remark = "; ".join((explanation, *judgement.remarks))
