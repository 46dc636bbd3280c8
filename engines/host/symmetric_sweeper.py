"""Symmetric Gauss-Seidel for steady states on the host: rows in order, then against it.

A sweep of Gauss-Seidel carries what it computes as far as the order of the states lets it: all the
way where transitions lead on in that order, hardly anywhere where they lead back. By turns in both
directions nothing depends on which of them suits the model. Threads each have a piece of the rows,
and read what the others had before the sweep. Where neighbouring rows have one pattern, Jacobi's
sweeps are sooner done: they take several rows in an instruction.

Sweeps are x' = M⁻¹ N x for a regular splitting of the singular system, whatever the pieces. Their
entries are not negative, and π is a fixed point, so the quotient of the iterate and π is averaged
by each of them. With ω < 1 each state keeps a share of itself, so that 1 is the only eigenvalue on
the unit circle (Rose 1984, Convergent regular splittings for singular M-matrices). With ω = 1 fast
sweeps are faster, and slow ones may swing: after `RELAXED_AFTER` of them they are relaxed.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray
from engines.host import layouts, run_encoding
from engines.host.compiled.shares import ENTRIES_PER_THREAD, cut_rows, threads_for
from engines.host.engine import ENCODE_ENTRIES, CpuSweeper
from engines.host.scaling import scaled
from engines.host.symmetric import HostSymmetricSweeps
from engines.model.choice import Format
from engines.model.environment import Precision, SolverEnvironment
from engines.process.cores import num_cores
from engines.systems.one_sided import RELAXED_OMEGA, Engine, Scaling, SweepSystem

NAME = "Symmetric Gauss-Seidel"

MOST_CORES = 8
"""More threads of Jacobi's sweeps, where a system repays them, are sooner done than these, of which
there are few: in many pieces, which know nothing of each other within a sweep, they would be like
Jacobi's."""

ENTRIES_PER_PIECE = 250_000
"""More pieces of fewer entries know too little of each other: poll11, of 214,016 transitions, takes
96 sweeps in one piece, 229 in two, 1,045 in four."""

RELAXED_AFTER = 96
"""Sweeps after which they are relaxed. Polling, in two pieces, swings: poll13 takes 460 if it
is after 256, 256 so. Cluster, which does not, takes 10 % more of them if it is after 64."""


class SymmetricScheme:
    """Sweeps of steady states in both directions by turns.

    Parameters
    ----------
    ready
        A system, and what it is with its scaling applied, where that is known; None else.
    """

    def __init__(self, ready: tuple[SweepSystem, SweepSystem] | None = None) -> None:
        self._ready = ready

    @classmethod
    def where_best(
        cls, engine: Engine, system: SweepSystem, environment: SolverEnvironment
    ) -> SymmetricScheme | None:
        """Return these sweeps where they are sooner done than those of an engine.

        Parameters
        ----------
        engine
            The engine.
        system
            What is solved.
        environment
            The user's wishes.
        """
        if not (environment.automatic and system.scaling is Scaling.BALANCE):
            return None
        if engine.gpus or environment.precision is not Precision.DOUBLE:
            return None
        if environment.matrix_format not in (Format.AUTO, Format.CSR):
            return None
        of_jacobi = min(num_cores(), system.matrix.num_entries // ENTRIES_PER_THREAD)
        if of_jacobi > MOST_CORES:
            return None
        if environment.matrix_format is not Format.AUTO:
            return cls()
        if system.matrix.num_entries < ENCODE_ENTRIES:
            return cls()
        ready = scaled(system)
        return None if _has_long_runs(ready) else cls((system, ready))

    def sweeper(self, system: SweepSystem, stop_below: float, absolute: bool) -> SymmetricSweeper:
        """Prepare a solve; see `engines.systems.one_sided.Scheme.sweeper`."""
        if self._ready is not None and system.matrix is self._ready[0].matrix:
            ready = replace(self._ready[1], start=system.start)
        else:
            ready = scaled(system)
        return SymmetricSweeper(ready, stop_below, absolute)


def _num_pieces(entries: int) -> int:
    most = min(4, max(2, entries // ENTRIES_PER_PIECE))
    return min(most, threads_for(entries))


def _has_long_runs(system: SweepSystem) -> bool:
    """Return whether Jacobi sweeps a scaled system in runs that read mostly other rows."""
    runs = run_encoding.encode(system)
    # Where runs read more of themselves, as those of a single queue do, sweeps in order carry what
    # they compute far, and are worth more than several rows in an instruction.
    most_inside = 0.5
    return runs is not None and runs.share_inside() <= most_inside


class SymmetricSweeper:
    """A solve; see `engines.systems.one_sided.Sweeper`.

    Parameters
    ----------
    system
        What is swept, without a scaling.
    stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`.
    """

    def __init__(self, system: SweepSystem, stop_below: float, absolute: bool) -> None:
        self.seconds = 0.0
        self._system = system
        self._stop_below, self._absolute = stop_below, absolute
        pieces = _num_pieces(system.matrix.num_entries)
        self._layout = layouts.in_csr(system)
        bounds = cut_rows(system.matrix.row_offsets, pieces)
        self._sweeps = HostSymmetricSweeps(system.matrix, bounds, pieces)
        self._x = np.array(system.start, dtype=np.float64)
        self._x_new = self._x.copy()
        self._made = 0
        self.cost = replace(self._layout.cost(), kernel=f"compiled, threads {pieces}")

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.systems.one_sided.Sweeper.run`."""
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
        how = (changes, self._stop_below, omega, self._made)
        done = self._sweeps.repeat(*how, self._x, self._x_new, self._absolute)
        self._made += done
        if done % 2:
            self._x, self._x_new = self._x_new, self._x
        return done

    def residual(self) -> float:
        """Return the largest absolute value of A x − x."""
        return layouts.residual(self._layout.sweeps, self._x, self._x_new)

    def twin(self, start: FloatArray, stop_below: float) -> CpuSweeper:
        """Return JOR's sweeps of this system; see `engines.systems.one_sided.HasTwin`."""
        how = (stop_below, self._absolute, Format.CSR, self._layout)
        return CpuSweeper(replace(self._system, start=start), *how)

    def values(self) -> FloatArray:
        """Return the present iterate."""
        return self._x
