"""How rows are laid out and swept on a GPU: what was measured, on an H200."""

from __future__ import annotations

from dataclasses import dataclass

from engines.model.choice import Format


@dataclass(frozen=True)
class BatchTuning:
    """How many entries of a row a thread asks for at a time (`engines.cuda.formats.batches`).

    Parameters
    ----------
    cost_in_loads
        What a batch costs beside its loads: the wait for them. With this the least cost is the
        fastest, or within 3 % of it, for mean row lengths of 1.6 to 9.6 (nand, consensus 6, tandem
        1023, cluster 230, polling 16, kanban 5): rows of 1.6 entries take 10 % less than by four of
        them at a time, and values of any row length up to 15 % less than by eight.
    far_vector_bytes
        Where the iterate outgrows the second-level cache of 50 MB, entries of it come from memory,
        and words of a dictionary leave registers for more of them on their way. Microseconds of
        values by eight and by four, in runs apart: polling 19 457 and 487, polling 18 212 and 218,
        fms 9 463 and 476. Polling 17, whose iterate fits, 96 and 92.
    far_row_entries, far_batch_entries
        From which mean row length on, and how many are then asked for.
    uneven_ratio
        Where the longest row of an MDP is so many times the mean, a thread has the rows of one
        state: the block that takes many states waits for each such row. wlan 6, with rows of 64
        entries among rows of 1.8, by patterns 142 over 187 microseconds, by values 173 over 322;
        consensus 6, whose rows have one entry or two, 34 over 32 by patterns.
    """

    cost_in_loads: float = 1.5
    far_vector_bytes: int = 50_000_000
    far_row_entries: int = 8
    far_batch_entries: int = 8
    uneven_ratio: int = 8


@dataclass(frozen=True)
class PanelTuning:
    """How states are cut into panels (`engines.cuda.formats.panels`).

    Parameters
    ----------
    blocks_a_processor
        Blocks that share a processor's memory. More of them would copy their part of the iterate
        while another sums, but have smaller panels with more padding and sums: herman 15 takes
        28.0 µs with one, 29.6 with two and 32.5 with four.
    processor_threads
        Threads of these blocks together; their registers allow no more.
    most_states
        The most states of a panel. As many as fit: herman 15 takes 28.0 µs with two panels of
        16,384 states, and 29.4 with four of 8,192.
    most_codes
        The most values of a dictionary, which lies in shared memory too: a code is a byte.
    sparse_rows
        Beyond so many rows, all panels counted, there must be an entry for each.
    """

    blocks_a_processor: int = 1
    processor_threads: int = 1024
    most_states: int = 28_672
    most_codes: int = 256
    sparse_rows: int = 1 << 20


@dataclass(frozen=True)
class Manner:
    """How a format is swept by windows.

    Parameters
    ----------
    blocks
        Threads of a block, the faster first: fewer take smaller pieces, which leave room for a
        wider window.
    most_ahead
        The most pieces that a window holds beside what it needs; the kernel has barriers for 16.
    """

    blocks: tuple[int, ...]
    most_ahead: int


@dataclass(frozen=True)
class WindowTuning:
    """Which matrices are swept by windows, and how (`engines.cuda.windows`).

    Parameters
    ----------
    steps_in_order
        Rows a thread, where a band is too wide for windows and for the cache.
    least_banded_rows
        From so many rows on, a matrix is looked at for a band along its diagonal.
    least_ahead
        Pieces of x that a window has to hold beside what lies between the farthest entries of a
        row: one for the rows at work, and one that is on its way for those that follow.
    least_chunk_rows
        From so many rows a block on, a matrix is swept by windows. Microseconds over those without:
        CSR, tandem 767, 1023, 2047 and 4095 20 over 20, 32 over 36, 127 over 143 and 532 over 564;
        patterns 8.3 over 9.1, 12 over 14, 42 over 61 and 159 over 270.
    widths_a_chunk
        A block has to have so many times the rows that its window is wide: it fills the window
        first. Cluster 320 in CSR, with 1.2 times: 101 over 92 microseconds.
    csr, patterns
        The formats that are swept by windows. Values are slower by these, and entries had no matrix
        whose band fits. What the window leaves of shared memory is the cache of the entries: with
        16 pieces tandem 1023 and 2047 take 35 and 137 microseconds in place of 32 and 127.
    """

    steps_in_order: int = 8
    least_banded_rows: int = 1 << 20
    least_ahead: int = 2
    least_chunk_rows: int = 1 << 13
    widths_a_chunk: int = 2
    csr: Manner = Manner((1024, 512), 3)
    patterns: Manner = Manner((832, 512), 16)

    def manner(self, matrix_format: Format) -> Manner | None:
        """Return how a format is swept; None where it is not."""
        return {Format.CSR: self.csr, Format.PATTERNS: self.patterns}.get(matrix_format)


@dataclass(frozen=True)
class RowTuning:
    """How rows are laid out and swept (`engines.cuda.rows.DeviceRows`).

    Parameters
    ----------
    batches, panels, windows
        Each of these.
    """

    batches: BatchTuning = BatchTuning()
    panels: PanelTuning = PanelTuning()
    windows: WindowTuning = WindowTuning()
