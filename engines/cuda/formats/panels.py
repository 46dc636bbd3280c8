"""Panels of states whose part of the iterate a block keeps in shared memory, for long rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX
from engines.cuda.driver import cupy
from engines.cuda.formats.layout import Layout, Scan, Source, nbytes
from engines.cuda.formats.tables import HASH_MASK, Numbered, Sample, gather_values, numbered
from engines.cuda.formats.tuning import PanelTuning
from engines.cuda.modules import Launcher
from engines.cuda.prepare import _scan
from engines.cuda.transfer import to_device
from engines.errors import UnsupportedError
from engines.formats.panels import OCTET, TILE, shares
from engines.model.choice import Format

MODULE = "formats/panels"

MOST_PANELS = 64
"""The most panels; as in the kernels."""

RESERVED_BYTES = 1024
"""Shared memory that the system takes of each block."""


@dataclass(frozen=True)
class Cut:
    """How states are cut into panels on a device.

    Parameters
    ----------
    panels, width
        How many there are, and the states of each but the last.
    blocks
        Blocks that run at a time.
    block
        Threads of each.
    most_codes
        The most values of a dictionary.
    """

    panels: int
    width: int
    blocks: int
    block: int
    most_codes: int

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block: its panel, the zero behind it, and a dictionary."""
        return 8 * (self.width + 2 + self.most_codes)

    @property
    def copied_bytes(self) -> int:
        """Bytes of the iterate that the blocks of a sweep copy."""
        return 8 * self.width * max(self.blocks, self.panels)


