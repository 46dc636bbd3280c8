"""Matrices in the hybrid representation, made at random, and their rows by plain loops."""

from __future__ import annotations

import numpy as np

from engines.cuda.diagram_sweeps import DiagramSweeper, laid_out
from engines.cuda.driver import cupy
from engines.cuda.formats.tuning import WindowTuning
from engines.cuda.modules import stream
from engines.diagrams.hybrid import HybridMatrix
from engines.model.csr import CsrMatrix


def random_hybrid(seed, *, strips=40, most_rows=9, most_jobs=4, block_columns=6, choices=0):
    """Strips of random heights over shared blocks; entries have few values; square.

    A block's rows have none to all of its columns. A fifth of the strips has no jobs.
    """
    rng = np.random.default_rng(seed)
    heights = rng.integers(1, most_rows + 1, strips)
    states = np.append(0, np.cumsum(heights))
    size = int(states[-1])
    width = min(block_columns, size)
    blocks = {h: [] for h in range(1, most_rows + 1)}
    rows, offsets, columns, values = [0], [0], [], []
    for height in sorted(set(heights.tolist())):
        for _ in range(3):
            blocks[height].append(len(rows) - 1)
            for _ in range(height):
                there = np.flatnonzero(rng.random(width) < rng.choice([0.0, 0.3, 1.0]))
                columns.extend(there.tolist())
                values.extend((rng.integers(1, 4, len(there)) / (8.0 * width)).tolist())
                offsets.append(len(columns))
            rows.append(rows[-1] + height)
    job_starts, job_blocks, job_columns, job_choices = [0], [], [], []
    places = np.arange(0, size - width + 1, width)
    for height in heights:
        for choice in range(max(choices, 1)):
            count = 0 if rng.random() < 0.2 else int(rng.integers(1, most_jobs + 1))
            at = np.sort(rng.choice(places, min(count, len(places)), replace=False))
            job_columns.extend(at.tolist())
            job_blocks.extend(rng.choice(blocks[int(height)], len(at)).tolist())
            job_choices.extend([3 * choice + 1] * len(at))
        job_starts.append(len(job_blocks))
    hybrid = HybridMatrix(
        *(np.array(rows), np.array(offsets), np.array(columns, dtype=np.int32)),
        np.array(values, dtype=np.float64),
        *(states, np.array(job_starts), np.array(job_blocks, dtype=np.int32)),
        np.array(job_columns, dtype=np.int64),
        np.array(job_choices, dtype=np.int32) if choices else None,
        *(size, 0, 0),
    )
    entries = sum(len(row) for _, _, row in listed(hybrid))
    return HybridMatrix(**{**vars(hybrid), "num_entries": entries})


def listed(hybrid):
    """The rows in order, as (state, choice, [(column, value), ...]); without empty choices."""
    for strip in range(hybrid.num_strips):
        jobs = range(int(hybrid.strip_jobs[strip]), int(hybrid.strip_jobs[strip + 1]))
        first = int(hybrid.strip_states[strip])
        for state in range(first, int(hybrid.strip_states[strip + 1])):
            of_choice = {} if hybrid.job_choices is not None else {0: []}
            for job in jobs:
                place = int(hybrid.block_rows[hybrid.job_blocks[job]]) + state - first
                choice = 0 if hybrid.job_choices is None else int(hybrid.job_choices[job])
                for entry in range(*hybrid.local_offsets[place : place + 2]):
                    column = int(hybrid.job_columns[job]) + int(hybrid.local_columns[entry])
                    row = of_choice.setdefault(choice, [])
                    row.append((column, float(hybrid.local_values[entry])))
            for choice, row in of_choice.items():
                yield state, choice, row


def expanded(hybrid):
    """The matrix, the groups (None for a chain), and the choice of each row."""
    rows = list(listed(hybrid))
    lengths = [len(row) for _, _, row in rows]
    matrix = CsrMatrix(
        np.append(0, np.cumsum(lengths)).astype(np.int32),
        np.array([column for _, _, row in rows for column, _ in row], dtype=np.int32),
        np.array([value for _, _, row in rows for _, value in row], dtype=np.float64),
        hybrid.num_columns,
    )
    if hybrid.job_choices is None:
        return matrix, None, None
    counts = np.bincount([state for state, _, _ in rows], minlength=hybrid.num_states)
    choices = np.array([choice for _, choice, _ in rows], dtype=np.int32)
    return matrix, np.append(0, np.cumsum(counts)), choices


def of_csr(matrix):
    """A square CSR matrix as one strip with one block."""
    return HybridMatrix(
        np.array([0, matrix.num_rows]),
        matrix.row_offsets.astype(np.int64),
        matrix.columns,
        matrix.values,
        *(np.array([0, matrix.num_rows]), np.array([0, 1]), np.array([0], dtype=np.int32)),
        *(np.array([0]), None, matrix.num_columns, matrix.num_entries, 0),
    )


def diagram_sweeper(system, matrix_format, most_patterns=None, tuning=WindowTuning()):
    """What sweeps a diagram's matrix on a device, and stops at no change."""
    with cupy().cuda.Device(0):
        with stream(0):
            rows = laid_out(system, matrix_format, most_patterns, tuning)
        return DiagramSweeper(rows, system, -1.0, True, 0)
