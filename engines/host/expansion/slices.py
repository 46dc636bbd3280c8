"""Slices of consecutive states and their colours, for Gauss-Seidel without a matrix.

Within a colour all states are computed at once; a later colour reads what the earlier ones have
written. Slice s of a sweep has colour s mod the number of colours, which is the assignment of
Ingaramo (2013, section 4.2.2), Implementación del algoritmo Gauss-Seidel en CUDA para la
verificación simbólica de modelos probabilísticos.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.arrays import IndexArray
from engines.diagrams.hybrid import HybridMatrix
from engines.diagrams.system import DiagramSystem
from engines.host.colours import CONGRUENT_COUNTS, Order, SweepSpeed

MORE_COUNTS = (*CONGRUENT_COUNTS, 16, 32)
"""How many colours are tried where the size of slices is to be chosen, too."""

SEED = 1
"""Of the rows that are looked at: the same on every device."""


@dataclass(frozen=True)
class SliceColours:
    """Which rows a sweep computes together.

    Parameters
    ----------
    rows
        Number of rows.
    slice_size
        Consecutive rows in a slice; the last slice may be smaller.
    count
        Number of colours; no more than there are slices.
    order
        Backwards, slices are counted from the last one.
    fresh
        Share of the entries between computed states that see a value of the same sweep, as far as
        they were looked at.
    """

    rows: int
    slice_size: int
    count: int
    order: Order = Order.FORWARDS
    fresh: float = 0.0

    @property
    def slices(self) -> int:
        """Number of slices."""
        return -(-self.rows // self.slice_size)

    @property
    def backwards(self) -> bool:
        """Whether slices are counted from the last one."""
        return self.order is Order.BACKWARDS

    def steps(self, colour: int) -> int:
        """Return the number of slices of a colour.

        Parameters
        ----------
        colour
            From 0 on.
        """
        return -(-(self.slices - colour) // self.count)

    def of_rows(self, rows: IndexArray) -> NDArray[np.int64]:
        """Return the colour of each of some rows.

        Parameters
        ----------
        rows
            Any shape.
        """
        number = np.asarray(rows, dtype=np.int64) // self.slice_size
        if self.backwards:
            number = self.slices - 1 - number
        colours: NDArray[np.int64] = number % self.count
        return colours


@dataclass(frozen=True)
class Reads:
    """Which rows of a system read which others, of all rows or of a sample.

    Parameters
    ----------
    rows
        Number of rows of the system.
    readers, read
        Shape (entries,), int64: a row, and the one whose state it reads. Entries on the diagonal
        and for states that keep their values are left out.
    """

    rows: int
    readers: NDArray[np.int64]
    read: NDArray[np.int64]

    def fresh(self, colours: SliceColours) -> float:
        """Return the share of entries that see values of the same sweep.

        Parameters
        ----------
        colours
            The colours of the rows.
        """
        if not len(self.readers):
            return 0.0
        return float(np.mean(colours.of_rows(self.read) < colours.of_rows(self.readers)))

    def thinned(self, most: int) -> Reads:
        """Return about `most` of the entries, evenly from all."""
        step = max(1, len(self.readers) // most)
        return Reads(self.rows, self.readers[::step], self.read[::step])

    def backwards(self) -> float:
        """Return the share of entries that read a state of a larger number."""
        return float(np.mean(self.read > self.readers)) if len(self.readers) else 0.0


def reads_of(system: DiagramSystem, most: int = 250_000) -> Reads:
    """Return which rows of a system read which others.

    Parameters
    ----------
    system
        A system without choices.
    most
        About so many entries are looked at, of rows drawn at random.
    """
    size, rows = system.num_states, system.num_updates
    entries = max(1, system.matrix.num_entries)
    chosen = np.arange(rows, dtype=np.int64)
    wanted = most * size // entries
    if entries > most and wanted < rows:
        drawn = np.random.default_rng(SEED).integers(0, rows, max(1, wanted))
        chosen = np.unique(drawn).astype(np.int64)
    states = chosen if system.states is None else np.asarray(system.states, np.int64)[chosen]
    owners, columns = columns_of(system.matrix, states)
    readers, read = chosen[owners], columns
    if system.states is not None:
        read = np.searchsorted(system.states, columns)
        computed = system.states[np.minimum(read, rows - 1)] == columns
        readers, read = readers[computed], read[computed]
    off = readers != read
    return Reads(rows, readers[off], read[off].astype(np.int64, copy=False))


def columns_of(
    hybrid: HybridMatrix, states: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the columns of some states' entries.

    Parameters
    ----------
    hybrid
        A matrix without choices.
    states
        Shape (chosen,).

    Returns
    -------
    For each entry the place of its state in `states`, and its column; both of shape (entries,).
    """
    strips = np.searchsorted(hybrid.strip_states, states, side="right") - 1
    local = states - hybrid.strip_states[strips]
    owners, jobs = _listed(hybrid.strip_jobs[strips], hybrid.strip_jobs[strips + 1])
    places = hybrid.block_rows[hybrid.job_blocks[jobs]] + local[owners]
    of_job, entries = _listed(hybrid.local_offsets[places], hybrid.local_offsets[places + 1])
    return owners[of_job], hybrid.job_columns[jobs[of_job]] + hybrid.local_columns[entries]


