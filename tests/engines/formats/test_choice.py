"""The choice of a format follows from bytes, and these from counts of what is stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.model.choice import (
    BLOCK_ROW_BYTES,
    PANEL_BYTES,
    PANEL_ENTRIES,
    SMALL_SWEEP_BYTES,
    Facts,
    Format,
    bytes_per_sweep,
    code_bytes,
    estimate_line,
    estimates,
    gather_bytes,
    panel_wait_bytes,
    worthwhile,
)
from engines.model.csr import CsrMatrix

# The counts that design.md gives of models in the literature.
VECTORS = 16
TANDEM = Facts(
    *(2_096_128, 7_300_000),
    beside=VECTORS * 2_096_128,
    values=8,
    patterns=21,
    pattern_pairs=80,
)
CLUSTER = Facts(
    *(1_917_300, 9_354_204),
    beside=VECTORS * 1_917_300,
    values=250,
    value_scale_bytes=2,
)
KANBAN = Facts(*(2_546_432, 24_460_016), beside=VECTORS * 2_546_432, values=13)
FMS = Facts(*(1_639_440, 13_552_968), beside=VECTORS * 1_639_440, values=42)
HERMAN = Facts(*(32_768, 14_348_908), beside=VECTORS * 32_768, values=16, near_columns=True)

# Two panels, copied by 132 blocks.
LONG_ROWS_IN_PANELS = replace(
    HERMAN, segments_serve=True, panels=2, panel_copies=132 * 16_384 * 8, by_blocks=True
)


@pytest.mark.parametrize(
    ("facts", "best"),
    [
        (LONG_ROWS_IN_PANELS, Format.PANELS),
        (replace(LONG_ROWS_IN_PANELS, segments_serve=False), Format.VALUES),
        (replace(LONG_ROWS_IN_PANELS, values=None), Format.PANELS),
        (replace(LONG_ROWS_IN_PANELS, panels=None), Format.VALUES),
        (replace(TANDEM, segments_serve=True, panels=2), Format.PATTERNS),
        (TANDEM, Format.PATTERNS),
        (CLUSTER, Format.VALUES),
        (KANBAN, Format.VALUES),
        (FMS, Format.VALUES),
        (HERMAN, Format.VALUES),
    ],
)
def test_models_of_the_literature_get_the_format_that_is_expected_to_be_fastest(facts, best):
    assert worthwhile(facts)[0] is best


def measured_case(rows, entries, *, tandem):
    """What the survey finds of tandem and of cluster; their balance equations have no offset."""
    beside = VECTORS * rows
    if tandem:
        words = {"values": 8, "patterns": 21, "pattern_pairs": 80}
        return Facts(
            *(rows, entries),
            **{"beside": beside, "segments_serve": True, **words},
            near_columns=rows < 2**22,
        )
    return Facts(
        *(rows, entries),
        beside=beside,
        values=12,
        value_scale_bytes=2,
        near_columns=True,
        segments_serve=True,
    )


def plain_case(rows, entries, **words):
    """What the survey finds of the balance equations of others: distances of more than 16 bits."""
    return Facts(
        *(rows, entries),
        beside=VECTORS * rows,
        segments_serve=True,
        **words,
    )


# Microseconds a sweep on an NVIDIA H200, by examples/benchmarks/formats.py.
MEASURED = {
    "tandem 255": (
        measured_case(130_816, 455_939, tandem=True),
        (3.77, 3.83, 3.53, 7.72),
    ),
    "tandem 511": (
        measured_case(523_776, 1_829_379, tandem=True),
        (9.66, 8.35, 5.88, 22.77),
    ),
    "tandem 1023": (
        measured_case(2_096_128, 7_328_771, tandem=True),
        (35.09, 29.76, 13.53, 95.41),
    ),
    "tandem 2047": (
        measured_case(8_386_560, 29_337_603, tandem=True),
        (132.58, 104.44, 51.52, 354.55),
    ),
    "cluster 122": (
        measured_case(542_676, 2_643_040, tandem=False),
        (15.67, 10.98, 17.33, 32.68),
    ),
    "cluster 230": (
        measured_case(1_917_300, 9_354_592, tandem=False),
        (51.26, 35.68, 55.94, 109.44),
    ),
    "cluster 320": (
        measured_case(3_704_340, 18_083_872, tandem=False),
        (93.62, 68.40, 107.84, 203.35),
    ),
    "kanban 5": (
        plain_case(2_546_432, 24_460_016, values=13),
        (108.4, 79.9, 104.7, 252.6),
    ),
    "kanban 6": (
        plain_case(11_261_376, 115_708_992, values=13),
        (489.4, 362.9, 478.0, 1155.6),
    ),
    "fms 8": (
        plain_case(4_459_455, 38_533_968, values=200),
        (185.0, 172.8, 273.8, 400.8),
    ),
    "polling 18": (
        plain_case(7_077_888, 69_599_232, values=20),
        (270.6, 211.4, 504.1, 713.3),
    ),
}
ORDER = (Format.CSR, Format.VALUES, Format.PATTERNS, Format.SEGMENTS)


@pytest.mark.parametrize("case", MEASURED)
def test_the_choice_is_within_a_tenth_of_the_best_that_was_measured(case):
    facts, row = MEASURED[case]
    microseconds = dict(zip(ORDER, row, strict=True))
    chosen = next(iter(worthwhile(facts)), Format.CSR)
    assert microseconds[chosen] <= 1.1 * min(microseconds.values())


def herman_case(rows, states, entries, panels):
    """What the survey finds of expected steps on herman's ring; distances fit in 16 bits."""
    return Facts(
        *(rows, entries),
        beside=VECTORS // 2 * (states + rows) + 12 * rows,
        given_bytes=8 * rows,
        values=8,
        near_columns=True,
        segments_serve=True,
        panels=panels,
        panel_copies=132 * 8 * (states // panels),
        by_blocks=True,
    )


# Microseconds a sweep on an NVIDIA H200 in CSR, in values and in panels.
MEASURED_LONG_ROWS = {
    "herman 11": (herman_case(2026, 2048, 177_104, 1), (6.62, 6.87, 5.31)),
    "herman 13": (herman_case(8166, 8192, 1_594_272, 1), (16.50, 17.88, 9.15)),
    "herman 15": (herman_case(32_738, 32_768, 14_348_848, 2), (95.27, 86.02, 28.04)),
    "any order": (herman_case(32_738, 32_768, 14_348_848, 2), (120.95, 116.73, 31.24)),
}


@pytest.mark.parametrize("case", MEASURED_LONG_ROWS)
def test_rows_that_blocks_share_are_swept_in_panels_where_that_was_fastest(case):
    facts, row = MEASURED_LONG_ROWS[case]
    microseconds = dict(zip((Format.CSR, Format.VALUES, Format.PANELS), row, strict=True))
    assert worthwhile(facts)[0] is min(microseconds, key=microseconds.__getitem__)


@pytest.mark.parametrize("case", MEASURED_LONG_ROWS)
@pytest.mark.parametrize("without", [{"segments_serve": False}, {"panels": None}])
def test_where_panels_do_not_serve_the_choice_is_what_it_is_without_them(case, without):
    facts = replace(MEASURED_LONG_ROWS[case][0], **without)
    assert worthwhile(facts) == [Format.VALUES]


@pytest.mark.parametrize(
    "facts", [TANDEM, CLUSTER, KANBAN, FMS, *(f for f, _ in MEASURED.values())]
)
def test_panels_change_nothing_for_short_rows(facts):
    before = replace(facts, segments_serve=True)
    assert worthwhile(replace(before, panels=1, by_blocks=True)) == worthwhile(before)


def test_panels_wait_for_a_launch_and_copies_and_others_for_rows_that_blocks_take():
    copies = BLOCK_ROW_BYTES
    by_warps = replace(LONG_ROWS_IN_PANELS, panel_copies=copies, by_blocks=False)
    assert panel_wait_bytes(by_warps) == PANEL_BYTES + copies
    assert panel_wait_bytes(replace(by_warps, by_blocks=True)) == PANEL_BYTES
    assert panel_wait_bytes(replace(by_warps, by_blocks=True, panel_copies=0)) == 0
    # 60 entries a row, 300,000 in all: to copy and to launch takes more than panels save.
    few = replace(by_warps, rows=5000, entries=300_000, beside=VECTORS * 5000, panels=1)
    assert worthwhile(few) == [Format.VALUES]
    assert worthwhile(by_warps)[0] is Format.PANELS


def test_many_patterns_cost_more_than_few():
    few, many = (replace(TANDEM, patterns=count) for count in (256, 257))
    changed = [f for f in ORDER if gather_bytes(f, few) != gather_bytes(f, many)]
    assert changed == [Format.PATTERNS]
    assert gather_bytes(Format.PATTERNS, few) < gather_bytes(Format.PATTERNS, many)


def test_nothing_is_built_for_small_sweeps_or_for_little():
    small = replace(TANDEM, rows=20_000, entries=70_000, beside=VECTORS * 20_000)
    assert bytes_per_sweep(Format.CSR, small) < SMALL_SWEEP_BYTES
    assert worthwhile(small) == []
    plain = Facts(1_000_000, 5_000_000, beside=VECTORS * 1_000_000)
    assert worthwhile(plain) == []


def test_formats_that_cannot_hold_a_matrix_have_no_estimate():
    plain = Facts(1000, 5000)
    assert set(estimates(plain)) == {Format.CSR}
    assert Format.SEGMENTS in estimates(replace(plain, segments_serve=True))


def test_panels_are_considered_where_rows_fill_them():
    few = replace(LONG_ROWS_IN_PANELS, panels=13)
    assert few.entries < 14 * PANEL_ENTRIES * few.rows
    assert Format.PANELS in estimates(few)
    assert Format.PANELS not in estimates(replace(few, panels=14))


def test_values_that_are_no_codes_of_a_byte_are_stored_whole_in_panels():
    coded = bytes_per_sweep(Format.PANELS, LONG_ROWS_IN_PANELS)
    for many in ({"values": 257}, {"values": None}, {"value_scale_bytes": 2}):
        plain = bytes_per_sweep(Format.PANELS, replace(LONG_ROWS_IN_PANELS, **many))
        assert plain - coded == 7 * (HERMAN.entries + 8 * HERMAN.rows)


def test_bytes_are_those_of_the_arrays():
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 6, 1000)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
    total = int(offsets[-1])
    numbers = rng.integers(1, 4, total) / 4.0
    matrix = CsrMatrix(offsets, rng.integers(0, 1000, total).astype(np.int32), numbers, 1000)
    facts = Facts(1000, total, beside=VECTORS * 1000, values=3)
    stored = matrix.columns.nbytes + matrix.values.nbytes + matrix.row_offsets.nbytes
    assert bytes_per_sweep(Format.CSR, facts) == stored + 16_000
    assert bytes_per_sweep(Format.VALUES, facts) == 5 * total + 4004 + 24 + 16_000
    apart = replace(facts, value_scale_bytes=2, near_columns=True)
    assert bytes_per_sweep(Format.VALUES, apart) == 3 * total + 4004 + 24 + 18_000
    given = replace(facts, patterns=300, pattern_pairs=900, given_bytes=8000)
    without = bytes_per_sweep(Format.PATTERNS, given)
    assert bytes_per_sweep(Format.PATTERNS, replace(given, patterns_hold_offset=True)) == (
        without - 8000
    )


def test_choices_of_states_are_swept_as_was_measured():
    # Two choices of two entries: microseconds in csr 164, values 118, patterns 78.
    states, rows, entries = 5_000_000, 10_000_000, 20_000_000
    facts = Facts(rows, entries, beside=20 * states + 8 * rows, groups=True)
    facts = replace(facts, values=40, patterns=12, pattern_pairs=24)
    assert worthwhile(facts) == [Format.PATTERNS, Format.VALUES]
    assert worthwhile(replace(facts, values=None, patterns=None)) == []


@pytest.mark.parametrize(("codes", "width"), [(1, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 4)])
def test_codes_take_as_many_bytes_as_they_need(codes, width):
    assert code_bytes(codes) == width


def test_the_line_names_every_estimate_and_the_choice():
    line = estimate_line(estimates(TANDEM), Format.PATTERNS)
    assert line.startswith("estimated MB a sweep: csr 129.5, ")
    assert "patterns 35.6 (chosen)" in line
    assert "\n" not in line
