"""Blocks of rows of a system, each a system of its own over the same iterate."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engines.arrays import IndexArray, distinct
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import Scaling, SweepSystem


def row_blocks(system: SweepSystem, pieces: int) -> list[SweepSystem]:
    """Cut the rows of a system into blocks of about equal work.

    Parameters
    ----------
    system
        A system whose matrix is scaled already.
    pieces
        How many blocks are wanted; there are fewer where there are fewer rows or groups.

    Returns
    -------
    Systems over the same states, whose arrays are views; each names the states of its rows. The
    choices of an MDP's state stay together.

    Raises
    ------
    ValueError
        For a system that is still to be scaled.
    """
    if system.scaling is not Scaling.NONE:
        raise ValueError("a block of rows cannot be scaled by itself: scale the system first")
    states = system.states
    if states is None:
        states = np.arange(system.num_updates, dtype=np.int32)
    bounds = _bounds(system, pieces)
    return [
        _block(system, states, int(first), int(last)) for first, last in itertools.pairwise(bounds)
    ]


def _bounds(system: SweepSystem, pieces: int) -> IndexArray:
    """Return where the blocks start and the last one ends, in rows or groups."""
    updates = system.num_updates
    starts = np.arange(updates + 1, dtype=np.int64)
    first_rows = starts if system.group_offsets is None else system.group_offsets
    # What a row costs beside its entries, in entries.
    row_work = 2
    work = system.matrix.row_offsets[first_rows] + row_work * (first_rows + starts)
    wanted = np.linspace(0, work[-1], max(1, pieces) + 1)[1:-1]
    inner = np.searchsorted(work, wanted, side="left")
    bounds: IndexArray = distinct(np.concatenate(([0], inner, [updates])))
    return bounds


def _block(system: SweepSystem, states: IndexArray, first: int, last: int) -> SweepSystem:
    matrix, groups = system.matrix, system.group_offsets
    begin, end = (first, last) if groups is None else (int(groups[first]), int(groups[last]))
    offsets = matrix.row_offsets[begin : end + 1]
    entries = slice(int(offsets[0]), int(offsets[-1]))
    part = CsrMatrix(
        offsets - offsets[0], matrix.columns[entries], matrix.values[entries], matrix.num_columns
    )
    return replace(
        system,
        matrix=part,
        offset=None if system.offset is None else system.offset[begin:end],
        states=states[first:last],
        group_offsets=None if groups is None else groups[first : last + 1] - groups[first],
    )


def counted_from_first(block: SweepSystem) -> tuple[SweepSystem, int]:
    """Number states from a block's first one on, which spares the names of states that form a run.

    Parameters
    ----------
    block
        A block whose rows name their states, in ascending order.

    Returns
    -------
    The block without names, its columns counted from its first state, those before it negative, and
    that state; the block as it is, and 0, where its states do not form a run.
    """
    states = block.states
    if states is None or not len(states) or states[-1] - states[0] != len(states) - 1:
        return block, 0
    first = int(states[0])
    columns = block.matrix.columns
    if first:
        columns = np.subtract(columns, first, dtype=columns.dtype)
    return replace(block, matrix=replace(block.matrix, columns=columns), states=None), first


def ranges_read(blocks: Sequence[SweepSystem]) -> dict[tuple[int, int], tuple[int, int]]:
    """Return what blocks read of each other's states.

    Parameters
    ----------
    blocks
        Blocks of one system, which name their states in ascending order.

    Returns
    -------
    By the place of a block and that of another one that reads states of its, the first state that
    is read and the one behind the last.
    """
    ranges: dict[tuple[int, int], tuple[int, int]] = {}
    for reader, block in enumerate(blocks):
        is_read = np.zeros(block.num_states, dtype=np.bool_)
        is_read[block.matrix.columns] = True
        for place, other in enumerate(blocks):
            assert other.states is not None
            first, end = int(other.states[0]), int(other.states[-1]) + 1
            own = is_read[first:end]
            if place != reader and own.any():
                ranges[place, reader] = (first + int(own.argmax()), end - int(own[::-1].argmax()))
    return ranges
