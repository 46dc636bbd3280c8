"""Runs of rows as shared sparse blocks: what the solves without a matrix read."""

from __future__ import annotations

import numpy as np

from engines.arrays import INT32_MAX, offsets_of, ranges
from engines.diagrams.hybrid import HybridMatrix
from engines.errors import UnsupportedError
from engines.model.row_runs import RowRuns

LONGEST_STRIP = 1 << 16
"""Rows of a strip at most, so that the blocks of long runs stay small."""

MOST_LOCAL_ENTRIES = 1 << 28
"""That blocks may have together, of 12 bytes each."""


def hybrid_of_runs(runs: RowRuns) -> HybridMatrix:
    """Return the hybrid representation of a matrix: a strip a run, a block a kind and length.

    Parameters
    ----------
    runs
        The rows.

    Raises
    ------
    UnsupportedError
        If the blocks become too large, because runs of the same kind have many lengths.
    """
    strips = runs.cut(LONGEST_STRIP)
    pairs = np.diff(strips.pair_starts)
    working = np.flatnonzero(pairs[strips.kinds] > 0)
    keys = np.stack((strips.kinds[working], strips.lengths[working]), axis=1)
    blocks, block_of = np.unique(keys, axis=0, return_inverse=True)
    kinds, lengths = blocks[:, 0], blocks[:, 1]
    entries = int(lengths @ pairs[kinds])
    if entries > MOST_LOCAL_ENTRIES:
        raise UnsupportedError(
            f"{len(kinds)} runs of different lengths or kinds take {entries} entries of their own, "
            f"more than {MOST_LOCAL_ENTRIES}"
        )
    kind = np.repeat(kinds, lengths)
    row = ranges(np.zeros_like(lengths), lengths)
    which = ranges(strips.pair_starts[kind], pairs[kind])
    # Counted from the first column of the block.
    least = strips.distances[strips.pair_starts[kind]] if len(kind) else kind
    columns = strips.distances[which] + np.repeat(row - least, pairs[kind])
    if columns.max(initial=0) > INT32_MAX:
        raise UnsupportedError("a block is wider than 32 bits number")
    first_distances = strips.distances[strips.pair_starts[strips.kinds[working]]]
    return HybridMatrix(
        block_rows=offsets_of(lengths),
        local_offsets=offsets_of(pairs[kind]),
        local_columns=columns.astype(np.int32),
        local_values=strips.numbers[which],
        strip_states=strips.firsts,
        strip_jobs=offsets_of(pairs[strips.kinds] > 0),
        job_blocks=block_of.ravel().astype(np.int32),
        job_columns=strips.firsts[working] + first_distances,
        job_choices=None,
        num_columns=runs.num_rows,
        num_entries=runs.num_entries,
        level=0,
    )
