"""The flows between the states of a chain whose rows are kept as runs, for π Q = 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, distinct, offsets_of, ranges, sums_by_row
from engines.model.row_runs import RowRuns


@dataclass(frozen=True)
class FlowRuns:
    """What flows into each state and what leaves it, in runs of states of one kind.

    Parameters
    ----------
    firsts
        Shape (runs + 1,), int64: the first state of each run, then the number of states.
    kinds
        Shape (runs,), int64: the kind of each run's states.
    starts
        Shape (kinds + 1,), int64: where the entries of a kind start.
    distances
        Shape (entries,), int64: the state that a flow comes from less the one that it leads to,
        never 0, ascending in a kind.
    rates
        Shape (entries,), float64.
    out
        Shape (kinds,), float64: the rate at which a state is left.
    """

    firsts: NDArray[np.int64]
    kinds: NDArray[np.int64]
    starts: NDArray[np.int64]
    distances: NDArray[np.int64]
    rates: FloatArray
    out: FloatArray

    @property
    def num_states(self) -> int:
        """Number of states."""
        return int(self.firsts[-1])

    @property
    def num_entries(self) -> int:
        """Number of flows between two states."""
        return int(np.diff(self.firsts) @ np.diff(self.starts)[self.kinds])


def flows_of_runs(rates: RowRuns, into: RowRuns) -> FlowRuns:
    """Return the flows of a chain.

    Parameters
    ----------
    rates
        The rates out of each state (of a DTMC the probabilities).
    into
        The transposed matrix.
    """
    firsts = distinct(np.concatenate((rates.firsts, into.firsts)))
    places = [np.searchsorted(runs.firsts, firsts[:-1], side="right") - 1 for runs in (rates, into)]
    pairs = np.stack((rates.kinds[places[0]], into.kinds[places[1]]), axis=1)
    both, kinds = np.unique(pairs, axis=0, return_inverse=True)
    leaving = np.repeat(np.arange(len(rates.pair_starts) - 1), np.diff(rates.pair_starts))
    away = rates.distances != 0
    lost = sums_by_row(leaving[away], rates.numbers[away], len(rates.pair_starts) - 1)
    lengths = np.diff(into.pair_starts)[both[:, 1]]
    entries = ranges(into.pair_starts[both[:, 1]], lengths)
    comes = into.distances[entries] != 0
    of_kind = np.repeat(np.arange(len(both)), lengths)[comes]
    starts = offsets_of(np.bincount(of_kind, minlength=len(both)))
    entries = entries[comes]
    distances, numbers = into.distances[entries], into.numbers[entries]
    return FlowRuns(firsts, kinds.ravel(), starts, distances, numbers, lost[both[:, 0]])
