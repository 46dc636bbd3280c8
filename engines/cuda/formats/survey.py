"""What a matrix on the device looks like, judged on a sample of its rows."""

from __future__ import annotations

import math
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

PART = 4
"""One row in so many is looked at once more, for how the number of words grows."""

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
        scale = 2 if way.scale_apart else 0
        found = values.found()
        num_values = found if _has_hope(found, way, share) else None
        if _shorter(num_values, scale, facts.values, facts.value_scale_bytes, source):
            facts = replace(facts, values=num_values, value_scale_bytes=scale)
        if facts.rows_are_long:
            # Pairs and patterns are not for them.
            continue
        # Pairs hold values: where these are too many, so are they.
        num_pairs = None
        if found is not None:
            num_pairs = _expected_pairs(way, launcher, sample, values, share)
        if _shorter(num_pairs, scale, facts.pairs, facts.pair_scale_bytes, source):
            facts = replace(facts, pairs=num_pairs, pair_scale_bytes=scale)
    if facts.values is not None:
        facts = replace(facts, near_columns=columns_are_near(source, launcher))
    if facts.rows_are_long:
        return facts
    return _with_patterns(source, launcher, sample, facts)


def _expected_pairs(
    way: Source, launcher: Launcher, sample: Sample, values: Table, share: float
) -> int | None:
    pairs = gather_pairs(way, launcher, sample, values, None, MOST_CODES).found()
    if not _has_hope(pairs, way, share):
        return None
    if sample.stride == 1:
        return pairs
    part = sample.thinned(way.rows, PART)
    fewer = gather_pairs(way, launcher, part, values, None, MOST_CODES).found()
    return expected_words(pairs, fewer, share)


def _has_hope(count: int | None, way: Source, share: float) -> bool:
    return count is not None and count * OFTEN <= share * way.entries


def expected_words(count: int | None, fewer: int | None, share: float) -> int | None:
    """Return how many distinct words a matrix has, as far as its sample lets expect.

    Their number is taken to go on growing as a power of the number of rows (H. S. Heaps, 1978).

    Parameters
    ----------
    count
        How many the sample has; None for too many.
    fewer
        How many a part of it has, of one row in `PART`; None for too many.
    share
        The part of the matrix that the sample is.

    Returns
    -------
    None for more than a code of two bytes tells apart.
    """
    if not count or not fewer:
        return count
    growth = min(max(math.log(count / fewer) / math.log(PART), 0.0), 1.0)
    expected = round(count * share**-growth)
    return expected if expected <= MOST_CODES else None


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
