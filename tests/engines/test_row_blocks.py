"""Blocks of rows: together they make the sweep of the whole system."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.formats.blocks import counted_from_first, ranges_read, row_blocks
from engines.host.engine import CpuEngine
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import Direction, Scaling, SweepSystem


@st.composite
def systems(draw):
    """Systems of a few rows, some over a subset of the states, some with choices."""
    size = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    choices = draw(st.booleans())
    states = np.flatnonzero(rng.random(size) < draw(st.sampled_from([0.5, 1.0])))
    rows_of = rng.integers(1, 4, len(states)) if choices else np.ones(len(states), dtype=np.int64)
    groups = np.concatenate(([0], np.cumsum(rows_of))).astype(np.int32)
    lengths = rng.integers(0, 5, groups[-1])
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    columns = rng.integers(0, size, offsets[-1]).astype(np.int32)
    matrix = CsrMatrix(offsets, columns, rng.random(offsets[-1]), size)
    return SweepSystem(
        matrix,
        rng.random(size),
        offset=rng.random(groups[-1]) if draw(st.booleans()) else None,
        states=None if len(states) == size else states.astype(np.int32),
        group_offsets=groups if choices else None,
        direction=draw(st.sampled_from(Direction)) if choices else None,
    )


@given(systems(), st.integers(1, 9))
def test_the_blocks_of_a_system_make_its_sweep(system, pieces):
    blocks = row_blocks(system, pieces)
    assert len(blocks) <= max(1, pieces)
    assert sum(block.num_updates for block in blocks) == system.num_updates
    whole = CpuEngine().sweeper(system, -1.0, True)
    whole.run(1)
    pieced = system.start.copy()
    for block in blocks:
        part = CpuEngine().sweeper(block, -1.0, True)
        part.run(1)
        pieced[block.states] = part.values()[block.states]
    np.testing.assert_allclose(pieced, whole.values(), rtol=1e-15)


@given(systems(), st.integers(1, 9))
def test_columns_counted_from_a_block_s_first_state_are_those_of_its_window(system, pieces):
    for block in row_blocks(system, pieces):
        counted, first = counted_from_first(block)
        is_run = len(block.states) == block.states[-1] - block.states[0] + 1
        assert (counted.states is None) == is_run
        assert first == (block.states[0] if is_run else 0)
        matrix, there = block.matrix, counted.matrix
        np.testing.assert_array_equal(there.columns + first, matrix.columns)
        assert there.columns.dtype == matrix.columns.dtype
        assert there.values is matrix.values
        assert there.row_offsets is matrix.row_offsets
        assert (counted.offset, counted.group_offsets) == (block.offset, block.group_offsets)


@given(systems(), st.integers(1, 9))
def test_what_blocks_read_of_each_other(system, pieces):
    blocks = row_blocks(system, pieces)
    expected = {}
    for place, block in enumerate(blocks):
        for reader, other in enumerate(blocks):
            read = [
                column
                for column in other.matrix.columns.tolist()
                if block.states[0] <= column <= block.states[-1]
            ]
            if reader != place and read:
                expected[place, reader] = (min(read), max(read) + 1)
    assert ranges_read(blocks) == expected


def test_blocks_of_a_band_read_what_lies_at_their_bounds():
    size = 12
    columns = np.clip(np.arange(size)[:, None] + [-2, 1], 0, size - 1).ravel().astype(np.int32)
    offsets = np.arange(0, 2 * size + 1, 2, dtype=np.int32)
    matrix = CsrMatrix(offsets, columns, np.ones(2 * size), size)
    blocks = row_blocks(SweepSystem(matrix, np.zeros(size)), 3)
    assert ranges_read(blocks) == {(0, 1): (2, 4), (1, 0): (4, 5), (1, 2): (6, 8), (2, 1): (8, 9)}
    counted, first = counted_from_first(blocks[1])
    assert first == 4
    assert counted.matrix.columns.tolist() == [-2, 1, -1, 2, 0, 3, 1, 4]


def test_blocks_share_the_work_not_the_rows():
    lengths = np.concatenate((np.full(1000, 1), np.full(10, 1000)))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    entries = int(offsets[-1])
    matrix = CsrMatrix(offsets, np.zeros(entries, dtype=np.int32), np.ones(entries), 1010)
    blocks = row_blocks(SweepSystem(matrix, np.zeros(1010)), 4)
    work = [block.matrix.num_entries + 3 * block.matrix.num_rows for block in blocks]
    assert len(blocks) == 4
    assert max(work) - min(work) <= 2 * 1003


def test_a_system_that_is_not_scaled_yet_is_refused():
    matrix = CsrMatrix(np.arange(3, dtype=np.int32), np.zeros(2, dtype=np.int32), np.ones(2), 2)
    with pytest.raises(ValueError, match="scale the system first"):
        row_blocks(SweepSystem(matrix, np.zeros(2), scaling=Scaling.DIAGONAL), 2)
