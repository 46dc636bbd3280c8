"""Shared blocks in coordinate form, and where instances of them lie, as one hybrid matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, IndexArray
from engines.diagrams.hybrid import HybridMatrix


@dataclass(frozen=True)
class CoordinateBlock:
    """A sparse block: the value of each entry, with its row and column in the block.

    Parameters
    ----------
    height, width
        Rows and columns.
    values
        Shape (entries,), float64.
    rows, columns
        Shape (entries,), from 0 on. Entries of one place are added up.
    """

    height: int
    width: int
    values: FloatArray
    rows: IndexArray
    columns: IndexArray

    def check(self) -> None:
        """Raise ValueError unless the entries lie in the block and are finite numbers."""
        if not len(self.values) == len(self.rows) == len(self.columns):
            raise ValueError(
                f"{len(self.values)} values, but {len(self.rows)} rows and {len(self.columns)} "
                "columns"
            )
        for what, places, size in (
            ("row", self.rows, self.height),
            ("column", self.columns, self.width),
        ):
            if len(places) and not 0 <= int(places.min()) <= int(places.max()) < size:
                raise ValueError(f"a {what} of an entry is not one of the block's {size}")
        if not np.isfinite(self.values).all():
            raise ValueError("a value is no finite number")


@dataclass(frozen=True)
class BlockInstance:
    """A place of a block in the matrix.

    Parameters
    ----------
    block
        The block's number.
    row, column
        Where its first row and column lie.
    """

    block: int
    row: int
    column: int


def hybrid_of(
    size: int, blocks: Sequence[CoordinateBlock], instances: Sequence[BlockInstance]
) -> HybridMatrix:
    """Return the square matrix that is the sum of all instances.

    Parameters
    ----------
    size
        Rows of the matrix.
    blocks
        The blocks.
    instances
        Where they lie; they may overlap.

    Raises
    ------
    ValueError
        For an entry outside its block, or an instance outside the matrix.

    Notes
    -----
    All jobs of a strip have as many rows as it. Strips begin and end where instances do; a block
    that a border cuts is stored as the parts between the borders, each once.
    """
    _check(size, blocks, instances)
    borders = np.unique(
        [
            *(0, size),
            *(place.row for place in instances),
            *(place.row + blocks[place.block].height for place in instances),
        ]
    ).astype(np.int64)
    pieces = _Pieces(blocks)
    jobs = []
    for place in instances:
        end = place.row + blocks[place.block].height
        first, last = (int(at) for at in np.searchsorted(borders, (place.row, end)))
        for strip in range(first, last):
            cut = (int(borders[strip]) - place.row, int(borders[strip + 1]) - place.row)
            jobs.append((strip, place.column, pieces.number(place.block, *cut)))
    jobs.sort()
    strips = np.array([strip for strip, _, _ in jobs], dtype=np.int64)
    numbers = np.array([number for _, _, number in jobs], dtype=np.int32)
    offsets, columns, values = pieces.entries()
    block_rows = pieces.rows()
    entries = np.diff(offsets[block_rows])
    return HybridMatrix(
        block_rows=block_rows,
        local_offsets=offsets,
        local_columns=columns,
        local_values=values,
        strip_states=borders,
        strip_jobs=np.searchsorted(strips, np.arange(len(borders))).astype(np.int64),
        job_blocks=numbers,
        job_columns=np.array([column for _, column, _ in jobs], dtype=np.int64),
        job_choices=None,
        num_columns=size,
        num_entries=int(entries[numbers].sum()),
        level=0,
    )


def _check(
    size: int, blocks: Sequence[CoordinateBlock], instances: Sequence[BlockInstance]
) -> None:
    """Raise ValueError for an entry outside its block, or an instance outside the matrix."""
    for block in blocks:
        block.check()
    for place in instances:
        if not 0 <= place.block < len(blocks):
            raise ValueError(f"instance of block {place.block}, of {len(blocks)} blocks")
        block = blocks[place.block]
        fits = 0 <= place.row <= size - block.height and 0 <= place.column <= size - block.width
        if not fits:
            raise ValueError(
                f"block {place.block} of {block.height} rows and {block.width} columns at row "
                f"{place.row}, column {place.column} lies outside of {size}"
            )


class _Pieces:
    """Ranges of rows of blocks, each numbered when it is first asked for."""

    def __init__(self, blocks: Sequence[CoordinateBlock]) -> None:
        self._blocks = [_in_rows(block) for block in blocks]
        self._numbers: dict[tuple[int, int, int], int] = {}

    def number(self, block: int, first: int, end: int) -> int:
        """Return the number of rows `first` to `end` − 1 of a block."""
        return self._numbers.setdefault((block, first, end), len(self._numbers))

    def rows(self) -> NDArray[np.int64]:
        """Return the running number of each piece's first row, and of the end."""
        heights = [end - first for _, first, end in self._numbers]
        return np.concatenate(([0], np.cumsum(heights, dtype=np.int64))).astype(np.int64)

    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.int32], FloatArray]:
        """Return where each row's entries start, and columns and values of all pieces."""
        lengths: list[NDArray[np.int64]] = [np.zeros(1, dtype=np.int64)]
        columns: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
        values: list[FloatArray] = [np.empty(0)]
        for block, first, end in self._numbers:
            offsets, all_columns, all_values = self._blocks[block]
            here = slice(int(offsets[first]), int(offsets[end]))
            lengths.append(np.diff(offsets[first : end + 1]))
            columns.append(all_columns[here])
            values.append(all_values[here])
        offsets = np.cumsum(np.concatenate(lengths)).astype(np.int64)
        return offsets, np.concatenate(columns), np.concatenate(values)


def _in_rows(
    block: CoordinateBlock,
) -> tuple[NDArray[np.int64], NDArray[np.int32], FloatArray]:
    """Return a block in compressed rows, columns ascending, entries of one place added up."""
    place = np.asarray(block.rows, dtype=np.int64) * max(block.width, 1) + block.columns
    places, inverse = np.unique(place, return_inverse=True)
    values = np.bincount(inverse, block.values, len(places)).astype(np.float64)
    rows = places // max(block.width, 1)
    offsets = np.searchsorted(rows, np.arange(block.height + 1)).astype(np.int64)
    return offsets, (places % max(block.width, 1)).astype(np.int32), values
