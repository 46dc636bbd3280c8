"""Layouts of a matrix beside CSR that the CPU sweeps, and which of them a solve gets.

Values with codes are built only where they are asked for. They move half of CSR's bytes, but a core
that works through rows one by one is not held up by its memory, and the look-up comes on top:
measured on kanban and tandem, such a sweep takes as long as CSR's or up to 5 % longer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import get_num_threads

from engines.cpu import coded_kernels, kernels, run_encoding, run_finding, run_kernels
from engines.cpu.compiled import are_compiled
from engines.cpu.run_encoding import Runs
from engines.formats.choice import MOST_CODES, Format
from engines.formats.csr import FloatArray, IndexArray
from engines.formats.values import narrow_codes
from engines.system import Direction, SweepSystem

if TYPE_CHECKING:
    from engines.cpu.engine import Repeat, Step


@dataclass(frozen=True)
class Layout:
    """A matrix that is ready to be swept.

    Parameters
    ----------
    format
        What the log calls it.
    bytes_per_sweep
        Fewest bytes that a sweep moves.
    step, plain_step
        A sweep, relaxed as the system asks and not relaxed.
    repeat
        Many sweeps on one thread; None where there is no such kernel.
    positions
        Shape (states,): where the iterates hold each state; None for its own number.
    """

    format: str
    bytes_per_sweep: int
    step: Step
    plain_step: Step
    repeat: Repeat | None
    positions: IndexArray | None

    def inwards(self, x: FloatArray) -> FloatArray:
        """Return a copy of an iterate, shape (states,), as the sweeps hold it."""
        if self.positions is None:
            return x.copy()
        moved = np.empty_like(x)
        moved[self.positions] = x
        return moved

    def outwards(self, x: FloatArray) -> FloatArray:
        """Return an iterate of the sweeps by states, shape (states,)."""
        return x if self.positions is None else x[self.positions]


def are_ready() -> bool:
    """Return whether the kernels of runs need not be compiled first."""
    return are_compiled(
        *(run_kernels.sweep_runs, run_finding.shapes, run_finding.classify),
        *(run_finding.sorted_in_tiles, run_finding.run_starts, run_finding.fill),
    )


def lay_out(system: SweepSystem, wanted: Format) -> tuple[Layout | None, str]:
    """Lay a matrix out otherwise than in CSR.

    Parameters
    ----------
    system
        A system whose matrix is scaled already.
    wanted
        `Format.AUTO` for what is expected to be faster.

    Returns
    -------
    The layout, and an empty remark; None where the matrix stays in CSR, and why if another format
    was named.
    """
    reason = "the CPU knows csr, values and patterns"
    layout = None
    try:
        if wanted is Format.VALUES:
            layout = _with_codes(system)
            reason = f"there are more than {MOST_CODES} distinct values"
        elif wanted in (Format.AUTO, Format.PATTERNS):
            runs = run_encoding.encode(system)
            layout = None if runs is None else in_runs(system, runs)
            reason = "too few neighbouring rows have the same pattern"
    except MemoryError:
        reason = "there is too little memory to build it"
    if layout is not None or wanted in (Format.AUTO, Format.CSR):
        return layout, ""
    return None, f"-gpuformat {wanted}: {reason}; swept as csr"


def in_runs(system: SweepSystem, runs: Runs) -> Layout:
    """Return sweeps of a system over its runs.

    Parameters
    ----------
    system
        A system whose matrix is scaled already.
    runs
        Its rows.
    """
    chain = system.group_offsets is None
    choose = 0 if chain else -1 if system.direction is Direction.MINIMISE else 1
    arrays = (
        *(runs.firsts, runs.lengths, runs.run_choices, runs.choice_pairs, runs.distances),
        *(runs.numbers, runs.number_starts, runs.givens, runs.given_starts),
        *((int(runs.numbers_apart), int(runs.givens_apart)), choose),
    )
    omega = system.omega if chain else 1.0
    bounds = kernels.chunk_bounds(np.concatenate(([0], np.cumsum(runs.work()))))

    def repeat(
        changes: FloatArray, stop_below: float, x: FloatArray, x_new: FloatArray, absolute: bool
    ) -> int:
        kernel: Any = run_kernels.repeat_runs
        return int(kernel(changes, stop_below, *arrays, omega, x, x_new, absolute))

    step = _step_of(run_kernels.sweep_runs, bounds, (*arrays, omega))
    alone = get_num_threads() == 1
    if alone:
        repeat(np.empty(0), 0.0, np.empty(0), np.empty(0), True)
    return Layout(
        "patterns with values apart" if runs.numbers_apart else "patterns",
        runs.nbytes + 8 * (system.num_states + system.num_updates),
        step,
        step if omega == 1.0 else _step_of(run_kernels.sweep_runs, bounds, (*arrays, 1.0)),
        repeat if alone else None,
        runs.positions,
    )


def _with_codes(system: SweepSystem) -> Layout | None:
    matrix, groups = system.matrix, system.group_offsets
    bits = np.ascontiguousarray(matrix.values).view(np.uint64)
    codes, distinct = run_finding.classify(bits, MOST_CODES)
    if distinct < 0:
        return None
    # Later entries of the same value overwrite it by itself.
    numbers = np.empty(distinct)
    numbers[codes] = matrix.values
    narrow = narrow_codes(codes, distinct)
    arrays: tuple[Any, ...] = (
        *(kernels.unsigned(matrix.row_offsets), kernels.unsigned(matrix.columns), narrow, numbers),
        np.empty(0) if system.offset is None else system.offset,
        np.empty(0, dtype=np.int32) if system.states is None else system.states,
    )
    saved = matrix.values.nbytes - narrow.nbytes - numbers.nbytes
    size = system.bytes_per_sweep - saved
    offsets = matrix.row_offsets
    bounds = kernels.chunk_bounds(offsets if groups is None else offsets[groups])
    if groups is not None:
        minimise = system.direction is Direction.MINIMISE
        arrays = (kernels.unsigned(groups), *arrays, minimise)
        step = _step_of(coded_kernels.sweep_groups, bounds, arrays)
        return Layout("values", size, step, step, None, None)
    kernel = coded_kernels.sweep_rows
    step = _step_of(kernel, bounds, (*arrays, system.omega))
    return Layout("values", size, step, _step_of(kernel, bounds, (*arrays, 1.0)), None, None)


def _step_of(kernel: Callable[..., float], bounds: IndexArray, arrays: tuple[Any, ...]) -> Step:
    def step(
        x: FloatArray, x_new: FloatArray, absolute: bool, bounds: IndexArray = bounds
    ) -> float:
        return float(kernel(bounds, *arrays, x, x_new, absolute))

    # No chunk, no work: this loads or compiles the kernel, which belongs to the preparation.
    step(np.empty(0), np.empty(0), True, bounds[:1])
    return step
