"""Which format a matrix is swept in: the bytes that a sweep moves in each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Format(StrEnum):
    """Layouts of a matrix, by the words of `-gpuformat`."""

    AUTO = "auto"
    """The one with the fewest estimated bytes a sweep."""
    CSR = "csr"
    VALUES = "values"
    PATTERNS = "patterns"
    SEGMENTS = "segments"
    PANELS = "panels"
    HYBRID = "hybrid"
    """A diagram's shared blocks, which matrices that come as entries do not have."""


MOST_CODES = 1 << 16
"""The most distinct values that a code of two bytes tells apart."""

PAIR_BYTES = 16
"""A pair of a distance and a value, as it lies in a dictionary of rows."""

SMALL_SWEEP_BYTES = 2_000_000
"""Below this a sweep takes as long as its launch, whatever it moves."""

GATHER_BYTES = {
    Format.CSR: 6.5,
    Format.VALUES: 8.5,
    Format.PATTERNS: 4.5,
    Format.SEGMENTS: 32.0,
    Format.PANELS: 2.2,
}
"""What an entry costs beside its bytes, its look-ups and that of x, in bytes that could have been
streamed meanwhile: means of tandem 1023 and 2047 and of cluster 230 and 320 on an H200; of panels,
herman 11, 13 and 15."""

GROUP_GATHER_BYTES = {
    Format.CSR: 14.0,
    Format.VALUES: 13.0,
    Format.PATTERNS: 14.5,
}
"""What an entry costs where several rows compute one state: a thread takes one after the other, so
that it waits for each: means of consensus 6 and of random MDPs of one, two, and two to four choices
a state, one, two and four entries a choice, 1.3 to 5 million states, on an H200. Where
rows are uneven an entry costs twice to four times as much in all of them (wlan 4 and 6)."""

PANEL_ENTRIES = 32
"""From this mean number of entries of a row in a panel on, panels are considered."""

PANEL_BYTES = 12_000_000
"""What the second launch of a sweep in panels costs, in bytes that could have been streamed
meanwhile: herman 11, 13 and 15 on an H200 take 20 MB of time whatever their entries, and small
sweeps of one launch 8."""

BLOCK_ROW_BYTES = 19_000_000
"""What a sweep costs that waits for rows so long that a block takes them, in bytes that could have
been streamed meanwhile: herman in CSR takes 27 MB of time whatever its entries."""

LONG_ROWS = 24
"""From this mean row length on, only formats that cut rows or share them are considered."""

FOR_LONG_ROWS = (Format.CSR, Format.VALUES, Format.PANELS)
"""Formats whose rows several threads share."""


@dataclass(frozen=True)
class Facts:
    """What the bytes of a sweep follow from.

    Parameters
    ----------
    rows, entries
        Size of the matrix.
    offset_bytes
        Bytes of a row offset: 4 or 8.
    beside
        Bytes a sweep moves beside the matrix: vectors, right-hand side, states, groups.
    given_bytes
        How many of those are the right-hand side's.
    values
        Distinct values; None for too many.
    value_scale_bytes
        Bytes a row for a scale kept apart from the values; 0 for none.
    near_columns
        Whether 16 bits hold the distance of each column from its row's state.
    patterns, pattern_pairs
        Distinct rows, and the entries of all of these; None for too many.
    patterns_hold_offset
        Whether the right-hand side is part of the patterns.
    segments_serve
        Whether sums of segments are all that a sweep needs.
    groups
        Whether several rows compute one state.
    panels
        Panels that the states are cut into; None for too many.
    panel_copies
        Bytes of the iterate that the blocks of a sweep in panels copy, nearly all from the cache.
    by_blocks
        Whether some rows are so long that a block takes them where threads share rows.
    """

    rows: int
    entries: int
    offset_bytes: int = 4
    beside: int = 0
    given_bytes: int = 0
    values: int | None = None
    value_scale_bytes: int = 0
    near_columns: bool = False
    patterns: int | None = None
    pattern_pairs: int = 0
    patterns_hold_offset: bool = False
    segments_serve: bool = False
    groups: bool = False
    panels: int | None = None
    panel_copies: int = 0
    by_blocks: bool = False

    @property
    def rows_are_long(self) -> bool:
        """Whether only formats whose rows are cut or shared are considered."""
        return not self.groups and self.entries >= LONG_ROWS * self.rows

    @property
    def rows_fill_panels(self) -> bool:
        """Whether rows have entries enough in each panel."""
        return (
            self.segments_serve
            and self.panels is not None
            and self.entries >= PANEL_ENTRIES * self.panels * self.rows
        )


