"""A diagram's hybrid matrix: the jobs above a level, and the blocks below it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engines.arrays import INT32_MAX, offsets_of
from engines.diagrams.diagram import NO_STATES
from engines.diagrams.hybrid import HybridMatrix
from engines.diagrams.layers import NO_BLOCK
from engines.diagrams.survey import Survey
from engines.errors import UnsupportedError
from engines.host.blocks import copy_rows

JOBS_AT_ONCE = 1_000_000
"""More are followed down piece by piece, since a level takes some 80 bytes a job meanwhile."""

NESTED_ENTRIES = 20_000
"""From so many entries on, blocks are put together from smaller blocks."""


@dataclass(frozen=True)
class Frontier:
    """Where all paths stand on one level: strips, and the jobs of each.

    Parameters
    ----------
    strip_rows
        Shape (strips,), int32: row node of the numbering.
    strip_states
        Shape (strips,), int64: first state.
    strip_jobs
        Shape (strips + 1,), int64: where the jobs of each strip start.
    triples
        Shape (jobs,), int32: triple of the level. Jobs are sorted by strip, choice and column.
    columns
        Shape (jobs,), int64: first column.
    choices
        Shape (jobs,), int32; None for a single root.
    """

    strip_rows: NDArray[np.int32]
    strip_states: NDArray[np.int64]
    strip_jobs: NDArray[np.int64]
    triples: NDArray[np.int32]
    columns: NDArray[np.int64]
    choices: NDArray[np.int32] | None


def build(surveyed: Survey, level: int | None = None) -> HybridMatrix:
    """Return the hybrid matrix of a survey.

    Parameters
    ----------
    surveyed
        The survey of the matrix.
    level
        Where the blocks begin; None for the level that `Survey.best_level` names.

    Raises
    ------
    UnsupportedError
        The blocks are too large, or too many.
    ValueError
        There is no such level.
    """
    chosen = surveyed.best_level() if level is None else level
    surveyed.check_level(chosen)
    return _assemble(surveyed, _at_top(surveyed), 0, chosen, surveyed.num_entries)


def _assemble(
    surveyed: Survey, frontier: Frontier, above: int, level: int, entries: int
) -> HybridMatrix:
    """Return the hybrid matrix of what lies below a frontier, which stands on level `above`."""
    num_states = int(surveyed.numbering.counts[frontier.strip_rows].sum())
    below = follow(surveyed, frontier, above, level)
    layer = surveyed.layers[level]
    blocks = len(layer.nodes)
    if blocks > INT32_MAX:
        raise UnsupportedError(f"{blocks} blocks at level {level} of a diagram are too many")
    block_rows = offsets_of(surveyed.numbering.counts[layer.rows])
    offsets, columns, values = _blocks(surveyed, level, block_rows)
    return HybridMatrix(
        block_rows=block_rows,
        local_offsets=offsets,
        local_columns=columns,
        local_values=values,
        strip_states=np.append(below.strip_states, num_states),
        strip_jobs=below.strip_jobs,
        job_blocks=below.triples,
        job_columns=below.columns,
        job_choices=below.choices,
        num_columns=surveyed.numbering.num_states,
        num_entries=entries,
        level=level,
    )


def _at_top(surveyed: Survey) -> Frontier:
    begun = np.flatnonzero(surveyed.roots != NO_BLOCK)
    strips = 1 if surveyed.numbering.num_states else 0
    return Frontier(
        np.full(strips, surveyed.numbering.root, dtype=np.int32),
        np.zeros(strips, dtype=np.int64),
        np.array([0, len(begun)][: strips + 1], dtype=np.int64),
        surveyed.roots[begun].astype(np.int32),
        np.zeros(len(begun), dtype=np.int64),
        begun.astype(np.int32) if surveyed.with_choices else None,
    )


def _at_blocks(surveyed: Survey, level: int, block_rows: NDArray[np.int64]) -> Frontier:
    """Return the frontier whose strips are the blocks of a level, one under another."""
    layer = surveyed.layers[level]
    blocks = len(layer.nodes)
    return Frontier(
        layer.rows,
        block_rows[:-1],
        np.arange(blocks + 1, dtype=np.int64),
        np.arange(blocks, dtype=np.int32),
        np.zeros(blocks, dtype=np.int64),
        None,
    )


def _blocks(
    surveyed: Survey, level: int, block_rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Return offsets, columns and values of the blocks of a level, as those of one matrix."""
    frontier = _at_blocks(surveyed, level, block_rows)
    entries = int(surveyed.layers[level].entries.sum())
    deeper = _nested_level(surveyed, level) if entries >= NESTED_ENTRIES else None
    if deeper is not None:
        # The blocks one under another are a hybrid matrix themselves, of fewer entries.
        whole = copy_rows(_assemble(surveyed, frontier, level, deeper, entries))
        columns = whole.columns.astype(np.int32, copy=False)
        return whole.row_offsets.astype(np.int64, copy=False), columns, whole.values
    below = follow(surveyed, frontier, level, surveyed.num_levels)
    values = surveyed.diagram.values[surveyed.layers[-1].nodes[below.triples]]
    return below.strip_jobs, below.columns.astype(np.int32), values


