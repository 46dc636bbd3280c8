"""Cycles over aggregates of states, on the host."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, replace

import numpy as np

from engines.cpu import multilevel_kernels as kernels
from engines.cpu.engine import CpuEngine
from engines.cpu.kernels import chunk_bounds, unsigned, use_threads
from engines.cpu.prepare import off_diagonal_row_sums
from engines.cpu.sparse_tools import transposed
from engines.formats.csr import CsrMatrix, FloatArray, IndexArray, index_dtype
from engines.linear import multilevel as choices
from engines.result import SweepCost
from engines.system import SweepSystem


@dataclass(frozen=True)
class Chain:
    """The flows of one level, by the state that they lead to; loops are left out.

    Parameters
    ----------
    offsets, columns, values
        Compressed rows: row j holds the flows i → j, with column i.
    out
        What leaves each state, shape (states,).
    """

    offsets: IndexArray
    columns: IndexArray
    values: FloatArray
    out: FloatArray


@dataclass(frozen=True)
class Coarsening:
    """How a level's states are joined, and the chain of the aggregates.

    Parameters
    ----------
    members
        States of each aggregate, −1 for none, shape (aggregates, 4).
    aggregate
        Of each state, shape (states,).
    adds_to
        The coarse entry that each entry adds to, −1 within an aggregate, shape (entries,).
    pieces
        Row bounds, rows and entry bounds: pieces of the sums that threads may work on, whose rows
        ascend, because rows in the order of their aggregates take four times as long to read.
    chain
        The coarse chain; values and sums are those of the last cycle.
    from_offsets, from_entries
        Its entries by the aggregate that they lead from, in compressed rows.
    """

    members: IndexArray
    aggregate: IndexArray
    adds_to: IndexArray
    pieces: tuple[IndexArray, IndexArray, IndexArray]
    chain: Chain
    from_offsets: IndexArray
    from_entries: IndexArray


class CpuLevels:
    """A solve of π Q = 0 by cycles; its sweeps, in the sense of `Sweeper`, are cycles.

    Parameters
    ----------
    system, stop_below, absolute
        As in `engines.system.Engine.sweeper`.
    """

    def __init__(self, system: SweepSystem, stop_below: float, absolute: bool) -> None:
        self._threads = use_threads(system.matrix.num_entries)
        self._system = system
        self._stop_below, self._absolute = stop_below, absolute
        chain = _finest(system.matrix)
        self._finest, self._coarsenings = chain, []
        while len(chain.out) > choices.COARSEST:
            coarsening = _coarsened(chain)
            self._coarsenings.append(coarsening)
            chain = coarsening.chain
        self._begin(system.start)
        self.cost = SweepCost("CPU", "cycles, numba", "csr", _cycle_bytes(self))

    def _begin(self, start: FloatArray) -> None:
        self._scale = float(start.sum())
        self._x = np.maximum(start / self._scale, choices.FLOOR)
        self._flow = float(self._x @ self._finest.out)
        self.seconds = 0.0

    def restarted(self, start: FloatArray) -> CpuLevels:
        """Return cycles from another start; see `engines.linear.multilevel.Levels.restarted`."""
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
        """Make some cycles; see `engines.system.Sweeper.run`."""
        use_threads(self._system.matrix.num_entries)
        started = time.perf_counter()
        changes = np.empty(min(sweeps, choices.CYCLES_A_RUN))
        done = 0
        while done < len(changes):
            before = self._x
            after = self._cycle(0, self._finest, before, choices.FLOOR, np.inf)
            # Sweeps keep the total flow, corrections keep it only in the limit.
            self._x = after * (self._flow / float(after @ self._finest.out))
            changes[done] = kernels.largest_change(
                before, self._x, self._absolute, choices.SMALLEST_LOOKED_AT
            )
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

    def _cycle(
        self, level: int, chain: Chain, x: FloatArray, least: float, most: float
    ) -> FloatArray:
        if level == len(self._coarsenings):
            return kernels.eliminate(chain.offsets, chain.columns, chain.values, chain.out)
        x = _smoothed(chain, x, choices.SWEEPS_BEFORE, least, most)
        below = self._coarsenings[level]
        coarse = below.chain
        _sum_flows(chain, x, below)
        bound = choices.LARGEST_CORRECTION
        correction = self._cycle(level + 1, coarse, np.ones(len(coarse.out)), 1.0 / bound, bound)
        kernels.multiply(x, below.aggregate, correction, least, most)
        return _smoothed(chain, x, choices.SWEEPS_AFTER, least, most)


def _smoothed(chain: Chain, x: FloatArray, sweeps: int, least: float, most: float) -> FloatArray:
    spare = np.empty_like(x)
    x = np.array(x)
    for _ in range(sweeps):
        kernels.smooth(
            unsigned(chain.offsets),
            unsigned(chain.columns),
            chain.values,
            chain.out,
            choices.OMEGA,
            least,
            most,
            x,
            spare,
        )
        x, spare = spare, x
    return x


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
        off_diagonal_row_sums(rates),
    )


def _coarsened(chain: Chain) -> Coarsening:
    size = len(chain.out)
    aggregate: IndexArray = np.arange(size, dtype=np.int32)
    members: IndexArray = aggregate.copy()[:, None]
    for step in range(choices.PASSES):
        partner = np.full(len(members), kernels.NONE, dtype=np.int32)
        wanted = np.empty(len(members), dtype=np.int32)
        strengths = np.empty(len(members), dtype=np.float32)
        for turn in range(step * choices.ROUNDS, (step + 1) * choices.ROUNDS):
            kernels.propose(
                chain.offsets,
                chain.columns,
                chain.values,
                chain.out,
                members,
                aggregate,
                partner,
                turn,
                choices.ENOUGH,
                wanted,
                strengths,
            )
            kernels.accept(wanted, strengths, partner)
        members, aggregate = kernels.joined(members, partner, size)
    count = len(members)
    longest = int(np.diff(chain.offsets).max())
    if count > choices.LEAST_SHRINKING * size or longest > choices.LONGEST_ROW:
        raise RuntimeError(
            f"{size} states join into {count} aggregates only, with rows of up to {longest} entries"
        )
    offsets, columns, adds_to = kernels.structure(chain.offsets, chain.columns, members, aggregate)
    order = np.argsort(columns, kind="stable").astype(index_dtype(len(columns)), copy=False)
    from_offsets = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(np.bincount(columns, minlength=count), out=from_offsets[1:])
    coarse = Chain(offsets, columns, np.empty(len(columns)), np.empty(count))
    pieces = _pieces(aggregate, offsets)
    below = Coarsening(members, aggregate, adds_to, pieces, coarse, from_offsets, order)
    # The next level is joined along the rates, as if all states of this one were equally likely.
    _sum_flows(chain, np.ones(size), below)
    return below


def _pieces(
    aggregate: IndexArray, coarse_offsets: IndexArray
) -> tuple[IndexArray, IndexArray, IndexArray]:
    bounds = chunk_bounds(coarse_offsets)
    piece = np.searchsorted(bounds, aggregate, side="right") - 1
    rows = np.argsort(piece, kind="stable").astype(np.uint32)
    row_bounds = np.searchsorted(piece[rows], np.arange(len(bounds)))
    return row_bounds, rows, coarse_offsets[bounds].astype(np.int64)


def _sum_flows(chain: Chain, x: FloatArray, below: Coarsening) -> None:
    """Set the flows of the coarse chain to those that the values x of the states make."""
    coarse = below.chain
    kernels.coarse_flows(
        *below.pieces,
        unsigned(chain.offsets),
        unsigned(chain.columns),
        chain.values,
        x,
        unsigned(below.adds_to),
        coarse.values,
    )
    entries = (unsigned(below.from_offsets), unsigned(below.from_entries))
    kernels.add_up(*entries, coarse.values, coarse.out)


def _cycle_bytes(levels: CpuLevels) -> int:
    """Return about the fewest bytes of a cycle: a level's entries pass once for each sweep."""
    passes = choices.SWEEPS_BEFORE + choices.SWEEPS_AFTER + 1
    vectors = 24 * sum(levels.sizes)
    return passes * (12 * sum(levels.entries) + vectors)
