"""Distributions over the states of a chain: in the long run, or at a time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from engines.arrays import INT32_MAX, FloatArray
from engines.errors import InvalidModelError
from engines.model.explicit import ROW_SUM_TOLERANCE, ExplicitModel, ModelKind
from engines.questions.bounded import distribution_after
from engines.questions.long_run_distribution import steady_state_distribution
from engines.questions.time_bounded import distribution_at
from prism_gpu.arrays import real_array
from prism_gpu.progress import progress_bar
from prism_gpu.settings import Asked


def distribution(
    model: ExplicitModel, initial: ArrayLike | None, time: float | None, asked: Asked
) -> FloatArray:
    """Return a distribution; see `Model.steady_state` and `Model.transient`.

    Parameters
    ----------
    model
        A chain.
    initial
        The distribution that it begins with; None for its initial states.
    time
        Steps or time; None for the long run.
    asked
        How to solve.
    """
    if model.kind is ModelKind.MDP:
        raise InvalidModelError(
            "an MDP has distributions under a strategy: model.induced(strategy)"
        )
    begin = _initial_distribution(model, initial)
    _require_time(model.kind, time)
    bar = progress_bar(asked.progress)
    try:
        if time is None:
            result = steady_state_distribution(model, begin, asked.environment, progress=bar)
        elif model.kind is ModelKind.CTMC:
            result = distribution_at(model, begin, float(time), asked.environment, progress=bar)
        else:
            result = distribution_after(model, begin, int(time), asked.environment, progress=bar)
    finally:
        if bar is not None:
            bar.close()
    return result.raise_unless_converged().values


def _initial_distribution(model: ExplicitModel, initial: ArrayLike | None) -> FloatArray:
    if initial is None:
        states = model.initial_states
        if states is None or not states.any():
            raise InvalidModelError("the model has no initial state: give initial a distribution")
        return states / np.count_nonzero(states)
    given = real_array(initial, "initial")
    if given.dtype.kind not in "biuf":
        raise InvalidModelError(f"initial must hold real numbers, not {given.dtype}")
    found: FloatArray = given.astype(np.float64)
    if found.shape != (model.num_states,):
        raise InvalidModelError(
            f"initial has shape {found.shape}, but the model has {model.num_states} states"
        )
    total = float(found.sum())
    if not (found >= 0.0).all() or abs(total - 1.0) > ROW_SUM_TOLERANCE:
        raise InvalidModelError(
            f"initial is no distribution: it sums to {total!r}, its least entry is {found.min()}"
        )
    return found / total


def _require_time(kind: ModelKind, time: float | None) -> None:
    if time is None:
        return
    if not 0.0 <= time < math.inf:
        raise ValueError(f"time must be a number that is not negative, not {time}")
    if kind is ModelKind.DTMC and time != int(time):
        raise ValueError(f"a DTMC has whole steps; there is no distribution after {time}")
    if kind is ModelKind.DTMC and time > INT32_MAX:
        raise ValueError(
            f"a DTMC's distribution is computed after at most {INT32_MAX} steps, not {time}; "
            "Model.steady_state has that of the long run"
        )