def cut(states: int, launcher: Launcher, tuning: PanelTuning = PanelTuning()) -> Cut | None:
    """Return how states are cut into panels, or None where there would be too many.

    Parameters
    ----------
    states
        How many there are.
    launcher
        Launches kernels on the device.
    tuning
        How large they are to be.
    """
    shared = launcher.shared_bytes // tuning.blocks_a_processor - RESERVED_BYTES
    most = min(shared // 8 - 2 - tuning.most_codes, tuning.most_states) // 16 * 16
    panels = max(1, -(-states // most))
    if panels > MOST_PANELS:
        return None
    width = -(-states // (16 * panels)) * 16
    return Cut(
        *(panels, width, launcher.processors * tuning.blocks_a_processor),
        tuning.processor_threads // tuning.blocks_a_processor,
        tuning.most_codes,
    )


def build(source: Source, launcher: Launcher, tuning: PanelTuning = PanelTuning()) -> Layout:
    """Place the entries of each panel, and make room for their sums.

    Parameters
    ----------
    source
        The matrix.
    launcher
        Launches kernels for its type of row offsets.
    tuning
        How large panels are to be, and which matrices are too sparse for them.

    Raises
    ------
    UnsupportedError
        When there are too many panels, or too few entries for their number.
    """
    cp, wide = cupy(), launcher.offset_dtype
    shape = cut(source.states, launcher, tuning)
    if shape is None:
        raise UnsupportedError(f"{source.states} states are more than {MOST_PANELS} panels hold")
    pieces = source.rows * shape.panels
    if source.rows > INT32_MAX or pieces > max(source.entries, tuning.sparse_rows):
        raise UnsupportedError(
            f"{source.rows} rows have too few entries, {source.entries}, for {shape.panels} panels"
        )
    starts = cp.zeros(pieces + 1, dtype=wide)
    size = (cp.int32(source.rows), cp.int32(shape.width), cp.int32(shape.panels))
    launcher.launch(
        "count_panels",
        32 * source.rows,
        *(source.row_offsets, source.columns, *size, starts[1:]),
        module=MODULE,
    )
    _scan(starts, launcher)
    # Each panel begins with a tile of its own.
    at = np.array([int(starts[i : i + 1].get()[0]) for i in range(0, pieces + 1, source.rows)])
    tiles = -(-np.diff(at) // (TILE // OCTET))
    first = np.append(0, np.cumsum(tiles))
    shifts = to_device(first[:-1] * (TILE // OCTET) - at[:-1], wide)
    total = int(first[-1])
    if total * TILE > INT32_MAX and launcher.offset_type == "int":
        raise UnsupportedError("with padding there are more entries than 32 bits number")
    values = _dictionary(source, launcher, tuning.most_codes)
    columns, stored, numbers = _filled(source, launcher, size, starts, shifts, total, values)
    begins, heads, tile_sums, sums = _sums(launcher, size, starts, shifts, total)
    parts = to_device(shares(tiles, shape.blocks), np.int32)
    words = 0 if numbers is None else len(numbers)
    matrix = (
        *(columns, stored, heads, tile_sums, numbers, cp.int32(words)),
        *(parts, cp.int32(shape.width), cp.int32(source.states)),
    )
    scan = Scan(
        *("sum_plain_panels" if values is None else "sum_coded_panels", MODULE, matrix, sums),
        *(len(parts) * shape.block, shape.block, shape.shared_bytes),
    )
    moved = nbytes(columns, stored, numbers, heads, tile_sums, begins, parts)
    return Layout(
        Format.PANELS,
        (begins, sums, size[0], size[2]),
        moved + 2 * nbytes(sums),
        chunked=False,
        scan=scan,
    )


def _dictionary(source: Source, launcher: Launcher, most: int) -> Numbered | None:
    """Return the distinct values, or None for more than `most`."""
    table = gather_values(source, launcher, Sample.of(source.rows), most)
    return None if table.found() is None else numbered(table, "distinct values")


def _filled(
    source: Source,
    launcher: Launcher,
    size: tuple[Any, ...],
    starts: Any,
    shifts: Any,
    tiles: int,
    values: Numbered | None,
) -> tuple[Any, Any, Any]:
    """Return columns and codes in their places, and the dictionary or, for a code, the value."""
    cp, wide, places = cupy(), launcher.offset_dtype, max(tiles, 1) * TILE
    columns = cp.empty(places, dtype=cp.uint16)
    launcher.launch(
        "clear_panels", places, columns, cp.uint16(int(size[1])), wide(places), module=MODULE
    )
    stored: Any = cp.empty(places, dtype=cp.float64 if values is None else cp.uint8)
    stored.data.memset_async(0, stored.nbytes)
    numbers, table = None, (None, None, cp.uint32(0), cp.uint32(0))
    if values is not None:
        numbers = to_device(values.keys.view(np.float64), np.float64)
        table = (values.table.keys, values.codes, values.table.mask, cp.uint32(HASH_MASK))
    plain = values is None
    launcher.launch(
        "fill_panels",
        32 * source.rows,
        *(source.row_offsets, source.columns, source.values, source.divisors, *size),
        *(starts, shifts, columns, *table),
        *(None if plain else stored, stored if plain else None),
        module=MODULE,
    )
    return columns, stored, numbers


def _sums(
    launcher: Launcher, size: tuple[Any, ...], starts: Any, shifts: Any, tiles: int
) -> tuple[Any, Any, Any, Any]:
    """Return where each row's sums begin, the heads and sums of tiles, and room for all sums."""
    cp, wide = cupy(), launcher.offset_dtype
    rows, _, panels = size
    pieces = len(starts) - 1
    heads = cp.zeros(max(tiles, 1), dtype=cp.uint32)
    launcher.launch("flag_panels", pieces, starts, shifts, rows, panels, heads, module=MODULE)
    tile_sums = cp.zeros(tiles + 1, dtype=wide)
    if tiles:
        launcher.launch(
            "count_panel_sums", tiles, heads, cp.int32(tiles), tile_sums[1:], module=MODULE
        )
    _scan(tile_sums, launcher)
    begins = cp.empty(pieces + 1, dtype=wide)
    launcher.launch(
        "begin_panel_sums",
        pieces + 1,
        *(starts, shifts, rows, panels, heads, tile_sums, cp.int32(tiles), begins),
        module=MODULE,
    )
    sums = cp.empty(max(int(tile_sums[-1:].get()[0]), 1))
    return begins, heads, tile_sums, sums
