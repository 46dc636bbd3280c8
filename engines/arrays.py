"""Types of arrays, and what is done with indices."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
SingleArray: TypeAlias = NDArray[np.float32]
IndexArray: TypeAlias = NDArray[np.integer]
MaskArray: TypeAlias = NDArray[np.bool_]

INT32_MAX = 2**31 - 1

LOOKED_AT = 1 << 17
"""Numbers that are looked at together: they fit into a core's cache."""

SHARED_OUT = 8
"""From so many parts on the cores share them, in as many threads at most."""

_Number = TypeVar("_Number", bound=np.generic)
_Seen = TypeVar("_Seen")


def index_dtype(largest: int) -> type[np.signedinteger]:
    """Return the narrowest index type that holds `largest`: int32, or int64 beyond 2³¹ − 1.

    Parameters
    ----------
    largest
        The largest index, offset or count that will be stored.
    """
    return np.int32 if largest <= INT32_MAX else np.int64


def sums_by_row(row: IndexArray, values: FloatArray, num_rows: int) -> FloatArray:
    """Return the sum of the values of each row, shape (num_rows,), for entries given apart."""
    return np.bincount(row, weights=values, minlength=num_rows).astype(np.float64, copy=False)


def ranges(starts: IndexArray, lengths: IndexArray) -> NDArray[np.int64]:
    """Return the numbers of ranges, one range after the other.

    Parameters
    ----------
    starts, lengths
        Shape (ranges,): the first number of each, and how many there are.
    """
    behind = np.cumsum(lengths, dtype=np.int64)
    total = int(behind[-1]) if len(behind) else 0
    shift = starts.astype(np.int64, copy=False) - (behind - lengths)
    numbers: NDArray[np.int64] = np.arange(total) + np.repeat(shift, lengths)
    return numbers


def offsets_of(lengths: IndexArray | MaskArray) -> NDArray[np.int64]:
    """Return where each of several lists starts in all of them together, and where the last ends.

    Parameters
    ----------
    lengths
        Shape (lists,): how long each is.

    Returns
    -------
    Shape (lists + 1,).
    """
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def runs_of(numbers: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return where runs of numbers that follow each other begin, and the numbers behind their last.

    Parameters
    ----------
    numbers
        One-dimensional, none of them negative.

    Returns
    -------
    Two arrays, shape (runs,).
    """
    starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
    lasts = np.append(starts[1:], len(numbers))[: len(starts)] - 1
    return numbers[starts], numbers[lasts] + 1


def distinct(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in ascending order, each once.

    NumPy's `unique` does so too, but its first call loads masked arrays: 0.02 s, as long as many a
    first solve.

    Parameters
    ----------
    numbers
        One-dimensional.
    """
    ordered = np.sort(numbers)
    kept = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=kept[1:])
    return ordered[kept]


def each_once(values: NDArray[_Number]) -> NDArray[_Number]:
    """Return an array, or one of its numbers where it repeats that one in no memory of its own.

    For whoever asks which numbers there are, and not where.

    Parameters
    ----------
    values
        One-dimensional, such as what `numpy.broadcast_to` makes of a number.
    """
    return values[:1] if values.strides == (0,) else values


def of_parts(
    values: NDArray[_Number], look: Callable[[NDArray[_Number]], _Seen]
) -> Iterable[_Seen]:
    """Return what a function says of the parts of an array, looked at by several threads if long.

    Parameters
    ----------
    values
        One-dimensional.
    look
        Asked of each part, of `LOOKED_AT` numbers; NumPy lets other threads work meanwhile.
    """
    firsts = range(0, len(values), LOOKED_AT)
    parts = (values[first : first + LOOKED_AT] for first in firsts)
    if len(firsts) < SHARED_OUT:
        return map(look, parts)
    with ThreadPoolExecutor(min(os.cpu_count() or 1, SHARED_OUT)) as pool:
        return list(pool.map(look, parts))


def extremes(values: NDArray[Any]) -> tuple[float, float]:
    """Return the least and the greatest number, infinite ones for none; NaN where one is NaN.

    Parameters
    ----------
    values
        One-dimensional.
    """
    found = list(of_parts(each_once(values), lambda part: (part.min(), part.max())))
    if not found:
        return np.inf, -np.inf
    least, greatest = np.array(found, dtype=np.float64).T
    return float(least.min()), float(greatest.max())


def left_the_numbers(values: FloatArray, start: FloatArray) -> bool:
    """Return whether sweeps have led to what is no number, or from finite numbers to infinity.

    Parameters
    ----------
    values
        The iterate, shape (states,).
    start
        The first one, shape (states,). Where a value of it is infinite others may become so.
    """
    least, greatest = extremes(values)
    if np.isnan(least):
        return True
    return greatest == np.inf and extremes(start)[1] < np.inf
