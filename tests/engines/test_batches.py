"""Batches of sweeps: judged after so many whatever the clock says, and shown in pieces if slow."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from engines.host.engine import CpuEngine
from engines.methods import iterate as sweeping
from engines.methods.iterate import BATCH_SECONDS, FIRST_BATCH, iterate, stop_threshold
from engines.model.csr import CsrMatrix
from engines.model.environment import Method, SolverEnvironment
from engines.systems.one_sided import SweepSystem

STATES = 40
PACES = (1e-6, 0.01, 0.06, 2.0)


class Paced:
    """Sweeps that take as long as a test wants, by a clock of the test's own."""

    def __init__(self, environment, pace):
        system = SweepSystem(_walk(), np.zeros(STATES), offset=np.eye(STATES)[0] * 0.5)
        self._sweeper = CpuEngine().sweeper(system, stop_threshold(environment), False)
        self._pace, self.now, self.pieces = pace, 0.0, []
        self.cost, self.seconds = self._sweeper.cost, 0.0
        self.residual, self.values = self._sweeper.residual, self._sweeper.values

    def run(self, sweeps):
        changes = self._sweeper.run(sweeps)
        self.now += self._pace * len(changes)
        self.pieces.append(len(changes))
        return changes


class Few(Paced):
    """Sweeps that are made a few at a time, as cycles are."""

    longest_run = 6

    def run(self, sweeps):
        return super().run(min(sweeps, self.longest_run))


def _walk():
    """A walk on a line that leaves at one end, and stays at the other."""
    rows = [(i, j) for i in range(STATES) for j in (i - 1, i + 1) if 0 <= j < STATES]
    columns = np.array([column for _, column in rows], dtype=np.int32)
    lengths = np.bincount([row for row, _ in rows], minlength=STATES)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return CsrMatrix(offsets, columns, np.full(len(columns), 0.5), STATES)


def solved(monkeypatch, environment, pace, kind=Paced):
    sweeper, told = kind(environment, pace), []
    clock = SimpleNamespace(perf_counter=lambda: sweeper.now)
    with monkeypatch.context() as patch:
        patch.setattr(sweeping, "time", clock)
        ended = iterate(sweeper, environment, progress=told.append)
    return ended, sweeper, told


@pytest.mark.parametrize("kind", [Paced, Few])
@pytest.mark.parametrize(
    "environment",
    [
        SolverEnvironment(epsilon=1e-8),
        SolverEnvironment(epsilon=1e-8, method=Method.POWER),
        SolverEnvironment(epsilon=1e-8, max_iterations=1001, max_iterations_named=True),
    ],
)
def test_no_clock_decides_how_many_sweeps_are_made(monkeypatch, environment, kind):
    first, quick, _ = solved(monkeypatch, environment, PACES[0], kind)
    assert len(quick.pieces) > 2
    for pace in PACES[1:]:
        ended, slow, told = solved(monkeypatch, environment, pace, kind)
        assert (ended.status, ended.iterations) == (first.status, first.iterations)
        assert (ended.change, ended.error_estimate) == (first.change, first.error_estimate)
        assert np.array_equal(slow.values(), quick.values())
        # All that was swept is shown, each sweep once.
        assert told[-1].iterations == ended.iterations
        assert sum(len(report.numbers) for report in told) == ended.iterations
        assert [report.iterations for report in told] == np.cumsum(slow.pieces).tolist()


def test_slow_sweeps_are_shown_while_they_are_made(monkeypatch):
    environment = SolverEnvironment(epsilon=1e-8)
    for pace in PACES:
        _, sweeper, _ = solved(monkeypatch, environment, pace)
        after_first = sweeper.pieces[1:]
        assert sweeper.pieces[0] == FIRST_BATCH
        assert max(after_first) * pace <= max(BATCH_SECONDS, pace)


def test_a_threshold_met_at_the_end_of_a_piece_ends_the_sweeps(monkeypatch):
    environment = SolverEnvironment(epsilon=1e-3, method=Method.POWER)
    whole, _, _ = solved(monkeypatch, environment, 0.0)
    for pace in (BATCH_SECONDS, BATCH_SECONDS / 2, BATCH_SECONDS / 3):
        ended, sweeper, _ = solved(monkeypatch, environment, pace)
        assert ended == whole
        assert sum(sweeper.pieces) == whole.iterations > FIRST_BATCH
