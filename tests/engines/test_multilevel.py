"""Multilevel aggregation: the steady state of recurrent classes in few cycles, or a refusal."""

from __future__ import annotations

import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.errors import DeviceMemoryError, UnsupportedError
from engines.host.engine import CpuEngine
from engines.host.levels import CpuLevels
from engines.methods import levels
from engines.methods.levels import LevelScheme, solve_by_levels
from engines.model.csr import CsrMatrix
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.model.result import Status
from engines.solve.stages import LEVELS, Levels
from engines.solve.system import solve_system
from engines.systems.one_sided import Scaling, SweepSystem
from tests.engines import models
from tests.engines.stationary import eliminated_class
from tests.gpu import big

ENVIRONMENT = SolverEnvironment()


def balance(matrix, start=None):
    size = matrix.num_rows
    start = np.full(size, 1.0 / size) if start is None else start
    return SweepSystem(matrix, start, scaling=Scaling.BALANCE)


def solved(matrix, environment=ENVIRONMENT):
    system = balance(matrix)
    return solve_by_levels(system, CpuEngine(), environment, system.start)


def two_queues(places, arrive=4.0, pass_on=1.5, leave=2.0):
    """Customers join the first of two queues, pass to the second, and leave; full queues block."""
    first, second = (index.ravel() for index in np.indices((places, places)))
    state = np.arange(places * places)
    moves = (
        (first < places - 1, places, arrive),
        ((first > 0) & (second < places - 1), 1 - places, pass_on),
        (second > 0, -1, leave),
    )
    row = np.concatenate([state[may] for may, _, _ in moves])
    column = np.concatenate([state[may] + shift for may, shift, _ in moves])
    value = np.concatenate([np.full(int(may.sum()), rate) for may, _, rate in moves])
    return big.from_triples(models.ctmc([{}]).kind, places * places, row, column, value).matrix


def blocks(count, size, coupling):
    """A ring of cliques that are hardly ever left, each weaker tied to the next than within."""
    rng = np.random.default_rng(3)
    rows = []
    for state in range(count * size):
        block, place = divmod(state, size)
        row = {block * size + k: float(rng.uniform(0.5, 2)) for k in range(size) if k != place}
        if place == 0:
            row[(block + 1) % count * size + 1] = coupling * float(rng.uniform(0.5, 2))
        rows.append(row)
    return models.ctmc(rows).matrix


@given(seed=st.integers(0, 10_000), size=st.integers(65, 300), loops=st.booleans())
@settings(max_examples=20)
def test_random_classes_have_the_steady_state_of_elimination(seed, size, loops):
    matrix = models.recurrent(seed, size, loops=loops).matrix
    values, error = solved(matrix)
    np.testing.assert_allclose(values, eliminated_class(matrix), rtol=1e-6)
    assert error < 1e-6


@pytest.mark.parametrize(("size", "death"), [(300, 1.1), (600, 1.5), (400, 2.0)])
def test_a_birth_death_chain_is_right_in_every_state_however_rare(size, death):
    values, error = solved(models.birth_death(size, 1.0, death).matrix)
    expected = models.birth_death_answer(size, 1.0, death)
    np.testing.assert_allclose(values, expected, rtol=2e-6)
    assert error < 1e-6


def test_values_below_the_floor_do_not_disturb_the_others():
    size = 3000
    values, _ = solved(models.birth_death(size, 1.0, 3.0).matrix)
    expected = models.birth_death_answer(size, 1.0, 3.0)
    assert expected.min() == 0.0
    large = expected > 1e-200
    np.testing.assert_allclose(values[large], expected[large], rtol=1e-5)
    assert values[~large].max() < 1e-199


@pytest.mark.parametrize("coupling", [1e-3, 1e-9])
def test_blocks_that_hardly_exchange_get_their_weights(coupling):
    matrix = blocks(40, 5, coupling)
    exact = eliminated_class(matrix)
    values, _ = solved(matrix)
    np.testing.assert_allclose(values, exact, rtol=1e-10)
    # Sweeps come to rest with all blocks weighed as they were at the start.
    sweeper = CpuEngine().sweeper(replace(balance(matrix), omega=0.9), 1e-16, True)
    sweeper.run(200)
    assert np.abs(sweeper.values() / sweeper.values().sum() / exact - 1.0).max() > 0.5


