"""An entry dictionary: one code for the distance of a column and the value together."""

from __future__ import annotations

from engines.backend import cupy
from engines.cuda.formats.layout import BESIDE, Layout, Source, nbytes
from engines.cuda.formats.slices import sliced
from engines.cuda.formats.tables import (
    HASH_MASK,
    Numbered,
    Sample,
    encoded_divisors,
    gather_pairs,
    gather_values,
    numbered,
    parts_of,
)
from engines.cuda.formats.values import CODE_TYPES
from engines.cuda.modules import Launcher
from engines.cuda.transfer import to_device
from engines.errors import UnsupportedError
from engines.formats.choice import MOST_CODES, Format

STAGED_BYTES = 24_576
"""Up to this size a dictionary is copied to each block's shared memory; a larger one is read
through the cache, which keeps what is used of it."""


def build(source: Source, launcher: Launcher) -> Layout:
    """Build the dictionary and the codes.

    Parameters
    ----------
    source
        The matrix.
    launcher
        Launches kernels for its type of row offsets.

    Raises
    ------
    UnsupportedError
        When there are more pairs than codes.
    """
    cp = cupy()
    source, values, pairs = _best_pairs(source, launcher)
    slices = sliced(source, launcher, pairs.width)
    codes = cp.empty(slices.slots, dtype=cp.uint8 if pairs.width == 1 else cp.uint16)
    launcher.launch(
        "fill_entries",
        source.rows,
        *(source.row_offsets, source.columns, source.values, source.divisors_within),
        *(source.row_states, launcher.offset_dtype(source.rows), *slices.placing),
        *(values.table.keys, values.codes, values.table.mask),
        *(pairs.table.keys, pairs.codes, pairs.table.mask, cp.uint32(HASH_MASK)),
        *(codes, cp.int32(pairs.width)),
        module=BESIDE,
    )
    distances, numbers = (to_device(part, part.dtype) for part in parts_of(pairs.keys, values.keys))
    scale = encoded_divisors(source, launcher)
    size = nbytes(distances, numbers)
    staged = size <= STAGED_BYTES
    return Layout(
        Format.ENTRIES,
        (*slices.arguments, codes, distances, numbers, cp.int32(len(pairs.keys)), *scale),
        slices.nbytes + pairs.width * source.entries + size + nbytes(*scale),
        defines=(f"CODE={CODE_TYPES[pairs.width]}", *(("STAGED",) if staged else ())),
        shared_bytes=size if staged else 0,
    )


def _best_pairs(source: Source, launcher: Launcher) -> tuple[Source, Numbered, Numbered]:
    """Return the matrix, its values and its pairs, the scale within or apart as is smaller."""
    found: list[tuple[int, Source, Numbered, Numbered]] = []
    for way in source.scales():
        every = Sample.of(way.rows)
        value_table = gather_values(way, launcher, every, MOST_CODES)
        if value_table.found() is None:
            continue
        values = numbered(value_table, "distinct values")
        table = gather_pairs(way, launcher, every, value_table, values.codes, MOST_CODES)
        if table.found() is None:
            continue
        pairs = numbered(table, "distinct pairs")
        cost = pairs.width * way.entries + (2 * way.rows if way.scale_apart else 0)
        found.append((cost, way, values, pairs))
        if pairs.width == 1:
            break
    if not found:
        raise UnsupportedError(
            f"there are more than {MOST_CODES} distinct pairs of a distance and a value"
        )
    _, way, values, pairs = min(found, key=lambda one: one[0])
    return way, values, pairs
