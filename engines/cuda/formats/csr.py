"""Compressed sparse rows: the arrays that every matrix is uploaded in."""

from __future__ import annotations

from engines.cuda.formats.layout import Layout, Source, nbytes
from engines.model.choice import Format


def build(source: Source) -> Layout:
    """Return the layout of a matrix whose rows are divided.

    Parameters
    ----------
    source
        The matrix.
    """
    arrays = (source.row_offsets, source.columns, source.values)
    return Layout(Format.CSR, arrays, nbytes(*arrays), chunked=False)
