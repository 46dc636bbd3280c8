"""Sampled paths of chains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, IndexArray
from engines.errors import InvalidModelError
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths of a chain.

    Parameters
    ----------
    states
        Shape (paths, steps + 1), int: the states of each path, in order.
    times
        CTMCs, shape (paths, steps + 1): when each state is entered, 0 for the first, in the unit
        of time of the rates; None for a DTMC.
    """

    states: NDArray[np.int64]
    times: FloatArray | None = None


def sampled(
    model: ExplicitModel, steps: int, paths: int, start: int | None, seed: int | None
) -> Paths:
    """Return sampled paths; see `prism_gpu.model.Model.simulate`.

    Parameters
    ----------
    model
        A chain.
    steps, paths, start, seed
        As there.
    """
    if model.kind is ModelKind.MDP:
        raise InvalidModelError("an MDP is sampled under a strategy: model.induced(strategy)")
    first = 0 if start is None else start
    given = 0 if seed is None else seed
    for name, number in (("steps", steps), ("paths", paths), ("start", first), ("seed", given)):
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise TypeError(f"{name} must be a whole number, not {number!r}")
        if number < 0:
            raise ValueError(f"{name} must not be negative, but it is {number}")
    if start is None:
        initial = model.initial_states
        if initial is None or not initial.any():
            raise ValueError("the model has no initial state: name one as start")
        start = int(np.argmax(initial))
    if not 0 <= start < model.num_states:
        raise ValueError(f"start is {start}, but the states are 0 to {model.num_states - 1}")
    random = np.random.default_rng(seed)
    matrix = model.matrix
    cumulated = cumulated_rows(matrix)
    try:
        states = np.full((paths, steps + 1), start, dtype=np.int64)
        times = np.zeros((paths, steps + 1)) if model.kind is ModelKind.CTMC else None
    except (MemoryError, ValueError) as error:
        # NumPy refuses more numbers than a process can address.
        size = f"{8 * paths * (steps + 1) / 1e9:.3g} GB"
        text = f"steps={steps}, paths={paths} are {size} of states, for which there is no room"
        raise MemoryError(text) from error
    for step in range(steps):
        now = states[:, step]
        last = matrix.row_offsets[now + 1] - 1
        totals = cumulated[last]
        if times is not None:
            times[:, step + 1] = times[:, step] + random.exponential(size=paths) / totals
        wanted = random.random(paths) * totals
        entries = _first_above(cumulated, matrix.row_offsets[now], last, wanted)
        states[:, step + 1] = matrix.columns[entries]
    return Paths(states, times)


def cumulated_rows(matrix: CsrMatrix) -> FloatArray:
    """Return the sum of each entry and those before it in its row, shape (entries,).

    Parameters
    ----------
    matrix
        A matrix without empty rows.

    Notes
    -----
    Row by row, so that small entries of late rows keep their digits, which they would lose in
    differences of sums over the whole matrix.
    """
    sums = matrix.values.copy()
    starts, lengths = matrix.row_offsets[:-1], matrix.row_lengths()
    place = 1
    longer = np.flatnonzero(lengths > place)
    while len(longer):
        entries = starts[longer] + place
        sums[entries] += sums[entries - 1]
        place += 1
        longer = longer[lengths[longer] > place]
    return sums


def _first_above(
    cumulated: FloatArray, first: IndexArray, last: IndexArray, wanted: FloatArray
) -> IndexArray:
    """Return in each range of entries the first whose sum is above a number, by bisection."""
    low, high = first.astype(np.int64), last.astype(np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        above = cumulated[middle] > wanted
        high = np.where(above, middle, high)
        low = np.where(above, low, np.minimum(middle + 1, high))
    return low