def code_bytes(codes: int) -> int:
    """Return the bytes of a code that tells so many things apart: 1, 2 or 4."""
    return 1 if codes <= 1 << 8 else 2 if codes <= 1 << 16 else 4


def bytes_per_sweep(matrix_format: Format, facts: Facts) -> int | None:
    """Return the fewest bytes that a sweep moves in a format.

    Parameters
    ----------
    matrix_format
        Any but `Format.AUTO`.
    facts
        What is known of the matrix.

    Returns
    -------
    None where the format cannot hold the matrix.
    """
    rows, entries = facts.rows, facts.entries
    offsets = facts.offset_bytes * (rows + 1)
    beside = facts.beside
    match matrix_format:
        case Format.CSR:
            return 12 * entries + offsets + beside
        case Format.SEGMENTS if facts.segments_serve:
            # Beside CSR's: a bit an entry, and the sums written and read.
            return 12 * entries + entries // 8 + offsets + 16 * rows + beside
        case Format.VALUES if facts.values is not None:
            each = code_bytes(facts.values) + (2 if facts.near_columns else 4)
            table = 8 * facts.values + facts.value_scale_bytes * rows
            return each * entries + offsets + table + beside
        case Format.PANELS if facts.panels is not None and facts.rows_fill_panels:
            # Columns take 2 bytes, and rows are padded by half an octet in each panel; the sums are
            # written and read.
            coded = code_bytes(facts.values or MOST_CODES) == 1 and not facts.value_scale_bytes
            runs = facts.panels * rows
            whole = (3 if coded else 10) * (entries + 4 * runs)
            return whole + (16 + 2 * facts.offset_bytes) * runs + beside
        case Format.PATTERNS if facts.patterns is not None:
            table = PAIR_BYTES * facts.pattern_pairs + facts.offset_bytes * facts.patterns
            given = facts.given_bytes if facts.patterns_hold_offset else 0
            return code_bytes(facts.patterns) * rows + table + beside - given
        case _:
            return None


def gather_bytes(matrix_format: Format, facts: Facts) -> float:
    """Return what an entry costs beside its bytes, in bytes.

    Parameters
    ----------
    matrix_format
        A format that can hold the matrix.
    facts
        What is known of the matrix.
    """
    if facts.groups:
        return GROUP_GATHER_BYTES[matrix_format]
    if matrix_format is Format.PATTERNS and code_bytes(facts.patterns or 0) > 1:
        # Neighbouring rows read their patterns in different places.
        return 9.5
    return GATHER_BYTES[matrix_format]


def panel_wait_bytes(facts: Facts) -> int:
    """Return what a sweep in panels waits beyond other sweeps of long rows, in bytes.

    Parameters
    ----------
    facts
        What is known of the matrix.

    Notes
    -----
    Never less than 0: how much sooner panels are done is known of too few matrices.
    """
    others = BLOCK_ROW_BYTES if facts.by_blocks else 0
    return max(PANEL_BYTES + facts.panel_copies - others, 0)


def estimates(facts: Facts) -> dict[Format, int]:
    """Return the bytes of a sweep in each format that can hold a matrix."""
    found = ((f, bytes_per_sweep(f, facts)) for f in Format if f is not Format.AUTO)
    return {f: size for f, size in found if size is not None}


def worthwhile(facts: Facts) -> list[Format]:
    """Return the formats that are expected to beat CSR, the best first.

    Parameters
    ----------
    facts
        What is known of the matrix.
    """
    found = estimates(facts)
    if found[Format.CSR] < SMALL_SWEEP_BYTES:
        return []
    cost = {f: size + gather_bytes(f, facts) * facts.entries for f, size in found.items()}
    if Format.PANELS in cost:
        cost[Format.PANELS] += panel_wait_bytes(facts)
    if facts.rows_are_long:
        cost = {f: c for f, c in cost.items() if f in FOR_LONG_ROWS}
    # A format is built where it is estimated to move a tenth less than CSR does.
    ceiling = 0.9 * cost[Format.CSR]
    return sorted((f for f in cost if cost[f] < ceiling), key=lambda f: cost[f])


def estimate_line(found: dict[Format, int], chosen: Format) -> str:
    """Return estimates and choice in one line, for `-gpuinfo`.

    Parameters
    ----------
    found
        Bytes a sweep of each format.
    chosen
        The format that was taken.
    """
    sizes = (
        f"{f} {size / 1e6:.1f}{' (chosen)' if f is chosen else ''}" for f, size in found.items()
    )
    return f"estimated MB a sweep: {', '.join(sizes)}"
