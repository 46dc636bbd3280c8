"""What a matrix on the device looks like, judged on a sample of its rows."""

from __future__ import annotations

from dataclasses import replace

from engines.cuda.formats.layout import Source
from engines.cuda.formats.patterns import gather_rows
from engines.cuda.formats.tables import Sample, gather_values
from engines.cuda.formats.values import columns_are_near
from engines.cuda.modules import Launcher
from engines.model.choice import MOST_CODES, Facts, code_bytes

SAMPLED_ROWS = 1 << 16

OFTEN = 4
"""A dictionary of a sample has hope where each of its words is used so many times."""


def survey(source: Source, launcher: Launcher, facts: Facts) -> Facts:
    """Complete the facts of a matrix by the words of a sample.

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
    share = sample.rows / max(source.rows, sample.rows)
    for way in source.scales():
        count = gather_values(way, launcher, sample, MOST_CODES).found()
        scale = 2 if way.scale_apart else 0
        if _has_hope(count, way, share) and _shorter(count, scale, facts, source):
            facts = replace(facts, values=count, value_scale_bytes=scale)
    if facts.values is not None:
        facts = replace(facts, near_columns=columns_are_near(source, launcher))
    if facts.rows_are_long:
        return facts
    return _with_patterns(source, launcher, sample, facts)


def _has_hope(count: int | None, way: Source, share: float) -> bool:
    return count is not None and count * OFTEN <= share * way.entries


def _shorter(count: int | None, scale: int, facts: Facts, source: Source) -> bool:
    """Return whether codes with a scale take fewer bytes than those that the facts hold."""
    if count is None:
        return False
    if facts.values is None:
        return True
    here, there = (
        code_bytes(codes) * source.entries + apart * source.rows
        for codes, apart in ((count, scale), (facts.values, facts.value_scale_bytes))
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
