"""The CPU engine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from engines.cpu import host_loops, substitution, warm_up
from engines.cpu.prepare import scaled
from engines.cpu.sparse_tools import CsrProduct
from engines.cpu.substitution import Substituted
from engines.formats.choice import Format
from engines.formats.csr import CsrMatrix, FloatArray, IndexArray
from engines.result import SweepCost
from engines.system import Direction, SingleSweeper, SweepSystem

if TYPE_CHECKING:
    from engines.cpu.dictionaries import Layout
    from engines.cpu.host_loops import HostSweeps
    from engines.cpu.space import HostSpace

NUMBA_ENTRIES = 100_000
"""From this many entries on, numba is faster; where it has to be started, that has to be repaid."""

NUMBA_ENTRIES_IF_READY = 500
"""The same where the kernels of sweeps are loaded as well: a sweep is a call no longer."""

NUMBA_ENTRIES_AT_START = 1_000_000
"""From this many entries on, a few dozen sweeps repay numba's start-up."""

NUMBA_SECONDS = 0.5
"""A smaller solve that has swept for so long has many sweeps left, as a rule, and numba makes them
several times faster: what is risked is its start-up, which takes as long."""

ENCODE_SWEEPS = 100
"""Sweeps in CSR before rows are looked through for patterns, which takes as long as ten or twenty:
a solve that has made so many makes many more, as a rule."""

ENCODE_SECONDS = 0.25
"""Seconds of sweeps before that: loading its kernels takes as long."""

COMPILE_SECONDS = 10.0
"""The same where its kernels are yet to be compiled."""

DENSE_CELLS = 1 << 16
"""Up to this many cells a dense matrix is swept as fast, and SciPy need not be imported."""

Step = Callable[[FloatArray, FloatArray, bool], float]
Repeat = Callable[[FloatArray, float, FloatArray, FloatArray, bool], int]
"""Makes sweeps until one changes less than a threshold, notes their changes, returns how many."""


def repays_numba(entries: int) -> bool:
    """Return whether sweeps of a matrix should be compiled from the first one on.

    Parameters
    ----------
    entries
        Number of entries of the matrix.
    """
    if warm_up.kernels_ready():
        return entries >= NUMBA_ENTRIES_IF_READY
    started = "numba" in sys.modules
    return entries >= (NUMBA_ENTRIES if started else NUMBA_ENTRIES_AT_START)


def largest_residual(system: SweepSystem, x: FloatArray) -> float:
    """Return the largest absolute value of b + A x − x of a chain, as compiled sweeps find it.

    Parameters
    ----------
    system
        Without choices and without a scaling.
    x
        Shape (states,).
    """
    rows = system.num_updates
    after = np.zeros(rows) if system.offset is None else np.array(system.offset, dtype=np.float64)
    CsrProduct(system.matrix).added(x, after)
    with np.errstate(invalid="ignore"):
        after -= x if system.states is None else x[system.states]
    # Infinity less infinity counts as no change.
    return float(np.fmax.reduce(np.abs(after, out=after), initial=0.0))


class CpuEngine:
    """Sweeps on the host's cores.

    Parameters
    ----------
    matrix_format
        How matrices are laid out: csr, values or patterns; any other becomes csr, with a remark.
        By default rows are swept in CSR, and by patterns in a long solve that they make faster.
    """

    name = "CPU"

    def __init__(self, matrix_format: Format = Format.AUTO) -> None:
        self._format = matrix_format

    def sweeper(self, system: SweepSystem, stop_below: float, absolute: bool) -> CpuSweeper:
        """Prepare a solve; see `engines.system.Engine.sweeper`."""
        return CpuSweeper(scaled(system), stop_below, absolute, self._format)


