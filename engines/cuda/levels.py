"""Levels of a chain on one GPU: how its states are joined, and the flows between aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX
from engines.cuda.driver import cupy
from engines.cuda.modules import Launcher
from engines.cuda.prepare import _scan, upload
from engines.cuda.transfer import to_device
from engines.diagrams.system import DiagramSystem, System
from engines.errors import UnsupportedError
from engines.systems.flows import FlowRuns
from engines.systems.multilevel import CycleTuning

NARROW_ENTRIES = INT32_MAX
"""What the rows of a level may have together where their entries are numbered in 32 bits."""

MOST_KINDS = 1 << 16
"""Of states, which 16 bits number."""

FLOW_THREADS, SLOTS = 128, 32
"""Threads a block that sum flows, and sums of an aggregate that they share; as in the module."""


ENTRIES_A_LANE, MOST_LANE_BITS = 3, 5
"""Entries that each of several threads reads of a row at least, on average; 32 threads at most."""


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
    def lane_bits(self) -> int:
        """The logarithm of how many threads read a row side by side, by the entries of a row."""
        if self.kinds is not None:
            return 0
        average = self.entries // (ENTRIES_A_LANE * self.size)
        return max(0, min(MOST_LANE_BITS, average.bit_length() - 1))

    @property
    def nbytes(self) -> int:
        """Bytes of the flows."""
        kinds = 0 if self.kinds is None else self.kinds.nbytes
        return int(self.values.nbytes + self.columns.nbytes + kinds)


@dataclass(frozen=True)
class DeviceCoarsening:
    """How a level's states are joined; the fields are those of `engines.host.levels.Coarsening`.

    Of the aggregate of each state, only preparation has need.

    Parameters
    ----------
    members
        `width` places for each aggregate.
    starts
        Where the slots of each aggregate start, in 32 or 64 bits.
    slots
        The place within the coarse row that each entry of the aggregate's rows adds to, 16 bits.
    launcher
        Launches kernels for the type of `starts`.
    """

    members: Any
    starts: Any
    slots: Any
    chain: DeviceChain
    from_offsets: Any
    from_entries: Any
    launcher: Launcher

    @property
    def width(self) -> int:
        """The most states of an aggregate."""
        return len(self.members) // self.chain.size


def finest(system: System, launcher: Launcher, tuning: CycleTuning) -> DeviceChain:
    """Return the flows between the states of a system, on the current device.

    Parameters
    ----------
    system
        As in `engines.cuda.multilevel.cuda_levels`.
    launcher
        Launches kernels for offsets in 32 bits.
    tuning
        How states are joined.

    Raises
    ------
    UnsupportedError
        If the states cannot be joined.
    """
    cp = cupy()
    if isinstance(system, DiagramSystem):
        assert system.flows is not None
        return _finest_of_runs(system.flows, launcher, tuning)
    device = upload(system, launcher, divided=False)
    if device.divisors is None:
        raise UnsupportedError("a state is entered from too many others to be joined in pairs")
    room = cp.empty(system.num_states)
    rows = (device.row_offsets, device.columns, device.values, device.divisors)
    return DeviceChain(*rows, room, room, len(device.columns))


def _finest_of_runs(flows: FlowRuns, launcher: Launcher, tuning: CycleTuning) -> DeviceChain:
    """Return flows of which those of each kind of state are stored once."""
    cp, size = cupy(), flows.num_states
    if len(flows.out) > MOST_KINDS:
        raise UnsupportedError(f"{len(flows.out)} kinds of states are more than {MOST_KINDS}")
    if size <= tuning.coarsest_states:
        raise UnsupportedError(f"{size} states are too few to be joined")
    kinds, room = cp.empty(size, dtype=cp.uint16), cp.empty(size)
    firsts = to_device(flows.firsts[:-1], np.int32)
    of_runs = to_device(flows.kinds, np.uint16)
    sizes = (cp.int32(len(flows.kinds)), cp.int32(size))
    launcher.launch("spread_kinds", size, firsts, of_runs, *sizes, kinds, module="multilevel")
    rows = (to_device(flows.starts, np.int32), to_device(flows.distances, np.int32))
    rates, out = to_device(flows.rates, np.float64), to_device(flows.out, np.float64)
    return DeviceChain(*rows, rates, out, room, room, flows.num_entries, kinds)


def coarsened(chain: DeviceChain, tuning: CycleTuning) -> DeviceCoarsening:
    """Join the states of a level, all of which count as equally likely.

    Parameters
    ----------
    chain
        The level; its spare vector is written over.
    tuning
        How states are joined.

    Raises
    ------
    UnsupportedError
        If too few of them join, or what they make is too large.
    """
    cp = cupy()
    narrow = Launcher("int")
    wide = chain.entries > NARROW_ENTRIES
    launcher = Launcher("long long") if wide else narrow
    members, aggregate = _joined(chain, narrow, tuning)
    count = len(members) // tuning.members
    if count > tuning.least_shrinking * chain.size:
        raise UnsupportedError(f"{chain.size} states join into {count} aggregates only")
    number = cp.int32(count)
    longest = cp.zeros(1, dtype=cp.int32)
    starts = cp.zeros(count + 1, dtype=launcher.offset_dtype)

    def launch(name: str, threads: int, *arguments: Any) -> None:
        launcher.launch(name, threads, *arguments, module="multilevel")

    width = cp.int32(tuning.members)
    measured = (chain.offsets, chain.kinds, members, width, number, starts[1:], longest)
    launch("measure_aggregates", count, *measured)
    _require_short(longest, tuning.longest_row_entries, "the rows of an aggregate")
    _scan(starts[1:], launcher)
    found = cp.empty(chain.entries, dtype=cp.int32)
    slots = cp.empty(chain.entries, dtype=cp.uint16)
    offsets = cp.zeros(count + 1, dtype=cp.int32)
    launch(
        "find_sources",
        count,
        *(chain.offsets, chain.columns, chain.kinds, members, width, aggregate, starts, number),
        *(found, slots, offsets[1:]),
    )
    if wide and int(offsets[1:].sum(dtype=np.int64).get()) > INT32_MAX:
        raise UnsupportedError(f"{count} aggregates have more flows than 32 bits number")
    _scan(offsets[1:], narrow)
    entries = int(offsets[-1:].get()[0])
    columns = cp.empty(entries, dtype=cp.int32)
    cursors = cp.zeros(count + 1, dtype=cp.int32)
    launch("copy_sources", count, found, starts, offsets, number, columns, cursors)
    del found, aggregate
    narrow.launch("keep_longest", count, cursors, number, longest, module="prepare")
    # Each list is sorted by one thread.
    _require_short(longest, tuning.longest_row_entries, "what leads from an aggregate")
    _scan(cursors, narrow)
    from_entries = cp.empty(entries, dtype=cp.int32)
    launch("place_entries", entries, columns, cp.int32(entries), cursors, from_entries)
    launch("order_entries", count, cursors, number, from_entries)
    out, x, spare = (cp.empty(count) for _ in range(3))
    coarse = DeviceChain(offsets, columns, cp.empty(entries), out, x, spare, entries)
    lists = (cursors, from_entries)
    below = DeviceCoarsening(members, starts, slots, coarse, *lists, launcher)
    # The next level is joined along the rates, as if all states of this one were equally likely.
    sum_flows(chain, chain.spare, below)
    return below


def _require_short(longest: Any, limit: int, what: str) -> None:
    length = int(longest.get()[0])
    if length > limit:
        raise UnsupportedError(f"{what} has {length} entries, more than {limit}")
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


def sum_flows(chain: DeviceChain, x: Any, below: DeviceCoarsening) -> None:
    """Queue the flows of the coarse chain that the values of the states make.

    Parameters
    ----------
    chain
        The level.
    x
        Shape (states,): the values.
    below
        Holds the coarse chain; the values of its states become 1.
    """
    cp, coarse = cupy(), below.chain
    count, width = cp.int32(coarse.size), cp.int32(below.width)
    aggregates = FLOW_THREADS // below.width
    below.launcher.launch(
        "sum_flows",
        len(below.members),
        *(*chain.rows, chain.kinds, x, below.members, width, below.starts, below.slots),
        *(coarse.offsets, count, coarse.values),
        module="multilevel",
        block=FLOW_THREADS,
        shared_bytes=8 * SLOTS * aggregates,
    )
    below.launcher.launch(
        "sum_leaving",
        coarse.size << coarse.lane_bits,
        *(below.from_offsets, below.from_entries, coarse.values, count),
        *(cp.int32(coarse.lane_bits), coarse.out, coarse.x),
        module="multilevel",
    )
