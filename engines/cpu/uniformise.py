"""Sums of powers on the host."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from engines.cpu import engine as cpu
from engines.cpu import host_loops
from engines.cpu.engine import dense_array
from engines.cpu.sparse_tools import CsrProduct
from engines.formats.csr import FloatArray, IndexArray
from engines.progress import Progress
from engines.result import SweepCost
from engines.uniformisation import PowerSum, Summed

if TYPE_CHECKING:
    from engines.cpu.host_loops import HostPowers

NUMBA_SWEEPS = 50_000
"""From this many sweeps on, numba's start-up is repaid however small the matrix is."""

ARRAY_BATCH = 64
"""Sweeps of NumPy or SciPy between two looks whether anything still changes."""

NUMBA_BATCH_ENTRIES = 20_000_000
"""Entries that compiled loops sweep between two looks at the clock."""

PROGRESS_SECONDS = 0.25


def sum_powers(problem: PowerSum, progress: Progress | None) -> Summed:
    """Compute Σ_k c_k P^k x; see `engines.uniformisation`.

    Parameters
    ----------
    problem
        The sum.
    progress
        Called a few times a second with the sweeps made, the share of the sum still to come and
        the seconds so far.
    """
    began = time.perf_counter()
    system = problem.system
    entries = system.matrix.num_entries
    host = _host_of(problem)
    cost = SweepCost("CPU", host.kernel, "csr", system.bytes_per_sweep + problem.stay.nbytes)
    started = reported = time.perf_counter()
    done = told = 0
    while done < problem.last:
        end = min(done + host.batch, problem.last)
        fixed = host.advance(problem.coefficients(done + 1, end + 1))
        if fixed is not None:
            done += fixed
            host.total += problem.after(done) * host.vectors[0][host.where]
            break
        done = end
        now = time.perf_counter()
        if isinstance(host, _ByHost) and host_loops.is_long(entries, now - started):
            host.threads.leave_a_core()
            if host_loops.may_leave(now - started):
                host = _Numba(problem, host)
                cost = replace(cost, kernel=host.kernel)
        if progress is not None and now - reported >= PROGRESS_SECONDS:
            progress(problem.report(told, done, now - started))
            told, reported = done, now
    sweeping = time.perf_counter() - started
    if progress is not None and done > told:
        progress(problem.report(told, done, sweeping))
    return Summed(host.total, done, started - began, sweeping, cost)


class _Host:
    """The sum so far, and the vector of the last sweep in `vectors[0]`.

    Parameters
    ----------
    problem
        The sum.
    before
        Where another way has got to; None for the beginning.
    """

    kernel: str
    batch: int

    def __init__(self, problem: PowerSum, before: _Host | None = None) -> None:
        system = problem.system
        self.where = slice(None) if system.states is None else system.states
        self.vectors: list[FloatArray]
        self.total: FloatArray
        if before is not None:
            self.vectors, self.total = before.vectors, before.total
        else:
            self.vectors = [system.start.copy(), system.start.copy()]
            self.total = problem.coefficients(0, 1)[0] * system.start[self.where]

    def advance(self, coefficients: FloatArray) -> int | None:
        """Make a sweep for each coefficient and add it, shape (sweeps,).

        Returns
        -------
        After how many sweeps none changes anything any more, or None.
        """
        raise NotImplementedError


def _host_of(problem: PowerSum) -> _Host:
    """Return the way that is the sooner one for a problem."""
    entries = problem.system.matrix.num_entries
    many = entries >= host_loops.FEWEST_ENTRIES_OF_SUMS or problem.last >= NUMBA_SWEEPS
    loops = host_loops.stand_in(entries) if many else None
    if loops is not None:
        threads = host_loops.Threads(entries, problem.system.matrix.num_rows)
        powers = loops.powers(problem, host_loops.pieces_for(problem.system, threads.most))
        if powers is not None:
            return _ByHost(problem, powers, f"{loops.name}, threads {threads.most}", threads)
    if entries >= cpu.NUMBA_ENTRIES or problem.last >= NUMBA_SWEEPS:
        return _Numba(problem)
    return _Arrays(problem)