class CpuSweeper:
    """A solve on the host: two vectors, swapped after each sweep."""

    def __init__(
        self,
        system: SweepSystem,
        stop_below: float,
        absolute: bool,
        matrix_format: Format = Format.AUTO,
    ) -> None:
        self.seconds = 0.0
        self._paced_seconds, self._paced_sweeps = 0.0, 0
        self._layout: Layout | None = None
        self._named = matrix_format
        self._may_encode = matrix_format is Format.AUTO
        self._stop_below = stop_below
        self._absolute = absolute
        self._x = np.array(system.start, dtype=np.float64)
        self._x_new = self._x.copy()
        self._system = system
        self._compiled = False
        self._on_host: _HostSteps | None = None
        self._repeat: Repeat | None = None
        self.cost = SweepCost(
            "CPU", "NumPy" if _is_dense(system) else "SciPy", "csr", system.bytes_per_sweep
        )
        entries = system.matrix.num_entries
        if matrix_format not in (Format.AUTO, Format.CSR):
            self._use_format(matrix_format)
        elif self._begins_by_arrays(entries) or not self._use_host():
            if repays_numba(entries):
                self.use_numba()
            else:
                self._step, self._plain_step = _array_steps(system)

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.system.Sweeper.run`."""
        if not self._compiled and self._wants_numba():
            self.use_numba()
        if self._may_encode and self._should_encode():
            return self._try_patterns(sweeps)
        return self._run(sweeps)

    def _run(self, sweeps: int) -> FloatArray:
        started = time.perf_counter()
        changes = np.empty(sweeps)
        if self._repeat is not None:
            vectors = (self._x, self._x_new)
            done = self._repeat(changes, self._stop_below, *vectors, self._absolute)
            self._x, self._x_new = vectors[:: -1 if done % 2 else 1]
        else:
            done = self._sweep_each(changes)
        took = time.perf_counter() - started
        self.seconds += took
        self._paced_seconds += took
        self._paced_sweeps += done
        return changes[:done]

    def _wants_numba(self) -> bool:
        if self._on_host is None and self.seconds > host_loops.LATE_SECONDS:
            self._use_host()
        if self._on_host is None:
            return self.seconds > NUMBA_SECONDS
        if not host_loops.is_long(self._system.matrix.num_entries, self.seconds):
            return False
        self._on_host.threads.leave_a_core()
        return host_loops.may_leave(self.seconds)

    def _should_encode(self) -> bool:
        small = self._system.matrix.num_entries < NUMBA_ENTRIES
        if small or not self._compiled or self._paced_sweeps < ENCODE_SWEEPS:
            return False
        if self._paced_seconds < ENCODE_SECONDS:
            return False
        from engines.cpu import dictionaries

        return self._paced_seconds >= COMPILE_SECONDS or dictionaries.are_ready()

    def _try_patterns(self, sweeps: int) -> FloatArray:
        """Sweep by patterns where there are any, and go back to CSR where that is no faster."""
        self._may_encode = False
        in_csr = (self._step, self._plain_step, self._repeat, self.cost)
        pace = self._paced_seconds / self._paced_sweeps
        self._paced_seconds, self._paced_sweeps = 0.0, 0
        self._use_format(Format.AUTO)
        changes = self._run(sweeps)
        if self._layout is not None and self._paced_seconds > pace * self._paced_sweeps:
            self._x = self.values().copy()
            self._x_new = self._x.copy()
            self._step, self._plain_step, self._repeat, self.cost = in_csr
            self._layout = None
        return changes

    def _use_format(self, matrix_format: Format) -> None:
        from engines.cpu import dictionaries

        if not self._compiled:
            self.use_numba()
        layout, remark = dictionaries.lay_out(self._system, matrix_format)
        self.cost = replace(self.cost, remark=remark)
        if layout is not None:
            self._adopt(layout)

    def _adopt(self, layout: Layout) -> None:
        self._layout = layout
        self._step, self._plain_step = layout.step, layout.plain_step
        self._repeat = layout.repeat
        self._x = layout.inwards(self._x)
        # States that no row computes keep their values in both vectors.
        self._x_new = self._x.copy()
        self.cost = replace(self.cost, format=layout.format, bytes_per_sweep=layout.bytes_per_sweep)

    def _sweep_each(self, changes: FloatArray) -> int:
        for done in range(len(changes)):
            changes[done] = self._step(self._x, self._x_new, self._absolute)
            self._x, self._x_new = self._x_new, self._x
            if changes[done] < self._stop_below:
                return done + 1
        return len(changes)

    def _begins_by_arrays(self, entries: int) -> bool:
        """Return whether NumPy or SciPy sweep first: few entries, and numba is not on its way."""
        chain = self._system.group_offsets is None
        few = host_loops.FEWEST_ENTRIES if chain else host_loops.FEWEST_ENTRIES_WITH_CHOICES
        return entries < few and not repays_numba(entries)

    def _use_host(self) -> bool:
        """Sweep by the host's own loops while numba is not loaded; return whether there are any."""
        entries = self._system.matrix.num_entries
        loops = host_loops.stand_in(entries)
        if loops is None:
            return False
        threads = host_loops.Threads(entries, self._system.matrix.num_rows)
        sweeps = loops.sweeps(self._system, host_loops.pieces_for(self._system, threads.most))
        if sweeps is None:
            return False
        steps = _HostSteps(sweeps, self._system.omega, threads)
        self._step, self._plain_step, self._repeat = steps.step, steps.plain_step, steps.repeat
        self._on_host = steps
        self.cost = replace(self.cost, kernel=f"{loops.name}, threads {threads.most}")
        return True

    def use_numba(self) -> None:
        """Go on with compiled loops, which are loaded or compiled now."""
        if self._layout is not None:
            return
        from engines.cpu import kernels

        threads = kernels.use_threads(self._system.matrix.num_entries)
        self._step, self._plain_step = _numba_steps(self._system)
        self._repeat = _numba_repeat(self._system) if threads == 1 else None
        self._compiled = True
        self._paced_seconds, self._paced_sweeps = 0.0, 0
        self.cost = replace(self.cost, kernel=f"numba, threads {threads}")

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x."""
        if self._on_host is not None and not self._compiled and self._system.group_offsets is None:
            # A host compiles loops for what they meet, and would begin anew for this.
            return largest_residual(self._system, self._x)
        return self._plain_step(self._x, self._x_new, True)

    def in_single(self, stop_below: float, nearest: bool, factor: float = 1.0) -> SingleSweeper:
        """Return sweeps in single precision; see `engines.system.HasSingle`."""
        from engines.cpu.single import CpuSingleSweeper

        start = self.values()
        compiled = self._compiled or repays_numba(self._system.matrix.num_entries)
        how = (stop_below, self._absolute, nearest, factor, compiled)
        single = CpuSingleSweeper(self._system, start, *how)
        if self._named not in (Format.AUTO, Format.CSR):
            remark = f"-gpuformat {self._named}: the CPU sweeps in single precision as csr"
            single.cost = replace(single.cost, remark=remark)
        return single

    def twin(self, start: FloatArray, stop_below: float) -> CpuSweeper:
        """Return sweeps of the same rows from another start; see `engines.system.HasTwin`."""
        system = replace(self._system, start=start)
        twin = CpuSweeper(system, stop_below, self._absolute, Format.CSR)
        twin._named, twin._may_encode = self._named, self._may_encode
        if self._compiled and not twin._compiled:
            twin.use_numba()
        if self._layout is not None:
            twin._adopt(self._layout)
        return twin

    def restart(self, start: FloatArray) -> None:
        """Go on from another iterate; see `engines.linear.space.HasSpace`."""
        self._x = np.array(start) if self._layout is None else self._layout.inwards(start)
        self._x_new = self._x.copy()

    def space(self, system: SweepSystem) -> HostSpace:
        """Return a space for GMRES; see `engines.linear.space.HasSpace`."""
        from engines.cpu.space import HostSpace

        return HostSpace(system, self)

    def substituted(self) -> Substituted:
        """Return what one walk along the edges finds.

        The system has no negative numbers; see `engines.linear.substitution`.
        """
        return substitution.substitute(self._system, self.values())

    def stop_at(self, stop_below: float) -> None:
        """Stop after the first later sweep whose change is below this; negative for never."""
        self._stop_below = stop_below

    def go_on_from(self, single: SingleSweeper) -> None:
        """Take over the mean of the last two iterates; see `engines.system.HasSingle`."""
        from engines.cpu.single import CpuSingleSweeper

        assert isinstance(single, CpuSingleSweeper)
        where = slice(None) if self._system.states is None else self._system.states
        x = np.array(self.values())
        x[where] = single.mean()[where]
        self._x = x if self._layout is None else self._layout.inwards(x)

    def values(self) -> FloatArray:
        """Return the present iterate."""
        return self._x if self._layout is None else self._layout.outwards(self._x)


def _numba_arrays(system: SweepSystem) -> tuple[Any, ...]:
    """Return what the kernels read, as they take it: groups, matrix, offset, states, direction."""
    from engines.cpu import kernels

    matrix = system.matrix
    arrays: tuple[Any, ...] = (
        *(kernels.unsigned(matrix.row_offsets), kernels.unsigned(matrix.columns), matrix.values),
        np.empty(0) if system.offset is None else system.offset,
        np.empty(0, dtype=np.int32) if system.states is None else system.states,
    )
    if system.group_offsets is None:
        return arrays
    minimise = system.direction is Direction.MINIMISE
    return (kernels.unsigned(system.group_offsets), *arrays, minimise)


def _numba_steps(system: SweepSystem) -> tuple[Step, Step]:
    """Return a sweep over all threads, relaxed as the system asks and not relaxed."""
    from engines.cpu import kernels

    arrays = _numba_arrays(system)
    offsets = system.matrix.row_offsets
    groups = system.group_offsets
    bounds = kernels.chunk_bounds(offsets if groups is None else offsets[groups])
    nothing = np.empty(0)

    def step_of(kernel: Any, *last: float) -> Step:
        def step(
            x: FloatArray, x_new: FloatArray, absolute: bool, bounds: IndexArray = bounds
        ) -> float:
            return float(kernel(bounds, *arrays, *last, x, x_new, absolute))

        # No chunk, no work: this loads or compiles the kernel, which belongs to the preparation.
        step(nothing, nothing, True, bounds[:1])
        return step

    if groups is not None:
        step = step_of(kernels.sweep_groups)
        return step, step
    return step_of(kernels.sweep_rows, system.omega), step_of(kernels.sweep_rows, 1.0)


def _numba_repeat(system: SweepSystem) -> Repeat:
    """Return many sweeps on one thread as one call."""
    from engines.cpu import kernels

    arrays = _numba_arrays(system)
    chain = system.group_offsets is None
    kernel: Any = kernels.repeat_rows if chain else kernels.repeat_groups
    if chain:
        arrays = (*arrays, system.omega)

    def repeat(
        changes: FloatArray, stop_below: float, x: FloatArray, x_new: FloatArray, absolute: bool
    ) -> int:
        return int(kernel(changes, stop_below, *arrays, x, x_new, absolute))

    nothing = np.empty(0)
    repeat(nothing, 0.0, nothing, nothing, True)
    return repeat


class _HostSteps:
    """Sweeps by the host's own loops, as the engine calls them."""

    def __init__(self, sweeps: HostSweeps, omega: float, threads: host_loops.Threads) -> None:
        self.sweeps = sweeps
        self._omega = omega
        self.threads = threads

    def repeat(
        self,
        changes: FloatArray,
        stop_below: float,
        x: FloatArray,
        x_new: FloatArray,
        absolute: bool,
    ) -> int:
        threads, started = self.threads.now(), time.perf_counter()
        how = (changes, stop_below, self._omega)
        made = self.sweeps.repeat(*how, x, x_new, absolute, threads)
        self.threads.note(threads, made, time.perf_counter() - started)
        return made

    def step(self, x: FloatArray, x_new: FloatArray, absolute: bool) -> float:
        return self._one(self._omega, x, x_new, absolute)

    def plain_step(self, x: FloatArray, x_new: FloatArray, absolute: bool) -> float:
        return self._one(1.0, x, x_new, absolute)

    def _one(self, omega: float, x: FloatArray, x_new: FloatArray, absolute: bool) -> float:
        change = np.empty(1)
        self.sweeps.repeat(change, -1.0, omega, x, x_new, absolute, self.threads.most)
        return float(change[0])


def _is_dense(system: SweepSystem) -> bool:
    # Zeros that are multiplied must not meet an infinite reward.
    small = system.matrix.num_rows * system.num_states <= DENSE_CELLS
    return small and bool(np.isfinite(system.start).all())


def dense_array(matrix: CsrMatrix) -> Any:
    """Return a small matrix as a NumPy array, shape (rows, columns)."""
    dense = np.zeros((matrix.num_rows, matrix.num_columns))
    np.add.at(dense, (matrix.row_of_entry(), matrix.columns), matrix.values)
    return dense


def _array_steps(system: SweepSystem) -> tuple[Step, Step]:
    matrix = system.matrix
    product = dense_array(matrix).dot if _is_dense(system) else CsrProduct(matrix).into
    in_rows = np.empty(matrix.num_rows)
    groups = None if system.group_offsets is None else system.group_offsets[:-1]
    reduce = np.minimum if system.direction is Direction.MINIMISE else np.maximum
    where = slice(None) if system.states is None else system.states

    def step_with(omega: float) -> Step:
        def step(x: FloatArray, x_new: FloatArray, absolute: bool) -> float:
            before = x[where]
            with np.errstate(over="ignore", invalid="ignore"):
                after = product(x, in_rows)
                if system.offset is not None:
                    after += system.offset
                if groups is not None:
                    after = reduce.reduceat(after, groups)
                if omega != 1.0:
                    after *= omega
                    after += (1.0 - omega) * before
            x_new[where] = after
            return largest_change(before, after, absolute)

        return step

    return step_with(system.omega), step_with(1.0)


def largest_change(before: FloatArray, after: FloatArray, absolute: bool) -> float:
    """Return PRISM's measure of a sweep: the largest absolute or relative change.

    Parameters
    ----------
    before, after
        Values before and after the sweep, of one shape.
    absolute
        Whether the change is absolute; else it is divided by the value before, 0/0 counting as
        no change and a rise from 0 as an infinite one.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        change = np.subtract(after, before)
        np.abs(change, out=change)
        if not absolute:
            change /= np.abs(before)
    # fmax ignores NaN, which stands for 0/0 and for ∞ − ∞.
    return float(np.fmax.reduce(change, initial=0.0))
