"""Blocks of rows: together they make the sweep of the whole system."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.cpu.engine import CpuEngine
from engines.formats.blocks import row_blocks
from engines.formats.csr import CsrMatrix
from engines.system import Direction, Scaling, SweepSystem


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
