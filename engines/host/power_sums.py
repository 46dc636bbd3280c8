"""Sums of powers on the host."""

from __future__ import annotations

import time
from dataclasses import dataclass

from engines.host.powers import HostPowers
from engines.model.progress import Progress
from engines.model.result import SweepCost
from engines.systems.power_sums import PowerSum, Summed


@dataclass(frozen=True)
class PowerSumTuning:
    """How often the clock is looked at.

    Parameters
    ----------
    batch_work, fewest_sweeps
        Entries and rows that are swept between two looks, but no fewer sweeps than that.
    progress_seconds
        Between two calls of the progress.
    """

    batch_work: int = 20_000_000
    fewest_sweeps: int = 64
    progress_seconds: float = 0.25


def sum_powers(
    problem: PowerSum, progress: Progress | None, tuning: PowerSumTuning | None = None
) -> Summed:
    """Compute Σ_k c_k P^k x; see `engines.questions.uniformisation`.

    Parameters
    ----------
    problem
        The sum.
    progress
        Called a few times a second with the sweeps made, the share of the sum still to come and
        the seconds so far.
    tuning
        How often the clock is looked at; None for the default.
    """
    chosen = tuning or PowerSumTuning()
    began = time.perf_counter()
    system = problem.system
    where = slice(None) if system.states is None else system.states
    x, x_new = system.start.copy(), system.start.copy()
    total = problem.coefficients(0, 1)[0] * system.start[where]
    powers = HostPowers(problem)
    moved = system.bytes_per_sweep + problem.stay.nbytes
    cost = SweepCost((), f"compiled, threads {powers.threads}", "csr", moved)
    work = system.matrix.num_entries + system.matrix.num_rows
    batch = max(chosen.fewest_sweeps, chosen.batch_work // (work + 1))
    started = reported = time.perf_counter()
    done = told = steady = 0
    while done < problem.last:
        end = min(done + batch, problem.last)
        added = powers.add(problem.coefficients(done + 1, end + 1), x, x_new, total)
        if added.steady and not steady:
            steady = done + added.steady
        done += added.sweeps
        if added.sweeps % 2:
            x, x_new = x_new, x
        if added.fixed:
            total += problem.after(done) * x[where]
            break
        now = time.perf_counter()
        if progress is not None and now - reported >= chosen.progress_seconds:
            progress(problem.report(told, done, now - started))
            told, reported = done, now
    sweeping = time.perf_counter() - started
    if progress is not None and done > told:
        progress(problem.report(told, done, sweeping))
    return Summed(total, done, steady, started - began, sweeping, cost)
