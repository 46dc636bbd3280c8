"""Symmetric Gauss-Seidel for steady states: its sweeps, where it serves, and what comes of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from engines.host import symmetric_sweeper as symmetric
from engines.host.engine import CpuEngine
from engines.host.scaling import balance_matrix
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, Method, Precision, SolverEnvironment
from engines.model.result import Status
from engines.questions.steady_state import solve_steady_state
from engines.systems.one_sided import RELAXED_OMEGA, Scaling, SweepSystem
from tests.engines import models
from tests.engines.stationary import eliminated_class

CPU = SolverEnvironment(device=DeviceChoice.CPU, epsilon=1e-10)
PROBLEMS = models.steady_state_problems()


def with_cores(monkeypatch, cores):
    """Let the process have so many cores."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: range(cores), raising=False)


@pytest.fixture(params=[1, 3], ids=["one piece", "three pieces"])
def pieces(request, monkeypatch):
    """Cut systems of any size into so many pieces."""
    monkeypatch.setattr("engines.host.compiled.shares.ENTRIES_PER_THREAD", 1)
    monkeypatch.setattr(symmetric, "ENTRIES_PER_PIECE", 1)
    with_cores(monkeypatch, request.param)
    return request.param


def system_of(rates):
    """The steady state of rates, from the uniform start, as an automatic solve asks for it."""
    start = np.full(rates.num_rows, 1.0 / rates.num_rows)
    return SweepSystem(rates, start, scaling=Scaling.BALANCE, omega=0.9)


def dense(matrix):
    """A matrix with all its zeros."""
    full = np.zeros((matrix.num_rows, matrix.num_columns))
    np.add.at(full, (matrix.row_of_entry(), matrix.columns), matrix.values)
    return full


def swept_plainly(matrix, x, bounds, sweeps, omega):
    """Sweeps by plain loops: the iterate, and the largest relative change of each."""
    full, changes = dense(matrix), []
    for sweep in range(sweeps):
        before, after, largest = x, x.copy(), 0.0
        for first, behind in pairwise(bounds):
            seen = before.copy()
            for row in range(first, behind)[:: 1 if sweep % 2 == 0 else -1]:
                seen[row] = (1.0 - omega) * seen[row] + omega * float(full[row] @ seen)
                largest = max(largest, abs(seen[row] - before[row]) / before[row])
            after[first:behind] = seen[first:behind]
        x = after
        changes.append(largest)
    return x, changes


@pytest.mark.parametrize("seed", range(4))
def test_sweeps_are_those_of_plain_loops(pieces, seed):
    rates = models.recurrent(seed, 40).matrix
    system = system_of(rates)
    sweeper = symmetric.SymmetricScheme().sweeper(system, -1.0, False)
    matrix = balance_matrix(rates)
    bounds = symmetric.cut_rows(matrix.row_offsets, pieces)
    values, changes = swept_plainly(matrix, system.start, bounds, 9, 1.0)
    found = np.concatenate([sweeper.run(4), sweeper.run(5)])
    np.testing.assert_allclose(sweeper.values(), values, rtol=1e-13)
    np.testing.assert_allclose(found, changes, rtol=1e-9)
    defect = np.abs(dense(matrix) @ values - values).max()
    assert sweeper.residual() == pytest.approx(defect, rel=1e-9)


def grid(side):
    """Rates of a walk on a grid: rows of it repeat, as those of two queues do."""
    states = np.arange(side * side).reshape(side, side)
    rows = [{} for _ in range(states.size)]
    for down, across in ((0, 1), (1, 0), (1, 1)):
        here, there = states[: side - down, : side - across], states[down:, across:]
        for source, target in zip(here.ravel(), there.ravel(), strict=True):
            rows[source][int(target)] = 0.9
            rows[target][int(source)] = 0.5
    return models.ctmc(rows).matrix


def test_rows_that_repeat_are_left_to_sweeps_over_runs_unless_they_read_mostly_themselves():
    automatic = SolverEnvironment(method=Method.AUTO)
    queue = models.birth_death(60_000).matrix
    for rates, wanted in ((grid(180), False), (queue, True), (grid(20), True)):
        found = symmetric.SymmetricScheme.where_best(CpuEngine(), system_of(rates), automatic)
        assert (found is not None) == wanted
    by_rows = replace(automatic, matrix_format=Format.CSR)
    assert symmetric.SymmetricScheme.where_best(CpuEngine(), system_of(grid(180)), by_rows)


def test_after_many_sweeps_they_are_relaxed(pieces, monkeypatch):
    monkeypatch.setattr(symmetric, "RELAXED_AFTER", 4)
    rates = models.recurrent(5, 30).matrix
    sweeper = symmetric.SymmetricScheme().sweeper(system_of(rates), -1.0, False)
    changes = sweeper.run(7)
    matrix = balance_matrix(rates)
    bounds = symmetric.cut_rows(matrix.row_offsets, pieces)
    x, _ = swept_plainly(matrix, np.full(30, 1 / 30), bounds, 4, 1.0)
    x, _ = swept_plainly(matrix, x, bounds, 3, RELAXED_OMEGA)
    assert len(changes) == 7
    np.testing.assert_allclose(sweeper.values(), x, rtol=1e-13)


