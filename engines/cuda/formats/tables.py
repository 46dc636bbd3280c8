"""Hash tables on the device, and the numbering of what they found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray
from engines.cuda.driver import cupy
from engines.cuda.formats.layout import SLICE, Source
from engines.cuda.modules import WARP, Launcher
from engines.cuda.transfer import to_device
from engines.errors import UnsupportedError
from engines.model.choice import LONG_ROWS, MOST_CODES, code_bytes

MODULE = "formats/distinct"
HASH_MASK = 0xFFFFFFFF
"""Bits of a hash that are used; fewer make collisions."""

_EMPTY = np.uint64(2**64 - 1)


class Table:
    """An open-addressing table of 64-bit keys.

    Parameters
    ----------
    limit
        The most keys that are wanted; a kernel that finds more gives up.
    """

    def __init__(self, limit: int) -> None:
        cp = cupy()
        self.limit = limit
        slots = 1 << (2 * limit - 1).bit_length()
        self.keys = cp.empty(slots, dtype=cp.uint64)
        self.keys.data.memset_async(0xFF, self.keys.nbytes)
        self.count = cp.zeros(1, dtype=cp.int32)

    @property
    def mask(self) -> Any:
        """The number of slots less one, as the kernels take it."""
        return cupy().uint32(len(self.keys) - 1)

    @property
    def searched(self) -> tuple[Any, ...]:
        """What a kernel needs to insert keys."""
        cp = cupy()
        return (self.keys, self.mask, cp.uint32(HASH_MASK), self.count, cp.int32(self.limit))

    def found(self) -> int | None:
        """Return how many keys there are, or None for more than the limit."""
        count = int(self.count.get()[0])
        return count if count <= self.limit else None


@dataclass(frozen=True)
class Numbered:
    """Keys and their numbers.

    Parameters
    ----------
    keys
        The keys in ascending order, on the host.
    table
        The table that holds them.
    codes
        The number of the key in each slot, on the device.
    """

    keys: NDArray[np.uint64]
    table: Table
    codes: Any

    @property
    def width(self) -> int:
        """Bytes of a code."""
        return code_bytes(len(self.keys))


def numbered(table: Table, what: str) -> Numbered:
    """Number the keys of a table in ascending order.

    Parameters
    ----------
    table
        The table, filled.
    what
        What the keys are, for the message.

    Raises
    ------
    UnsupportedError
        When there are more keys than the table's limit.
    """
    if table.found() is None:
        raise UnsupportedError(f"there are more than {table.limit} {what}")
    keys = table.keys.get()
    used = np.flatnonzero(keys != _EMPTY)
    order = used[np.argsort(keys[used])]
    codes = np.zeros(len(keys), dtype=np.int32)
    codes[order] = np.arange(len(order), dtype=np.int32)
    return Numbered(keys[order], table, to_device(codes, np.int32))


def _threads_a_row(source: Source) -> int:
    """Return how many threads look through a row: a thread alone would hold up all others."""
    return WARP if source.entries >= LONG_ROWS * source.rows else 1


def gather_values(source: Source, launcher: Launcher, sample: Sample, limit: int) -> Table:
    """Return the distinct values of a sample of rows.

    Parameters
    ----------
    source
        The matrix.
    launcher
        Launches kernels for its type of row offsets.
    sample
        Which rows.
    limit
        The most values that are wanted.
    """
    table, wide, share = Table(limit), launcher.offset_dtype, _threads_a_row(source)
    launcher.launch(
        "gather_values",
        share * sample.rows,
        *(source.row_offsets, source.values, source.divisors_within, wide(source.rows)),
        *(wide(sample.rows), wide(sample.stride), cupy().int32(share), *table.searched),
        module=MODULE,
    )
    return table


@dataclass(frozen=True)
class Sample:
    """Whole slices of 32 rows, spread over a matrix.

    Parameters
    ----------
    rows
        How many rows, those beyond the end of the matrix included.
    stride
        Every how many slices one is taken.
    """

    rows: int
    stride: int

    @classmethod
    def of(cls, rows: int, most: int | None = None) -> Sample:
        """Return a sample of about so many of the rows, all by default."""
        slices = -(-rows // SLICE)
        stride = 1 if most is None else max(1, slices * SLICE // most)
        return cls._every(rows, stride)

    @classmethod
    def _every(cls, rows: int, stride: int) -> Sample:
        slices = -(-rows // SLICE)
        return cls(rows if stride == 1 else -(-slices // stride) * SLICE, stride)


def encoded_divisors(source: Source, launcher: Launcher) -> tuple[Any | None, Any | None]:
    """Return codes and numbers of the divisors that are kept apart.

    Parameters
    ----------
    source
        The matrix.
    launcher
        Launches kernels for its type of row offsets.

    Returns
    -------
    Codes of 16 bits and the reciprocals of the distinct divisors; no codes and a reciprocal a row
    where these are too many; twice None where nothing is kept apart.

    Raises
    ------
    UnsupportedError
        When a divisor is so large or so small that its reciprocal has fewer digits or none.
    """
    if not source.scale_apart or source.divisors is None:
        return None, None
    cp, table, wide = cupy(), Table(MOST_CODES), launcher.offset_dtype
    every = Sample.of(source.rows)
    launcher.launch(
        "gather_numbers",
        every.rows,
        *(source.divisors, wide(source.rows), wide(every.rows), wide(1), *table.searched),
        module=MODULE,
    )
    if table.found() is None:
        return None, to_device(reciprocals(source.divisors.get()), np.float64)
    distinct = numbered(table, "divisors")
    codes = cp.empty(source.rows, dtype=cp.uint16)
    launcher.launch(
        "encode_numbers",
        source.rows,
        *(source.divisors, wide(source.rows), table.keys, distinct.codes, table.mask),
        *(cp.uint32(HASH_MASK), codes, cp.int32(2)),
        module=MODULE,
    )
    return codes, to_device(reciprocals(distinct.keys.view(np.float64)), np.float64)


def reciprocals(divisors: FloatArray) -> FloatArray:
    """Return the reciprocal of each number.

    Parameters
    ----------
    divisors
        The numbers, none of them zero.

    Raises
    ------
    UnsupportedError
        When a number is so large or so small that its reciprocal has fewer digits or none.
    """
    least = np.finfo(np.float64).tiny
    size = np.abs(divisors)
    if divisors.size and not (least <= size.min() and size.max() <= 1.0 / least):
        raise UnsupportedError(
            f"rows are divided by numbers from {size.min()} to {size.max()}, some of which have no "
            "reciprocal in double precision"
        )
    return 1.0 / divisors
