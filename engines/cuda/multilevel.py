"""Cycles over aggregates of states, on one GPU."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX, FloatArray
from engines.cuda.comparing import comparison
from engines.cuda.driver import cupy
from engines.cuda.memory import require_bytes
from engines.cuda.modules import Launcher, stream
from engines.cuda.prepare import _scan, upload
from engines.cuda.transfer import send, to_device, to_host
from engines.diagrams.system import DiagramSystem, System
from engines.errors import DeviceMemoryError
from engines.host.engine import CpuEngine
from engines.model.result import SweepCost
from engines.systems.flows import FlowRuns
from engines.systems.multilevel import CycleTuning
from engines.systems.one_sided import SweepSystem

SUM_THREADS = 256
"""Threads a block of the kernels that add up; as in the module."""

NARROW_ENTRIES = INT32_MAX
"""What the rows of a level may have together where their entries are numbered in 32 bits."""

MOST_KINDS = 1 << 16
"""Of states, which 16 bits number."""


@dataclass(frozen=True)
class DeviceChain:
    """The flows of one level on the device; the fields are those of `engines.host.levels.Chain`.

    Parameters
    ----------
    x, spare
        Values of the states, and room for those after a sweep.
    entries
        Number of flows.
    kinds
        Shape (states,), 16 bits: the row of each state, whose columns are counted from the state,
        as are what leaves it; None where each state has a row of its own.
    """

    offsets: Any
    columns: Any
    values: Any
    out: Any
    x: Any
    spare: Any
    entries: int
    kinds: Any = None

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.x)

    @property
    def rows(self) -> tuple[Any, ...]:
        """What kernels take of the flows."""
        return self.offsets, self.columns, self.values

    @property
    def nbytes(self) -> int:
        """Bytes of the flows."""
        kinds = 0 if self.kinds is None else self.kinds.nbytes
        return int(self.values.nbytes + self.columns.nbytes + kinds)


@dataclass(frozen=True)
class DeviceCoarsening:
    """How a level's states are joined; the fields are those of `engines.host.levels.Coarsening`.

    Parameters
    ----------
    starts
        Where the slots of each aggregate start, in 32 or 64 bits.
    slots
        The place within the coarse row that each entry of the aggregate's rows adds to, 16 bits.
    launcher
        Launches kernels for the type of `starts`.
    """

    members: Any
    aggregate: Any
    starts: Any
    slots: Any
    chain: DeviceChain
    from_offsets: Any
    from_entries: Any
    launcher: Launcher


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
    RuntimeError
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
    # Measured with a billion states; the coarser levels have a matrix.
    return 32 * system.num_states + 16 * system.flows.num_entries


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
    same levels share the other one, and leave their iterate in their own.
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
            self._finest = _finest(system, self._launcher, tuning)
            self._coarsenings: list[DeviceCoarsening] = []
            chain = self._finest
            while chain.size > tuning.coarsest_states:
                self._coarsenings.append(_coarsened(chain, tuning))
                chain = self._coarsenings[-1].chain
            self._parts = cp.empty(SUM_THREADS)
            self._changes = cp.zeros(tuning.cycles_a_run)
            self._other = cp.empty(system.num_states)
            self._events = (cp.cuda.Event(), cp.cuda.Event())
            self._begin(system.start)
        passes = tuning.sweeps_before + tuning.sweeps_after + 1
        bytes_of_cycle = passes * sum(chain.nbytes for chain in self._chains())
        self.cost = SweepCost((device_number,), "cycles", "csr", bytes_of_cycle)
        self._stream.synchronize()

    def _begin(self, start: FloatArray) -> None:
        self._scale = float(start.sum())
        self._x, size = self._cp.empty(len(start)), len(start)
        send(start, self._x)
        how = (self._cp.int32(size), self._cp.float64(self._scale))
        self._launch("start_iterate", size, self._x, *how, self._cp.float64(self._tuning.floor))
        self._sum_flow(self._x)
        self._flow = float(self._parts.get().sum())
        self.seconds = 0.0
        self._runs = 0
        self._graph: Any = None

    def restarted(self, start: FloatArray) -> CudaLevels:
        """Return cycles from another start; see `engines.systems.multilevel.Levels.restarted`."""
        other = copy.copy(self)
        with self._cp.cuda.Device(self._device), self._stream:
            other._begin(start)
        return other

    def comparison(self, reference: FloatArray, least: float) -> Callable[[], float]:
        """Return what compares the iterate with a vector; see `systems.one_sided.HasComparison`."""

        def iterate() -> tuple[Any, float]:
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
            values: FloatArray = to_host(self._x)
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
        cp, finest = self._cp, self._finest
        chains = self._chains()
        for level, below in enumerate(self._coarsenings):
            x = after if level == 0 else chains[level].x
            self._smooth(level, before if level == 0 else x, x, self._tuning.sweeps_before)
            _sum_flows(chains[level], x, below)
        self._solve_coarsest(after)
        for level, below in reversed(list(enumerate(self._coarsenings))):
            size = chains[level].size
            x = after if level == 0 else chains[level].x
            arguments = (x, below.aggregate, below.chain.x, cp.int32(size), *self._bounds(level))
            self._launch("correct_level", size, *arguments)
            self._smooth(level, x, x, self._tuning.sweeps_after)
        self._sum_flow(after)
        self._launch(
            "end_cycle",
            finest.size,
            *(before, after, self._parts, cp.float64(self._flow), cp.int32(finest.size)),
            *(cp.int32(self._absolute), cp.float64(self._tuning.smallest_looked_at)),
            self._changes[number : number + 1],
            block=SUM_THREADS,
        )

    def _smooth(self, level: int, x: Any, x_new: Any, sweeps: int) -> None:
        """Queue an even number of sweeps, from one vector to another or back to itself."""
        chain, cp = self._chains()[level], self._cp
        size = cp.int32(chain.size)
        flows = (*chain.rows, chain.out, chain.kinds, size)
        for sweep in range(sweeps):
            vectors = (chain.spare, x_new) if sweep % 2 else (x_new if sweep else x, chain.spare)
            arguments = (*flows, cp.float64(self._tuning.omega), *self._bounds(level), *vectors)
            self._launch("smooth_level", chain.size, *arguments)

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


def _finest(system: System, launcher: Launcher, tuning: CycleTuning) -> DeviceChain:
    cp = cupy()
    if isinstance(system, DiagramSystem):
        assert system.flows is not None
        return _finest_of_runs(system.flows, launcher, tuning)
    device = upload(system, launcher, divided=False)
    if device.divisors is None:
        raise RuntimeError("a state is entered from too many others to be joined in pairs")
    room = cp.empty(system.num_states)
    rows = (device.row_offsets, device.columns, device.values, device.divisors)
    return DeviceChain(*rows, room, room, len(device.columns))


def _finest_of_runs(flows: FlowRuns, launcher: Launcher, tuning: CycleTuning) -> DeviceChain:
    """Return flows of which those of each kind of state are stored once."""
    cp, size = cupy(), flows.num_states
    if len(flows.out) > MOST_KINDS:
        raise RuntimeError(f"{len(flows.out)} kinds of states are more than {MOST_KINDS}")
    if size <= tuning.coarsest_states:
        raise RuntimeError(f"{size} states are too few to be joined")
    kinds, room = cp.empty(size, dtype=cp.uint16), cp.empty(size)
    firsts = to_device(flows.firsts[:-1], np.int32)
    of_runs = to_device(flows.kinds, np.uint16)
    sizes = (cp.int32(len(flows.kinds)), cp.int32(size))
    launcher.launch("spread_kinds", size, firsts, of_runs, *sizes, kinds, module="multilevel")
    rows = (to_device(flows.starts, np.int32), to_device(flows.distances, np.int32))
    rates, out = to_device(flows.rates, np.float64), to_device(flows.out, np.float64)
    return DeviceChain(*rows, rates, out, room, room, flows.num_entries, kinds)


def _coarsened(chain: DeviceChain, tuning: CycleTuning) -> DeviceCoarsening:
    cp = cupy()
    narrow = Launcher("int")
    wide = chain.entries > NARROW_ENTRIES
    launcher = Launcher("long long") if wide else narrow
    members, aggregate = _joined(chain, narrow, tuning)
    count = len(members) // tuning.members
    if count > tuning.least_shrinking * chain.size:
        raise RuntimeError(f"{chain.size} states join into {count} aggregates only")
    number = cp.int32(count)
    longest = cp.zeros(1, dtype=cp.int32)
    starts = cp.zeros(count + 1, dtype=launcher.offset_dtype)

    def launch(name: str, threads: int, *arguments: Any) -> None:
        launcher.launch(name, threads, *arguments, module="multilevel")

    measured = (chain.offsets, chain.kinds, members, number, starts[1:], longest)
    launch("measure_aggregates", count, *measured)
    _require_short(longest, tuning.longest_row_entries, "the rows of an aggregate")
    _scan(starts[1:], launcher)
    found = cp.empty(chain.entries, dtype=cp.int32)
    slots = cp.empty(chain.entries, dtype=cp.uint16)
    offsets = cp.zeros(count + 1, dtype=cp.int32)
    launch(
        "find_sources",
        count,
        *(chain.offsets, chain.columns, chain.kinds, members, aggregate, starts, number),
        *(found, slots, offsets[1:]),
    )
    if wide and int(offsets[1:].sum(dtype=np.int64).get()) > INT32_MAX:
        raise RuntimeError(f"{count} aggregates have more flows than 32 bits number")
    _scan(offsets[1:], narrow)
    entries = int(offsets[-1:].get()[0])
    columns = cp.empty(entries, dtype=cp.int32)
    cursors = cp.zeros(count + 1, dtype=cp.int32)
    launch("copy_sources", count, found, starts, offsets, number, columns, cursors)
    del found
    narrow.launch("keep_longest", count, cursors, number, longest, module="prepare")
    # Each list is sorted by one thread.
    _require_short(longest, 1024, "what leads from an aggregate")
    _scan(cursors, narrow)
    from_entries = cp.empty(entries, dtype=cp.int32)
    launch("place_entries", entries, columns, cp.int32(entries), cursors, from_entries)
    launch("order_entries", count, cursors, number, from_entries)
    out, x, spare = (cp.empty(count) for _ in range(3))
    coarse = DeviceChain(offsets, columns, cp.empty(entries), out, x, spare, entries)
    lists = (cursors, from_entries)
    below = DeviceCoarsening(members, aggregate, starts, slots, coarse, *lists, launcher)
    # The next level is joined along the rates, as if all states of this one were equally likely.
    _sum_flows(chain, chain.spare, below)
    return below


def _require_short(longest: Any, limit: int, what: str) -> None:
    length = int(longest.get()[0])
    if length > limit:
        raise RuntimeError(f"{what} has {length} entries, more than {limit}")
    longest.set(np.zeros(1, dtype=np.int32))


def _joined(chain: DeviceChain, launcher: Launcher, tuning: CycleTuning) -> tuple[Any, Any]:
    """Return the members of each aggregate and the aggregate of each state.

    An aggregate has `tuning.members` places. The chain's spare vector is filled with ones.
    """
    cp = cupy()
    members, aggregate = (cp.empty(chain.size, dtype=cp.int32) for _ in range(2))

    def launch(name: str, threads: int, *arguments: Any) -> None:
        launcher.launch(name, threads, *arguments, module="multilevel")

    launch("start_level", chain.size, members, aggregate, chain.spare, cp.int32(chain.size))
    for step in range(tuning.passes):
        width = 1 << step
        count = len(members) // width
        number, wide = cp.int32(count), cp.int32(width)
        partner = cp.empty(count, dtype=cp.int32)
        partner.data.memset_async(0xFF, partner.nbytes, cp.cuda.get_current_stream())
        proposals = cp.zeros(count, dtype=cp.uint64)
        arrays = (*chain.rows, chain.out, chain.kinds, members, wide, aggregate)
        for turn in range(step * tuning.rounds, (step + 1) * tuning.rounds):
            turned = (cp.int32(turn), cp.float64(tuning.enough))
            launch("propose_partner", count, *arrays, partner, number, *turned, proposals)
            launch("accept_partner", count, proposals, number, partner)
        numbers = cp.empty(count, dtype=cp.int32)
        launch("mark_first", count, partner, number, numbers)
        _scan(numbers, launcher)
        joined = cp.empty(2 * width * int(numbers[-1:].get()[0]), dtype=cp.int32)
        renumbered = cp.empty(chain.size, dtype=cp.int32)
        launch(
            "join_partners", count, *(members, wide, partner, numbers, number, joined, renumbered)
        )
        members, aggregate = joined, renumbered
    return members, aggregate


def _sum_flows(chain: DeviceChain, x: Any, below: DeviceCoarsening) -> None:
    """Queue the flows of the coarse chain that the values x of the states make."""
    cp, coarse = cupy(), below.chain
    count = cp.int32(coarse.size)
    below.launcher.launch(
        "sum_flows",
        coarse.size,
        *(*chain.rows, chain.kinds, x, below.members, below.starts, below.slots),
        *(coarse.offsets, count, coarse.values),
        module="multilevel",
        block=128,  # as in the kernel
    )
    below.launcher.launch(
        "sum_leaving",
        coarse.size,
        *(below.from_offsets, below.from_entries, coarse.values, count, coarse.out, coarse.x),
        module="multilevel",
    )
