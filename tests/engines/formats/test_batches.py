"""How many entries of its row a thread takes at a time."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cuda.formats.batches import BATCHES, batch_for, in_batches
from engines.cuda.formats.layout import Layout
from engines.cuda.formats.tuning import BatchTuning
from engines.model.choice import SMALL_SWEEP_BYTES, Format
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import SweepSystem


@pytest.mark.parametrize(
    ("mean", "fastest"),
    [(1.6, (2, 2)), (3.5, (4, 4)), (4.9, (2, 8)), (9.6, (4, 4)), (1.0, (2, 2)), (23.9, (4, 8))],
)
def test_the_batches_are_those_that_were_measured_as_fastest(mean, fastest):
    assert tuple(batch_for(mean, choice) for choice in ((2, 4), (2, 4, 8))) == fastest


def system_of(rows, length):
    offsets = np.arange(rows + 1, dtype=np.int32) * length
    columns = np.zeros(rows * length, dtype=np.int32)
    return SweepSystem(CsrMatrix(offsets, columns, np.ones(rows * length), rows), np.ones(rows))


def test_only_short_rows_of_long_sweeps_are_told_their_batch():
    def defines(rows, length, matrix_format=Format.CSR):
        system = system_of(rows, length)
        return in_batches(Layout(matrix_format, (), 0), system, rows * length).defines

    many = SMALL_SWEEP_BYTES // 8
    assert defines(many, 1) == ("OWN_BATCH=2",)
    assert defines(many, 4) == ()
    assert defines(10, 1) == ()
    assert defines(many // 10, 30) == ()
    assert defines(many, 1, Format.SEGMENTS) == ()
    assert defines(many, 1, Format.VALUES) == ("OWN_BATCH=2", "ALONE")


@pytest.mark.parametrize(
    ("matrix_format", "length", "far", "expected"),
    [
        (Format.VALUES, 10, True, ("OWN_BATCH=8",)),
        (Format.CSR, 10, True, ()),
        (Format.VALUES, 4, True, ()),
        (Format.VALUES, 10, False, ()),
    ],
)
def test_more_is_on_its_way_where_the_iterate_outgrows_the_cache(
    matrix_format, length, far, expected
):
    rows = SMALL_SWEEP_BYTES // 64
    tuning = BatchTuning(far_vector_bytes=rows * 8 - far)
    system = system_of(rows, length)
    layout = in_batches(Layout(matrix_format, (), 0), system, rows * length, tuning)
    assert layout.defines == expected


def test_every_batch_has_a_format_that_takes_rows_by_threads():
    assert set(BATCHES) <= set(Format)
    assert all(4 in choice for choice in BATCHES.values())


def test_uneven_rows_of_an_mdp_are_not_taken_in_chunks():
    rows = 1 << 18
    lengths = np.ones(rows, dtype=np.int64)
    lengths[rows // 2] = 64
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
    entries = int(offsets[-1])
    matrix = CsrMatrix(offsets, np.zeros(entries, dtype=np.int32), np.ones(entries), rows)
    groups = np.arange(rows + 1, dtype=np.int32)
    for given, chunked in ((groups, False), (None, True)):
        system = SweepSystem(matrix, np.ones(rows), group_offsets=given)
        layout = in_batches(Layout(Format.PATTERNS, (), 0), system, entries)
        assert layout.chunked is chunked
        assert "OWN_BATCH=2" in layout.defines
