"""Cycles over aggregates of states, on one GPU."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from engines.arrays import FloatArray
from engines.cuda.comparing import comparison
from engines.cuda.driver import cupy
from engines.cuda.levels import DeviceChain, DeviceCoarsening, coarsened, finest, sum_flows
from engines.cuda.memory import require_bytes
from engines.cuda.modules import Launcher, stream
from engines.cuda.transfer import send, to_host
from engines.diagrams.system import System
from engines.errors import DeviceMemoryError
from engines.host.engine import CpuEngine
from engines.model.result import SweepCost
from engines.systems.multilevel import CycleTuning
from engines.systems.one_sided import SweepSystem

SUM_THREADS = 256
"""Threads a block of the kernels that add up; as in the module."""


def cuda_levels(
    system: System,
    stop_below: float,
    absolute: bool,
    device_number: int,
    most_memory: int | None = None,
) -> CudaLevels:
    """Prepare cycles on a GPU.

    Parameters
    ----------
    system, stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`; without a matrix, the system has `flows`.
    device_number
        Which of the devices.
    most_memory
        The most bytes of it that the user allows, or None.

    Raises
    ------
    DeviceMemoryError
        When the device cannot hold the levels; nothing is left allocated.
    UnsupportedError
        If the chain cannot be coarsened.
    """
    cp = cupy()
    with cp.cuda.Device(device_number):
        require_bytes(device_number, _bytes_needed(system), "the levels", most_memory)
        try:
            return CudaLevels(system, stop_below, absolute, device_number)
        except cp.cuda.memory.OutOfMemoryError as error:
            cp.get_default_memory_pool().free_all_blocks()
            raise DeviceMemoryError(f"GPU {device_number} ran out of memory: {error}") from error


def _bytes_needed(system: System) -> int:
    if isinstance(system, SweepSystem):
        # The levels and their preparation take at most five times the bytes of the rates.
        return 5 * system.bytes_per_sweep
    assert system.flows is not None
    # Measured with 34 million states, and enough for a billion; the coarser levels have a matrix.
    return 28 * system.num_states + 14 * system.flows.num_entries


class _Turn:
    """Whose iterate lies in the vector that all solves over the same levels share."""

    def __init__(self) -> None:
        # A solve holds its levels' memory, and so must not be held by them.
        self._of: weakref.ref[CudaLevels] | None = None

    @property
    def of(self) -> CudaLevels | None:
        """The solve; None where it has gone."""
        return None if self._of is None else self._of()

    def give_to(self, solve: CudaLevels) -> None:
        """Let another solve have it."""
        self._of = weakref.ref(solve)


class CudaLevels:
    """A solve of π Q = 0 by cycles; its sweeps, in the sense of `Sweeper`, are cycles.

    Parameters
    ----------
    system, stop_below, absolute
        As in `cuda_levels`.
    device_number
        Which of the devices.
    tuning
        What a cycle is.

    Notes
    -----
    A cycle changes vectors an even number of times on each level, so that it ends where it began;
    on the finest it leads from one vector to another, and the next one back. All solves over the
    same levels share both; whose turn it is not has its iterate on the host.
    """

    def __init__(
        self,
        system: System,
        stop_below: float,
        absolute: bool,
        device_number: int,
        tuning: CycleTuning = CycleTuning(),
    ) -> None:
        cp = self._cp = cupy()
        self._system, self._device, self._tuning = system, device_number, tuning
        self._stop_below, self._absolute = stop_below, absolute
        self.longest_run = tuning.cycles_a_run
        self._stream = stream(device_number)
        with self._stream:
            self._launcher = Launcher("int")
            self._finest = finest(system, self._launcher, tuning)
            self._coarsenings: list[DeviceCoarsening] = []
            chain = self._finest
            while chain.size > tuning.coarsest_states:
                self._coarsenings.append(coarsened(chain, tuning))
                chain = self._coarsenings[-1].chain
            self._parts = cp.empty(SUM_THREADS)
            self._changes = cp.zeros(tuning.cycles_a_run)
            self._x, self._other = (cp.empty(system.num_states) for _ in range(2))
            self._turn = _Turn()
            self._events = (cp.cuda.Event(), cp.cuda.Event())
            self._begin(system.start)
        passes = tuning.sweeps_before + tuning.sweeps_after + 1
        bytes_of_cycle = passes * sum(chain.nbytes for chain in self._chains())
        self.cost = SweepCost((device_number,), "cycles", "csr", bytes_of_cycle)
        self._stream.synchronize()

    def _begin(self, start: FloatArray) -> None:
        self._scale, size = float(start.sum()), len(start)
        self._aside: FloatArray | None = start
        self._take_turn()
        how = (self._cp.int32(size), self._cp.float64(self._scale))
        self._launch("start_iterate", size, self._x, *how, self._cp.float64(self._tuning.floor))
        self._sum_flow(self._x)
        self._flow = float(self._parts.get().sum())
        self.seconds = 0.0
        self._runs = 0
        self._graph: Any = None

    def _take_turn(self) -> None:
        """Put the iterate where cycles find it; that of another solve goes to the host."""
        other = self._turn.of
        if other is self:
            return
        if other is not None:
            other._aside = to_host(self._x)
        assert self._aside is not None, "whose turn it is not has its iterate on the host"
        send(self._aside, self._x)
        self._aside = None
        self._turn.give_to(self)

    def restarted(self, start: FloatArray) -> CudaLevels:
        """Return cycles from another start; see `engines.systems.multilevel.Levels.restarted`."""
        other = copy.copy(self)
        with self._cp.cuda.Device(self._device), self._stream:
            other._begin(start)
        return other

    def comparison(self, reference: FloatArray, least: float) -> Callable[[], float]:
        """Return what compares the iterate with a vector; see `systems.one_sided.HasComparison`."""

        def iterate() -> tuple[Any, float]:
            self._take_turn()
            return self._x, self._scale

        return comparison(self._device, self._stream, iterate, reference, least)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of states of each level, the finest first."""
        return tuple(chain.size for chain in self._chains())

    def run(self, sweeps: int) -> FloatArray:
        """Make some cycles; see `engines.systems.one_sided.Sweeper.run`."""
        sweeps = min(sweeps, self.longest_run)
        with self._cp.cuda.Device(self._device), self._stream:
            self._take_turn()
            began, ended = self._events
            began.record(self._stream)
            # The first run loads the kernels, which a capture must find loaded.
            if self._runs and sweeps == self._tuning.cycles_a_run:
                self._captured().launch(self._stream)
            else:
                self._cycles(sweeps)
            ended.record(self._stream)
            changes: FloatArray = self._changes.get()[:sweeps]
            self.seconds += self._cp.cuda.get_elapsed_time(began, ended) / 1e3
        self._runs += 1
        return changes

    def residual(self) -> float:
        """Return the largest absolute value of A x − x."""
        assert isinstance(self._system, SweepSystem), "no cycles are named without a matrix"
        iterate = replace(self._system, start=self.values())
        return CpuEngine().sweeper(iterate, -1.0, True).residual()

    def values(self) -> FloatArray:
        """Return the present iterate, shape (states,), on the host."""
        with self._cp.cuda.Device(self._device), self._stream:
            values: FloatArray = to_host(self._x) if self._aside is None else self._aside.copy()
        values *= self._scale
        return values

    def _chains(self) -> list[DeviceChain]:
        return [self._finest, *(coarsening.chain for coarsening in self._coarsenings)]

    def _captured(self) -> Any:
        if self._graph is None:
            self._stream.begin_capture()
            self._cycles(self._tuning.cycles_a_run)
            self._graph = self._stream.end_capture()
        return self._graph

    def _cycles(self, cycles: int) -> None:
        self._changes.data.memset_async(0, self._changes.nbytes, self._stream)
        before, after = self._x, self._other
        for cycle in range(cycles):
            self._cycle(before, after, cycle)
            before, after = after, before
        if before is not self._x:
            self._x.data.copy_from_device_async(before.data, before.nbytes, self._stream)

    def _cycle(self, before: Any, after: Any, number: int) -> None:
        """Queue a cycle from one vector to another."""
        cp, size = self._cp, self._finest.size
        chains = self._chains()
        for level, below in enumerate(self._coarsenings):
            x = after if level == 0 else chains[level].x
            self._smooth(level, before if level == 0 else x, x, self._tuning.sweeps_before)
            sum_flows(chains[level], x, below)
        self._solve_coarsest(after)
        for level, below in reversed(list(enumerate(self._coarsenings))):
            count = below.chain.size
            x = after if level == 0 else chains[level].x
            joined = (x, below.members, cp.int32(below.width), below.chain.x, cp.int32(count))
            self._launch("correct_level", count, *joined, *self._bounds(level))
            self._smooth(level, x, x, self._tuning.sweeps_after)
        self._sum_flow(after)
        self._launch(
            "end_cycle",
            size,
            *(before, after, self._parts, cp.float64(self._flow), cp.int32(size)),
            *(cp.int32(self._absolute), cp.float64(self._tuning.smallest_looked_at)),
            self._changes[number : number + 1],
            block=SUM_THREADS,
        )

    def _smooth(self, level: int, x: Any, x_new: Any, sweeps: int) -> None:
        """Queue an even number of sweeps, from one vector to another or back to itself."""
        chain, cp = self._chains()[level], self._cp
        sizes = (cp.int32(chain.size), cp.int32(chain.lane_bits))
        flows = (*chain.rows, chain.out, chain.kinds, *sizes)
        for sweep in range(sweeps):
            vectors = (chain.spare, x_new) if sweep % 2 else (x_new if sweep else x, chain.spare)
            arguments = (*flows, cp.float64(self._tuning.omega), *self._bounds(level), *vectors)
            self._launch("smooth_level", chain.size << chain.lane_bits, *arguments)

    def _solve_coarsest(self, after: Any) -> None:
        coarsest = self._chains()[-1]
        x = coarsest.x if self._coarsenings else after
        self._launch(
            "eliminate_coarsest",
            1,
            *(*coarsest.rows, coarsest.out),
            *(self._cp.int32(coarsest.size), x),
        )

    def _bounds(self, level: int) -> tuple[Any, Any]:
        most = self._tuning.largest_correction
        least, most = (self._tuning.floor, np.inf) if level == 0 else (1.0 / most, most)
        return self._cp.float64(least), self._cp.float64(most)

    def _sum_flow(self, x: Any) -> None:
        size = self._finest.size
        self._launch(
            "sum_total_flow",
            SUM_THREADS * SUM_THREADS,
            *(x, self._finest.out, self._finest.kinds, self._cp.int32(size), self._parts),
            block=SUM_THREADS,
        )

    def _launch(self, name: str, threads: int, *arguments: Any, **keywords: Any) -> None:
        self._launcher.launch(name, threads, *arguments, module="multilevel", **keywords)