@pytest.mark.parametrize("size", [66, 101])
def test_a_periodic_cycle_settles(size):
    rates = np.random.default_rng(size).uniform(0.1, 10.0, size)
    values, _ = solved(models.cycle(size, list(rates)).matrix)
    np.testing.assert_allclose(values, 1 / rates / (1 / rates).sum(), rtol=2e-6)


def test_classes_smaller_than_the_coarsest_level_are_eliminated_at_once():
    matrix = models.recurrent(1, 40).matrix
    levels = CpuLevels(balance(matrix), -1.0, False)
    assert levels.sizes == (40,)
    levels.run(1)
    values = levels.values()
    np.testing.assert_allclose(values / values.sum(), eliminated_class(matrix), rtol=1e-12)


def test_far_fewer_cycles_than_sweeps_where_mass_has_far_to_go():
    matrix = two_queues(60)
    system = balance(matrix)
    told = []
    solve_by_levels(system, CpuEngine(), ENVIRONMENT, system.start, progress=told.append)
    sweeper = CpuEngine().sweeper(replace(system, omega=0.9), 1e-6, False)
    assert 20 * told[-1].iterations < len(sweeper.run(20_000)) < 20_000


def test_cycles_take_over_from_many_sweeps_only_where_elimination_does_not():
    system = replace(balance(two_queues(120)), omega=0.95)
    environment = SolverEnvironment(device=DeviceChoice.CPU)
    swept = solve_system(system, environment, "JOR").values
    for direct in (None, lambda _: (swept, 0.0)):
        told = []
        how = {"direct": direct, "by_levels": True, "progress": told.append}
        result = solve_system(system, environment, "JOR", **how)
        taken_over = any(LEVELS in str(event) for event in result.events)
        assert taken_over is (direct is None)
        # Cycles are told of as further sweeps.
        counts = [report.iterations for report in told]
        assert counts == sorted(counts)
        assert (counts[-1] > result.iterations) is taken_over
        values = result.values / result.values.sum() * swept.sum()
        np.testing.assert_allclose(values, swept, rtol=2e-6)


@pytest.mark.parametrize("enough", [True, False])
def test_cycles_get_the_memory_of_the_sweeps_where_they_lack_it(monkeypatch, enough):
    swept_by, attempts = [], []
    run, levels_on = Levels.run, levels.levels_on

    def noted(stage, solve):
        swept_by.append(weakref.ref(solve.sweeper))
        return run(stage, solve)

    def cramped(*how):
        attempts.append(sum(each() is not None for each in swept_by))
        if attempts[-1] or not enough:
            raise DeviceMemoryError(f"beside {attempts[-1]}")
        return levels_on(*how)

    monkeypatch.setattr(Levels, "run", noted)
    monkeypatch.setattr(levels, "levels_on", cramped)
    system = replace(balance(two_queues(120)), omega=0.95)
    environment = SolverEnvironment(device=DeviceChoice.CPU)
    result = solve_system(system, environment, "JOR", by_levels=True)
    assert attempts == [1, 0]
    assert result.status is Status.CONVERGED
    text = " ".join(str(event) for event in result.events)
    assert LEVELS in text
    assert ("beside 0" in text) is not enough
    # Sweeps go on where they had come to.
    assert (result.iterations > 3_000) is not enough
    monkeypatch.undo()
    expected = solve_system(system, environment, "JOR").values
    scale = expected.sum() / result.values.sum()
    np.testing.assert_allclose(result.values * scale, expected, rtol=2e-6)


@pytest.mark.parametrize("make", [lambda: two_queues(25), lambda: models.recurrent(7, 500).matrix])
def test_levels_hold_the_flows_between_aggregates(make):
    matrix = make()
    size = matrix.num_rows
    levels = CpuLevels(balance(matrix), -1.0, False)
    coarsening = levels._coarsenings[0]
    aggregate, members = coarsening.aggregate, coarsening.members
    count = len(members)
    assert sorted(members[members >= 0]) == list(range(size))
    assert set(aggregate) == set(range(count))
    for number, group in enumerate(members):
        assert all(aggregate[state] == number for state in group[group >= 0])
    wanted = np.zeros((count, count))
    for source, row in enumerate(matrix.row_of_entry()):
        one, other = aggregate[row], aggregate[matrix.columns[source]]
        if one != other:
            wanted[one, other] += matrix.values[source]
    chain = coarsening.chain
    found = np.zeros((count, count))
    for target in range(count):
        for entry in range(chain.offsets[target], chain.offsets[target + 1]):
            assert found[chain.columns[entry], target] == 0.0
            found[chain.columns[entry], target] = chain.values[entry]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_allclose(chain.out, wanted.sum(axis=1), rtol=1e-12)


