"""Colours of Gauss-Seidel found on a GPU: those that the host finds, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from engines.cuda.counting_sort import counters, sorted_by_key
from engines.cuda.driver import cupy
from engines.cuda.modules import BLOCK_THREADS, WARP, Launcher
from engines.cuda.prepare import DeviceSystem, _scan
from engines.cuda.transfer import to_device, to_host
from engines.host.colouring import find_levels
from engines.host.colours import (
    CONGRUENT_COUNTS,
    GPU_SPEED,
    Order,
    bytes_of_sweep,
    chosen_count,
)
from engines.systems.moves import HASH_SHIFT, MOVES, MULTIPLIER, UNIT, Move
from engines.systems.one_sided import SweepSystem

WARPS_A_BLOCK = BLOCK_THREADS // WARP


@dataclass(frozen=True)
class ColouringTuning:
    """How far colours are found on a device.

    Parameters
    ----------
    most_colours
        As many sums of each of a block's warps have room in its shared memory.
    most_rounds
        After so many rounds over all entries the host, which takes one, has the levels sooner.
    first_batch_rounds, longest_batch_rounds
        Rounds between two looks at whether levels still rise.
    """

    most_colours: int = 512
    most_rounds: int = 256
    first_batch_rounds: int = 16
    longest_batch_rounds: int = 128


@dataclass(frozen=True)
class DeviceColouring:
    """Which states a sweep computes together, on the current device.

    Parameters
    ----------
    of_update
        The number of each update's colour, shape (updates,), int32; not all numbers are colours.
    members
        The updates, colour by colour, shape (updates,), int32.
    bounds
        Where the members of each number begin, and where the last end, shape (numbers + 1,), int32.
    ends
        The same of the colours alone, on the host.
    slice_size, fresh, order
        As in `engines.host.colours.Colouring`.
    """

    of_update: Any
    members: Any
    bounds: Any
    ends: list[int]
    slice_size: int
    fresh: float
    order: Order

    @property
    def count(self) -> int:
        """Number of colours."""
        return len(self.ends) - 1


@dataclass(frozen=True)
class DeviceDependencies:
    """Which of the states that a sweep computes read which others, on the current device.

    Parameters
    ----------
    offsets, reads
        As in `engines.host.colouring.Dependencies`.
    values
        The entries' values, shape (entries,).
    factors
        What an update's values are multiplied by to be weights, shape (updates,).
    launcher
        Launches kernels for the type of the offsets.
    tuning
        How far the device goes.
    """

    offsets: Any
    reads: Any
    values: Any
    factors: Any
    launcher: Launcher
    tuning: ColouringTuning = ColouringTuning()

    @property
    def updates(self) -> int:
        """Number of states that a sweep computes."""
        return len(self.offsets) - 1

    def summed(self, name: str, numbers: int, *arguments: Any) -> list[int]:
        """Return the sums that a kernel over all updates makes."""
        sums = cupy().zeros(numbers, dtype=cupy().int64)
        threads = min(self.updates * WARP, _threads_of_sums(self.launcher))
        self.launcher.launch(name, threads, *arguments, sums, module="colouring")
        return [int(found) for found in sums.get()]

    def levels(self, backwards: bool) -> Any:
        """Return the step at which each state is computed by sequential Gauss-Seidel.

        Parameters
        ----------
        backwards
            Whether the last state comes first.

        Returns
        -------
        Shape (updates,), int32.

        Notes
        -----
        All updates raise their own levels and those of others at once, round after round, until
        none rises. Levels that do not come to rest in `most_rounds` are those of long chains: the
        host finds them in one pass.
        """
        cp, tuning = cupy(), self.tuning
        levels = cp.zeros(self.updates, dtype=cp.int32)
        mean = len(self.reads) // max(self.updates, 1)
        threads = min(1 << mean.bit_length() >> 1, WARP) if mean > 0 else 1
        counts = (cp.int32(self.updates), cp.int32(threads))
        given = (self.offsets, self.reads, *counts, cp.int32(backwards))
        rounds, batch = 0, tuning.first_batch_rounds
        while rounds < tuning.most_rounds:
            # Whether a round has raised a level; before the first, yes.
            raised = to_device(np.arange(batch + 1) == 0, np.int32)
            for number in range(batch):
                flags = (raised[number : number + 1], raised[number + 1 : number + 2])
                self.launcher.launch(
                    *("raise_levels", self.updates * threads, *given, levels, *flags),
                    module="colouring",
                )
            if int(raised[batch:].get()[0]) == 0:
                return levels
            rounds += batch
            batch = min(2 * batch, tuning.longest_batch_rounds)
        found = find_levels(to_host(self.offsets), to_host(self.reads), backwards)
        return to_device(found, np.int32)

    def depth_and_entries(self, levels: Any, without_diagonal: bool) -> tuple[int, int]:
        """Return how many levels there are, and how many entries an iteration matrix has.

        Parameters
        ----------
        levels
            Shape (updates,).
        without_diagonal
            Whether entries of an update's own state are none of it.
        """
        cp = cupy()
        highest = cp.zeros(1, dtype=cp.int32)
        given = (self.offsets, self.reads, cp.int32(self.updates), cp.int32(without_diagonal))
        entries = self.summed("measure_levels", 1, *given, levels, highest)
        return int(highest.get()[0]) + 1, entries[0]

    def fresh_entries(self, colours: Any) -> float:
        """Return the share of entries between computed states that see fresh values."""
        given = (self.offsets, self.reads, cupy().int32(self.updates), colours)
        fresh, entries = self.summed("count_fresh_entries", 2, *given)
        return fresh / max(entries, 1)

    def fresh_weights(self, levels: Any, counts: list[int]) -> list[float]:
        """Return the same share by weight if levels are coloured in each of up to four numbers."""
        cp = cupy()
        entries = (self.offsets, self.reads, self.values, self.factors, cp.int32(self.updates))
        numbers = [cp.int32(number) for number in (*counts, 1, 1, 1, 1)[:4]]
        tried = (*numbers, cp.int32(len(counts)))
        sums = self.summed("sum_fresh_weights", 5, *entries, levels, *tried)
        return [fresh / sums[4] if sums[4] > 0 else 0.0 for fresh in sums[: len(counts)]]

    def move_to_better_colours(self, colours: Any, count: int, levels: Any, depth: int) -> None:
        """Move states, in place, to the colour where the most weight of their entries is fresh.

        Parameters
        ----------
        colours
            Shape (updates,), int32.
        count
            Number of colours, at most `ColouringTuning.most_colours`.
        levels
            Shape (updates,), int32: the steps of sequential Gauss-Seidel.
        depth
            Number of levels.
        """
        cp = cupy()
        readers = self._readers()
        steps = cp.empty(self.updates, dtype=cp.int32)
        wanted = cp.empty(self.updates, dtype=cp.int32)
        gains = cp.empty(self.updates, dtype=cp.int64)
        awake = cp.empty(self.updates, dtype=cp.uint8)
        awake.data.memset_async(1, awake.nbytes)
        for move in MOVES:
            keys = self._name_steps(levels, depth, move, steps)
            members, bounds = sorted_by_key(steps, keys, self.launcher)
            entries = (self.offsets, self.reads, self.values, self.factors, *readers)
            neighbours = (self.offsets, self.reads, *readers[:2])
            for first, last in pairwise(bounds.get()):
                threads = int(last - first) * WARP
                if threads == 0:
                    continue
                part = (members, cp.int32(first), cp.int32(last))
                self.launcher.launch(
                    *("find_better_colours", threads, *entries, *part),
                    *(colours, cp.int32(count), awake, wanted, gains),
                    module="colouring",
                    shared_bytes=8 * count * WARPS_A_BLOCK,
                )
                self.launcher.launch(
                    *("settle_moves", threads, *neighbours, *part),
                    *(steps, wanted, gains, awake, colours),
                    module="colouring",
                )

    def _name_steps(self, levels: Any, depth: int, move: Move, steps: Any) -> int:
        """Write the step of a pass in which each update may move; return how many there are."""
        cp = cupy()
        bands = move.bands_of(depth)
        cut = (cp.int32(bands), cp.int32(depth), cp.int32(move.classes))
        hashing = (cp.uint64(MULTIPLIER), cp.int32(HASH_SHIFT))
        given = (levels, cp.int32(self.updates), *cut, *hashing, steps)
        self.launcher.launch("name_steps", self.updates, *given, module="colouring")
        return bands * move.classes

    def _readers(self) -> tuple[Any, Any, Any]:
        """Return who reads each update: offsets, readers and their weights."""
        cp = cupy()
        cursors = cp.zeros(self.updates + 1, dtype=self.launcher.offset_dtype)
        threads = self.updates * WARP
        counted = (self.offsets, self.reads, cp.int32(self.updates), cursors)
        self.launcher.launch("count_readers", threads, *counted, module="colouring")
        _scan(cursors, self.launcher)
        entries = int(cursors[-1:].get()[0])
        readers, weights = (cp.empty(entries, dtype=cp.int32) for _ in range(2))
        given = (self.offsets, self.reads, self.values, self.factors, cp.int32(self.updates))
        self.launcher.launch(
            *("scatter_readers", threads, *given, cursors, readers, weights),
            module="colouring",
        )
        return cursors, readers, weights


def names_of_updates(device: DeviceSystem, system: SweepSystem, launcher: Launcher) -> Any | None:
    """Return the update that computes each state, or −1; None where each has its own number.

    Parameters
    ----------
    device, system
        The system, on the current device and on the host.
    launcher
        Launches kernels.

    Returns
    -------
    Shape (states,), int32.
    """
    cp = cupy()
    updates = system.num_updates
    if device.states is None and updates == system.num_states:
        return None
    update_of = cp.empty(system.num_states, dtype=cp.int32)
    update_of.data.memset_async(0xFF, update_of.nbytes)
    given = (device.states, cp.int32(updates), update_of)
    launcher.launch("name_updates", updates, *given, module="colouring")
    return update_of


def dependencies_on_device(
    device: DeviceSystem, update_of: Any | None, launcher: Launcher, tuning: ColouringTuning
) -> DeviceDependencies:
    """Return which states read which others.

    Parameters
    ----------
    device
        A scaled system on the current device.
    update_of
        As `names_of_updates` returns it.
    launcher
        Launches kernels for the type of the offsets.
    tuning
        How far the device goes.
    """
    cp = cupy()
    offsets, reads = device.row_offsets, device.columns
    if device.group_offsets is not None:
        groups = device.group_offsets
        offsets = cp.empty(len(groups), dtype=launcher.offset_dtype)
        of_groups = (groups, cp.int32(len(groups) - 1), offsets)
        given = (device.row_offsets, *of_groups)
        launcher.launch("find_group_entries", len(groups), *given, module="colouring")
    if update_of is not None:
        entries = len(device.columns)
        reads = cp.empty(entries, dtype=cp.int32)
        given = (device.columns, cp.int64(entries), update_of, reads)
        if entries:
            launcher.launch("name_reads", entries, *given, module="colouring")
    updates = len(offsets) - 1
    factors = cp.empty(updates)
    measured = (offsets, device.values, cp.int32(updates), cp.float64(UNIT), factors)
    launcher.launch("measure_weights", updates, *measured, module="colouring")
    return DeviceDependencies(offsets, reads, device.values, factors, launcher, tuning)


def choose_colours_on_device(
    reads: DeviceDependencies,
    system: SweepSystem,
    without_diagonal: bool,
    order: Order,
    slice_size: int | None = None,
    count: int | None = None,
) -> DeviceColouring | None:
    """Assign colours; see `engines.host.colours.choose_colours`, which assigns the same.

    Parameters
    ----------
    reads
        Which states read which others.
    system
        What is solved, with any scaling.
    without_diagonal
        Whether `reads` still holds entries that the scaling has taken out.
    order, slice_size, count
        As there.

    Returns
    -------
    The colours, or None where they are more than `reads.tuning.most_colours`.
    """
    if slice_size is not None:
        return _by_congruence(reads, order, slice_size, count)
    levels = reads.levels(order is Order.BACKWARDS)
    depth, entries = reads.depth_and_entries(levels, without_diagonal)
    moved = bytes_of_sweep(system, entries)
    count = chosen_count(
        *(depth, reads.updates, count),
        *(lambda tried: reads.fresh_weights(levels, list(tried)),),
        *(lambda number: GPU_SPEED.seconds(moved, number),),
    )
    if count > reads.tuning.most_colours:
        return None
    colours = cupy().empty(reads.updates, dtype=cupy().int32)
    given = (levels, cupy().int32(reads.updates), cupy().int32(count), colours)
    reads.launcher.launch("colour_by_level", reads.updates, *given, module="colouring")
    reads.move_to_better_colours(colours, count, levels, depth)
    return _sorted(reads, colours, count, 1, reads.fresh_entries(colours), order)


def _by_congruence(
    reads: DeviceDependencies, order: Order, slice_size: int, count: int | None
) -> DeviceColouring | None:
    slices = max(1, -(-reads.updates // slice_size))
    best: tuple[float, int] | None = None
    for tried in CONGRUENT_COUNTS if count is None else (count,):
        fresh = reads.fresh_entries(_congruent(reads, slice_size, tried, order))
        if best is None or fresh > best[0]:
            best = (fresh, tried)
    assert best is not None
    fresh, count = best
    if min(count, slices) > reads.tuning.most_colours:
        return None
    colours = _congruent(reads, slice_size, count, order)
    return _sorted(reads, colours, min(count, slices), slice_size, fresh, order)


def _congruent(reads: DeviceDependencies, slice_size: int, count: int, order: Order) -> Any:
    cp = cupy()
    colours = cp.empty(reads.updates, dtype=cp.int32)
    # Sizes beyond the number of updates are all the same, and need not fit into 32 bits.
    numbers = [cp.int32(min(number, max(reads.updates, 1))) for number in (slice_size, count)]
    given = (cp.int32(reads.updates), *numbers, cp.int32(order is Order.BACKWARDS), colours)
    reads.launcher.launch("colour_by_congruence", reads.updates, *given, module="colouring")
    return colours


def _sorted(
    reads: DeviceDependencies,
    colours: Any,
    numbers: int,
    slice_size: int,
    fresh: float,
    order: Order,
) -> DeviceColouring:
    members, bounds = sorted_by_key(colours, numbers, reads.launcher)
    ends = [int(end) for end in np.unique(bounds.get())]
    return DeviceColouring(colours, members, bounds, ends, slice_size, fresh, order)


def _threads_of_sums(launcher: Launcher) -> int:
    # More than eight blocks a processor would wait for each other at the sums.
    return launcher.processors * 8 * BLOCK_THREADS


def count_directions(
    device: DeviceSystem, update_of: Any | None, launcher: Launcher
) -> tuple[int, int]:
    """Return how many entries read a state before the one that is computed, and one behind it.

    States that keep their values are neither.

    Parameters
    ----------
    device
        A system without choices on the current device.
    update_of
        The update that computes each state, as `names_of_updates` returns it.
    launcher
        Launches kernels for the type of its offsets.
    """
    cp = cupy()
    rows = len(device.row_offsets) - 1
    sums = cp.zeros(2, dtype=cp.int64)
    threads = min(rows * WARP, _threads_of_sums(launcher))
    given = (device.row_offsets, device.columns, device.states, update_of, cp.int32(rows), sums)
    launcher.launch("count_directions", threads, *given, module="colouring")
    before, after = (int(found) for found in sums.get())
    return before, after


def colouring_bytes(system: SweepSystem, tuning: ColouringTuning) -> int:
    """Return the bytes that finding colours takes on the device beside the system itself.

    Parameters
    ----------
    system
        The system.
    tuning
        How far the device goes.
    """
    updates, entries = system.num_updates, system.matrix.num_entries
    wide = 4 if entries < 2**31 else 8
    subset = updates < system.num_states or system.states is not None
    keys = max(move.bands * move.classes for move in MOVES)
    sorting = wide * counters(updates, max(keys, tuning.most_colours)) + 8 * updates
    of_entries = (8 + (4 if subset else 0)) * entries
    return of_entries + (37 + 2 * wide) * updates + 4 * system.num_states + sorting
