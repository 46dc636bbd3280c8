"""Systems in colours, cut into parts that come to a device one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.errors import DeviceMemoryError
from engines.host.colours import ColouredSystem

BUFFERS = 2
"""One is filled while the part in the other one is swept."""

LEAST_WINDOW = 1 << 10
"""States of the smallest segment of x."""

BESIDE = 1 << 12
"""Bytes of slots, and what allocations are rounded up by."""


def sums_bytes(states: int, slice_size: int, colours: int) -> int:
    """Return the bytes of the sums of one colour's rows.

    Parameters
    ----------
    states
        Rows of the matrix.
    slice_size
        Consecutive states of one colour.
    colours
        Number of colours, which slices take in turn.

    Notes
    -----
    Equation 4.1 of the thesis of 2013 on Gauss-Seidel in CUDA: the slices of a colour, whole.
    """
    slices = -(-states // slice_size)
    return -(-slices // colours) * slice_size * 8


def fewest_colours(states: int, slice_size: int, room: int) -> int:
    """Return the smallest number of colours, two at least, whose sums fit.

    Parameters
    ----------
    states, slice_size
        As in `sums_bytes`.
    room
        Bytes for the sums.

    Raises
    ------
    DeviceMemoryError
        Where not even the sums of one slice fit.

    Notes
    -----
    Section 5.4 of the thesis: each colour costs its launches, so that fewest are best.
    """
    slices, fitting = -(-states // slice_size), room // (8 * slice_size)
    if fitting < 1:
        raise DeviceMemoryError(f"no room for the sums of a slice of {slice_size} states")
    return max(2, -(-slices // fitting))


@dataclass(frozen=True)
class PartPlan:
    """What lies on the device, and in which parts the rest comes.

    Parameters
    ----------
    states, sums
        Length of x, and of the vector of sums.
    window
        States of a segment of x: all of them where x stays on the device.
    buffer_bytes
        Of each of the two buffers of parts.
    resident_bytes
        For parts that stay on the device.
    """

    states: int
    sums: int
    window: int
    buffer_bytes: int
    resident_bytes: int

    @property
    def x_stays(self) -> bool:
        """Whether x lies on the device."""
        return self.window >= self.states

    @property
    def segments(self) -> int:
        """In how many segments x is read."""
        return max(1, -(-self.states // max(self.window, 1)))

    @property
    def device_bytes(self) -> int:
        """Bytes of all of it on the device."""
        windows = self.states if self.x_stays else BUFFERS * self.window
        beside = BUFFERS * self.buffer_bytes + self.resident_bytes + BESIDE
        return 8 * (windows + self.sums) + beside


def plan_parts(states: int, sums: int, memory: int) -> PartPlan:
    """Divide the memory of a device between vectors, sums and parts of the matrix.

    Parameters
    ----------
    states
        Length of x.
    sums
        The most rows of a colour.
    memory
        Bytes that may be taken.

    Raises
    ------
    DeviceMemoryError
        Where there is too little even for segments of x.
    """
    # Below this a buffer costs more in launches than it carries; of the memory beside the vectors
    # it takes an eighth.
    least_buffer, share = 1 << 12, 8
    left = memory - BESIDE - 8 * sums
    beside = left - 8 * states
    if beside >= BUFFERS * least_buffer:
        size = max(least_buffer, beside // share)
        return PartPlan(states, sums, states, size, beside - BUFFERS * size)
    size = max(least_buffer, left // share)
    # Segments are as long as two can be (section 4.3.1).
    window = (left - BUFFERS * size) // (8 * BUFFERS)
    if window < min(LEAST_WINDOW, states):
        raise DeviceMemoryError(
            f"{memory} bytes hold neither the sums of a colour of {sums} rows nor two segments of x"
        )
    return PartPlan(states, sums, min(window, states), size, 0)


@dataclass(frozen=True)
class Part:
    """A part of a colour's rows: consecutive entries that read one segment of x.

    Parameters
    ----------
    segment
        Which of the segments.
    first_row
        The row of its first entry, counted from the colour's first.
    offsets
        Where its rows begin among its entries, shape (rows + 1,), int32.
    columns
        Counted from the segment's first state, shape (entries,), int32.
    values
        Shape (entries,).
    """

    segment: int
    first_row: int
    offsets: IndexArray
    columns: IndexArray
    values: FloatArray

    @property
    def rows(self) -> int:
        """How many rows it has entries of, with those between them."""
        return len(self.offsets) - 1

    @property
    def packed_bytes(self) -> int:
        """Bytes of values, columns and offsets, one after the other."""
        return self.values.nbytes + self.columns.nbytes + self.offsets.nbytes


def parts_of_colour(coloured: ColouredSystem, colour: int, plan: PartPlan) -> Iterator[Part]:
    """Cut a colour into parts that fit a buffer each, segment by segment.

    Parameters
    ----------
    coloured
        The system.
    colour
        Which of its colours.
    plan
        How much fits.

    Yields
    ------
    Its parts; entries of a long row may lie in several.
    """
    first_row, end_row = rows_of_colour(coloured, colour)
    offsets = coloured.system.matrix.row_offsets[first_row : end_row + 1].astype(np.int64)
    begin, end = int(offsets[0]), int(offsets[-1])
    columns = coloured.system.matrix.columns[begin:end]
    values = coloured.system.matrix.values[begin:end]
    offsets -= begin
    if plan.x_stays:
        yield from _cut(0, offsets, columns.astype(np.int32), values, plan.buffer_bytes)
        return
    segment_of = columns // plan.window
    row_of = np.repeat(np.arange(end_row - first_row), np.diff(offsets))
    for segment in range(plan.segments):
        there = segment_of == segment
        if not there.any():
            continue
        lengths = np.bincount(row_of[there], minlength=end_row - first_row)
        own = np.concatenate(([0], np.cumsum(lengths)))
        local = (columns[there] - segment * plan.window).astype(np.int32)
        yield from _cut(segment, own, local, values[there], plan.buffer_bytes)


def rows_of_colour(coloured: ColouredSystem, colour: int) -> tuple[int, int]:
    """Return the first row of a colour, and the end of its last.

    Parameters
    ----------
    coloured
        The system.
    colour
        Which of its colours.
    """
    first, end = (int(bound) for bound in coloured.bounds[colour : colour + 2])
    groups = coloured.system.group_offsets
    return (first, end) if groups is None else (int(groups[first]), int(groups[end]))


def _cut(
    segment: int, offsets: IndexArray, columns: IndexArray, values: FloatArray, most_bytes: int
) -> Iterator[Part]:
    """Cut rows into parts of at most so many bytes, each of one entry at least."""
    begin, total = 0, len(columns)
    while begin < total:
        row = int(np.searchsorted(offsets, begin, side="right")) - 1
        # An entry takes 12 bytes; the rows that end before `row + k` take 4 more each, and 8.
        sizes = 12 * (offsets[row + 1 :] - begin) + 4 * np.arange(1, len(offsets) - row) + 4
        whole = int(np.searchsorted(sizes, most_bytes, side="right"))
        end = int(offsets[row + whole]) if whole else 0
        if end <= begin:
            end = min(begin + max(1, (most_bytes - 8) // 12), int(offsets[row + 1]), total)
            whole = 1
        own = np.clip(offsets[row : row + whole + 1], begin, end) - begin
        yield Part(segment, row, own.astype(np.int32), columns[begin:end], values[begin:end])
        begin = end
