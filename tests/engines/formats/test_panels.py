"""Panels: tiles dealt out to blocks."""

from __future__ import annotations

import numpy as np
import pytest

from engines.formats.panels import shares


def by_hand(tiles, blocks):
    """The least greatest share, by trying."""
    for most in range(1, max(tiles) + 1):
        if sum(-(-t // most) for t in tiles) <= blocks:
            return most
    return max(tiles)


@pytest.mark.parametrize("seed", range(30))
def test_shares_cover_all_tiles_once_and_the_greatest_is_least(seed):
    rng = np.random.default_rng(seed)
    tiles = rng.integers(0, 50, rng.integers(1, 9))
    blocks = int(rng.integers(1, 40))
    found = shares(tiles, blocks)
    assert found.dtype == np.int32
    edges = np.append(0, np.cumsum(tiles))
    covered = []
    for panel, begin, end, _ in found:
        assert edges[panel] <= begin <= end <= edges[panel + 1]
        covered.extend(range(begin, end))
    assert covered == list(range(edges[-1]))
    used = int((tiles > 0).sum())
    if used:
        assert len(found) <= max(blocks, used)
        if blocks >= used:
            assert int((found[:, 2] - found[:, 1]).max()) == by_hand(tiles.tolist(), blocks)


def test_no_tiles_make_one_empty_share():
    assert shares(np.zeros(3, dtype=np.int64), 10).tolist() == [[0, 0, 0, 0]]
