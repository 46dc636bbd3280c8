"""A row dictionary: a code a row, and the distinct rows as lists of pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX
from engines.cuda.driver import cupy
from engines.cuda.formats.layout import Layout, Source, nbytes
from engines.cuda.formats.tables import Sample, Table
from engines.cuda.formats.values import CODE_TYPES
from engines.cuda.modules import Launcher
from engines.cuda.prepare import _scan
from engines.cuda.transfer import to_device
from engines.errors import UnsupportedError
from engines.model.choice import PAIR_BYTES, Format, code_bytes

MODULE = "formats/rows"

FEW_PATTERNS = 1 << 16
"""The most patterns that are first looked for."""

_EMPTY = np.uint64(2**64 - 1)


def build(source: Source, launcher: Launcher, most: int | None = None) -> Layout:
    """Build the patterns and the codes.

    Parameters
    ----------
    source
        The matrix. A right-hand side becomes part of the patterns where they stay few.
    launcher
        Launches kernels for its type of row offsets.
    most
        The most patterns that are wanted; None for any number.

    Raises
    ------
    UnsupportedError
        When there are more patterns than that, or than a table of 32-bit slots holds.
    """
    source, table, slots = _gathered(source, launcher, source.rows if most is None else most)
    chosen, codes_of_slots = _numbered(source, table, slots, launcher)
    codes = room_for_codes(source.rows, len(chosen))
    launcher.launch(
        "encode_rows",
        source.rows,
        *(slots, launcher.offset_dtype(source.rows), codes_of_slots, codes),
        cupy().int32(codes.itemsize),
        module=MODULE,
    )
    return row_dictionary(codes, *_copied(source, chosen, launcher))


def room_for_codes(rows: int, patterns: int) -> Any:
    """Return room on the device for the code of each row, shape (rows,), as narrow as may be.

    Parameters
    ----------
    rows
        Number of rows.
    patterns
        How many distinct rows there are.
    """
    cp = cupy()
    widths = {1: cp.uint8, 2: cp.uint16, 4: cp.uint32}
    return cp.empty(rows, dtype=widths[code_bytes(patterns)])


def row_dictionary(codes: Any, starts: Any, pairs: Any, givens: Any | None) -> Layout:
    """Return the layout of rows by their codes; few patterns lie in shared memory.

    Parameters
    ----------
    codes
        The pattern of each row, shape (rows,), of unsigned integers.
    starts
        Where each pattern starts, shape (patterns + 1,).
    pairs
        The patterns' columns, relative to the row, and values.
    givens
        The right-hand side of each pattern, shape (patterns,); None where it is not a part of them.
    """
    cp = cupy()
    size = nbytes(starts, pairs, givens)
    # Copied to each block's shared memory; a larger dictionary is read through the cache, which
    # keeps what is used of it.
    staged = size <= 24_576
    counts = (cp.int32(len(starts) - 1), cp.int32(len(pairs)))
    return Layout(
        Format.PATTERNS,
        (codes, starts, pairs, givens, *counts),
        nbytes(codes) + size,
        defines=(f"CODE={CODE_TYPES[codes.itemsize]}", *(("STAGED",) if staged else ())),
        shared_bytes=size if staged else 0,
        holds_offset=givens is not None,
    )


def gather_rows(
    source: Source, launcher: Launcher, sample: Sample, limit: int, slots: Any | None
) -> Table:
    """Return the distinct rows of a sample, as the row that came first to each slot.

    Parameters
    ----------
    source
        The matrix; with a right-hand side, rows that differ in it are different.
    launcher
        Launches kernels for its type of row offsets.
    sample
        Which rows.
    limit
        The most distinct rows that are wanted.
    slots
        Takes the slot of each row, shape (rows,), or None.
    """
    table, wide = Table(limit), launcher.offset_dtype
    launcher.launch(
        "gather_rows",
        sample.rows,
        *(source.row_offsets, source.columns, source.values, source.divisors, source.offset),
        *(source.row_states, wide(source.rows), wide(sample.rows), wide(sample.stride)),
        *(*table.searched, slots),
        module=MODULE,
    )
    return table


def _gathered(source: Source, launcher: Launcher, most: int) -> tuple[Source, Table, Any]:
    """Return the distinct rows, with the right-hand side if few, else without it."""
    every = Sample.of(source.rows)
    slots = cupy().empty(source.rows, dtype=cupy().int32)
    without = replace(source, offset=None)
    most = min(most, source.rows, INT32_MAX // 4)
    few = min(FEW_PATTERNS, most)
    ways = [(source, few)] if source.offset is not None else []
    ways += [(without, limit) for limit in sorted({few, most})]
    for way, limit in ways:
        table = gather_rows(way, launcher, every, limit, slots)
        if table.found() is not None:
            return way, table, slots
        del table
    raise UnsupportedError(f"there are more than {most} distinct rows")


def _numbered(source: Source, table: Table, slots: Any, launcher: Launcher) -> tuple[Any, Any]:
    """Return the smallest row of each kind, ascending, and the code of each slot."""
    launcher.launch(
        "find_smallest_rows",
        source.rows,
        *(slots, launcher.offset_dtype(source.rows), table.keys),
        module=MODULE,
    )
    keys = table.keys.get()
    used = np.flatnonzero(keys != _EMPTY)
    order = used[np.argsort(keys[used])]
    codes = np.zeros(len(keys), dtype=np.int32)
    codes[order] = np.arange(len(order), dtype=np.int32)
    return to_device(keys[order], np.uint64), to_device(codes, np.int32)


def _copied(source: Source, chosen: Any, launcher: Launcher) -> tuple[Any, Any, Any | None]:
    """Return where each pattern starts, the pairs of all, and their right-hand sides."""
    cp, patterns = cupy(), len(chosen)
    starts = cp.zeros(patterns + 1, dtype=launcher.offset_dtype)
    launcher.launch(
        "measure_patterns",
        patterns,
        *(source.row_offsets, chosen, cp.int32(patterns), starts[1:]),
        module=MODULE,
    )
    _scan(starts, launcher)
    pairs = cp.empty((int(starts[-1:].get()[0]), PAIR_BYTES // 8))
    givens = None if source.offset is None else cp.empty(patterns)
    launcher.launch(
        "copy_patterns",
        patterns,
        *(source.row_offsets, source.columns, source.values, source.divisors, source.offset),
        *(source.row_states, chosen, cp.int32(patterns), starts, pairs, givens),
        module=MODULE,
    )
    return starts, pairs, givens
