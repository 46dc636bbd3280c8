"""Symmetric Gauss-Seidel for steady states on the host: rows in order, then against it.

A sweep of Gauss-Seidel carries what it computes as far as the order of the states lets it: all the
way where transitions lead on in that order, hardly anywhere where they lead back. By turns in both
directions nothing depends on which of them suits the model. Threads each have a piece of the rows,
and read what the others had before the sweep.

Sweeps are x' = M⁻¹ N x for a regular splitting of the singular system, whatever the pieces. Their
entries are not negative, and π is a fixed point, so the quotient of the iterate and π is averaged
by each of them. With ω < 1 each state keeps a share of itself, so that 1 is the only eigenvalue on
the unit circle (Rose 1984, Convergent regular splittings for singular M-matrices). With ω = 1 fast
sweeps are faster, and slow ones may swing: after `RELAXED_AFTER` of them they are relaxed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from engines.cpu import host_loops
from engines.cpu.chunks import ENTRIES_PER_THREAD, cut_rows, num_cores
from engines.cpu.engine import CpuEngine, CpuSweeper, largest_residual, repays_numba
from engines.cpu.prepare import scaled
from engines.environment import Precision, SolverEnvironment
from engines.formats.choice import Format
from engines.formats.csr import FloatArray, IndexArray
from engines.gauss_seidel import RELAXED_OMEGA
from engines.result import SweepCost
from engines.system import Engine, Scaling, SweepSystem

if TYPE_CHECKING:
    from engines.cpu.host_loops import HostSymmetricSweeps

NAME = "Symmetric Gauss-Seidel"

FEWEST_ENTRIES = 50_000
"""Smaller systems are swept by NumPy or SciPy, which have no sweeps in order."""

MOST_THREADS = 8
"""More threads of Jacobi's, where a system repays them, are sooner done than these, of which there
are few: in many pieces, which know nothing of each other within a sweep, they would be like it."""

FEWEST_PIECES = 2
ENTRIES_PER_PIECE = 250_000
"""More pieces of fewer entries know too little of each other: poll11, of 214,016 transitions, takes
96 sweeps in one piece, 229 in two, 1,045 in four."""

RELAXED_AFTER = 96
"""Sweeps after which they are relaxed. Polling, in two pieces, swings: poll13 takes 460 if it
is after 256, 256 so. Cluster, which does not, takes 10 % more of them if it is after 64."""


class SymmetricEngine:
    """Sweeps of steady states in both directions by turns.

    Parameters
    ----------
    loops
        The host's loops; None for numba's.
    """

    name = "CPU"

    def __init__(self, loops: host_loops.HostLoops | None) -> None:
        self._loops = loops

    @classmethod
    def where_best(
        cls, engine: Engine, system: SweepSystem, environment: SolverEnvironment
    ) -> SymmetricEngine | None:
        """Return the engine for what another would solve, where this is the sooner way.

        Parameters
        ----------
        engine
            The other engine.
        system
            What is solved.
        environment
            The user's wishes.
        """
        if not (environment.automatic and system.scaling is Scaling.BALANCE):
            return None
        if not isinstance(engine, CpuEngine) or environment.precision is not Precision.DOUBLE:
            return None
        if environment.matrix_format not in (Format.AUTO, Format.CSR):
            return None
        entries = system.matrix.num_entries
        if entries < FEWEST_ENTRIES:
            return None
        loops = host_loops.registered() if entries <= host_loops.MOST_ENTRIES else None
        if loops is not None:
            return cls(loops)  # Jacobi's sweeps would have no more threads there.
        of_jacobi = min(num_cores(), entries // ENTRIES_PER_THREAD)
        return cls(None) if of_jacobi <= MOST_THREADS and repays_numba(entries) else None

    def sweeper(self, system: SweepSystem, stop_below: float, absolute: bool) -> SymmetricSweeper:
        """Prepare a solve; see `engines.system.Engine.sweeper`."""
        system = scaled(system)
        entries = system.matrix.num_entries
        most = max(FEWEST_PIECES, entries // ENTRIES_PER_PIECE)
        threads = host_loops.Threads(entries, most=most)
        pieces = cut_rows(system.matrix.row_offsets, threads.most)
        loops, sweeps = self._loops, None
        if loops is not None:
            sweeps = loops.symmetric_sweeps(system, pieces)
        kernel = "numba" if loops is None or sweeps is None else loops.name
        sweeps = sweeps or NumbaSymmetricSweeps(system, pieces)
        kernel = f"{kernel}, threads {threads.most}"
        cost = SweepCost("CPU", kernel, "csr", system.bytes_per_sweep)
        return SymmetricSweeper(system, sweeps, threads, cost, stop_below, absolute)


class SymmetricSweeper:
    """A solve; see `engines.system.Sweeper`.

    Parameters
    ----------
    system
        What is swept, without a scaling.
    sweeps, threads
        Who sweeps it.
    cost
        What the log says of it.
    stop_below, absolute
        As in `engines.system.Engine.sweeper`.
    """

    def __init__(
        self,
        system: SweepSystem,
        sweeps: HostSymmetricSweeps,
        threads: host_loops.Threads,
        cost: SweepCost,
        stop_below: float,
        absolute: bool,
    ) -> None:
        self.seconds, self.cost = 0.0, cost
        self._system, self._sweeps, self._threads = system, sweeps, threads
        self._stop_below, self._absolute = stop_below, absolute
        self._x = np.array(system.start, dtype=np.float64)
        self._x_new = self._x.copy()
        self._made = 0

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.system.Sweeper.run`."""
        started = time.perf_counter()
        parts: list[FloatArray] = []
        while sweeps > 0:
            relaxed = self._made >= RELAXED_AFTER
            part = np.empty(sweeps if relaxed else min(sweeps, RELAXED_AFTER - self._made))
            done = self._repeat(part, RELAXED_OMEGA if relaxed else 1.0)
            parts.append(part[:done])
            sweeps -= done
            if part[done - 1] < self._stop_below:
                break
        self.seconds += time.perf_counter() - started
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _repeat(self, changes: FloatArray, omega: float) -> int:
        threads, started = self._threads.now(), time.perf_counter()
        how = (changes, self._stop_below, omega, self._made)
        done = self._sweeps.repeat(*how, self._x, self._x_new, self._absolute, threads)
        self._threads.note(threads, done, time.perf_counter() - started)
        self._made += done
        if done % 2:
            self._x, self._x_new = self._x_new, self._x
        return done

    def residual(self) -> float:
        """Return the largest absolute value of A x − x."""
        return largest_residual(self._system, self._x)

    def twin(self, start: FloatArray, stop_below: float) -> CpuSweeper:
        """Return JOR's sweeps of the same system; see `engines.system.HasTwin`."""
        return CpuSweeper(replace(self._system, start=start), stop_below, self._absolute)

    def values(self) -> FloatArray:
        """Return the present iterate."""
        return self._x


