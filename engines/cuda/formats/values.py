"""A value dictionary: a code beside each column, and the distinct values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.cuda.driver import cupy
from engines.cuda.formats.layout import Layout, Source, nbytes
from engines.cuda.formats.tables import (
    HASH_MASK,
    MODULE,
    Numbered,
    Sample,
    encoded_divisors,
    gather_values,
    numbered,
)
from engines.cuda.modules import Launcher
from engines.cuda.transfer import to_device
from engines.errors import UnsupportedError
from engines.model.choice import MOST_CODES, Format

CODE_TYPES = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int"}


@dataclass(frozen=True)
class Dictionary:
    """Distinct things of a matrix, and whether its scale is kept apart from them."""

    source: Source
    distinct: Numbered

    @property
    def cost(self) -> int:
        """Bytes of codes, and of the scale's where it is apart."""
        apart = 2 * self.source.rows if self.source.scale_apart else 0
        return self.distinct.width * self.source.entries + apart


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
        When there are more values than codes.
    """
    cp, wide = cupy(), launcher.offset_dtype
    dictionary = best_dictionary(source, launcher)
    source, values = dictionary.source, dictionary.distinct
    codes = cp.empty(source.entries, dtype=cp.uint8 if values.width == 1 else cp.uint16)
    launcher.launch(
        "encode_values",
        source.rows,
        *(source.row_offsets, source.values, source.divisors_within, wide(source.rows)),
        *(values.table.keys, values.codes, values.table.mask, cp.uint32(HASH_MASK)),
        *(codes, cp.int32(values.width)),
        module=MODULE,
    )
    columns, column_type = source.columns, "int"
    if columns_are_near(source, launcher):
        columns, column_type = cp.empty(source.entries, dtype=cp.int16), "short"
        launcher.launch(
            "encode_distances",
            source.rows,
            *(source.row_offsets, source.columns, source.row_states, wide(source.rows), columns),
            module=MODULE,
        )
    numbers = to_device(values.keys.view(np.float64), np.float64)
    arguments = (source.row_offsets, columns, codes, numbers, *encoded_divisors(source, launcher))
    return Layout(
        Format.VALUES,
        arguments,
        nbytes(*arguments),
        defines=(f"CODE={CODE_TYPES[values.width]}", f"COLUMN={column_type}"),
    )


def best_dictionary(source: Source, launcher: Launcher) -> Dictionary:
    """Return the distinct values, with the scale of the rows within or apart, whatever is smaller.

    Parameters
    ----------
    source, launcher
        As in `build`.

    Raises
    ------
    UnsupportedError
        When there are more values than codes.
    """
    found: list[Dictionary] = []
    for way in source.scales():
        table = gather_values(way, launcher, Sample.of(way.rows), MOST_CODES)
        if table.found() is not None:
            found.append(Dictionary(way, numbered(table, "distinct values")))
            if found[-1].distinct.width == 1:
                break
    if not found:
        raise UnsupportedError(f"there are more than {MOST_CODES} distinct values")
    return min(found, key=lambda dictionary: dictionary.cost)


def columns_are_near(source: Source, launcher: Launcher) -> bool:
    """Return whether 16 bits hold the distance of each column from its row's state.

    Parameters
    ----------
    source, launcher
        As in `build`.
    """
    farthest: Any = cupy().zeros(1, dtype=cupy().int32)
    arguments = (source.row_offsets, source.columns, source.row_states)
    rows = launcher.offset_dtype(source.rows)
    launcher.launch("measure_distances", source.rows, *arguments, rows, farthest, module=MODULE)
    # 16 bits hold as much on either side.
    return int(farthest.get()[0]) < 1 << 15
