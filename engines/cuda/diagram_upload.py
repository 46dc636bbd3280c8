"""Matrices in the hybrid representation, copied to the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX
from engines.cuda.driver import cupy
from engines.cuda.formats.layout import nbytes
from engines.cuda.modules import Launcher
from engines.cuda.transfer import to_device
from engines.diagrams.hybrid import HybridMatrix
from engines.errors import UnsupportedError

MODULE = "diagrams"

GUIDED = 64
"""States a guide, which says where the search for a state's strip begins; as in the kernels."""

MOST_STATES = INT32_MAX - 1024
"""The most states or rows that 32 bits number, up to the end of the last block of threads."""


@dataclass(frozen=True)
class DeviceHybrid:
    """A matrix in the hybrid representation on the device, all indices in 32 bits.

    Parameters
    ----------
    guides
        Shape (states / GUIDED + 2,): the strip of every GUIDED-th state, then the last strip.
    strip_states, strip_jobs
        As in `HybridMatrix`.
    jobs
        Shape (jobs, 2): the first local row of a job's block, and its first column.
    job_choices
        Shape (jobs,), or None.
    local_offsets
        As in `HybridMatrix`.
    local_entries
        Shape (local entries, 2), float64: the value, and the bits of the local column as an int64.
    num_states, num_columns, num_entries
        Of the whole matrix.
    """

    guides: Any
    strip_states: Any
    strip_jobs: Any
    jobs: Any
    job_choices: Any | None
    local_offsets: Any
    local_entries: Any
    num_states: int
    num_columns: int
    num_entries: int

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The kernels' arguments for the matrix."""
        return (
            *(self.guides, self.strip_states, self.strip_jobs, self.jobs, self.job_choices),
            *(self.local_offsets, self.local_entries),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return nbytes(*self.arguments)


def hybrid_bytes(hybrid: HybridMatrix) -> int:
    """Return the bytes that a matrix takes on the device in the hybrid representation.

    Parameters
    ----------
    hybrid
        The matrix.
    """
    guides = 4 * (hybrid.num_states // GUIDED + 2)
    jobs = hybrid.num_jobs * (8 if hybrid.job_choices is None else 12)
    local = 4 * len(hybrid.local_offsets) + 16 * len(hybrid.local_values)
    return guides + 8 * (hybrid.num_strips + 1) + jobs + local


def most_rows(hybrid: HybridMatrix) -> int:
    """Return the number of rows; of an MDP, the most that there may be.

    Parameters
    ----------
    hybrid
        The matrix.
    """
    if hybrid.job_choices is None or hybrid.num_jobs == 0:
        return hybrid.num_states
    first = np.ones(hybrid.num_jobs, dtype=np.bool_)
    np.not_equal(hybrid.job_choices[1:], hybrid.job_choices[:-1], out=first[1:])
    starts = hybrid.strip_jobs[:-1]
    first[starts[starts < hybrid.num_jobs]] = True
    choices = np.diff(np.append(0, np.cumsum(first))[hybrid.strip_jobs])
    return int(choices @ np.diff(hybrid.strip_states))


def check_sizes(hybrid: HybridMatrix) -> None:
    """Raise unless 32 bits number what kernels number in them.

    Parameters
    ----------
    hybrid
        The matrix.

    Raises
    ------
    UnsupportedError
        Naming what is too many: states, columns, jobs, local rows or local entries.
    """
    sizes = {
        "states": hybrid.num_states,
        "columns": hybrid.num_columns,
        "jobs": hybrid.num_jobs,
        "local rows": len(hybrid.local_offsets) - 1,
        "local entries": len(hybrid.local_values),
    }
    for what, size in sizes.items():
        if size > MOST_STATES:
            raise UnsupportedError(f"{size} {what}: the GPU engine numbers them in 32 bits")


def upload_hybrid(hybrid: HybridMatrix, launcher: Launcher) -> DeviceHybrid:
    """Copy a matrix in the hybrid representation to the current device.

    Parameters
    ----------
    hybrid
        The matrix.
    launcher
        Launches the kernels.

    Raises
    ------
    UnsupportedError
        As in `check_sizes`.
    """
    cp = cupy()
    check_sizes(hybrid)
    jobs = np.empty((hybrid.num_jobs, 2), dtype=np.int32)
    jobs[:, 0] = hybrid.block_rows[hybrid.job_blocks]
    jobs[:, 1] = hybrid.job_columns
    local = np.empty((len(hybrid.local_values), 2), dtype=np.float64)
    local[:, 0] = hybrid.local_values
    local.view(np.int64)[:, 1] = hybrid.local_columns
    strip_states = to_device(hybrid.strip_states, np.int32)
    guides = cp.empty(hybrid.num_states // GUIDED + 2, dtype=cp.int32)
    launcher.launch(
        "guide_strips",
        len(guides),
        *(strip_states, cp.int32(hybrid.num_strips), cp.int32(len(guides)), guides),
        module=MODULE,
    )
    choices = hybrid.job_choices
    return DeviceHybrid(
        *(guides, strip_states, to_device(hybrid.strip_jobs, np.int32)),
        to_device(jobs, np.int32),
        None if choices is None else to_device(choices, np.int32),
        to_device(hybrid.local_offsets, np.int32),
        to_device(local, np.float64),
        *(hybrid.num_states, hybrid.num_columns, hybrid.num_entries),
    )
