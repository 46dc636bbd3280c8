"""Panels of states: entries in octets and tiles by panel, and the tiles that each block sums."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from engines.arrays import IndexArray

OCTET = 8
"""Entries that one thread sums, all of one row and one panel."""

TILE = 256
"""Entries that a warp sums at a time: as many octets as it has threads, all of one panel."""


def shares(tiles: IndexArray, blocks: int) -> NDArray[np.int32]:
    """Deal the tiles of all panels out to blocks, so that the greatest share is least.

    Parameters
    ----------
    tiles
        Tiles of each panel, shape (panels,).
    blocks
        How many shares are wanted. A block has one panel, so that each panel with tiles has a
        share of its own, even where that makes more.

    Returns
    -------
    For each share its panel, its first tile, the tile behind its last and 0, shape (shares, 4); at
    least one.
    """
    counts = np.where(np.asarray(tiles) > 0, 1, 0)
    while 0 < counts.sum() < min(blocks, int(np.sum(tiles))):
        counts[np.argmax(np.asarray(tiles) / np.maximum(counts, 1))] += 1
    found: list[tuple[int, int, int, int]] = []
    begin = 0
    for panel, (whole, count) in enumerate(zip(tiles, counts, strict=True)):
        edges = begin + np.arange(count + 1) * int(whole) // max(int(count), 1)
        found.extend((panel, int(a), int(b), 0) for a, b in itertools.pairwise(edges))
        begin += int(whole)
    return np.array(found or [(0, 0, 0, 0)], dtype=np.int32)
