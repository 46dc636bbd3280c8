"""Columns and values interleaved by slices of 32 rows, long rows going on behind them."""

from __future__ import annotations

from engines.backend import cupy
from engines.cuda.formats.layout import BESIDE, Layout, Source
from engines.cuda.formats.slices import sliced
from engines.cuda.modules import Launcher
from engines.formats.choice import Format

ENTRY_BYTES = 12


def build(source: Source, launcher: Launcher) -> Layout:
    """Interleave a matrix.

    Parameters
    ----------
    source
        The matrix.
    launcher
        Launches kernels for its type of row offsets.

    Notes
    -----
    A. Wijs, J.-P. Katoen, D. Bosnacki, *GPU-based graph decomposition into strongly connected and
    maximal end components*, 2014, interleave transitions so and leave long rows to a tail.
    """
    cp = cupy()
    slices = sliced(source, launcher, ENTRY_BYTES)
    columns = cp.empty(slices.slots, dtype=cp.int32)
    values = cp.empty(slices.slots)
    launcher.launch(
        "fill_interleaved",
        source.rows,
        *(source.row_offsets, source.columns, source.values, source.divisors),
        *(launcher.offset_dtype(source.rows), *slices.placing, columns, values),
        module=BESIDE,
    )
    read = slices.nbytes + ENTRY_BYTES * source.entries
    return Layout(Format.INTERLEAVED, (*slices.arguments, columns, values), read)
