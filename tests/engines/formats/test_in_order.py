"""Where blocks of a sweep take small chunks, so that those at work are neighbours."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from engines.cuda.formats.layout import Geometry
from engines.cuda.windows import Reach, in_order

CACHE = SimpleNamespace(cache_bytes=50_000_000)
BLOCKS, BLOCK = 264, 1024


@pytest.mark.parametrize(
    ("rows", "reach", "chunk"),
    [
        # What all blocks read at a time is 8 * 264 * 89,444 bytes.
        (1_000_006_281, Reach(44_722, 44_722), 8192),
        # The cache holds that of a band of 10,000, or the whole of x.
        (1_000_006_281, Reach(5_000, 5_000), None),
        (6_000_000, Reach(44_722, 44_722), None),
        # What neighbours read is no less.
        (1_000_006_281, Reach(1_000_000, 1_000_000), None),
    ],
)
def test_chunks_are_small_where_that_helps(rows, reach, chunk):
    whole = -(-rows // BLOCKS)
    shape = Geometry(BLOCKS * BLOCK, BLOCK, whole)
    found = in_order(shape, reach, rows, CACHE)
    if chunk is None:
        assert found == shape
    else:
        assert found == Geometry(-(-rows // chunk) * BLOCK, BLOCK, chunk)