class _ByHost(_Host):
    """Loops that whoever hosts the engines has compiled already."""

    def __init__(
        self, problem: PowerSum, powers: HostPowers, kernel: str, threads: host_loops.Threads
    ) -> None:
        super().__init__(problem)
        self.batch = max(
            ARRAY_BATCH, NUMBA_BATCH_ENTRIES // (problem.system.matrix.num_entries + 1)
        )
        self.kernel = kernel
        self._powers = powers
        self.threads = threads

    def advance(self, coefficients: FloatArray) -> int | None:
        threads, started = self.threads.now(), time.perf_counter()
        x, x_new = self.vectors
        made, same = self._powers.add(coefficients, x, x_new, self.total, threads)
        self.threads.note(threads, made, time.perf_counter() - started)
        self.vectors = self.vectors[:: -1 if made % 2 else 1]
        return made if same else None


class _Arrays(_Host):
    """NumPy for what fits a small dense matrix, else SciPy."""

    batch = ARRAY_BATCH

    def __init__(self, problem: PowerSum) -> None:
        super().__init__(problem)
        self._stay, self._rate = problem.stay, problem.rate
        matrix = problem.system.matrix
        dense = matrix.num_rows * matrix.num_columns <= cpu.DENSE_CELLS
        self.kernel = "NumPy" if dense else "SciPy"
        self._rates: Any = dense_array(matrix) if dense else CsrProduct(matrix)

    def advance(self, coefficients: FloatArray) -> int | None:
        where = self.where
        for coefficient in coefficients.tolist():
            x, x_new = self.vectors
            after = self._rates @ x
            after /= self._rate
            after += self._stay * x[where]
            x_new[where] = after
            if coefficient:
                self.total += coefficient * after
            self.vectors = [x_new, x]
        same = np.array_equal(self.vectors[0], self.vectors[1])
        return len(coefficients) if same else None


class _Numba(_Host):
    """One loop over all sweeps where one thread will do, else a parallel kernel a sweep."""

    def __init__(self, problem: PowerSum, before: _Host | None = None) -> None:
        super().__init__(problem, before)
        from engines.cpu import kernels, uniformise_kernels

        system, matrix = problem.system, problem.system.matrix
        self.batch = max(ARRAY_BATCH, NUMBA_BATCH_ENTRIES // (matrix.num_entries + 1))
        self._threads = kernels.use_threads(matrix.num_entries)
        self.kernel = f"numba, threads {self._threads}"
        states = np.empty(0, dtype=np.int32) if system.states is None else system.states
        rows, columns = kernels.unsigned(matrix.row_offsets), kernels.unsigned(matrix.columns)
        self._arrays = (rows, columns, matrix.values, states, problem.stay, problem.rate)
        self._bounds = kernels.chunk_bounds(matrix.row_offsets)
        self._kernels = uniformise_kernels
        # No coefficient or no chunk, no work: this loads or compiles the kernel.
        if self._threads == 1:
            self._add_powers(np.empty(0))
        else:
            self._add_power(self._bounds[:1], 0.0)

    def _add_powers(self, coefficients: FloatArray) -> tuple[int, bool]:
        arguments: tuple[Any, ...] = (*self._arrays, coefficients, *self.vectors, self.total)
        made, same = self._kernels.add_powers(*arguments)
        return int(made), bool(same)

    def _add_power(self, bounds: IndexArray, coefficient: float) -> bool:
        arguments: tuple[Any, ...] = (*self._arrays, coefficient, *self.vectors, self.total)
        return bool(self._kernels.add_power(bounds, *arguments))

    def advance(self, coefficients: FloatArray) -> int | None:
        if self._threads == 1:
            made, same = self._add_powers(coefficients)
            self.vectors = self.vectors[:: -1 if made % 2 else 1]
            return made if same else None
        for made, coefficient in enumerate(coefficients.tolist(), start=1):
            same = self._add_power(self._bounds, coefficient)
            self.vectors = self.vectors[::-1]
            if same:
                return made
        return None
