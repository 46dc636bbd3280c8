"""The hybrid representation of a diagram's matrix, swept as it is."""

from __future__ import annotations

from engines.cuda.diagram_rows import DiagramRows
from engines.cuda.driver import cupy
from engines.cuda.formats.layout import Layout, Source, nbytes
from engines.cuda.formats.tables import encoded_divisors
from engines.cuda.modules import Launcher
from engines.errors import UnsupportedError
from engines.model.choice import Format

DEFINES: tuple[str, ...] = ()
"""What the kernels are compiled with beside the type of the offsets."""

CHUNKED = True
"""Whether a block takes a chunk of rows; without, UNCHUNKED is to be defined."""


def build(rows: DiagramRows, launcher: Launcher) -> Layout:
    """Return the layout of rows that are not expanded.

    Parameters
    ----------
    rows
        The rows. What they are divided by stays beside the blocks, as codes of distinct numbers
        where these are few.
    launcher
        Launches kernels for row offsets of 32 bits.

    Raises
    ------
    UnsupportedError
        When a state has choices, or when a divisor has no reciprocal in double precision.

    Notes
    -----
    A row's sum is multiplied by its divisor's reciprocal; see `engines.cuda.formats.layout.Source`
    for how far that is from dividing each entry.
    """
    if rows.row_choices is not None:
        raise UnsupportedError("the hybrid representation is swept for chains, not for choices")
    source = Source(*(None, None, None, rows.divisors, None, None), rows.rows, 0, scale_apart=True)
    scale = encoded_divisors(source, launcher)
    return Layout(
        Format.HYBRID,
        (*rows.hybrid.arguments, cupy().int32(rows.without_diagonal), *scale),
        rows.hybrid.nbytes + nbytes(*scale),
        defines=DEFINES,
        chunked=CHUNKED,
    )
