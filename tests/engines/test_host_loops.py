"""Loops that stand in for numba: when they are used, that values stay, and when numba goes on."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cpu import (
    engine,
    host_loops,
    warm_up,
)
from engines.cpu.engine import CpuEngine
from engines.environment import Method, SolverEnvironment
from engines.formats.choice import Format
from engines.long_run import long_run_rewards
from engines.model import RewardStructure
from engines.reachability import solve_reachability
from engines.system import Direction, Scaling, SweepSystem
from engines.time_bounded import distribution_at
from tests.engines import models
from tests.engines.stand_in import StandIn


@pytest.fixture
def stand_in(monkeypatch):
    """Register a stand-in, for systems of any size, in a process that has not loaded numba."""
    monkeypatch.setattr(warm_up, "_loaded", [])
    monkeypatch.setattr(warm_up, "_loaded_all", [])
    monkeypatch.setattr(warm_up, "MET", warm_up.ModelsMet())
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES", 1)
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES_WITH_CHOICES", 1)
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES_OF_SUMS", 1)
    monkeypatch.setattr(engine, "NUMBA_ENTRIES", 10**12)
    found = StandIn()
    host_loops.register(found)
    return found


def chain(size=60):
    model = models.recurrent(5, size)
    start = np.full(size, 1.0 / size)
    return SweepSystem(model.matrix, start, scaling=Scaling.BALANCE, omega=0.9)


def choices(size=60):
    model = models.random_mdp(4, size)
    groups, start = model.row_group_offsets, np.random.default_rng(6).random(size)
    return SweepSystem(model.matrix, start, group_offsets=groups, direction=Direction.MAXIMISE)


def swept(system, matrix_format=Format.AUTO):
    sweeper = CpuEngine(matrix_format).sweeper(system, -1.0, True)
    changes = np.concatenate([sweeper.run(20), sweeper.run(13)])
    return sweeper, changes


@pytest.mark.parametrize("system", [chain(), choices()], ids=["chain", "choices"])
def test_a_stand_in_sweeps_what_numba_would(stand_in, system):
    sweeper, changes = swept(system)
    assert sweeper.cost.kernel == "Stand-in, threads 1"
    host_loops.register(None)
    plain, as_before = swept(system)
    assert plain.cost.kernel == "NumPy"
    np.testing.assert_allclose(changes, as_before, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(sweeper.values(), plain.values(), rtol=1e-12)
    assert sweeper.residual() == pytest.approx(plain.residual(), abs=1e-14)
    assert stand_in.asked == ["sweeps"]


def test_nothing_stands_in_unless_it_is_the_sooner_way(stand_in, monkeypatch):
    entries = chain().matrix.num_entries
    assert host_loops.stand_in(host_loops.MOST_ENTRIES) is stand_in
    assert host_loops.stand_in(host_loops.MOST_ENTRIES + 1) is None
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES", entries + 1)
    monkeypatch.setattr(host_loops, "LATE_SECONDS", 1e9)
    assert swept(chain())[0].cost.kernel == "NumPy"
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES_WITH_CHOICES", 10**12)
    assert swept(choices())[0].cost.kernel == "NumPy"
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES", 1)
    for named in (Format.VALUES, Format.PATTERNS, Format.HYBRID):
        assert "Stand-in" not in swept(chain(), named)[0].cost.kernel
    monkeypatch.setattr(warm_up, "_loaded", ["sweeps"])
    assert "Stand-in" not in swept(chain())[0].cost.kernel
    assert stand_in.asked == []


def test_a_stand_in_sweeps_while_numba_is_on_its_way(stand_in, monkeypatch):
    """What is too small for a stand-in by itself must not wait until numba is loaded."""
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES", 10**12)
    monkeypatch.setattr(engine, "repays_numba", lambda _entries: True)
    assert swept(chain())[0].cost.kernel.startswith("Stand-in")
    assert stand_in.asked == ["sweeps"]


def test_a_small_solve_goes_on_with_a_stand_in_once_it_has_taken_long(stand_in, monkeypatch):
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES", 10**12)
    monkeypatch.setattr(host_loops, "LATE_SECONDS", 1e9)
    plain, changes = swept(chain())
    assert stand_in.asked == []
    monkeypatch.setattr(host_loops, "LATE_SECONDS", 0.0)
    sweeper, going_on = swept(chain())
    assert sweeper.cost.kernel == "Stand-in, threads 1"
    assert stand_in.asked == ["sweeps"]
    np.testing.assert_allclose(going_on, changes, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(sweeper.values(), plain.values(), rtol=1e-12)


def test_without_room_for_a_copy_all_is_as_before(stand_in):
    stand_in.room = False
    assert swept(chain())[0].cost.kernel == "NumPy"
    assert stand_in.asked == ["sweeps"]


@pytest.mark.parametrize("system", [chain(), choices()], ids=["chain", "choices"])
def test_a_long_solve_goes_on_with_numba_once_it_is_loaded(stand_in, monkeypatch, system):
    expected = swept(system)[0].values()
    monkeypatch.setattr(host_loops, "STAY_SECONDS", -1.0)
    monkeypatch.setattr(host_loops, "LEAVE_SECONDS", 1e9)
    assert "Stand-in" in swept(system)[0].cost.kernel
    assert not warm_up.MET._long_solve.is_set()
    monkeypatch.setattr(host_loops, "ENTRIES_TO_LEAVE", 1)
    monkeypatch.setattr(host_loops, "ENTRIES_PER_THREAD", 1)
    monkeypatch.setattr(host_loops, "MOST_THREADS", 3)
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: range(8), raising=False)
    stand_in.threads.clear()
    sweeper, _ = swept(system)
    assert "Stand-in" in sweeper.cost.kernel
    assert warm_up.MET._long_solve.is_set()
    assert set(stand_in.threads) == {2}, "no core is left to what loads"
    monkeypatch.setattr(warm_up, "_loaded_all", ["all"])
    made = len(stand_in.threads)
    sweeper.run(1)
    assert sweeper.cost.kernel.startswith("numba")
    assert len(stand_in.threads) == made
    np.testing.assert_array_equal(swept(system)[0].values(), expected)


def test_a_solve_that_nothing_is_loaded_beside_loads_numba_itself(stand_in, monkeypatch):
    monkeypatch.setattr(host_loops, "STAY_SECONDS", -1.0)
    monkeypatch.setattr(host_loops, "LEAVE_SECONDS", -1.0)
    monkeypatch.setattr(host_loops, "ENTRIES_TO_LEAVE", 1)
    assert swept(chain())[0].cost.kernel.startswith("numba")
    assert stand_in.asked == ["sweeps"]


def test_one_thread_sweeps_where_several_are_slower(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: range(8), raising=False)
    threads = host_loops.Threads(10 * host_loops.ENTRIES_PER_THREAD)
    assert threads.most == host_loops.MOST_THREADS == 4
    paces, chosen = {4: 3.0, 1: 2.0}, []
    for _ in range(host_loops.COMPARED_AGAIN - 1):
        chosen.append(threads.now())
        threads.note(chosen[-1], 10, paces[chosen[-1]])
    assert chosen == [4, 4, 1, *[1] * (host_loops.COMPARED_AGAIN - 4)]
    paces[4] = 1.0
    for expected in (4, 1, 4, 4):
        now = threads.now()
        threads.note(now, 10, paces[now])
        assert now == expected
    assert host_loops.Threads(host_loops.ENTRIES_PER_THREAD).most == 1
    # Rows of two entries take about twice as long as they do.
    assert host_loops.Threads(host_loops.ENTRIES_PER_THREAD, host_loops.ENTRIES_PER_THREAD).most > 1


def test_one_call_that_was_held_up_changes_nothing_and_two_do(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: range(8), raising=False)
    threads = host_loops.Threads(10 * host_loops.ENTRIES_PER_THREAD)
    chosen = []
    for seconds in (9.0, 1.0, 2.0, 1.0, 9.0, 1.0, 9.0, 9.0):
        chosen.append(threads.now())
        threads.note(chosen[-1], 1, seconds)
    assert chosen == [4, 4, 1, 4, 4, 4, 4, 4]
    assert threads.now() == 1


@pytest.mark.parametrize(("cores", "expected"), [(2, [1, 2, 2]), (4, [3, 4, 4]), (8, [4, 4, 4])])
def test_the_first_sweeps_leave_a_core_to_what_compiles_them(monkeypatch, cores, expected):
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: range(cores), raising=False)
    threads = host_loops.Threads(10 * host_loops.ENTRIES_PER_THREAD)
    assert [threads.now() for _ in expected] == expected


def test_the_loader_waits_for_a_long_solve_or_its_time():
    met = warm_up.ModelsMet()
    met.meet(1)
    met.wait_for_long_solve(0.01)
    met.meet_long_solve()
    met.wait_for_long_solve(1e6)
    met.wait_while_small()


@pytest.mark.parametrize("by_arrays", [True, False])
def test_a_line_is_walked_along_by_the_host(stand_in, monkeypatch, by_arrays):
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES", 10**9 if by_arrays else 1)
    size = 2_500
    rows = [{k + 1: 0.5, size + 1: 0.5} for k in range(size)]
    model = models.dtmc([*rows, {size: 1.0}, {size + 1: 1.0}])
    goal = models.mask(size + 2, [size])
    result = solve_reachability(
        model, models.mask(size + 2, range(size)), goal.astype(float), SolverEnvironment()
    )
    assert stand_in.asked == ["sweeps", "substitution"]
    assert result.finished_by == "substitution"
    assert result.cost.kernel == "Stand-in"
    np.testing.assert_allclose(result.values[:size], 0.5 ** np.arange(size, 0.0, -1.0), rtol=1e-12)


@pytest.mark.usefixtures("stand_in")
def test_sums_of_powers_are_those_of_numba_and_go_on_there(monkeypatch):
    model = models.recurrent(3, 300)
    initial = np.full(300, 1 / 300)
    monkeypatch.setattr("engines.cpu.uniformise.NUMBA_BATCH_ENTRIES", 1)

    def distribution():
        return distribution_at(model, initial, 20.0, SolverEnvironment())

    by_host = distribution()
    assert by_host.cost.kernel == "Stand-in, threads 1"
    monkeypatch.setattr(host_loops, "STAY_SECONDS", -1.0)
    monkeypatch.setattr(host_loops, "LEAVE_SECONDS", -1.0)
    monkeypatch.setattr(host_loops, "ENTRIES_TO_LEAVE", 1)
    going_on = distribution()
    assert going_on.cost.kernel.startswith("numba")
    host_loops.register(None)
    monkeypatch.setattr(engine, "NUMBA_ENTRIES", 0)
    by_numba = distribution()
    assert by_numba.cost.kernel.startswith("numba")
    for result in (by_host, going_on):
        assert result.iterations == by_numba.iterations
        np.testing.assert_array_equal(result.values, by_numba.values)


def test_a_long_run_is_found_without_numba(stand_in):
    model = models.recurrent(7, 200)
    rewards = np.random.default_rng(1).random(200)
    environment = SolverEnvironment(method=Method.JOR, omega=0.9, epsilon=1e-10)
    result = long_run_rewards(model, RewardStructure("", rewards), environment)
    assert set(stand_in.asked) == {"sweeps"}
    assert "Stand-in" in result.cost.kernel