class NumbaSymmetricSweeps:
    """See `engines.cpu.host_loops.HostSymmetricSweeps`.

    Parameters
    ----------
    system, pieces
        As in `engines.cpu.host_loops.HostLoops.symmetric_sweeps`.
    """

    def __init__(self, system: SweepSystem, pieces: IndexArray) -> None:
        from engines.cpu import kernels, symmetric_kernels

        matrix = system.matrix
        offsets, columns = kernels.unsigned(matrix.row_offsets), kernels.unsigned(matrix.columns)
        self._arrays = (pieces, offsets, columns, matrix.values)
        self._use_threads, self._sweep = kernels.use_so_many, symmetric_kernels.sweep
        # No piece, no work: this loads or compiles the kernel, which belongs to the preparation.
        nothing = np.empty(0)
        self._sweep(pieces[:1], offsets, columns, matrix.values, False, 1.0, nothing, nothing, True)

    def repeat(
        self,
        changes: FloatArray,
        stop_below: float,
        omega: float,
        begun: int,
        x: FloatArray,
        x_new: FloatArray,
        absolute: bool,
        threads: int,
    ) -> int:
        """Make sweeps; see `engines.cpu.host_loops.HostSymmetricSweeps`."""
        self._use_threads(threads)
        for done in range(len(changes)):
            vectors = (x, x_new) if done % 2 == 0 else (x_new, x)
            backwards = (begun + done) % 2 == 1
            changes[done] = self._sweep(*self._arrays, backwards, omega, *vectors, absolute)
            if changes[done] < stop_below:
                return done + 1
        return len(changes)
