"""Hybrid matrices made into compressed sparse rows on the CPU's cores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from engines.cpu import diagram_kernels, kernels
from engines.cpu.chunks import CHUNKS_PER_THREAD
from engines.diagrams.diagram import Diagram, StateNumbering
from engines.diagrams.hybrid import HybridMatrix
from engines.diagrams.layers import foreign_variable
from engines.formats.csr import CsrMatrix, FloatArray, IndexArray, index_dtype


def copy_rows(hybrid: HybridMatrix, rows: range | None = None) -> CsrMatrix:
    """Return rows of a hybrid matrix without choices.

    Parameters
    ----------
    hybrid
        The matrix; its columns must fit into 32 bits.
    rows
        Consecutive rows; None for all.
    """
    first, last = (0, hybrid.num_states) if rows is None else (rows.start, rows.stop)
    size = last - first
    kernels.use_threads(hybrid.num_entries)
    places = _entries_before_strips(hybrid)
    bounds = _cut(hybrid, places, first, last)
    before = np.array([_entries_before(hybrid, places, int(row)) for row in bounds])
    entries = int(before[-1] - before[0])
    offsets = np.empty(size + 1, dtype=index_dtype(entries))
    offsets[-1] = entries
    columns = np.empty(entries, dtype=np.int32)
    values = np.empty(entries)
    diagram_kernels.copy_rows(
        _unsigned(bounds),
        _unsigned(before - before[0]),
        _unsigned(hybrid.strip_states),
        _unsigned(hybrid.strip_jobs),
        _unsigned(hybrid.job_blocks),
        _unsigned(hybrid.job_columns),
        _unsigned(hybrid.block_rows),
        _unsigned(hybrid.local_offsets),
        _unsigned(hybrid.local_columns),
        hybrid.local_values,
        _unsigned(offsets),
        _unsigned(columns),
        values,
    )
    return CsrMatrix(offsets, columns, values, hybrid.num_columns)


def copy_choices(hybrid: HybridMatrix) -> tuple[CsrMatrix, IndexArray, NDArray[np.int32]]:
    """Return the choices of all states, one a row.

    Parameters
    ----------
    hybrid
        A matrix with choices; its columns must fit into 32 bits.

    Returns
    -------
    The matrix; where the rows of each state start, shape (states + 1,); and the choice that each
    row is, shape (rows,).
    """
    choices = hybrid.job_choices
    assert choices is not None, "a hybrid matrix without choices"
    kernels.use_threads(hybrid.num_entries)
    bounds = _cut(hybrid, _entries_before_strips(hybrid), 0, hybrid.num_states)
    found = np.empty(hybrid.num_states, dtype=np.uint32)
    entries = np.empty(len(bounds) - 1, dtype=np.uint64)
    strips = (
        *(_unsigned(hybrid.strip_states), _unsigned(hybrid.strip_jobs)),
        _unsigned(hybrid.job_blocks),
    )
    blocks = (_unsigned(hybrid.block_rows), _unsigned(hybrid.local_offsets))
    diagram_kernels.count_choices(
        _unsigned(bounds), *strips, _unsigned(choices), *blocks, found, entries
    )
    rows = int(found.sum(dtype=np.int64))
    groups = np.zeros(hybrid.num_states + 1, dtype=index_dtype(rows))
    np.cumsum(found, out=groups[1:])
    del found
    starts = np.zeros(len(bounds), dtype=np.uint64)
    np.cumsum(entries, out=starts[1:])
    offsets = np.empty(rows + 1, dtype=index_dtype(hybrid.num_entries))
    offsets[-1] = hybrid.num_entries
    numbers = np.empty(rows, dtype=np.int32)
    columns = np.empty(hybrid.num_entries, dtype=np.int32)
    values = np.empty(hybrid.num_entries)
    copy: Any = diagram_kernels.copy_choices
    copy(
        *(_unsigned(bounds), starts, _unsigned(groups), *strips),
        *(_unsigned(hybrid.job_columns), _unsigned(choices), *blocks),
        *(_unsigned(hybrid.local_columns), hybrid.local_values),
        *(_unsigned(offsets), _unsigned(numbers), _unsigned(columns), values),
    )
    return CsrMatrix(offsets, columns, values, hybrid.num_columns), groups, numbers


def read_points(
    diagram: Diagram, numbering: StateNumbering, states: IndexArray, roots: IndexArray
) -> FloatArray:
    """Return the values of functions of row variables at states, each function by its root.

    Parameters
    ----------
    diagram
        The functions.
    numbering
        The states.
    states, roots
        Shape (points,): the state, and the node that the function begins with.

    Raises
    ------
    InvalidModelError
        A function depends on a variable that is not a row's.
    """
    kernels.use_threads(len(states))
    pieces = get_num_threads() * CHUNKS_PER_THREAD
    bounds = np.linspace(0, len(states), pieces + 1).astype(np.int64)
    results = np.empty(len(states))
    wrong = np.zeros(pieces, dtype=np.uint32)
    read: Any = diagram_kernels.read_points
    read(
        *(_unsigned(bounds), _unsigned(states.astype(np.int64, copy=False))),
        _unsigned(roots.astype(np.int32, copy=False)),
        *(_unsigned(diagram.variables), _unsigned(diagram.low), _unsigned(diagram.high)),
        *(diagram.values, _unsigned(numbering.rows), _unsigned(numbering.low)),
        *(_unsigned(numbering.high), _unsigned(numbering.low_counts), numbering.root),
        *(results, wrong),
    )
    if wrong.any():
        raise foreign_variable(diagram, int(wrong.max()), "row or choice variables")
    return results


def _unsigned(array: IndexArray) -> IndexArray:
    view: IndexArray = kernels.unsigned(np.ascontiguousarray(array))
    return view


def _entries_before_strips(hybrid: HybridMatrix) -> NDArray[np.int64]:
    """Return the number of entries before each strip, shape (strips + 1,)."""
    before = np.zeros(hybrid.num_jobs + 1, dtype=np.int64)
    np.cumsum(hybrid.block_entries()[hybrid.job_blocks], out=before[1:])
    places: NDArray[np.int64] = before[hybrid.strip_jobs]
    return places


def _entries_before(hybrid: HybridMatrix, places: NDArray[np.int64], row: int) -> int:
    """Return the number of entries before a row."""
    if row >= hybrid.num_states:
        return int(places[-1])
    strip = int(np.searchsorted(hybrid.strip_states, row, side="right")) - 1
    jobs = hybrid.job_blocks[hybrid.strip_jobs[strip] : hybrid.strip_jobs[strip + 1]]
    starts = hybrid.block_rows[jobs]
    ends = starts + (row - int(hybrid.strip_states[strip]))
    inside = (hybrid.local_offsets[ends] - hybrid.local_offsets[starts]).sum()
    return int(places[strip]) + int(inside)


def _cut(
    hybrid: HybridMatrix, places: NDArray[np.int64], first: int, last: int
) -> NDArray[np.int64]:
    """Cut rows into pieces of about equal work, shape (pieces + 1,)."""
    pieces = get_num_threads() * CHUNKS_PER_THREAD
    # A row costs its entries and about two entries' worth of its own.
    work = places + 2 * hybrid.strip_states
    ends = np.interp((first, last), hybrid.strip_states, work)
    wanted = np.interp(np.linspace(ends[0], ends[1], pieces + 1), work, hybrid.strip_states)
    bounds: NDArray[np.int64] = np.clip(wanted.astype(np.int64), first, last)
    bounds[0], bounds[-1] = first, last
    return bounds