def _nested_level(surveyed: Survey, level: int) -> int | None:
    """Return the level to put the blocks of another together from; None if none saves much."""
    blocks = surveyed.block_entries()
    paths = surveyed.paths(level, np.ones(len(surveyed.layers[level].nodes), dtype=np.int64))
    work = blocks[level:] + np.array([path.sum() for path in paths])
    best = level + int(work.argmin())
    return best if best > level and work[best - level] < blocks[level] // 2 else None


def follow(surveyed: Survey, frontier: Frontier, level: int, last: int) -> Frontier:
    """Follow all paths from one level to another.

    Parameters
    ----------
    surveyed
        The survey.
    frontier
        Where the paths stand on `level`.
    level, last
        The level that they start on, and the one that they end on.
    """
    for at in range(level, last):
        if len(frontier.triples) > JOBS_AT_ONCE and len(frontier.strip_rows) > 1:
            half = _half(frontier)
            parts = [follow(surveyed, part, at, last) for part in _cut(frontier, half)]
            return _joined(*parts)
        frontier = _step(surveyed, frontier, at)
    return frontier


def _step(surveyed: Survey, frontier: Frontier, level: int) -> Frontier:
    """Follow all paths one level down, keeping strips and jobs sorted."""
    numbering = surveyed.numbering
    layer = surveyed.layers[level]
    strips = len(frontier.strip_rows)
    strip_of_job = np.repeat(np.arange(strips), np.diff(frontier.strip_jobs))
    width = numbering.low_counts[layer.columns[frontier.triples]]
    # Of each half of the rows: its jobs, in order, and how many there are before each strip.
    halves: list[tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]] = []
    counts = np.empty((strips, 2), dtype=np.int64)
    kept = []
    for bit in (0, 1):
        children = layer.children[bit][:, frontier.triples].T.ravel()
        present = np.flatnonzero(children != NO_BLOCK)
        parent = present >> 1
        first = frontier.columns[parent] + np.where(present & 1, width[parent], 0)
        owners = strip_of_job[parent]
        counts[:, bit] = np.bincount(owners, minlength=strips)
        halves.append((children[present], first, owners))
        kept.append(parent)
    before = np.zeros((strips + 1, 2), dtype=np.int64)
    np.cumsum(counts, axis=0, out=before[1:])
    jobs = int(before[-1].sum())
    triples = np.empty(jobs, dtype=np.int32)
    first_columns = np.empty(jobs, dtype=np.int64)
    choices = None if frontier.choices is None else np.empty(jobs, dtype=np.int32)
    for bit, (children, first, owners) in enumerate(halves):
        # The lower half of a strip comes behind the upper halves of those before it, the upper
        # half behind its own lower one.
        place = np.arange(len(children)) + before[owners + bit, 1 - bit]
        triples[place] = children
        first_columns[place] = first
        if choices is not None and frontier.choices is not None:
            choices[place] = frontier.choices[kept[bit]]
    rows = np.stack((numbering.low[frontier.strip_rows], numbering.high[frontier.strip_rows]), 1)
    states = np.stack((frontier.strip_states, frontier.strip_states), 1)
    states[:, 1] += numbering.low_counts[frontier.strip_rows]
    with_states = rows.ravel() != NO_STATES
    strip_jobs = offsets_of(counts.ravel()[with_states])
    return Frontier(
        rows.ravel()[with_states],
        states.ravel()[with_states],
        strip_jobs,
        triples,
        first_columns,
        choices,
    )


def _half(frontier: Frontier) -> int:
    """Return the strip that cuts a frontier into two of about equally many jobs."""
    middle = np.searchsorted(frontier.strip_jobs, len(frontier.triples) // 2)
    return min(max(1, int(middle)), len(frontier.strip_rows) - 1)


def _cut(frontier: Frontier, strip: int) -> tuple[Frontier, Frontier]:
    job = int(frontier.strip_jobs[strip])

    def part(strips: slice, jobs: slice, offsets: slice) -> Frontier:
        return replace(
            frontier,
            strip_rows=frontier.strip_rows[strips],
            strip_states=frontier.strip_states[strips],
            strip_jobs=frontier.strip_jobs[offsets] - frontier.strip_jobs[offsets][0],
            triples=frontier.triples[jobs],
            columns=frontier.columns[jobs],
            choices=None if frontier.choices is None else frontier.choices[jobs],
        )

    lower = part(slice(0, strip), slice(0, job), slice(0, strip + 1))
    upper = part(slice(strip, None), slice(job, None), slice(strip, None))
    return lower, upper


def _joined(lower: Frontier, upper: Frontier) -> Frontier:
    choices = None
    if lower.choices is not None and upper.choices is not None:
        choices = np.concatenate((lower.choices, upper.choices))
    return Frontier(
        np.concatenate((lower.strip_rows, upper.strip_rows)),
        np.concatenate((lower.strip_states, upper.strip_states)),
        np.concatenate((lower.strip_jobs, upper.strip_jobs[1:] + lower.strip_jobs[-1])),
        np.concatenate((lower.triples, upper.triples)),
        np.concatenate((lower.columns, upper.columns)),
        choices,
    )