@pytest.mark.usefixtures("pieces")
def test_sweeps_stop_at_the_first_small_change():
    system = system_of(models.recurrent(1, 50).matrix)
    changes = symmetric.SymmetricScheme().sweeper(system, 1e-3, False).run(400)
    assert len(changes) < 400
    assert changes[-1] < 1e-3 <= changes[:-1].min()


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_class_is_balanced(name):
    model, bscc = PROBLEMS[name]
    result = solve_steady_state(model, bscc, CPU)
    if np.count_nonzero(bscc) > 1:
        assert result.method == symmetric.NAME
    assert result.status is Status.CONVERGED
    states = np.flatnonzero(bscc)
    inside = dense(model.matrix)[np.ix_(states, states)]
    exact = eliminated_class(models.csr([dict(enumerate(row)) for row in inside]))
    np.testing.assert_allclose(result.values[states], exact / exact.sum(), rtol=1e-7)


def ring(size, step):
    """A cycle, which Jacobi's sweeps would follow round for ever; states `step` apart."""
    return models.ctmc([{(state + step) % size: 1.0 + state % 3} for state in range(size)])


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("step", [1, -1, 7])
def test_a_periodic_class_settles(step):
    model = ring(60, step)
    result = solve_steady_state(model, np.ones(60, np.bool_), CPU)
    weights = 1.0 / (1.0 + np.arange(60) % 3)
    np.testing.assert_allclose(result.values, weights / weights.sum(), rtol=1e-9)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("epsilon", [1e-6, 1e-10])
def test_parts_that_hardly_exchange_anything_are_weighed_right(monkeypatch, epsilon):
    # Each of two halves settles at once; between them little flows, and no sweep shows it.
    monkeypatch.setattr("engines.methods.direct.fits", lambda _: False)
    size, rare = 40, 1e-2
    rows = []
    for state in range(2 * size):
        half, place = divmod(state, size)
        row = {half * size + (place + 1) % size: 1.0, half * size + (place * 7 + 3) % size: 1.0}
        row.pop(state, None)
        rows.append(row)
    rows[0][size] = rare
    rows[size][0] = 3.0 * rare
    model = models.ctmc(rows)
    environment = replace(CPU, epsilon=epsilon)
    result = solve_steady_state(model, np.ones(2 * size, np.bool_), environment)
    exact = eliminated_class(model.matrix)
    exact /= exact.sum()
    error = np.max(np.abs(result.values - exact) / exact)
    assert result.status is Status.CONVERGED
    assert error <= 2.0 * result.error_estimate
    assert error < 2.0 * epsilon


@pytest.mark.usefixtures("pieces")
def test_shares_below_the_range_of_doubles_are_no_matter():
    # π falls by 1e-3 a state, through the subnormal numbers to 0.
    size = 140
    rows = [{} for _ in range(size)]
    for state in range(size - 1):
        rows[state][state + 1] = 1.0
        rows[state + 1][state] = 1e3
    result = solve_steady_state(models.ctmc(rows), np.ones(size, np.bool_), CPU)
    expected = 1e-3 ** np.arange(size)
    normal = expected > 1e-280
    np.testing.assert_allclose(result.values[normal] / result.values[0], expected[normal], 1e-6)
    assert result.status is Status.CONVERGED


@pytest.mark.usefixtures("pieces")
def test_it_serves_only_where_it_is_asked_for_nothing_else(monkeypatch):
    system, engine = system_of(models.recurrent(1, 20).matrix), CpuEngine()
    serves = symmetric.SymmetricScheme.where_best
    assert serves(engine, system, CPU) is not None
    assert serves(engine, system, replace(CPU, method=Method.JOR)) is None
    assert serves(engine, system, replace(CPU, precision=Precision.MIXED)) is None
    assert serves(engine, system, replace(CPU, matrix_format=Format.PATTERNS)) is None
    assert serves(engine, replace(system, scaling=Scaling.DIAGONAL), CPU) is None
    with_cores(monkeypatch, symmetric.MOST_CORES + 1)
    # Jacobi's sweeps have more threads than these only where the system is large.
    assert serves(engine, system, CPU) is not None
    monkeypatch.setattr(symmetric, "ENTRIES_PER_THREAD", 1)
    assert serves(engine, system, CPU) is None
    with_cores(monkeypatch, 2)
    assert serves(engine, system, CPU) is not None


def test_small_systems_are_cut_into_few_pieces(monkeypatch):
    kernels = []
    monkeypatch.setattr("engines.host.compiled.shares.ENTRIES_PER_THREAD", 1)
    with_cores(monkeypatch, 8)
    rates = models.recurrent(1, 40).matrix
    entries = balance_matrix(rates).num_entries
    for each in (entries, entries // 3, 1):
        monkeypatch.setattr(symmetric, "ENTRIES_PER_PIECE", each)
        kernels.append(symmetric.SymmetricScheme().sweeper(system_of(rates), -1.0, True).cost)
    assert [cost.kernel for cost in kernels] == [f"compiled, threads {most}" for most in (2, 3, 4)]


@pytest.mark.usefixtures("pieces")
def test_large_classes_take_fewer_sweeps_than_jor():
    model = models.birth_death(400)
    everywhere = np.ones(400, np.bool_)
    ours = solve_steady_state(model, everywhere, CPU)
    jor = solve_steady_state(model, everywhere, replace(CPU, method=Method.JOR, omega=0.9))
    assert ours.method == symmetric.NAME
    np.testing.assert_allclose(ours.values, jor.values, rtol=1e-4)
