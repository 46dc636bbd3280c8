"""How a thread takes its rows: how many entries at a time, and one row or several."""

from __future__ import annotations

from dataclasses import replace

from engines.cuda.formats.layout import Layout
from engines.cuda.formats.tuning import BatchTuning
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


def in_batches(
    layout: Layout, system: SweepSystem, entries: int, tuning: BatchTuning = BatchTuning()
) -> Layout:
    """Return a layout whose kernels take rows in the way that suits their lengths.

    Parameters
    ----------
    layout
        The matrix.
    system
        What is to be solved. Of small sweeps the wait is all that counts; they are left alone.
    entries
        How many the matrix has on the device.
    tuning
        What was measured.
    """
    rows, choice = system.matrix.num_rows, BATCHES.get(layout.matrix_format)
    small = system.bytes_per_sweep < SMALL_SWEEP_BYTES
    if choice is None or small or entries >= LONG_ROWS * rows:
        return layout
    mean = entries / rows
    batch = batch_for(mean, choice, tuning)
    far = system.num_states * 8 > tuning.far_vector_bytes and mean >= tuning.far_row_entries
    if far and layout.matrix_format is Format.VALUES:
        batch = tuning.far_batch_entries
    if batch != USUAL:
        layout = replace(layout, defines=(*layout.defines, f"OWN_BATCH={batch}"))
    if system.group_offsets is not None:
        uneven = int(system.matrix.row_lengths().max()) >= tuning.uneven_ratio * mean
        return replace(layout, chunked=False) if uneven else layout
    if layout.matrix_format is Format.VALUES and batch == 2:
        # Rows so short are done before those that follow are looked up: nand 46 over 52
        # microseconds, egl 39 over 44.
        return replace(layout, defines=(*layout.defines, "ALONE"), chunked=False)
    return layout


def batch_for(mean: float, choice: tuple[int, ...], tuning: BatchTuning = BatchTuning()) -> int:
    """Return the batch of least cost for rows of a mean length.

    Parameters
    ----------
    mean
        Entries a row.
    choice
        The batches that there are.
    tuning
        What a batch costs.
    """

    def cost(batch: int) -> float:
        return -(-mean // batch) * (batch + tuning.cost_in_loads)

    return min(choice, key=cost)
