"""What a matrix on the device looks like, judged on a sample of its rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.cuda.formats.layout import Source
from engines.cuda.formats.patterns import gather_rows
from engines.cuda.formats.slices import measured
from engines.cuda.formats.tables import Sample, Table, gather_pairs, gather_values
from engines.cuda.formats.values import columns_are_near
from engines.cuda.modules import Launcher
from engines.formats.choice import MOST_CODES, Facts, code_bytes
from engines.formats.interleaved import best_bound

SAMPLED_ROWS = 1 << 16

OFTEN = 4
"""A dictionary of a sample has hope where each of its words is used so many times."""


def survey(source: Source, launcher: Launcher, facts: Facts) -> Facts:
    """Complete the facts of a matrix: lengths of all rows, words of a sample.

    Parameters
    ----------
    source
        The matrix.
    launcher
        Launches kernels for its type of row offsets.
    facts
        What is known of it.
    """
    sample = Sample.of(source.rows, SAMPLED_ROWS)
    rows, slices = measured(source, launcher)
    bound, interleaved, _ = best_bound(rows, slices, source.entries, 2)
    behind = source.entries - int(np.minimum(np.arange(len(rows)), bound) @ rows)
    facts = replace(facts, slots=interleaved + behind)
    share = sample.rows / max(source.rows, sample.rows)
    for way in source.scales():
        values = gather_values(way, launcher, sample, MOST_CODES)
        pairs = gather_pairs(way, launcher, sample, values, None, MOST_CODES)
        scale = 2 if way.scale_apart else 0
        num_values, num_pairs = (_hopeful(table, share * way.entries) for table in (values, pairs))
        if _shorter(num_values, scale, facts.values, facts.value_scale_bytes, source):
            facts = replace(facts, values=num_values, value_scale_bytes=scale)
        if _shorter(num_pairs, scale, facts.pairs, facts.pair_scale_bytes, source):
            facts = replace(facts, pairs=num_pairs, pair_scale_bytes=scale)
    if facts.values is not None:
        facts = replace(facts, near_columns=columns_are_near(source, launcher))
    return _with_patterns(source, launcher, sample, facts)


def _hopeful(table: Table, sampled: float) -> int | None:
    count = table.found()
    return None if count is None or count * OFTEN > sampled else count


def _shorter(
    count: int | None, scale: int, other: int | None, other_scale: int, source: Source
) -> bool:
    """Return whether codes with a scale take fewer bytes than others with theirs."""
    if count is None:
        return False
    if other is None:
        return True
    here, there = (
        code_bytes(codes) * source.entries + apart * source.rows
        for codes, apart in ((count, scale), (other, other_scale))
    )
    return here < there


def _with_patterns(source: Source, launcher: Launcher, sample: Sample, facts: Facts) -> Facts:
    limit = max(sample.rows // OFTEN, 1)
    ways = [source] if source.offset is None else [source, replace(source, offset=None)]
    for way in ways:
        count = gather_rows(way, launcher, sample, limit, None).found()
        if count is not None and count * OFTEN <= min(sample.rows, source.rows):
            mean = source.entries / source.rows
            return replace(
                facts,
                patterns=count,
                pattern_pairs=int(count * mean) + 1,
                patterns_hold_offset=way.offset is not None,
            )
    return facts