def _listed(
    begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of ranges one after another, and the range that each is of."""
    sizes = ends - begins
    owners = np.repeat(np.arange(len(begins)), sizes)
    shift = begins - np.append(0, np.cumsum(sizes[:-1])) if len(begins) else begins
    return owners, np.arange(len(owners)) + shift[owners]


def choose_slices(
    reads: Reads,
    order: Order,
    slice_size: int | None,
    count: int | None,
    speed: SweepSpeed,
    bytes_per_sweep: int,
) -> SliceColours:
    """Choose slices and colours so that many entries see values of the same sweep.

    Parameters
    ----------
    reads
        Who reads whom.
    order
        The order of Gauss-Seidel that the colours shall approximate.
    slice_size, count
        None for a choice.
    speed
        Of the device: the dearer a colour, the fewer are chosen.
    bytes_per_sweep
        What a sweep moves.

    Raises
    ------
    ValueError
        For a slice size or a number of colours below 1.

    Notes
    -----
    With slices of a given size the number of colours is the one, of 2 to 8, for which most entries
    see fresh values (Ingaramo 2013, section 5.3). Else the size, too, is chosen, by the least
    product of a sweep's cost and 1 less the share of fresh entries: a share f makes sweeps about
    1 / (1 − f) times as few as Jacobi's.
    """
    for name, number in (("slice_size", slice_size), ("count", count)):
        if number is not None and number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")
    sizes: Sequence[int] = (slice_size,) if slice_size else _tried_sizes(reads.rows)
    counts: Sequence[int] = (count,) if count else CONGRUENT_COUNTS
    if slice_size is None:
        counts = (count,) if count else MORE_COUNTS
        # Of fewer entries than for one size: there are many to try.
        entries = 60_000
        reads = reads.thinned(entries)
    best, least = None, np.inf
    for size in sizes:
        slices = max(1, -(-reads.rows // size))
        for tried in counts:
            found = SliceColours(reads.rows, size, min(tried, slices), order)
            share = reads.fresh(found)
            cost = 1.0 - share
            if slice_size is None:
                cost *= speed.seconds(bytes_per_sweep, found.count)
            if best is None or cost < least:
                best, least = SliceColours(reads.rows, size, found.count, order, share), cost
    assert best is not None, "no slices were tried"
    return best


def _tried_sizes(rows: int) -> tuple[int, ...]:
    # The threads of a warp read consecutive states.
    size, fewest_slices = 32, 64
    while size > 1 and rows < fewest_slices * size:
        size //= 2
    sizes = [size]
    while 4 * sizes[-1] <= rows:
        sizes.append(2 * sizes[-1])
    return tuple(sizes)
