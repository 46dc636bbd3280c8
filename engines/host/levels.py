"""Cycles over aggregates of states, on the host."""

from __future__ import annotations

import copy
import time
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray
from engines.errors import UnsupportedError
from engines.host.aggregates import Aggregates, Chain, entries_by_column
from engines.host.engine import CpuEngine
from engines.host.multilevel import Coarsening, HostCycle, HostCycles, Level, set_coarse_flows
from engines.host.products import sums_beside_diagonal, transposed
from engines.model.csr import CsrMatrix
from engines.model.result import SweepCost
from engines.systems.multilevel import CycleTuning
from engines.systems.one_sided import SweepSystem


class CpuLevels:
    """A solve of π Q = 0 by cycles; its sweeps, in the sense of `Sweeper`, are cycles.

    Parameters
    ----------
    system, stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`.
    tuning
        What a cycle is.
    """

    def __init__(
        self,
        system: SweepSystem,
        stop_below: float,
        absolute: bool,
        tuning: CycleTuning = CycleTuning(),
    ) -> None:
        self._system, self._tuning = system, tuning
        self._stop_below, self._absolute = stop_below, absolute
        chain = _finest(system.matrix)
        self._finest: Chain = chain
        self._coarsenings: list[Coarsening] = []
        levels: list[Level] = []
        while len(chain.out) > tuning.coarsest_states:
            coarsening = _coarsened(chain, tuning)
            level = Level(chain, coarsening, not levels)
            # The next level is joined along the rates, as if all states were equally likely.
            set_coarse_flows(level, np.ones(len(chain.out)))
            levels.append(level)
            self._coarsenings.append(coarsening)
            chain = coarsening.chain
        levels.append(Level(chain, None, not levels))
        how = HostCycle.of(
            tuning.omega,
            tuning.floor,
            tuning.largest_correction,
            tuning.sweeps_before,
            tuning.sweeps_after,
        )
        self._cycles = HostCycles(how, levels)
        self._begin(system.start)
        self.longest_run = tuning.cycles_a_run
        kernel = f"cycles, compiled, threads {self._cycles.threads}"
        self.cost = SweepCost((), kernel, "csr", _cycle_bytes(self))

    def _begin(self, start: FloatArray) -> None:
        self._scale = float(start.sum())
        self._x = np.maximum(start / self._scale, self._tuning.floor)
        self._flow = float(self._x @ self._finest.out)
        self.seconds = 0.0

    def restarted(self, start: FloatArray) -> CpuLevels:
        """Return cycles from another start; see `engines.systems.multilevel.Levels.restarted`."""
        other = copy.copy(self)
        other._begin(start)
        return other

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of states of each level, the finest first."""
        return (
            len(self._finest.out),
            *(len(coarsening.chain.out) for coarsening in self._coarsenings),
        )

    @property
    def entries(self) -> tuple[int, ...]:
        """Number of entries of each level, the finest first."""
        return (
            len(self._finest.values),
            *(len(coarsening.chain.values) for coarsening in self._coarsenings),
        )

    def run(self, sweeps: int) -> FloatArray:
        """Make some cycles; see `engines.systems.one_sided.Sweeper.run`."""
        started = time.perf_counter()
        changes = np.empty(min(sweeps, self.longest_run))
        done = 0
        while done < len(changes):
            before = self._x
            self._x = self._cycles.cycle(before)
            # Sweeps keep the total flow, corrections keep it only in the limit.
            factor = self._flow / float(self._x @ self._finest.out)
            least = self._tuning.smallest_looked_at
            changes[done] = self._cycles.rescale(before, factor, least, self._absolute, self._x)
            done += 1
            if changes[done - 1] < self._stop_below:
                break
        self.seconds += time.perf_counter() - started
        return changes[:done]

    def residual(self) -> float:
        """Return the largest absolute value of A x − x."""
        iterate = replace(self._system, start=self.values())
        return CpuEngine().sweeper(iterate, -1.0, True).residual()

    def values(self) -> FloatArray:
        """Return the present iterate, shape (states,)."""
        return self._x * self._scale


def _finest(rates: CsrMatrix) -> Chain:
    row = rates.row_of_entry()
    values = np.where(rates.columns == row, 0.0, rates.values)
    turned = transposed(rates, values)
    kept = turned.values > 0.0
    offsets = np.zeros(rates.num_rows + 1, dtype=np.int32)
    np.cumsum(np.bincount(turned.row_of_entry()[kept], minlength=rates.num_rows), out=offsets[1:])
    return Chain(
        offsets,
        turned.columns[kept].astype(np.int32, copy=False),
        turned.values[kept],
        sums_beside_diagonal(rates),
    )


def _coarsened(chain: Chain, tuning: CycleTuning) -> Coarsening:
    size = len(chain.out)
    joined = Aggregates(chain)
    for step in range(tuning.passes):
        rounds = range(step * tuning.rounds, (step + 1) * tuning.rounds)
        joined.pair(rounds, tuning.enough)
    count = len(joined.members)
    longest = int(np.diff(chain.offsets).max())
    if count > tuning.least_shrinking * size or longest > tuning.longest_row_entries:
        raise UnsupportedError(
            f"{size} states join into {count} aggregates only, with rows of up to {longest} entries"
        )
    offsets, columns, adds_to = joined.entries()
    coarse = Chain(offsets, columns, np.empty(len(columns)), np.empty(count))
    by_source = entries_by_column(columns, count)
    return Coarsening(joined.members, joined.aggregate, adds_to, coarse, *by_source)


def _cycle_bytes(levels: CpuLevels) -> int:
    """Return about the fewest bytes of a cycle: a level's entries pass once for each sweep."""
    tuning = levels._tuning
    passes = tuning.sweeps_before + tuning.sweeps_after + 1
    vectors = 24 * sum(levels.sizes)
    return passes * (12 * sum(levels.entries) + vectors)
