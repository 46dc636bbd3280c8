"""A row dictionary of a matrix that is never expanded: each row is followed through its jobs.

Rows are hashed, and those of one hash share a code. A second pass compares every row with its
pattern, entry by entry, so that no hash is trusted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX
from engines.cuda.diagram_rows import DiagramRows
from engines.cuda.diagram_upload import MODULE
from engines.cuda.driver import cupy
from engines.cuda.formats.layout import Layout
from engines.cuda.formats.patterns import FEW_PATTERNS, room_for_codes, row_dictionary
from engines.cuda.formats.tables import Table
from engines.cuda.modules import Launcher
from engines.cuda.prepare import _scan
from engines.cuda.transfer import to_device
from engines.errors import UnsupportedError
from engines.model.choice import PAIR_BYTES

SEEDS = (0, 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)
"""What hashes begin with, one after the other where different rows have had the same hash."""

HASH_BITS = 2**63 - 1
"""Bits of a hash that are used; fewer make different rows have the same hash."""

_EMPTY = np.uint64(2**64 - 1)


@dataclass(frozen=True)
class _Found:
    """The distinct hashes of the rows.

    Parameters
    ----------
    source
        The rows; without a right-hand side where that makes too many patterns.
    seed
        What the hashes began with.
    table
        The hashes.
    chosen
        The smallest row of each hash, ascending, on the device.
    codes
        The number of the hash in each slot, on the device.
    """

    source: DiagramRows
    seed: int
    table: Table
    chosen: Any
    codes: Any


def build(rows: DiagramRows, launcher: Launcher, most: int | None = None) -> Layout:
    """Build the patterns and the codes of rows that are not expanded.

    Parameters
    ----------
    rows
        The rows. A right-hand side becomes part of the patterns where they stay few.
    launcher
        Launches kernels for row offsets of 32 bits.
    most
        The most patterns that are wanted; None for any number.

    Returns
    -------
    What `engines.cuda.formats.patterns.build` makes of the expanded rows, to the last bit, but for
    entries on the diagonal, which are left out instead of being zero.

    Raises
    ------
    UnsupportedError
        When there are more patterns than that, or when different rows have the same hash whatever
        the hashes begin with.
    """
    most = min(rows.rows if most is None else most, rows.rows, INT32_MAX // 4)
    for seed in SEEDS:
        found = _gathered(rows, launcher, most, seed)
        layout = _encoded(found, launcher)
        if layout is not None:
            return layout
    raise UnsupportedError(f"different rows have the same hash by each of {len(SEEDS)} functions")


def _gathered(rows: DiagramRows, launcher: Launcher, most: int, seed: int) -> _Found:
    """Return the distinct rows, with the right-hand side if few, else without it."""
    cp = cupy()
    without = replace(rows, offset=None)
    few = min(FEW_PATTERNS, most)
    ways = [(rows, few)] if rows.offset is not None else []
    ways += [(without, limit) for limit in sorted({few, most})]
    for way, limit in ways:
        table = Table(limit)
        firsts = cp.empty(len(table.keys), dtype=cp.uint64)
        firsts.data.memset_async(0xFF, firsts.nbytes)
        launcher.launch(
            "gather_unexpanded_rows",
            rows.rows,
            *(*way.arguments, cp.int32(rows.rows), cp.uint64(seed), cp.uint64(HASH_BITS)),
            *(*table.searched, firsts),
            module=MODULE,
        )
        if table.found() is not None:
            return _numbered(way, seed, table, firsts.get())
        del table, firsts
    raise UnsupportedError(f"there are more than {most} distinct rows")


def _numbered(source: DiagramRows, seed: int, table: Table, firsts: Any) -> _Found:
    used = np.flatnonzero(table.keys.get() != _EMPTY)
    order = used[np.argsort(firsts[used])]
    codes = np.zeros(len(firsts), dtype=np.int32)
    codes[order] = np.arange(len(order), dtype=np.int32)
    chosen = to_device(firsts[order], np.uint64)
    return _Found(source, seed, table, chosen, to_device(codes, np.int32))


def _encoded(found: _Found, launcher: Launcher) -> Layout | None:
    """Return the layout, or None where rows of the same hash are different."""
    cp, source, patterns = cupy(), found.source, len(found.chosen)
    starts = cp.zeros(patterns + 1, dtype=launcher.offset_dtype)
    chosen = (*source.arguments, found.chosen, cp.int32(patterns))
    launcher.launch("measure_unexpanded_rows", patterns, *chosen, starts[1:], module=MODULE)
    _scan(starts, launcher)
    pairs = cp.empty((int(starts[-1:].get()[0]), PAIR_BYTES // 8))
    givens = None if source.offset is None else cp.empty(patterns)
    launcher.launch("copy_unexpanded_rows", patterns, *chosen, starts, pairs, givens, module=MODULE)
    codes = room_for_codes(source.rows, patterns)
    different = cp.zeros(1, dtype=cp.int32)
    keys, mask, hash_mask, *_ = found.table.searched
    launcher.launch(
        "encode_unexpanded_rows",
        source.rows,
        *(*source.arguments, cp.int32(source.rows), cp.uint64(found.seed), cp.uint64(HASH_BITS)),
        *(keys, mask, hash_mask, found.codes, starts, pairs, givens, codes),
        cp.int32(codes.itemsize),
        different,
        module=MODULE,
    )
    if int(different.get()[0]):
        return None
    return row_dictionary(codes, starts, pairs, givens)
