"""Jacobi by backward segmented scan: rows are segments of the products of all entries."""

from __future__ import annotations

from engines.cuda.driver import cupy
from engines.cuda.formats.layout import Layout, Scan, Source, divided_in_place, nbytes
from engines.cuda.modules import Launcher
from engines.model.choice import Format

MODULE = "formats/scan_segments"
TILE = 1024
"""Entries that a block scans; as in the kernels."""


def build(source: Source, launcher: Launcher) -> Layout:
    """Flag where the segments start and make room for their sums.

    Parameters
    ----------
    source
        The matrix; its rows are divided in place.
    launcher
        Launches kernels for its type of row offsets.

    Notes
    -----
    D. Bosnacki, S. Edelkamp, D. Sulewski, A. Wijs, *Parallel probabilistic model checking on
    general purpose graphics processors*, 2011, Algorithms 4 to 6. Products and scan are one kernel
    here, and only the sums at the starts of segments and tiles are written: a segment that goes
    over several tiles is put together where its row gathers it.
    """
    cp, wide = cupy(), launcher.offset_dtype
    flags = cp.zeros(-(-source.entries // 32) + 1, dtype=cp.uint32)
    launcher.launch(
        "flag_segments",
        source.rows,
        *(source.row_offsets, wide(source.rows), flags),
        module=MODULE,
    )
    sums = cp.empty(max(source.entries, 1))
    # Nothing fails from here on: a matrix that is divided cannot be laid out otherwise.
    divided_in_place(source, launcher)
    matrix = (source.columns, source.values, wide(source.entries), flags)
    moved = nbytes(source.columns, source.values, source.row_offsets, flags)
    return Layout(
        Format.SEGMENTS,
        (source.row_offsets, sums),
        moved + 16 * source.rows,
        chunked=False,
        scan=Scan("scan_segments", MODULE, matrix, sums, source.entries, TILE),
    )
