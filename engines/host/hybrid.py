"""Matrices as shared blocks in the compiled library: their diagonals, and walks through them."""

from __future__ import annotations

from ctypes import c_int32, c_int64, c_void_p

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.diagrams.hybrid import HybridMatrix
from engines.errors import UnsupportedError
from engines.host.compiled.library import (
    DOUBLES,
    INDICES,
    MASKS,
    Array,
    Function,
    Structure,
    doubles,
    indices,
)
from engines.host.compiled.shares import check_bounds, even_shares


class HostHybrid(Structure):
    """`PgHybrid` of src/hybrid.hpp, and what is asked of one."""

    _fields_ = (
        ("strips", c_int64),
        ("strip_states", c_void_p),
        ("strip_jobs", c_void_p),
        ("job_rows", c_void_p),
        ("job_columns", c_void_p),
        ("local_offsets", c_void_p),
        ("local_columns", c_void_p),
        ("local_values", c_void_p),
    )

    num_states: int
    num_entries: int
    nbytes: int

    @classmethod
    def of(cls, hybrid: HybridMatrix) -> HostHybrid:
        """Return a matrix without choices as the library reads it; arrays are shared.

        Parameters
        ----------
        hybrid
            The matrix, square; it must not be changed while the library reads it.

        Raises
        ------
        UnsupportedError
            When states have choices.
        ValueError
            When the arrays do not fit each other.
        """
        if hybrid.job_choices is not None:
            raise UnsupportedError("the hybrid representation is swept for chains, not for choices")
        _check(hybrid)
        arrays: tuple[NDArray[np.generic], ...] = (
            *(indices(hybrid.strip_states), indices(hybrid.strip_jobs)),
            indices(hybrid.block_rows[hybrid.job_blocks]),
            *(indices(hybrid.job_columns), indices(hybrid.local_offsets)),
            np.ascontiguousarray(hybrid.local_columns, dtype=np.int32),
            doubles(hybrid.local_values),
        )
        made = cls(hybrid.num_strips, *(array.ctypes.data for array in arrays))
        made._kept = arrays
        made.num_states, made.num_entries = hybrid.num_states, hybrid.num_entries
        made.nbytes = sum(array.nbytes for array in arrays)
        return made

    def row_parts(self) -> tuple[FloatArray, FloatArray]:
        """Return each state's entry on the diagonal, and the sum of its others, both (states,)."""
        diagonal, others = np.empty(self.num_states), np.empty(self.num_states)
        _PARTS(self, *even_shares(self.num_states, self.num_entries), diagonal, others)
        return diagonal, others

    def exit_rates(self) -> FloatArray:
        """Return each state's sum of rates without self-loops, 1 for none, shape (states,)."""
        rates = self.row_parts()[1]
        rates[rates == 0.0] = 1.0
        return rates

    def reached_from(self, state: int) -> tuple[MaskArray, int]:
        """Return the states that one leads to, itself included, and one of the farthest.

        Parameters
        ----------
        state
            Where paths begin.

        Returns
        -------
        Shape (states,), and the state that was found last.
        """
        reached = np.zeros(self.num_states, dtype=np.bool_)
        queue = np.empty(self.num_states, dtype=np.uint32)
        reached[state], queue[0] = True, state
        count = int(_REACH(self, reached, queue))
        return reached, int(queue[count - 1])


_PARTS = Function(
    "pg_hybrid_parts",
    None,
    *(HostHybrid, INDICES, c_int64, c_int32),
    *(DOUBLES, DOUBLES),
)
_REACH = Function("pg_hybrid_reach", c_int64, HostHybrid, MASKS, Array(np.uint32))


def _check(hybrid: HybridMatrix) -> None:
    """Raise ValueError unless strips, jobs and blocks lie where they can."""
    jobs, strips = hybrid.num_jobs, hybrid.num_strips
    if hybrid.num_columns != hybrid.num_states:
        raise ValueError(f"{hybrid.num_states} states, but {hybrid.num_columns} columns")
    check_bounds(hybrid.strip_states, hybrid.num_states)
    check_bounds(hybrid.strip_jobs, jobs)
    check_bounds(hybrid.block_rows, len(hybrid.local_offsets) - 1)
    check_bounds(hybrid.local_offsets, len(hybrid.local_values))
    if len(hybrid.strip_jobs) != strips + 1:
        raise ValueError(f"{strips} strips, but {len(hybrid.strip_jobs) - 1} with jobs")
    if len(hybrid.local_columns) != len(hybrid.local_values):
        raise ValueError(
            f"{len(hybrid.local_columns)} columns, but {len(hybrid.local_values)} values"
        )
    if len(hybrid.job_columns) != jobs or _outside(hybrid.job_blocks, hybrid.num_blocks):
        raise ValueError(f"{jobs} jobs do not lie in {hybrid.num_blocks} blocks")
    heights = np.repeat(np.diff(hybrid.strip_states), np.diff(hybrid.strip_jobs))
    if (np.diff(hybrid.block_rows)[hybrid.job_blocks] != heights).any():
        raise ValueError("a block has not as many rows as its strip")
    last = hybrid.job_columns + _last_columns(hybrid)[hybrid.job_blocks]
    lowest = min(hybrid.job_columns.min(initial=0), hybrid.local_columns.min(initial=0))
    if lowest < 0 or last.max(initial=-1) >= hybrid.num_columns:
        raise ValueError(f"a column is not one of {hybrid.num_columns}")


def _last_columns(hybrid: HybridMatrix) -> NDArray[np.int64]:
    """Return each block's last column less its first, −1 for none, shape (blocks,)."""
    starts = hybrid.local_offsets[hybrid.block_rows]
    filled = starts[:-1] < starts[1:]
    last = np.full(hybrid.num_blocks, -1, dtype=np.int64)
    if filled.any():
        last[filled] = np.maximum.reduceat(hybrid.local_columns, starts[:-1][filled])
    return last


def _outside(numbers: IndexArray, count: int) -> bool:
    return bool(len(numbers)) and not 0 <= int(numbers.min()) <= int(numbers.max()) < count