def test_a_cycle_keeps_the_total_flow_and_the_solution():
    matrix = two_queues(20)
    exits = matrix.row_sums()
    start = np.random.default_rng(0).uniform(0.5, 2.0, matrix.num_rows)
    levels = CpuLevels(balance(matrix, start), -1.0, False)
    levels.run(2)
    assert np.isclose(levels.values() @ exits, start @ exits, rtol=1e-12)
    exact = eliminated_class(matrix)
    levels = CpuLevels(balance(matrix, exact), -1.0, False)
    levels.run(1)
    np.testing.assert_allclose(levels.values(), exact, rtol=1e-10)
    assert levels.residual() < 1e-14


def test_absolute_changes_are_measured_absolutely():
    matrix = two_queues(20)
    relative, absolute = (
        CpuLevels(balance(matrix), -1.0, absolute).run(1)[0] for absolute in (False, True)
    )
    levels = CpuLevels(balance(matrix), -1.0, True)
    before = levels.values()
    levels.run(1)
    assert np.isclose(absolute, np.abs(levels.values() - before).max())
    assert np.isclose(relative, np.abs(levels.values() / before - 1.0).max())


def test_the_levels_are_made_once_and_shared_by_two_iterates():
    matrix = two_queues(20)
    rng = np.random.default_rng(4)
    starts = [rng.uniform(0.5, 2.0, matrix.num_rows) for _ in range(2)]
    engine = LevelScheme(CpuEngine())
    first, second = (engine.sweeper(balance(matrix, start), -1.0, False) for start in starts)
    assert first._coarsenings is second._coarsenings
    first.run(2)
    second.run(1)
    first.run(1)
    for sweeper, start, cycles in ((first, starts[0], 3), (second, starts[1], 1)):
        alone = CpuLevels(balance(matrix, start), -1.0, False)
        alone.run(cycles)
        assert np.array_equal(sweeper.values(), alone.values())
    other = engine.sweeper(balance(two_queues(21)), -1.0, False)
    assert other.sizes[0] == 441


def test_a_run_stops_after_the_first_cycle_that_meets_the_test():
    levels = CpuLevels(balance(two_queues(20)), 1e9, False)
    assert len(levels.run(6)) == 1


def test_a_star_has_no_pairs_and_is_refused():
    size = 500
    rows = [dict.fromkeys(range(1, size), 1.0), *({0: 2.0} for _ in range(1, size))]
    with pytest.raises(UnsupportedError, match=r"not possible: .* join into .* aggregates only"):
        solved(models.ctmc(rows).matrix)


def test_cycles_that_do_not_get_there_are_no_result(monkeypatch):
    monkeypatch.setattr(levels, "MOST_CYCLES", 6)
    with pytest.raises(RuntimeError, match="after 6 cycles a cycle still changes"):
        solved(two_queues(60))


def test_infinite_values_are_no_result():
    matrix = two_queues(20)
    start = np.full(matrix.num_rows, np.nan)
    with pytest.raises(RuntimeError, match="cycles"):
        solve_by_levels(balance(matrix), CpuEngine(), ENVIRONMENT, start)


@pytest.mark.parametrize("case", ["scaling", "part"])
def test_other_systems_are_refused_by_name(case):
    matrix = models.recurrent(1, 100).matrix
    system = balance(matrix)
    if case == "scaling":
        system = replace(system, scaling=Scaling.DIAGONAL)
    else:
        system = replace(system, states=np.arange(100))
    with pytest.raises(UnsupportedError, match="steady states of whole classes"):
        LevelScheme(CpuEngine()).sweeper(system, -1.0, False)


def test_entries_of_value_zero_do_not_matter():
    matrix = models.recurrent(5, 200, loops=False).matrix
    rows = [
        {int(c): float(v) for c, v in zip(row.columns, row.values, strict=True)}
        for row in (matrix.select_rows(np.array([k])) for k in range(200))
    ]
    for state, row in enumerate(rows):
        row.setdefault((state + 50) % 200, 0.0)
    with_zeros = models.csr([dict(sorted(row.items())) for row in rows])
    assert isinstance(with_zeros, CsrMatrix)
    np.testing.assert_allclose(solved(with_zeros)[0], solved(matrix)[0], rtol=1e-6)
