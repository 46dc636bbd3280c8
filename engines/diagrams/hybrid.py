"""A diagram's matrix as shared sparse blocks, and a list of where they lie.

The hybrid representation of Parker's thesis (2002, chapter 6): the diagram is followed down to a
level; what lies below is a block, stored once however many paths lead to it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray


@dataclass(frozen=True)
class HybridMatrix:
    """A matrix as shared sparse blocks and a list of where they lie.

    The row of state i lies in the strip s with ``strip_states[s] <= i < strip_states[s + 1]``, as
    local row ``r = i - strip_states[s]``. It is made of the jobs j of the strip, one after another:
    with ``p = block_rows[job_blocks[j]] + r``, of the local entries ``local_offsets[p]`` to
    ``local_offsets[p + 1] - 1``, in the columns ``job_columns[j] + local_columns``. Columns come
    out ascending. In an MDP, the rows of a state are its choices, ascending; a choice without an
    entry is not one of the state's.

    Parameters
    ----------
    block_rows
        Shape (blocks + 1,), int64: running number of each block's first local row. There is one
        block for each distinct node of the diagram together with the nodes of the numbering that
        its rows and columns have; none is empty.
    local_offsets
        Shape (local rows + 1,), int64: where the entries of each local row start.
    local_columns
        Shape (local entries,), int32: column less the block's first, ascending in a local row.
    local_values
        Shape (local entries,), float64.
    strip_states
        Shape (strips + 1,), int64: first state of each strip, then the number of states. All blocks
        of a strip have as many rows as the strip; a strip may be without jobs.
    strip_jobs
        Shape (strips + 1,), int64: where the jobs of each strip start.
    job_blocks
        Shape (jobs,), int32. Jobs are sorted by strip, then choice, then first column.
    job_columns
        Shape (jobs,), int64: first column of the block.
    job_choices
        Shape (jobs,), int32: number of the root that a job comes from, which is an MDP's choice;
        None for a single root.
    num_columns
        Number of columns.
    num_entries
        Number of entries of the whole matrix.
    level
        Number of state variables that are decided above the blocks.
    """

    block_rows: NDArray[np.int64]
    local_offsets: NDArray[np.int64]
    local_columns: NDArray[np.int32]
    local_values: FloatArray
    strip_states: NDArray[np.int64]
    strip_jobs: NDArray[np.int64]
    job_blocks: NDArray[np.int32]
    job_columns: NDArray[np.int64]
    job_choices: NDArray[np.int32] | None
    num_columns: int
    num_entries: int
    level: int

    @property
    def num_states(self) -> int:
        """Number of states that rows belong to."""
        return int(self.strip_states[-1])

    @property
    def values(self) -> FloatArray:
        """The values of all entries, each of a block once."""
        return self.local_values

    @property
    def num_strips(self) -> int:
        """Number of strips."""
        return len(self.strip_states) - 1

    @property
    def num_blocks(self) -> int:
        """Number of blocks."""
        return len(self.block_rows) - 1

    @property
    def num_jobs(self) -> int:
        """Number of jobs."""
        return len(self.job_blocks)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (getattr(self, field.name) for field in fields(self))
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    def block_entries(self) -> NDArray[np.int64]:
        """Return the number of entries of each block, shape (blocks,)."""
        entries: NDArray[np.int64] = np.diff(self.local_offsets[self.block_rows])
        return entries
