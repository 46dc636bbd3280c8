"""How a thread takes its rows: how many entries at a time, and one row or several."""

from __future__ import annotations

from dataclasses import replace

from engines.cuda.formats.layout import Layout
from engines.model.choice import LONG_ROWS, SMALL_SWEEP_BYTES, Format
from engines.systems.one_sided import SweepSystem

USUAL = 4
"""What the kernels are compiled for without being told."""

BATCHES = {
    Format.CSR: (2, 4),
    Format.VALUES: (2, 4),
    Format.PATTERNS: (2, 4),
}
"""What a format's rows are taken by."""

BATCH_COST = 1.5
"""What a batch costs beside its loads, in loads: the wait for them. With this the least cost is the
fastest on an H200, or within 3 % of it, for mean row lengths of 1.6 to 9.6 (nand, consensus 6,
tandem 1023, cluster 230, polling 16, kanban 5): rows of 1.6 entries take 10 % less than by four of
them at a time, and values of any row length up to 15 % less than by eight."""

FAR_VECTOR_BYTES = 50_000_000
"""Where the iterate outgrows an H200's second-level cache of 50 MB, entries of it come from memory,
and words of a dictionary leave registers for more of them on their way: of rows of `FAR_ROWS` and
more, eight are asked for at a time. Microseconds of values by eight and by four, in runs apart:
polling 19 457 and 487, polling 18 212 and 218, fms 9 463 and 476. Polling 17, whose iterate fits,
96 and 92."""

FAR_ROWS = 8
FAR_BATCH = 8

UNEVEN = 8
"""Where the longest row of an MDP is so many times the mean, a thread has the rows of one state:
the block that takes many states waits for each such row. wlan 6, with rows of 64 entries among rows
of 1.8, by patterns 142 over 187 microseconds, by values 173 over 322; consensus 6, whose rows have
one entry or two, 34 over 32 by patterns."""


def in_batches(layout: Layout, system: SweepSystem, entries: int) -> Layout:
    """Return a layout whose kernels take rows in the way that suits their lengths.

    Parameters
    ----------
    layout
        The matrix.
    system
        What is to be solved. Of small sweeps the wait is all that counts; they are left alone.
    entries
        How many the matrix has on the device.
    """
    rows, choice = system.matrix.num_rows, BATCHES.get(layout.matrix_format)
    small = system.bytes_per_sweep < SMALL_SWEEP_BYTES
    if choice is None or small or entries >= LONG_ROWS * rows:
        return layout
    mean = entries / rows
    batch = batch_for(mean, choice)
    far = system.num_states * 8 > FAR_VECTOR_BYTES and mean >= FAR_ROWS
    if far and layout.matrix_format is Format.VALUES:
        batch = FAR_BATCH
    if batch != USUAL:
        layout = replace(layout, defines=(*layout.defines, f"OWN_BATCH={batch}"))
    if system.group_offsets is not None:
        uneven = int(system.matrix.row_lengths().max()) >= UNEVEN * mean
        return replace(layout, chunked=False) if uneven else layout
    if layout.matrix_format is Format.VALUES and batch == 2:
        # Rows so short are done before those that follow are looked up: nand 46 over 52
        # microseconds, egl 39 over 44.
        return replace(layout, defines=(*layout.defines, "ALONE"), chunked=False)
    return layout


def batch_for(mean: float, choice: tuple[int, ...]) -> int:
    """Return the batch of least cost for rows of a mean length.

    Parameters
    ----------
    mean
        Entries a row.
    choice
        The batches that there are.
    """

    def cost(batch: int) -> float:
        return -(-mean // batch) * (batch + BATCH_COST)

    return min(choice, key=cost)
